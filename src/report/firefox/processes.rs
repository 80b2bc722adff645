//! Whose process a thread is: of several recordings the same number may be another machine's.

use std::collections::{BTreeMap, BTreeSet};

use crate::identity::Dimension;
use crate::profile::{Origin, Profile, RecordingId, Thread};

/// A process as the format has it.
pub struct Process {
    /// Its number, and which of several with this number it is: no two have the same.
    pub pid: String,
    /// Of several recordings, ` (node, rank)` behind its name; else nothing.
    pub place: String,
    /// Its machine, by its number among the profile's.
    pub machine: u32,
}

/// The processes of a profile.
pub struct Processes {
    all: Vec<Process>,
    /// Of each of the profile's threads.
    of_thread: Vec<usize>,
}

impl Processes {
    /// Those of several recordings are told apart by `dimensions`; if there are none, by machine and rank, and where that does
    /// not tell recordings apart, by their names.
    pub fn of(profile: &Profile, dimensions: &[Dimension]) -> Self {
        let places = Places::new(profile, dimensions);
        let mut known: BTreeMap<(u32, RecordingId, String), usize> = BTreeMap::new();
        let mut times: BTreeMap<u32, u32> = BTreeMap::new();
        let mut all = Vec::new();
        let process_of = |thread: &Thread| {
            let place = places.of(profile, thread);
            let recording = thread.recording;
            *known.entry((thread.pid, recording, place.clone())).or_insert_with(|| {
                let times = times.entry(thread.pid).or_insert(0);
                *times += 1;
                let number =
                    thread.ids().map_or_else(|| thread.process_name.clone(), |(pid, _)| pid.to_string());
                let pid = if *times == 1 { number } else { format!("{number}.{times}") };
                let machine = profile.recordings.get(recording.0 as usize).map_or(0, |origin| origin.machine);
                all.push(Process { pid, place, machine });
                all.len() - 1
            })
        };
        let of_thread = profile.threads.iter().map(process_of).collect();
        Self { all, of_thread }
    }

    /// The number of a thread's process; the thread by its number in the profile.
    pub fn number(&self, thread: u32) -> usize {
        self.of_thread[thread as usize]
    }

    /// The process of a thread.
    pub fn of_thread(&self, thread: u32) -> &Process {
        &self.all[self.number(thread)]
    }
}

/// How recordings are told apart.
struct Places<'a> {
    dimensions: &'a [Dimension],
    /// Of each recording, where no dimensions were asked for.
    of_recording: Vec<String>,
}

impl<'a> Places<'a> {
    fn new(profile: &Profile, dimensions: &'a [Dimension]) -> Self {
        let has_nodes = profile.machines.len() > 1;
        let place = |origin: &Origin| {
            let rank = origin.identity.as_ref().and_then(|identity| identity.job.rank);
            let node = has_nodes.then(|| origin.node());
            let rank = rank.map(|_| origin.value(&Dimension::Rank));
            node.into_iter().chain(rank).collect::<Vec<String>>().join(", ")
        };
        let mut of_recording: Vec<String> = match &profile.recordings[..] {
            [] | [_] => vec![String::new(); profile.recordings.len()],
            several => several.iter().map(place).collect(),
        };
        let different: BTreeSet<&String> = of_recording.iter().collect();
        if different.len() < of_recording.len() {
            for (place, origin) in of_recording.iter_mut().zip(&profile.recordings) {
                let before = if place.is_empty() { "" } else { ", " };
                *place += &format!("{before}{}", origin.title());
            }
        }
        Self { dimensions, of_recording }
    }

    fn of(&self, profile: &Profile, thread: &Thread) -> String {
        let recording = thread.recording.0 as usize;
        let Some(origin) = profile.recordings.get(recording).filter(|_| profile.recordings.len() > 1) else {
            return String::new();
        };
        let values =
            self.dimensions.iter().map(|dimension| origin.value_in(thread.cgroup.as_deref(), dimension));
        let values = values.collect::<Vec<String>>().join(", ");
        let place = if self.dimensions.is_empty() { &self.of_recording[recording] } else { &values };
        // Of a companion beside the ranks of one machine nothing is to be told.
        if place.is_empty() { String::new() } else { format!(" ({place})") }
    }
}

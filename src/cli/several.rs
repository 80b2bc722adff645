//! Several recordings as one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, bail};
use eprof::analyze::{Dimensions, MemoryLimit};
use eprof::merge::{InTime, lacking_slices, merge};
use eprof::profile::Profile;
use eprof::recording::Recording;
use eprof::recording::node_meters::{self, NodeMeters};
use eprof::symbolize::{SymbolizeOptions, Symbolizer, Symbols};
use eprof::threads::Threads;

use super::input::InputArgs;
use super::loading::{Found, Loaded, Reading};
use super::needed::Needed;
use super::work_progress::WorkProgress;

/// Why a file that cannot be read ends all of it.
const NAMED: &str = "one of several recordings cannot be read, and without it the sums would be too low: leave it out if that is meant \
     (of a folder, files that do not begin as recordings are left out with a warning)";

/// A profile, its names, and what was recorded.
type OneOf = (Profile, Symbols, Option<String>);

impl InputArgs {
    /// Reads these recordings; several become one.
    pub fn load_all(&self, paths: &[PathBuf], needed: Needed, memory: MemoryLimit) -> anyhow::Result<Loaded> {
        match paths {
            [path] => self.load_file(path, needed, memory),
            _ => self.load_several(paths, needed, memory),
        }
    }

    fn load_several(&self, paths: &[PathBuf], needed: Needed, memory: MemoryLimit) -> anyhow::Result<Loaded> {
        // Threads tell whose samples are of which recording. Each profile is there twice in the end, as it is and as
        // a part of the whole.
        let needed = Needed { dimensions: Dimensions { threads: true, ..needed.dimensions }, ..needed };
        let (memory, at_once) = memory.shared_at_once(2 * paths.len());
        let meters = &node_meters(paths);
        let all: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let (mut profiles, mut symbols, mut subjects) = (Vec::new(), Vec::new(), Vec::new());
        for (profile, of_one, subject) in self.read_at_once(at_once, &all, needed, memory, meters)? {
            profiles.push(profile);
            symbols.push(of_one);
            subjects.push(subject);
        }
        // Few share threads for a part of their time. These are read once more, so that not all are kept in time.
        let lacking = if needed.slices { Vec::new() } else { lacking_slices(&profiles) };
        let lacking: Vec<usize> = lacking.into_iter().filter(|&at| paths[at].is_file()).collect();
        let again: Vec<&Path> = lacking.iter().map(|&at| all[at]).collect();
        let in_time = Needed { slices: true, ..needed };
        let again = self.read_at_once(at_once, &again, in_time, memory, meters)?;
        for (at, (profile, of_one, _)) in lacking.into_iter().zip(again) {
            (profiles[at], symbols[at]) = (profile, of_one);
        }
        let merged = merge(profiles, if needed.slices { InTime::Told } else { InTime::LeftOut });
        let mut all = Symbols::default();
        let (mut modules, mut addresses) = (0, 0);
        for (&number, part) in merged.order.iter().zip(&merged.profile.merged) {
            all.append(std::mem::take(&mut symbols[number]), modules, addresses);
            modules += part.profile.modules.len() as u32;
            addresses += part.profile.addresses.len();
        }
        let subject = subject(&merged.profile, merged.order.iter().filter_map(|&at| subjects[at].as_deref()));
        let started = merged.profile.recordings.iter().filter_map(|origin| origin.started_unix_ns).min();
        let started = started.and_then(|nanos| UNIX_EPOCH.checked_add(Duration::from_nanos(nanos)));
        Ok(Loaded {
            analysis: Box::new(merged.profile),
            symbols: all,
            subject,
            verified: None,
            started,
            events: Vec::new(),
            // Nobody looks for more of several recordings.
            symbolizer: Symbolizer::new(SymbolizeOptions::default()),
        })
    }

    /// Reads recordings, several at once, and gives them in order. The error is that of the first one that cannot be read;
    /// what comes after it is not begun then.
    fn read_at_once(
        &self,
        at_once: usize,
        paths: &[&Path],
        needed: Needed,
        memory: MemoryLimit,
        meters: &NodeMeters,
    ) -> anyhow::Result<Vec<OneOf>> {
        let cpus = Threads::new(None).count();
        let at_once = at_once.min(cpus).min(paths.len()).max(1);
        // Alone it has as many threads as it likes, as a single recording.
        let beside_others = (at_once > 1).then(|| (cpus / at_once).max(1));
        let done = Arc::new(AtomicUsize::new(0));
        let progress = (at_once > 1).then(|| WorkProgress::reading_several(paths.len(), &done));
        let first_failed = AtomicUsize::new(usize::MAX);
        let results = Threads::new(Some(at_once)).map(paths.len(), |at| {
            let reading = Reading { memory, meters, beside_others };
            if at > first_failed.load(Ordering::Relaxed) {
                return None;
            }
            let result = self.read_one_of(paths.len(), paths[at], needed, &reading);
            if result.is_err() {
                first_failed.fetch_min(at, Ordering::Relaxed);
            }
            done.fetch_add(1, Ordering::Relaxed);
            Some(result)
        });
        drop(progress);
        results.into_iter().flatten().collect()
    }

    /// One of so many recordings.
    fn read_one_of(
        &self,
        count: usize,
        path: &Path,
        needed: Needed,
        reading: &Reading<'_>,
    ) -> anyhow::Result<OneOf> {
        let name = path.display().to_string();
        let Loaded { analysis, symbols, subject, .. } =
            self.read(path, needed, reading).map_err(|error| naming(error, &name)).context(NAMED)?;
        let mut profile = match analysis {
            Found::Text(profile) => *profile,
            Found::Recording(analysis) => match analysis.into_whole() {
                Some(profile) => profile,
                None => bail!(
                    "{name} has more call stacks than there is memory for beside the other {} recordings: give more by \
                     --memory, or report fewer at once",
                    count - 1
                ),
            },
        };
        profile.recordings.resize_with(1, Default::default);
        profile.recordings[0].name = Some(name);
        Ok((profile, symbols, subject))
    }
}

/// The readings of the machines of which some recording left them to another. Files that cannot be read, or not more than
/// once, are for others to complain about.
fn node_meters(paths: &[PathBuf]) -> NodeMeters {
    let open = |path: &PathBuf| Recording::open(path).ok();
    let files = || paths.iter().filter(|path| path.is_file());
    let boot = |recording: &Recording| node_meters::boot(recording).map(str::to_owned);
    let borrowers = files().filter_map(open).filter(node_meters::borrows);
    let boots: BTreeSet<String> = borrowers.filter_map(|recording| boot(&recording)).collect();
    let mut meters = NodeMeters::default();
    if !boots.is_empty() {
        let lenders = files().filter_map(open);
        let lenders = lenders.filter(|recording| boot(recording).is_some_and(|boot| boots.contains(&boot)));
        lenders.for_each(|recording| meters.add(&recording));
    }
    meters
}

/// An error that says of which of the files it is.
fn naming(error: anyhow::Error, name: &str) -> anyhow::Error {
    if format!("{error:#}").contains(name) { error } else { error.context(name.to_owned()) }
}

/// What was recorded, how often, and on how many machines.
fn subject<'a>(profile: &Profile, subjects: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    subjects.for_each(|subject| *counts.entry(subject).or_default() += 1);
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let mut text = count(profile.recordings.len(), "recording");
    text += &format!(" of {}", count(profile.machines.len(), "machine"));
    let is_one = counts.len() == 1;
    let mut commands = counts.into_iter().map(|(subject, count)| match count {
        _ if is_one => subject.to_owned(),
        1 => subject.to_owned(),
        _ => format!("{count} of {subject}"),
    });
    const SHOWN: usize = 3;
    let shown: Vec<String> = commands.by_ref().take(SHOWN).collect();
    let more = commands.count();
    if !shown.is_empty() {
        text += &format!(": {}", shown.join("; "));
    }
    if more > 0 {
        text += &format!("; and {more} more");
    }
    Some(text)
}

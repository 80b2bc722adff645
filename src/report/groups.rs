//! Threads by what tells them or their recordings apart: nodes, ranks, jobs, pods, control groups, labels.

use rustc_hash::FxHashMap;

use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{Origin, Profile, Thread};

/// The groups of a profile's threads.
pub(super) struct Groups {
    /// What each group is, by each dimension, in the order of threads and then of recordings.
    pub values: Vec<Vec<Label>>,
    /// The group of each thread.
    pub of_thread: Vec<usize>,
    /// Whether a recording says of itself that it is this group: such a group is told though it took nothing. Of control groups
    /// there may be hundreds that never ran.
    pub of_recording: Vec<bool>,
}

impl Groups {
    pub fn of(profile: &Profile, dimensions: &[Dimension]) -> Self {
        let nowhere = Origin::default();
        let mut values: Vec<Vec<Label>> = Vec::new();
        let mut numbers: FxHashMap<Vec<Label>, usize> = FxHashMap::default();
        // There are many threads of one recording and control group.
        let mut known: FxHashMap<(u32, Option<&str>), usize> = FxHashMap::default();
        let mut group = |thread: &Thread| {
            let origin = profile.recordings.get(thread.recording.0 as usize).unwrap_or(&nowhere);
            let of: Vec<Label> = dimensions
                .iter()
                .map(|by| Label::new(&origin.value_in(thread.cgroup.as_deref(), by)))
                .collect();
            *numbers.entry(of).or_insert_with_key(|of| {
                values.push(of.clone());
                values.len() - 1
            })
        };
        let of_thread = profile.threads.iter().map(|thread| {
            let key = (thread.recording.0, thread.cgroup.as_deref());
            *known.entry(key).or_insert_with(|| group(thread))
        });
        let of_thread = of_thread.collect();
        let mut of_recording = vec![false; values.len()];
        for values_of_one in recordings(profile, dimensions) {
            let group = values.iter().position(|values| *values == values_of_one).unwrap_or_else(|| {
                values.push(values_of_one);
                of_recording.push(false);
                values.len() - 1
            });
            of_recording[group] = true;
        }
        Self { values, of_thread, of_recording }
    }
}

/// What recordings say of themselves, where they say all of it and threads do not know better.
fn recordings(profile: &Profile, dimensions: &[Dimension]) -> Vec<Vec<Label>> {
    if dimensions.iter().any(Dimension::is_of_threads) {
        return Vec::new();
    }
    let told = |origin: &Origin| {
        let told = dimensions.iter().map(|by| origin.told(by).map(|value| Label::new(&value)));
        told.collect::<Option<Vec<Label>>>()
    };
    profile.recordings.iter().filter_map(told).collect()
}

/// What a group is called.
pub(super) fn title(values: &[Label]) -> Label {
    Label::new(&values.iter().map(Label::as_str).collect::<Vec<_>>().join(", "))
}

//! Recordings by what tells them apart: nodes, ranks, jobs, pods, labels.

use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{Origin, Profile};

/// The groups of a profile's recordings.
pub(super) struct Groups {
    /// What each group is, by each dimension, in the order of recordings.
    pub values: Vec<Vec<Label>>,
    /// The group of each recording.
    pub of_recording: Vec<usize>,
}

impl Groups {
    pub fn of(profile: &Profile, dimensions: &[Dimension]) -> Self {
        let mut values: Vec<Vec<Label>> = Vec::new();
        let group = |origin: &Origin| {
            let of: Vec<Label> = dimensions.iter().map(|by| Label::new(&origin.value(by))).collect();
            values.iter().position(|known| *known == of).unwrap_or_else(|| {
                values.push(of);
                values.len() - 1
            })
        };
        let of_recording = profile.recordings.iter().map(group).collect();
        Self { values, of_recording }
    }
}

/// What a group is called.
pub(super) fn title(values: &[Label]) -> Label {
    Label::new(&values.iter().map(Label::as_str).collect::<Vec<_>>().join(", "))
}

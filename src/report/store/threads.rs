//! What a row of samples says of its thread.

use parquet::data_type::ByteArray;

use crate::identity::{Dimension, Identity};
use crate::label::Label;
use crate::profile::{Origin, Profile, Thread};

/// A thread's texts, each of which all of its rows share.
pub(super) struct ThreadTexts {
    pub job: ByteArray,
    pub step: ByteArray,
    pub node: ByteArray,
    pub boot: ByteArray,
    pub rank: i64,
    pub pod: ByteArray,
    pub cgroup: ByteArray,
    pub labels: ByteArray,
    pub process: ByteArray,
    pub comm: ByteArray,
}

/// A text from outside, safe to show; nothing if it is empty.
pub(super) fn shown(text: &str) -> String {
    if text.is_empty() { String::new() } else { Label::new(text).as_str().to_owned() }
}

/// What a recording's machine is called; nothing if that is not known.
pub(super) fn node(origin: &Origin) -> String {
    shown(&origin.identity.as_ref().and_then(Identity::node).unwrap_or_else(|| origin.hostname.clone()))
}

impl ThreadTexts {
    /// Of all threads of a profile.
    pub fn of_profile(profile: &Profile) -> Vec<Self> {
        let nowhere = Origin::default();
        let of = |thread: &Thread| {
            let origin = profile.recordings.get(thread.recording.0 as usize).unwrap_or(&nowhere);
            Self::of(thread, origin)
        };
        profile.threads.iter().map(of).collect()
    }

    fn of(thread: &Thread, origin: &Origin) -> Self {
        let identity = origin.identity.as_ref();
        let job = identity.map(|identity| &identity.job);
        let bytes = |text: &str| ByteArray::from(shown(text).as_str());
        let cgroup = thread.cgroup.as_deref();
        // A dimension says in brackets that it has no value.
        let known = |dimension: Dimension| {
            let value = origin.value_in(cgroup, &dimension);
            if value == format!("[no {dimension}]") { String::new() } else { value }
        };
        let labels = identity.map_or(String::new(), |identity| {
            let pair = |(key, value): (&str, &str)| format!("\n{}={}", shown(key), shown(value));
            let mut labels: String = identity.labels.iter().map(pair).collect();
            if !labels.is_empty() {
                labels.push('\n');
            }
            labels
        });
        Self {
            job: bytes(job.and_then(|job| job.id.as_deref()).unwrap_or_default()),
            step: bytes(job.and_then(|job| job.step.as_deref()).unwrap_or_default()),
            node: ByteArray::from(node(origin).as_str()),
            boot: bytes(identity.and_then(|identity| identity.boot.as_deref()).unwrap_or_default()),
            rank: job.and_then(|job| job.rank).map_or(-1, i64::from),
            pod: bytes(&known(Dimension::Pod)),
            cgroup: bytes(&known(Dimension::Cgroup)),
            labels: ByteArray::from(labels.as_str()),
            process: bytes(&thread.process_name),
            comm: bytes(&thread.name),
        }
    }
}

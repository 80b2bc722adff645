//! What a row of samples says of its thread.

use parquet::data_type::ByteArray;

use crate::identity::Dimension;
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
    shown(&origin.told(&Dimension::Node).unwrap_or_default())
}

/// The texts of a profile's threads, made when rows of them are met: of a machine that starts a thousand processes a
/// second hardly any has rows.
pub(super) struct Threads<'p> {
    profile: &'p Profile,
    recordings: Vec<RecordingTexts>,
    known: Vec<Option<ThreadTexts>>,
}

/// What is the same in all threads of a recording.
struct RecordingTexts {
    job: ByteArray,
    step: ByteArray,
    node: ByteArray,
    boot: ByteArray,
    rank: i64,
    labels: ByteArray,
}

impl<'p> Threads<'p> {
    /// Of a profile.
    pub fn new(profile: &'p Profile) -> Self {
        let known = std::iter::repeat_with(|| None).take(profile.threads.len()).collect();
        Self { profile, recordings: profile.recordings.iter().map(RecordingTexts::of).collect(), known }
    }

    /// Those of one thread, if there is such a thread.
    pub fn get(&mut self, thread: usize) -> Option<&ThreadTexts> {
        let known = self.known.get_mut(thread)?;
        if known.is_none() {
            let thread = self.profile.threads.get(thread)?;
            let recording = thread.recording.0 as usize;
            let nowhere = (Origin::default(), RecordingTexts::of(&Origin::default()));
            let told = self.profile.recordings.get(recording).zip(self.recordings.get(recording));
            let (origin, texts) = told.unwrap_or((&nowhere.0, &nowhere.1));
            *known = Some(ThreadTexts::of(thread, origin, texts));
        }
        known.as_ref()
    }
}

impl RecordingTexts {
    fn of(origin: &Origin) -> Self {
        let identity = origin.identity.as_ref();
        let job = identity.map(|identity| &identity.job);
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
            labels: ByteArray::from(labels.as_str()),
        }
    }
}

impl ThreadTexts {
    fn of(thread: &Thread, origin: &Origin, recording: &RecordingTexts) -> Self {
        let cgroup = thread.cgroup.as_deref();
        // A dimension says in brackets that it has no value.
        let known = |dimension: Dimension| {
            let value = origin.value_in(cgroup, &dimension);
            if value == format!("[no {dimension}]") { String::new() } else { value }
        };
        Self {
            job: recording.job.clone(),
            step: recording.step.clone(),
            node: recording.node.clone(),
            boot: recording.boot.clone(),
            rank: recording.rank,
            pod: bytes(&known(Dimension::Pod)),
            cgroup: bytes(&known(Dimension::Cgroup)),
            labels: recording.labels.clone(),
            process: bytes(&thread.process_name),
            comm: bytes(&thread.name),
        }
    }
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(shown(text).as_str())
}

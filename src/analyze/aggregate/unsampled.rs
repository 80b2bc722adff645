//! Processes of the program that left no sample, where their time is not known from elsewhere.

use rustc_hash::FxHashSet;

use crate::recording::Recording;
use crate::recording::metadata::Target;

/// Fewer say nothing: a shell waits, a pipe's end hardly runs.
const WORTH_TELLING: usize = 20;

/// Compares the processes that a command started with those that were sampled.
///
/// What processes took that ended before their first sample is among other processes' energy. A clock's samples are
/// completed by the CPU time that the recorder counts ([`NotSampled`](super::not_sampled::NotSampled)). What a hardware
/// event would have counted of them nothing tells.
#[derive(Debug)]
pub(crate) struct Unsampled {
    started: FxHashSet<u32>,
    sampled: FxHashSet<u32>,
}

impl Unsampled {
    /// Only of a command that was sampled alone.
    pub fn new(recording: &Recording) -> Option<Self> {
        let metadata = recording.metadata()?;
        let is_command = matches!(metadata.target, Target::Command { .. });
        let (started, sampled) = Default::default();
        (is_command && !metadata.system_wide_samples).then_some(Self { started, sampled })
    }

    /// A process was started.
    pub fn started(&mut self, pid: u32) {
        self.started.insert(pid);
    }

    /// A process was sampled.
    pub fn sampled(&mut self, pid: u32) {
        self.sampled.insert(pid);
    }

    /// What the reader must know, if it was most of them.
    pub fn warning(&self) -> Option<String> {
        let all = self.started.len();
        let without = self.started.difference(&self.sampled).count();
        (without >= WORTH_TELLING && 2 * without > all).then(|| {
            format!(
                "{without} of {all} processes that the program started left no sample: what they took is not known, and is \
                 among others' joules. Recorded with -e cpu-clock it is booked to the program"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_and_most_of_all_are_told() {
        let of = |started: u32, sampled: u32| {
            let mut compared = Unsampled { started: FxHashSet::default(), sampled: FxHashSet::default() };
            compared.sampled(1);
            (100..100 + started).for_each(|pid| compared.started(pid));
            (100..100 + sampled).for_each(|pid| compared.sampled(pid));
            compared.warning()
        };
        let told = of(1000, 30).expect("nearly all");
        assert!(told.starts_with("970 of 1000 processes that the program started left no sample"), "{told}");
        assert_eq!(of(15, 0), None, "a few");
        assert_eq!(of(1000, 600), None, "the smaller part");
    }
}

//! What to make of a recording.

use crate::analyze::earlier::EarlierIntervals;
use crate::power_model::model::PowerModel;
use crate::power_model::stored::StoredModel;
use crate::symbolize::{SymbolizeOptions, UnwindFiles};
use crate::threads::Threads;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// What to make of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to tell apart.
    pub dimensions: Dimensions,
    /// Estimate joules by these watts if the recording has none.
    pub watts: Option<WattsRange>,
    /// Energy of a bucket; chosen by the recording's energy if not given.
    pub bucket: Option<Joules>,
    /// Keep what happened in each bucket.
    pub keep_buckets: bool,
    /// How joules are divided among samples.
    pub model: ModelChoice,
    /// What recordings just before this one saw of the machine: its model is fitted to all of them.
    pub earlier: Option<EarlierIntervals>,
    /// The model kept for the recorded CPU, for [`ModelChoice::Auto`].
    pub stored_model: Option<StoredModel>,
    /// What becomes of the energy that no program causes.
    pub static_energy: StaticEnergy,
    /// Where code is found that must be read to unwind copied stacks.
    pub symbolize: SymbolizeOptions,
    /// What of it is open already.
    pub unwind_files: UnwindFiles,
    /// Nothing finer than functions is asked for: addresses of one need not be told apart.
    pub functions: Option<FunctionsAlone>,
    /// Threads to use, at most two; as many as there are CPUs by default.
    pub threads: Option<usize>,
    /// What is counted of a recording that holds samples of the time around it, too.
    pub counted: Option<CountedTime>,
}

/// A stretch of a longer recording: from its start on, up to its end. A sample is counted in the stretch that it was taken in, and the
/// CPU time that it stands for is that of each stretch that it lies in: so all stretches together have what the whole has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedTime {
    /// Its start.
    pub start: Timestamp,
    /// Its end, which is the next one's start.
    pub end: Timestamp,
}

impl CountedTime {
    /// Whether a sample of this time was taken in it.
    #[inline]
    pub(crate) fn has(&self, time: Timestamp) -> bool {
        self.start <= time && time < self.end
    }

    /// What lies in it of a time that a CPU ran, somewhere between two instants that are next to each other.
    #[inline]
    pub(crate) fn part_of(&self, start: Timestamp, end: Timestamp, running: Nanoseconds) -> Nanoseconds {
        let length = end.since(start).as_nanos();
        if length == 0 {
            return if self.has(end) { running } else { Nanoseconds::ZERO };
        }
        // Rounded at both edges alike, so that the parts of two stretches are the whole.
        let until = |at: Timestamp| {
            let before = at.max(start).min(end).since(start).as_nanos();
            (u128::from(running.as_nanos()) * u128::from(before) / u128::from(length)) as u64
        };
        Nanoseconds::from_nanos(until(self.end).saturating_sub(until(self.start)))
    }
}

impl Options {
    /// How many threads there are to use.
    pub(crate) fn threads(&self) -> usize {
        Threads::new(self.threads).count()
    }
}

/// What is asked for where that is nothing finer than functions.
#[derive(Debug, Clone)]
pub struct FunctionsAlone {
    /// Where their symbols are found.
    pub symbols: SymbolizeOptions,
    /// What of a stack's functions.
    pub of_stacks: FunctionsOfStacks,
}

/// What of the functions of a stack is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionsOfStacks {
    /// Who called whom.
    Paths,
    /// Which ones there are: totals count a function once, whoever called it and however often it called itself.
    Sets,
}

/// What becomes of the energy that is spent whatever runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StaticEnergy {
    /// It has a row of its own.
    #[default]
    Row,
    /// It is shared out to what ran meanwhile.
    Spread,
}

/// Which differences between samples a profile keeps. What is not asked for is merged, which saves
/// time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// Whole call stacks; else only the innermost frame.
    pub stacks: bool,
    /// Threads.
    pub threads: bool,
    /// CPUs.
    pub cpus: bool,
}

impl Dimensions {
    /// Everything.
    pub const ALL: Self = Self { stacks: true, threads: true, cpus: true };
}

/// How joules are divided among samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ModelChoice {
    /// The best model known of the recorded CPU, corrected by the recording itself.
    #[default]
    Auto,
    /// This model as it is.
    Exactly(PowerModel),
    /// What the recording itself tells, with mere proportions to begin with.
    SelfCalibrated,
    /// By time: as if all code drew the same power.
    Time,
}

/// Watts of a machine when idle and when all its CPUs are busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WattsRange {
    /// With nothing to do.
    pub idle: Watts,
    /// With every CPU busy.
    pub busy: Watts,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dimensions: Dimensions::ALL,
            watts: None,
            bucket: None,
            keep_buckets: false,
            model: ModelChoice::default(),
            earlier: None,
            stored_model: None,
            static_energy: StaticEnergy::default(),
            symbolize: SymbolizeOptions::default(),
            unwind_files: UnwindFiles::default(),
            functions: None,
            threads: None,
            counted: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stretches_next_to_each_other_have_what_the_whole_has(
            cuts in prop::collection::btree_set(1u64..1_000, 0..6),
            samples in prop::collection::vec((0u64..1_000, 0u64..200, 0u64..300), 1..20),
        ) {
            let at = Timestamp::from_nanos;
            let edges: Vec<u64> = [0].into_iter().chain(cuts).chain([2_000]).collect();
            let parts: Vec<CountedTime> =
                edges.windows(2).map(|edges| CountedTime { start: at(edges[0]), end: at(edges[1]) }).collect();
            for (start, length, running) in samples {
                let (start, end) = (at(start), at(start + length));
                let running = Nanoseconds::from_nanos(running);
                prop_assert_eq!(parts.iter().filter(|part| part.has(end)).count(), 1);
                let of_parts = parts.iter().map(|part| part.part_of(start, end, running).as_nanos());
                prop_assert_eq!(of_parts.sum::<u64>(), running.as_nanos());
            }
        }
    }

    #[test]
    fn a_sample_on_an_edge_gives_each_side_its_share() {
        let at = Timestamp::from_nanos;
        // Of 20 ms that a CPU ran before the sample at 1.005 s, 15 ms lie before the cut at 1 s.
        let before = CountedTime { start: at(0), end: at(1_000_000_000) };
        let after = CountedTime { start: at(1_000_000_000), end: at(2_000_000_000) };
        let part = |of: CountedTime| {
            of.part_of(at(985_000_000), at(1_005_000_000), Nanoseconds::from_millis(20)).as_nanos()
        };
        assert_eq!([part(before), part(after)], [15_000_000, 5_000_000]);
    }
}

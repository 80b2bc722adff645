//! What to make of a recording.

use std::num::NonZero;
use std::thread;

use crate::analyze::earlier::EarlierIntervals;
use crate::power_model::model::PowerModel;
use crate::power_model::stored::StoredModel;
use crate::symbolize::SymbolizeOptions;
use crate::units::{Joules, Watts};

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
    /// Nothing finer than functions is asked for: addresses of one need not be told apart.
    pub functions: Option<FunctionsAlone>,
    /// Threads to use, at most two; as many as there are CPUs by default.
    pub threads: Option<usize>,
}

impl Options {
    /// How many threads there are to use.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get))
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
            functions: None,
            threads: None,
        }
    }
}

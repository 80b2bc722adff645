//! What to make of a recording.

use std::num::NonZero;
use std::thread;

use crate::analyze::aggregate::collect::Dimensions;
use crate::analyze::model::choice::ModelChoice;
use crate::analyze::model::estimate::WattsRange;
use crate::power_model::stored::StoredModel;
use crate::symbolize::SymbolizeOptions;
use crate::units::Joules;

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
    /// The model kept for the recorded CPU, for [`ModelChoice::Auto`].
    pub stored_model: Option<StoredModel>,
    /// What becomes of the energy that no program causes.
    pub static_energy: StaticEnergy,
    /// Where code is found that must be read to unwind copied stacks.
    pub symbolize: SymbolizeOptions,
    /// Threads to use, at most two; as many as there are CPUs by default.
    pub threads: Option<usize>,
}

impl Options {
    /// How many threads there are to use.
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get))
    }
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

impl Default for Options {
    fn default() -> Self {
        Self {
            dimensions: Dimensions::ALL,
            watts: None,
            bucket: None,
            keep_buckets: false,
            model: ModelChoice::default(),
            stored_model: None,
            static_energy: StaticEnergy::default(),
            symbolize: SymbolizeOptions::default(),
            threads: None,
        }
    }
}

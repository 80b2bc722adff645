//! Where the joules of a domain went, to the last one.

use crate::units::{Joules, Timestamp};

/// The account of one energy domain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Ledger {
    /// Counted by the meter from its first to its last reading.
    pub measured: Joules,
    /// To samples of the recorded program.
    pub attributed: Joules,
    /// Spent whatever runs: known constant power, and energy of times when nothing ran.
    pub static_energy: Joules,
    /// By processes that were not recorded.
    pub other_processes: Joules,
    /// By the recorder itself.
    pub recorder: Joules,
    /// While records were lost, or in a domain that no event explains.
    pub lost: Joules,
}

impl Ledger {
    /// The parts together; equal to `measured` up to rounding.
    pub fn parts(&self) -> Joules {
        self.attributed + self.static_energy + self.other_processes + self.recorder + self.lost
    }
}

/// A stretch of time in which the meters counted the target energy.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    /// Start.
    pub start: Timestamp,
    /// End; the next bucket's start.
    pub end: Timestamp,
    /// Measured energy by domain.
    pub measured: Vec<Joules>,
    /// What the weights and the static power say, if they are joules: of all top-level domains together.
    pub modelled: Joules,
    /// Number of quanta that ended in it.
    pub quanta: u32,
    /// Joules by cell, of all top-level domains together. Only kept on request.
    pub by_cell: Vec<(u32, f32)>,
}

//! Stretches of time of equal energy.

use crate::profile::{Balance, InSlice};
use crate::units::{Joules, Timestamp};

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
    /// Where the joules of all top-level domains together went.
    pub balance: Balance,
    /// Number of quanta that ended in it.
    pub quanta: u32,
    /// Joules and time by cell. Only kept on request.
    pub by_cell: Vec<InSlice>,
}

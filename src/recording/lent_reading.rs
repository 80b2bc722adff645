//! A reading that a recording's own recorder did not take.

use crate::units::{Joules, Timestamp};

/// A reading that was lent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LentReading {
    /// Index of the domain among the metadata's.
    pub domain: u32,
    /// When it was taken.
    pub time: Timestamp,
    /// Joules since some time before all readings.
    pub energy: Joules,
}

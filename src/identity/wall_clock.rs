//! The wall clock of one instant, and how sure it is.

use serde::{Deserialize, Serialize};

/// One instant on the recording's clock and on the wall, with what the latter may be off by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallClock {
    /// On the clock of samples and readings, in nanoseconds.
    pub clock_ns: u64,
    /// On the wall, nanoseconds since 1970-01-01 UTC.
    pub unix_ns: u64,
    /// Both were not read at once: the two readings lie at most so far apart.
    pub reading_error_ns: u64,
    /// What the kernel says that the wall clock is off by at most; `None` if nothing keeps it in time.
    pub utc_error_ns: Option<u64>,
}

impl WallClock {
    /// What the wall clock may be off by together, against UTC; `None` where that is not known.
    pub fn error_ns(&self) -> Option<u64> {
        Some(self.utc_error_ns?.saturating_add(self.reading_error_ns))
    }
}

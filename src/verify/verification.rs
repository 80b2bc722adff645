//! What a verification found, as it is printed, written as JSON and kept.

use chrono::DateTime;
use serde::{Deserialize, Serialize};

use super::comparison::{Comparison, Verdict};
use super::kernels::Kernel;

/// The version of [`Verification`] that this eprof writes.
pub const VERIFICATION_FORMAT: u32 = 1;

/// How wrong eprof is on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Version of this structure.
    pub format: u32,
    /// Version of the eprof that was verified.
    pub eprof_version: String,
    /// The CPU's name for model files, as in a recording's metadata.
    pub cpu_identity: String,
    /// The CPU's name for people.
    pub cpu_model: String,
    /// When: seconds since 1970-01-01 UTC.
    pub created_unix: u64,
    /// The meters that were taken for true.
    pub meters: Vec<String>,
    /// Watts of the idle machine.
    pub idle_watts: f64,
    /// The kernels by themselves.
    pub kernels: Vec<KernelTruth>,
    /// What eprof said of them together.
    pub comparisons: Vec<Comparison>,
    /// All in a line.
    pub verdict: Verdict,
    /// What could not be tried, and why; what the reader must know.
    pub notes: Vec<String>,
}

/// A kernel by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KernelTruth {
    /// The kernel.
    pub kernel: Kernel,
    /// Joules over the idle machine's, of a second of its CPU time.
    pub watts: f64,
    /// Their standard error, as a share of them.
    pub relative_error: f64,
}

impl Verification {
    /// The day on which it was made, in UTC: `2026-11-22`.
    pub fn date(&self) -> String {
        date(self.created_unix)
    }
}

/// The day of a time in seconds since 1970-01-01 UTC.
fn date(unix_seconds: u64) -> String {
    let time = i64::try_from(unix_seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| format!("second {unix_seconds}"), |time| time.format("%F").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // By `date -u -d @SECONDS +%F`.
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_795_391_999, "2026-11-22"),
            (1_798_761_599, "2026-12-31"),
            (1_798_761_600, "2027-01-01"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(seconds), day);
        }
    }
}

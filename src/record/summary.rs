//! What is said when a recording has ended.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::hardware::Method;
use crate::label::{shell_word, visible};
use crate::process::Outcome;
use crate::record::energy_log::EnergySummary;
use crate::recording::metadata::MetersRead;
use crate::units::{Joules, grouped};

/// The recording that is written and read where none is named.
pub const DEFAULT_OUTPUT: &str = "eprof.data";

/// A finished recording.
#[derive(Debug)]
pub struct Summary {
    /// How it ended.
    pub outcome: Outcome,
    /// Samples in the file.
    pub samples: u64,
    /// Records that the kernel dropped because a ring was full.
    pub lost: u64,
    /// Times the kernel stopped an event because it came too often.
    pub throttled: u64,
    /// Who was to read them, as the recording says.
    pub meters: MetersRead,
    /// What the meters read.
    pub energy: Option<EnergySummary>,
    /// Bytes of the file.
    pub file_size: u64,
    /// The file.
    pub output: PathBuf,
    /// What the recording had to do without.
    pub warnings: Vec<String>,
    /// Why the recording ended before its time.
    pub failure: Option<io::Error>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[ eprof: {} samples, {} lost, ", grouped(self.samples), grouped(self.lost))?;
        match &self.energy {
            // Meters count the machine, and an estimate is made of the CPU time of all that ran.
            Some(EnergySummary { total, method: Method::Measured, sources }) => {
                write!(f, "the whole machine {total} measured by {}", sources.join(" and "))?;
            }
            // What was estimated of no time is not known: a recording that ended early has no second reading of CPU times.
            Some(EnergySummary { total, method: Method::Estimated, .. }) if *total > Joules::ZERO => {
                write!(f, "the whole machine {total} estimated")?;
            }
            _ => f.write_str("energy unknown")?,
        }
        let file = visible(&self.output.to_string_lossy()).into_owned();
        write!(f, ", {file} {}; eprof report", size(self.file_size))?;
        // What the report opens by itself need not be named.
        if self.output != Path::new(DEFAULT_OUTPUT) {
            write!(f, " {}", shell_word(&file))?;
        }
        f.write_str(" ]")
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_of_three_digits() {
        let sizes = [0, 999_999, 1_000_000, 67_800_000, 1_000_000_000].map(size);
        assert_eq!(sizes, ["0.0 kB", "1000.0 kB", "1.0 MB", "67.8 MB", "1.0 GB"]);
    }
}

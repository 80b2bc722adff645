//! Why a text is no profile.

use std::io;

use thiserror::Error;

/// Why a text cannot be read as a profile.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TextError {
    /// None of those that are known.
    #[error(
        "neither a recording (perf.data) nor a profile as text: the output of `perf script`, collapsed stacks, or \
         `simpleperf report-sample`"
    )]
    Unknown,
    /// A line without end.
    #[error("line {line} is longer than {most} bytes")]
    LongLine {
        /// Its number, from 1.
        line: u64,
        /// The most that is read.
        most: usize,
    },
    /// It cannot be read any further.
    #[error(transparent)]
    Read(#[from] io::Error),
}

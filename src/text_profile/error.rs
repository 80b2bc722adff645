//! Why a text is no profile.

use std::io;

use thiserror::Error;

/// Why a text cannot be read as a profile.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TextError {
    /// Nothing is in it.
    #[error(
        "it is empty: what was to write a recording or a profile there has failed, or has not written it yet; `eprof record -o \
         FILE COMMAND` records anew"
    )]
    Empty,
    /// It begins as collapsed stacks, and has a line that is none.
    #[error(
        "it looks like collapsed stacks, but line {line} is none: {text:?}; each is functions with `;` between them, a blank and a \
         number"
    )]
    NoStack {
        /// The line's number, from 1.
        line: u64,
        /// What it begins with.
        text: String,
    },
    /// A text, but none of those that are known.
    #[error(
        "it is text that is neither a recording (perf.data) nor a profile that eprof reads: the output of `perf script`, \
         collapsed stacks, or `simpleperf report-sample`"
    )]
    Unknown,
    /// No text.
    #[error(
        "it is neither a recording (perf.data) nor text; of texts eprof reads the output of `perf script`, collapsed \
         stacks, and `simpleperf report-sample`"
    )]
    Binary,
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

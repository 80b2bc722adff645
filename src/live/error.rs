//! What can go wrong.

use std::io;

use perf_data::encode::RecordTooLong;

use crate::recording::RecordingError;

/// What keeps a recording from being read while it is made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The file in memory cannot be read or written.
    #[error("the recording in memory cannot be used: {0}")]
    Read(#[source] io::Error),
    /// It is no recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Without eprof's own records there are no joules.
    #[error("the recording is not eprof's")]
    NotEprofs,
    /// A record that is made does not fit.
    #[error("a window cannot be written: {0}")]
    TooLong(#[source] RecordTooLong),
}

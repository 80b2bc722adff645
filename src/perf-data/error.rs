//! What can be wrong with a recording.

use std::io;
use std::path::PathBuf;

use crate::input_name::input_name;

/// What did not fit into its record.
pub(crate) type Missing = &'static str;

/// Why a recording, or the rest of it, cannot be read. Offsets are bytes from the file's start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read at all.
    #[error("cannot read {}", input_name(path))]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No file, but a folder of some.
    #[error("{} is a folder: name the file in it, which is called `data` where perf made the folder", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// Of a folder that `perf record --threads` wrote all files are missing but for the first.
    #[error(
        "{} is one file of a folder that `perf record --threads` wrote, and the records are in others (data.0 and so on), which \
         are not beside it: copy all of the folder, or record without --threads to get one file",
        input_name(path)
    )]
    FilesMissing {
        /// The file that is there.
        path: PathBuf,
    },
    /// Nothing is in it.
    #[error(
        "{} is empty: what was to write a recording there has failed, or has not written it yet",
        input_name(path)
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a recording.
    #[error("{} is no recording: it does not begin with PERFILE2", input_name(path))]
    NotPerfData {
        /// The file.
        path: PathBuf,
    },
    /// A recording of 2009.
    #[error("{} is of version 1 of perf.data, which perf stopped writing in 2010", input_name(path))]
    Version1 {
        /// The file.
        path: PathBuf,
    },
    /// The header cannot be right.
    #[error("the recording's header is damaged: {what} (at byte {offset})")]
    Header {
        /// Where.
        offset: u64,
        /// What.
        what: &'static str,
    },
    /// There is no attribute, so that nothing can be decoded.
    #[error("the recording has no event attributes")]
    NoEvents,
    /// Samples of different layout, and nothing to tell them apart.
    #[error(
        "the recording's events have samples of different fields but no id at a common place, \
         so that its records cannot be told apart"
    )]
    MixedLayouts,
    /// The file ends in the middle of its header.
    #[error("the recording is cut off within its header: of {needed} bytes {present} are there")]
    HeaderCutOff {
        /// Bytes that the header has.
        needed: u64,
        /// Bytes of the file.
        present: u64,
    },
    /// The file ends in the middle of a record.
    #[error(
        "the recording is cut off at byte {offset}: the next record has {needed} bytes, {present} are there"
    )]
    Truncated {
        /// Where the incomplete record begins.
        offset: u64,
        /// Bytes that the record has.
        needed: u64,
        /// Bytes that are left.
        present: u64,
    },
    /// A record's length is impossible, and so nothing behind it can be found.
    #[error("the recording is damaged at byte {offset}: a record of {size} bytes cannot be")]
    RecordSize {
        /// Where the record begins.
        offset: u64,
        /// The length that it claims.
        size: u64,
    },
    /// A record lacks something. The records behind it can still be read.
    #[error("the record at byte {offset} (type {kind}) is damaged: too short for its {field}")]
    Malformed {
        /// Where the record begins.
        offset: u64,
        /// Its type.
        kind: u32,
        /// What did not fit.
        field: &'static str,
    },
    /// Compressed records cannot be expanded. Others behind them can, unless they continue the same stream.
    #[error("the compressed records at byte {offset} are damaged")]
    Compressed {
        /// Where the compressed record begins.
        offset: u64,
        /// What the decompressor said.
        source: io::Error,
    },
    /// Compressed records expand to more than any recorder would have compressed at once.
    #[error("the compressed records at byte {offset} expand to more than {limit} bytes")]
    Expansion {
        /// Where the compressed record begins.
        offset: u64,
        /// The limit.
        limit: u64,
    },
}

impl ReadError {
    /// Records behind the offending one can still be read.
    pub fn is_recoverable(&self) -> bool {
        matches!(self, Self::Malformed { .. } | Self::Compressed { .. } | Self::Expansion { .. })
    }

    /// The end of the recording is missing, as when the recorder was killed or a copy is incomplete;
    /// everything before is sound.
    pub fn is_truncation(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::HeaderCutOff { .. })
    }
}

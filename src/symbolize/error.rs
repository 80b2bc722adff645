//! Why a module could not be symbolized, or not fully.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// What kept the symbols of a module from being used. None of these stops a report: the code concerned
/// keeps module and offset as its name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SymbolizeError {
    /// The file of a module cannot be opened.
    #[error("no symbols of {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file of a module is no ELF file, or a damaged one.
    #[error("no symbols of {}: not a readable ELF file ({source})", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The parser's reason.
        source: object::Error,
    },
    /// The file has another build-id than the one that was recorded.
    #[error(
        "no symbols of {}: it changed since the recording (build-id {found}, recorded {recorded}); record again, \
         or put the old file or its debug file where its build-id is searched",
        path.display()
    )]
    BuildIdDiffers {
        /// The file.
        path: PathBuf,
        /// Its build-id now.
        found: String,
        /// The recorded one.
        recorded: String,
    },
    /// The file has no build-id and is younger than the recording.
    #[error("no symbols of {}: the file was replaced or written after the recording; record again", path.display())]
    Younger {
        /// The file.
        path: PathBuf,
    },
    /// The file has no build-id and is another one than was recorded.
    #[error("no symbols of {}: another file than the recorded one has this path now; record again", path.display())]
    InodeDiffers {
        /// The file.
        path: PathBuf,
    },
}

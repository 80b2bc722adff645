//! What can go wrong before anything is sent.

use std::io;
use std::path::{Path, PathBuf};

/// What keeps something from being pushed, other than the receiver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// An address that nothing can be sent to.
    #[error("{0}")]
    Address(String),
    /// A secret that cannot be had.
    #[error("{0}")]
    Secret(String),
    /// A secret would go over the network for everybody to read.
    #[error(
        "the {what} would go to {host} for everybody on the way to read: use {repair}, or allow it with --allow-plain-http"
    )]
    PlainSecret {
        /// What kind of secret it is.
        what: &'static str,
        /// Where it would go.
        host: String,
        /// The address with TLS.
        repair: &'static str,
    },
    /// Certificates of authorities that cannot be read.
    #[error("{path}: {why}", path = .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No authority is trusted here.
    #[error(
        "this machine has no certificates of authorities ({0}): install them (Debian: apt-get install ca-certificates), or name \
         the receiver's authority with --ca FILE"
    )]
    NoAuthorities(String),
    /// A file of tables that is not what it should be.
    #[error("{path}: {why}", path = .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The same, found while it was being sent.
    #[error("{0}")]
    Unreadable(String),
    /// A file or folder that cannot be read or written.
    #[error("cannot {action} {path}: {cause}", path = .path.display())]
    File {
        /// What was to be done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says. It is part of the text, which is shown alone in many places, and hence no source of the error.
        cause: io::Error,
    },
}

impl PushError {
    /// Of a folder that has none of eprof's tables, or is not there.
    pub(super) fn no_tables(folder: &Path) -> Self {
        let why = if !folder.exists() {
            "there is no such folder: is it written right? `eprof export RECORDINGS --format parquet -o DIR` and `eprof agent -o DIR` make such"
        } else if !folder.is_dir() {
            "it is no folder: name that of the tables"
        } else {
            "there are no tables in it: make them by `eprof export RECORDINGS --format parquet -o DIR` or `eprof agent`"
        };
        Self::Table { path: folder.to_owned(), why: why.to_owned() }
    }

    /// For files.
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { action, path, cause }
    }
}

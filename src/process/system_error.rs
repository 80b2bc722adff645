//! The error of a system call that should always work.

use std::io;

/// A system call that should always work did not.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct SystemError {
    /// What was tried.
    pub what: &'static str,
    /// What the kernel said.
    pub cause: io::Error,
}

impl SystemError {
    /// For `map_err`: a failed system call with what it was for.
    pub fn of<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |cause| Self { what, cause: cause.into() }
    }
}

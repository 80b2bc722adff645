//! How a verb ends.

use std::process::ExitCode;

/// What a verb answers: the exit status, or an error that `main` prints as one chain.
pub type Outcome = anyhow::Result<ExitCode>;

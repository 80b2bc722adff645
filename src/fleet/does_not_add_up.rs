//! Why there is no answer that would add up.

use std::path::PathBuf;

/// Sums of one place that should be equal and are not. Windows may have come or gone in between: then they are when they are asked
/// again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DoesNotAddUp(pub String);

/// Files of this folder were there when it was listed, and were gone when they were to be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "windows of {} were removed while they were read, each time that it was tried: ask again, or let the agent keep windows for \
     longer (`eprof agent --keep`, --max-disk)",
    .0.display()
)]
pub struct WindowsRemoved(pub PathBuf);

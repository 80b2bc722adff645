//! Which windows of a folder wait.

use std::path::PathBuf;

use crate::push::PushError;
use crate::push::folder::{Window, windows};
use crate::push::window_set::WindowSet;

/// Which windows of a folder wait for a server. A [`Sender`](super::Sender) gives it to others, who look whenever they want: the
/// sender itself may be waiting for an answer for minutes.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub(super) folder: PathBuf,
    /// What the server has.
    pub(super) acknowledged: WindowSet,
    /// What cannot be read, until it is written anew.
    pub(super) unreadable: WindowSet,
}

impl Waiting {
    /// The windows that wait now; one that is on its way waits until it is acknowledged.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn windows(&self) -> Result<Vec<Window>, PushError> {
        Ok(self.of(windows(&self.folder)?))
    }

    /// Those of all windows of the folder that wait.
    pub(super) fn of(&self, mut all: Vec<Window>) -> Vec<Window> {
        all.retain(|window| {
            !self.acknowledged.has(window) && !self.unreadable.has(window) && window.is_whole(&self.folder)
        });
        all
    }
}

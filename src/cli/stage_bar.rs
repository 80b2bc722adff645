//! Progress of work in stages, on a terminal's standard error.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with a line on what is being done; it is gone when this is dropped.
pub struct StageBar(ProgressBar);

impl StageBar {
    /// A bar, unless it is not wanted or nobody would see it.
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len}, {eta} left  {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// A stage begins; `done` of about `expected` are over.
    pub fn show(&self, done: usize, expected: usize, stage: String) {
        self.0.set_length(expected as u64);
        self.0.set_position(done as u64);
        self.0.set_message(stage);
    }
}

impl Drop for StageBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

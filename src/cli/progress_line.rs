//! A line that shows how far something is, where nobody else writes to the terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line that is shown by now.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Says something on stderr; a line that is shown is taken away meanwhile, and stands below it afterwards.
pub fn beside_line<T>(say: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match shown {
        Some(line) => line.suspend(say),
        None => say(),
    }
}

/// A line on stderr that is drawn anew, or nothing.
pub struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// Nothing is shown if that is not wanted, if stderr is no terminal, and where a program that is started writes to
    /// the same terminal: the line would be drawn into its output.
    pub fn new(quiet: bool, starts_program: bool) -> Self {
        let is_ours = io::stderr().is_terminal() && !(starts_program && io::stdout().is_terminal());
        let target =
            if is_ours && !quiet { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("[ eprof: {wide_msg} ]") {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        }
        Self(bar)
    }

    /// Whether anybody sees it.
    pub fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Draws the line.
    pub fn show(&self, what: impl Display) {
        self.0.set_message(what.to_string());
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

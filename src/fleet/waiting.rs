//! What is being asked, on a terminal, where the answer takes long.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is answered sooner has no line.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line changes.
const INTERVAL: Duration = Duration::from_millis(200);

/// A line that stands while somebody waits, and is gone when this is dropped.
pub struct Waiting {
    ends: Option<Sender<()>>,
    line: Option<JoinHandle<()>>,
}

impl Waiting {
    /// For what is being done, such as "asking energy". Nothing is shown where stderr is no terminal.
    pub fn shown(what: String) -> Self {
        if !io::stderr().is_terminal() {
            return Self { ends: None, line: None };
        }
        let (ends, ended) = mpsc::channel();
        let draw = move || {
            let (began, mut pause) = (Instant::now(), PATIENCE);
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("[ eprof fleet: {wide_msg} ]") {
                line.set_style(style);
            }
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                line.set_message(format!("{what} ({} s)", began.elapsed().as_secs()));
                pause = INTERVAL;
            }
            line.finish_and_clear();
        };
        // Without the line nothing is missing from the answer.
        let line = thread::Builder::new().name("waiting".to_owned()).spawn(draw).ok();
        Self { ends: Some(ends), line }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.ends.take());
        if let Some(line) = self.line.take() {
            // It only draws; and what it drew is to be gone before the answer comes.
            let _ = line.join();
        }
    }
}

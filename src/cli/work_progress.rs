//! What is being done, on a terminal, where that takes long.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use eprof::recording::Recording;

use super::progress_line::ProgressLine;

/// What is done faster has no line. Who has waited so long once sees what follows soon: many short works are a long one.
const PATIENCE: Duration = Duration::from_secs(1);
/// When the first work began.
static BEGAN: OnceLock<Instant> = OnceLock::new();
/// How often the line changes.
const INTERVAL: Duration = Duration::from_millis(200);

/// Shows what is being done until this is dropped. Nothing is to be written to the terminal meanwhile.
pub struct WorkProgress {
    /// Dropped to end the thread.
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WorkProgress {
    /// How far the reading of a recording is.
    pub fn reading(recording: &Arc<Recording>) -> Self {
        let recording = Arc::clone(recording);
        Self::begin(move |_| {
            Read { bytes: recording.bytes_read(), of: recording.perf_data().size() }.to_string()
        })
    }

    /// How many of so many recordings were read.
    pub fn reading_several(count: usize, done: &Arc<AtomicUsize>) -> Self {
        let done = Arc::clone(done);
        Self::begin(move |_| format!("reading, {} of {count} recordings", done.load(Ordering::Relaxed)))
    }

    /// Work of which nobody knows how much there is: what it is, and for how long it has gone on.
    pub fn of(what: impl Into<String>) -> Self {
        let what = what.into();
        Self::begin(move |time| format!("{what} ({} s)", time.as_secs()))
    }

    /// Nothing is shown before the program has taken a second, and where stderr is no terminal.
    fn begin(text: impl Fn(Duration) -> String + Send + 'static) -> Self {
        let line = ProgressLine::new(false, false);
        if !line.is_shown() {
            return Self { ends: None, thread: None };
        }
        let (ends, ended) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let began = Instant::now();
            let mut pause = PATIENCE.saturating_sub(BEGAN.get_or_init(|| began).elapsed()).max(INTERVAL);
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                line.show(text(began.elapsed()));
                pause = INTERVAL;
            }
            line.clear();
        });
        // Without it nothing is missing but the line.
        Self { ends: Some(ends), thread: thread.ok() }
    }
}

impl Drop for WorkProgress {
    /// The line is gone when this returns.
    fn drop(&mut self) {
        self.ends = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// So much of a recording.
struct Read {
    bytes: u64,
    of: u64,
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let (read, of) = (megabytes(self.bytes.min(self.of)), megabytes(self.of));
        let percent = if self.of > 0 { 100.0 * read / of } else { 100.0 };
        write!(f, "reading, {read:.1} of {of:.1} MB ({percent:.0} %)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_a_share_of_the_file() {
        assert_eq!(
            Read { bytes: 12_340_000, of: 100_000_000 }.to_string(),
            "reading, 12.3 of 100.0 MB (12 %)"
        );
        assert_eq!(Read { bytes: 7, of: 0 }.to_string(), "reading, 0.0 of 0.0 MB (100 %)");
    }
}

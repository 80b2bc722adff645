//! Progress with the time left, on stderr. The tuned program's output goes to a file, so that nothing
//! is drawn over it.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use eprof::measure::tuning::Watcher;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on a terminal, a line per run elsewhere, nothing if quiet.
pub struct Progress {
    bar: ProgressBar,
    lines: bool,
    done: u64,
    left: u64,
    setting: String,
    /// Total time of the runs really made, and their number.
    spent: Duration,
    made: u32,
}

impl Progress {
    pub fn new(quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let target =
            if quiet || !terminal { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} run {pos} of {len}  {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            lines: !quiet && !terminal,
            done: 0,
            left: 0,
            setting: String::new(),
            spent: Duration::ZERO,
            made: 0,
        }
    }

    fn time_left(&self) -> String {
        match self.spent.checked_div(self.made) {
            Some(mean) => format!("about {} left", in_words(mean * self.left as u32)),
            None => "time left not known yet".into(),
        }
    }
}

impl Watcher for Progress {
    fn expect(&mut self, runs: usize) {
        self.left = runs as u64;
        self.bar.set_length(self.done + self.left);
    }

    fn begins(&mut self, setting: &str) {
        self.setting = setting.to_owned();
        self.bar.set_message(format!("{setting}, {}", self.time_left()));
        self.bar.tick();
    }

    fn ended(&mut self, took: Option<Duration>) {
        self.done += 1;
        self.left = self.left.saturating_sub(1);
        if let Some(took) = took {
            self.spent += took;
            self.made += 1;
            if self.lines {
                // Progress is a courtesy: without stderr, tuning goes on.
                let _ = writeln!(
                    io::stderr(),
                    "run {} of {}: {} took {:.2} s, {}",
                    self.done,
                    self.done + self.left,
                    self.setting,
                    took.as_secs_f64(),
                    self.time_left()
                );
            }
        }
        self.bar.set_position(self.done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5999 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

//! A process that restores the machine's settings when eprof can no longer do so itself.
//!
//! eprof writes every step of the way back into a pipe before it changes a setting. The guard reads
//! the other end: when the pipe closes without a word of farewell, eprof was killed, and the guard
//! undoes all steps. It is a process group of its own and ignores the signals that end a terminal's
//! programs, so that what kills eprof spares it. (What kills a whole control group kills both.)

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{SigHandler, Signal, signal};

use super::undo::{NotRestored, Undo, restore};
use crate::process::environment;

/// The last line of an eprof that has restored everything itself.
const FAREWELL: &str = "done";

/// eprof's end of the guard.
#[derive(Debug)]
pub struct Guard {
    /// `None` stands for no guard: tests, and settings that a killed process takes with it.
    process: Option<Child>,
}

impl Guard {
    /// Starts `program` with `arguments`; it must call [`watch`] on its standard input.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        let mut process = Command::new(program);
        // What --teardown runs is the user's.
        environment::restore(&mut process);
        let process =
            process.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn()?;
        Ok(Self { process: Some(process) })
    }

    /// No guard.
    pub fn none() -> Self {
        Self { process: None }
    }

    /// Tells the guard a step of the way back.
    ///
    /// # Errors
    /// If the guard is gone.
    pub fn remember(&mut self, undo: &Undo) -> io::Result<()> {
        let Some(pipe) = self.pipe() else { return Ok(()) };
        let mut line = serde_json::to_vec(undo)?;
        line.push(b'\n');
        pipe.write_all(&line)
    }

    /// Tells the guard that all is restored.
    pub fn dismiss(&mut self) {
        if let Some(pipe) = self.pipe() {
            // A guard that is gone already will not restore anything either.
            let _ = writeln!(pipe, "{FAREWELL}");
        }
    }

    fn pipe(&mut self) -> Option<&mut std::process::ChildStdin> {
        self.process.as_mut()?.stdin.as_mut()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

/// Makes this process survive what ends the programs of a terminal.
pub fn ignore_signals() {
    for spared in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGPIPE] {
        // SAFETY: to ignore a signal installs no handler.
        let _ = unsafe { signal(spared, SigHandler::SigIgn) };
    }
}

/// The guard's own work: reads steps until the input ends, and undoes those that were not restored.
/// Returns what could not be undone, with the number of steps it had to undo.
pub fn watch(input: impl Read) -> (usize, Vec<NotRestored>) {
    let mut steps: Vec<Undo> = Vec::new();
    // A line that was cut off while eprof was killed belongs to a change that was not made yet.
    for line in BufReader::new(input).lines() {
        let Ok(line) = line else { break };
        if line == FAREWELL {
            steps.clear();
        } else if let Ok(step) = serde_json::from_str(&line) {
            steps.push(step);
        }
    }
    (steps.len(), restore(&steps))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn setting() -> (tempfile::TempDir, std::path::PathBuf, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("max");
        fs::write(&path, "2000000").expect("a file");
        let line = serde_json::to_string(&Undo::File { path: path.clone(), content: "3000000".into() })
            .expect("json");
        (folder, path, line)
    }

    #[test]
    fn restores_when_the_pipe_breaks_off() {
        let (_folder, path, line) = setting();
        let cut_off = &line[..line.len() - 5];
        let (steps, failures) = watch(format!("{line}\n{cut_off}").as_bytes());
        assert_eq!((steps, failures), (1, vec![]));
        assert_eq!(fs::read_to_string(&path).expect("readable"), "3000000");
    }

    #[test]
    fn does_nothing_after_a_farewell() {
        let (_folder, path, line) = setting();
        assert_eq!(watch(format!("{line}\n{FAREWELL}\n").as_bytes()), (0, vec![]));
        assert_eq!(fs::read_to_string(&path).expect("readable"), "2000000");
    }

    #[test]
    fn changes_after_a_farewell_count_again() {
        let (_folder, path, line) = setting();
        assert_eq!(watch(format!("{line}\n{FAREWELL}\n{line}\n").as_bytes()).0, 1);
        assert_eq!(fs::read_to_string(&path).expect("readable"), "3000000");
    }
}

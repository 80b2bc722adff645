//! Changes of the machine's settings, each with the way back.
//!
//! Every file is read before it is first written, and its content told to the guard process before
//! the write, so that there is no moment at which a changed setting has no way back. Settings are
//! restored when the owner says so, when it is dropped (also by a panic), and by the guard when the
//! owner is gone.

use std::fs;
use std::io;
use std::path::Path;

use super::error::TuningError;
use super::guard::Guard;
use super::undo::{NotRestored, Undo, read_content, restore};

/// What was changed so far.
#[derive(Debug)]
pub struct Changes {
    undo: Vec<Undo>,
    guard: Guard,
}

impl Changes {
    /// No change yet. `guard` will undo what this process leaves undone.
    pub fn guarded_by(guard: Guard) -> Self {
        Self { undo: Vec::new(), guard }
    }

    /// Number of files changed, or commands to run at the end.
    pub fn len(&self) -> usize {
        self.undo.len()
    }

    /// Whether there is nothing to restore.
    pub fn is_empty(&self) -> bool {
        self.undo.is_empty()
    }

    /// Writes a setting, unless it has this value already.
    ///
    /// # Errors
    /// If the file cannot be read or written, or the guard is gone.
    pub fn write(&mut self, path: &Path, content: &str) -> Result<(), TuningError> {
        let now = read_content(path).map_err(TuningError::setting("read", path))?;
        if now == content {
            return Ok(());
        }
        let known =
            self.undo.iter().any(|undo| matches!(undo, Undo::File { path: other, .. } if other == path));
        if !known {
            self.add(Undo::File { path: path.to_owned(), content: now })?;
        }
        fs::write(path, content).map_err(TuningError::setting("write", path))
    }

    /// Runs a command at the end, however the end comes.
    ///
    /// # Errors
    /// If the guard is gone.
    pub fn add_command(&mut self, command: &str) -> Result<(), TuningError> {
        let undo = Undo::Command(command.to_owned());
        if self.undo.contains(&undo) { Ok(()) } else { self.add(undo) }
    }

    fn add(&mut self, undo: Undo) -> Result<(), TuningError> {
        self.guard.remember(&undo).map_err(TuningError::Guard)?;
        self.undo.push(undo);
        Ok(())
    }

    /// Restores everything and reads it back. The guard is told that nothing is left to do only if
    /// all is as it was.
    pub fn restore(&mut self) -> Vec<NotRestored> {
        if self.undo.is_empty() {
            return Vec::new();
        }
        let failures = restore(&self.undo);
        self.undo.clear();
        if failures.is_empty() {
            self.guard.dismiss();
        }
        failures
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        for NotRestored(what) in self.restore() {
            // Nobody is left to return this to; it must not go unsaid.
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("eprof: warning: {what}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in [("min", "800000\n"), ("max", "3000000\n"), ("governor", "powersave\n")] {
            fs::write(folder.path().join(name), content).expect("a file");
        }
        folder
    }

    fn content(folder: &tempfile::TempDir, name: &str) -> String {
        read_content(&folder.path().join(name)).expect("readable")
    }

    #[test]
    fn what_was_changed_twice_goes_back_to_the_first() {
        let folder = folder();
        let mut changes = Changes::guarded_by(Guard::none());
        changes.write(&folder.path().join("min"), "2000000").expect("writable");
        changes.write(&folder.path().join("min"), "1000000").expect("writable");
        changes.write(&folder.path().join("max"), "3000000").expect("no change");
        assert_eq!(changes.len(), 1);
        assert_eq!(content(&folder, "min"), "1000000");
        assert_eq!(changes.restore(), []);
        assert_eq!(content(&folder, "min"), "800000");
    }

    #[test]
    fn a_panic_restores() {
        let folder = folder();
        let path = folder.path().join("governor");
        let result = std::panic::catch_unwind(|| {
            let mut changes = Changes::guarded_by(Guard::none());
            changes.write(&path, "userspace").expect("writable");
            assert_eq!(read_content(&path).expect("readable"), "powersave", "this is to fail");
        });
        assert!(result.is_err());
        assert_eq!(content(&folder, "governor"), "powersave");
    }

    #[test]
    fn commands_run_at_the_end_once() {
        let folder = folder();
        let mut changes = Changes::guarded_by(Guard::none());
        let command = format!("echo again >> {}", folder.path().join("log").display());
        changes.add_command(&command).expect("added");
        changes.add_command(&command).expect("known");
        changes.add_command("exit 3").expect("added");
        let failures = changes.restore();
        assert_eq!(content(&folder, "log"), "again");
        assert_eq!(failures.len(), 1);
        assert!(failures[0].0.contains("exit 3"), "{failures:?}");
    }

    #[test]
    fn a_missing_setting_is_no_setting() {
        let folder = folder();
        let mut changes = Changes::guarded_by(Guard::none());
        let error = changes.write(&folder.path().join("turbo"), "1").expect_err("missing");
        assert!(error.to_string().starts_with("cannot read "), "{error}");
        assert!(changes.is_empty());
    }
}

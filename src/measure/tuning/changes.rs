//! Changes of the machine's settings, each with the way back.
//!
//! Every file is read before it is first written, and its content told to the guard process before
//! the write, so that there is no moment at which a changed setting has no way back. Settings are
//! restored when the owner says so, when it is dropped (also by a panic), and by the guard when the
//! owner is gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::error::TuningError;
use super::guard::Guard;

/// One step of the way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Undo {
    /// A file had this content.
    File {
        /// The file.
        path: PathBuf,
        /// Its content without white space around it.
        content: String,
    },
    /// A command for the shell.
    Command(String),
}

/// A step that could not be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRestored(pub String);

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

/// Undoes all steps, the last first, and checks files by reading them back.
pub fn restore(undo: &[Undo]) -> Vec<NotRestored> {
    let mut failures = Vec::new();
    // A kernel may refuse a minimum above the present maximum: a second pass finds the maximum restored.
    for last_pass in [false, true] {
        for step in undo.iter().rev() {
            let Undo::File { path, content } = step else { continue };
            if read_content(path).is_ok_and(|now| now == *content) {
                continue;
            }
            let written = fs::write(path, content);
            if !last_pass {
                continue;
            }
            match (written, read_content(path)) {
                (Err(error), _) => {
                    failures.push(format!("{} could not be set back to {content}: {error}", path.display()))
                }
                (Ok(()), Ok(now)) if now != *content => {
                    failures.push(format!("{} was set back to {content}, but reads {now}", path.display()));
                }
                (Ok(()), Err(error)) => {
                    failures.push(format!("{} cannot be read back: {error}", path.display()))
                }
                (Ok(()), Ok(_)) => {}
            }
        }
    }
    for step in undo.iter().rev() {
        let Undo::Command(command) = step else { continue };
        let status = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => failures.push(format!("`{command}` failed: {status}")),
            Err(error) => failures.push(format!("`{command}` cannot be run: {error}")),
        }
    }
    failures.into_iter().map(NotRestored).collect()
}

/// The content of a setting without white space around it; at most a page is read.
pub fn read_content(path: &Path) -> io::Result<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(4096).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
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

    /// A device that takes every byte and keeps none stands for a driver that ignores writes.
    #[test]
    fn what_does_not_read_back_is_said() {
        let folder = folder();
        let ignored = folder.path().join("ignored");
        std::os::unix::fs::symlink("/dev/null", &ignored).expect("a link");
        let full = folder.path().join("full");
        std::os::unix::fs::symlink("/dev/full", &full).expect("a link");
        let undo = |path: &Path| Undo::File { path: path.to_owned(), content: "1".into() };
        let said: Vec<String> =
            restore(&[undo(&ignored), undo(&folder.path().join("missing/file")), undo(&full)])
                .into_iter()
                .map(|NotRestored(what)| what)
                .collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[2].contains("but reads"), "{said:?}");
        assert!(said[1].contains("No such file"), "{said:?}");
        assert!(said[0].contains("could not be set back"), "{said:?}");
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

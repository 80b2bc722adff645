//! The way back from a changed setting, which the process that made the change and its guard both can go.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::process::environment;

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
        let mut shell = Command::new("sh");
        environment::restore(&mut shell);
        match shell.arg("-c").arg(command).stdin(Stdio::null()).status() {
            Ok(status) if status.success() => {}
            Ok(status) => failures.push(format!("`{command}` failed: {status}")),
            Err(error) => failures.push(format!("`{command}` cannot be run: {error}")),
        }
    }
    failures.into_iter().map(NotRestored).collect()
}

/// The content of a setting without white space around it; at most a page is read.
pub fn read_content(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(4096).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes every byte and keeps none stands for a driver that ignores writes.
    #[test]
    fn what_does_not_read_back_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
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
}

//! Debug files from the servers that distributions run, by the program that elfutils brings: it knows the protocol, the
//! user's servers (`DEBUGINFOD_URLS`), and the cache that all tools of a user share.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::elf::hex;
use super::error::SymbolizeError;

/// Fetches files by build-id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Debuginfod {
    /// elfutils' `debuginfod-find`, looked for in `PATH` if it is a name alone.
    pub program: PathBuf,
}

impl Default for Debuginfod {
    fn default() -> Self {
        Self { program: PathBuf::from("debuginfod-find") }
    }
}

/// What servers have of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The file that ran.
    Executable,
    /// What was stripped from it.
    DebugInfo,
}

impl Debuginfod {
    /// Where the file of a module with this build-id is now, from the user's cache or a server. It is for the caller to look whether it
    /// is that file.
    ///
    /// # Errors
    /// If there is no such program, or no server has the file.
    pub(crate) fn fetch(&self, wanted: Wanted, module: &Path, id: &[u8]) -> Result<PathBuf, SymbolizeError> {
        let kind = match wanted {
            Wanted::Executable => "executable",
            Wanted::DebugInfo => "debuginfo",
        };
        let nothing = |why: String| SymbolizeError::NothingFetched { why };
        let mut command = Command::new(&self.program);
        command.args([kind, &hex(id)]).stdin(Stdio::null());
        let output = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => nothing(format!(
                "{} is not installed; it comes with elfutils (Debian and Ubuntu: sudo apt install debuginfod)",
                self.program.display()
            )),
            _ => nothing(format!("{} cannot be run: {error}", self.program.display())),
        })?;
        if !output.status.success() {
            if std::env::var_os("DEBUGINFOD_URLS").is_none_or(|urls| urls.is_empty()) {
                return Err(nothing("DEBUGINFOD_URLS names no server".to_owned()));
            }
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.trim().lines().last().unwrap_or("it did not say why");
            let (path, why) = (module.to_owned(), last.to_owned());
            return Err(SymbolizeError::NotFetched { path, build_id: hex(id), why });
        }
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    }
}

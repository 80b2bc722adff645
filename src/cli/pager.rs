//! The pager between a verb's text and the terminal, as git and perf have one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{SigHandler, Signal, signal};

use super::letters::Letters;
use super::output;

/// What git gives `less`: it ends at once if the text fits (F), shows colors (R) and leaves the text there (X).
const LESS: &str = "FRX";

/// Whether long text on a terminal goes through a pager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// Where standard output is a terminal.
    Auto,
    /// The user wants none.
    Never,
}

impl Paging {
    /// Writes to a file as [`output::write_to`] does, and to standard output through a pager if it is a terminal.
    pub fn write_to<E>(
        self,
        path: Option<&Path>,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> anyhow::Result<()>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        match self.begin().filter(|_| output::is_stdout(path)) {
            Some(pager) => through(pager, Letters::All, write),
            None => output::write_to(path, write),
        }
    }

    /// The same of text for people, in the letters that the terminal has.
    pub fn write_text_to<E>(
        self,
        path: Option<&Path>,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> anyhow::Result<()>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        match self.begin().filter(|_| output::is_stdout(path)) {
            Some(pager) => through(pager, Letters::of(&io::stdout()), write),
            None => output::write_text_to(path, write),
        }
    }

    /// Starts the pager, if there is a terminal and a pager for it.
    fn begin(self) -> Option<Child> {
        if self == Self::Never || output::is_dumb_terminal() || !io::stdout().is_terminal() {
            return None;
        }
        let line = pager_of([env::var_os("EPROF_PAGER"), env::var_os("PAGER")])?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&line).stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        // The pager folds and cuts for the terminal that eprof has laid the text out for.
        if let Some(width) = output::terminal_width() {
            command.env("COLUMNS", width.to_string());
        }
        let pager = command.spawn().ok()?;
        // Ctrl-C is the pager's; should eprof die by it, the shell would take the terminal from under the pager.
        for of_terminal in [Signal::SIGINT, Signal::SIGQUIT] {
            // SAFETY: to ignore a signal installs no handler.
            let _ = unsafe { signal(of_terminal, SigHandler::SigIgn) };
        }
        Some(pager)
    }
}

/// Writes into a pager, and waits until its user has read all.
fn through<E>(
    mut pager: Child,
    letters: Letters,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let written = match pager.stdin.take() {
        Some(stdin) => {
            let mut out = letters.writer(BufWriter::with_capacity(1 << 16, stdin));
            // The pager has all of it when its input is closed.
            write(&mut out).map_err(anyhow::Error::from).and_then(|()| Ok(out.flush()?))
        }
        None => Ok(()),
    };
    // Until the user has read it, even if the text ends with an error.
    pager.wait()?;
    written
}

/// The pager's command line: the first that is set, or else `less` if it is installed. `cat` and nothing are no pager.
fn pager_of(set: [Option<OsString>; 2]) -> Option<OsString> {
    let chosen = set.into_iter().flatten().next();
    let line = chosen.or_else(|| is_installed("less").then(|| "less".into()))?;
    let is_none = line.is_empty() || line == *"cat";
    (!is_none).then_some(line)
}

fn is_installed(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths::<OsStr>(&folders).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pager_that_is_set_counts() {
        let pager = |own: Option<&str>, usual: Option<&str>| {
            pager_of([own.map(OsString::from), usual.map(OsString::from)])
        };
        assert_eq!(pager(Some("most"), Some("more")), Some("most".into()));
        assert_eq!(pager(None, Some("more -s")), Some("more -s".into()));
        assert_eq!(pager(Some(""), Some("more")), None);
        assert_eq!(pager(None, Some("cat")), None);
    }
}

//! Where verbs write to: a file or standard output, with color or not.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use eprof::label::{Label, visible_lines};
use eprof::report::said_once;

use super::letters::{self, Letters};
use super::new_file::{NewFile, Readers};
use super::progress_line;
use super::work_progress::WorkProgress;

/// When to use color.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether standard output gets color.
    pub fn on_stdout(self) -> bool {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => io::stdout().is_terminal() && !unwanted,
        }
    }
}

/// Whether the terminal says of itself that it can do nothing, as one that is not named.
pub fn is_dumb_terminal() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Columns of the terminal that standard output is, if it is one.
pub fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width))
}

/// Columns of a table if the user does not say: `COLUMNS`, or the terminal's, or as many as the table takes.
pub fn table_width(to_stdout: bool) -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let terminal = || terminal_width().filter(|_| to_stdout);
    columns.filter(|&columns| columns > 0).or_else(terminal).unwrap_or(usize::MAX)
}

/// Says a line on stderr, in which nothing but text reaches the terminal. That stderr is closed is no reason to
/// fail: the program's exit status matters more, and there is nowhere left to say so.
pub fn say(line: impl Display) {
    let line = on_stderr(&line.to_string());
    let _ = progress_line::beside_line(|| writeln!(io::stderr(), "eprof: {line}"));
}

/// Text as standard error shows it: nothing but text, in the letters that it has.
pub fn on_stderr(text: &str) -> String {
    Letters::of(&io::stderr()).of_text(&visible_lines(text)).into_owned()
}

/// Writes a whole file.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    write_to(Some(path), |out| out.write_all(content.as_ref()))
}

/// Whether what is written there goes to standard output: there is no path, or it is `-`.
pub fn is_stdout(path: Option<&Path>) -> bool {
    path.is_none_or(|path| path == Path::new("-"))
}

/// Refuses to write a page onto a terminal.
///
/// # Errors
/// If it would go there.
pub fn check_page(path: Option<&Path>) -> anyhow::Result<()> {
    anyhow::ensure!(
        !is_stdout(path) || !io::stdout().is_terminal(),
        "a page is read in a browser, and standard output is a terminal: name a file with -o, such as -o energy.html, or pipe it on"
    );
    Ok(())
}

/// Writes to a file, or to standard output if there is no path or it is `-`. A file is replaced when all of it is
/// written.
pub fn write_to<E>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match path.filter(|path| *path != Path::new("-")) {
        None => {
            let _progress = stdout_is_file().then(|| WorkProgress::of("writing to standard output"));
            to_stdout(io::stdout().lock(), write)?;
        }
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let mut file = NewFile::create(path, Readers::ByMask).with_context(cannot)?;
            let _progress = WorkProgress::of(format!("writing {}", path.display()));
            write(&mut file).with_context(cannot)?;
            file.keep().with_context(cannot)?;
        }
    }
    Ok(())
}

/// Whether standard output goes into a file: what reads a pipe may have the terminal for itself, as `less` does.
fn stdout_is_file() -> bool {
    let file = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    file.and_then(|file| file.metadata()).is_ok_and(|metadata| metadata.is_file())
}

/// Writes text for people as [`write_to`] does; on standard output in the letters that it has.
pub fn write_text_to<E>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    if is_stdout(path) { to_stdout(letters::stdout(), write) } else { write_to(path, write) }
}

fn to_stdout<E>(out: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let written = write(&mut out).map_err(anyhow::Error::from);
    written.and_then(|()| Ok(out.flush()?)).map_err(|error| {
        let is_of_output = error.chain().any(|cause| cause.is::<io::Error>());
        if is_of_output { error.context("cannot write to standard output") } else { error }
    })
}

/// Says on stderr what the reader of a picture or export must know; such a file has no place for it. What is the same of
/// many files is said once.
pub fn warn(warnings: impl IntoIterator<Item = impl AsRef<str>>) {
    for warning in said_once(warnings) {
        say(format_args!("warning: {}", Label::new(&warning)));
    }
}

//! Where verbs write to: a file or standard output, with color or not.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;

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

/// Columns of the terminal that standard output is, if it is one.
pub fn terminal_width() -> Option<usize> {
    let (terminal_size::Width(width), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width))
}

/// Writes to a file, or to standard output if there is no path or it is `-`.
pub fn write_to<E>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    match path.filter(|path| *path != Path::new("-")) {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            out.flush()?;
        }
        Some(path) => {
            let cannot = || format!("cannot write {}", path.display());
            let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
            write(&mut out).with_context(cannot)?;
            out.flush().with_context(cannot)?;
        }
    }
    Ok(())
}

/// Says on stderr what the reader of a picture or export must know; such a file has no place for it.
pub fn warn(warnings: &[String]) -> io::Result<()> {
    for warning in warnings {
        writeln!(io::stderr(), "eprof: warning: {}", eprof::report::text::Label::new(warning))?;
    }
    Ok(())
}

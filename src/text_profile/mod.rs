//! Profiles as text, of other tools: what `perf script` prints, collapsed stacks, and simpleperf's samples.
//!
//! ```text
//!   kind ──► perf_script, simpleperf, collapsed ──► sample ──► builder: Profile and Symbols
//!                          lines, names
//! ```
//!
//! Such a text has names where a recording has addresses, and no joules: nobody read a meter. Its samples weigh what the
//! text says, and become joules only by an estimate, where the text tells CPU time and the user the watts. What a name
//! is, and what is no frame, is decided as FlameGraph and inferno do, so that the folded stacks are theirs; where eprof
//! tells more than they do (which inlined function lies in which, that the vdso is no kernel code), that is said there.
//!
//! Lines are read one by one; memory holds the distinct call paths.

mod builder;
mod collapsed;
mod error;
mod kind;
mod lines;
mod names;
mod perf_script;
mod sample;
mod simpleperf;
mod text;

use std::io::{BufRead, BufReader, Read};

pub use error::TextError;
pub use text::{TextKind, TextOptions, TextProfile};

use builder::Builder;
use lines::Lines;

/// Reads a text to its end.
///
/// # Errors
/// If it is no profile that is known, or cannot be read.
pub fn read(text: impl Read, options: TextOptions) -> Result<TextProfile, TextError> {
    let mut text = BufReader::with_capacity(kind::BEGINNING, text);
    let beginning = beginning(&mut text)?;
    let kind = kind::of(&beginning).ok_or_else(|| kind::why_none(&beginning))?;
    let mut lines = Lines::new(std::io::Cursor::new(beginning).chain(text));
    let mut builder = Builder::new(kind, options);
    match kind {
        TextKind::PerfScript => perf_script::read(&mut lines, &mut builder)?,
        TextKind::Collapsed => collapsed::read(&mut lines, &mut builder)?,
        TextKind::Simpleperf => simpleperf::read(&mut lines, &mut builder)?,
    }
    Ok(builder.finish())
}

/// As much as tells what a text is.
fn beginning(text: &mut impl BufRead) -> Result<Vec<u8>, TextError> {
    let mut beginning = Vec::new();
    text.take(kind::BEGINNING as u64).read_to_end(&mut beginning)?;
    Ok(beginning)
}

#[cfg(test)]
mod tests;

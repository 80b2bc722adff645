//! `eprof tune`: the settings of a program that spend the least energy for their speed.

mod live;
mod offline;
mod options;
mod result;

use std::io::{self, Write};

use super::Outcome;

pub use options::TuneArgs;

/// Runs the verb.
pub fn run(args: TuneArgs) -> Outcome {
    match &args.offline.runs_csv {
        Some(path) => offline::run(&args, path),
        None => live::run(&args),
    }
}

/// A sentence that the user should know, on stderr.
fn note(text: &str) -> io::Result<()> {
    writeln!(io::stderr(), "eprof: note: {text}")
}

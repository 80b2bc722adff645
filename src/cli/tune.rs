//! `eprof tune`: the settings of a program that spend the least energy for their speed.

mod live;
mod notices;
mod offline;
mod options;
mod progress;
mod result;

use std::io;
use std::process::ExitCode;

use eprof::measure::tuning::guard;
use eprof::measure::tuning::undo::NotRestored;

use super::Outcome;
use notices::warn;

pub use live::GUARD_VERB;
pub use options::TuneArgs;

/// Runs the verb.
pub fn run(args: TuneArgs) -> Outcome {
    match &args.offline.runs_csv {
        Some(path) => offline::run(&args, path),
        None => live::run(&args),
    }
}

/// The process that restores the machine's settings when a tuning was killed.
pub fn run_guard() -> Outcome {
    guard::ignore_signals();
    let (steps, failures) = guard::watch(io::stdin());
    if steps > 0 {
        for NotRestored(what) in &failures {
            warn(what);
        }
        warn(&format!("eprof tune was killed; {} of {steps} settings were restored", steps - failures.len()));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

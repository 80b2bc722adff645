//! `eprof tune`: the settings of a program that spend the least energy for their speed.

mod live;
mod notices;
mod offline;
mod options;
mod progress;
mod result;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use eprof::measure::tuning::guard;
use eprof::measure::tuning::undo::NotRestored;

use super::Outcome;
use super::new_file::keep_inputs_from;
use notices::warn;

pub use live::GUARD_VERB;
pub use options::TuneArgs;

/// Runs the verb.
pub fn run(args: TuneArgs) -> Outcome {
    // The journal is read, too, when a tuning goes on.
    let read = [args.offline.runs_csv.as_deref(), Some(&*args.live.journal)];
    let read: Vec<&Path> = read.into_iter().flatten().collect();
    keep_inputs_from("--svg", args.output.svg.as_deref(), &read)?;
    keep_inputs_from("--save-runs", args.output.save_runs.as_deref(), &read)?;
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

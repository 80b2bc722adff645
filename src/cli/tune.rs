//! `eprof tune`: the settings of a program that spend the least energy for their speed.

mod live;
mod notices;
mod offline;
mod options;
mod progress;
mod result;

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use eprof::label::shell_word;
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
        None => {
            refuse_a_table(&args.command)?;
            live::run(&args)
        }
    }
}

/// Who names a file that nobody may run means a table of runs.
fn refuse_a_table(command: &[OsString]) -> anyhow::Result<()> {
    let [only] = command else { return Ok(()) };
    let path = Path::new(only);
    let is_no_program = path.is_file()
        // Without a folder it may be one of PATH that has the same name.
        && (path.components().count() > 1 || path.extension().is_some_and(|ending| ending == "csv"))
        && path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 == 0);
    if is_no_program {
        let name = path.display().to_string();
        let word = shell_word(&name);
        bail!(
            "`{name}` is no program: if it is a table of runs, `eprof tune --runs-csv {word}`; else `chmod +x {word}`"
        );
    }
    Ok(())
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

//! Ranks on a node where nothing can be recorded: a job of a thousand ranks shall not end for that.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use eprof::identity::Job;
use eprof::process::replace_by;
use eprof::record::{RecordError, RecordOptions, TargetTasks};

use super::super::output::say;
use super::environment::variable;

/// The program to run all the same, if it is one of several ranks and the fault is this node's.
pub(super) fn program<'a>(options: &'a RecordOptions, error: &RecordError) -> Option<&'a [OsString]> {
    let target = &options.target;
    match &target.tasks {
        // As another user it would run with eprof's rights.
        TargetTasks::Command(argv)
            if target.run_as.is_none() && is_of_node(error) && Job::has_ranks(variable) =>
        {
            Some(argv)
        }
        _ => None,
    }
}

/// Whether another node could have recorded it.
fn is_of_node(error: &RecordError) -> bool {
    matches!(
        error,
        RecordError::NotPermitted { .. }
            | RecordError::EventNotSupported { .. }
            | RecordError::TooFrequent { .. }
            | RecordError::TooManyFiles { .. }
            | RecordError::RingMemory(_)
            | RecordError::Meters(_)
            | RecordError::Machine(_)
            | RecordError::System(_)
    )
}

/// Becomes the program. Comes back if it cannot be started, with the exit status that a shell would have.
pub(super) fn run(argv: &[OsString], error: &RecordError) -> ExitCode {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let rank = Job::of_environment(variable)
        .rank
        .map_or_else(|| "this rank".to_owned(), |rank| format!("rank {rank}"));
    say(format_args!("error: {error}\n  {rank} on {} runs without being recorded", host.trim()));
    let cause = replace_by(argv);
    say(format_args!(
        "cannot run {}: {cause}",
        argv.first().map(|name| name.display().to_string()).unwrap_or_default()
    ));
    ExitCode::from(if cause.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

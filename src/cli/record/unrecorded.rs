//! Ranks that cannot be recorded, or not to their end: a job of a thousand ranks shall not end for that.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use eprof::identity::Job;
use eprof::process::replace_by;
use eprof::record::{RecordError, RecordOptions, TargetTasks};

use super::super::output::say;
use super::environment::variable;

/// The program to run all the same, if it is one of several ranks and the fault is not the command line's.
pub(super) fn program<'a>(options: &'a RecordOptions, error: &RecordError) -> Option<&'a [OsString]> {
    let target = &options.target;
    // As another user it would run with eprof's rights.
    let may_run = target.run_as.is_none() && lets_run(error) && Job::has_ranks(variable);
    // Also one that only says how long a whole machine is recorded.
    target.program().filter(|_| may_run)
}

/// The exit status of eprof where the program ended with `status` and its recording is not whole: the program's own, if
/// that is a failure or the program is one of several ranks. Else it is one of eprof's own.
pub(super) fn status(options: &RecordOptions, status: u8) -> ExitCode {
    let is_rank = matches!(options.target.tasks, TargetTasks::Command(_)) && Job::has_ranks(variable);
    if status == 0 && !is_rank { ExitCode::FAILURE } else { ExitCode::from(status) }
}

/// Whether the fault is no word of the command line: another node could have recorded it, or another folder taken the
/// recording. The program has not been started then.
fn lets_run(error: &RecordError) -> bool {
    matches!(
        error,
        RecordError::NotPermitted { .. }
            | RecordError::EventNotSupported { .. }
            | RecordError::TooManyFiles { .. }
            | RecordError::RingMemory(_)
            | RecordError::Meters(_)
            | RecordError::GpuLaunches(_)
            | RecordError::Machine(_)
            | RecordError::Output { .. }
            | RecordError::NotAFile { .. }
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

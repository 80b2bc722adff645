//! From what was asked to be recorded to the tasks that counters are opened for.

use std::collections::BTreeSet;
use std::fs::File;

use nix::unistd::Pid;

use crate::record::counters::Scope;
use crate::record::error::RecordError;
use crate::record::options::TargetOptions;
use crate::record::process_state::ProcessState;
use crate::recording::metadata::Target;

/// The tasks to open counters for.
///
/// # Errors
/// A process, thread or control group that does not exist.
pub fn scope(
    target: &TargetOptions,
    program: Option<Pid>,
    state: &ProcessState,
) -> Result<Scope, RecordError> {
    match target {
        TargetOptions::Command(_) => {
            Ok(Scope::Tasks(program.map(|pid| pid.as_raw() as u32).into_iter().collect()))
        }
        TargetOptions::Processes(processes) => {
            let mut threads = Vec::new();
            for &pid in processes {
                let of_process = state.threads(pid);
                if of_process.is_empty() {
                    return Err(RecordError::NoSuchTask(pid));
                }
                threads.extend(of_process);
            }
            Ok(Scope::Tasks(threads))
        }
        TargetOptions::Threads(threads) => {
            let missing = threads.iter().find(|&&tid| !state.is_alive(tid));
            missing
                .map_or_else(|| Ok(Scope::Tasks(threads.clone())), |&tid| Err(RecordError::NoSuchTask(tid)))
        }
        TargetOptions::ControlGroup(folder) => {
            let opened = File::open(folder);
            let failed = |cause| RecordError::ControlGroup { path: folder.clone(), cause };
            opened.map(Scope::ControlGroup).map_err(failed)
        }
        TargetOptions::System(_) => Ok(Scope::System),
    }
}

/// The tasks whose end ends the recording.
pub fn watched(target: &TargetOptions) -> Vec<u32> {
    match target {
        TargetOptions::Processes(tasks) | TargetOptions::Threads(tasks) => tasks.clone(),
        _ => Vec::new(),
    }
}

/// The running processes that samples can come from.
pub fn processes(target: &TargetOptions, state: &ProcessState) -> Vec<u32> {
    match target {
        TargetOptions::Command(_) => Vec::new(),
        TargetOptions::Processes(processes) => processes.clone(),
        TargetOptions::Threads(threads) => {
            let processes: BTreeSet<u32> = threads.iter().filter_map(|&tid| state.process_of(tid)).collect();
            processes.into_iter().collect()
        }
        TargetOptions::ControlGroup(_) | TargetOptions::System(_) => state.processes(),
    }
}

/// What the recording says of its target.
pub fn describe(target: &TargetOptions, program: Option<Pid>) -> Target {
    match target {
        TargetOptions::Command(argv) => Target::Command {
            argv: argv.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            pid: program.map_or(0, |pid| pid.as_raw() as u32),
        },
        TargetOptions::Processes(processes) => Target::Processes(processes.clone()),
        TargetOptions::Threads(threads) => Target::Threads(threads.clone()),
        TargetOptions::ControlGroup(_) | TargetOptions::System(_) => Target::System,
    }
}

//! From what was asked to be recorded to the tasks that counters are opened for.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::machine::Roots;
use crate::machine::permissions::Permissions;
use crate::machine::pmu::Pmu;
use crate::meter::Discovery;
use crate::record::counters::Scope;
use crate::record::error::RecordError;
use crate::record::gpu::gpu_order::GpuEnvironment;
use crate::record::options::{Neighbours, RecordOptions, TargetOptions};
use crate::record::process_state::ProcessState;
use crate::recording::metadata::Target;

/// The tasks to open counters for.
///
/// # Errors
/// A process, thread or control group that does not exist.
pub fn scope(
    options: &RecordOptions,
    program: Option<Pid>,
    state: &ProcessState,
) -> Result<Scope, RecordError> {
    match &options.target {
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
        TargetOptions::ControlGroup(group) => {
            let failed = |cause| RecordError::ControlGroup { path: group.clone(), cause };
            let folder = control_group_folder(group, &state.control_group_roots());
            File::open(folder).map(Scope::ControlGroup).map_err(failed)
        }
        TargetOptions::System(_) => Ok(Scope::System),
    }
}

/// What the environment of the program, or of the first process, says of its GPUs.
pub fn gpu_environment(options: &RecordOptions, state: &ProcessState) -> GpuEnvironment {
    let pid = match &options.target {
        TargetOptions::Processes(pids) | TargetOptions::Threads(pids) => pids.first().copied(),
        _ => None,
    };
    let variable = |name: &str| match pid {
        Some(pid) => state.environment_variable(pid, name),
        None => std::env::var(name).ok(),
    };
    GpuEnvironment { visible: variable("CUDA_VISIBLE_DEVICES"), order: variable("CUDA_DEVICE_ORDER") }
}

/// Whether all CPUs are to be sampled, so that the target's share of the energy is known by event.
pub fn with_neighbours(options: &RecordOptions, roots: &Roots, energy: &Discovery) -> bool {
    match options.neighbours {
        Neighbours::Sample => true,
        Neighbours::Leave => false,
        // Without a meter or events of the hardware the joules of others are a matter of CPU time anyway.
        Neighbours::Auto => {
            matches!(options.target, TargetOptions::Command(_))
                && options.events.is_empty()
                && energy.measures_cpus()
                && !Pmu::cores(roots).is_empty()
                && Permissions::read(roots).cpu_wide_events()
        }
    }
}

/// The folder of a control group that is given as such or by its path in the hierarchy, in one of the
/// file systems that show groups for perf events.
fn control_group_folder(group: &Path, roots: &[PathBuf]) -> PathBuf {
    let in_hierarchy = group.strip_prefix("/").unwrap_or(group);
    let candidates = roots.iter().map(|root| root.join(in_hierarchy));
    candidates.into_iter().find(|folder| folder.is_dir()).unwrap_or_else(|| group.to_owned())
}

/// The tasks whose end ends the recording.
pub fn watched(target: &TargetOptions) -> Vec<u32> {
    match target {
        TargetOptions::Processes(tasks) | TargetOptions::Threads(tasks) => tasks.clone(),
        _ => Vec::new(),
    }
}

/// The running processes whose samples may be shown.
pub fn processes(options: &RecordOptions, state: &ProcessState) -> Vec<u32> {
    match &options.target {
        _ if options.neighbours == Neighbours::Sample => state.processes(),
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

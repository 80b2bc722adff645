//! From what was asked to be recorded to the tasks that counters are opened for.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::machine::Roots;
use crate::machine::permissions::{Capability, Permissions};
use crate::machine::pmu::Pmu;
use crate::machine::repair;
use crate::meter::Discovery;
use crate::record::counters::Scope;
use crate::record::error::RecordError;
use crate::record::gpu::gpu_order::GpuEnvironment;
use crate::record::options::{OtherProcesses, SamplingOptions, TargetOptions, TargetTasks};
use crate::record::process_state::ProcessState;
use crate::recording::metadata::Target;

/// The tasks to open counters for.
///
/// # Errors
/// A process, thread or control group that does not exist.
pub fn scope(tasks: &TargetTasks, program: Option<Pid>, state: &ProcessState) -> Result<Scope, RecordError> {
    match tasks {
        TargetTasks::Command(_) => {
            Ok(Scope::Tasks(program.map(|pid| pid.as_raw() as u32).into_iter().collect()))
        }
        TargetTasks::Processes(processes) => {
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
        TargetTasks::Threads(threads) => {
            let missing = threads.iter().find(|&&tid| !state.is_alive(tid));
            missing
                .map_or_else(|| Ok(Scope::Tasks(threads.clone())), |&tid| Err(RecordError::NoSuchTask(tid)))
        }
        TargetTasks::ControlGroup(group) => {
            let roots = state.control_group_roots();
            let folder = control_group_folder(group, &roots);
            let opened = File::open(&folder);
            if opened.is_ok() && !is_below(&folder, &roots) {
                return Err(RecordError::OtherHierarchy { path: group.clone(), roots });
            }
            opened.map(Scope::ControlGroup).map_err(|cause| RecordError::ControlGroup {
                path: group.clone(),
                cause,
                roots,
            })
        }
        TargetTasks::System(_) => Ok(Scope::System),
    }
}

/// What the environment of the program, or of the first process, says of its GPUs.
pub fn gpu_environment(tasks: &TargetTasks, state: &ProcessState) -> GpuEnvironment {
    let pid = match tasks {
        TargetTasks::Processes(pids) | TargetTasks::Threads(pids) => pids.first().copied(),
        _ => None,
    };
    let variable = |name: &str| match pid {
        Some(pid) => state.environment_variable(pid, name),
        None => std::env::var(name).ok(),
    };
    GpuEnvironment { visible: variable("CUDA_VISIBLE_DEVICES"), order: variable("CUDA_DEVICE_ORDER") }
}

/// Whether all CPUs are to be sampled, so that the target's share of the energy is known by event.
pub fn with_others(
    target: &TargetOptions,
    sampling: &SamplingOptions,
    roots: &Roots,
    energy: &Discovery,
) -> bool {
    match target.others {
        OtherProcesses::Always => true,
        OtherProcesses::Never => false,
        // Without a meter or events of the hardware the joules of others are a matter of CPU time anyway.
        OtherProcesses::Automatic => {
            matches!(target.tasks, TargetTasks::Command(_))
                && sampling.events.is_empty()
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

/// Whether a folder lies in one of these file systems, if any is known.
fn is_below(folder: &Path, roots: &[PathBuf]) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = whole(folder);
    roots.is_empty() || roots.iter().any(|root| folder.starts_with(whole(root)))
}

/// The tasks whose end ends the recording.
pub fn watched(tasks: &TargetTasks) -> Vec<u32> {
    match tasks {
        TargetTasks::Processes(numbers) | TargetTasks::Threads(numbers) => numbers.clone(),
        _ => Vec::new(),
    }
}

/// The state of the running processes whose samples may be shown, in records of the event `id`.
///
/// # Errors
/// A path that is too long for a record.
pub fn describe_running(target: &TargetOptions, roots: &Roots, id: u64) -> io::Result<Vec<u8>> {
    let state = ProcessState::new(roots);
    let mut records = Vec::new();
    for pid in processes(target, &state) {
        state.describe(pid, id, &mut records).map_err(io::Error::other)?;
    }
    Ok(records)
}

/// What is not known of processes that run already and may be sampled.
pub fn hidden_code(target: &TargetOptions, roots: &Roots) -> Option<String> {
    // What is hidden from that right, nothing shows.
    if Permissions::read(roots).has(Capability::SysPtrace) {
        return None;
    }
    let state = ProcessState::new(roots);
    let all = processes(target, &state);
    let hidden = all.iter().filter(|&&pid| state.hides_code(pid)).count();
    (hidden > 0).then(|| {
        format!(
            "{hidden} of {} processes that run already are other users', whose code the kernel hides from this one \
             (/proc/PID/maps): their samples are [unknown]; with CAP_SYS_PTRACE they have names: {}",
            all.len(),
            repair::other_users_code().one_line()
        )
    })
}

fn processes(target: &TargetOptions, state: &ProcessState) -> Vec<u32> {
    match &target.tasks {
        _ if target.others == OtherProcesses::Always => state.processes(),
        TargetTasks::Command(_) => Vec::new(),
        TargetTasks::Processes(processes) => processes.clone(),
        TargetTasks::Threads(threads) => {
            let processes: BTreeSet<u32> = threads.iter().filter_map(|&tid| state.process_of(tid)).collect();
            processes.into_iter().collect()
        }
        TargetTasks::ControlGroup(_) | TargetTasks::System(_) => state.processes(),
    }
}

/// What the recording says of its target.
pub fn describe(tasks: &TargetTasks, program: Option<Pid>) -> Target {
    match tasks {
        TargetTasks::Command(argv) => Target::Command {
            argv: argv.iter().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            pid: program.map_or(0, |pid| pid.as_raw() as u32),
        },
        TargetTasks::Processes(processes) => Target::Processes(processes.clone()),
        TargetTasks::Threads(threads) => Target::Threads(threads.clone()),
        TargetTasks::ControlGroup(_) | TargetTasks::System(_) => Target::System,
    }
}

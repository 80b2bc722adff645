//! Which functions are probed to see launches of GPU kernels, and in which files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use perf_data::format::event_type;
use perf_event::Builder;

use crate::hardware::{DomainKind, MachineInfo, Method};
use crate::machine::permissions::kernel_version;
use crate::machine::{EventSpec, Roots, repair};
use crate::meter::Discovery;
use crate::record::attr::{self, AttrSettings};
use crate::record::error::RecordError;
use crate::record::options::{CallGraph, GpuLaunches, LaunchOptions, SamplingRate, TargetTasks};
use crate::record::probe_program::ProbeProgram;
use crate::record::sampled_event::SampledEvent;
use crate::record::support::KernelSupport;
use crate::record::uprobe::{Uprobe, UprobePmu, kernel_path, offsets};
use crate::recording::gpu_events::{
    ARGUMENTS_STACK_BYTES, CallRegisters, DRIVER_FUNCTIONS, GpuCall, GpuFunction, RUNTIME_FUNCTIONS,
};

/// Probes to open, and what to say of them.
#[derive(Debug, Default)]
pub struct LaunchProbes {
    /// The probes.
    pub probes: Vec<SampledEvent>,
    /// Why there are none, where that may surprise.
    pub warnings: Vec<String>,
}

/// The first kernel that takes one program for all probes.
const FIRST_WITH_PROGRAMS: (u32, u32) = (6, 6);
/// How much of the stack is copied where a kernel's handle is asked for.
const NAMING_STACK_BYTES: u32 = 2048;

/// The probes for a recording of these tasks.
///
/// # Errors
/// [`RecordError::GpuLaunches`] if they were asked for and cannot be had.
pub fn launch_probes(
    options: &LaunchOptions,
    tasks: &TargetTasks,
    roots: &Roots,
    energy: &Discovery,
    machine: &MachineInfo,
) -> Result<LaunchProbes, RecordError> {
    let measured = energy
        .domains
        .iter()
        .any(|domain| domain.kind == DomainKind::Gpu && domain.method == Method::Measured);
    let wanted = match options.when {
        GpuLaunches::Never => false,
        GpuLaunches::Automatic => measured,
        GpuLaunches::Always => true,
    };
    if !wanted {
        return Ok(LaunchProbes::default());
    }
    let gpus = energy.domains.iter().filter(|domain| domain.kind == DomainKind::Gpu).count();
    let found = find(options, tasks, roots, machine, gpus > 1);
    match (found, options.when) {
        (Ok(probes), _) => Ok(LaunchProbes { probes, warnings: Vec::new() }),
        (Err(why), GpuLaunches::Always) => Err(RecordError::GpuLaunches(why)),
        (Err(why), _) => {
            let warning = format!("the GPU's energy is not shared among kernels: {why}");
            Ok(LaunchProbes { probes: Vec::new(), warnings: vec![warning] })
        }
    }
}

fn find(
    options: &LaunchOptions,
    tasks: &TargetTasks,
    roots: &Roots,
    machine: &MachineInfo,
    several_gpus: bool,
) -> Result<Vec<SampledEvent>, String> {
    let pmu = UprobePmu::find(roots).ok_or("this kernel has no uprobes (CONFIG_UPROBE_EVENTS)")?;
    let registers = CallRegisters::of(&machine.arch)
        .ok_or_else(|| format!("calls of {} processors are not known", machine.arch))?
        .mask();
    let files = files(options.cuda_library.clone(), tasks, roots);
    let named = options.cuda_library.as_ref().and_then(|path| path.canonicalize().ok());
    let mut probes = Vec::new();
    for path in &files {
        let is_driver = name_starts_with(path, "libcuda.so") || named.as_ref() == Some(path);
        let functions: &[GpuFunction] = if is_driver { &DRIVER_FUNCTIONS } else { &RUNTIME_FUNCTIONS };
        // A script, or a file that is gone, has no functions.
        let names: Vec<&str> = functions.iter().map(|function| function.name).collect();
        for (name, offset) in offsets(path, &names).unwrap_or_default() {
            let (Some(function), Some(path)) =
                (functions.iter().find(|function| function.name == name), kernel_path(path))
            else {
                continue;
            };
            // Threads go from context to context often; with one GPU it tells nothing.
            if tells_gpu(function.call) && !several_gpus {
                continue;
            }
            let place = Uprobe {
                path,
                offset,
                registers,
                with_call_path: false,
                stack_bytes: 0,
                on_return: false,
                by_program: false,
            };
            probes.push(probe(pmu, function.call, name, place.clone()));
            probes.extend(function.call.on_return().map(|call| probe(pmu, call, name, place)));
        }
    }
    let first = probes.first().ok_or_else(|| {
        "CUDA's driver library libcuda.so.1 is not found; name it with --cuda-lib".to_owned()
    })?;
    let program = first.probe.as_ref().is_some_and(|probe| ProbeProgram::try_out(probe).is_ok());
    if program {
        probes.iter_mut().for_each(hand_over_by_program);
    } else {
        // An older kernel, or one that keeps programs to others than this user.
        try_out(first, roots)?;
    }
    Ok(probes)
}

/// Of one program for all probes, an event is where samples are written to.
fn hand_over_by_program(event: &mut SampledEvent) {
    let name = std::mem::take(&mut event.spec.name);
    let output = event_type::SOFTWARE_BPF_OUTPUT;
    event.spec = EventSpec {
        period: event.spec.period,
        ..EventSpec::plain(&name, "software", event_type::SOFTWARE, output)
    };
    event.probe.iter_mut().for_each(|probe| probe.by_program = true);
}

fn probe(pmu: UprobePmu, call: GpuCall, function: &str, place: Uprobe) -> SampledEvent {
    let on_return = matches!(call, GpuCall::Waited | GpuCall::Named | GpuCall::Contexted);
    let config = if on_return { pmu.on_return } else { 0 };
    let name = call.event_name(function);
    let spec = EventSpec { period: Some(1), ..EventSpec::plain(&name, "uprobe", pmu.perf_type, config) };
    let with_call_path = matches!(call, GpuCall::Launch | GpuCall::RuntimeLaunch | GpuCall::GraphLaunch);
    // Handles are mostly put into a variable of the caller, which soon holds the next one.
    let stack_bytes = match call {
        _ if is_handle(call) => NAMING_STACK_BYTES,
        GpuCall::Launch => ARGUMENTS_STACK_BYTES,
        _ => 0,
    };
    let probe = Some(Uprobe { with_call_path, stack_bytes, on_return, ..place });
    SampledEvent { probe, ..SampledEvent::new(spec, None, SamplingRate::Period(1)) }
}

/// Does the call only tell which GPU a thread is on?
fn tells_gpu(call: GpuCall) -> bool {
    matches!(
        call,
        GpuCall::Context
            | GpuCall::UseContext
            | GpuCall::PushContext
            | GpuCall::PopContext
            | GpuCall::UseDevice
    )
}

/// Does the call ask for a handle, or give it?
fn is_handle(call: GpuCall) -> bool {
    matches!(call, GpuCall::Name | GpuCall::Named | GpuCall::Context | GpuCall::Contexted)
}

/// Opens a probe for this very process, which never comes past it.
fn try_out(probe: &SampledEvent, roots: &Roots) -> Result<(), String> {
    let settings = AttrSettings {
        call_graph: CallGraph::None,
        exclude_kernel: false,
        enable_on_exec: false,
        cgroups: false,
        support: KernelSupport { lost_counts: false, kernel_symbols: false, cgroups: false },
    };
    let mut builder: Builder<'_> = attr::builder(probe, &settings, false);
    let opened: io::Result<_> = builder.inherit(false).observe_self().any_cpu().build();
    let Err(error) = opened else { return Ok(()) };
    Err(match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES | Errno::EPERM) => refused(&error, kernel_version(roots)),
        _ => format!("the kernel does not take a probe on {}: {error}", probe.spec.name),
    })
}

/// What a user is told whom the kernel refuses probes.
fn refused(error: &io::Error, kernel: (u32, u32)) -> String {
    let knows_programs = kernel >= FIRST_WITH_PROGRAMS;
    let wants = if knows_programs { "CAP_PERFMON and CAP_BPF" } else { "root before Linux 6.6" };
    let command = repair::probes(knows_programs).one_line();
    format!(
        "the kernel does not permit probes to this user ({error}): they want {wants}; what permits them: {command}"
    )
}

/// Files that may hold probed functions: the driver's library, the program itself and, of running
/// processes, what they have mapped.
fn files(cuda_library: Option<PathBuf>, tasks: &TargetTasks, roots: &Roots) -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    files.extend(cuda_library.or_else(driver_library));
    match tasks {
        TargetTasks::Command(argv) | TargetTasks::System(Some(argv)) => {
            files.extend(argv.first().and_then(|program| in_path(program)));
        }
        TargetTasks::Processes(pids) | TargetTasks::Threads(pids) => {
            for pid in pids {
                let folder = roots.procfs.join(pid.to_string());
                files.extend(fs::read_link(folder.join("exe")).ok());
                let maps = fs::read_to_string(folder.join("maps")).unwrap_or_default();
                let paths = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
                let cuda = |path: &&Path| {
                    name_starts_with(path, "libcuda.so") || name_starts_with(path, "libcudart.so")
                };
                files.extend(paths.filter(cuda).map(Path::to_owned));
            }
        }
        TargetTasks::ControlGroup(_) | TargetTasks::System(None) => {}
    }
    // The same file under several names would be probed, and count, several times.
    files
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn name_starts_with(path: &Path, start: &str) -> bool {
    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(start))
}

/// The driver's library where the usual distributions have it.
fn driver_library() -> Option<PathBuf> {
    const FOLDERS: [&str; 9] = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
        "/run/opengl-driver/lib",
        "/usr/lib/x86_64-linux-gnu/nvidia/current",
        "/usr/local/cuda/compat",
    ];
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&own).chain(FOLDERS.iter().map(PathBuf::from));
    folders.map(|folder| folder.join("libcuda.so.1")).find(|path| path.is_file())
}

/// A program as the shell finds it.
fn in_path(program: &OsStr) -> Option<PathBuf> {
    let program = Path::new(program);
    if program.components().count() > 1 {
        return Some(program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seen on 6.18: EACCES with CAP_PERFMON alone, everything with CAP_BPF beside it.
    #[test]
    fn a_user_is_told_what_this_kernel_wants() {
        let said = |kernel| refused(&io::Error::from_raw_os_error(libc::EACCES), kernel);
        let (own, recent) = (repair::own_binary(), said((6, 6)));
        assert!(recent.ends_with(&format!("sudo setcap cap_perfmon,cap_bpf=ep {own}")), "{recent}");
        assert!(
            recent.contains("Permission denied") && recent.contains("CAP_PERFMON and CAP_BPF"),
            "{recent}"
        );
        let old = said((6, 5));
        assert!(old.ends_with(&format!("sudo {own} record --gpu ...")) && !old.contains("setcap"), "{old}");
    }
}

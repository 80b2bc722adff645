//! The first phase of a recording: everything that is read while it runs is found and opened, and nothing
//! counts yet.

use nix::unistd::Pid;

use crate::hardware::{DomainInfo, MachineInfo};
use crate::machine::{Roots, topology};
use crate::meter::{Discovery, EnergyMeter, MeterOptions, Rejected, discover};
use crate::record::calibrated;
use crate::record::counters::Scope;
use crate::record::error::RecordError;
use crate::record::gpu::gpu_order;
use crate::record::gpu::kernel_names::KernelNames;
use crate::record::gpu::probes::launch_probes;
use crate::record::options::{LaunchOptions, OtherProcesses, SamplingOptions, TargetOptions, TargetTasks};
use crate::record::process_state::ProcessState;
use crate::record::sampling::Sampling;
use crate::record::target;

/// Counters and meters, open and not yet started.
pub struct Opened {
    /// The machine they are of.
    pub machine: MachineInfo,
    /// The counters and their rings.
    pub sampling: Sampling,
    /// Whose tasks they watch.
    pub scope: Scope,
    /// The counters that watch the program alone start with its `exec`, by themselves.
    pub starts_on_exec: bool,
    /// The counters that tell the target's own CPU time, as far as that is apart from others'.
    pub own_time: Vec<usize>,
    /// Who follows names of GPU kernels, where their launches are recorded.
    pub kernel_names: Option<KernelNames>,
    /// The energy meters.
    pub meters: Vec<Box<dyn EnergyMeter>>,
    /// Their domains.
    pub domains: Vec<DomainInfo>,
    /// What had to be done without, and how to have it.
    pub warnings: Vec<String>,
    /// How events and meters were chosen, for the file.
    pub notes: Vec<String>,
}

impl Opened {
    /// Opens what is to be sampled of the target, and the meters. `program` is the one that waits to be recorded.
    ///
    /// # Errors
    /// A target that does not exist, events or probes that were asked for and cannot be had, and missing
    /// rights.
    pub fn open(
        roots: &Roots,
        target: &TargetOptions,
        program: Option<Pid>,
        sampling: &SamplingOptions,
        launches: &LaunchOptions,
        meters: &MeterOptions,
    ) -> Result<Self, RecordError> {
        let process_state = ProcessState::new(roots);
        let own_scope = || target::scope(&target.tasks, program, &process_state);
        let scope = own_scope()?;
        let machine = topology::detect(roots)?;
        let mut energy = discover(roots, meters)?;
        energy.check()?;
        let with_others = target::with_others(target, sampling, roots, &energy);
        let launches = launch_probes(launches, &target.tasks, roots, &energy, &machine)?;
        let open = |scope: Scope| {
            let starts_on_exec = starts_on_exec(&target.tasks, &scope);
            Sampling::open(sampling, roots, &machine, &scope, starts_on_exec, &launches.probes)
                .map(|sampling| (sampling, scope, starts_on_exec))
        };
        let opened = match open(if with_others { Scope::System } else { scope }) {
            // What nobody asked for is done without, should the kernel refuse it after all.
            Err(_) if with_others && target.others == OtherProcesses::Automatic => open(own_scope()?),
            opened => opened,
        };
        let (opened, scope, starts_on_exec) = opened?;
        let is_wide = !matches!(scope, Scope::Tasks(_));
        let hidden_code = is_wide.then(|| target::hidden_code(target, roots)).flatten();
        let own_time = match scope {
            Scope::Tasks(_) => opened.counters.that_tell_time(&opened.events, sampling.events.is_empty()),
            Scope::ControlGroup(_) | Scope::System => Vec::new(),
        };
        if let Some(stored) = &sampling.model {
            calibrated::tell_static_power(stored, &machine, &mut energy.domains);
        }
        gpu_order::tell(&mut energy.domains, &target::gpu_environment(&target.tasks, &process_state));
        Ok(Self {
            warnings: [
                opened.warnings.clone(),
                launches.warnings,
                unread_meters(&energy),
                hidden_code.into_iter().collect(),
            ]
            .concat(),
            notes: [opened.notes.clone(), energy.warnings].concat(),
            kernel_names: KernelNames::new(&opened, &machine.arch),
            meters: energy.meters,
            domains: energy.domains,
            sampling: opened,
            scope,
            starts_on_exec,
            own_time,
            machine,
        })
    }
}

/// Counters of the program alone start with it; those that watch others too, before it.
fn starts_on_exec(tasks: &TargetTasks, scope: &Scope) -> bool {
    matches!((tasks, scope), (TargetTasks::Command(_), Scope::Tasks(_)))
}

/// What keeps a meter from being read, where it was asked for by name, or where joules must be estimated for it and
/// it can be repaired.
fn unread_meters(energy: &Discovery) -> Vec<String> {
    let repairable = energy.rejected.iter().filter(|rejected| rejected.repair.is_some());
    let repairable = repairable.filter(|_| !energy.measures_cpus()).map(Rejected::to_string);
    let mut unread = energy.unmet.clone();
    unread.extend(repairable.filter(|rejected| !energy.unmet.contains(rejected)));
    unread.iter().map(|meter| format!("energy is not measured by {meter}")).collect()
}

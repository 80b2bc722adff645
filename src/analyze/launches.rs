//! Launches of GPU kernels become cells of the profile: host stacks that end in kernels, with the GPU's
//! joules as [`crate::gpu::launches`] shares them out.

use rustc_hash::{FxHashMap, FxHashSet};

use super::events::EventRoles;
use crate::gpu::launches::{LaunchTracker, Shares, share};
use crate::profile::{CodeAddress, EventTotals, GPU_LAUNCH_EVENT, Profile};
use crate::recording::Recording;
use crate::recording::gpu_events::{CallRegisters, GpuCall, KernelName, kernel_argument};
use crate::recording::metadata::{DomainKind, Metadata};
use crate::recording::record::{CpuMode, Record, RecordContext, Sample};
use crate::timeline::{TaskId, Tasks};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Launches and the meters of GPUs, as the replay meets them.
#[derive(Debug, Default)]
pub(super) struct Launches {
    /// This recording has probes on launches.
    probed: bool,
    registers: Option<CallRegisters>,
    names: FxHashMap<(u32, u64), String>,
    tracker: LaunchTracker,
    /// Threads inside a launch by CUDA's runtime, which comes to the driver within the call.
    in_runtime: FxHashSet<u32>,
    /// Readings of the GPUs, by index of the domain.
    readings: FxHashMap<usize, Vec<(Timestamp, Joules)>>,
    launches: u64,
}

impl Launches {
    /// For a recording; looks for the names of kernels, which come later in it than they hold.
    pub fn new(recording: &Recording, roles: &EventRoles) -> Self {
        if !roles.has_launches() {
            return Self::default();
        }
        let metadata = recording.metadata();
        let own = metadata.map(|metadata| metadata.machine.arch.as_str());
        let architecture = recording.features().arch.as_deref().or(own);
        let is_gpu = |metadata: &Metadata| {
            let domains = metadata.domains.iter().enumerate();
            domains.filter(|(_, domain)| domain.kind == DomainKind::Gpu).map(|(index, _)| index).collect()
        };
        let gpus: Vec<usize> = metadata.map(is_gpu).unwrap_or_default();
        Self {
            probed: true,
            registers: architecture.and_then(CallRegisters::of),
            names: names(recording, roles),
            readings: gpus.into_iter().map(|index| (index, Vec::new())).collect(),
            ..Self::default()
        }
    }

    /// The totals of the event that stands for launches, if there are any to come.
    pub fn event(&self) -> Option<EventTotals> {
        let name = GPU_LAUNCH_EVENT.to_owned();
        self.probed.then_some(EventTotals { name, samples: 0, count: 0, lost: 0, throttled: 0 })
    }

    /// A meter's reading.
    pub fn reading(&mut self, domain: usize, time: Timestamp, energy: Joules) {
        if let Some(readings) = self.readings.get_mut(&domain) {
            readings.push((time, energy));
        }
    }

    /// A process ended.
    pub fn ended(&mut self, pid: u32, tid: u32, time: Option<Timestamp>) {
        if let (true, true, Some(time)) = (self.probed, pid == tid, time) {
            self.tracker.ended(pid, time);
        }
    }

    /// A probed call; if it is a launch, the kernel, as the innermost frame of its stack.
    pub fn call(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        (call, function): (GpuCall, &str),
        context: &RecordContext,
        sample: &Sample<'_>,
    ) -> Option<CodeAddress> {
        let (pid, time) = (context.pid?, context.time?);
        let tid = context.tid.unwrap_or(pid);
        let argument = |number: usize| sample.user_registers?.get(*self.registers?.arguments.get(number)?);
        let handle = argument(kernel_argument(function)).unwrap_or(0);
        match call {
            GpuCall::Launch | GpuCall::GraphLaunch if self.in_runtime.remove(&tid) => None,
            GpuCall::Launch => Some(match self.names.get(&(pid, handle)) {
                Some(name) => tasks.gpu_kernel(name),
                None => tasks.gpu_kernel(&format!("kernel at {handle:#x}")),
            }),
            GpuCall::GraphLaunch => Some(tasks.gpu_kernel(&format!("graph at {handle:#x}"))),
            GpuCall::RuntimeLaunch => {
                self.in_runtime.insert(tid);
                // The runtime knows a kernel by the function of the program that stands for it.
                Some(tasks.locate(task, CpuMode::User, handle))
            }
            GpuCall::Wait => {
                self.in_runtime.remove(&tid);
                self.tracker.wait(tid, time);
                None
            }
            GpuCall::Waited => {
                self.tracker.waited(pid, tid, time);
                None
            }
            GpuCall::Name | GpuCall::Named => None,
        }
    }

    /// A launch has found its cell.
    pub fn launched(&mut self, pid: u32, time: Timestamp, cell: u32) {
        self.launches += 1;
        self.tracker.launch(pid, time, cell);
    }

    /// Gives the GPUs' joules to the cells of launches. What the attribution to CPU samples made of these
    /// domains, of which no such sample knows anything, is replaced.
    pub fn settle(self, profile: &mut Profile) {
        if !self.probed {
            return;
        }
        let end = self.readings.values().filter_map(|all| all.last()).map(|(time, _)| *time).max();
        let launches = self.tracker.finish(end.unwrap_or_default());
        let columns = profile.domains.len();
        profile.cell_variances.resize(profile.cell_joules.len(), 0.0);
        let mut domains: Vec<_> = self.readings.into_iter().collect();
        domains.sort_unstable_by_key(|(domain, _)| *domain);
        for (domain, readings) in domains {
            let Some(energy) = profile.domains.get(domain) else { continue };
            let shares = share(&readings, &launches, energy.info.refresh);
            // A CPU's samples know nothing of a GPU.
            for cell in 0..profile.cells.len() {
                profile.cell_joules[cell * columns + domain] = Joules::ZERO;
                profile.cell_variances[cell * columns + domain] = 0.0;
            }
            let mut attributed = Joules::ZERO;
            for (cell, share) in &shares.by_owner {
                let at = *cell as usize * columns + domain;
                if let (Some(joules), Some(variance), Some(cell)) = (
                    profile.cell_joules.get_mut(at),
                    profile.cell_variances.get_mut(at),
                    profile.cells.get_mut(*cell as usize),
                ) {
                    *joules = share.joules;
                    *variance = share.variance;
                    cell.time = share.busy;
                    attributed += share.joules;
                }
            }
            let energy = &mut profile.domains[domain];
            energy.attributed = attributed;
            energy.static_energy = energy.measured - attributed;
            energy.other_processes = Joules::ZERO;
            energy.recorder = Joules::ZERO;
            energy.lost = Joules::ZERO;
            let name = energy.info.name.clone();
            profile.warnings.extend(note(&name, &shares, self.launches));
        }
    }
}

/// How a GPU's joules came to kernels, for the reader of a report.
fn note(domain: &str, shares: &Shares, launches: u64) -> Option<String> {
    if launches == 0 {
        return None;
    }
    let busy: Nanoseconds = shares.by_owner.values().map(|share| share.busy).sum();
    let level = match shares.idle_power {
        Some(power) => format!("what {domain} drew above active idle ({power})"),
        None => format!("all that {domain} drew, since it never rested long enough to tell its idle power,"),
    };
    Some(format!(
        "joules of GPU kernels are modelled, not measured: {level} is shared among {launches} launches by the \
         time from launch to wait ({:.3} s in all); kernels that were waited for together share by number",
        busy.as_secs_f64()
    ))
}

/// The names of kernels that a recording tells.
fn names(recording: &Recording, roles: &EventRoles) -> FxHashMap<(u32, u64), String> {
    let mut names = FxHashMap::default();
    let mut records = recording.records();
    loop {
        match records.next() {
            Ok(Some((_, context, Record::Sample(sample)))) => {
                let event = context.event.map(|event| event.0);
                if roles.is_kernel_name(event)
                    && let Some(KernelName { pid, handle, name }) = KernelName::from_bytes(sample.raw)
                {
                    names.insert((pid, handle), name);
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return names,
            Err(error) if error.is_recoverable() => {}
            Err(_) => return names,
        }
    }
}

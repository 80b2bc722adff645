//! Launches of GPU kernels become cells of the profile: host stacks that end in kernels, with the GPU's
//! joules as [`crate::gpu::launches`] shares them out.

use perf_data::record::{CpuMode, RecordContext, Sample, TaskChange};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analyze::events::EventRoles;
use crate::analyze::gpu::activity::{KernelFacts, KernelRun};
use crate::analyze::gpu::in_time::put_in_time;
use crate::analyze::gpu::threads::GpuThreads;
use crate::gpu::launches::{LaunchTracker, Outstanding, Shares, Stream, WaitFor, share};
use crate::hardware::DomainKind;
use crate::profile::{Balance, CodeAddress, EventTotals, GPU_LAUNCH_EVENT, Profile};
use crate::recording::Recording;
use crate::recording::gpu_events::{
    CallRegisters, GpuCall, argument_of, stream_argument_of, waits_for_event,
};
use crate::recording::metadata::Metadata;
use crate::timeline::{TaskId, Tasks};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// The owner of launches by processes that were not to be recorded.
const OTHERS: u32 = u32::MAX;

/// Stands for the domain of a GPU that is known and not measured.
const UNMEASURED: u32 = u32::MAX;

/// Launches and the meters of GPUs, as the replay meets them.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    /// This recording has probes on launches.
    probed: bool,
    registers: Option<CallRegisters>,
    facts: KernelFacts,
    tracker: LaunchTracker,
    /// Kernels of which it is known when they ran, as CUPTI told.
    exact: Vec<Outstanding>,
    exact_launches: u64,
    /// Launches of processes that were not to be recorded.
    foreign: u64,
    gpu_threads: GpuThreads,
    /// Indices of GPUs' domains by the program's numbers of them, and how many GPUs there are.
    ordinals: FxHashMap<u32, u32>,
    /// Launches on a GPU that is not known, where there are several.
    astray: u64,
    /// Threads that some recorded thread started.
    started: FxHashSet<u32>,
    /// Threads inside a launch by CUDA's runtime, which comes to the driver within the call.
    in_runtime: FxHashSet<u32>,
    /// By thread, its latest launch: the driver tells the stream of one by the runtime.
    latest: FxHashMap<u32, u32>,
    /// The stream of the launch that is being counted.
    stream: Option<Stream>,
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
            facts: KernelFacts::of(recording, roles),
            ordinals: metadata.map(ordinals).unwrap_or_default(),
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

    /// A thread that is recorded started another. Only of recorded ones the kernel tells.
    pub fn forked(&mut self, change: &TaskChange) {
        if self.probed {
            self.started.insert(change.tid);
        }
    }

    /// Was this thread started by a recorded one?
    pub fn follows(&self, tid: u32) -> bool {
        self.started.contains(&tid)
    }

    /// A probed call of a process that was not to be recorded: what it has on a GPU takes its part of the
    /// joules. The runtime's launches come to the driver in any case.
    pub fn call_of_others(&mut self, call: GpuCall, pid: u32, tid: u32, time: Timestamp) {
        match call {
            GpuCall::Launch | GpuCall::GraphLaunch => {
                self.foreign += 1;
                self.tracker.launch(pid, time, OTHERS, None, None);
            }
            GpuCall::Wait => self.tracker.wait(tid, time, None, WaitFor::All),
            GpuCall::Waited => self.tracker.waited(pid, tid, time),
            _ => {}
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
        let argument = |number: usize| {
            let registers = sample.user_registers?;
            self.registers?.argument(number, |register| registers.get(register), sample.user_stack)
        };
        let handle = argument(argument_of(function)).unwrap_or(0);
        let stream =
            stream_argument_of(function).and_then(argument).map(|handle| stream(function, handle, tid));
        let runs = self.facts.runs(pid, tid, time);
        let run_name = runs.first().and_then(|run| self.facts.run_name(pid, run));
        self.stream = stream;
        match call {
            GpuCall::Launch | GpuCall::GraphLaunch if self.in_runtime.remove(&tid) => {
                if let (Some(number), Some(stream)) = (self.latest.remove(&tid), stream) {
                    self.tracker.stream_of(pid, number, stream);
                }
                None
            }
            GpuCall::Launch => Some(match run_name.or_else(|| self.facts.name(pid, handle)) {
                Some(name) => tasks.gpu_kernel(name),
                None => tasks.gpu_kernel(&format!("kernel at {handle:#x}")),
            }),
            GpuCall::GraphLaunch => Some(tasks.gpu_kernel(&format!("graph at {handle:#x}"))),
            GpuCall::RuntimeLaunch => {
                self.in_runtime.insert(tid);
                Some(match run_name {
                    Some(name) => tasks.gpu_kernel(name),
                    // The runtime knows a kernel by the function of the program that stands for it.
                    None => tasks.locate(task, CpuMode::User, handle),
                })
            }
            GpuCall::Wait => {
                self.in_runtime.remove(&tid);
                let what = match stream {
                    _ if waits_for_event(function) => WaitFor::Event(handle),
                    Some(stream) => WaitFor::Stream(stream),
                    None => WaitFor::All,
                };
                self.tracker.wait(tid, time, self.gpu(tid), what);
                None
            }
            GpuCall::RecordEvent => {
                self.tracker.record_event(pid, handle, stream?, time);
                None
            }
            GpuCall::AwaitEvent => {
                self.tracker.join(pid, stream?, handle, time);
                None
            }
            GpuCall::Waited => {
                self.tracker.waited(pid, tid, time);
                None
            }
            GpuCall::Name | GpuCall::Named | GpuCall::Contexted => None,
            GpuCall::Context => {
                // What creates a context goes over to it, too.
                if function.starts_with("cuCtxCreate") {
                    self.gpu_threads.push(tid, Some(handle as u32));
                }
                None
            }
            GpuCall::UseContext => {
                self.gpu_threads.set(tid, self.facts.ordinal(pid, handle));
                None
            }
            GpuCall::PushContext => {
                self.gpu_threads.push(tid, self.facts.ordinal(pid, handle));
                None
            }
            GpuCall::PopContext => {
                self.gpu_threads.pop(tid);
                None
            }
            GpuCall::UseDevice => {
                self.gpu_threads.set(tid, Some(handle as u32));
                None
            }
        }
    }

    /// A launch; they are numbered from 0.
    pub fn launched(&mut self, pid: u32, tid: u32, time: Timestamp, number: u32) {
        self.launches += 1;
        let of_thread = self.gpu(tid);
        let runs = self.facts.runs(pid, tid, time);
        let known = of_thread.is_some() || !runs.is_empty() && runs.iter().all(|run| run.gpu.is_some());
        self.astray += u64::from(!known && self.readings.len() > 1);
        if runs.is_empty() {
            self.latest.insert(tid, number);
            return self.tracker.launch(pid, time, number, of_thread, self.stream);
        }
        self.exact_launches += 1;
        let exact = |run: &KernelRun| Outstanding {
            start: run.start,
            end: run.end,
            owner: number,
            gpu: run.gpu.map(|gpu| gpu as u32).or(of_thread),
        };
        self.exact.extend(runs.iter().map(exact));
    }

    /// The domain of the GPU that a thread is on, if that is known.
    fn gpu(&self, tid: u32) -> Option<u32> {
        let ordinal = self.gpu_threads.of(tid)?;
        if self.ordinals.is_empty() {
            return None;
        }
        Some(self.ordinals.get(&ordinal).copied().unwrap_or(UNMEASURED))
    }

    /// Gives the GPUs' joules to the cells of launches. What the attribution to CPU samples made of these
    /// domains, of which no such sample knows anything, is replaced.
    ///
    /// `cells` are those of the launches, by their numbers.
    pub fn settle(self, profile: &mut Profile, cells: &[u32]) {
        if !self.probed {
            return;
        }
        let end = self.readings.values().filter_map(|all| all.last()).map(|(time, _)| *time).max();
        let end = end.unwrap_or_default();
        let mut launches = self.tracker.finish(end);
        // Of other processes nobody tells that they ended.
        launches.retain(|launch| launch.owner != OTHERS || launch.end < end);
        launches.extend(&self.exact);
        for launch in launches.iter_mut().filter(|launch| launch.owner != OTHERS) {
            launch.owner = cells.get(launch.owner as usize).copied().unwrap_or(OTHERS);
        }
        launches.sort_unstable_by_key(|launch| (launch.start, launch.end, launch.owner));
        profile.warnings.extend(self.facts.warnings());
        if self.astray > 0 {
            profile.warnings.push(format!(
                "of {} launches it is not known which of {} GPUs they ran on: each GPU's joules are shared among \
                 them as if they had run there (record with --cupti to know)",
                self.astray,
                self.readings.len()
            ));
        }
        let columns = profile.domains.len();
        profile.cell_variances.resize(profile.cell_joules.len(), 0.0);
        let mut domains: Vec<_> = self.readings.into_iter().collect();
        domains.sort_unstable_by_key(|(domain, _)| *domain);
        for (domain, readings) in domains {
            let Some(energy) = profile.domains.get(domain) else { continue };
            let is_own = |launch: &&Outstanding| launch.gpu.is_none_or(|gpu| gpu as usize == domain);
            let own: Vec<Outstanding> = launches.iter().filter(is_own).copied().collect();
            let shares = share(&readings, &own, energy.info.refresh);
            let knows_gpus = own.iter().all(|launch| launch.gpu.is_some());
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
                    // Work that may have run on any of several GPUs was busy once.
                    cell.time = if knows_gpus { cell.time + share.busy } else { cell.time.max(share.busy) };
                    attributed += share.joules;
                }
            }
            let spent = shares.by_owner.iter().map(|(owner, share)| (*owner, share.joules));
            let cell = |owner: u32| Some(owner).filter(|owner| (*owner as usize) < profile.cells.len());
            put_in_time(&mut profile.slices, domain, &own, spent, cell);
            let others = shares.by_owner.get(&OTHERS).map_or(Joules::ZERO, |share| share.joules);
            let energy = &mut profile.domains[domain];
            let measured = energy.balance.measured;
            energy.balance = Balance {
                measured,
                attributed,
                static_energy: measured - attributed - others,
                other_processes: others,
                ..Balance::default()
            };
            let name = energy.info.name.clone();
            if self.foreign > 0 {
                profile.warnings.push(format!(
                    "other processes launched {} kernels meanwhile: {others} of {name} are theirs, by the time from \
                     launch to wait",
                    self.foreign
                ));
            }
            profile.warnings.extend(note(&name, &shares, self.launches, self.exact_launches));
        }
    }
}

/// What a stream's handle means. Two are made up by CUDA's headers: 1 is the default stream of old, 2 that of
/// the thread, which 0 means to functions of this ending.
fn stream(function: &str, handle: u64, tid: u32) -> Stream {
    match handle {
        0 if function.ends_with("_ptsz") => Stream::OfThread(tid),
        0 | 1 => Stream::Default,
        2 => Stream::OfThread(tid),
        handle => Stream::Handle(handle),
    }
}

/// Indices of the GPUs' domains by the numbers that the program knows them by.
fn ordinals(metadata: &Metadata) -> FxHashMap<u32, u32> {
    let domains = metadata.domains.iter().enumerate();
    domains.filter_map(|(index, domain)| Some((domain.cuda_ordinal?, index as u32))).collect()
}

/// How a GPU's joules came to kernels, for the reader of a report.
fn note(domain: &str, shares: &Shares, launches: u64, exact: u64) -> Option<String> {
    if launches == 0 {
        return None;
    }
    let own = shares.by_owner.iter().filter(|(owner, _)| **owner != OTHERS);
    let busy: Nanoseconds = own.map(|(_, share)| share.busy).sum();
    let level = match shares.idle_power {
        Some(power) => format!("what {domain} drew above active idle ({power})"),
        None => format!("all that {domain} drew, since it never rested long enough to tell its idle power,"),
    };
    let busy = busy.as_secs_f64();
    let how = match launches - exact {
        0 => format!(
            "by the times that their kernels ran, as CUPTI told ({busy:.3} s in all); kernels that ran at once share \
             alike"
        ),
        modelled if exact > 0 => format!(
            "by the times that their kernels ran, as CUPTI told of {exact} of them; the other {modelled} go by the \
             time from launch to wait ({busy:.3} s in all)"
        ),
        _ => format!(
            "by the time from launch to wait ({busy:.3} s in all); kernels that were waited for together share by \
             number"
        ),
    };
    Some(format!(
        "joules of GPU kernels are modelled, not measured: {level} is shared among {launches} launches {how}"
    ))
}

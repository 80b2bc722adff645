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
        self.probed.then_some(EventTotals { name, ..EventTotals::default() })
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
                // Programs built by CUDA 13 give the runtime the driver's handle.
                Some(match run_name.or_else(|| self.facts.name(pid, handle)) {
                    Some(name) => tasks.gpu_kernel(name),
                    // Earlier ones give it the function of the program that stands for the kernel.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{DomainInfo, Method};
    use crate::profile::{Cell, DomainEnergy, StackId, ThreadIndex, TimeSlice};

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000) + Nanoseconds::from_millis(millis)
    }

    fn joules(joules: f64) -> Joules {
        Joules::from_joules(joules)
    }

    /// A package and two GPUs, each with what it counted; five cells, of which the CPU's has joules everywhere; one second.
    fn profile() -> Profile {
        let domain = |name: &str, kind, measured: f64| DomainEnergy {
            info: DomainInfo {
                refresh: Some(Nanoseconds::from_millis(20)),
                ..DomainInfo::new(name, kind, "test", Method::Measured)
            },
            balance: Balance {
                measured: joules(measured),
                attributed: joules(measured),
                ..Balance::default()
            },
        };
        let cell = |event: u32| Cell {
            stack: StackId(0),
            thread: ThreadIndex(0),
            cpu: None,
            event,
            samples: 1,
            count: 1,
            time: Nanoseconds::ZERO,
        };
        let slice = TimeSlice {
            start: at(0),
            end: at(1000),
            measured: vec![joules(7.0), joules(90.0), joules(30.0)],
            modelled: Joules::ZERO,
            balance: Balance { measured: joules(127.0), static_energy: joules(120.0), ..Balance::default() },
            by_cell: Vec::new(),
        };
        Profile {
            domains: vec![
                domain("package-0", DomainKind::Package, 7.0),
                domain("gpu-0", DomainKind::Gpu, 90.0),
                domain("gpu-1", DomainKind::Gpu, 30.0),
            ],
            cells: vec![cell(0), cell(1), cell(1), cell(1), cell(1)],
            cell_joules: [7.0, 90.0, 30.0].map(joules).into_iter().chain([Joules::ZERO; 12]).collect(),
            slices: vec![slice],
            ..Profile::default()
        }
    }

    /// GPU 0 rests at 40 W and takes 240 W from 300 ms to 550 ms; GPU 1 rests at 30 W.
    fn launches() -> Launches {
        let shown = |millis: u64| {
            (0.04 * millis as f64 + 0.2 * (millis.clamp(300, 550) - 300) as f64, 0.03 * millis as f64)
        };
        let mut launches = Launches { probed: true, ..Launches::default() };
        (1..=2).for_each(|domain| drop(launches.readings.insert(domain, Vec::new())));
        for step in 0..=100 {
            let (first, second) = shown(step * 10);
            launches.reading(1, at(step * 10), joules(first));
            launches.reading(2, at(step * 10), joules(second));
            launches.reading(0, at(step * 10), joules(1.0));
        }
        launches
    }

    fn launch(launches: &mut Launches, number: u32, gpu: Option<u32>, from: u64, to: u64) {
        launches.launches += 1;
        launches.tracker.launch(5, at(from), number, gpu, None);
        launches.tracker.wait(5, at(from), None, WaitFor::All);
        launches.tracker.waited(5, 5, at(to));
    }

    #[test]
    fn joules_of_gpus_go_to_the_cells_of_launches() {
        let (mut profile, mut launches) = (profile(), launches());
        // Launches 0 and 1 are of cells 2 and 4; others ran as long as the latter.
        launch(&mut launches, 0, Some(1), 300, 400);
        launch(&mut launches, 1, Some(1), 400, 500);
        launches.call_of_others(GpuCall::Launch, 9, 9, at(500));
        launches.call_of_others(GpuCall::Wait, 9, 9, at(500));
        launches.call_of_others(GpuCall::Waited, 9, 9, at(550));
        launches.settle(&mut profile, &[2, 4]);
        let column = |domain: usize| -> Vec<f64> {
            profile
                .cell_joules
                .iter()
                .skip(domain)
                .step_by(3)
                .map(|joules| (joules.as_joules() * 1e6).round() / 1e6)
                .collect()
        };
        assert_eq!(column(0), [7.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(column(1), [0.0, 0.0, 20.0, 0.0, 20.0]);
        assert_eq!(column(2), [0.0; 5], "no launch is said to be there, and others' may be anywhere");
        let parts = |balance: Balance| {
            [balance.measured, balance.attributed, balance.static_energy, balance.other_processes]
                .map(|joules| (joules.as_joules() * 1e6).round() / 1e6)
        };
        assert_eq!(parts(profile.domains[1].balance), [90.0, 40.0, 40.0, 10.0]);
        assert_eq!(profile.cells[2].time, Nanoseconds::from_millis(100));
        assert_eq!(profile.cell_variances.len(), 15);
        let balance = profile.slices[0].balance;
        assert!((balance.attributed - joules(40.0)).abs().as_joules() < 1e-6);
        assert!((balance.other_processes - joules(10.0)).abs().as_joules() < 1e-6, "{balance:?}");
        let told = profile.warnings.join("; ");
        assert!(told.contains("other processes launched 1 kernels"), "{told}");
        assert!(
            told.contains("shared among 2 launches by the time from launch to wait (0.200 s in all)"),
            "{told}"
        );
    }

    /// CUPTI told of one of two kernels when it ran, and nobody on which GPU the other did.
    #[test]
    fn exact_times_count_and_what_is_not_known_is_said() {
        let (mut profile, mut launches) = (profile(), launches());
        launches.exact = vec![Outstanding { start: at(300), end: at(500), owner: 0, gpu: Some(1) }];
        (launches.exact_launches, launches.launches) = (1, 1);
        launches.stream = None;
        launches.launched(5, 5, at(500), 1);
        launches.tracker.wait(5, at(500), None, WaitFor::All);
        launches.tracker.waited(5, 5, at(550));
        assert_eq!(launches.astray, 1);
        launches.settle(&mut profile, &[1, 3]);
        let of = |cell: usize, domain: usize| profile.cell_joules[cell * 3 + domain].as_joules();
        assert!(
            (of(1, 1) - 40.0).abs() < 1e-6 && (of(3, 1) - 10.0).abs() < 1e-6,
            "{:?}",
            profile.cell_joules
        );
        assert!((of(3, 2)).abs() < 1e-6);
        // It was busy on either, once.
        assert_eq!(profile.cells[3].time, Nanoseconds::from_millis(50));
        let told = profile.warnings.join("; ");
        assert!(told.contains("of 1 launches it is not known which of 2 GPUs"), "{told}");
        assert!(told.contains("as CUPTI told of 1 of them; the other 1 go by"), "{told}");
    }

    #[test]
    fn launches_are_known_by_their_gpus_only_where_these_are() {
        let mut launches = Launches { probed: true, ..Launches::default() };
        launches.gpu_threads.set(5, Some(0));
        assert_eq!(launches.gpu(5), None, "nobody says which GPU that is");
        launches.ordinals = [(0, 2), (1, 1)].into_iter().collect();
        assert_eq!((launches.gpu(5), launches.gpu(6)), (Some(2), None));
        launches.gpu_threads.set(5, Some(7));
        assert_eq!(launches.gpu(5), Some(UNMEASURED));
        let mut unknown = Launches::default();
        assert!(!unknown.follows(5) && launches.event().is_some() && unknown.event().is_none());
        unknown.started.insert(5);
        assert!(unknown.follows(5));
    }

    #[test]
    fn streams_by_their_handles() {
        assert_eq!(stream("cuLaunchKernel", 0, 5), Stream::Default);
        assert_eq!(stream("cuLaunchKernel_ptsz", 0, 5), Stream::OfThread(5));
        assert_eq!([stream("f_ptsz", 1, 5), stream("f", 2, 5)], [Stream::Default, Stream::OfThread(5)]);
        assert_eq!(stream("f", 77, 5), Stream::Handle(77));
    }

    #[test]
    fn how_joules_came_to_kernels_is_said() {
        let share = |busy: u64| crate::gpu::launches::Share {
            busy: Nanoseconds::from_millis(busy),
            ..Default::default()
        };
        let by_owner = [(1, share(250)), (OTHERS, share(9000)), (3, share(500))].into_iter().collect();
        let shares = Shares { by_owner, idle: Joules::ZERO, idle_power: None };
        assert_eq!(note("gpu-0", &shares, 0, 0), None);
        let exact = note("gpu-0", &shares, 4, 4).expect("launches");
        assert!(
            exact.contains("all that gpu-0 drew") && exact.contains("CUPTI told (0.750 s in all)"),
            "{exact}"
        );
        let modelled = note("gpu-0", &shares, 4, 0).expect("launches");
        assert!(modelled.contains("from launch to wait (0.750 s in all)"), "{modelled}");
    }

    /// A launch is astray only where there are several GPUs to choose from, and nothing tells which.
    #[test]
    fn a_launch_on_the_only_gpu_is_not_astray() {
        let astray = |gpus: usize, knows_thread: bool| {
            let mut launches = Launches { probed: true, ..Launches::default() };
            (1..=gpus).for_each(|domain| drop(launches.readings.insert(domain, Vec::new())));
            launches.ordinals = [(0, 1), (1, 2)].into_iter().collect();
            if knows_thread {
                launches.gpu_threads.set(5, Some(1));
            }
            launches.launched(5, 5, at(10), 0);
            assert_eq!(
                (launches.launches, launches.exact_launches, launches.latest.get(&5)),
                (1, 0, Some(&0))
            );
            launches.astray
        };
        assert_eq!([astray(2, false), astray(1, false), astray(0, false)], [1, 0, 0]);
        assert_eq!([astray(2, true), astray(1, true)], [0, 0]);
    }

    #[test]
    fn gpus_are_known_by_the_programs_numbers() {
        let mut metadata = crate::analyze::fixture::metadata();
        metadata.domains[1].cuda_ordinal = Some(3);
        metadata.domains[2].cuda_ordinal = Some(0);
        let expected: FxHashMap<u32, u32> = [(3, 1), (0, 2)].into_iter().collect();
        assert_eq!(ordinals(&metadata), expected);
    }
}

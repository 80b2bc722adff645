//! One half of the second pass: from records in the order of time to cells, and to the steps that
//! attribution takes.

use std::sync::atomic::{AtomicBool, Ordering};

use perf_data::RecordPosition;
use perf_data::record::{Record, RecordContext, Sample};
use rustc_hash::FxHashMap;

use crate::analyze::aggregate::collect::{Collected, Collector};
use crate::analyze::aggregate::found_keys::Numbering;
use crate::analyze::aggregate::functions::{Functions, SAMPLES_BEFORE};
use crate::analyze::aggregate::jit::JitFunctions;
use crate::analyze::aggregate::key_workers::follow;
use crate::analyze::aggregate::late_ticks::KeptKey;
use crate::analyze::aggregate::lost_in_all::LostInAll;
use crate::analyze::aggregate::missing_samples::{MissingSamples, WhoRan, WithoutSample};
use crate::analyze::aggregate::one_mode;
use crate::analyze::aggregate::replay::ReplayEnd;
use crate::analyze::aggregate::samples::SampleList;
use crate::analyze::aggregate::unwind::{SampleUnwinder, finder_of_chains, hides_callers, unwound};
use crate::analyze::aggregate::whose::Whose;
use crate::analyze::build_ids::add_build_ids;
use crate::analyze::events::EventUnit;
use crate::analyze::events::{EventRole, EventRoles};
use crate::analyze::gpu::launches::Launches;
use crate::analyze::memory::TableLimits;
use crate::analyze::options::{CountedTime, FunctionsAlone, Options};
use crate::analyze::sample_key::{NO_CPU, SampleKey};
use crate::analyze::steps::{LostStep, NotSampledStep, Owner, SampleStep, Step};
use crate::attribute::Charge;
use crate::profile::{EventTotals, HiddenCallers, Module, SHORT_PROCESSES, Thread};
use crate::recording::energy::{CpuTimes, EnergyReading};
use crate::recording::metadata::Target;
use crate::recording::{LentReading, Recording};
use crate::timeline::{TaskId, Tasks};
use crate::units::Timestamp;

mod by_workers;

/// How much of a profile is gathered at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room<'a> {
    pub limits: TableLimits,
    /// What there is no room for begins a new part; otherwise call paths are given up.
    pub in_parts: bool,
    /// Whoever attributes says so.
    pub cells_are_full: &'a AtomicBool,
}

/// What was gathered, but for the steps.
pub(crate) struct Gathered {
    pub totals: Vec<EventTotals>,
    pub collected: Collected,
    pub modules: Vec<Module>,
    pub threads: Vec<Thread>,
    pub launches: Launches,
    /// The cells of launches by their numbers, where every sample was to be a cell of its own.
    pub launch_cells: Vec<u32>,
    /// Times of the first and the last sample.
    pub sampled: Option<(Timestamp, Timestamp)>,
    /// Where every sample was to be a cell of its own.
    pub samples: Option<SampleList>,
    pub hidden_callers: HiddenCallers,
    pub missing: MissingSamples,
    /// Of just-in-time code and of stacks that were not followed to their ends.
    pub warnings: Vec<String>,
    pub end: ReplayEnd,
}

/// Walks a recording in the order of time and tells `tell` what attribution must know. With `samples`, every
/// sample is a cell of its own.
pub(crate) fn gather<'r>(
    recording: &'r Recording,
    roles: &'r EventRoles,
    options: &Options,
    samples: Option<SampleList>,
    room: Room<'r>,
    tell: impl FnMut(Step),
) -> Gathered {
    let mut gatherer = Gatherer::new(recording, roles, options, samples, room, tell);
    let end = gatherer.walk(options);
    gatherer.lent_until(Timestamp::from_nanos(u64::MAX));
    gatherer.lost_in_all.settle(&mut gatherer.totals);
    let (modules, threads) = gatherer.tasks.into_parts();
    let unwound = gatherer.unwinder.as_ref().map(SampleUnwinder::hidden_callers).unwrap_or_default();
    let hidden_callers = unwound.and(gatherer.collector.hidden_callers()).and(gatherer.hidden_from_workers);
    let unwinding = gatherer.unwinder.map(|unwinder| unwinder.warnings()).unwrap_or_default();
    let folded = gatherer.collector.warning();
    let not_told =
        gatherer.missing.warning_of_processes().into_iter().chain(one_mode::warning(recording, roles));
    Gathered {
        totals: gatherer.totals,
        collected: gatherer.collector.finish(),
        modules,
        threads,
        launches: gatherer.launches,
        launch_cells: gatherer.launch_cells,
        sampled: gatherer.sampled,
        samples: gatherer.samples,
        hidden_callers,
        missing: gatherer.missing,
        warnings: [gatherer.jit.into_warnings(), unwinding, folded.into_iter().chain(not_told).collect()]
            .concat(),
        end,
    }
}

struct Gatherer<'r, F> {
    recording: &'r Recording,
    roles: &'r EventRoles,
    whose: Whose<'r>,
    tasks: Tasks,
    jit: JitFunctions,
    collector: Collector,
    unwinder: Option<SampleUnwinder>,
    launches: Launches,
    totals: Vec<EventTotals>,
    /// Keys that were found here so far.
    keyed: u64,
    /// Call paths are asked for.
    has_stacks: bool,
    /// What functions are to be looked up for, as long as they were not; `None` where addresses are to be told apart.
    functions: Option<FunctionsAlone>,
    /// Launches so far.
    launched: u32,
    launch_cells: Vec<u32>,
    sampled: Option<(Timestamp, Timestamp)>,
    /// By CPU, until when it was told what was lost.
    lost_until: FxHashMap<Option<u32>, Timestamp>,
    lost_in_all: LostInAll,
    samples: Option<SampleList>,
    room: Room<'r>,
    /// Call paths were given up.
    is_too_large: bool,
    missing: MissingSamples,
    /// What is counted, if not all.
    counted: Option<CountedTime>,
    /// Readings of others that are still to come.
    lent: &'r [LentReading],
    /// What each worker numbers, if there are some, and whose batch is at hand.
    numberings: Vec<Numbering>,
    turn: usize,
    hidden_from_workers: HiddenCallers,
    tell: F,
}

/// `CLOCK_MONOTONIC` of the kernel's interface.
const CLOCK_MONOTONIC: i32 = 1;

impl<'r, F: FnMut(Step)> Gatherer<'r, F> {
    fn new(
        recording: &'r Recording,
        roles: &'r EventRoles,
        options: &Options,
        samples: Option<SampleList>,
        room: Room<'r>,
        tell: F,
    ) -> Self {
        let launches = Launches::new(recording, roles);
        let missing = MissingSamples::new(recording, roles, options);
        let totals = roles
            .sampled()
            .iter()
            .map(|event| EventTotals { name: event.name.clone(), ..EventTotals::default() })
            .chain(launches.event())
            .collect();
        Self {
            recording,
            roles,
            whose: Whose { metadata: recording.metadata() },
            tasks: Tasks::default(),
            jit: JitFunctions::new(
                recording.events().iter().any(|event| event.attr.clock() == Some(CLOCK_MONOTONIC)),
            ),
            collector: match room.in_parts {
                true => Collector::of_parts(options.dimensions, room.limits.paths),
                false => Collector::new(options.dimensions, room.limits.paths),
            }
            .with_room_for_addresses(room.limits.addresses)
            .with_return_addresses(finder_of_chains(recording, options).filter(|_| options.dimensions.stacks))
            .counting_hidden_callers(options.dimensions.stacks && hides_callers(recording)),
            unwinder: SampleUnwinder::of_options(recording, options),
            launches,
            totals,
            keyed: 0,
            has_stacks: options.dimensions.stacks,
            functions: options.functions.clone().filter(|_| options.dimensions.stacks),
            launched: 0,
            launch_cells: Vec::new(),
            sampled: None,
            lost_until: FxHashMap::default(),
            lost_in_all: LostInAll::default(),
            samples,
            room,
            is_too_large: false,
            missing,
            counted: options.counted,
            lent: recording.lent_readings().unwrap_or_default(),
            numberings: Vec::new(),
            turn: 0,
            hidden_from_workers: HiddenCallers::default(),
            tell,
        }
    }

    /// Tells the readings up to a time that the recording was given.
    #[inline]
    fn lent_until(&mut self, now: Timestamp) {
        while let Some((&LentReading { domain, time, energy }, rest)) = self.lent.split_first()
            && time <= now
        {
            self.lent = rest;
            (self.tell)(Step::Reading { domain, time, energy });
            self.launches.reading(domain as usize, time, energy);
        }
    }

    fn record(&mut self, at: RecordPosition, context: &RecordContext, record: &Record<'_>) {
        if let Some(time) = context.time {
            self.jit.advance(time, &mut self.tasks);
        }
        if let Record::Sample(sample) = record {
            return self.sample(at, context, sample);
        }
        follow(record, &mut self.tasks, &mut self.jit);
        match record {
            Record::Fork(change) => {
                self.missing.started(change, context);
                self.launches.forked(change);
            }
            Record::Exit(change) => {
                self.missing.ended(change.tid, context);
                self.launches.ended(change.pid, change.tid, context.time);
            }
            Record::Lost { count } => self.lost(context, *count),
            // Of a part of the time they tell nothing.
            Record::LostInAll { count } if self.counted.is_none() => {
                self.lost_in_all.told(self.sampled_event(context).unwrap_or(0), *count);
            }
            Record::Read { value, .. } => {
                let event = self.sampled_event(context);
                let told =
                    event.and_then(|event| self.missing.read(event as u32, context, value, self.roles));
                told.into_iter().for_each(|told| self.charge(told));
            }
            Record::Throttle(true) => {
                if let Some(totals) = self.sampled_event(context).and_then(|i| self.totals.get_mut(i)) {
                    totals.throttled += 1;
                }
            }
            _ => {}
        }
    }

    fn sample(&mut self, at: RecordPosition, context: &RecordContext, sample: &Sample<'_>) {
        match self.roles.of(context.event.map(|event| event.0)) {
            Some(EventRole::Sampled(event)) => self.program_sample(at, context, event, sample),
            Some(EventRole::Energy(domain)) => {
                if let (Some(time), Some(reading)) = (context.time, EnergyReading::from_bytes(sample.raw)) {
                    (self.tell)(Step::Reading { domain, time, energy: reading.energy });
                    self.launches.reading(domain as usize, time, reading.energy);
                }
            }
            Some(EventRole::CpuTimes) => {
                let times = CpuTimes::with_target_from_bytes(sample.raw);
                if let (Some(time), Some((times, own))) = (context.time, times) {
                    let told = self.missing.cpu_times(time, &own);
                    told.into_iter().for_each(|told| self.charge(told));
                    (self.tell)(Step::CpuTimes(time, Box::new((times, own))));
                }
            }
            Some(EventRole::Gpu(call)) => self.gpu_call(at, context, call, sample),
            Some(
                EventRole::Metadata
                | EventRole::KernelName
                | EventRole::Context
                | EventRole::GpuActivity
                | EventRole::Superseded,
            )
            | None => {}
        }
    }

    fn program_sample(
        &mut self,
        at: RecordPosition,
        context: &RecordContext,
        event: u32,
        sample: &Sample<'_>,
    ) {
        let about = &self.roles.sampled()[event as usize];
        let count = sample.period.or(about.fixed_period).unwrap_or(1);
        let unit = about.unit;
        let pid = context.pid.unwrap_or(0);
        let task = self.tasks.task(pid, context.tid.unwrap_or(pid));
        if let Some(cgroup) = sample.cgroup {
            self.tasks.in_cgroup(task, cgroup);
        }
        let time = context.time.unwrap_or_default();
        let elsewhere = self.whose.charge_elsewhere(&self.tasks, pid);
        if self.is_counted(time) {
            let totals = &mut self.totals[event as usize];
            totals.samples += 1;
            totals.count = totals.count.saturating_add(count);
            totals.of_others += u64::from(elsewhere.is_some());
        }
        if context.time.is_some() {
            let (first, last) = self.sampled.get_or_insert((time, time));
            *first = (*first).min(time);
            *last = (*last).max(time);
        }
        // A clock ticks on idle CPUs too; what they spend is the machine's, not a task's.
        let is_idle = pid == 0 && unit == EventUnit::Nanoseconds;
        let owner = match (elsewhere, &mut self.samples) {
            (Some(charge), _) => Owner::Charge { is_idle, charge },
            (None, Some(samples)) => {
                let cell = samples.push(at, event, count);
                Owner::Charge { is_idle, charge: Charge::Cell(cell) }
            }
            (None, None) => Owner::Cell { is_idle, key: self.key(at, task, sample) },
        };
        let cpu = context.cpu.unwrap_or(NO_CPU);
        let key = match owner {
            Owner::Cell { is_idle: false, key } => Some(key),
            _ => None,
        };
        self.missing.sampled(event, context, cpu, count, key);
        (self.tell)(Step::Sample(SampleStep { end: time, count, cpu, event, owner }));
    }

    /// Charges what has no sample to a function of its own, or to what has samples.
    fn charge(&mut self, told: WithoutSample) {
        // Where each sample is a cell, there is one for all that none of them is of.
        if self.samples.is_some() {
            return self.charge_to(Owner::Charge { is_idle: false, charge: Charge::Cell(0) }, &told);
        }
        let cell = |key| Owner::Cell { is_idle: false, key };
        let (task, name) = match told.of {
            WhoRan::Sampled(KeptKey::Present(key)) => return self.charge_to(cell(key), &told),
            WhoRan::Sampled(KeptKey::Ended(ref path, key)) => {
                let key = self.collector.key_of_path(path, key);
                return self.charge_to(cell(key), &told);
            }
            WhoRan::ShortProcesses(program) => (self.tasks.short_processes(program), SHORT_PROCESSES),
            WhoRan::InOtherMode(pid, name) => (self.tasks.task(pid, pid), name),
        };
        self.make_room();
        let code = self.tasks.not_sampled(name);
        let key = self.collector.bare_key(&mut self.tasks, task, code);
        self.charge_to(cell(key), &told);
    }

    fn charge_to(&mut self, owner: Owner, told: &WithoutSample) {
        let &WithoutSample { event, cpu, since, end, count, running, .. } = told;
        let step = SampleStep { end, count, cpu, event, owner };
        (self.tell)(Step::NotSampled(Box::new(NotSampledStep { since, running, step })));
    }

    /// Where the tables are full, ends a part or gives up call paths.
    #[inline]
    fn make_room(&mut self) {
        let is_full = self.collector.is_full() || self.room.cells_are_full.load(Ordering::Relaxed);
        if is_full && !self.is_too_large {
            self.end_part();
        }
    }

    #[cold]
    fn end_part(&mut self) {
        if self.room.in_parts {
            self.room.cells_are_full.store(false, Ordering::Relaxed);
            let paths = self.collector.take_paths();
            self.missing.part_ended(&paths);
            (self.tell)(Step::PartEnds(Box::new(paths)));
        } else {
            // Keys of samples before have callers that have no number any more, and their cells are those of their events.
            self.is_too_large = true;
            self.numberings.clear();
            self.collector.give_up_paths();
            (self.tell)(Step::TooLarge);
        }
    }

    fn key(&mut self, at: RecordPosition, task: TaskId, sample: &Sample<'_>) -> SampleKey {
        self.make_room();
        if let Some(numbering) = self.numberings.get_mut(self.turn) {
            let thread = self.collector.thread(&self.tasks, task);
            match self.collector.key_of(numbering, &mut self.tasks, at, thread) {
                Some(key) => return key,
                None => self.numberings.clear(),
            }
        }
        self.keyed += 1;
        if self.keyed == SAMPLES_BEFORE {
            self.merge_functions();
        }
        let unwound = unwound(&mut self.unwinder, &self.tasks, task, sample);
        self.collector.key(&mut self.tasks, task, sample, unwound)
    }

    /// Looks up the functions of all code that was met. In each pass it comes at the same sample, and finds the same.
    #[cold]
    fn merge_functions(&mut self) {
        let Some(FunctionsAlone { symbols, of_stacks }) = self.functions.take() else { return };
        let mut modules = self.tasks.modules().to_vec();
        add_build_ids(&mut modules, self.recording);
        let collector = &self.collector;
        let may_stand = |address| collector.may_stand(address);
        let functions = Functions::of(&symbols, &modules, collector.addresses(), may_stand);
        self.collector.merge_functions(functions, of_stacks);
    }

    /// A call that launches of GPU kernels are known by. Those of other processes are not the program's.
    fn gpu_call(&mut self, at: RecordPosition, context: &RecordContext, call: u32, sample: &Sample<'_>) {
        let (Some(pid), Some(time), Some(call)) = (context.pid, context.time, self.roles.gpu_call(call))
        else {
            return;
        };
        let tid = context.tid.unwrap_or(pid);
        // Probes see whoever calls, of whatever is sampled.
        if !self.is_of_target(pid, tid) {
            self.launches.call_of_others(call.0, pid, tid, time);
            return;
        }
        let task = self.tasks.task(pid, tid);
        let Some(kernel) = self.launches.call(&mut self.tasks, task, call, context, sample) else { return };
        // Launches are the last of the events.
        let event = self.totals.len() as u32 - 1;
        if let Some(totals) = self.totals.last_mut() {
            totals.samples += 1;
            totals.count += 1;
        }
        match &mut self.samples {
            Some(samples) => self.launch_cells.push(samples.push(at, event, 1)),
            None => {
                let unwound = unwound(&mut self.unwinder, &self.tasks, task, sample);
                let key = self.collector.launch_key(&mut self.tasks, task, sample, unwound, kernel);
                let cpu = context.cpu.unwrap_or(NO_CPU);
                (self.tell)(Step::Launch { key, cpu, event });
            }
        }
        self.launches.launched(pid, tid, time, self.launched);
        self.launched += 1;
    }

    /// Is this thread one that was to be recorded?
    fn is_of_target(&self, pid: u32, tid: u32) -> bool {
        let Some(metadata) = self.whose.metadata else { return true };
        let descends = |root: &u32| self.tasks.descends_from(pid, *root);
        pid != metadata.recorder_pid
            && match &metadata.target {
                Target::System => true,
                Target::Command { pid: root, .. } => descends(root),
                Target::Processes(pids) => pids.iter().any(descends),
                Target::Threads(tids) => tids.contains(&tid) || self.launches.follows(tid),
            }
    }

    fn lost(&mut self, context: &RecordContext, count: u64) {
        self.missing.lost();
        let event = self.sampled_event(context).unwrap_or(0);
        let is_counted = context.time.is_none_or(|time| self.is_counted(time));
        let Some(totals) = self.totals.get_mut(event) else { return };
        if is_counted {
            totals.lost = totals.lost.saturating_add(count);
        }
        let Some(time) = context.time else { return };
        // Without a sample to go by, a loss weighs next to nothing beside samples, and is all there is where there are none.
        let about = self.roles.sampled().get(event);
        let usual = || about.and_then(|about| about.fixed_period).unwrap_or(1);
        let mean = totals.count.checked_div(totals.samples).unwrap_or_else(usual);
        // What was lost before has been told.
        let told = self.lost_until.insert(context.cpu, time);
        let since = told.or(self.sampled.map(|(first, _)| first)).map_or(time, |since| since.min(time));
        let (cpu, event) = (context.cpu, event as u32);
        (self.tell)(Step::Lost(Box::new(LostStep { end: time, cpu, records: count, event, mean, since })));
    }

    /// Whether what was recorded then counts here.
    #[inline]
    fn is_counted(&self, time: Timestamp) -> bool {
        self.counted.is_none_or(|counted| counted.has(time))
    }

    fn sampled_event(&self, context: &RecordContext) -> Option<usize> {
        match self.roles.of(context.event.map(|event| event.0))? {
            EventRole::Sampled(event) => Some(event as usize),
            _ => None,
        }
    }
}

//! The second pass: from records to the profile.

use rustc_hash::FxHashMap;

use super::collect::{Collected, Collector};
use super::estimate::estimate;
use super::events::{EventRole, EventRoles};
use super::intervals::cpus_of;
use super::jit::JitFunctions;
use super::launches::Launches;
use super::options::Options;
use super::plan::Plan;
use super::replay::Replay;
use super::samples::{SampleEnergy, SampleList};
use super::spans::{EventUnit, SpanTracker};
use super::survey::{Survey, survey};
use super::unwind::SampleUnwinder;
use crate::attribute::{self, Attribution, Attributor, Bucket, Charge, Quantum};
use crate::profile::{Division, DomainEnergy, ErrorTerms, EventTotals, Module, NO_CELL, Profile, TimeSlice};
use crate::recording::energy::{CpuTimes, EnergyReading};
use crate::recording::metadata::{DomainInfo, Metadata, Target};
use crate::recording::record::{Record, RecordContext, Sample};
use crate::recording::{RecordPosition, Recording};
use crate::timeline::{TaskId, Tasks};
use crate::units::{Joules, Nanoseconds, Timestamp};

/// Makes a profile of a recording. Damage in the recording ends or thins out the profile and is told
/// in its warnings.
pub fn analyze(recording: &Recording, options: &Options) -> Profile {
    let roles = EventRoles::new(recording);
    let survey = survey(recording, &roles);
    let mut run = Run::new(recording, &roles, &survey, options);
    let end = Replay::new(recording).for_each(|at, context, record| run.record(at, context, record));
    let mut profile = run.finish(&survey, options);
    add_build_ids(&mut profile.modules, recording);
    profile.warnings.extend(end.warnings());
    profile
}

/// The energy of single samples, as [`analyze`] attributes it. Memory holds all samples.
pub fn analyze_samples(recording: &Recording, options: &Options) -> SampleEnergy {
    let roles = EventRoles::new(recording);
    let survey = survey(recording, &roles);
    let mut run = Run::new(recording, &roles, &survey, options);
    run.samples = Some(SampleList::default());
    let end = Replay::new(recording).for_each(|at, context, record| run.record(at, context, record));
    let positions = run.samples.as_mut().map(SampleList::take_positions).unwrap_or_default();
    let mut profile = run.finish(&survey, options);
    profile.warnings.extend(end.warnings());
    SampleEnergy::new(positions, profile)
}

struct Run<'r> {
    roles: &'r EventRoles,
    metadata: Option<&'r Metadata>,
    tasks: Tasks,
    jit: JitFunctions,
    collector: Collector,
    unwinder: Option<SampleUnwinder>,
    spans: SpanTracker,
    attributor: Attributor,
    launches: Launches,
    time_event: Option<u32>,
    totals: Vec<EventTotals>,
    division: Option<Division>,
    errors: ErrorTerms,
    plan_warnings: Vec<String>,
    time_range: Option<(Timestamp, Timestamp)>,
    /// CPUs of the machine, where the recording tells.
    cpus_online: Option<u32>,
    /// Where every sample is a cell of its own.
    samples: Option<SampleList>,
}

/// `CLOCK_MONOTONIC` of the kernel's interface.
const CLOCK_MONOTONIC: i32 = 1;
/// How far back a sample's events can reach.
const HORIZON: Nanoseconds = Nanoseconds::from_millis(200);

impl<'r> Run<'r> {
    fn new(recording: &'r Recording, roles: &'r EventRoles, survey: &Survey, options: &Options) -> Self {
        let metadata = recording.metadata();
        let domains = metadata.map_or(&[][..], |metadata| &metadata.domains);
        let sampled = roles.sampled();
        let plan = Plan::new(metadata, roles, survey, options);
        let attribute_options = attribute::Options {
            bucket: plan.bucket,
            static_power: plan.static_power,
            horizon: HORIZON,
            keep_buckets: options.keep_buckets,
            sharing: plan.sharing,
            sensitivities: plan.division.is_some(),
        };
        let attributor = Attributor::new(
            domains,
            |domain| cpus_of(metadata, domain),
            plan.weights,
            attribute_options,
            metadata.is_some_and(|metadata| metadata.system_wide_samples),
        );
        let launches = Launches::new(recording, roles);
        let totals = sampled
            .iter()
            .map(|event| EventTotals {
                name: event.name.clone(),
                samples: 0,
                count: 0,
                lost: 0,
                throttled: 0,
            })
            .chain(launches.event())
            .collect();
        Self {
            roles,
            metadata,
            tasks: Tasks::default(),
            jit: JitFunctions::new(
                recording.events().iter().any(|event| event.attr.clock() == Some(CLOCK_MONOTONIC)),
            ),
            collector: Collector::new(options.dimensions),
            unwinder: SampleUnwinder::for_recording(recording, &options.symbolize)
                .filter(|_| options.dimensions.stacks),
            spans: SpanTracker::default(),
            attributor,
            launches,
            time_event: roles.time_event(),
            totals,
            errors: ErrorTerms {
                parameters: sampled.len() + 1,
                covariances: plan.covariances,
                ..ErrorTerms::default()
            },
            division: plan.division,
            plan_warnings: plan.warnings,
            time_range: None,
            cpus_online: recording.features().cpus.map(|count| count.online),
            samples: None,
        }
    }

    fn record(&mut self, at: RecordPosition, context: &RecordContext, record: &Record<'_>) {
        if let Some(time) = context.time {
            self.jit.advance(time, &mut self.tasks);
        }
        match record {
            Record::Sample(sample) => self.sample(at, context, sample),
            Record::Mmap(mmap) => {
                self.tasks.map(mmap);
                self.jit.mapped(mmap.path);
            }
            Record::Comm { pid, tid, name, exec } => self.tasks.rename(*pid, *tid, name, *exec),
            Record::Fork(change) => {
                self.tasks.fork(change);
                self.launches.forked(change);
            }
            Record::Exit(change) => self.launches.ended(change.pid, change.tid, context.time),
            Record::Ksymbol { address, length, unregistered: false, name } => {
                self.tasks.kernel_symbol(*address, *length, name);
            }
            Record::Lost { count } => self.lost(context, *count),
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
                    self.attributor.reading(domain as usize, time, reading.energy);
                    self.launches.reading(domain as usize, time, reading.energy);
                }
            }
            Some(EventRole::CpuTimes) => {
                let times = CpuTimes::with_target_from_bytes(sample.raw);
                if let (Some(time), Some((times, own))) = (context.time, times) {
                    self.attributor.cpu_times(time, &times);
                    self.attributor.own_times(time, &own);
                }
            }
            Some(EventRole::Gpu(call)) => self.gpu_call(at, context, call, sample),
            Some(
                EventRole::Metadata | EventRole::KernelName | EventRole::Context | EventRole::GpuActivity,
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
        let time = context.time.unwrap_or_default();
        let span = self.spans.span(event, context.cpu, unit, time, count);
        let tells_time = self.time_event == Some(event);
        let running = if tells_time { span.running } else { Nanoseconds::ZERO };
        let totals = &mut self.totals[event as usize];
        totals.samples += 1;
        totals.count = totals.count.saturating_add(count);
        if context.time.is_some() {
            let (first, last) = self.time_range.get_or_insert((time, time));
            *first = (*first).min(time);
            *last = (*last).max(time);
        }
        let charge = match (self.charge_elsewhere(pid), &mut self.samples) {
            (Some(charge), _) => charge,
            (None, Some(samples)) => Charge::Cell(samples.push(at, event, count, running)),
            (None, None) => Charge::Cell(self.cell(context, task, event, sample, count, running)),
        };
        let cell = if let Charge::Cell(cell) = charge { cell } else { NO_CELL };
        let stream = context.cpu.map_or(0, |cpu| cpu.min(8191) + 1) * self.totals.len() as u32 + event;
        self.errors.trail.push(stream, cell);
        // A clock ticks on idle CPUs too; what they spend is the machine's, not a task's.
        let idle = pid == 0 && unit == EventUnit::Nanoseconds;
        if !idle {
            let cpu = context.cpu;
            self.attributor.quantum(Quantum {
                start: span.start,
                end: time,
                cpu,
                event,
                count,
                running,
                charge,
            });
        }
    }

    fn cell(
        &mut self,
        context: &RecordContext,
        task: TaskId,
        event: u32,
        sample: &Sample<'_>,
        count: u64,
        running: Nanoseconds,
    ) -> u32 {
        let unwound = match &mut self.unwinder {
            Some(unwinder) => unwinder.unwind(&self.tasks, task, sample),
            None => &[],
        };
        let cell = self.collector.cell(&mut self.tasks, task, context.cpu, event, sample, unwound);
        self.collector.count(cell, count, running);
        cell
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
        let cell = match &mut self.samples {
            Some(samples) => samples.push(at, event, 1, Nanoseconds::ZERO),
            None => {
                let unwound = match &mut self.unwinder {
                    Some(unwinder) => unwinder.unwind(&self.tasks, task, sample),
                    None => &[],
                };
                let cell = self.collector.launch_cell(
                    &mut self.tasks,
                    task,
                    context.cpu,
                    event,
                    sample,
                    unwound,
                    kernel,
                );
                self.collector.count(cell, 1, Nanoseconds::ZERO);
                cell
            }
        };
        self.launches.launched(pid, tid, time, cell);
    }

    /// Is this thread one that was to be recorded?
    fn is_of_target(&self, pid: u32, tid: u32) -> bool {
        let Some(metadata) = self.metadata else { return true };
        let descends = |root: &u32| self.tasks.descends_from(pid, *root);
        pid != metadata.recorder_pid
            && match &metadata.target {
                Target::System => true,
                Target::Command { pid: root, .. } => descends(root),
                Target::Processes(pids) => pids.iter().any(descends),
                Target::Threads(tids) => tids.contains(&tid) || self.launches.follows(tid),
            }
    }

    /// Where a sample goes that is not the program's, in a recording of everything for one program.
    fn charge_elsewhere(&self, pid: u32) -> Option<Charge> {
        let metadata = self.metadata?;
        if pid == metadata.recorder_pid {
            return Some(Charge::Recorder);
        }
        if !metadata.system_wide_samples {
            return None;
        }
        let ours = match &metadata.target {
            Target::System => true,
            Target::Command { pid: root, .. } => self.tasks.descends_from(pid, *root),
            Target::Processes(pids) => pids.iter().any(|root| self.tasks.descends_from(pid, *root)),
            Target::Threads(_) => true,
        };
        (!ours).then_some(Charge::OtherProcess)
    }

    fn lost(&mut self, context: &RecordContext, count: u64) {
        let event = self.sampled_event(context).unwrap_or(0);
        let Some(totals) = self.totals.get_mut(event) else { return };
        totals.lost = totals.lost.saturating_add(count);
        let Some(time) = context.time else { return };
        let mean = totals.count.checked_div(totals.samples).unwrap_or(0);
        let unit = self.roles.sampled()[event].unit;
        let events = mean.saturating_mul(count);
        let span = self.spans.span(event as u32, context.cpu, unit, time, events);
        let running = if self.time_event == Some(event as u32) { span.running } else { Nanoseconds::ZERO };
        self.attributor.quantum(Quantum {
            start: span.start,
            end: time,
            cpu: context.cpu,
            event: event as u32,
            count: events,
            running,
            charge: Charge::Lost,
        });
    }

    fn sampled_event(&self, context: &RecordContext) -> Option<usize> {
        match self.roles.of(context.event.map(|event| event.0))? {
            EventRole::Sampled(event) => Some(event as usize),
            _ => None,
        }
    }

    fn finish(self, survey: &Survey, options: &Options) -> Profile {
        let attribution = self.attributor.finish();
        let jit_warnings = self.jit.into_warnings();
        let Collected { cells, stacks, addresses, without_callers } = self.collector.finish();
        let cells = self.samples.map_or(cells, SampleList::into_cells);
        let (modules, threads) = self.tasks.into_parts();
        let (start, end) = time_range(self.time_range, survey);
        let mut profile = Profile {
            start,
            duration: end.since(start),
            events: self.totals,
            modules,
            threads,
            addresses,
            stacks,
            cells,
            division: self.division,
            warnings: [jit_warnings, self.plan_warnings].concat(),
            ..Profile::default()
        };
        if let Some(metadata) = self.metadata {
            profile.cpus = metadata.machine.cpus.clone();
            profile.warnings.extend(metadata.warnings.iter().cloned());
            add_energy(&mut profile, &metadata.domains, attribution, self.errors);
            self.launches.settle(&mut profile);
        }
        if let Some(watts) = options.watts
            && profile.domains.is_empty()
        {
            let seen = survey.highest_cpu.map_or(1, |cpu| cpu.saturating_add(1));
            let cpus = self.cpus_online.unwrap_or(seen);
            let (domain, joules) = estimate(&profile.cells, profile.duration, cpus, watts);
            profile.domains = vec![domain];
            profile.cell_variances = vec![0.0; joules.len()];
            profile.cell_joules = joules;
        }
        if without_callers > 0 {
            profile.warnings.push(format!(
                "{without_callers} samples are shown without their callers: there are too many different call \
                 stacks to keep them all"
            ));
        }
        for event in profile.events.iter().filter(|event| event.lost > 0) {
            profile.warnings.push(format!(
                "{} records were lost (event {}): the rings were full; lower the rate (-F) or raise \
                 kernel.perf_event_mlock_kb",
                event.lost, event.name
            ));
        }
        for event in profile.events.iter().filter(|event| event.throttled > 0) {
            profile.warnings.push(format!(
                "the kernel throttled event {} {} times: its rate was above kernel.perf_event_max_sample_rate",
                event.name, event.throttled
            ));
        }
        profile
    }
}

/// Mappings name the build-id themselves or the recorder lists it by path.
fn add_build_ids(modules: &mut [Module], recording: &Recording) {
    let listed: FxHashMap<&[u8], &[u8]> =
        recording.features().build_ids.iter().map(|listed| (&listed.path[..], &listed.id[..])).collect();
    for module in modules.iter_mut().filter(|module| module.build_id.is_none()) {
        module.build_id = listed.get(module.path.as_bytes()).map(|id| id.to_vec());
    }
}

fn add_energy(profile: &mut Profile, domains: &[DomainInfo], attribution: Attribution, errors: ErrorTerms) {
    let columns = domains.len();
    profile.domains = domains
        .iter()
        .zip(&attribution.ledgers)
        .map(|(info, ledger)| DomainEnergy {
            info: info.clone(),
            measured: ledger.measured,
            attributed: ledger.attributed,
            static_energy: ledger.static_energy,
            other_processes: ledger.other_processes,
            recorder: ledger.recorder,
            lost: ledger.lost,
        })
        .collect();
    let slice = |bucket: Bucket| TimeSlice {
        start: bucket.start,
        end: bucket.end,
        measured: bucket.measured,
        modelled: bucket.modelled,
        by_cell: bucket.by_cell,
    };
    profile.slices = attribution.buckets.into_iter().map(slice).collect();
    // Cells that never got a quantum have no row yet.
    profile.cell_joules = attribution.cell_joules;
    profile.cell_joules.resize(profile.cells.len() * columns, Joules::ZERO);
    profile.cell_variances = attribution.cell_variances;
    profile.cell_variances.resize(profile.cells.len() * columns, 0.0);
    if profile.division.is_some() {
        let mut sensitivities = attribution.sensitivities;
        sensitivities.resize(profile.cells.len() * columns * errors.parameters, 0.0);
        profile.errors = Some(ErrorTerms { sensitivities, ..errors });
    }
    if attribution.refused_readings > 0 {
        profile.warnings.push(format!(
            "{} energy readings went backwards and were left out: a counter was reset or its clock jumped",
            attribution.refused_readings
        ));
    }
}

/// The recorded time: of the meters where there are any, else of the samples.
fn time_range(sampled: Option<(Timestamp, Timestamp)>, survey: &Survey) -> (Timestamp, Timestamp) {
    let readings = || survey.readings.iter().flatten();
    let first = readings().map(|[(time, _), _]| *time).min();
    let last = readings().map(|[_, (time, _)]| *time).max();
    let sampled = sampled.unwrap_or_default();
    (first.unwrap_or(sampled.0), last.unwrap_or(sampled.1))
}

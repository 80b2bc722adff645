//! What samples do not tell of and something else does: told as it comes, and warned of where nothing tells it.

use perf_data::record::{ReadValue, RecordContext, TaskChange};

use crate::analyze::aggregate::missed_counts::MissedCounts;
use crate::analyze::aggregate::not_sampled::{NotSampled, Unseen};
use crate::analyze::aggregate::unsampled::Unsampled;
use crate::analyze::events::EventRoles;
use crate::analyze::intervals::counted::CounterReading;
use crate::analyze::intervals::unsampled_tasks::{UnsampledCount, UnsampledTasks};
use crate::analyze::options::Options;
use crate::profile::{EventTotals, SHORT_PROCESSES};
use crate::recording::Recording;
use crate::units::{Nanoseconds, Timestamp};

/// Compares samples with what else the recorder counted.
#[derive(Debug)]
pub(crate) struct MissingSamples {
    /// By a clock.
    not_sampled: Option<NotSampled>,
    /// By hardware events.
    tasks: Option<UnsampledTasks>,
    /// Only where neither of them can know.
    processes: Option<Unsampled>,
    /// Of recorders that write what all of their counters counted, where all samples are counted.
    missed: Option<MissedCounts>,
}

/// Events of the program between two times that have no sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WithoutSample {
    /// The process that they are booked to.
    pub pid: u32,
    /// What they are called where a function would be.
    pub name: &'static str,
    pub event: u32,
    pub cpu: u32,
    pub since: Timestamp,
    pub end: Timestamp,
    pub count: u64,
    /// How long the CPU ran for them.
    pub running: Nanoseconds,
}

impl MissingSamples {
    /// With `samples_alone` every sample is a cell of its own, and there is none for what has no sample.
    pub fn new(recording: &Recording, roles: &EventRoles, options: &Options, samples_alone: bool) -> Self {
        let not_sampled = NotSampled::new(recording, roles).filter(|_| !samples_alone);
        let of_eprof = recording.metadata().filter(|_| options.counted.is_none());
        Self {
            tasks: UnsampledTasks::new(recording, roles).filter(|_| !samples_alone),
            processes: Unsampled::new(recording).filter(|_| not_sampled.is_none() && !samples_alone),
            not_sampled,
            missed: of_eprof.map(|_| MissedCounts::default()),
        }
    }

    /// A task was started.
    pub fn started(&mut self, change: &TaskChange, time: Option<Timestamp>) {
        // What was there before has no time.
        if let (Some(tasks), Some(_)) = (&mut self.tasks, time) {
            tasks.started(change.tid);
        }
        if let Some(processes) = self.processes.as_mut().filter(|_| change.pid != change.parent_pid) {
            processes.started(change.pid);
        }
    }

    /// A task has ended.
    pub fn ended(&mut self, task: u32) {
        if let Some(tasks) = &mut self.tasks {
            tasks.ended(task);
        }
    }

    /// A sample, on a CPU or [`NO_CPU`](crate::analyze::sample_key::NO_CPU).
    #[inline]
    pub fn sampled(&mut self, event: u32, context: &RecordContext, cpu: u32, count: u64) {
        if let Some(not_sampled) = self.not_sampled.as_mut().filter(|of| of.event == event) {
            not_sampled.sampled(cpu, count);
        }
        if let (Some(tasks), Some(task)) = (&mut self.tasks, context.tid) {
            tasks.sampled(event, task, cpu, count);
        }
        if let Some(processes) = &mut self.processes {
            processes.sampled(context.pid.unwrap_or(0));
        }
    }

    /// Records were lost, and these have a row of their own.
    pub fn lost(&mut self) {
        self.not_sampled = None;
        self.tasks = None;
    }

    /// CPU times were read; `own` is the program's, by CPU.
    pub fn cpu_times(&mut self, time: Timestamp, own: &[(u32, Nanoseconds)]) -> Vec<WithoutSample> {
        if let Some(tasks) = &mut self.tasks {
            tasks.round(time);
        }
        let Some(not_sampled) = self.not_sampled.as_mut().filter(|_| !own.is_empty()) else {
            return Vec::new();
        };
        let unseen = not_sampled.counted(time, own);
        let (pid, name, event) = (not_sampled.pid, not_sampled.name(), not_sampled.event);
        let told = |Unseen { cpu, since, time: running }| {
            let count = running.as_nanos();
            WithoutSample { pid, name, event, cpu, since, end: time, count, running }
        };
        unseen.into_iter().map(told).collect()
    }

    /// A counter of an event was read.
    pub fn read(
        &mut self,
        event: u32,
        context: &RecordContext,
        value: &ReadValue,
        roles: &EventRoles,
    ) -> Option<WithoutSample> {
        let &ReadValue { value, time_enabled, time_running, id, .. } = value;
        if let Some(missed) = &mut self.missed {
            missed.counted(id.unwrap_or(0), event as usize, value);
        }
        let (tasks, time, cpu) = (self.tasks.as_mut()?, context.time?, context.cpu?);
        let (enabled, running) = (time_enabled.unwrap_or(0), time_running.unwrap_or(0));
        let unsampled = tasks.reading(event, cpu, CounterReading { time, value, enabled, running })?;
        let UnsampledCount { since, until: end, count, running } = unsampled;
        let running = if roles.tells_time(event) { running } else { Nanoseconds::ZERO };
        let (pid, name) = (tasks.program(), SHORT_PROCESSES);
        Some(WithoutSample { pid, name, event, cpu, since, end, count, running })
    }

    /// What must be known of processes of which nothing tells.
    pub fn warning_of_processes(&self) -> Option<String> {
        let are_told = self.tasks.as_ref().is_some_and(UnsampledTasks::has_told);
        self.processes.as_ref().filter(|_| !are_told).and_then(Unsampled::warning)
    }

    /// What must be known of these events, of which `made_up` tells what samples stand for beyond their periods: see
    /// [`MissedCounts::warnings`].
    pub fn warnings_of_counts(
        &self,
        events: &[EventTotals],
        made_up: impl Fn(usize) -> Option<u64>,
    ) -> Vec<String> {
        let known =
            |event: usize| self.tasks.as_ref().map(|tasks| tasks.known(event as u32)).unwrap_or_default();
        self.missed.as_ref().map(|missed| missed.warnings(events, made_up, known)).unwrap_or_default()
    }
}

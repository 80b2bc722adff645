//! What samples do not tell of and something else does: told as it comes, and warned of where nothing tells it.

use perf_data::record::{ReadValue, RecordContext, TaskChange};

use crate::analyze::aggregate::late_ticks::{KeptKey, LatestSamples};
use crate::analyze::aggregate::missed_counts::MissedCounts;
use crate::analyze::aggregate::not_sampled::{NotSampled, Unseen};
use crate::analyze::aggregate::unsampled::Unsampled;
use crate::analyze::events::EventRoles;
use crate::analyze::intervals::counted::CounterReading;
use crate::analyze::intervals::unsampled_tasks::{UnsampledCount, UnsampledTasks};
use crate::analyze::options::Options;
use crate::analyze::sample_key::{NO_CPU, SampleKey};
use crate::profile::{EventTotals, SHORT_PROCESSES, StackTable};
use crate::recording::Recording;
use crate::units::{Nanoseconds, Timestamp};

/// Compares samples with what else the recorder counted.
#[derive(Debug)]
pub(crate) struct MissingSamples {
    /// By a clock.
    not_sampled: Option<NotSampled>,
    latest: LatestSamples,
    /// By hardware events.
    tasks: Option<UnsampledTasks>,
    /// Only where neither of them can know.
    processes: Option<Unsampled>,
    /// Of recorders that write what all of their counters counted, where all samples are counted.
    missed: Option<MissedCounts>,
}

/// Who they were of.
#[derive(Debug)]
pub(crate) enum WhoRan {
    /// Processes that ended before their first sample, of the program whose process this is.
    ShortProcesses(u32),
    /// This process, in a mode that was not sampled: so it is called where a function would be.
    InOtherMode(u32, &'static str),
    /// What has samples of this key.
    Sampled(KeptKey),
}

/// Events of the program between two times that have no sample.
#[derive(Debug)]
pub(crate) struct WithoutSample {
    pub of: WhoRan,
    pub event: u32,
    pub cpu: u32,
    pub since: Timestamp,
    pub end: Timestamp,
    pub count: u64,
    /// How long the CPU ran for them.
    pub running: Nanoseconds,
}

impl MissingSamples {
    /// Of a recording.
    pub fn new(recording: &Recording, roles: &EventRoles, options: &Options) -> Self {
        let not_sampled = NotSampled::new(recording, roles);
        let of_eprof = recording.metadata().filter(|_| options.counted.is_none());
        Self {
            tasks: UnsampledTasks::new(recording, roles),
            processes: Unsampled::new(recording).filter(|_| not_sampled.is_none()),
            not_sampled,
            latest: LatestSamples::default(),
            missed: of_eprof.map(|_| MissedCounts::default()),
        }
    }

    /// A task was started.
    pub fn started(&mut self, change: &TaskChange, context: &RecordContext) {
        // What was there before has no time.
        if let (Some(tasks), Some(_)) = (&mut self.tasks, context.time) {
            tasks.started(change.tid);
        }
        if let (Some(not_sampled), Some(time)) = (&mut self.not_sampled, context.time) {
            not_sampled.started(change.tid, time, context.cpu.unwrap_or(NO_CPU));
        }
        if let Some(processes) = self.processes.as_mut().filter(|_| change.pid != change.parent_pid) {
            processes.started(change.pid);
        }
    }

    /// A task has ended.
    pub fn ended(&mut self, task: u32, context: &RecordContext) {
        if let Some(tasks) = &mut self.tasks {
            tasks.ended(task);
        }
        if let (Some(not_sampled), Some(time)) = (&mut self.not_sampled, context.time) {
            not_sampled.ended(task, time, context.cpu.unwrap_or(NO_CPU));
        }
    }

    /// A sample, on a CPU or [`NO_CPU`], with its key if it is the program's.
    #[inline]
    pub fn sampled(
        &mut self,
        event: u32,
        context: &RecordContext,
        cpu: u32,
        count: u64,
        key: Option<SampleKey>,
    ) {
        if let Some(not_sampled) = self.not_sampled.as_mut().filter(|of| of.event == event) {
            not_sampled.sampled(context.tid.unwrap_or(0), cpu, count);
            if let (Some(time), Some(key)) = (context.time, key.filter(|_| not_sampled.tells_of_ticks())) {
                self.latest.sampled(cpu, time, count, key);
            }
        }
        if let (Some(tasks), Some(task)) = (&mut self.tasks, context.tid) {
            tasks.sampled(event, task, cpu, count);
        }
        if let Some(processes) = &mut self.processes {
            processes.sampled(context.pid.unwrap_or(0));
        }
    }

    /// A part has ended, in which paths had these numbers.
    pub fn part_ended(&mut self, paths: &StackTable) {
        self.latest.part_ended(paths);
    }

    /// Records were lost, and these have a row of their own.
    pub fn lost(&mut self) {
        self.not_sampled = None;
        self.tasks = None;
    }

    /// CPU times were read; `own` is the program's, by CPU. What samples have keys of comes first.
    pub fn cpu_times(&mut self, time: Timestamp, own: &[(u32, Nanoseconds)]) -> Vec<WithoutSample> {
        if let Some(tasks) = &mut self.tasks {
            tasks.round(time);
        }
        let Some(not_sampled) = self.not_sampled.as_mut().filter(|_| !own.is_empty()) else {
            return Vec::new();
        };
        let (pid, name, event) = (not_sampled.pid, not_sampled.name(), not_sampled.event);
        let (mut of_samples, mut of_others) = (Vec::new(), Vec::new());
        for unseen in not_sampled.counted(time, own) {
            let Unseen { cpu, since, time: running, is_of_sampled } = unseen;
            let told = |of, running: Nanoseconds| {
                let count = running.as_nanos();
                WithoutSample { of, event, cpu, since, end: time, count, running }
            };
            if is_of_sampled {
                let shared = self.latest.share_out(cpu, running.as_nanos() as f64);
                if shared.is_empty() {
                    not_sampled.take_back(&unseen);
                }
                of_samples.extend(shared.into_iter().map(|(key, part)| told(WhoRan::Sampled(key), part)));
            } else if name == SHORT_PROCESSES {
                of_others.push(told(WhoRan::ShortProcesses(pid), running));
            } else {
                of_others.push(told(WhoRan::InOtherMode(pid, name), running));
            }
        }
        self.latest.begin();
        of_samples.extend(of_others);
        of_samples
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
        let of = WhoRan::ShortProcesses(tasks.program());
        Some(WithoutSample { of, event, cpu, since, end, count, running })
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

#[cfg(test)]
mod tests {
    use perf_data::attr::flag;

    use super::*;
    use crate::analyze::fixture::{recording_of_clock, recording_of_cycles};
    use crate::recording::metadata::Target;

    #[test]
    fn what_was_lost_is_not_told_as_what_was_not_sampled() {
        let target = Target::Command { argv: vec!["app".to_owned()], pid: 50 };
        let recording = recording_of_clock(target, false, flag::EXCLUDE_KERNEL);
        let roles = EventRoles::new(&recording);
        let told = |is_lost: bool| {
            let mut missing = MissingSamples::new(&recording, &roles, &Options::default());
            if is_lost {
                missing.lost();
            }
            // A tenth of a second of the program, of which no sample tells.
            let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
            let own = |millis: u64| [(0, Nanoseconds::from_millis(millis))];
            assert!(missing.cpu_times(at(0), &own(0)).is_empty());
            let told = missing.cpu_times(at(100), &own(100));
            told.iter().map(|of| of.running).collect::<Vec<_>>()
        };
        assert_eq!((told(false), told(true)), (vec![Nanoseconds::from_millis(100)], Vec::new()));
    }

    /// Of hardware events: counters that are read while they count have what processes without samples took.
    #[test]
    fn processes_without_samples_are_warned_of_unless_counters_tell_of_them() {
        let recording = recording_of_cycles(Target::Command { argv: vec!["app".to_owned()], pid: 50 });
        let roles = EventRoles::new(&recording);
        let mut missing = MissingSamples::new(&recording, &roles, &Options::default());
        let context = |millis: u64| RecordContext {
            time: Some(Timestamp::from_nanos(millis * 1_000_000)),
            cpu: Some(0),
            ..RecordContext::default()
        };
        for pid in 100..130 {
            let change = TaskChange { pid, tid: pid, parent_pid: 50, parent_tid: 50 };
            missing.started(&change, &context(0));
        }
        let warning = missing.warning_of_processes().expect("none of them was sampled");
        assert!(warning.starts_with("30 of 30 processes"), "{warning}");
        for millis in [1, 2] {
            missing.read(0, &context(millis), &ReadValue::default(), &roles);
        }
        assert_eq!(missing.warning_of_processes(), None);
    }
}

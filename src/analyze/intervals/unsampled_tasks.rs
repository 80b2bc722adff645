//! What hardware events counted of tasks that ended before their first sample.
//!
//! A counter that follows a program begins a new period in each task that the program starts: one that ends within its
//! first period leaves no sample, and a shell that starts thousands of them seems to have done nothing. The counter itself
//! has them all. What it counted more than samples stand for is
//!
//! - the period that each sampled task was in when it ended, half of one on average, on each CPU that it ran on;
//! - all of the tasks that have no sample, less than a period each;
//! - what interrupts that came late or never have left out.
//!
//! The second is told here: what is left without the first, and no more than there can be. Of an event of long periods a task
//! that ended has less than half of one: what share of the missing counts is whose, the event with most samples tells.

use rustc_hash::FxHashMap;

use crate::analyze::events::{EventRoles, EventUnit};
use crate::recording::Recording;
use crate::recording::metadata::Target;
use crate::units::{Nanoseconds, Timestamp};

use super::counted::CounterReading;

/// Of fewer tasks without a sample nothing is told: a shell that waits, the ends of a pipe.
const WORTH_TELLING: u64 = 20;

/// Compares counters of one program, and of all that it starts, with their samples.
#[derive(Debug, Clone)]
pub(crate) struct UnsampledTasks {
    program: u32,
    events: Vec<OfEvent>,
    /// The CPUs on which living tasks have been sampled.
    sampled: FxHashMap<u32, Vec<u32>>,
    /// Tasks so far.
    tasks: u64,
    sampled_tasks: u64,
    /// Pairs of a task and a CPU that it was sampled on.
    sampled_places: u64,
    /// When the recorder began to read what counters of tasks have gone on, and when before that.
    rounds: [Option<Timestamp>; 2],
    has_told: bool,
}

#[derive(Debug, Clone, Default)]
struct OfEvent {
    /// Its ticks are time, or the tasks' counters do not tell of it.
    is_left_out: bool,
    period: Option<u64>,
    samples: u64,
    count: u64,
    cpus: FxHashMap<u32, OfCounter>,
}

impl OfEvent {
    fn missing(&self) -> f64 {
        self.cpus.values().map(OfCounter::missing).sum()
    }

    fn told(&self) -> f64 {
        self.cpus.values().map(|counter| counter.told).sum()
    }

    /// What a sample stands for; `None` of a frequency before there is one.
    fn period(&self) -> Option<f64> {
        self.count.checked_div(self.samples).or(self.period).map(|period| period as f64)
    }
}

/// Of one event on one CPU.
#[derive(Debug, Clone, Copy, Default)]
struct OfCounter {
    /// What samples stand for.
    sampled: u64,
    /// The first reading's value, and what samples stood for then.
    first: Option<(u64, u64)>,
    latest: Option<CounterReading>,
    /// What was told so far.
    told: f64,
}

impl OfCounter {
    /// What was counted since the first reading, and not sampled.
    fn missing(&self) -> f64 {
        let Some(((value, sampled), latest)) = self.first.zip(self.latest) else { return 0.0 };
        let counted = latest.value.saturating_sub(value);
        counted.saturating_sub(self.sampled.saturating_sub(sampled)) as f64
    }
}

/// Events on one CPU of which no sample tells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnsampledCount {
    /// They happened between these times.
    pub since: Timestamp,
    pub until: Timestamp,
    pub count: u64,
    /// How long the tasks ran for them.
    pub running: Nanoseconds,
}

/// Events of which no sample tells, and that are known all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Known {
    /// Of tasks without samples.
    pub told: f64,
    /// Of tasks with samples, after the last of them.
    pub unfinished: f64,
}

impl UnsampledTasks {
    /// Only of one program that was sampled alone, by hardware events: a clock's samples are compared with CPU time.
    pub fn new(recording: &Recording, roles: &EventRoles) -> Option<Self> {
        let metadata = recording.metadata()?;
        let program = match &metadata.target {
            Target::Command { pid, .. } => *pid,
            Target::Processes(pids) => *pids.first().filter(|_| pids.len() == 1)?,
            Target::Threads(_) | Target::System => return None,
        };
        let events: Vec<OfEvent> = roles
            .sampled()
            .iter()
            .map(|event| OfEvent {
                is_left_out: event.unit == EventUnit::Nanoseconds,
                period: event.fixed_period,
                ..OfEvent::default()
            })
            .collect();
        // Without an event that tells time others cannot be weighed beside what is told here, and would have nothing of its time.
        let is_any = events.iter().any(|event| !event.is_left_out) && roles.any_tells_time();
        (is_any && !metadata.system_wide_samples).then(|| Self::of(program, events))
    }

    fn of(program: u32, events: Vec<OfEvent>) -> Self {
        Self {
            program,
            events,
            sampled: FxHashMap::default(),
            // The program's first.
            tasks: 1,
            sampled_tasks: 0,
            sampled_places: 0,
            rounds: [None; 2],
            has_told: false,
        }
    }

    /// The process that all of it is booked to.
    pub fn program(&self) -> u32 {
        self.program
    }

    /// A task was started, maybe by the number of one that has ended.
    pub fn started(&mut self, task: u32) {
        self.sampled.remove(&task);
        self.tasks += 1;
    }

    /// A task ended.
    pub fn ended(&mut self, task: u32) {
        self.sampled.remove(&task);
    }

    /// A sample of a task.
    pub fn sampled(&mut self, event: u32, task: u32, cpu: u32, count: u64) {
        let places = self.sampled.entry(task).or_default();
        if places.is_empty() {
            self.sampled_tasks += 1;
        }
        if !places.contains(&cpu) {
            places.push(cpu);
            self.sampled_places += 1;
        }
        let Some(of_event) = self.events.get_mut(event as usize) else { return };
        of_event.samples += 1;
        of_event.count += count;
        of_event.cpus.entry(cpu).or_default().sampled += count;
    }

    /// The recorder is about to read the counters: those that have gone on since then are in the readings that follow.
    pub fn round(&mut self, time: Timestamp) {
        self.rounds = [Some(time), self.rounds[0]];
    }

    /// A reading of the program's counter of an event on a CPU: what is new of it that is of tasks without samples.
    pub fn reading(&mut self, event: u32, cpu: u32, reading: CounterReading) -> Option<UnsampledCount> {
        let without = self.tasks.saturating_sub(self.sampled_tasks);
        let counter =
            self.events.get_mut(event as usize).filter(|of| !of.is_left_out)?.cpus.entry(cpu).or_default();
        counter.first.get_or_insert((reading.value, counter.sampled));
        let before = counter.latest.replace(reading)?;
        self.has_told = true;
        let share = self.share_of_unsampled();
        let of_event = self.events.get_mut(event as usize)?;
        let (missing, period) = (of_event.missing(), of_event.period()?);
        if without < WORTH_TELLING || missing <= 0.0 {
            return None;
        }
        let of_tasks = (missing * share).min(without as f64 * period);
        let counter = of_event.cpus.get_mut(&cpu)?;
        // What was once told is never taken back.
        let new = (counter.missing() * of_tasks / missing - counter.told).round();
        if new < 1.0 {
            return None;
        }
        counter.told += new;
        let pace = reading.running as f64 / reading.value.max(1) as f64;
        // Between the round before this one and this one: a counter that has stood still for long has no reading of it.
        let since = self.rounds[1].map_or(before.time, |round| round.max(before.time)).min(reading.time);
        Some(UnsampledCount {
            since,
            until: reading.time,
            count: new as u64,
            running: Nanoseconds::from_nanos((new * pace) as u64),
        })
    }

    /// The share of what is missing that is of tasks without samples, by the event that tells most of it.
    fn share_of_unsampled(&self) -> f64 {
        let counted = self.events.iter().filter(|event| !event.is_left_out);
        let Some(event) = counted.max_by_key(|event| event.samples) else { return 0.0 };
        let (missing, period) = (event.missing(), event.period().unwrap_or(0.0));
        let unfinished = self.sampled_places as f64 * period / 2.0;
        if missing > 0.0 { (1.0 - unfinished / missing).max(0.0) } else { 0.0 }
    }

    /// Whether counters were read while they counted: what is theirs was told.
    pub fn has_told(&self) -> bool {
        self.has_told
    }

    /// Events that are known of besides samples: those that were told, and those of the periods that sampled tasks were in
    /// when they ended.
    pub fn known(&self, event: u32) -> Known {
        let Some(of_event) = self.events.get(event as usize) else { return Known::default() };
        let (told, period) = (of_event.told(), of_event.period().unwrap_or(0.0));
        let unfinished =
            (self.sampled_places as f64 * period / 2.0).min((of_event.missing() - told).max(0.0));
        if told > 0.0 { Known { told, unfinished } } else { Known::default() }
    }

    /// How many samples one of the event stands for where tasks without samples were told of: all that is still missing is of
    /// tasks that have some.
    pub fn weight_of_samples(&self, event: u32) -> f64 {
        let Some(of_event) = self.events.get(event as usize) else { return 1.0 };
        let (missing, told) = (of_event.missing(), of_event.told());
        match told > 0.0 && of_event.count > 0 {
            true => 1.0 + (missing - told).max(0.0) / of_event.count as f64,
            false => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 100;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    /// Two nanoseconds for each event.
    fn reading(millis: u64, value: u64) -> CounterReading {
        CounterReading { time: at(millis), value, enabled: 10 * value, running: 2 * value }
    }

    /// A program whose first task is sampled so often on CPU 3, beside so many tasks that are not.
    fn program(samples: u64, others: u32) -> UnsampledTasks {
        let event = OfEvent { period: Some(PERIOD), ..OfEvent::default() };
        let mut tasks = UnsampledTasks::of(50, vec![event]);
        assert_eq!(tasks.reading(0, 3, reading(0, 0)), None);
        tasks.round(at(0));
        (0..samples).for_each(|_| tasks.sampled(0, 50, 3, PERIOD));
        (0..others).for_each(|number| tasks.started(100 + number));
        tasks
    }

    /// What is told of a counter that is read once.
    fn told(tasks: &mut UnsampledTasks, value: u64) -> Option<u64> {
        tasks.reading(0, 3, reading(100, value)).map(|unsampled| unsampled.count)
    }

    #[test]
    fn what_the_counter_has_more_is_that_of_tasks_without_samples() {
        // 50 periods and a part of another of the first task, and 30 events each of 100 others.
        let mut tasks = program(50, 100);
        let told = tasks.reading(0, 3, reading(100, 8040));
        let running = Nanoseconds::from_nanos(2 * 2990);
        assert_eq!(told, Some(UnsampledCount { since: at(0), until: at(100), count: 2990, running }));
        assert_eq!(tasks.known(0), Known { told: 2990.0, unfinished: 50.0 });
        assert!((tasks.weight_of_samples(0) - (1.0 + 50.0 / 5000.0)).abs() < 1e-12);
        // Ten more of them, between the next two readings; later ones, with nothing more, tell nothing.
        (0..10).for_each(|number| tasks.started(300 + number));
        [at(100), at(200)].into_iter().for_each(|time| tasks.round(time));
        let told = tasks.reading(0, 3, reading(201, 8340)).expect("more");
        assert_eq!((told.since, told.until, told.count), (at(100), at(201), 300));
        assert_eq!(tasks.reading(0, 3, reading(300, 8340)), None);
        assert!(tasks.has_told());
    }

    #[test]
    fn each_cpu_has_what_is_missing_there() {
        let mut tasks = program(50, 100);
        tasks.reading(0, 7, reading(0, 0));
        assert_eq!(tasks.reading(0, 7, reading(100, 1000)).map(|told| told.count), Some(950));
        // 3000 more on the other: of all 4000 no more than the last half period is the first task's.
        let told = tasks.reading(0, 3, reading(100, 8000)).expect("more");
        assert_eq!(told.count, (3000.0f64 * 3950.0 / 4000.0).round() as u64);
    }

    #[test]
    fn what_late_interrupts_left_out_is_not_that_of_tasks() {
        assert_eq!(told(&mut program(50, 25), 500_000), Some(25 * PERIOD), "no more than a period of each");
        assert_eq!(told(&mut program(50, 19), 8000), None, "of a few tasks nothing");
        assert_eq!(
            told(&mut program(50, 20), 500_000),
            Some(20 * PERIOD),
            "and of twenty all that they can have"
        );
        let mut tasks = program(50, 0);
        assert_eq!((told(&mut tasks, 500_000), tasks.weight_of_samples(0)), (None, 1.0));
        assert_eq!(tasks.known(0), Known::default());
    }

    #[test]
    fn tasks_with_samples_ended_within_a_period_each() {
        let mut tasks = program(0, 0);
        for task in 100..200 {
            tasks.started(task);
            (0..4).for_each(|_| tasks.sampled(0, task, 3, PERIOD));
            tasks.ended(task);
        }
        assert_eq!(told(&mut tasks, 45_000), None);
        // Others got the numbers of those that had ended.
        (100..140).for_each(|task| tasks.started(task));
        assert_eq!(told(&mut tasks, 47_000), Some(2000));
    }

    #[test]
    fn a_counter_that_is_read_at_the_end_alone_tells_nothing() {
        let event = OfEvent { period: Some(PERIOD), ..OfEvent::default() };
        let mut tasks = UnsampledTasks::of(50, vec![event]);
        (0..100).for_each(|task| tasks.started(task));
        assert_eq!(told(&mut tasks, 8000), None);
        assert!(!tasks.has_told());
    }

    /// What the frequent event says of tasks holds for a rare one, of which half a period is more than all that they had.
    #[test]
    fn a_rare_event_is_shared_as_a_frequent_one_is() {
        let mut tasks = program(50, 100);
        tasks.events.push(OfEvent { period: Some(100 * PERIOD), ..OfEvent::default() });
        tasks.reading(1, 3, reading(0, 0));
        // Of 3040 events that are missing 2990 are theirs.
        assert_eq!(told(&mut tasks, 8040), Some(2990));
        let rare = tasks.reading(1, 3, reading(100, 1520)).expect("theirs");
        assert_eq!(rare.count, 1495);
    }

    #[test]
    fn events_without_a_sample_have_their_period() {
        assert_eq!(told(&mut program(0, 30), 1000), Some(1000));
        let mut tasks = UnsampledTasks::of(50, vec![OfEvent::default()]);
        (0..100).for_each(|task| tasks.started(task));
        tasks.reading(0, 3, reading(0, 0));
        assert_eq!(told(&mut tasks, 8000), None, "a frequency's period is not known before a sample");
    }

    #[test]
    fn samples_of_a_clock_are_not_compared_with_counters() {
        use crate::analyze::fixture::recording_of_clock;
        for system_wide in [false, true] {
            let target = Target::Command { argv: vec!["app".to_owned()], pid: 50 };
            let recording = recording_of_clock(target, system_wide, 0);
            assert!(UnsampledTasks::new(&recording, &EventRoles::new(&recording)).is_none());
        }
    }

    #[test]
    fn only_one_program_is_compared() {
        use crate::analyze::fixture::recording_of_cycles;
        let program = |target: Target| {
            let recording = recording_of_cycles(target);
            UnsampledTasks::new(&recording, &EventRoles::new(&recording)).map(|tasks| tasks.program())
        };
        assert_eq!(program(Target::Command { argv: vec!["app".to_owned()], pid: 50 }), Some(50));
        assert_eq!(program(Target::Processes(vec![60])), Some(60));
        assert_eq!(program(Target::Processes(vec![60, 70])), None);
        assert_eq!((program(Target::Threads(vec![60])), program(Target::System)), (None, None));
    }
}

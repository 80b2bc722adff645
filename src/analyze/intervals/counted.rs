//! What samples stand for, made up to what the counters counted.
//!
//! A sample stands for a period of its event's counts. Where interrupts come so late that the kernel leaves some out (in a
//! virtual machine that waits for its host), samples are missing that no record tells of; where events take turns on a counter,
//! samples stand for its turns alone; and a counter that the kernel stops for coming too often stands still until the next tick:
//! it would have gone on at the rate at which it was stopped. The recorder writes from time to time what each CPU's counters
//! counted. Between two of these readings all samples of the event on the CPU weigh the more, the more is missing.
//!
//! What samples are behind at a reading may still come: an interrupt is late, and a period is under way. Missing is only what
//! they never catch up with: at no later reading are they less behind.

use rustc_hash::FxHashMap;

use crate::units::{Nanoseconds, Timestamp};

use super::late_samples::{self, Gaps, LateSample, MadeUp};
use super::missing::Missing;
use super::spans::slot_of;

/// An event that was on a counter for more than this share of the time had it for itself.
const WHOLE_TIME: f64 = 0.99;
/// Readings of a counter that are kept; of more, every second one.
const MOST_READINGS: usize = 1 << 12;

/// Late samples that are kept.
const MOST_LATE: usize = 1 << 18;

/// Compares readings of counters with samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedSums {
    /// By CPU, then by event: what samples and losses stand for so far.
    cpus: Vec<Vec<Sampled>>,
    counters: FxHashMap<(u32, u32), Counter>,
    /// Of counters of tasks, by event and task and then by counter.
    of_tasks: FxHashMap<(u32, u32), FxHashMap<u64, Turns>>,
    late: Vec<LateSample>,
}

/// How long an event was to be counted, and was.
#[derive(Debug, Clone, Copy, Default)]
struct Turns {
    enabled: u64,
    running: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    count: u64,
    samples: u64,
    /// What is known to be lost.
    lost: u64,
    /// Since when the counter went on, and what samples stood for until then.
    resumed: Option<(Timestamp, u64)>,
    /// Since when the kernel has it stopped.
    stopped: Option<Timestamp>,
    /// What would have been counted while it was stopped.
    held_back: f64,
    gaps: Gaps,
}

impl Sampled {
    /// The kernel stops the counter. The sample that was one too many comes behind the record of that.
    fn stop(&mut self, time: Timestamp) {
        self.stopped.get_or_insert(time);
    }

    /// The kernel lets the counter go on, which takes it up where it was stopped: at a sample.
    fn resume(&mut self, time: Timestamp) {
        let Some(stopped) = self.stopped.take() else { return };
        if let Some((since, count)) = self.resumed {
            let (nanos, count) = (stopped.since(since).as_nanos(), self.count.saturating_sub(count));
            let rate = count as f64 / nanos.max(1) as f64;
            self.held_back += rate * time.since(stopped).as_nanos() as f64;
        }
        self.resumed = Some((time, self.count));
        self.gaps.forget();
    }
}

/// A CPU's counter of one event.
#[derive(Debug, Clone)]
struct Counter {
    latest: CounterReading,
    at_first: Sampled,
    /// Counts since the first reading, as if the counter had been the event's alone.
    counted: f64,
    /// What it would have counted while it was stopped, as of the latest reading.
    held_back: f64,
    readings: Vec<Compared>,
    /// Readings that are left out between two that are kept.
    stride: usize,
    left_out: usize,
}

/// What a counter says of itself, since it was opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CounterReading {
    pub time: Timestamp,
    pub value: u64,
    /// Nanoseconds the event was to be counted, and was.
    pub enabled: u64,
    pub running: u64,
}

/// A reading beside samples.
#[derive(Debug, Clone, Copy)]
struct Compared {
    time: Timestamp,
    /// What samples stood for since the first reading.
    sampled: u64,
    /// What they, and losses, were behind the counter. Below zero where a reading was taken after them.
    behind: f64,
}

/// How much samples weigh.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CountWeights {
    by_counter: FxHashMap<(u32, u32), Vec<Stretch>>,
    /// Late samples, in the order of time.
    late: FxHashMap<(u32, u32), Vec<MadeUp>>,
    /// Everywhere and all the time; empty if that is 1.
    by_event: Vec<f64>,
    /// The part of it that holds for what no sample tells of, too, and for how long CPUs ran: gaps between samples have all of
    /// the time.
    by_turns: Vec<f64>,
}

/// A stretch of time in which samples weigh other than one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    start: Timestamp,
    end: Timestamp,
    weight: f64,
}

impl CountedSums {
    /// A sample. Those of one event on one CPU come in the order of time.
    #[inline]
    pub fn sampled(&mut self, event: u32, cpu: Option<u32>, time: Timestamp, count: u64) {
        let Some(sampled) = self.slot(event, cpu) else { return };
        sampled.count += count;
        sampled.resumed.get_or_insert((time, sampled.count));
        sampled.samples += 1;
        if let (Some(since), Some(cpu)) = (sampled.gaps.sample(time), cpu)
            && self.late.len() < MOST_LATE
        {
            self.late.push(LateSample { event, cpu, since, time, count });
        }
    }

    /// The kernel stopped an event for coming too often (`true`), or let it go on.
    pub fn throttled(&mut self, event: u32, cpu: Option<u32>, time: Timestamp, is_stopped: bool) {
        if let Some(sampled) = self.slot(event, cpu) {
            match is_stopped {
                true => sampled.stop(time),
                false => sampled.resume(time),
            }
        }
    }

    /// What is known to be lost.
    pub fn lost(&mut self, event: u32, cpu: Option<u32>, count: u64) {
        if let Some(sampled) = self.slot(event, cpu) {
            sampled.lost = sampled.lost.saturating_add(count);
            sampled.gaps.forget();
        }
    }

    /// A reading of a counter that counts all that runs on its CPU. Those of one counter come in the order of time.
    pub fn reading(&mut self, event: u32, cpu: u32, reading: CounterReading) {
        let sampled = self.slot(event, Some(cpu)).copied().unwrap_or_default();
        match self.counters.get_mut(&(event, cpu)) {
            Some(counter) => counter.reading(reading, sampled),
            None => {
                self.counters.insert((event, cpu), Counter::new(reading, sampled));
            }
        }
    }

    /// A reading of a counter of one task on one CPU.
    pub fn reading_of_task(&mut self, event: u32, task: u32, counter: u64, reading: CounterReading) {
        let turns = Turns { enabled: reading.enabled, running: reading.running };
        self.of_tasks.entry((event, task)).or_default().insert(counter, turns);
    }

    /// How many samples one stands for of an event whose counters are tasks', and took turns with others or were stopped; 1 of
    /// one that did not.
    ///
    /// A task's counter of one CPU goes on being enabled, though not running, while the task is on another CPU: the longest
    /// of its counters tells the task's time.
    pub fn weight_of_tasks(&self, event: u32) -> f64 {
        let tasks = self.of_tasks.iter().filter(|((of, _), _)| *of == event).map(|(_, counters)| counters);
        let all = tasks.fold(Turns::default(), |sum, counters| Turns {
            enabled: sum.enabled + counters.values().map(|turns| turns.enabled).max().unwrap_or(0),
            running: sum.running + counters.values().map(|turns| turns.running).sum::<u64>(),
        });
        if all.running == 0 {
            return 1.0;
        }
        let share = all.running as f64 / all.enabled.max(1) as f64;
        let turns = if share < WHOLE_TIME { 1.0 / share } else { 1.0 };
        let of_event = self.cpus.iter().filter_map(|events| events.get(event as usize));
        let (held_back, count) =
            of_event.fold((0.0, 0), |(held_back, count), of| (held_back + of.held_back, count + of.count));
        turns * (1.0 + held_back / count.max(1) as f64)
    }

    /// What is missing, in the order of time for each counter.
    pub fn missing(&self) -> Vec<Missing> {
        let mut counters: Vec<_> = self.counters.iter().collect();
        counters.sort_by_key(|(key, _)| **key);
        let of_counter = |(&(event, cpu), counter): (&(u32, u32), &Counter)| {
            let sampled = self.cpus.get(slot_of(Some(cpu))?)?.get(event as usize)?;
            Some(counter.missing(event, cpu, sampled.count.checked_div(sampled.samples)?))
        };
        counters.into_iter().filter_map(of_counter).flatten().collect()
    }

    /// What of it late samples stand for. What is left `missing` is like all samples around.
    pub fn made_up(&mut self, missing: &mut Vec<Missing>) -> Vec<MadeUp> {
        // Each counter's in the order of time, as they came.
        self.late.sort_by_key(|late| (late.event, late.cpu));
        let counter = |missing: &Missing| (missing.event, missing.cpu);
        let of_counters = missing.chunk_by_mut(|one, next| counter(one) == counter(next));
        let made_up = of_counters.flat_map(|missing| {
            let key = missing.first().map(counter).unwrap_or_default();
            let late = |key| self.late.partition_point(|late| (late.event, late.cpu) < key);
            let late = &self.late[late(key)..late((key.0, key.1 + 1))];
            late_samples::make_up(missing, late)
        });
        let made_up = made_up.collect();
        missing.retain(|missing| missing.count > 0);
        made_up
    }

    #[inline]
    fn slot(&mut self, event: u32, cpu: Option<u32>) -> Option<&mut Sampled> {
        let slot = slot_of(cpu)?;
        if self.cpus.len() <= slot {
            self.cpus.resize_with(slot + 1, Vec::new);
        }
        let (events, event) = (&mut self.cpus[slot], event as usize);
        if events.len() <= event {
            events.resize(event + 1, Sampled::default());
        }
        events.get_mut(event)
    }
}

impl Counter {
    fn new(reading: CounterReading, sampled: Sampled) -> Self {
        let first = Compared { time: reading.time, sampled: 0, behind: 0.0 };
        Self {
            latest: reading,
            at_first: sampled,
            counted: 0.0,
            held_back: sampled.held_back,
            readings: vec![first],
            stride: 0,
            left_out: 0,
        }
    }

    fn reading(&mut self, reading: CounterReading, sampled: Sampled) {
        let more = |of: fn(&CounterReading) -> u64| of(&reading).saturating_sub(of(&self.latest)) as f64;
        let (value, enabled, running) = (more(|of| of.value), more(|of| of.enabled), more(|of| of.running));
        // An event that was not counted at all says nothing of what it would have been.
        let turns = if running > 0.0 { (enabled / running).max(1.0) } else { 1.0 };
        self.counted += value * turns + sampled.held_back - self.held_back;
        self.held_back = sampled.held_back;
        self.latest = reading;
        if self.left_out < self.stride {
            self.left_out += 1;
            return;
        }
        self.left_out = 0;
        let since_first = sampled.count.saturating_sub(self.at_first.count);
        let lost = sampled.lost.saturating_sub(self.at_first.lost);
        let behind = self.counted - since_first.saturating_add(lost) as f64;
        self.readings.push(Compared { time: reading.time, sampled: since_first, behind });
        if self.readings.len() >= MOST_READINGS {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride = 2 * self.stride + 1;
        }
    }

    fn missing(&self, event: u32, cpu: u32, period: u64) -> Vec<Missing> {
        let mut behind: Vec<f64> = self.readings.iter().map(|reading| reading.behind).collect();
        let mut least = f64::INFINITY;
        for behind in behind.iter_mut().rev() {
            least = least.min(*behind);
            // The period under way has no sample yet.
            *behind = (least - period as f64).max(0.0);
        }
        let pairs = self.readings.windows(2).zip(behind.windows(2));
        let missing = pairs.map(|(reading, behind)| Missing {
            event,
            cpu,
            start: reading[0].time,
            end: reading[1].time,
            count: (behind[1] - behind[0]) as u64,
            sampled: reading[1].sampled.saturating_sub(reading[0].sampled),
        });
        missing.filter(|missing| missing.count > 0).collect()
    }
}

impl CountWeights {
    /// By what is missing, and by event wherever and whenever it was sampled: `by_turns`, for what was counted and not sampled
    /// as well, times `by_samples`.
    pub fn new(missing: &[Missing], made_up: &[MadeUp], by_turns: Vec<f64>, by_samples: &[f64]) -> Self {
        let mut by_counter: FxHashMap<(u32, u32), Vec<Stretch>> = FxHashMap::default();
        for &Missing { event, cpu, start, end, count, sampled } in missing.iter().filter(|of| of.sampled > 0)
        {
            let weight = 1.0 + count as f64 / sampled as f64;
            by_counter.entry((event, cpu)).or_default().push(Stretch { start, end, weight });
        }
        let mut late: FxHashMap<(u32, u32), Vec<MadeUp>> = FxHashMap::default();
        for made_up in made_up {
            late.entry((made_up.late.event, made_up.late.cpu)).or_default().push(*made_up);
        }
        let by_event: Vec<f64> =
            by_turns.iter().zip(by_samples).map(|(turns, samples)| turns * samples).collect();
        let unless_one = |weights: Vec<f64>| match weights.iter().all(|weight| *weight == 1.0) {
            true => Vec::new(),
            false => weights,
        };
        Self { by_counter, late, by_event: unless_one(by_event), by_turns: unless_one(by_turns) }
    }

    /// What a late sample of that time stands for beyond its weight.
    #[inline]
    pub fn of_late(&self, event: u32, cpu: Option<u32>, time: Timestamp) -> Option<&MadeUp> {
        if self.late.is_empty() {
            return None;
        }
        let of_counter = self.late.get(&(event, cpu?))?;
        let at = of_counter.partition_point(|made_up| made_up.late.time < time);
        of_counter.get(at).filter(|made_up| made_up.late.time == time)
    }

    /// The longest gap before a late sample.
    pub fn longest_gap(&self) -> Nanoseconds {
        let gaps = self.late.values().flatten().map(|made_up| made_up.late.time.since(made_up.late.since));
        gaps.max().unwrap_or(Nanoseconds::ZERO)
    }

    /// How much of a sample's weight holds for the time that its CPU ran.
    pub fn of_time(&self, event: u32) -> f64 {
        self.by_event.get(event as usize).map_or(1.0, |of_event| self.of_unsampled(event) / of_event)
    }

    /// How much weighs what was counted of an event of a task, and not sampled.
    pub fn of_unsampled(&self, event: u32) -> f64 {
        self.by_turns.get(event as usize).copied().unwrap_or(1.0)
    }

    /// How many samples one of that time stands for.
    #[inline]
    pub fn of(&self, event: u32, cpu: Option<u32>, time: Timestamp) -> f64 {
        if self.by_counter.is_empty() && self.by_event.is_empty() {
            return 1.0;
        }
        let of_event = self.by_event.get(event as usize).copied().unwrap_or(1.0);
        of_event * self.of_counter(event, cpu, time).unwrap_or(1.0)
    }

    fn of_counter(&self, event: u32, cpu: Option<u32>, time: Timestamp) -> Option<f64> {
        let stretches = self.by_counter.get(&(event, cpu?))?;
        let at = stretches.partition_point(|stretch| stretch.end < time);
        stretches.get(at).filter(|stretch| stretch.start < time).map(|stretch| stretch.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Charge, Quantum};

    const PERIOD: u64 = 1_000;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    /// A counter that had a PMU for `of_ten` tenths of the time.
    fn reading(millis: u64, value: u64, of_ten: u64) -> CounterReading {
        let (enabled, running) = (millis * 1_000_000, millis * of_ten * 100_000);
        CounterReading { time: at(millis), value, enabled, running }
    }

    /// Samples and readings of event 2 on CPU 1: at each step so many samples, and what the counter has counted.
    fn compared(steps: &[(u64, u64)]) -> CountedSums {
        let mut sums = CountedSums::default();
        sums.reading(2, 1, reading(0, 0, 10));
        for (step, &(samples, counted)) in (1..).zip(steps) {
            (0..samples).for_each(|_| sums.sampled(2, Some(1), at(0), PERIOD));
            sums.reading(2, 1, reading(100 * step, counted, 10));
        }
        sums
    }

    #[test]
    fn where_every_period_has_its_sample_nothing_is_missing() {
        // Always some part of a period that is under way.
        let steps: Vec<(u64, u64)> =
            (1..50).map(|step| (100, step * 100 * PERIOD + step * 37 % PERIOD)).collect();
        assert_eq!(compared(&steps).missing(), []);
    }

    #[test]
    fn what_samples_never_catch_up_with_weighs_on_those_of_that_time() {
        let k = PERIOD;
        let sums = compared(&[(100, 100 * k), (60, 200 * k), (100, 300 * k), (0, 350 * k), (100, 450 * k)]);
        let missing = sums.missing();
        let of = |from: u64, count: u64, sampled: u64| Missing {
            event: 2,
            cpu: 1,
            start: at(from),
            end: at(from + 100),
            count: count * k,
            sampled: sampled * k,
        };
        // A period of them may be under way.
        assert_eq!(missing, [of(100, 39, 60), of(300, 50, 0)]);
        let weights = CountWeights::new(&missing, &[], Vec::new(), &[]);
        assert!((weights.of(2, Some(1), at(150)) - 99.0 / 60.0).abs() < 1e-12);
        let elsewhere = [
            (2, Some(1), 100),
            (2, Some(1), 201),
            (2, Some(1), 350),
            (2, Some(0), 150),
            (1, Some(1), 150),
            (2, None, 150),
        ];
        for (event, cpu, millis) in elsewhere {
            assert_eq!(weights.of(event, cpu, at(millis)), 1.0, "{event} {cpu:?} {millis}");
        }
        let lost: Vec<Quantum> = missing.iter().filter_map(Missing::as_lost).collect();
        let [Quantum { start, end, count, charge: Charge::Lost, .. }] = lost[..] else { panic!("{lost:?}") };
        assert_eq!((start, end, count), (at(300), at(400), 50 * k));
    }

    #[test]
    fn what_comes_late_is_not_missing() {
        let k = PERIOD;
        // Forty samples come a step late; and a reading is taken after samples that lie behind it.
        let sums = compared(&[(60, 100 * k), (140, 200 * k), (110, 300 * k), (90, 400 * k)]);
        assert_eq!(sums.missing(), []);
    }

    #[test]
    fn records_that_are_known_to_be_lost_are_not_missing_again() {
        let mut sums = compared(&[(100, 100 * PERIOD)]);
        (0..60).for_each(|_| sums.sampled(2, Some(1), at(0), PERIOD));
        sums.lost(2, Some(1), 40 * PERIOD);
        sums.reading(2, 1, reading(200, 200 * PERIOD, 10));
        assert_eq!(sums.missing(), []);
    }

    /// Where a counter is an event's for four tenths of the time, samples stand for ten fourths of their periods.
    #[test]
    fn an_event_that_took_turns_is_made_up_to_all_of_the_time() {
        let mut sums = CountedSums::default();
        sums.reading(0, 0, reading(0, 0, 4));
        for step in 1..=20 {
            (0..40).for_each(|_| sums.sampled(0, Some(0), at(0), PERIOD));
            sums.reading(0, 0, reading(100 * step, 40 * step * PERIOD, 4));
        }
        let missing = sums.missing();
        let all: u64 = missing.iter().map(|missing| missing.count).sum();
        assert!(all.abs_diff(20 * 60 * PERIOD) <= 2 * PERIOD, "{all}");
        let weight = CountWeights::new(&missing, &[], Vec::new(), &[]).of(0, Some(0), at(1950));
        assert!((weight - 2.5).abs() < 0.01, "{weight}");
    }

    /// A recording that is a part of another begins in the middle.
    #[test]
    fn what_was_counted_before_the_first_reading_is_not_compared() {
        let mut sums = CountedSums::default();
        (0..7).for_each(|_| sums.sampled(0, Some(3), at(0), PERIOD));
        sums.reading(0, 3, reading(5000, 123_456_789, 10));
        (0..100).for_each(|_| sums.sampled(0, Some(3), at(0), PERIOD));
        sums.reading(0, 3, reading(5100, 123_456_789 + 200 * PERIOD, 10));
        let [Missing { count, sampled, .. }] = sums.missing()[..] else { panic!("one stretch") };
        assert_eq!((count, sampled), (99 * PERIOD, 100 * PERIOD));
    }

    #[test]
    fn a_day_of_readings_keeps_some_thousands_and_all_that_is_missing() {
        let mut sums = CountedSums::default();
        sums.reading(0, 0, reading(0, 0, 10));
        for step in 1..=100_000 {
            (0..10).for_each(|_| sums.sampled(0, Some(0), at(0), PERIOD));
            sums.reading(0, 0, reading(step * 100, step * 20 * PERIOD, 10));
        }
        assert!(sums.counters[&(0, 0)].readings.len() <= MOST_READINGS);
        let missing: u64 = sums.missing().iter().map(|missing| missing.count).sum();
        let all = 100_000 * 10 * PERIOD;
        assert!(missing <= all && missing > all - all / 1000, "{missing} of {all}");
    }

    /// A task of four threads on two CPUs, whose event had a counter for half of the time.
    #[test]
    fn a_tasks_event_that_took_turns_weighs_everywhere() {
        let mut sums = CountedSums::default();
        let turns = |enabled, running| CounterReading { time: at(9), value: 7, enabled, running };
        for (counter, running) in [(10, 150), (11, 350)] {
            sums.reading_of_task(1, 50, counter, turns(10, 1));
            sums.reading_of_task(1, 50, counter, turns(1000, running));
            sums.reading_of_task(0, 50, 10 * counter, turns(1000, 2 * running));
        }
        let weights: Vec<f64> = (0..3).map(|event| sums.weight_of_tasks(event)).collect();
        assert_eq!(weights, [1.0, 2.0, 1.0]);
        let weights = CountWeights::new(&[], &[], weights, &[1.0; 3]);
        assert_eq!((weights.of(1, None, at(3)), weights.of(0, Some(1), at(3))), (2.0, 1.0));
    }

    /// Two samples a tick of 4 ms, each of which comes after half a millisecond: the third of each tick is one too many.
    #[test]
    fn a_counter_that_was_stopped_would_have_gone_on() {
        let micros = |micros: u64| Timestamp::from_nanos(1_000 * micros);
        let mut sums = CountedSums::default();
        sums.reading(0, 0, reading(0, 0, 10));
        sums.sampled(0, Some(0), micros(0), PERIOD);
        for tick in 0..100 {
            let start = 4_000 * tick;
            (1..3).for_each(|sample| sums.sampled(0, Some(0), micros(start + 500 * sample), PERIOD));
            sums.throttled(0, Some(0), micros(start + 1_500), true);
            sums.sampled(0, Some(0), micros(start + 1_500), PERIOD);
            sums.throttled(0, Some(0), micros(start + 4_000), false);
        }
        sums.reading(0, 0, reading(400, 301 * PERIOD, 10));
        let [Missing { count, sampled, .. }] = sums.missing()[..] else { panic!("one stretch") };
        // Five of eight in each tick, less the period that may be under way.
        assert_eq!((count, sampled), (499 * PERIOD, 301 * PERIOD));
        // So it is of a task's counters, which are read at the end alone.
        let turns = CounterReading { time: at(400), value: 301 * PERIOD, enabled: 400, running: 400 };
        sums.reading_of_task(0, 50, 1, turns);
        assert!((sums.weight_of_tasks(0) - 801.0 / 301.0).abs() < 1e-9, "{}", sums.weight_of_tasks(0));
    }

    /// A period of 100 each 10 ms of a second; of the gaps of 300, 100 and 200 ms all but the last sample's own period is missing.
    #[test]
    fn late_samples_stand_for_what_their_own_counter_misses() {
        let late =
            |event, cpu, since, time| LateSample { event, cpu, since: at(since), time: at(time), count: 100 };
        let missing = |event, cpu, count| Missing {
            event,
            cpu,
            start: at(0),
            end: at(1000),
            count,
            sampled: 10_000 - count,
        };
        // As they came: of two CPUs, and of two events on the first of them.
        let came = vec![late(0, 1, 100, 200), late(0, 0, 400, 700), late(1, 0, 500, 700)];
        let mut sums = CountedSums { late: came, ..CountedSums::default() };
        let mut left = vec![missing(0, 0, 2900), missing(0, 1, 900), missing(1, 0, 1900)];
        let made_up = sums.made_up(&mut left);
        let given: Vec<(u32, u32, u64)> =
            made_up.iter().map(|of| (of.late.event, of.late.cpu, of.count)).collect();
        assert_eq!(given, [(0, 0, 2900), (0, 1, 900), (1, 0, 1900)]);
        assert_eq!(left, []);
    }
}

//! How long tasks that left no sample may have run at most.
//!
//! A task that is sampled by a clock has a sample for each period that it runs. One without a sample ran for less than a period, and
//! no longer than it lived, and where it was started and where it ended: more of its places nobody tells. What counters have more
//! than samples is theirs as far as they can have run for it; the rest is of ticks that the kernel left out.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::units::Timestamp;

/// The tasks that a program started and that have no sample so far.
#[derive(Debug, Default)]
pub(super) struct ShortTasks {
    /// Those that live: since when, and the CPU that they were started on.
    alive: FxHashMap<u32, (Timestamp, u32)>,
    /// Nanoseconds of those that ended, by the CPU that they were started on and the one that they ended on.
    ended: BTreeMap<[u32; 2], f64>,
}

impl ShortTasks {
    /// A task was started on a CPU, maybe by the number of one that has ended.
    pub fn started(&mut self, task: u32, time: Timestamp, cpu: u32) {
        self.alive.insert(task, (time, cpu));
    }

    /// A sample of a task: it is none of these.
    #[inline]
    pub fn sampled(&mut self, task: u32) {
        if !self.alive.is_empty() {
            self.alive.remove(&task);
        }
    }

    /// A task ended on a CPU; a sample would have come after so many nanoseconds.
    pub fn ended(&mut self, task: u32, time: Timestamp, cpu: u32, period: f64) {
        if let Some((started, on)) = self.alive.remove(&task) {
            *self.ended.entry([on, cpu]).or_default() += longest(started, time, period);
        }
    }

    /// How much of these nanoseconds by CPU, that no sample tells of, they may have run until now.
    pub fn at_most(&self, now: Timestamp, period: f64, missing: &BTreeMap<u32, f64>) -> BTreeMap<u32, f64> {
        let mut all = self.ended.clone();
        for &(started, cpu) in self.alive.values() {
            *all.entry([cpu; 2]).or_default() += longest(started, now, period);
        }
        // Those that stayed where they were have nowhere else to have run.
        let (stayed, moved): (Vec<_>, Vec<_>) = all.into_iter().partition(|([from, to], _)| from == to);
        let mut theirs: BTreeMap<u32, f64> = BTreeMap::new();
        for ([from, to], mut longest) in stayed.into_iter().chain(moved) {
            for cpu in [to, from] {
                let of_cpu = theirs.entry(cpu).or_default();
                let more = longest.min(missing.get(&cpu).map_or(0.0, |missing| missing - *of_cpu));
                *of_cpu += more;
                longest -= more;
            }
        }
        theirs
    }
}

fn longest(started: Timestamp, ended: Timestamp, period: f64) -> f64 {
    (ended.since(started).as_nanos() as f64).min(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    /// Milliseconds that they may have run until then, of so many that are missing on CPUs 0 and 1.
    fn at_most(tasks: &ShortTasks, now: u64, missing: [f64; 2]) -> [f64; 2] {
        let missing = BTreeMap::from([(0, missing[0] * 1e6), (1, missing[1] * 1e6)]);
        let found = tasks.at_most(at(now), 4e6, &missing);
        [0, 1].map(|cpu| found.get(&cpu).map_or(0.0, |nanos| nanos / 1e6))
    }

    #[test]
    fn tasks_without_a_sample_ran_no_longer_than_they_lived_and_than_a_period() {
        let mut tasks = ShortTasks::default();
        assert_eq!(at_most(&tasks, 10, [100.0; 2]), [0.0; 2]);
        tasks.started(7, at(10), 0);
        tasks.started(8, at(10), 0);
        tasks.started(9, at(11), 1);
        assert_eq!(at_most(&tasks, 12, [100.0; 2]), [4.0, 1.0]);
        // One of them is sampled; the others live for longer than a period.
        tasks.sampled(8);
        assert_eq!(at_most(&tasks, 30, [100.0; 2]), [4.0, 4.0]);
        tasks.ended(8, at(30), 0, 4e6);
        tasks.ended(9, at(30), 1, 4e6);
        assert_eq!(at_most(&tasks, 40, [100.0, 3.0]), [4.0, 3.0]);
        // Its number is given out again, and a task ends of which nobody told that it was started.
        tasks.started(9, at(30), 1);
        tasks.ended(9, at(31), 1, 4e6);
        tasks.ended(77, at(31), 1, 4e6);
        assert_eq!(at_most(&tasks, 40, [100.0; 2]), [4.0, 5.0]);
    }

    #[test]
    fn a_task_that_moved_ran_here_or_there() {
        let mut tasks = ShortTasks::default();
        tasks.started(7, at(10), 0);
        tasks.ended(7, at(13), 1, 4e6);
        assert_eq!(at_most(&tasks, 20, [100.0; 2]), [0.0, 3.0]);
        assert_eq!(at_most(&tasks, 20, [100.0, 1.0]), [2.0, 1.0]);
        // Of what is missing where it ended another one has all that it can have.
        tasks.started(8, at(10), 1);
        tasks.ended(8, at(12), 1, 4e6);
        assert_eq!(at_most(&tasks, 20, [100.0, 2.5]), [2.5, 2.5]);
        assert_eq!(at_most(&tasks, 20, [1.0, 1.0]), [1.0, 1.0]);
    }
}

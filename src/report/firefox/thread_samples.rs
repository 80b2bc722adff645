//! The samples of each thread.

use std::collections::BTreeMap;

use super::tables::Tables;
use super::timeline::Stretch;
use crate::report::folded::WholeNumbers;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Nanoseconds since the recording's start.
    pub time: u64,
    /// Its node in the thread's tree; `None` where the thread did nothing.
    pub stack: Option<u32>,
    /// In whole units: nanojoules, samples or events.
    pub weight: u64,
    /// CPU time that it stands for, in nanoseconds; zero where its thread tells that by stretches.
    pub cpu: u64,
}

/// What a stack of a thread spent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// In the profile's weight.
    pub weight: f64,
    /// CPU time in nanoseconds.
    pub busy: f64,
}

/// A stretch of time in which a thread spent something.
#[derive(Debug, Clone, Copy)]
struct Busy {
    start: u64,
    end: u64,
    /// CPU time in nanoseconds.
    time: f64,
}

impl Busy {
    /// The CPU time until then, as if it had been spent evenly.
    fn until(&self, time: u64) -> f64 {
        let length = (self.end - self.start).max(1) as f64;
        self.time * (time.saturating_sub(self.start) as f64 / length).min(1.0)
    }
}

/// What is known of one thread.
pub struct ThreadSamples {
    pub tables: Tables,
    pub samples: Vec<Sample>,
    /// Sum of the samples' weights, before they were rounded.
    pub weight: f64,
    whole: WholeNumbers,
    /// When it spent something, in the order of time.
    busy: Vec<Busy>,
    /// Until when each of its samples shows what it stands for, and when that was begun, of samples at their own times.
    own_times: Vec<OwnTime>,
    /// Nanoseconds of CPU time of those so far.
    cpu: WholeNumbers,
}

/// What a sample stands for: shown from when it was taken, as long as it had lasted.
#[derive(Debug, Clone, Copy)]
struct OwnTime {
    start: u64,
    shown_until: u64,
}

impl Default for ThreadSamples {
    fn default() -> Self {
        Self::new(1.0)
    }
}

impl ThreadSamples {
    fn new(factor: f64) -> Self {
        let whole = WholeNumbers::new(factor);
        Self {
            tables: Tables::default(),
            samples: Vec::new(),
            weight: 0.0,
            whole,
            busy: Vec::new(),
            own_times: Vec::new(),
            cpu: WholeNumbers::new(1.0),
        }
    }

    /// What its stacks spent between two times.
    pub fn add(&mut self, start: u64, end: u64, spent: &[(Option<u32>, Spent)]) {
        let total: f64 = spent.iter().map(|(_, spent)| spent.weight).sum();
        let mut before = 0.0;
        for &(stack, Spent { weight, .. }) in spent {
            let share = (before + weight / 2.0) / total;
            before += weight;
            self.weight += weight;
            let number = self.whole.next(weight);
            if number > 0 {
                let time = start + ((end - start) as f64 * share) as u64;
                self.samples.push(Sample { time, stack, weight: number, cpu: 0 });
            }
        }
    }

    /// As [`ThreadSamples::add`], of a stretch; it did nothing since it was last busy.
    pub fn add_stretch(&mut self, stretch: &Stretch, spent: &[(Option<u32>, Spent)]) {
        let &Stretch { start, end, .. } = stretch;
        let idle_since = self.busy.last().map_or(0, |busy| busy.end);
        if idle_since < start {
            self.idle(idle_since, start);
        }
        self.busy.push(Busy { start, end, time: spent.iter().map(|(_, spent)| spent.busy).sum() });
        self.add(start, end, spent);
    }

    /// A sample of `start` to `end`, when it was taken. To be called in the order of these.
    pub fn add_sample(&mut self, start: u64, end: u64, stack: Option<u32>, spent: Spent) {
        self.weight += spent.weight;
        let (weight, cpu) = (self.whole.next(spent.weight), self.cpu.next(spent.busy));
        self.samples.push(Sample { time: end, stack, weight, cpu });
        self.own_times.push(OwnTime { start, shown_until: end + (end - start) });
    }

    fn idle(&mut self, from: u64, to: u64) {
        self.idle_at(from);
        self.idle_at(to);
    }

    fn idle_at(&mut self, time: u64) {
        self.samples.push(Sample { time, stack: None, weight: 0, cpu: 0 });
    }

    pub fn finish(&mut self, end: u64) {
        if let Some(busy) = self.busy.last().filter(|busy| busy.end < end) {
            self.idle(busy.end, end);
        }
        let mut shown_until = 0;
        for OwnTime { start, shown_until: until } in std::mem::take(&mut self.own_times) {
            if shown_until < start {
                self.idle_at(shown_until);
            }
            shown_until = until.max(shown_until);
        }
        if shown_until > 0 && shown_until < end {
            self.idle_at(shown_until);
        }
        self.samples.sort_by_key(|sample| sample.time);
    }

    /// CPU time from each sample's predecessor to itself, in nanoseconds; from the beginning to the first.
    pub fn cpu_times(&self) -> Vec<u64> {
        if self.busy.is_empty() {
            return self.samples.iter().map(|sample| sample.cpu).collect();
        }
        let mut stretches = self.busy.iter().peekable();
        let (mut ended, mut last) = (0.0, 0);
        let time = |sample: &Sample| {
            while let Some(busy) = stretches.next_if(|busy| busy.end <= sample.time) {
                ended += busy.time;
            }
            let until = (ended + stretches.peek().map_or(0.0, |busy| busy.until(sample.time))).round() as u64;
            let since = until.saturating_sub(last);
            last = last.max(until);
            since + sample.cpu
        };
        self.samples.iter().map(time).collect()
    }
}

/// The threads that were met.
#[derive(Default)]
pub struct Threads {
    pub by_index: BTreeMap<u32, ThreadSamples>,
    /// Units of samples per weight.
    pub factor: f64,
}

impl Threads {
    /// A thread, by its index in the profile.
    pub fn thread(&mut self, index: u32) -> &mut ThreadSamples {
        self.by_index.entry(index).or_insert_with(|| ThreadSamples::new(self.factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(weight: f64, busy: f64) -> Spent {
        Spent { weight, busy }
    }

    #[test]
    fn stacks_of_a_stretch_stand_behind_each_other_and_idle_threads_say_so() {
        let stretch = |start, end| Stretch { start, end, measured: Vec::new(), slices: 0..0 };
        let mut thread = ThreadSamples::new(1e6);
        thread.add_stretch(&stretch(0, 100), &[(Some(0), spent(3.0, 60.0)), (Some(1), spent(1.0, 20.0))]);
        thread.add_stretch(&stretch(300, 400), &[(Some(1), spent(1e-9, 1.0)), (Some(2), spent(2.0, 99.0))]);
        thread.finish(1_000);
        let found: Vec<_> =
            thread.samples.iter().map(|sample| (sample.time, sample.stack, sample.weight)).collect();
        let idle = |time| (time, None, 0);
        let expected = [
            (37, Some(0), 3_000_000),
            (87, Some(1), 1_000_000),
            idle(100),
            idle(300),
            // What rounds to nothing is made good by the next.
            (350, Some(2), 2_000_000),
            idle(400),
            idle(1_000),
        ];
        assert_eq!(found, expected);
        assert_eq!(thread.cpu_times(), [30, 40, 10, 0, 50, 50, 0]);
    }

    #[test]
    fn samples_stand_where_they_were_taken_and_are_shown_as_long_as_they_lasted() {
        let mut thread = ThreadSamples::new(1e3);
        for (start, end, weight) in [(100, 110, 0.0014), (110, 120, 0.0014), (300, 310, 0.0014)] {
            thread.add_sample(start, end, Some(7), spent(weight, 10.4));
        }
        thread.finish(1_000);
        let found: Vec<_> = thread
            .samples
            .iter()
            .map(|sample| (sample.time, sample.stack, sample.weight, sample.cpu))
            .collect();
        let idle = |time| (time, None, 0, 0);
        let taken = |time, weight, cpu| (time, Some(7), weight, cpu);
        // 1.4, 2.8 and 4.2 units are 1, 3 and 4.
        let expected =
            [idle(0), taken(110, 1, 10), taken(120, 2, 11), idle(130), taken(310, 1, 10), idle(320)];
        assert_eq!(found, expected);
        assert_eq!(thread.cpu_times(), [0, 10, 11, 0, 10, 0]);
    }
}

//! Counters that overflow, and the interrupts that follow a little later.

use super::scenario::Scenario;
use super::schedule::Segment;
use eprof::numerics::random::Random;

/// The kernel's tick, in which it limits samples.
const TICK: u64 = 4_000_000;
/// Something that a CPU's ring gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// Nanoseconds since the start.
    pub time: u64,
    /// Index of the event.
    pub event: usize,
    /// The task that ran.
    pub task: usize,
    /// What it is.
    pub kind: EntryKind,
}

/// Kinds of entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EntryKind {
    /// An overflow, in this function.
    Sample {
        /// Index of the function.
        function: usize,
    },
    /// The kernel stops the event.
    Throttle,
    /// The kernel lets it go on.
    Unthrottle,
    /// The ring was full for so many records.
    Lost(u64),
}

/// The counters of one CPU.
pub struct CpuCounters<'s> {
    scenario: &'s Scenario,
    recorded: &'s [bool],
    /// Counters: one row for the CPU, or one per task where only the recorded program is counted.
    rows: Vec<Vec<Counter>>,
    /// Overflows whose interrupts come after what is known of the schedule.
    late: Vec<Overflow>,
    loss: Loss,
    random: Random,
}

#[derive(Debug, Clone, Copy)]
struct Counter {
    /// Events until the overflow.
    left: f64,
    tick: u64,
    samples_in_tick: u32,
    throttled_until: u64,
}

#[derive(Debug, Clone, Copy)]
struct Overflow {
    /// When the interrupt comes.
    time: u64,
    event: usize,
    task: usize,
    /// The function that made the counter overflow.
    function: usize,
}

impl<'s> CpuCounters<'s> {
    /// Counters somewhere between two overflows.
    pub fn new(scenario: &'s Scenario, recorded: &'s [bool], mut random: Random) -> Self {
        let rows = if scenario.sampling.system_wide { 1 } else { recorded.len() };
        let mut fresh = || {
            let counter = |event: &super::scenario::Event| Counter {
                left: event.period as f64 * (1.0 - random.uniform()),
                tick: u64::MAX,
                samples_in_tick: 0,
                throttled_until: 0,
            };
            scenario.events.iter().map(counter).collect()
        };
        let rows = (0..rows).map(|_| fresh()).collect();
        let loss = Loss {
            share: scenario.sampling.lost_share,
            length: scenario.sampling.lost_once_in.as_nanos().max(1),
            random: random.part(1),
            ..Loss::default()
        };
        Self { scenario, recorded, rows, late: Vec::new(), loss, random }
    }

    /// The entries of what the CPU did up to `to`, in order of time.
    pub fn advance(&mut self, segments: &[Segment], to: u64) -> Vec<Entry> {
        let mut overflows = std::mem::take(&mut self.late);
        let mut entries = Vec::new();
        for segment in segments {
            let row = if self.scenario.sampling.system_wide {
                0
            } else if self.recorded[segment.task] {
                segment.task
            } else {
                continue;
            };
            for event in 0..self.scenario.events.len() {
                self.count(row, event, segment, &mut overflows, &mut entries);
            }
        }
        overflows.sort_by_key(|overflow| overflow.time);
        for overflow in overflows {
            if overflow.time >= to {
                self.late.push(overflow);
            } else {
                entries.push(self.interrupt(overflow, segments));
            }
        }
        entries.sort_by_key(|entry| entry.time);
        self.loss.drop_some(entries)
    }

    fn count(
        &mut self,
        row: usize,
        event: usize,
        segment: &Segment,
        overflows: &mut Vec<Overflow>,
        entries: &mut Vec<Entry>,
    ) {
        let rate = self.scenario.functions[segment.function].rates[event] * segment.speed;
        if rate <= 0.0 {
            return;
        }
        let period = self.scenario.events[event].period as f64;
        let skid = self.scenario.sampling.skid.as_nanos() as f64;
        let counter = &mut self.rows[row][event];
        let mut now = segment.start.max(counter.throttled_until) as f64;
        while now < segment.end as f64 {
            let overflow = now + counter.left / rate * 1e9;
            if overflow >= segment.end as f64 {
                counter.left -= (segment.end as f64 - now) * 1e-9 * rate;
                // Rounding must not leave a counter that overflows again at once.
                counter.left = counter.left.max(period * 1e-12);
                return;
            }
            counter.left = period;
            let time = overflow as u64 + self.random.exponential(skid) as u64;
            overflows.push(Overflow { time, event, task: segment.task, function: segment.function });
            now = overflow;
            let tick = overflow as u64 / TICK;
            if counter.tick != tick {
                counter.tick = tick;
                counter.samples_in_tick = 0;
            }
            counter.samples_in_tick += 1;
            if self.scenario.sampling.most_per_tick.is_some_and(|most| counter.samples_in_tick >= most) {
                let stop = overflow as u64;
                counter.throttled_until = (tick + 1) * TICK;
                now = counter.throttled_until as f64;
                let entry = |time, kind| Entry { time, event, task: segment.task, kind };
                entries.push(entry(stop, EntryKind::Throttle));
                entries.push(entry(counter.throttled_until, EntryKind::Unthrottle));
            }
        }
    }

    /// The sample that an interrupt takes: of what runs when it comes, if anything does.
    fn interrupt(&self, overflow: Overflow, segments: &[Segment]) -> Entry {
        let after = segments.partition_point(|segment| segment.end <= overflow.time);
        let running = segments.get(after).filter(|segment| segment.start <= overflow.time);
        let running =
            running.filter(|segment| self.scenario.sampling.system_wide || segment.task == overflow.task);
        let (task, function) = running.map_or((overflow.task, overflow.function), |s| (s.task, s.function));
        Entry { time: overflow.time, event: overflow.event, task, kind: EntryKind::Sample { function } }
    }
}

/// Stretches of time in which the ring is full.
#[derive(Debug, Clone)]
struct Loss {
    share: f64,
    /// Nanoseconds of a span, in each of which one stretch is lost.
    length: u64,
    random: Random,
    span: u64,
    start: u64,
    dropped: u64,
}

impl Default for Loss {
    fn default() -> Self {
        Self { share: 0.0, length: 1, random: Random::seeded(0), span: u64::MAX, start: 0, dropped: 0 }
    }
}

impl Loss {
    fn drop_some(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        if self.share <= 0.0 {
            return entries;
        }
        let length = (self.length as f64 * self.share) as u64;
        let mut kept = Vec::with_capacity(entries.len());
        for entry in entries {
            let span = entry.time / self.length;
            let within = entry.time % self.length;
            if span != self.span {
                self.span = span;
                self.start = ((self.length - length) as f64 * self.random.uniform()) as u64;
            }
            if (self.start..self.start + length).contains(&within) {
                self.dropped += 1;
                continue;
            }
            if self.dropped > 0 {
                // The kernel says so before the first record that fits again.
                kept.push(Entry { kind: EntryKind::Lost(self.dropped), ..entry });
                self.dropped = 0;
            }
            kept.push(entry);
        }
        kept
    }
}

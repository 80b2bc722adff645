//! Over which stretch of time the events of a sample happened.

use crate::units::{Nanoseconds, Timestamp};

/// What an event counts, as far as time is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventUnit {
    /// Nanoseconds of a task or CPU (`cpu-clock`, `task-clock`): the period itself is time.
    Nanoseconds,
    /// Cycles: at a clock rate that changes little from one sample to the next.
    Cycles,
    /// Anything else says nothing about time.
    Other,
}

/// Finds, for each sample, when its events began and how long its CPU ran for them.
#[derive(Debug, Default)]
pub struct SpanTracker {
    /// Last sample by event and CPU.
    streams: Vec<Vec<Option<Stream>>>,
}

#[derive(Debug, Clone, Copy)]
struct Stream {
    last: Timestamp,
    /// Events per nanosecond while the CPU runs, as seen lately.
    rate: f64,
}

/// The stretch of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When its events began.
    pub start: Timestamp,
    /// How long the CPU ran meanwhile; zero if the event does not tell.
    pub running: Nanoseconds,
}

impl SpanTracker {
    /// The span of a sample of `count` events. Call in time order.
    pub fn span(
        &mut self,
        event: u32,
        cpu: Option<u32>,
        unit: EventUnit,
        time: Timestamp,
        count: u64,
    ) -> Span {
        let Some(stream) = self.stream(event, cpu) else {
            return Span { start: time, running: Nanoseconds::ZERO };
        };
        let previous = stream.replace(Stream { last: time, rate: stream.map_or(0.0, |stream| stream.rate) });
        let gap = previous.map(|previous| time.since(previous.last));
        let start_after =
            |running: Nanoseconds| Timestamp::from_nanos(time.as_nanos().saturating_sub(running.as_nanos()));
        match unit {
            EventUnit::Nanoseconds => {
                let running = Nanoseconds::from_nanos(count);
                // The clock stands still while the task sleeps: the last `count` nanoseconds before the
                // sample are the best guess, and the previous sample ends the guess.
                let start = gap.map_or(start_after(running), |gap| start_after(gap.min(running)));
                Span { start, running }
            }
            EventUnit::Cycles => {
                let Some(gap) = gap else { return Span { start: time, running: Nanoseconds::ZERO } };
                let known_rate = previous.map_or(0.0, |previous| previous.rate);
                if let Some(stream) = stream {
                    stream.rate = next_rate(known_rate, gap, count);
                }
                let running = running_time(gap, count, known_rate);
                Span { start: start_after(running), running }
            }
            EventUnit::Other => {
                Span { start: previous.map_or(time, |previous| previous.last), running: Nanoseconds::ZERO }
            }
        }
    }

    fn stream(&mut self, event: u32, cpu: Option<u32>) -> Option<&mut Option<Stream>> {
        // Damaged files name wild CPUs; kernels end at 8192.
        const MOST_CPUS: usize = 1 << 16;
        let slot = cpu.map_or(0, |cpu| cpu as usize + 1);
        if slot > MOST_CPUS {
            return None;
        }
        let event = event as usize;
        if self.streams.len() <= event {
            self.streams.resize_with(event + 1, Vec::new);
        }
        let streams = &mut self.streams[event];
        if streams.len() <= slot {
            streams.resize(slot + 1, None);
        }
        Some(&mut streams[slot])
    }
}

/// How much of `gap` a CPU ran to count `cycles`, given the clock rate seen before.
///
/// A gap much longer than the cycles take at the last known rate means that the CPU was idle for the
/// rest. A rate is trusted only within a factor of two: clocks change.
fn running_time(gap: Nanoseconds, cycles: u64, known_rate: f64) -> Nanoseconds {
    if known_rate <= 0.0 {
        return gap;
    }
    let at_known_rate = cycles as f64 / known_rate;
    if gap.as_nanos() as f64 > 2.0 * at_known_rate {
        Nanoseconds::from_nanos(at_known_rate as u64)
    } else {
        gap
    }
}

/// The clock rate to be expected, in cycles per nanosecond, after a gap with so many cycles.
///
/// It follows what is seen, but only so fast: a gap with idle time in it looks slow, and two samples
/// delivered together look like a clock of terahertz. Rising faster than falling, it finds the rate of
/// the busy stretches among the idle ones.
fn next_rate(known_rate: f64, gap: Nanoseconds, cycles: u64) -> f64 {
    /// No CPU has a faster clock.
    const HIGHEST: f64 = 10.0;
    let seen = (cycles as f64 / gap.as_nanos().max(1) as f64).min(HIGHEST);
    if known_rate <= 0.0 { seen } else { seen.clamp(known_rate * 0.8, known_rate * 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_nanos(micros * 1000)
    }

    #[test]
    fn a_clock_event_covers_its_period_but_not_its_predecessor() {
        let mut spans = SpanTracker::default();
        let mut span = |time, count| spans.span(0, Some(3), EventUnit::Nanoseconds, at(time), count);
        assert_eq!(span(5000, 1_000_000).start, at(4000));
        assert_eq!(span(9000, 1_000_000).start, at(8000), "it slept in between");
        assert_eq!(span(9500, 1_000_000).start, at(9000), "two tasks took turns");
    }

    #[test]
    fn idle_time_does_not_count_as_running_cycles() {
        let mut spans = SpanTracker::default();
        let mut running =
            |time| spans.span(0, None, EventUnit::Cycles, at(time), 3_000_000).running.as_nanos();
        assert_eq!(running(1000), 0, "nobody knows when the first sample's cycles began");
        assert_eq!(running(2000), 1_000_000);
        assert_eq!(running(9000), 1_000_000, "slept for 6 ms");
        assert_eq!(running(10_200), 1_200_000, "a lower clock");
    }

    #[test]
    fn samples_delivered_together_do_not_spoil_the_rate_for_good() {
        let mut spans = SpanTracker::default();
        let mut time = 1000;
        let mut running = |gap: u64| {
            time += gap;
            spans.span(0, None, EventUnit::Cycles, at(time), 3_000_000).running.as_nanos()
        };
        // The second and third sample come one microsecond after the first.
        for gap in [1000, 1, 1] {
            running(gap);
        }
        let later: u64 = (0..20).map(|_| running(1000)).sum();
        assert!(later > 17_000_000, "20 ms of running at 3 GHz, of which {later} ns were found");
    }

    #[test]
    fn other_events_reach_back_to_their_predecessor_on_that_cpu() {
        let mut spans = SpanTracker::default();
        let mut start = |cpu, time| spans.span(1, Some(cpu), EventUnit::Other, at(time), 5).start;
        assert_eq!(start(0, 100), at(100));
        assert_eq!(start(1, 200), at(200));
        assert_eq!(start(0, 300), at(100));
    }

    #[test]
    fn a_wild_cpu_number_costs_no_memory() {
        let mut spans = SpanTracker::default();
        let span = spans.span(0, Some(u32::MAX), EventUnit::Other, at(1), 1);
        assert_eq!(span.start, at(1));
    }
}

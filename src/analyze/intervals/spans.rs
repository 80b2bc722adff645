//! Over which stretch of time the events of a sample happened.

use crate::analyze::events::EventUnit;
use crate::analyze::intervals::pace::weight_of_latest;
use crate::units::{Nanoseconds, Timestamp};

/// Finds, for each sample, when its events began and how long its CPU ran for them.
#[derive(Debug, Clone, Default)]
pub struct SpanTracker {
    /// Last sample by event and CPU.
    streams: Vec<Vec<Option<Stream>>>,
    late: f64,
    /// By event.
    bursts: Vec<Bursts>,
}

/// Samples that came right after one another.
#[derive(Debug, Clone, Copy, Default)]
struct Bursts {
    samples: f64,
    /// Sums of the second and the third powers of the bursts' samples.
    squares: f64,
    cubes: f64,
}

impl Bursts {
    fn add(&mut self, samples: f64) {
        self.samples += samples;
        self.squares += samples.powi(2);
        self.cubes += samples.powi(3);
    }

    /// See [`SpanTracker::lateness_of_changes`].
    fn lateness_of_changes(&self) -> f64 {
        if self.samples <= 0.0 {
            return 1.0;
        }
        let (mean, mean_square) = (self.squares / self.samples, self.cubes / self.samples);
        4.0 * mean_square - 3.0 * mean.powi(2)
    }
}

/// The first sample of an event on a CPU.
#[derive(Debug, Clone, Copy)]
pub struct FirstSample {
    pub time: Timestamp,
    pub count: u64,
    /// From it to the next one.
    pub gap: Option<Nanoseconds>,
}

#[derive(Debug, Clone)]
struct Stream {
    last: Timestamp,
    /// `None` of events that tell how long their first sample took.
    first: Option<FirstSample>,
    /// Events per nanosecond while the CPU runs; only for cycles.
    clock: ClockRate,
    /// The latest gap of at least the usual length, and the samples that came right after it.
    gap: Nanoseconds,
    burst: u64,
    /// Nanoseconds from one sample to the next, as of late; only for events that do not tell time.
    pace: f64,
}

/// A gap of so many usual ones is a lull: what the event counts was not done all the while.
const LULL: f64 = 2.0;

/// The stretch of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// When its events began.
    pub start: Timestamp,
    /// How long the CPU ran meanwhile; zero if the event does not tell.
    pub running: Nanoseconds,
}

impl Span {
    /// Of what is no sample.
    pub const NONE: Self = Self { start: Timestamp::from_nanos(0), running: Nanoseconds::ZERO };

    /// The same, with a running time only if its event is one that tells how long CPUs run.
    pub fn told_by(self, tells_time: bool) -> Self {
        Self { running: if tells_time { self.running } else { Nanoseconds::ZERO }, ..self }
    }
}

impl SpanTracker {
    /// Whether there was one sample of the event on the CPU so far, whose events began nobody knows when.
    pub fn is_alone(&self, event: u32, cpu: Option<u32>) -> bool {
        let first = |slot: usize| self.streams.get(event as usize)?.get(slot)?.as_ref()?.first;
        slot_of(cpu).and_then(first).is_some_and(|first| first.gap.is_none())
    }

    /// The first samples of each event on each CPU, of which nobody knows when their events began.
    pub fn first_samples(&self) -> impl Iterator<Item = (u32, Option<u32>, FirstSample)> {
        let of_event = |(event, streams): (u32, &'_ Vec<Option<Stream>>)| {
            let firsts = streams.iter().enumerate();
            let firsts = firsts.filter_map(|(slot, stream)| Some((slot, stream.as_ref()?.first?)));
            let cpu = |slot: usize| slot.checked_sub(1).map(|cpu| cpu as u32);
            firsts.map(|(slot, first)| (event, cpu(slot), first)).collect::<Vec<_>>()
        };
        (0..).zip(&self.streams).flat_map(of_event)
    }

    /// The span of a sample of `count` events. Call in time order.
    pub fn span(
        &mut self,
        event: u32,
        cpu: Option<u32>,
        unit: EventUnit,
        time: Timestamp,
        count: u64,
    ) -> Span {
        let Some(slot) = self.stream(event, cpu) else {
            return Span { start: time, running: Nanoseconds::ZERO };
        };
        let Some(stream) = slot else {
            *slot = Some(Stream {
                last: time,
                first: (unit != EventUnit::Nanoseconds).then_some(FirstSample { time, count, gap: None }),
                clock: ClockRate::default(),
                gap: Nanoseconds::ZERO,
                burst: 0,
                pace: 0.0,
            });
            let running = match unit {
                EventUnit::Nanoseconds => Nanoseconds::from_nanos(count),
                // Nobody knows when the first sample's events began.
                EventUnit::Cycles | EventUnit::Other => Nanoseconds::ZERO,
            };
            return Span { start: before(time, running), running };
        };
        let last = std::mem::replace(&mut stream.last, time);
        let gap = time.since(last);
        if let Some(first) = &mut stream.first {
            first.gap.get_or_insert(gap);
        }
        match unit {
            EventUnit::Nanoseconds => {
                let running = Nanoseconds::from_nanos(count);
                // The clock stands still while the task sleeps: the last `count` nanoseconds before the
                // sample are the best guess, and the previous sample ends the guess.
                Span { start: before(time, gap.min(running)), running }
            }
            EventUnit::Cycles => {
                let running = stream.clock.running_time(gap, count);
                if running.as_nanos() > gap.as_nanos().saturating_mul(2) {
                    stream.burst += 1;
                } else {
                    // At some time within the gap, so many events too few have been seen: a third of the
                    // square of what its end lacks, on average.
                    let missing = stream.burst as f64 * count as f64;
                    let lateness = stream.gap.as_nanos() as f64 * missing * missing / 3.0;
                    let together = stream.burst as f64 + 1.0;
                    (stream.gap, stream.burst) = (gap, 0);
                    self.late += lateness;
                    if self.bursts.len() <= event as usize {
                        self.bursts.resize(event as usize + 1, Bursts::default());
                    }
                    self.bursts[event as usize].add(together);
                }
                Span { start: before(time, running), running }
            }
            EventUnit::Other => {
                // After a lull most of a period's events are of the end of it, and of what ran before: spread
                // over all of it they would take joules from what ran meanwhile.
                let all = gap.as_nanos() as f64;
                let longest = if stream.pace > 0.0 { LULL * stream.pace } else { all };
                stream.pace += weight_of_latest(stream.pace) * (all - stream.pace);
                let span = Nanoseconds::from_nanos(all.min(longest) as u64);
                Span { start: before(time, span), running: Nanoseconds::ZERO }
            }
        }
    }

    /// What samples of cycles came late, because the kernel or a virtual machine's host held them up: the
    /// square of the cycles that are missing at a point in time, summed over nanoseconds.
    pub fn lateness(&self) -> f64 {
        self.late
    }

    /// How many times the variance that a change of code brings is larger than where samples come one by one.
    ///
    /// All of a burst's `k` samples are taken to be of what runs when they come, though it ran for a part of the time only, which
    /// is uniform: what begins in a burst has `u k` samples too many, what ends in another `u' k'` too few. The variance of the
    /// difference is `k² / 12` twice where all bursts are equal, and else a third of the mean square less a quarter of the
    /// square of the mean: a long one is not made up for by a short one. Means are over changes, which a burst sees
    /// the more likely, the longer it took.
    pub fn lateness_of_changes(&self, event: usize) -> f64 {
        self.bursts.get(event).map_or(1.0, Bursts::lateness_of_changes)
    }

    fn stream(&mut self, event: u32, cpu: Option<u32>) -> Option<&mut Option<Stream>> {
        let slot = slot_of(cpu)?;
        let event = event as usize;
        if self.streams.len() <= event {
            self.streams.resize_with(event + 1, Vec::new);
        }
        let streams = &mut self.streams[event];
        if streams.len() <= slot {
            streams.resize_with(slot + 1, || None);
        }
        Some(&mut streams[slot])
    }
}

/// A CPU's place in a list by CPUs, behind that of samples that do not name theirs. `None` for wild numbers, which damaged
/// files have.
pub(super) fn slot_of(cpu: Option<u32>) -> Option<usize> {
    // Kernels end at 8192.
    const MOST_CPUS: usize = 1 << 16;
    Some(cpu.map_or(0, |cpu| cpu as usize + 1)).filter(|slot| *slot <= MOST_CPUS)
}

/// So long before a time.
pub(super) fn before(time: Timestamp, span: Nanoseconds) -> Timestamp {
    Timestamp::from_nanos(time.as_nanos().saturating_sub(span.as_nanos()))
}

/// The clock rate of a CPU while it runs, from samples of its cycles.
///
/// A gap with idle time in it looks like a slow clock, and two samples that the kernel delivers together
/// look like a clock of terahertz. So the rate is not a mean but the most frequent one seen lately: a
/// small histogram of rates, an eighth of an octave each, that forgets by halves.
#[derive(Debug, Clone)]
struct ClockRate {
    seen: [u8; Self::BINS],
    most: u8,
    rate: f64,
}

impl Default for ClockRate {
    fn default() -> Self {
        Self { seen: [0; Self::BINS], most: 0, rate: 0.0 }
    }
}

impl ClockRate {
    /// Ten octaves from 2^-6 cycles per nanosecond, 16 MHz.
    const BINS: usize = 80;
    const LOWEST_EXPONENT: i32 = -6;
    /// When a bin has so many, all are halved.
    const FULL: u8 = 64;

    /// How much of the gap since the previous sample the CPU ran to count these cycles.
    ///
    /// A gap much longer than they take at the usual rate was partly idle; a much shorter one means that
    /// the sample before came late. In between, the clock itself may have changed.
    fn running_time(&mut self, gap: Nanoseconds, cycles: u64) -> Nanoseconds {
        let seen = cycles as f64 / gap.as_nanos().max(1) as f64;
        self.add(seen);
        let usual = cycles as f64 / self.rate;
        let share = gap.as_nanos() as f64 / usual;
        if self.rate <= 0.0 || (0.5..=2.0).contains(&share) {
            gap
        } else {
            Nanoseconds::from_nanos(usual as u64)
        }
    }

    fn add(&mut self, rate: f64) {
        let Some(bin) = Self::bin(rate) else { return };
        self.seen[bin] += 1;
        let count = self.seen[bin];
        // Of two that are seen as often, the slower is more likely to have idle time in it.
        if count > self.most || count == self.most && rate > self.rate {
            self.most = count;
            self.rate = rate;
        }
        if self.most >= Self::FULL {
            self.seen.iter_mut().for_each(|count| *count /= 2);
            self.most /= 2;
        }
    }

    /// Rates that no CPU has are in no bin.
    fn bin(rate: f64) -> Option<usize> {
        // The exponent and the first three bits of the fraction of the number itself.
        let bits = (rate.to_bits() >> 49) as i64;
        let lowest = i64::from(1023 + Self::LOWEST_EXPONENT) << 3;
        usize::try_from(bits - lowest).ok().filter(|bin| *bin < Self::BINS)
    }
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
    fn cycles_are_not_spread_over_idle_time() {
        let mut spans = SpanTracker::default();
        let mut start = |time| spans.span(0, None, EventUnit::Cycles, at(time), 3_000_000).start;
        (1..5).for_each(|milli| _ = start(milli * 1000));
        assert_eq!(start(5000), at(4000));
        assert_eq!(start(25_000), at(24_000), "slept for 19 ms");
    }

    #[test]
    fn times_of_a_damaged_file_end_no_analysis() {
        let mut spans = SpanTracker::default();
        for time in [0, u64::MAX / 2 + 1, u64::MAX, 5] {
            let time = Timestamp::from_nanos(time);
            let span = spans.span(0, None, EventUnit::Cycles, time, u64::MAX);
            assert!(span.start <= time);
        }
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
    fn samples_that_come_together_are_wrong_together() {
        let mut even = Bursts::default();
        (0..20).for_each(|_| even.add(3.0));
        assert!((even.lateness_of_changes() - 9.0).abs() < 1e-9);
        let mut spans = SpanTracker::default();
        let mut time = 1000;
        assert_eq!(spans.lateness_of_changes(0), 1.0);
        // Every tenth gap is four milliseconds long, and three samples come right after it.
        for _ in 0..50 {
            for gap in [1000, 1000, 1000, 1000, 1000, 1000, 4000, 1, 1, 1] {
                time += gap;
                spans.span(0, Some(2), EventUnit::Cycles, at(time), 3_000_000);
            }
        }
        // Six of 1 and one of 4.
        let expected = 4.0 * (6.0 + 64.0) / 10.0 - 3.0 * ((6.0 + 16.0) / 10.0_f64).powi(2);
        let found = spans.lateness_of_changes(0);
        assert!((found / expected - 1.0).abs() < 0.05, "{found} instead of {expected}");
        assert_eq!(spans.lateness_of_changes(1), 1.0);
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
    fn events_after_a_lull_were_not_spread_over_it() {
        let mut spans = SpanTracker::default();
        let mut start = |time| spans.span(1, Some(0), EventUnit::Other, at(time), 5).start;
        let steady: Vec<Timestamp> = (1..=40).map(|time| start(100 * time)).collect();
        assert!((1..40).all(|index| steady[index] == at(100 * index as u64)), "{steady:?}");
        assert_eq!(start(14_000), at(13_800), "twice the usual");
        // What was a lull at first is the usual after some time.
        let rare: Vec<Timestamp> = (1..=40).map(|time| start(14_000 + 5_000 * time)).collect();
        assert_eq!(rare[39], at(14_000 + 5_000 * 39));
    }

    #[test]
    fn rates_lie_in_eighths_of_octaves() {
        let below = |rate: f64| f64::from_bits(rate.to_bits() - 1);
        for (rate, bin) in [
            (1.0 / 64.0, 0_usize),
            (0.5, 40),
            (1.0, 48),
            (1.125, 49),
            (1.25, 50),
            (1.875, 55),
            (2.0, 56),
            (3.0, 60),
            (8.0, 72),
        ] {
            assert_eq!(
                (ClockRate::bin(rate), ClockRate::bin(below(rate))),
                (Some(bin), bin.checked_sub(1)),
                "{rate}"
            );
        }
        assert_eq!((ClockRate::bin(below(16.0)), ClockRate::bin(16.0)), (Some(79), None));
        assert_eq!([0.0, -1.0, f64::INFINITY, f64::NAN].map(ClockRate::bin), [None; 4]);
    }

    #[test]
    fn the_rate_is_the_most_frequent_of_late_and_the_faster_of_two() {
        let mut clock = ClockRate::default();
        clock.add(0.0);
        assert_eq!(clock.rate, 0.0, "no CPU has none");
        [2.0, 1.0].into_iter().for_each(|rate| clock.add(rate));
        assert_eq!(clock.rate, 2.0, "of two that are seen as often the faster");
        clock.add(3.0);
        assert_eq!(clock.rate, 3.0);
        [1.0, 1.0].into_iter().for_each(|rate| clock.add(rate));
        assert_eq!(clock.rate, 1.0, "seen more often");
        // It takes 64 to be forgotten by half, and less than as many again to be overtaken.
        let mut clock = ClockRate::default();
        (0..63).for_each(|_| clock.add(2.0));
        assert_eq!((clock.most, clock.seen[56]), (63, 63));
        clock.add(2.0);
        assert_eq!((clock.most, clock.seen[56]), (32, 32));
        (0..32).for_each(|_| clock.add(1.0));
        assert_eq!(clock.rate, 2.0, "as often, and slower");
        clock.add(1.0);
        assert_eq!(clock.rate, 1.0);
    }

    #[test]
    fn gaps_from_half_the_usual_to_twice_are_another_clock() {
        let running = |micros: u64| {
            let mut clock = ClockRate::default();
            (0..9).for_each(|_| _ = clock.running_time(Nanoseconds::from_nanos(1_000_000), 3_000_000));
            clock.running_time(Nanoseconds::from_nanos(micros * 1000), 3_000_000).as_nanos() / 1000
        };
        assert_eq!([499, 500, 700, 2000, 2001].map(running), [1000, 500, 700, 2000, 1000]);
    }

    /// A gap of 4 ms, then two samples at once: 6 million cycles are missing at its end, a third of their square on average.
    #[test]
    fn lateness_by_hand() {
        let mut spans = SpanTracker::default();
        let mut time = 1000;
        for gap in [1000, 1000, 1000, 4000, 1, 1, 1000, 1000] {
            time += gap;
            spans.span(0, Some(2), EventUnit::Cycles, at(time), 3_000_000);
        }
        assert_eq!(spans.lateness(), 4e6 * 6e6f64.powi(2) / 3.0);
        // Bursts of one, one, one, three and one; changes see each as often as it is long.
        let (mean, mean_square) = ((4.0 + 9.0) / 7.0, (4.0 + 27.0) / 7.0);
        let found = spans.lateness_of_changes(0);
        assert!((found - (4.0 * mean_square - 3.0 * mean * mean)).abs() < 1e-9, "{found}");
    }

    #[test]
    fn first_samples_are_told_with_the_gap_behind_them() {
        let mut spans = SpanTracker::default();
        spans.span(1, Some(0), EventUnit::Other, at(100), 5);
        spans.span(1, None, EventUnit::Cycles, at(150), 6);
        spans.span(0, Some(0), EventUnit::Nanoseconds, at(100), 7);
        assert!(spans.is_alone(1, Some(0)) && spans.is_alone(1, None));
        assert!(!spans.is_alone(0, Some(0)), "a clock tells how long it took");
        assert!(
            !spans.is_alone(1, Some(1)) && !spans.is_alone(2, None) && !spans.is_alone(1, Some(u32::MAX))
        );
        spans.span(1, Some(0), EventUnit::Other, at(300), 5);
        spans.span(1, Some(0), EventUnit::Other, at(900), 5);
        assert!(!spans.is_alone(1, Some(0)));
        let firsts: Vec<_> = spans
            .first_samples()
            .map(|(event, cpu, FirstSample { time, count, gap })| (event, cpu, time, count, gap))
            .collect();
        let gap = Some(Nanoseconds::from_nanos(200_000));
        assert_eq!(firsts, [(1, None, at(150), 6, None), (1, Some(0), at(100), 5, gap)]);
        let span = Span { start: at(1), running: Nanoseconds::from_nanos(2) };
        assert_eq!(span.told_by(true), span);
        assert_eq!(span.told_by(false), Span { running: Nanoseconds::ZERO, ..span });
        assert_eq!(
            (slot_of(None), slot_of(Some(65_535)), slot_of(Some(65_536))),
            (Some(0), Some(65_536), None)
        );
    }

    #[test]
    fn a_wild_cpu_number_costs_no_memory() {
        let mut spans = SpanTracker::default();
        let span = spans.span(0, Some(u32::MAX), EventUnit::Other, at(1), 1);
        assert_eq!(span.start, at(1));
    }
}

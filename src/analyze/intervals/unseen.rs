//! How far the count of an event is known at a moment between two of its samples.

use crate::analyze::intervals::spans::{Span, slot_of};
use crate::units::Timestamp;

/// Fewer pairs of samples than this tell nothing.
const FEWEST: u64 = 8;
/// A random walk that is known every so often and drawn as straight lines between is off, on average over a line, by
/// a third of the square by which its middle is off when every second point is left out: `T / 6` and `2 T / 4`.
const OF_EVERY_SECOND: f64 = 1.0 / 3.0;

/// Tells how far counts are off between samples, where they are taken to have risen evenly: each sample but the last
/// is guessed from its neighbours and compared with what it was.
///
/// A steady event is known at any moment, however rare its samples; one that comes in gusts is not.
#[derive(Debug, Clone, Default)]
pub struct BetweenSamples {
    by_event: Vec<OfEvent>,
}

#[derive(Debug, Clone, Default)]
struct OfEvent {
    /// By CPU, the first for samples that do not name theirs.
    latest: Vec<Option<Latest>>,
    /// What guesses missed.
    missed: f64,
    guesses: u64,
    /// Of all samples, whether or not they follow one another.
    squares: f64,
    samples: u64,
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    start: Timestamp,
    time: Timestamp,
    count: u64,
}

impl BetweenSamples {
    /// A sample, its events spread over `span`. Those of one event on one CPU come in the order of time.
    pub fn sample(&mut self, event: u32, cpu: Option<u32>, span: Span, time: Timestamp, count: u64) {
        let Some(slot) = slot_of(cpu) else { return };
        let at = event as usize;
        if self.by_event.len() <= at {
            self.by_event.resize_with(at + 1, OfEvent::default);
        }
        let of_event = &mut self.by_event[at];
        of_event.squares += (count as f64).powi(2);
        of_event.samples += 1;
        if of_event.latest.len() <= slot {
            of_event.latest.resize(slot + 1, None);
        }
        let now = Latest { start: span.start, time, count };
        let Some(before) = of_event.latest[slot].replace(now) else { return };
        let (first, second) = (nanos(before.start, before.time), nanos(now.start, time));
        if before.time == now.start && first > 0.0 && second > 0.0 {
            let guess = (before.count + count) as f64 * first / (first + second);
            of_event.missed += (before.count as f64 - guess).powi(2);
            of_event.guesses += 1;
        }
    }

    /// Variance of an event's count up to a moment, on one CPU. Without any order it would be that of a moment
    /// anywhere within a period, a twelfth of its square.
    pub fn variance(&self, event: usize) -> f64 {
        let Some(of_event) = self.by_event.get(event).filter(|of| of.samples > 0) else { return 0.0 };
        let anywhere = of_event.squares / of_event.samples as f64 / 12.0;
        if of_event.guesses < FEWEST {
            return anywhere;
        }
        (OF_EVERY_SECOND * of_event.missed / of_event.guesses as f64).min(anywhere)
    }

    /// Counts of all samples of an event, by their mean square.
    pub fn total(&self, event: usize) -> f64 {
        self.by_event.get(event).map_or(0.0, |of| (of.squares * of.samples as f64).sqrt())
    }
}

fn nanos(from: Timestamp, to: Timestamp) -> f64 {
    to.since(from).as_nanos() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;
    use crate::units::Nanoseconds;

    fn of_times(times: impl Iterator<Item = u64>) -> BetweenSamples {
        let mut between = BetweenSamples::default();
        let mut last = Timestamp::from_nanos(0);
        for time in times.map(Timestamp::from_nanos) {
            let span = Span { start: last, running: Nanoseconds::ZERO };
            between.sample(0, Some(1), span, time, 1000);
            last = time;
        }
        between
    }

    #[test]
    fn guesses_by_hand() {
        // Eight pairs of 1 ms and 3 ms: of 2000 events a quarter is guessed for the first, which had half.
        let mut times = vec![1_000_000];
        (0..9).for_each(|at| times.push(times[at] + if at % 2 == 0 { 3_000_000 } else { 1_000_000 }));
        let between = of_times(times.iter().copied().take(9));
        assert_eq!(between.by_event[0].guesses, 8);
        let anywhere = 1000.0 * 1000.0 / 12.0;
        let missed = 500.0 * 500.0;
        assert!(
            (between.variance(0) - f64::min(missed / 3.0, anywhere)).abs() < 1e-6,
            "{}",
            between.variance(0)
        );
        // With a guess less, nothing is known but that a moment lies somewhere in a period.
        assert!((of_times(times.iter().copied().take(8)).variance(0) - anywhere).abs() < 1e-6);
        // Pairs of 1 ms and 1.5 ms: 800 are guessed.
        let mut times = vec![1_000_000];
        (0..20).for_each(|at| times.push(times[at] + if at % 2 == 0 { 1_500_000 } else { 1_000_000 }));
        let found = of_times(times.into_iter()).variance(0);
        assert!((found - 200.0 * 200.0 / 3.0).abs() < 1e-6, "{found}");
        assert_eq!(between.total(0), 9000.0);
        assert_eq!(between.total(1), 0.0);
    }

    #[test]
    fn a_steady_event_is_known_at_any_moment() {
        let steady = of_times((1..100).map(|at| at * 3_000_000));
        assert!(steady.variance(0) < 1.0, "{}", steady.variance(0));
        assert_eq!(steady.variance(1), 0.0);
    }

    #[test]
    fn gusts_are_known_to_a_period() {
        // Ten samples in a millisecond, then nothing for twenty.
        let gusts = of_times((1..400).map(|at| at / 10 * 20_000_000 + at % 10 * 100_000));
        let anywhere = 1000.0 * 1000.0 / 12.0;
        assert!((0.3 * anywhere..=anywhere).contains(&gusts.variance(0)), "{}", gusts.variance(0));
    }

    #[test]
    fn what_a_random_rate_hides_is_what_every_second_sample_says() {
        // Events of a Poisson process, a thousand to a sample: the truth is the count of those seen before a moment.
        let mut random = Random::seeded(7);
        let mut time = 0.0;
        let events: Vec<f64> = (0..400_000)
            .map(|_| {
                time -= random.uniform().max(1e-12).ln() * 1000.0;
                time
            })
            .collect();
        let between = of_times(events.iter().skip(999).step_by(1000).map(|time| *time as u64));
        let mut squares = 0.0;
        let mut moments = 0.0;
        for span in events.chunks_exact(1000).collect::<Vec<_>>().windows(2) {
            let (start, end) = (span[0][999], span[1][999]);
            for (seen, event) in span[1].iter().enumerate().step_by(50) {
                squares += ((event - start) / (end - start) * 1000.0 - seen as f64).powi(2);
                moments += 1.0;
            }
        }
        let truth = squares / moments;
        assert!((between.variance(0) / truth - 1.0).abs() < 0.25, "{} {truth}", between.variance(0));
    }
}

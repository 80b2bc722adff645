//! Watching counters for a moment: do they move, how often, and by what steps?

use super::CounterReading;
use crate::units::{Joules, Nanoseconds, Watts};

/// What a short watch of one domain told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observation {
    /// Number of readings in which the counter had moved.
    pub moves: usize,
    /// Energy from the first reading to the last.
    pub energy: Joules,
    /// Time between the first and the last reading.
    pub span: Nanoseconds,
    /// Mean time between two moves, without those that must have missed one; `None` with fewer than two.
    pub refresh: Option<Nanoseconds>,
    /// Greatest common divisor of the counter's steps: its own step, or a multiple of it.
    pub step: Option<u64>,
    /// The counter at the end, as the interface gave it; `None` if it could not be read.
    pub last_raw: Option<u64>,
}

impl Observation {
    /// From readings in order of time.
    pub fn of(readings: &[(Nanoseconds, CounterReading)]) -> Self {
        let (Some((start, first)), Some((end, last))) = (readings.first(), readings.last()) else {
            return Self::default();
        };
        let mut moved_at = Vec::new();
        let mut step = 0;
        for pair in readings.windows(2) {
            if let [(_, before), (time, after)] = pair
                && after.raw != before.raw
            {
                moved_at.push(time.as_nanos());
                step = greatest_common_divisor(step, after.raw.abs_diff(before.raw));
            }
        }
        let mut intervals: Vec<u64> =
            moved_at.windows(2).filter_map(|pair| pair.last()?.checked_sub(*pair.first()?)).collect();
        intervals.sort_unstable();
        Self {
            moves: moved_at.len(),
            energy: last.energy - first.energy,
            span: Nanoseconds::from_nanos(end.as_nanos().saturating_sub(start.as_nanos())),
            refresh: typical(&intervals),
            step: (step > 0).then_some(step),
            last_raw: Some(last.raw),
        }
    }

    /// Mean power over the watch; none if it was too short to tell.
    pub fn power(&self) -> Watts {
        if self.span == Nanoseconds::ZERO { Watts::ZERO } else { self.energy / self.span }
    }

    /// How far two counters of the same thing may seem apart only because each shows its last update
    /// and not the present: one update of all that were seen.
    pub fn granularity(&self) -> f64 {
        if self.moves == 0 { 1.0 } else { 1.0 / self.moves as f64 }
    }
}

/// The mean of intervals, sorted, that are less than twice their median. The median alone would be a multiple
/// of the time between two readings, and the mean of all would count what a pause of the reader took.
fn typical(intervals: &[u64]) -> Option<Nanoseconds> {
    let median = intervals.get(intervals.len() / 2)?;
    let usual = &intervals[..intervals.partition_point(|interval| *interval < median.saturating_mul(2))];
    let sum: u64 = usual.iter().sum();
    // A median of zero has no less than twice of it.
    Some(Nanoseconds::from_nanos(sum.checked_div(usual.len() as u64).unwrap_or(*median)))
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(readings: &[(u64, u64)]) -> Vec<(Nanoseconds, CounterReading)> {
        let reading = |raw| CounterReading { energy: Joules::from_joules(raw as f64), raw };
        readings.iter().map(|&(time, raw)| (Nanoseconds::from_nanos(time), reading(raw))).collect()
    }

    #[test]
    fn power_and_granularity_by_hand() {
        let seen = Observation { moves: 4, energy: Joules::from_joules(6.0), ..Observation::default() };
        assert_eq!((seen.power(), seen.granularity()), (Watts::ZERO, 0.25), "no time has passed");
        let seen = Observation { span: Nanoseconds::from_millis(500), ..seen };
        assert_eq!(seen.power(), Watts::from_watts(12.0));
        assert_eq!(Observation::default().granularity(), 1.0);
    }

    #[test]
    fn twice_the_median_has_missed_a_move() {
        let typical = |intervals: &[u64]| typical(intervals).map(Nanoseconds::as_nanos);
        assert_eq!(typical(&[90, 100, 100, 199, 200]), Some((90 + 100 + 100 + 199) / 4));
        assert_eq!(typical(&[90, 100, 100, 200]), Some(96));
        assert_eq!((typical(&[0, 0, 5]), typical(&[])), (Some(0), None));
    }

    #[test]
    fn refresh_and_step_by_hand() {
        // Read every 250 ns; it moves at 500, 1500 and 2500 by 12, 8 and 20.
        let raw = [0, 0, 12, 12, 12, 12, 20, 20, 20, 20, 40];
        let readings: Vec<(u64, u64)> =
            raw.iter().enumerate().map(|(n, raw)| (n as u64 * 250, *raw)).collect();
        let seen = Observation::of(&at(&readings));
        assert_eq!((seen.moves, seen.energy, seen.step), (3, Joules::from_joules(40.0), Some(4)));
        assert_eq!(seen.refresh, Some(Nanoseconds::from_nanos(1000)));
        assert_eq!((seen.span, seen.last_raw), (Nanoseconds::from_nanos(2500), Some(40)));
    }

    #[test]
    fn refresh_is_finer_than_the_readings() {
        // Read every 400 ns, it moves every 1000: 800 or 1200 apart, and once the reader slept for a while.
        let read_at = (0..=25).map(|n| n * 400).chain([15_200, 16_400]);
        let readings: Vec<(u64, u64)> = read_at.map(|time| (time, time / 1000)).collect();
        let seen = Observation::of(&at(&readings));
        let refresh = seen.refresh.expect("it moved often").as_nanos();
        assert!((980..1020).contains(&refresh), "{refresh}");
    }

    #[test]
    fn a_counter_at_rest() {
        let seen = Observation::of(&at(&[(0, 7), (10, 7), (20, 7)]));
        assert_eq!((seen.moves, seen.refresh, seen.step, seen.last_raw), (0, None, None, Some(7)));
        assert_eq!(Observation::of(&[]), Observation::default());
    }

    #[test]
    fn what_was_counted_before_is_not_of_the_watch() {
        let seen = Observation::of(&at(&[(1000, 500), (1400, 512), (2000, 530)]));
        assert_eq!((seen.energy, seen.span), (Joules::from_joules(30.0), Nanoseconds::from_nanos(1000)));
        assert_eq!((seen.moves, seen.step, seen.last_raw), (2, Some(6), Some(530)));
    }
}

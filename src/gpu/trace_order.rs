//! What the order of a log's rows tells of its clock.

use std::collections::HashSet;

use super::trace::PowerReading;
use crate::units::{Nanoseconds, Timestamp};

/// Rows in which times go back, of a log that rises otherwise. More of them are no clock that was set: the rows are in
/// reverse order, or in none.
const MOST_STEPS: usize = 3;
/// Pollers in several threads may write so many rows in another order than they read them.
const MOST_OVERTAKEN: usize = 3;
/// A clock without dates that goes back by more than this went past midnight.
const HALF_A_DAY: Nanoseconds = Nanoseconds::from_millis(43_200_000);

/// A row whose time lies before that of the row above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepBack {
    /// Number of the row, from 0.
    pub row: usize,
    /// So many rows are of times that rows above it cover too that nothing tells which of them are when.
    pub is_mixed: bool,
}

/// Where the clock of a log was set back: the worst such place.
///
/// Rows that repeat others change nothing, as of a log that was written twice.
pub(super) fn step_back(readings: &[PowerReading]) -> Option<StepBack> {
    let falls = falls(readings.iter().map(|reading| reading.time));
    if falls.is_empty() || falls.len() > MOST_STEPS {
        return None;
    }
    let key = |reading: &PowerReading| (reading.time, reading.power.as_watts().to_bits());
    let ends = falls.iter().skip(1).copied().chain([readings.len()]);
    let steps = falls.iter().zip(ends).filter_map(|(&row, end)| {
        let (above, below) = (&readings[..row], &readings[row..end]);
        let known: HashSet<_> = above.iter().map(key).collect();
        let times = above.iter().map(|reading| reading.time);
        let (first, last) = times.clone().min().zip(times.max())?;
        let fresh = || below.iter().filter(|reading| !known.contains(&key(reading)));
        let overtaken = fresh().filter(|reading| (first..last).contains(&reading.time)).count();
        fresh().next().map(|_| StepBack { row, is_mixed: overtaken > MOST_OVERTAKEN })
    });
    let steps: Vec<StepBack> = steps.collect();
    steps.iter().find(|step| step.is_mixed).or(steps.first()).copied()
}

/// Carries times of a clock without dates on into the next day where they go past midnight; the first row of that day.
pub(super) fn past_midnight(times: &mut [Timestamp]) -> Option<usize> {
    const DAY: Nanoseconds = Nanoseconds::from_millis(86_400_000);
    let falls = falls(times.iter().copied());
    if !falls.iter().all(|row| times[row - 1].since(times[*row]) > HALF_A_DAY) {
        return None;
    }
    for row in &falls {
        times[*row..].iter_mut().for_each(|time| *time = *time + DAY);
    }
    falls.first().copied()
}

/// Places at which times go back.
fn falls(times: impl Iterator<Item = Timestamp> + Clone) -> Vec<usize> {
    let pairs = times.clone().zip(times.skip(1)).enumerate();
    pairs.filter(|(_, (before, after))| after < before).map(|(at, _)| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Watts;

    /// Readings at these milliseconds, each of another power.
    fn at(millis: impl IntoIterator<Item = u64>) -> Vec<PowerReading> {
        let reading = |(number, millis): (u32, u64)| PowerReading {
            time: Timestamp::from_nanos(millis * 1_000_000),
            power: Watts::from_watts(f64::from(number)),
        };
        (0..).zip(millis).map(reading).collect()
    }

    #[test]
    fn a_clock_that_was_set_back_is_found() {
        let set_back = at((1000..2000).step_by(10).chain((1500..2500).step_by(10)));
        assert_eq!(step_back(&set_back), Some(StepBack { row: 100, is_mixed: true }));
        // By more than the log is long: what lies between looks like a gap.
        let apart = at((5000..6000).step_by(10).chain((1000..2000).step_by(10)));
        assert_eq!(step_back(&apart), Some(StepBack { row: 100, is_mixed: false }));
        // The worst of several.
        let twice = at([20, 10].into_iter().chain((1000..2000).step_by(10)).chain((1500..2500).step_by(10)));
        assert_eq!(step_back(&twice), Some(StepBack { row: 102, is_mixed: true }));
    }

    #[test]
    fn rows_in_another_order_are_no_clock() {
        assert_eq!(step_back(&at(0..100)), None);
        assert_eq!(step_back(&at((0..100).rev())), None);
        assert_eq!(step_back(&at((0..100).map(|n| n * 37 % 100))), None, "shuffled");
        let once = at(0..100);
        let twice: Vec<PowerReading> = once.iter().chain(&once).copied().collect();
        assert_eq!(step_back(&twice), None, "the same log again");
        assert_eq!(step_back(&at([0, 10, 30, 20, 40])), Some(StepBack { row: 3, is_mixed: false }));
    }

    #[test]
    fn a_clock_goes_on_past_midnight() {
        let seconds =
            |times: &[u64]| times.iter().map(|of| Timestamp::from_nanos(of * 1_000_000_000)).collect();
        let mut times: Vec<Timestamp> = seconds(&[86_390, 86_399, 1, 10]);
        assert_eq!(past_midnight(&mut times), Some(2));
        assert_eq!(times, seconds(&[86_390, 86_399, 86_401, 86_410]) as Vec<Timestamp>);
        // An hour that comes twice, and rows in reverse order.
        for other in [[7200, 7201, 3602, 3603], [40, 30, 20, 10]] {
            let mut times: Vec<Timestamp> = seconds(&other);
            assert_eq!(past_midnight(&mut times), None);
            assert_eq!(times, seconds(&other) as Vec<Timestamp>);
        }
    }
}

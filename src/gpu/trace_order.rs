//! What the order of a log's rows tells of its clock.

use std::collections::HashSet;

use super::trace::PowerReading;
use crate::tables::{DAY, midnights};
use crate::units::{Nanoseconds, Timestamp};

/// Rows in which times go back, of a log that rises otherwise. More of them are no clock that was set: the rows are in
/// reverse order, or in none.
const MOST_STEPS: usize = 3;
/// Pollers in several threads may write so many rows in another order than they read them.
const MOST_OVERTAKEN: usize = 3;

/// How rows are in another order than their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disorder {
    /// A row's time lies before that of the row above.
    StepBack {
        /// Number of the row, from 0.
        row: usize,
        /// So many rows are of times that rows above it cover too that nothing tells which of them are when.
        is_mixed: bool,
    },
    /// Times go up and down.
    Shuffled {
        /// The first row that lies before the one above, from 0.
        row: usize,
        /// How many do.
        rows: usize,
    },
}

/// How rows are in no order of time: where the clock was set back, the worst such place. `None` of rows that rise or fall all the
/// time.
///
/// Rows that repeat others change nothing, as of a log that was written twice.
pub(super) fn disorder(readings: &[PowerReading]) -> Option<Disorder> {
    let falls = falls(readings.iter().map(|reading| reading.time));
    let first = *falls.first()?;
    if falls.len() > MOST_STEPS {
        let rises = readings.windows(2).filter(|pair| pair[0].time < pair[1].time).count();
        return (rises > 0).then_some(Disorder::Shuffled { row: first, rows: falls.len() });
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
        fresh().next().map(|_| (row, overtaken > MOST_OVERTAKEN))
    });
    let steps: Vec<(usize, bool)> = steps.collect();
    let worst = steps.iter().find(|(_, is_mixed)| *is_mixed).or(steps.first());
    worst.map(|&(row, is_mixed)| Disorder::StepBack { row, is_mixed })
}

/// Carries times of a clock without dates on into the next day where they go past midnight; the first row of that day.
pub(super) fn past_midnight(times: &mut [Timestamp]) -> Option<usize> {
    let clocks: Vec<u64> = times.iter().map(|time| time.as_nanos()).collect();
    let midnights = midnights(&clocks)?;
    for row in &midnights {
        times[*row..].iter_mut().for_each(|time| *time = *time + Nanoseconds::from_nanos(DAY));
    }
    midnights.first().copied()
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
        assert_eq!(disorder(&set_back), Some(Disorder::StepBack { row: 100, is_mixed: true }));
        // By more than the log is long: what lies between looks like a gap.
        let apart = at((5000..6000).step_by(10).chain((1000..2000).step_by(10)));
        assert_eq!(disorder(&apart), Some(Disorder::StepBack { row: 100, is_mixed: false }));
        // The worst of several.
        let twice = at([20, 10].into_iter().chain((1000..2000).step_by(10)).chain((1500..2500).step_by(10)));
        assert_eq!(disorder(&twice), Some(Disorder::StepBack { row: 102, is_mixed: true }));
    }

    #[test]
    fn rows_in_another_order_are_no_clock() {
        assert_eq!(disorder(&at(0..100)), None);
        assert_eq!(disorder(&at((0..100).rev())), None);
        // 0, 37, 74, 11: 37 of the steps by 37 go round.
        let shuffled = disorder(&at((0..100).map(|n| n * 37 % 100)));
        assert_eq!(shuffled, Some(Disorder::Shuffled { row: 3, rows: 36 }));
        let once = at(0..100);
        let twice: Vec<PowerReading> = once.iter().chain(&once).copied().collect();
        assert_eq!(disorder(&twice), None, "the same log again");
        assert_eq!(disorder(&at([0, 10, 30, 20, 40])), Some(Disorder::StepBack { row: 3, is_mixed: false }));
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

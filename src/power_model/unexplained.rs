//! How much of what code differs by in power a model leaves unexplained.
//!
//! What is not known of the moment between two intervals, of meters and of samples alike, is missing in one and too much
//! in the other: it takes no part in the sum of many. Power that code draws and no event tells of does. So the variance of
//! sums of `n` successive errors is `n` times that of what is unexplained, and twice that of an edge: sums of many less
//! single ones tell the former. The same of errors that are left when power is taken to follow how busy the CPUs are
//! tells what code differs by at all, mixed as it is by turns and by several CPUs; the quotient of both knows nothing of
//! that mixture any more.

use super::intervals::{Interval, Intervals};
use crate::numerics::line::Moments;

/// Fewer sums tell no variance.
const FEWEST_SUMS: usize = 48;
/// Sums of so many intervals at most.
const MOST_TOGETHER: usize = 32;
/// A variance is seen if it exceeds its own standard error so many times.
const SEEN: f64 = 3.0;

/// The standard deviation of what `model` leaves unexplained of the power of code, as a share of the standard deviation of
/// that power: 0 where all is explained, 1 where time says as much. `None` where code is not seen to differ.
pub(super) fn unexplained(intervals: &Intervals, model: impl Fn(&Interval) -> f64) -> Option<f64> {
    let rows = &intervals.rows;
    let together = (rows.len() / FEWEST_SUMS).min(MOST_TOGETHER);
    if together < 2 {
        return None;
    }
    let points: Vec<(f64, f64)> =
        rows.iter().map(|row| (row.busy / row.seconds, row.joules / row.seconds)).collect();
    let line = Moments::of(&points);
    let slope = line.slope().unwrap_or(0.0);
    let by_time = |row: &Interval| (line.intercept(slope) + slope * row.busy / row.seconds) * row.seconds;
    let of_code = Inner::of(rows, together, |row| row.joules - by_time(row))?;
    let of_rest = Inner::of(rows, together, |row| row.joules - model(row))?;
    let is_seen = of_code.variance > SEEN * of_code.std_error;
    is_seen.then(|| (of_rest.variance.max(0.0) / of_code.variance).sqrt().min(1.0))
}

/// The variance that errors have within, edges taken out.
struct Inner {
    /// Square joules, of so many intervals.
    variance: f64,
    std_error: f64,
}

impl Inner {
    /// `None` where gaps leave too few sums.
    fn of(rows: &[Interval], together: usize, error: impl Fn(&Interval) -> f64) -> Option<Self> {
        let errors: Vec<f64> = rows.iter().map(error).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let mut sums = Vec::new();
        let mut single = 0.0;
        let (mut sum, mut of_sum) = (0.0, 0);
        for (row, error) in rows.iter().zip(&errors) {
            single += (error - mean).powi(2);
            if !row.follows {
                (sum, of_sum) = (0.0, 0);
            }
            sum += error - mean;
            of_sum += 1;
            if of_sum == together {
                sums.push(sum);
                (sum, of_sum) = (0.0, 0);
            }
        }
        if sums.len() < FEWEST_SUMS / 2 {
            return None;
        }
        let of_sums = sums.iter().map(|sum| sum * sum).sum::<f64>() / sums.len() as f64;
        Some(Self {
            variance: of_sums - single / errors.len() as f64,
            std_error: of_sums * (2.0 / sums.len() as f64).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;

    /// Two programs of 8 and 12 W take random turns; readings are off by up to a tenth of an interval. The model gives the
    /// second `told` of the 4 W that it takes more.
    fn found(told: f64, edges: f64) -> Option<f64> {
        let mut random = Random::seeded(7);
        let mut edge = 0.0;
        let row = |_| {
            let part = random.uniform();
            let next = edges * random.symmetric();
            let (joules, seconds) = (0.01 * (8.0 + 4.0 * part) + next - edge, 0.01);
            edge = next;
            Interval { static_term: 0, follows: true, seconds, joules, counts: vec![part], busy: 3e7 }
        };
        let rows = (0..2000).map(row).collect();
        let intervals = Intervals { rows, static_terms: 1, ..Intervals::default() };
        unexplained(&intervals, |row| 0.01 * (8.0 + 4.0 * told * row.counts[0]))
    }

    #[test]
    fn what_the_model_does_not_tell_is_found_behind_the_noise_of_edges() {
        for told in [0.0, 0.5, 0.8] {
            let found = found(told, 0.008).expect("seen");
            assert!((found - (1.0 - told)).abs() < 0.12, "{told}: {found}");
        }
        let all = found(1.0, 0.008).expect("seen");
        assert!(all < 0.12, "{all}");
    }

    #[test]
    fn what_drowns_in_noise_is_not_known() {
        assert_eq!(found(1.0, 0.5), None);
    }
}

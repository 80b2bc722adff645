//! How much of what code differs by in power a model leaves unexplained.
//!
//! What is not known of the moment between two intervals, of meters and of samples alike, is missing in one and too much
//! in the other: it takes no part in the sum of many. Power that code draws and no event tells of does. So the variance of
//! sums of `n` successive errors is `n` times that of what is unexplained, and twice that of an edge: sums of many less
//! single ones tell the former. How many is best depends on how long code keeps its turn: where several turns fall into a sum,
//! they level each other out. There, single intervals tell it, less what is known of the meter's pace and of the samples' noise.
//! The same of errors that are left when power is taken to follow how busy the CPUs are
//! tells what code differs by at all, mixed as it is by turns and by several CPUs; the quotient of both knows nothing of
//! that mixture any more.

use super::intervals::{Interval, Intervals};
use crate::numerics::line::Moments;

/// Fewer sums tell no variance.
const FEWEST_SUMS: usize = 48;
/// Sums of so many intervals at most.
const MOST_TOGETHER: usize = 32;
/// The noise of edges that is known beforehand may be so many times as large.
const NOISE_AT_MOST: f64 = 2.0;
/// A variance is seen if it exceeds its own standard error so many times.
const SEEN: f64 = 3.0;

/// What a model leaves unexplained of the power of code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unexplained {
    /// Its standard deviation as a share of that of all by which code differs in power: 0 where no more than noise is
    /// left, 1 where time says as much.
    pub of_difference: f64,
    /// Its standard deviation in intervals, as a share of the joules beyond static power. Code that takes turns within an
    /// interval is off by more.
    pub of_joules: f64,
    /// Length of these intervals in seconds.
    pub seconds: f64,
}

impl Unexplained {
    /// By a model of these costs, which says so much of an interval and of static power in it. `None` where code is not seen
    /// to differ.
    pub(super) fn by(
        intervals: &Intervals,
        joules_per_event: &[f64],
        model: impl Fn(&Interval) -> f64,
        static_joules: impl Fn(&Interval) -> f64,
    ) -> Option<Self> {
        // What was guessed is no fault of the model.
        let intervals = &intervals.known();
        let rows = &intervals.rows;
        let points: Vec<(f64, f64)> =
            rows.iter().map(|row| (row.busy / row.seconds, row.joules / row.seconds)).collect();
        let line = Moments::of(&points);
        let slope = line.slope().unwrap_or(0.0);
        let by_time = |row: &Interval| (line.intercept(slope) + slope * row.busy / row.seconds) * row.seconds;
        let of_code = Inner::all(rows, intervals.edge_noise, |row| row.joules - by_time(row));
        if !of_code.iter().any(Inner::is_seen) {
            return None;
        }
        let of_rest = Inner::of_model(intervals, joules_per_event, model);
        // Code that takes turns evenly hides in some sums and shows in others.
        let seen = || of_rest.iter().zip(&of_code).filter(|(rest, _)| rest.is_seen());
        let shares =
            seen().filter(|(_, code)| code.is_seen()).map(|(rest, code)| rest.variance / code.variance);
        let clearest_code = Inner::clearest(&of_code)?;
        let share = of_rest[clearest_code].variance.max(0.0) / of_code[clearest_code].variance;
        let clearest = &of_rest[Inner::clearest(&of_rest)?];
        let most = seen().map(|(rest, _)| rest.of_one()).fold(clearest.of_one().max(0.0), f64::max);
        let count = rows.len() as f64;
        let beyond = rows.iter().map(|row| row.joules - static_joules(row)).sum::<f64>() / count;
        Some(Self {
            of_difference: shares.fold(share, f64::max).sqrt().min(1.0),
            of_joules: if beyond > 0.0 { most.sqrt() / beyond } else { 0.0 },
            seconds: intervals.seconds() / count,
        })
    }
}

/// The variance of a mean interval's joules that `model`, of these costs, leaves unexplained, edges taken out, in square joules.
/// `None` where it is not seen.
pub(super) fn unexplained_variance(
    intervals: &Intervals,
    joules_per_event: &[f64],
    model: impl Fn(&Interval) -> f64,
) -> Option<f64> {
    let of_rest = Inner::of_model(&intervals.known(), joules_per_event, model);
    let inner = &of_rest[Inner::clearest(&of_rest)?];
    inner.is_seen().then(|| inner.of_one())
}

/// The variance that errors have within, edges taken out.
struct Inner {
    /// So many intervals were added up.
    together: usize,
    /// Square joules, of all of them but one, or of a single one.
    variance: f64,
    std_error: f64,
}

impl Inner {
    /// In its own standard errors.
    fn clearness(&self) -> f64 {
        if self.std_error > 0.0 { self.variance / self.std_error } else { 0.0 }
    }

    fn is_seen(&self) -> bool {
        self.clearness() > SEEN
    }

    /// Of one interval.
    fn of_one(&self) -> f64 {
        self.variance / (self.together - 1).max(1) as f64
    }

    /// Of ever more intervals together.
    fn all(rows: &[Interval], noise: f64, error: impl Fn(&Interval) -> f64) -> Vec<Self> {
        let most = (rows.len() / FEWEST_SUMS).min(MOST_TOGETHER);
        let lengths = std::iter::successors(Some(1), |together| Some(together * 2));
        let sums = lengths.take_while(|together| *together < most).chain([most]);
        sums.filter_map(|together| Self::of(rows, together, noise, &error)).collect()
    }

    /// The same of what a model of these costs leaves.
    fn of_model(
        intervals: &Intervals,
        joules_per_event: &[f64],
        model: impl Fn(&Interval) -> f64,
    ) -> Vec<Self> {
        let noise = intervals.edge_noise + intervals.noise_of(joules_per_event);
        Self::all(&intervals.rows, noise, |row| row.joules - model(row))
    }

    /// The place of that which is seen best.
    fn clearest(all: &[Self]) -> Option<usize> {
        (0..all.len()).max_by(|&one, &other| all[one].clearness().total_cmp(&all[other].clearness()))
    }

    /// `noise` is what edges are known to add to the variance of an interval; what sums of several are less than that shows
    /// it better. `None` where gaps leave too few sums.
    fn of(rows: &[Interval], together: usize, noise: f64, error: impl Fn(&Interval) -> f64) -> Option<Self> {
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
        let of_edges = if together == 1 { NOISE_AT_MOST * noise } else { single / errors.len() as f64 };
        Some(Self {
            together,
            variance: of_sums - of_edges,
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
    fn found(told: f64, edges: f64) -> Option<Unexplained> {
        found_in(told, edges, 1.0)
    }

    /// The same in units of so many joules.
    fn found_in(told: f64, edges: f64, unit: f64) -> Option<Unexplained> {
        let mut random = Random::seeded(7);
        let mut edge = 0.0;
        let row = |_| {
            let part = random.uniform();
            let next = edges * random.symmetric();
            let (joules, seconds) = ((0.01 * (8.0 + 4.0 * part) + next - edge) / unit, 0.01);
            edge = next;
            Interval {
                static_term: 0,
                follows: true,
                seconds,
                joules,
                counts: vec![part],
                busy: 3e7,
                guessed: 0.0,
            }
        };
        let rows = (0..2000).map(row).collect();
        let intervals = Intervals {
            rows,
            static_terms: 1,
            edge_noise: 2.0 * edges * edges / 3.0 / (unit * unit),
            ..Intervals::default()
        };
        let model = |row: &Interval| 0.01 * (8.0 + 4.0 * told * row.counts[0]) / unit;
        Unexplained::by(&intervals, &[], model, |row| 4.0 * row.seconds / unit)
    }

    #[test]
    fn shares_do_not_hang_on_the_unit_of_joules() {
        for told in [0.0, 0.5, 0.8] {
            let shares = |unit: f64| {
                let found = found_in(told, 0.001, unit).expect("seen");
                [found.of_difference, found.of_joules]
            };
            let joules = shares(1.0);
            assert!(joules[0] > 0.0);
            for unit in [1e-3, 1024.0] {
                let close = |(found, expected): (f64, f64)| (found - expected).abs() < 1e-6;
                assert!(shares(unit).into_iter().zip(joules).all(close), "{told} {unit}: {joules:?}");
            }
        }
    }

    #[test]
    fn what_the_model_does_not_tell_is_found_behind_the_noise_of_edges() {
        for told in [0.0, 0.5, 0.8] {
            let Unexplained { of_difference, of_joules, seconds } = found(told, 0.008).expect("seen");
            assert!((of_difference - (1.0 - told)).abs() < 0.12, "{told}: {of_difference}");
            // Uniform between 0 and 4 W, beside 6 W beyond static power.
            let truth = (1.0 - told) * 4.0 / 12f64.sqrt() / 6.0;
            // As much as twice the noise of edges is taken out.
            assert!(of_joules > 0.7 * truth && of_joules < 1.2 * truth, "{told}: {of_joules} for {truth}");
            assert!((seconds - 0.01).abs() < 1e-12);
        }
        let all = found(1.0, 0.008).expect("seen");
        assert!(all.of_difference < 0.12 && all.of_joules < 0.04, "{all:?}");
    }

    #[test]
    fn what_drowns_in_noise_is_not_known() {
        assert_eq!(found(1.0, 0.5), None);
    }

    fn row(joules: f64, follows: bool) -> Interval {
        Interval {
            static_term: 0,
            follows,
            seconds: 0.5,
            joules,
            counts: vec![joules],
            busy: 1e9,
            guessed: 0.0,
        }
    }

    /// Errors of 3, 3, -1 and -1 J in turn: 2 J to both sides of their mean.
    fn pairs(count: usize) -> Vec<Interval> {
        (0..count).map(|at| row(if at / 2 % 2 == 0 { 3.0 } else { -1.0 }, at > 0)).collect()
    }

    #[test]
    fn variances_of_sums_by_hand() {
        let of = |rows: &[Interval], together| {
            Inner::of(rows, together, 0.5, |row| row.joules)
                .map(|found| (found.variance, found.std_error, found.of_one()))
        };
        let close = |found: Option<(f64, f64, f64)>, expected: (f64, f64, f64)| {
            let found = found.expect("sums enough");
            for (found, expected) in
                [found.0, found.1, found.2].iter().zip([expected.0, expected.1, expected.2])
            {
                assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
            }
        };
        // Singles have a variance of 4, less twice the noise of edges.
        close(of(&pairs(48), 1), (3.0, 4.0 * (2.0f64 / 48.0).sqrt(), 3.0));
        // Sums of two are 4 J to both sides; less a single one's variance.
        close(of(&pairs(48), 2), (12.0, 16.0 * (2.0f64 / 24.0).sqrt(), 12.0));
        // Sums of three: 2, 2, -2, and so on; two intervals' worth is within.
        close(of(&pairs(96), 3), (0.0, 4.0 * (2.0f64 / 32.0).sqrt(), 0.0));
        // Four cancel.
        close(of(&pairs(96), 4), (-4.0, 0.0, -4.0 / 3.0));
        // 24 sums are enough, 23 are not; a gap begins anew.
        assert!(of(&pairs(24), 1).is_some() && of(&pairs(23), 1).is_none());
        let mut gap = pairs(49);
        gap[1].follows = false;
        // The first alone fills no pair; those behind it straddle: 3 - 1, and so on, but for the last.
        gap.iter_mut().for_each(|row| row.joules -= 1.0);
        let found = Inner::of(&gap, 2, 0.0, |row| row.joules).expect("24 pairs");
        let mean = 2.0 / 49.0;
        let single = gap.iter().map(|row| (row.joules - mean).powi(2)).sum::<f64>() / 49.0;
        let of_sums = (2.0 * mean).powi(2);
        assert!((found.variance - (of_sums - single)).abs() < 1e-12, "{}", found.variance);
        gap[2].follows = false;
        assert!(Inner::of(&gap, 2, 0.0, |row| row.joules).is_none(), "23 pairs");
    }

    #[test]
    fn ever_longer_sums_are_tried() {
        let lengths = |rows: usize| -> Vec<usize> {
            Inner::all(&pairs(rows), 0.0, |row| row.joules).iter().map(|found| found.together).collect()
        };
        assert_eq!(lengths(48), [1]);
        assert_eq!(lengths(96), [1, 2]);
        assert_eq!(lengths(48 * 5), [1, 2, 4, 5]);
        assert_eq!(lengths(48 * 40), [1, 2, 4, 8, 16, 32]);
        // In standard errors: 16 - 4 by 16 · sqrt(2 / 48), beside 4 by 4 · sqrt(2 / 96).
        let all = Inner::all(&pairs(96), 0.0, |row| row.joules);
        let clearness: Vec<f64> = all.iter().map(Inner::clearness).collect();
        let expected = [1.0 / (2.0f64 / 96.0).sqrt(), 0.75 / (2.0f64 / 48.0).sqrt()];
        assert!(clearness.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9));
        assert_eq!(Inner::clearest(&all), Some(0));
        assert!(all.iter().all(Inner::is_seen));
        let faint = Inner { together: 2, variance: 3.0, std_error: 1.0 };
        assert!(!faint.is_seen() && Inner { variance: 3.001, ..faint }.is_seen());
        assert!(!Inner { together: 1, variance: 3.0, std_error: 0.0 }.is_seen());
        assert_eq!(Inner::clearest(&[]), None);
    }

    /// Code of 4 and 8 W for two intervals each, always busy; the model says 5 and 7 W: it leaves a watt to both sides, of two.
    #[test]
    fn what_is_left_and_what_there_was_by_hand() {
        let rows: Vec<Interval> = pairs(480)
            .into_iter()
            .map(|row| Interval { joules: 3.0 + 0.5 * row.joules - 0.5, ..row })
            .collect();
        let intervals = Intervals { rows, static_terms: 1, ..Intervals::default() };
        // 2 J or 4 J; the model says 2.5 J or 3.5 J, of which 1 J is static.
        let model = |row: &Interval| 3.0 + 0.5 * (row.joules - 3.0);
        let found = Unexplained::by(&intervals, &[], model, |_| 1.0).expect("seen");
        assert!((found.of_difference - 0.5).abs() < 1e-9, "{found:?}");
        // Sums of two are off by 1 J: 1 less 0.25 is what one is off by, beside 2 J.
        assert!((found.of_joules - 0.75f64.sqrt() / 2.0).abs() < 1e-9, "{found:?}");
        assert!((found.seconds - 0.5).abs() < 1e-12);
        let variance = unexplained_variance(&intervals, &[], model).expect("seen");
        // By what is seen best: single intervals.
        assert!((variance - 0.25).abs() < 1e-9, "{variance}");
        // A model that leaves nothing.
        let all = Unexplained::by(&intervals, &[], |row| row.joules, |_| 1.0).expect("code differs");
        assert_eq!((all.of_difference, all.of_joules), (0.0, 0.0));
        assert_eq!(unexplained_variance(&intervals, &[], |row| row.joules), None);
        // Where all is static, nothing lies beyond it.
        let none = Unexplained::by(&intervals, &[], model, |row| row.joules).expect("code differs");
        assert_eq!(none.of_joules, 0.0);
        // Counts that are known to a joule hide single intervals' half of one.
        let noisy = Intervals { count_noise: vec![1.0], ..intervals.clone() };
        let variance = unexplained_variance(&noisy, &[0.3], model).expect("pairs show it");
        assert!((variance - 0.75).abs() < 1e-9, "{variance}");
        // What was guessed is left out.
        let mut guessed = intervals;
        guessed.rows.iter_mut().for_each(|row| row.guessed = 0.5);
        assert_eq!(unexplained_variance(&guessed, &[], model), None);
    }

    /// Power that follows how busy the CPUs are is no difference of code, whatever the lengths of intervals.
    #[test]
    fn power_by_time_is_no_difference() {
        let row = |at: usize| {
            let (busy, seconds) = ([1e9, 3e9, 2e9][at % 3], [0.5, 1.0][at % 2]);
            let joules = (7.0 + 2e-9 * busy) * seconds;
            Interval { seconds, busy: busy * seconds, ..row(joules, at > 0) }
        };
        let mut intervals =
            Intervals { rows: (0..480).map(row).collect(), static_terms: 1, ..Intervals::default() };
        let found = |intervals: &Intervals| Unexplained::by(intervals, &[], |_| 0.0, |_| 0.0);
        assert_eq!(found(&intervals), None);
        intervals.rows.iter_mut().enumerate().for_each(|(at, row)| row.joules += [0.1, -0.1][at / 2 % 2]);
        assert!(found(&intervals).is_some());
    }
}

//! The time constant of a sensor from the curve of its answers, wherever they stand.

use serde::{Deserialize, Serialize};

use crate::gpu::stretches::{Course, Cut, cut, misfit};
use crate::numerics::quantiles;
use crate::numerics::search::{bisect, golden_section};

/// The best time constant for a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Exponential {
    /// Seconds.
    pub constant: f64,
    /// Shortest and longest that explain the trace as well.
    pub plausible: [f64; 2],
    /// Cost of the trace as stretches of this exponential, and as straight lines.
    pub cost: f64,
    /// The same for straight lines, which is what windows show.
    pub straight_cost: f64,
    /// Stretches of steady power.
    pub stretches: usize,
    /// Root mean square difference from a capacitor charged by the stretches' levels, as a share of the range.
    pub residual: f64,
}

impl Exponential {
    /// Does a capacitor explain the trace?
    pub(super) fn explains(&self, readings: usize) -> bool {
        const WORST_RESIDUAL: f64 = 0.06;
        const WIDEST: f64 = 2.0;
        /// Windows of real sensors were seen to gain up to a tenth, by their boards' warming up.
        const CLEARLY_LESS: f64 = 0.15;
        /// Where there are few readings, about the price of a level.
        const LEAST_GAIN: f64 = 40.0;
        /// More levels than one for so many readings follow anything.
        const FEWEST_READINGS: usize = 8;
        self.residual <= WORST_RESIDUAL
            && self.plausible[1] <= WIDEST * self.plausible[0]
            && self.stretches * FEWEST_READINGS <= readings
            && self.stretches > 1
            && self.straight_cost - self.cost > (CLEARLY_LESS * self.cost).max(LEAST_GAIN)
    }

    /// One standard error of the constant as a share of it: a quarter of the range of two of them to both sides.
    pub(super) fn std_error(&self) -> f64 {
        (self.plausible[1] / self.plausible[0]).ln() / 4.0
    }

    /// Is it seen in more readings than one step of a short window?
    pub(super) fn outlasts(&self, tick: f64) -> bool {
        self.constant > tick
    }
}

/// So many readings are enough.
const MOST: usize = 1500;

/// How many readings of so many become one: as many as leave ten of them to a time constant, where there are more than enough.
fn readings_of_block(constant: f64, tick: f64, readings: usize) -> usize {
    ((constant / (10.0 * tick)) as usize).clamp(1, readings / MOST + 1)
}

/// Finds the time constant with which the fewest stretches of steady power explain the readings.
///
/// `guess`: about how long the sensor lags, seconds; `tick`: its refresh period.
pub fn best_exponential(
    times: &[f64],
    watts: &[f64],
    noise: f64,
    tick: f64,
    guess: f64,
) -> Option<Exponential> {
    const POINTS: u32 = 22;
    let guess = guess.max(0.5 * tick);
    let blocks = readings_of_block(guess, tick, times.len());
    let (times, watts) = averaged(times, watts, blocks);
    let noise = noise / (blocks as f64).sqrt();
    let (times, watts) = part_with_most(&times, &watts, 2 * MOST);
    let span = times.last()? - times.first()?;
    let (lowest, highest) = quantiles::range(watts.iter().copied());
    let (low, high) = ((guess / 8.0).max(0.3 * tick).ln(), (guess * 8.0).min(span / 2.0).max(tick).ln());
    let cut_at = |log: f64| cut(times, watts, Course::Exponential(log.exp()), noise);
    let width = (high - low) / f64::from(POINTS);
    if width <= 0.0 || !width.is_finite() {
        return None;
    }
    let costs: Vec<f64> = (0..=POINTS).map(|point| cut_at(low + width * f64::from(point)).cost).collect();
    let best = (0..costs.len()).min_by(|a, b| costs[*a].total_cmp(&costs[*b]))?;
    let log_at = |point: usize| low + width * point as f64;
    let log = golden_section(log_at(best) - width, log_at(best) + width, |log| cut_at(log).cost);
    let Cut { stretches, cost } = cut_at(log);
    // Likelihoods within two standard deviations.
    let reach = |direction: f64| {
        let is_as_likely = |distance: f64| cut_at(log + direction * distance).cost <= cost + 4.0;
        let (_, outside) = bisect(0.0, 4.0 * width, 5, is_as_likely);
        (log + direction * outside).exp()
    };
    let constant = log.exp();
    Some(Exponential {
        constant,
        plausible: [reach(-1.0), reach(1.0)],
        cost,
        straight_cost: cut(times, watts, Course::Straight, noise).cost,
        residual: misfit(times, watts, &stretches, constant) / (highest - lowest).max(1e-9),
        stretches: stretches.len(),
    })
}

/// Means of so many readings each. A mean of exponentials of one time constant is one, too.
fn averaged(times: &[f64], watts: &[f64], blocks: usize) -> (Vec<f64>, Vec<f64>) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    (times.chunks_exact(blocks).map(mean).collect(), watts.chunks_exact(blocks).map(mean).collect())
}

/// The stretch of so many readings in which the power changes most.
fn part_with_most<'a>(times: &'a [f64], watts: &'a [f64], most: usize) -> (&'a [f64], &'a [f64]) {
    let change = |from: usize| -> f64 {
        watts[from..(from + most).min(watts.len())].windows(8).step_by(7).map(|w| (w[7] - w[0]).abs()).sum()
    };
    let starts = (0..times.len().saturating_sub(most) + 1).step_by(most / 4);
    let from = starts.max_by(|a, b| change(*a).total_cmp(&change(*b))).unwrap_or(0);
    let to = (from + most).min(times.len());
    (&times[from..to], &watts[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that explains 100 readings, and is at no limit but that of its gain.
    const FOUND: Exponential = Exponential {
        constant: 0.8,
        plausible: [0.7, 1.0],
        cost: 200.0,
        straight_cost: 241.0,
        stretches: 5,
        residual: 0.03,
    };

    #[test]
    fn each_condition_of_an_explanation_has_its_limit() {
        assert!(FOUND.explains(100));
        let explains = |change: &dyn Fn(&mut Exponential)| {
            let mut found = FOUND;
            change(&mut found);
            found.explains(100)
        };
        assert!(explains(&|found| found.residual = 0.06) && !explains(&|found| found.residual = 0.0601));
        assert!(
            explains(&|found| found.plausible = [0.5, 1.0])
                && !explains(&|found| found.plausible = [0.499, 1.0])
        );
        assert!(explains(&|found| found.stretches = 12) && !explains(&|found| found.stretches = 13));
        assert!(explains(&|found| found.stretches = 2) && !explains(&|found| found.stretches = 1));
        // Forty at least, and more than 15 % of a large cost.
        assert!(!explains(&|found| found.straight_cost = 240.0));
        let of_cost = |cost: f64, straight_cost: f64| {
            explains(&|found| (found.cost, found.straight_cost) = (cost, straight_cost))
        };
        assert!(of_cost(1000.0, 1151.0) && !of_cost(1000.0, 1150.0) && !of_cost(1000.0, 850.0));
        assert!(of_cost(0.0, 41.0) && !of_cost(0.0, 40.0));
    }

    #[test]
    fn what_ends_within_a_refresh_does_not_outlast_it() {
        assert_eq!([0.1, 0.8, 0.9].map(|tick| FOUND.outlasts(tick)), [true, false, false]);
        // Two standard errors to both sides: a factor of e from the shortest to the longest is four of them.
        let found = Exponential { plausible: [1.0, 1f64.exp()], ..FOUND };
        assert!((found.std_error() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn many_readings_of_a_slow_sensor_become_fewer() {
        // 0.8 s are 80 readings; 4000 readings are nearly three times enough.
        assert_eq!(readings_of_block(0.8, 0.01, 4000), 3);
        assert_eq!(readings_of_block(0.25, 0.01, 4000), 2);
        assert_eq!(readings_of_block(0.05, 0.01, 4000), 1);
        assert_eq!(readings_of_block(0.8, 0.01, 1499), 1);
        assert_eq!(readings_of_block(0.8, 0.01, 100_000), 8);
    }

    #[test]
    fn means_of_blocks_and_the_part_that_changes_most() {
        let (times, watts) = averaged(&[0.0, 2.0, 4.0, 6.0, 9.0], &[10.0, 20.0, 30.0, 50.0, 99.0], 2);
        assert_eq!((times, watts), (vec![1.0, 5.0], vec![15.0, 40.0]), "what fills no block is left out");
        let times: Vec<f64> = (0..100).map(f64::from).collect();
        let of =
            |first: usize| -> Vec<f64> { (0..100).map(|at| if at < first { 0.0 } else { 50.0 }).collect() };
        // Parts begin every tenth reading, the last of which has no forty behind it.
        let from = |watts: &[f64]| {
            let (times, watts) = part_with_most(&times, watts, 40);
            assert_eq!((times.len(), watts.len()), (40, 40));
            times[0]
        };
        let step = of(75);
        let begins = from(&step);
        assert!((40.0..=70.0).contains(&begins), "the step at 75 is in it: {begins}");
        let falls: Vec<f64> = step.iter().map(|watts| 100.0 - watts).collect();
        assert_eq!(from(&falls), begins, "much power is no change of it");
        assert_eq!(part_with_most(&times, &step, 200).0.len(), 100, "all, where there are no more");
    }
}

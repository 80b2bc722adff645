//! What kernels draw that take turns within a meter's refreshes: a model, fitted to the refreshes themselves.
//!
//! Between two moves of its meter a GPU worked on several kernels, in other parts each time. One number for each kernel, its
//! watts beyond idling, is to explain the joules of all moves. Where the parts hardly differ, moves tell nothing, and
//! kernels keep the watts of all together: a kernel is taken to differ from these by a half, which is what the
//! fit has to outweigh (ridge regression).
//!
//! A meter that moves by itself is seen to have moved some time after, and shows what was drawn up to some time before
//! that. How long that is in all, the fit finds too: its moves are as regular as a clock, and of all times of that clock
//! each counts as it explains the joules.

use nalgebra::{DMatrix, DVector};
use rustc_hash::FxHashMap;

use super::queue::{Outstanding, Queue};
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// Two moves of the meter as they were seen, and what it counted from one to the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeenStep {
    pub start: Timestamp,
    pub end: Timestamp,
    pub energy: Joules,
}

/// The first of those that explain the moves best.
fn best_of(fits: &[Fit]) -> usize {
    (0..fits.len())
        .reduce(|best, next| if fits[next].unsteady < fits[best].unsteady * 0.99 { next } else { best })
        .unwrap_or(0)
}

/// The fit.
#[derive(Debug, Clone)]
pub(super) struct KernelWatts {
    columns: FxHashMap<u32, usize>,
    /// The column of those that have none of their own.
    rest: usize,
    /// Watts of each column, as multiples of the mean.
    relative: Vec<f64>,
    covariance: DMatrix<f64>,
    clock: Clock,
}

/// When the meter moves: seconds since the first reading.
#[derive(Debug, Clone, Copy)]
struct Clock {
    origin: Timestamp,
    first: f64,
    period: f64,
    /// How long after a move it is seen.
    delay: f64,
}

/// Parts of a refresh by which the delay is looked for.
const PARTS: usize = 50;
/// Moves that the fit looks at: these many tell more than enough.
const MOST_MOVES: usize = 2000;
/// With fewer nothing is fitted.
const FEWEST_MOVES: usize = 10;
/// Owners that have watts of their own: those that were busy longest.
const MOST_COLUMNS: usize = 32;
/// A move comes early or late by this part of a refresh, or the fit says how much more.
const UNSTEADY: f64 = 0.005;
/// Independent moves that all of them are taken to be as good as. What remains is not like chance: sensors smear.
const MOVES: f64 = 10.0;
/// As much is believed before the fit has said anything.
const FIRST_UNSTEADY: f64 = 0.02;

impl KernelWatts {
    /// By which part of the mean kernels' watts differ, before anything is known of them.
    pub const DIFFER: f64 = 0.5;
    /// By which part of the mean fitted watts are off where kernels share a refresh: a sensor shows a part of each
    /// kernel's power some milliseconds late, as the next one's (seen on an H100, turns of 50 ms).
    const SMEARED: f64 = 0.15;
    /// No kernel draws less than this part of the mean.
    const LEAST: f64 = 0.05;

    /// `None` if the meter does not move regularly, or nothing took turns.
    pub fn fit(
        steps: &[SeenStep],
        launches: &[Outstanding],
        idle: Watts,
        refresh: Nanoseconds,
    ) -> Option<Self> {
        if steps.len() < FEWEST_MOVES + 1 {
            return None;
        }
        let steps = &steps[..steps.len().min(MOST_MOVES)];
        let (clock, numbers) = Clock::of(steps, refresh)?;
        let bins = Bins::of(&clock, *numbers.last()?, launches);
        let columns = bins.columns();
        if columns.len() < 2 {
            return None;
        }
        let numbers = &numbers[1..];
        let designs: Vec<DMatrix<f64>> =
            (0..=PARTS).map(|delay| bins.design(&columns, numbers, delay)).collect();
        // A GPU without a context draws less than one that waits: only moves with work tell something.
        let busy = |design: &DMatrix<f64>, row: usize| design.row(row).sum() > 0.0;
        let rows: Vec<usize> = (0..numbers.len() - 1)
            .filter(|row| busy(&designs[0], *row) && busy(&designs[PARTS], *row))
            .collect();
        if rows.len() < FEWEST_MOVES {
            return None;
        }
        let above_idle = |row: &usize| {
            let moves = (numbers[row + 1] - numbers[*row]) as f64;
            steps[row + 1].energy.as_joules() - idle.as_watts() * moves * clock.period
        };
        let joules: Vec<f64> = rows.iter().map(above_idle).collect();
        let fit_all = |unsteady: f64| -> Option<Vec<Fit>> {
            designs.iter().map(|design| Fit::of(&design.select_rows(&rows), &joules, unsteady)).collect()
        };
        let least = UNSTEADY * clock.period;
        let mut fits = fit_all(FIRST_UNSTEADY * clock.period)?;
        for _ in 0..3 {
            fits = fit_all(fits[best_of(&fits)].unsteady.max(least))?;
        }
        let delay = best_of(&fits);
        let fit = Fit::together(&fits, least);
        let relative = fit.coefficients.iter().map(|own| (1.0 + own).max(Self::LEAST)).collect();
        let rest = columns.len().min(MOST_COLUMNS) - 1;
        let columns =
            columns.into_iter().enumerate().map(|(column, owner)| (owner, column.min(rest))).collect();
        let clock = Clock { delay: delay as f64 / PARTS as f64 * clock.period, ..clock };
        Some(Self { columns, rest, relative, covariance: fit.covariance, clock })
    }

    /// The watts of an owner beyond idling, as a multiple of the mean.
    pub fn relative(&self, owner: u32) -> f64 {
        self.relative.get(self.column(owner)).copied().unwrap_or(1.0)
    }

    /// The column of an owner.
    pub fn column(&self, owner: u32) -> usize {
        self.columns.get(&owner).copied().unwrap_or(self.rest)
    }

    /// Does the owner have watts together with others?
    pub fn shares_column(&self, owner: u32) -> bool {
        self.column(owner) == self.rest && self.columns.len() > MOST_COLUMNS
    }

    /// The variance of something that changes by so much with the relative watts of these columns.
    pub fn variance(&self, slopes: &[(usize, f64)]) -> f64 {
        let with = |(column, slope): &(usize, f64)| {
            slopes
                .iter()
                .map(|(other, of_other)| slope * of_other * self.covariance[(*column, *other)])
                .sum::<f64>()
        };
        slopes.iter().map(with).sum::<f64>().max(0.0)
    }

    /// Until when what the meter showed had been drawn, by the time at which it was seen to move.
    pub fn moved_at(&self, seen: Timestamp) -> Timestamp {
        if seen <= self.clock.origin {
            return seen;
        }
        let Clock { first, period, .. } = self.clock;
        let number = ((self.clock.seconds(seen) - first) / period).round();
        self.clock.at(number)
    }
}

impl Clock {
    /// The line through the moves, and the number of each; of the first reading, which is none, 0.
    fn of(steps: &[SeenStep], refresh: Nanoseconds) -> Option<(Self, Vec<usize>)> {
        let expected = refresh.as_secs_f64();
        let origin = steps.first()?.start;
        if expected <= 0.0 {
            return None;
        }
        let mut numbers = vec![0];
        for step in steps {
            let moves = (step.end.since(step.start).as_secs_f64() / expected).round().max(1.0);
            numbers.push(numbers[numbers.len() - 1] + moves as usize);
        }
        let seconds = |at: Timestamp| at.since(origin).as_secs_f64();
        let moves: Vec<(f64, f64)> = steps
            .iter()
            .zip(&numbers[1..])
            .map(|(step, number)| (*number as f64, seconds(step.end)))
            .collect();
        let count = moves.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| moves.iter().map(of).sum::<f64>() / count;
        let (number, time) = (mean(|at| at.0), mean(|at| at.1));
        let spread: f64 = moves.iter().map(|at| (at.0 - number).powi(2)).sum();
        let period = moves.iter().map(|at| (at.0 - number) * (at.1 - time)).sum::<f64>() / spread;
        let first = time - period * number;
        let off = moves.iter().map(|at| (at.1 - first - period * at.0).powi(2)).sum::<f64>() / count;
        /// Beyond these parts of the refresh it is no clock.
        const OTHER_PERIOD: f64 = 0.1;
        const OFF: f64 = 0.35;
        let is_regular = (period / expected - 1.0).abs() < OTHER_PERIOD && off.sqrt() < OFF * expected;
        // The first reading is a part of a refresh before the first move, or several.
        is_regular.then_some((Self { origin, first, period, delay: 0.0 }, numbers))
    }

    fn seconds(&self, at: Timestamp) -> f64 {
        at.since(self.origin).as_secs_f64()
    }

    fn at(&self, number: f64) -> Timestamp {
        self.after(self.first + self.period * number - self.delay)
    }

    fn after(&self, seconds: f64) -> Timestamp {
        let nanos = (seconds * 1e9).round() as i64;
        Timestamp::from_nanos(self.origin.as_nanos().saturating_add_signed(nanos))
    }
}

/// Seconds of each owner in pieces of time, [`PARTS`] to a refresh, from a refresh before the clock's number 0.
struct Bins {
    bins: Vec<Vec<(u32, f64)>>,
}

impl Bins {
    fn of(clock: &Clock, last: usize, launches: &[Outstanding]) -> Self {
        let width = clock.period / PARTS as f64;
        let at = |bin: usize| clock.after(clock.first - clock.period + bin as f64 * width);
        let mut queue = Queue::new(launches);
        let seconds = |bin: usize| {
            let (weights, _) = queue.advance(at(bin), at(bin + 1));
            weights.into_iter().map(|(owner, nanos)| (owner, nanos * 1e-9)).collect()
        };
        Self { bins: (0..(last + 1) * PARTS).map(seconds).collect() }
    }

    /// Owners by how long they were busy, the longest first.
    fn columns(&self) -> Vec<u32> {
        let mut totals: FxHashMap<u32, f64> = FxHashMap::default();
        for (owner, seconds) in self.bins.iter().flatten() {
            *totals.entry(*owner).or_default() += seconds;
        }
        let mut owners: Vec<(u32, f64)> = totals.into_iter().filter(|(_, seconds)| *seconds > 0.0).collect();
        owners.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        owners.into_iter().map(|(owner, _)| owner).collect()
    }

    /// Seconds of each column between the moves of these numbers, which are seen so many bins late.
    fn design(&self, columns: &[u32], numbers: &[usize], delay: usize) -> DMatrix<f64> {
        let width = columns.len().min(MOST_COLUMNS);
        let of: FxHashMap<u32, usize> =
            columns.iter().enumerate().map(|(column, owner)| (*owner, column.min(width - 1))).collect();
        let mut design = DMatrix::zeros(numbers.len() - 1, width);
        for (row, pair) in numbers.windows(2).enumerate() {
            let [from, to] = [pair[0], pair[1]].map(|number| ((number + 1) * PARTS).saturating_sub(delay));
            for (owner, seconds) in
                self.bins[from.min(self.bins.len())..to.min(self.bins.len())].iter().flatten()
            {
                design[(row, of[owner])] += seconds;
            }
        }
        design
    }
}

/// How much more than the mean each column draws, as a part of it.
struct Fit {
    coefficients: DVector<f64>,
    covariance: DMatrix<f64>,
    /// By how many seconds of work moves are off.
    unsteady: f64,
}

impl Fit {
    fn of(design: &DMatrix<f64>, joules: &[f64], unsteady: f64) -> Option<Self> {
        let busy = design.column_sum();
        let mean = joules.iter().sum::<f64>() / busy.sum();
        if !(mean > 0.0 && mean.is_finite()) {
            return None;
        }
        // In seconds of work at the mean: what is more or less than the busy time.
        let more = DVector::from_iterator(
            joules.len(),
            joules.iter().zip(busy.iter()).map(|(joules, busy)| joules / mean - busy),
        );
        let price = (unsteady / KernelWatts::DIFFER).powi(2);
        let (rows, columns) = design.shape();
        let priced = |price: f64| {
            let gram = design.tr_mul(design) + DMatrix::identity(columns, columns) * price;
            gram.cholesky().map(|factors| factors.inverse())
        };
        let inverse = priced(price)?;
        // All moves together are worth as many as these.
        let worth = (rows as f64 / MOVES).max(1.0);
        let covariance = priced(price * worth)? * (unsteady.powi(2) * worth);
        let coefficients = &inverse * design.tr_mul(&more);
        let off = (&more - design * &coefficients).norm_squared();
        let told = columns as f64 - price * inverse.trace();
        let left = (rows as f64 - told).max(1.0);
        Some(Self { covariance, coefficients, unsteady: (off / left).sqrt() })
    }

    /// The mean of what they say, each counting as it explains the moves, and how far apart they are: with turns of a few
    /// milliseconds several delays explain them about as well, and each gives the joules to another kernel.
    fn together(fits: &[Self], least: f64) -> Self {
        let off = |fit: &Self| fit.unsteady.hypot(least);
        let best = fits.iter().map(off).fold(f64::INFINITY, f64::min);
        let weights: Vec<f64> = fits.iter().map(|fit| (best / off(fit)).powf(MOVES)).collect();
        let all: f64 = weights.iter().sum();
        let columns = fits.first().map_or(0, |fit| fit.coefficients.len());
        let mut coefficients = DVector::zeros(columns);
        for (fit, weight) in fits.iter().zip(&weights) {
            coefficients += &fit.coefficients * (weight / all);
        }
        let mut covariance = DMatrix::identity(columns, columns) * KernelWatts::SMEARED.powi(2);
        for (fit, weight) in fits.iter().zip(&weights) {
            let apart = &fit.coefficients - &coefficients;
            covariance += (&fit.covariance + &apart * apart.transpose()) * (weight / all);
        }
        Self { coefficients, covariance, unsteady: best }
    }
}

#[cfg(test)]
#[path = "kernel_watts_tests.rs"]
mod tests;

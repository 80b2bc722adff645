//! Static power that changes while a program runs: a machine warms up.
//!
//! What a machine draws at rest is seen before a program begins, when it is cold. Leakage grows with temperature, and no event
//! tells: without more, functions would get what static power has more. But a recording whose code is the same early and late
//! shows it: what a model leaves unexplained rises slowly. That is fitted here, over blocks of time, by a line that may bend at
//! few places.
//!
//! What changes with time may be code as well: a function that runs late only, and draws what no event tells of, looks the same.
//! So each piece of code is taken to draw more or less than the model says, by what models are known to be off by, and so is
//! each event: blocks in which the same code runs are off alike. The fit knows that covariance. Where the mixture of code stays
//! the same, it changes nothing; where code changes once, a step there tells nothing, and a slope on both sides does.

use std::ops::Range;

use nalgebra::{DMatrix, DVector};

use super::intervals::{Interval, Intervals};
use super::self_calibration::SelfCalibration;

/// Blocks of time at most: so long that what is not known of their edges is small beside them.
const BLOCKS: usize = 48;
/// Fewer tell no slow change.
const FEWEST_BLOCKS: usize = 24;
/// Fewer intervals are no block.
const FEWEST_ROWS: usize = 4;
/// Into how many parts of equal length the line may be bent, the fewest first.
const PARTS: [usize; 3] = [1, 2, 4];
/// A line is bent more often if squares of errors fall by so many variances for each further number: the logarithm of the
/// number of blocks (Schwarz 1978).
const WORTH_A_NUMBER: f64 = 3.9;
/// A model is taken to be off by this share at least, one standard deviation: what static power does not draw is then not given to
/// it because a calibration described its own kernels well.
const LEAST_UNEXPLAINED: f64 = 0.12;
/// A change is seen if it exceeds its standard error so many times.
const SEEN: f64 = 5.0;
/// What changes by a larger share of static power is no warmth.
const PLAUSIBLE: f64 = 0.5;

/// How static power changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Seconds since the intervals began, and watts more than at their beginning; straight between them.
    points: Vec<(f64, f64)>,
    /// Watts more than at the beginning, on average.
    mean: f64,
    /// Its standard error.
    std_error: f64,
    /// Both if code were known to draw what the model says.
    as_if_by_chance: (f64, f64),
    /// So much may be static power.
    is_plausible: bool,
}

impl Drift {
    /// What a model leaves of a static term's intervals. Code is off by `unexplained` of what it draws, one standard deviation;
    /// `shares_in` tells of parts of the time, in seconds since the intervals began, which share each piece of code had there.
    pub fn of(
        intervals: &Intervals,
        term: usize,
        model: &SelfCalibration,
        unexplained: f64,
        shares_in: impl Fn(&[Range<f64>]) -> Vec<Vec<f64>>,
    ) -> Option<Self> {
        let blocks = blocks(intervals, term, model);
        if blocks.len() < FEWEST_BLOCKS {
            return None;
        }
        let times: Vec<Range<f64>> = blocks.iter().map(|block| block.time.clone()).collect();
        let of_code =
            of_code(&blocks, &model.joules_per_event, unexplained.max(LEAST_UNEXPLAINED), &shares_in(&times));
        let left = DVector::from_iterator(blocks.len(), blocks.iter().map(|block| block.left));
        let by_chance = with_chance(&blocks, &left, &DMatrix::zeros(blocks.len(), blocks.len()))?;
        let as_if_by_chance = Line::best(&blocks, &left, &by_chance)?.mean();
        let line = Line::best(&blocks, &left, &with_chance(&blocks, &left, &of_code)?)?;
        let all = blocks.last()?.time.end;
        let knot = |knot: usize| {
            (all * knot as f64 / line.parts as f64, if knot == 0 { 0.0 } else { line.fit.solution[knot] })
        };
        let (mean, std_error) = line.mean();
        let points: Vec<(f64, f64)> = (0..=line.parts).map(knot).collect();
        let static_watts = model.static_watts.as_ref()?.get(term)?;
        let is_plausible = points.iter().all(|(_, watts)| watts.abs() < PLAUSIBLE * static_watts);
        Some(Self { points, mean, std_error, as_if_by_chance, is_plausible })
    }

    /// Watts more than at the beginning, on average over the intervals.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Watts more than is believed, on average.
    pub fn mean_of_points(&self) -> f64 {
        let parts = self.points.windows(2);
        let under = |pair: &[(f64, f64)]| (pair[0].1 + pair[1].1) / 2.0 * (pair[1].0 - pair[0].0);
        let all = self.points.last().map_or(0.0, |(end, _)| *end);
        if all > 0.0 { parts.map(under).sum::<f64>() / all } else { 0.0 }
    }

    /// Standard error of the mean.
    pub fn std_error(&self) -> f64 {
        self.std_error
    }

    /// Static power is known to change.
    pub fn is_told(&self) -> bool {
        self.is_plausible && self.mean.abs() > SEEN * self.std_error
    }

    /// Watts by which static power is unsure, on average, where changes that are known to be its own were taken out: as far as
    /// those are known, or what else may have changed, if anything is seen to have.
    pub fn unsure(&self) -> f64 {
        let (mean, std_error) = self.as_if_by_chance;
        match self.is_told() {
            true => self.std_error,
            false if mean.abs() > SEEN * std_error => mean.hypot(std_error),
            false => 0.0,
        }
    }

    /// Where it is not known at which time static power was as it is believed to be, it is so on average.
    pub fn around_the_mean(mut self) -> Self {
        self.points.iter_mut().for_each(|(_, watts)| *watts -= self.mean);
        self
    }

    /// Seconds since the intervals began, and watts more than is believed; straight between them.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Watts more than is believed at a time.
    fn at(&self, seconds: f64) -> f64 {
        let behind = self.points.partition_point(|(time, _)| *time <= seconds);
        match (behind.checked_sub(1).map(|before| self.points[before]), self.points.get(behind)) {
            (Some((from, low)), Some((to, high))) => low + (high - low) * (seconds - from) / (to - from),
            (Some((_, watts)), None) => watts,
            (None, first) => first.map_or(0.0, |(_, watts)| *watts),
        }
    }

    /// The intervals of a static term as they would be without it.
    pub fn taken_out(&self, intervals: &mut Intervals, term: usize) {
        let mut start = 0.0;
        for row in intervals.rows.iter_mut().filter(|row| row.static_term == term) {
            row.joules -= self.at(start + row.seconds / 2.0) * row.seconds;
            start += row.seconds;
        }
    }
}

/// What a model leaves in a part of the time.
#[derive(Debug, Clone, PartialEq)]
struct Block {
    /// In seconds since the intervals began.
    time: Range<f64>,
    /// Watts that the model does not explain.
    left: f64,
    /// Watts beyond static power.
    beyond_static: f64,
    /// Events per second.
    rates: Vec<f64>,
}

/// The intervals of a static term lie one behind the other; those whose counts are guessed tell nothing.
fn blocks(intervals: &Intervals, term: usize, model: &SelfCalibration) -> Vec<Block> {
    let rows: Vec<&Interval> = intervals.rows.iter().filter(|row| row.static_term == term).collect();
    let static_watts = model.static_watts.as_ref().and_then(|watts| watts.get(term)).copied().unwrap_or(0.0);
    let length = rows.len().div_ceil(BLOCKS).max(FEWEST_ROWS);
    let mut start = 0.0;
    let block = |rows: &[&Interval]| {
        let begin = start;
        start += rows.iter().map(|row| row.seconds).sum::<f64>();
        let known: Vec<&&Interval> = rows.iter().filter(|row| row.is_known()).collect();
        if known.len() < FEWEST_ROWS {
            return None;
        }
        let seconds: f64 = known.iter().map(|row| row.seconds).sum();
        let mean =
            |value: &dyn Fn(&Interval) -> f64| known.iter().map(|row| value(row)).sum::<f64>() / seconds;
        let rate = |event: usize| mean(&|row| row.counts.get(event).copied().unwrap_or(0.0));
        Some(Block {
            time: begin..start,
            left: mean(&|row| row.joules - model.joules(row)),
            beyond_static: mean(&|row| row.joules) - static_watts,
            rates: (0..model.joules_per_event.len()).map(rate).collect(),
        })
    };
    rows.chunks(length).filter_map(block).collect()
}

/// What blocks' errors have in common since pieces of code and events may be off by `unexplained` of what they draw: the
/// covariance, in square watts.
fn of_code(blocks: &[Block], costs: &[f64], unexplained: f64, shares: &[Vec<f64>]) -> DMatrix<f64> {
    let beyond = blocks.iter().map(|block| block.beyond_static).sum::<f64>().max(0.0) / blocks.len() as f64;
    let share =
        |block: usize, piece: usize| shares.get(block).and_then(|of| of.get(piece)).copied().unwrap_or(0.0);
    let pieces = shares.iter().map(Vec::len).max().unwrap_or(0);
    let watts_of_pieces = DMatrix::from_fn(blocks.len(), pieces, |block, piece| beyond * share(block, piece));
    let watts_of_events =
        DMatrix::from_fn(blocks.len(), costs.len(), |block, event| costs[event] * blocks[block].rates[event]);
    (&watts_of_pieces * watts_of_pieces.transpose() + &watts_of_events * watts_of_events.transpose())
        * unexplained.powi(2)
}

/// A line through what is left in blocks, of so many straight parts.
struct Line {
    fit: Fit,
    parts: usize,
}

impl Line {
    /// The line that is bent as often as is worth it, through what has errors of this covariance.
    fn best(blocks: &[Block], left: &DVector<f64>, covariance: &DMatrix<f64>) -> Option<Self> {
        let through = |parts: usize| {
            let design = design(blocks, parts);
            Some(Self { fit: Fit::of(&design, left, covariance)?, parts })
        };
        PARTS.into_iter().filter_map(through).reduce(Self::or)
    }

    /// Itself, or one of more parts that is worth them.
    fn or(self, other: Self) -> Self {
        let more = (other.parts - self.parts) as f64;
        let falls = self.fit.square() - other.fit.square();
        if falls > WORTH_A_NUMBER * more * self.fit.alike().max(other.fit.alike()) { other } else { self }
    }

    /// What it begins with, and how much higher it is where it bends and at its end, on average over all the time: a bend is
    /// under two halves of parts, the end under one.
    fn mean_of(&self, values: &DVector<f64>) -> f64 {
        let parts = self.parts as f64;
        (1..=self.parts).map(|knot| values[knot] * if knot == self.parts { 0.5 } else { 1.0 } / parts).sum()
    }

    /// The mean, and its standard error.
    fn mean(&self) -> (f64, f64) {
        let columns = self.fit.covariance.column_iter();
        let with_mean =
            DVector::from_iterator(self.parts + 1, columns.map(|column| self.mean_of(&column.into_owned())));
        (self.mean_of(&self.fit.solution), (self.mean_of(&with_mean) * self.fit.alike()).max(0.0).sqrt())
    }
}

/// The first column is what a line of so many parts begins with, the others how much higher it is at the end of each part.
fn design(blocks: &[Block], parts: usize) -> DMatrix<f64> {
    let width = blocks.last().map_or(0.0, |block| block.time.end) / parts as f64;
    let hat = |time: f64, knot: usize| (1.0 - (time / width - knot as f64).abs()).max(0.0);
    DMatrix::from_fn(blocks.len(), parts + 1, |row, column| match column {
        0 => 1.0,
        knot => hat((blocks[row].time.start + blocks[row].time.end) / 2.0, knot),
    })
}

/// Generalized least squares (Aitken 1935).
struct Fit {
    solution: DVector<f64>,
    covariance: DMatrix<f64>,
    /// Errors, made independent and each divided by its standard deviation.
    white: DVector<f64>,
}

impl Fit {
    /// `None` where blocks do not tell all of the line, as they lack the time before it is bent.
    fn of(design: &DMatrix<f64>, left: &DVector<f64>, covariance: &DMatrix<f64>) -> Option<Self> {
        const MOST_CONDITION: f64 = 1e10;
        let factor = covariance.clone().cholesky()?.l();
        let white_design = factor.solve_lower_triangular(design)?;
        let white_left = factor.solve_lower_triangular(left)?;
        let products = white_design.transpose() * &white_design;
        let inverse = products
            .clone()
            .try_inverse()
            .filter(|inverse| inverse.amax() * products.amax() < MOST_CONDITION)?;
        let solution = &inverse * white_design.transpose() * &white_left;
        Some(Self { white: white_left - white_design * &solution, solution, covariance: inverse })
    }

    fn square(&self) -> f64 {
        self.white.norm_squared()
    }

    /// By how much the variance of sums of many errors exceeds that of as many independent ones, of errors each of which hangs
    /// together with the one before (an autoregression of order one). What a fit of a line hides of that is given back.
    fn alike(&self) -> f64 {
        const MOST: f64 = 0.9;
        let count = self.white.len() as f64;
        let products: f64 = self.white.as_slice().windows(2).map(|pair| pair[0] * pair[1]).sum();
        let square = self.square();
        if square <= 0.0 {
            return 1.0;
        }
        let correlation = ((count * products / square + 2.0) / (count - 4.0)).clamp(0.0, MOST);
        (1.0 + correlation) / (1.0 - correlation)
    }
}

/// The covariance of blocks' errors, of which `of_code` is known, and the rest is chance of the same variance in each: so
/// much that the line that is bent most leaves what it should.
fn with_chance(blocks: &[Block], left: &DVector<f64>, of_code: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    PARTS.into_iter().rev().find_map(|parts| with_chance_beside(&design(blocks, parts), left, of_code))
}

fn with_chance_beside(
    design: &DMatrix<f64>,
    left: &DVector<f64>,
    of_code: &DMatrix<f64>,
) -> Option<DMatrix<f64>> {
    const ROUNDS: usize = 12;
    /// No meter is better than this share of what is left at most.
    const LEAST: f64 = 1e-6;
    let blocks = left.len();
    let freedom = (blocks - design.ncols()) as f64;
    let least = LEAST * left.amax().powi(2) + f64::MIN_POSITIVE;
    let all = |chance: f64| of_code + DMatrix::identity(blocks, blocks) * chance;
    let alone = Fit::of(design, left, &DMatrix::identity(blocks, blocks))?;
    let mut chance = (alone.square() / freedom).max(least);
    for _ in 0..ROUNDS {
        let fit = Fit::of(design, left, &all(chance))?;
        chance = (chance * fit.square() / freedom).max(least);
    }
    Some(all(chance))
}

#[cfg(test)]
#[path = "drift_tests.rs"]
mod tests;

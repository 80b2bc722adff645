//! The mean of a normal posterior: least squares drawn to what was believed, over intervals whose errors hang
//! together and now and then are wild.

use nalgebra::{DMatrix, DVector};

use super::columns::Columns;
use super::contradiction::Evidence;
use super::edge_noise::Whitening;
use super::intervals::{Interval, Intervals};
use super::prior::Prior;
use super::unexplained::unexplained_variance;
use crate::numerics::jackknife;
use crate::numerics::nnls::Sign;
use crate::numerics::normal_equations::NormalEquations;
use crate::numerics::robust;

/// Residuals beyond so many standard deviations count by their size, not by its square: an interval whose samples came late would else draw the line to itself.
const TOLERATED: f64 = 1.5;
/// No meter and no model is better than this share of an interval's joules.
const LEAST_NOISE: f64 = 0.001;

/// What counts hide is known to a factor of about this: where it matters, it widens the errors by what half of it more or
/// less would change.
const NOISE_UNSURE: f64 = 0.5;
/// Coefficients are drawn to what is believed by so many times the noise of counts, beyond what that noise itself draws
/// to zero. With none of it, a noise that is taken for twice what it is would double a coefficient that the counts say
/// little of; with this it adds a third.
const BELIEVED_IN_NOISE: f64 = 1.0;

/// By how much sums of successive errors vary more than the errors themselves say: more than one where
/// power drifted in a way that neither the events nor the noise of edges explain.
fn drift(white: &[f64], weights: &[f64]) -> f64 {
    const BLOCKS: usize = 24;
    let length = (white.len() / BLOCKS).max(4);
    let weighted: Vec<f64> = white.iter().zip(weights).map(|(error, weight)| error * weight.sqrt()).collect();
    let single = weighted.iter().map(|error| error * error).sum::<f64>() / weighted.len().max(1) as f64;
    let blocks = weighted.chunks_exact(length);
    let count = blocks.len();
    let sums: f64 = blocks.map(|block| block.iter().sum::<f64>().powi(2) / length as f64).sum();
    if count < 4 || single <= 0.0 { 1.0 } else { (sums / count as f64 / single).max(1.0) }
}

/// The fit, its columns first the events and then the static terms.
pub(super) struct Posterior {
    pub solution: Vec<f64>,
    pub covariance: DMatrix<f64>,
    pub events: usize,
    pub has_static: bool,
}

/// A value that is believed, and its standard error.
type Belief = (f64, f64);

/// What is known before the fit and does not change in it.
struct Given<'g> {
    intervals: &'g Intervals,
    raw: Columns,
    beliefs: Vec<Belief>,
    /// Standard errors of beliefs where the recording's code is like that of which they were made.
    own_errors: Vec<f64>,
    /// By how much more they may be off in other code.
    more: Vec<f64>,
    /// The smallest variance that errors are taken to have.
    least_noise: f64,
}

impl<'g> Given<'g> {
    fn new(intervals: &'g Intervals, prior: &Prior, has_static: bool) -> Self {
        let raw = Columns::of(intervals, prior.joules_per_event.len(), has_static);
        let (joules, seconds) = (intervals.joules(), intervals.seconds());
        let share_of = |counts: &Vec<f64>| {
            let count: f64 = counts.iter().sum();
            if count > 0.0 { prior.least_share * joules / count } else { 0.0 }
        };
        // What is believed to cost nothing and never happened must stay solvable.
        let solvable = |error: f64| error.max(f64::MIN_POSITIVE.sqrt());
        let mut beliefs: Vec<Belief> = Vec::with_capacity(raw.size());
        let mut more = Vec::with_capacity(raw.size());
        for (event, (cost, counts)) in prior.joules_per_event.iter().zip(&raw.events).enumerate() {
            let (own, least) = (prior.own_error(event), share_of(counts));
            // What a calibration says of its errors holds, until a recording contradicts it.
            let of_other_code = if prior.misfit > 0.0 { (prior.misfit * cost).hypot(least) } else { 0.0 };
            let own = if prior.misfit > 0.0 { own } else { own.max(least) };
            beliefs.push((*cost, solvable(own)));
            more.push(of_other_code);
        }
        beliefs.resize(raw.size(), prior.static_watts.unwrap_or((0.0, 2.0 * joules / seconds)));
        more.resize(raw.size(), 0.0);
        let own_errors = beliefs.iter().map(|(_, error)| *error).collect();
        let mean = joules / intervals.rows.len() as f64;
        let least_noise = (LEAST_NOISE * mean).powi(2);
        let mut given = Self { intervals, raw, beliefs, own_errors, more, least_noise };
        given.believe(1.0);
        given
    }

    /// Takes beliefs to be off by this share of what they may be off by in other code.
    fn believe(&mut self, share: f64) {
        for ((_, error), (own, more)) in self.beliefs.iter_mut().zip(self.own_errors.iter().zip(&self.more)) {
            *error = own.hypot(share * more);
        }
    }

    /// The share of it that rows of this noise tell.
    fn contradicted(&self, step: &Step, drawn: &[f64], noise: f64) -> f64 {
        if self.more.iter().all(|more| *more <= 0.0) {
            return 0.0;
        }
        let believed: Vec<f64> = self.beliefs.iter().map(|(value, _)| *value).collect();
        let mut made_up = step.equations.clone();
        for (column, (value, drawn)) in believed.iter().zip(drawn).enumerate() {
            made_up.make_up(column, *value, *drawn);
        }
        let unsure =
            believed.iter().zip(drawn).map(|(value, drawn)| (NOISE_UNSURE * drawn * value / noise).powi(2));
        let evidence = Evidence {
            information: step.equations.gram() / noise,
            score: DVector::from_vec(made_up.slope(&believed)) / noise,
            unsure: DVector::from_iterator(believed.len(), unsure),
        };
        evidence.share(&self.own_errors, &self.more)
    }

    /// What is to be added to the variance of turned errors since what the events do not tell of code is the same whenever
    /// that code runs: so many intervals say no more of it than so many pieces of code.
    fn of_code(&self, solution: &[f64], whitening: &Whitening) -> f64 {
        let Some(pieces) = self.intervals.pieces_of_code else { return 0.0 };
        let again = self.intervals.rows.len() as f64 / pieces;
        let costs = &solution[..self.raw.events.len()];
        let model = |row: &Interval| {
            let of_events: f64 = costs.iter().zip(&row.counts).map(|(cost, count)| cost * count).sum();
            let watts = solution.get(self.raw.events.len() + row.static_term);
            of_events + watts.copied().unwrap_or(0.0) * row.seconds
        };
        let variance = unexplained_variance(self.intervals, costs, model).unwrap_or(0.0);
        variance / whitening.within() * (again - 1.0).max(0.0)
    }

    /// The squares by which the noise of counts draws each coefficient to zero.
    fn drawn_by_noise(&self, whitening: &Whitening, weights: &[f64]) -> Vec<f64> {
        let edges = whitening.edge_variances(&self.intervals.rows);
        let squares: f64 = edges.iter().zip(weights).map(|(edge, weight)| edge * weight).sum();
        let of = |variances: &[f64], event: usize| variances.get(event).copied().unwrap_or(0.0);
        let of_event = |event: usize| {
            let variance = of(&self.intervals.count_noise, event) + of(&self.intervals.late_noise, event);
            // An interval has two edges.
            if event < self.raw.events.len() { variance / 2.0 * squares } else { 0.0 }
        };
        (0..self.beliefs.len()).map(of_event).collect()
    }
}

/// One solution, its errors independent and of the same variance.
struct Step {
    equations: NormalEquations,
    solution: Vec<f64>,
    white_errors: Vec<f64>,
    noise: f64,
}

/// By how much a coefficient is drawn to what is believed of it with this error, beside rows of this noise.
fn weight_of_belief(error: f64, drawn: f64, noise: f64) -> f64 {
    noise / (error * error) + BELIEVED_IN_NOISE * drawn
}

/// The rows, and as further rows what is believed.
fn drawn_to_beliefs(
    equations: &NormalEquations,
    given: &Given<'_>,
    drawn: &[f64],
    noise: f64,
) -> NormalEquations {
    let mut drawn_equations = equations.clone();
    for (column, ((value, error), drawn)) in given.beliefs.iter().zip(drawn).enumerate() {
        drawn_equations.draw(column, *value, weight_of_belief(*error, *drawn, noise));
    }
    drawn_equations
}

impl Step {
    fn take(given: &Given<'_>, white: &Columns, drawn: &[f64], weights: &[f64], noise: f64) -> Option<Self> {
        let equations = white.equations(weights);
        let mut posterior = drawn_to_beliefs(&equations, given, drawn, noise);
        for (column, ((value, _), drawn)) in given.beliefs.iter().zip(drawn).enumerate() {
            posterior.make_up(column, *value, *drawn);
        }
        let all: Vec<usize> = (0..given.beliefs.len()).collect();
        let solution = posterior.solve(&all, Sign::NonNegative)?;
        let white_errors = white.errors(&solution);
        let square: f64 =
            white_errors.iter().zip(weights).map(|(error, weight)| weight * error * error).sum();
        let rows = white_errors.len() as f64;
        let freedom = (rows - solution.len() as f64).max(rows / 2.0);
        Some(Self { equations, solution, white_errors, noise: (square / freedom).max(given.least_noise) })
    }
}

/// By how much the solution moves, where parts of the rows are left out, beyond what the rows' errors say: standard errors
/// over standard errors, one for each column and never less than one.
///
/// Rows that differ from all others, as those of a program's start do, can decide a coefficient alone, and a fit that bends
/// to them finds their errors small. The jackknife does not believe them (Efron and Stein 1981): one of its parts has them.
struct Excess(Vec<f64>);

impl Excess {
    /// Into how many parts the rows are cut.
    const PARTS: usize = 12;
    /// Variances that differ by less than this are not told apart: the quantile of 95 % of chi squared over its 11 degrees
    /// of freedom.
    const BY_CHANCE: f64 = 1.79;
    /// No more is believed of twelve parts.
    const MOST: f64 = 6.0;

    fn of(
        given: &Given<'_>,
        whitening: &Whitening,
        white: &Columns,
        (weights, drawn): (&[f64], &[f64]),
        step: &Step,
        noise: f64,
    ) -> Self {
        let (rows, columns) = (weights.len(), given.beliefs.len());
        let without = |part: usize| {
            let is_out = |row: usize| row * Self::PARTS / rows == part;
            let weight = |(row, weight): (usize, &f64)| if is_out(row) { 0.0 } else { *weight };
            let weights: Vec<f64> = weights.iter().enumerate().map(weight).collect();
            let drawn = given.drawn_by_noise(whitening, &weights);
            Some(Step::take(given, white, &drawn, &weights, noise)?.solution)
        };
        let solutions: Option<Vec<Vec<f64>>> = (0..Self::PARTS).map(without).collect();
        let inverse = drawn_to_beliefs(&step.equations, given, drawn, noise).inverse(&step.solution);
        let Some((solutions, inverse)) = solutions.zip(inverse) else { return Self(vec![1.0; columns]) };
        let by_rows = &inverse * step.equations.gram() * &inverse * noise;
        let of_column = |column: usize| {
            let without: Vec<f64> = solutions.iter().map(|solution| solution[column]).collect();
            // A coefficient that was left out has neither.
            let by_rows: f64 = by_rows[(column, column)];
            let ratio = if by_rows > 0.0 { jackknife::variance(&without) / by_rows } else { 1.0 };
            if ratio > Self::BY_CHANCE { ratio.sqrt().min(Self::MOST) } else { 1.0 }
        };
        Self((0..columns).map(of_column).collect())
    }

    fn largest(&self) -> f64 {
        self.0.iter().fold(1.0, |largest: f64, excess| largest.max(*excess))
    }

    /// A covariance whose standard errors are as much wider, correlations kept, `covariance` being of noise that was taken
    /// to be that of the column with the largest.
    fn widened(&self, mut covariance: DMatrix<f64>) -> DMatrix<f64> {
        let largest = self.largest();
        for (row, of_row) in self.0.iter().enumerate() {
            for (column, of_column) in self.0.iter().enumerate() {
                covariance[(row, column)] *= of_row * of_column / (largest * largest);
            }
        }
        covariance
    }
}

impl Posterior {
    /// `has_static`: beside the events there is a constant power.
    pub fn fit(intervals: &Intervals, prior: &Prior, has_static: bool) -> Option<Self> {
        let given = Given::new(intervals, prior, has_static);
        let (whitening, noise) = Self::likeliest(&given)?;
        Self::robust(given, &whitening, noise)
    }

    /// What intervals have in common, and the variance of their errors.
    fn likeliest(given: &Given<'_>) -> Option<(Whitening, f64)> {
        const ROUNDS: usize = 3;
        let weights = vec![1.0; given.intervals.rows.len()];
        let mut best: Option<(f64, Whitening, f64)> = None;
        for whitening in Whitening::candidates(&given.intervals.rows) {
            let white = given.raw.turned(&whitening);
            let drawn = given.drawn_by_noise(&whitening, &weights);
            let mut step = Step::take(given, &white, &drawn, &weights, 100.0 * given.least_noise)?;
            for _ in 1..ROUNDS {
                step = Step::take(given, &white, &drawn, &weights, step.noise)?;
            }
            let unlikeliness = whitening.unlikeliness(&step.white_errors);
            if best.as_ref().is_none_or(|(least, ..)| unlikeliness < *least) {
                best = Some((unlikeliness, whitening, step.noise));
            }
        }
        best.map(|(_, whitening, noise)| (whitening, noise))
    }

    /// The fit in which wild errors count less.
    fn robust(mut given: Given<'_>, whitening: &Whitening, mut noise: f64) -> Option<Self> {
        const ROUNDS: usize = 4;
        let white = given.raw.turned(whitening);
        let mut weights = vec![1.0; given.intervals.rows.len()];
        let mut round = 0;
        loop {
            let drawn = given.drawn_by_noise(whitening, &weights);
            let step = Step::take(&given, &white, &drawn, &weights, noise)?;
            noise =
                step.noise * drift(&step.white_errors, &weights) + given.of_code(&step.solution, whitening);
            round += 1;
            if round == ROUNDS {
                let excess = Excess::of(&given, whitening, &white, (&weights, &drawn), &step, noise);
                // What rests on a few intervals is not as well known as the number of all says: what is believed counts more.
                let noise = noise * excess.largest().powi(2);
                given.believe(given.contradicted(&step, &drawn, noise));
                let step = Step::take(&given, &white, &drawn, &weights, noise)?;
                return Self::of_step(&given, step, &drawn, noise, &excess);
            }
            let sizes: Vec<f64> = step.white_errors.iter().map(|error| error.abs()).collect();
            let typical = robust::deviation(&mut sizes.clone()).unwrap_or(0.0);
            let limit = TOLERATED * typical.max(given.least_noise.sqrt());
            for (weight, size) in weights.iter_mut().zip(&sizes) {
                *weight = robust::huber_weight(*size, limit);
            }
        }
    }

    /// With the covariance of what the rows and the beliefs contribute: of errors of the rows, and of beliefs
    /// by as much as they and the noise of counts drew the solution.
    fn of_step(given: &Given<'_>, step: Step, drawn: &[f64], noise: f64, excess: &Excess) -> Option<Self> {
        let posterior = drawn_to_beliefs(&step.equations, given, drawn, noise);
        let mut of_beliefs = DMatrix::zeros(given.beliefs.len(), given.beliefs.len());
        for (column, ((value, error), drawn)) in given.beliefs.iter().zip(drawn).enumerate() {
            let weight = weight_of_belief(*error, *drawn, noise);
            // Nothing is drawn to a value that is not known at all.
            if error.is_finite() {
                let of_belief = (weight + drawn) * error;
                let of_noise = NOISE_UNSURE * drawn * value;
                of_beliefs[(column, column)] = of_belief.powi(2) + of_noise.powi(2);
            }
        }
        let inverse = posterior.inverse(&step.solution)?;
        let of_rows = excess.widened(&inverse * step.equations.gram() * &inverse * noise);
        let covariance = of_rows + &inverse * of_beliefs * &inverse;
        let events = given.raw.events.len();
        Some(Self { solution: step.solution, covariance, events, has_static: given.raw.static_terms > 0 })
    }
}

#[cfg(test)]
#[path = "posterior_tests.rs"]
mod tests;

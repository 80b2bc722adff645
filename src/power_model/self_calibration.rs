//! Fitting a power model to the very recording whose joules it is to divide.
//!
//! A recording holds what a calibration needs: joules and event counts over many intervals in which a
//! program did different things. What it lacks is intervals for all events: a program that does one
//! thing only says nothing about what its parts cost. So the fit starts from a model that is believed to
//! some degree (a stored one, a preset, or mere proportions) and moves away from it as far as the
//! recording gives reason to. It is the mean of a normal posterior: least squares with the prior model's
//! coefficients as further observations, none negative.
//!
//! Counts come from samples and are known to a fraction of a sampling period. Least squares takes such
//! noise for variation without effect on power: it draws coefficients to zero, and would call the whole
//! power static where load hardly varies. The noise is known from the periods (Fuller, Measurement Error
//! Models, 1987, section 2.2, takes it out of the sums, which explodes where there is little else). Here as
//! much as the noise draws to zero is drawn to the prior, and a recording whose variation is no larger
//! than the noise calibrates nothing but the scale.

//!
//! Successive intervals share what is not known of the moment between them; see `edge_noise.rs`.

use nalgebra::DMatrix;

use super::edge_noise::Whitening;
use super::intervals::{Interval, Intervals};
use super::least_squares::{NormalEquations, Sign};
use super::model::Scale;

/// What is believed of a domain's power before the recording is seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// Joules per event.
    pub joules_per_event: Vec<f64>,
    /// Standard error of each coefficient as a share of it.
    pub relative_error: f64,
    /// Standard error of each coefficient at least: what this share of the domain's joules would be by
    /// that event alone.
    pub least_share: f64,
    /// Whether the coefficients are joules or proportions.
    pub scale: Scale,
    /// Static watts and their standard error, which may be infinite; `None` where the coefficients have
    /// no scale that a static power could be told from.
    pub static_watts: Option<(f64, f64)>,
}

/// A power model after a recording was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfCalibration {
    /// Joules per event.
    pub joules_per_event: Vec<f64>,
    /// Static watts of each static term; `None` where neither the prior nor the recording tells.
    pub static_watts: Option<Vec<f64>>,
    /// Covariance of the coefficients and then the static terms, row by row.
    pub covariance: Vec<f64>,
    /// Share of the variance of the intervals' power that the model explains; `None` where the power
    /// varied no more than the meter's and the samples' noise.
    pub explained: Option<f64>,
    /// Mean of |estimate - measured| over the intervals, as a share of the mean.
    pub mean_error: f64,
    /// Number of intervals.
    pub intervals: usize,
    /// The recording told more than the scale.
    pub is_calibrated: bool,
}

/// Fewer intervals than this calibrate nothing.
const FEWEST_INTERVALS: usize = 12;
/// Variation of the estimated power, over that by sampling noise, from which on it tells something.
const TELLING_VARIATION: f64 = 6.0;
/// A static power that is known no better than to this share of the mean power is not known.
const KNOWN_STATIC: f64 = 0.15;
/// Residuals beyond so many standard deviations count by their size, not by its square (Huber, 1964): an
/// interval whose samples came late would else draw the line to itself.
const TOLERATED: f64 = 1.5;
/// No meter and no model is better than this share of an interval's joules.
const LEAST_NOISE: f64 = 0.001;
/// The same of the intervals by which a model is judged.
const LEAST_NOISE_JUDGED: f64 = 0.003;

impl SelfCalibration {
    /// The model after the intervals were seen.
    pub fn new(intervals: &Intervals, prior: &Prior) -> Self {
        let totals = Totals::of(intervals, prior);
        if totals.joules <= 0.0 || totals.model <= 0.0 {
            return Self::of_prior(intervals, prior, 1.0);
        }
        let without_static = totals.joules / totals.model;
        let known_static = prior.static_watts.map_or(0.0, |(watts, _)| watts * totals.seconds);
        let dynamic = (totals.joules - known_static).max(0.1 * totals.joules);
        let scale = match prior.scale {
            Scale::Joules => 1.0,
            Scale::Relative => dynamic / totals.model,
        };
        if intervals.rows.len() < FEWEST_INTERVALS {
            return Self::of_whole(intervals, prior, scale);
        }
        let Some(line) = Line::through(intervals, prior).filter(|line| line.is_telling) else {
            return Self::of_whole(intervals, prior, scale);
        };
        let slope = match prior.scale {
            Scale::Joules => 1.0,
            // Proportions get their scale from the recording first, beside a static power if there is one.
            Scale::Relative if line.slope > 0.0 => line.slope,
            Scale::Relative => without_static,
        };
        let scaled = Prior {
            joules_per_event: prior.joules_per_event.iter().map(|cost| cost * slope).collect(),
            ..prior.clone()
        };
        let fit = Posterior::fit(intervals, &scaled, true);
        let fit = fit.filter(|fit| fit.static_is_known(intervals, &totals, prior));
        fit.or_else(|| {
            // A static power that the intervals do not tell would only take joules from the samples.
            let whole = Prior {
                joules_per_event: prior.joules_per_event.iter().map(|cost| cost * without_static).collect(),
                ..prior.clone()
            };
            let prior = if prior.scale == Scale::Relative { &whole } else { &scaled };
            Posterior::fit(intervals, prior, false)
        })
        .map_or_else(|| Self::of_prior(intervals, prior, scale), |fit| fit.into_result(intervals))
    }

    /// The prior itself: nothing was learnt but perhaps the scale.
    pub fn of_prior(intervals: &Intervals, prior: &Prior, scale: f64) -> Self {
        let joules_per_event: Vec<f64> = prior.joules_per_event.iter().map(|cost| cost * scale).collect();
        let size = joules_per_event.len() + intervals.static_terms;
        let mut covariance = vec![0.0; size * size];
        for (at, cost) in joules_per_event.iter().enumerate() {
            covariance[at * size + at] = (cost * prior.relative_error).powi(2);
        }
        for at in joules_per_event.len()..size {
            let error = prior.static_watts.map_or(0.0, |(_, error)| error);
            covariance[at * size + at] = if error.is_finite() { error * error } else { 0.0 };
        }
        let static_watts = prior.static_watts.map(|(watts, _)| vec![watts; intervals.static_terms]);
        Self { joules_per_event, static_watts, covariance, ..Self::judged(intervals) }.judge(intervals)
    }

    /// Where intervals do not differ, only their sums are known: what the prior says of them and what was
    /// measured are brought together by the coefficient that is known least.
    fn of_whole(intervals: &Intervals, prior: &Prior, scale: f64) -> Self {
        let unchanged = || Self::of_prior(intervals, prior, scale);
        if prior.scale == Scale::Relative || prior.static_watts.is_none() || intervals.rows.is_empty() {
            return unchanged();
        }
        let whole = Intervals { count_noise: Vec::new(), late_noise: Vec::new(), ..intervals.pooled() };
        let Some(fit) = Posterior::fit(&whole, prior, true) else { return unchanged() };
        Self { is_calibrated: false, ..fit.into_result(intervals) }
    }

    fn judged(intervals: &Intervals) -> Self {
        Self {
            joules_per_event: Vec::new(),
            static_watts: None,
            covariance: Vec::new(),
            explained: None,
            mean_error: 0.0,
            intervals: intervals.rows.len(),
            is_calibrated: false,
        }
    }

    /// Standard error of an event's coefficient.
    pub fn std_error(&self, event: usize) -> f64 {
        let size = (self.covariance.len() as f64).sqrt().round() as usize;
        self.covariance.get(event * size + event).map_or(0.0, |variance| variance.max(0.0).sqrt())
    }

    /// Standard error of a static term in watts.
    pub fn static_std_error(&self, term: usize) -> f64 {
        self.std_error(self.joules_per_event.len() + term)
    }

    /// The joules that the model gives an interval.
    pub fn joules(&self, interval: &Interval) -> f64 {
        let of_events: f64 =
            self.joules_per_event.iter().zip(&interval.counts).map(|(cost, count)| cost * count).sum();
        let watts = self.static_watts.as_ref().and_then(|watts| watts.get(interval.static_term));
        of_events + watts.copied().unwrap_or(0.0) * interval.seconds
    }

    /// Computes how much of the measured power the model explains.
    fn judge(mut self, intervals: &Intervals) -> Self {
        let judged = intervals.for_judging();
        let (rows, seconds, joules) = (&judged.rows, judged.seconds(), judged.joules());
        if rows.len() < 2 || seconds <= 0.0 || joules <= 0.0 {
            return self;
        }
        let mean = joules / seconds;
        let (mut residual, mut variation, mut error, mut noise) = (0.0, 0.0, 0.0, 0.0);
        let of_sampling = intervals.noise_of(&self.joules_per_event);
        for row in rows {
            let difference = self.joules(row) - row.joules;
            residual += difference * difference;
            error += difference.abs();
            variation += (row.joules - mean * row.seconds).powi(2);
            noise += of_sampling + (LEAST_NOISE_JUDGED * row.joules).powi(2);
        }
        self.mean_error = error / joules;
        self.explained = (variation > 4.0 * noise).then(|| 1.0 - residual / variation);
        self
    }
}

/// Sums over all intervals.
struct Totals {
    joules: f64,
    seconds: f64,
    /// What the prior's coefficients say.
    model: f64,
}

impl Totals {
    fn of(intervals: &Intervals, prior: &Prior) -> Self {
        let mut totals = Self { joules: 0.0, seconds: 0.0, model: 0.0 };
        for row in &intervals.rows {
            totals.joules += row.joules;
            totals.seconds += row.seconds;
            totals.model += model_joules(prior, row);
        }
        totals
    }
}

fn model_joules(prior: &Prior, row: &Interval) -> f64 {
    prior.joules_per_event.iter().zip(&row.counts).map(|(cost, count)| cost * count).sum()
}

/// Measured joules as a straight line over those of the prior, with a static power beside: what there is to
/// learn of, before anything is believed.
struct Line {
    /// Measured joules per joule of the prior.
    slope: f64,
    /// The intervals differ by more than the noise of sampling.
    is_telling: bool,
}

impl Line {
    fn through(intervals: &Intervals, prior: &Prior) -> Option<Self> {
        let rows = &intervals.rows;
        let raw = Columns {
            events: vec![rows.iter().map(|row| model_joules(prior, row)).collect()],
            ..Columns::of(intervals, 0, true)
        };
        let chosen: Vec<usize> = (0..=intervals.static_terms).collect();
        let weights = vec![1.0; rows.len()];
        // Both edges of an interval have their part in the noise of its counts.
        let of_an_edge = intervals.noise_of(&prior.joules_per_event) / 2.0;
        let mut best: Option<(f64, Self)> = None;
        for whitening in Whitening::candidates(rows) {
            let white = raw.turned(&whitening);
            let solution = white.equations(&weights).solve(&chosen, Sign::NonNegative)?;
            let unlikeliness = whitening.unlikeliness(&white.errors(&solution));
            if best.as_ref().is_none_or(|(least, _)| unlikeliness < *least) {
                let noise = of_an_edge * whitening.edge_variances(rows).iter().sum::<f64>();
                let is_telling = white.variation_beside_static(&weights) > TELLING_VARIATION * noise;
                best = Some((unlikeliness, Self { slope: solution[0], is_telling }));
            }
        }
        best.map(|(_, line)| line)
    }
}

/// The intervals as a system of equations: columns of events, of the seconds of each static term, and the
/// joules that they are to explain.
struct Columns {
    events: Vec<Vec<f64>>,
    seconds: Vec<f64>,
    joules: Vec<f64>,
    /// The static term of each row; empty if there are none.
    terms: Vec<usize>,
    static_terms: usize,
}

impl Columns {
    fn of(intervals: &Intervals, events: usize, has_static: bool) -> Self {
        let rows = &intervals.rows;
        let count = |row: &Interval, event: usize| row.counts.get(event).copied().unwrap_or(0.0);
        let last = intervals.static_terms.saturating_sub(1);
        Self {
            events: (0..events).map(|event| rows.iter().map(|row| count(row, event)).collect()).collect(),
            seconds: rows.iter().map(|row| row.seconds).collect(),
            joules: rows.iter().map(|row| row.joules).collect(),
            terms: rows.iter().map(|row| row.static_term.min(last)).collect(),
            static_terms: if has_static { intervals.static_terms } else { 0 },
        }
    }

    fn size(&self) -> usize {
        self.events.len() + self.static_terms
    }

    fn turned(&self, whitening: &Whitening) -> Self {
        let turned = |column: &Vec<f64>| {
            let mut column = column.clone();
            whitening.apply(&mut column);
            column
        };
        Self {
            events: self.events.iter().map(turned).collect(),
            seconds: turned(&self.seconds),
            joules: turned(&self.joules),
            terms: self.terms.clone(),
            static_terms: self.static_terms,
        }
    }

    fn equations(&self, weights: &[f64]) -> NormalEquations {
        let events = self.events.len();
        let mut equations = NormalEquations::empty(self.size());
        let mut values = vec![0.0; self.size()];
        for (row, weight) in weights.iter().enumerate() {
            let root = weight.sqrt();
            for (value, column) in values.iter_mut().zip(&self.events) {
                *value = column[row] * root;
            }
            if self.static_terms > 0 {
                values[events..].fill(0.0);
                values[events + self.terms[row]] = self.seconds[row] * root;
            }
            equations.add_row(&values, self.joules[row] * root);
        }
        equations
    }

    /// What a solution leaves unexplained of each row.
    fn errors(&self, solution: &[f64]) -> Vec<f64> {
        let (of_events, of_static) = solution.split_at(self.events.len().min(solution.len()));
        let mut errors = self.joules.clone();
        for (column, cost) in self.events.iter().zip(of_events) {
            errors.iter_mut().zip(column).for_each(|(error, value)| *error -= cost * value);
        }
        for (row, error) in errors.iter_mut().enumerate() {
            let watts = of_static.get(self.terms[row]).copied().unwrap_or(0.0);
            *error -= watts * self.seconds[row];
        }
        errors
    }

    /// Sum of the squares of the first column that the static terms do not explain.
    fn variation_beside_static(&self, weights: &[f64]) -> f64 {
        let Some(column) = self.events.first() else { return 0.0 };
        let mut products = vec![(0.0, 0.0); self.static_terms.max(1)];
        let mut square = 0.0;
        for (row, weight) in weights.iter().enumerate() {
            let (common, own) = &mut products[self.terms[row]];
            square += weight * column[row] * column[row];
            *common += weight * column[row] * self.seconds[row];
            *own += weight * self.seconds[row] * self.seconds[row];
        }
        let explained =
            products.iter().filter(|(_, own)| *own > 0.0).map(|(common, own)| common * common / own);
        square - explained.sum::<f64>()
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

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
struct Posterior {
    solution: Vec<f64>,
    covariance: DMatrix<f64>,
    events: usize,
    has_static: bool,
}

/// A value that is believed, and its standard error.
type Belief = (f64, f64);

/// What is known before the fit and does not change in it.
struct Given<'g> {
    intervals: &'g Intervals,
    raw: Columns,
    beliefs: Vec<Belief>,
    /// The smallest variance that errors are taken to have.
    least_noise: f64,
}

impl<'g> Given<'g> {
    fn new(intervals: &'g Intervals, prior: &Prior, has_static: bool) -> Self {
        let raw = Columns::of(intervals, prior.joules_per_event.len(), has_static);
        let (joules, seconds) = (intervals.joules(), intervals.seconds());
        let belief = |(cost, counts): (&f64, &Vec<f64>)| {
            let count: f64 = counts.iter().sum();
            let least = if count > 0.0 { prior.least_share * joules / count } else { 0.0 };
            // What is believed to cost nothing and never happened must stay solvable.
            (*cost, (cost * prior.relative_error).max(least).max(f64::MIN_POSITIVE.sqrt()))
        };
        let mut beliefs: Vec<Belief> = prior.joules_per_event.iter().zip(&raw.events).map(belief).collect();
        beliefs.resize(raw.size(), prior.static_watts.unwrap_or((0.0, 2.0 * joules / seconds)));
        let mean = joules / intervals.rows.len() as f64;
        Self { intervals, raw, beliefs, least_noise: (LEAST_NOISE * mean).powi(2) }
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

impl Step {
    fn take(given: &Given<'_>, white: &Columns, drawn: &[f64], weights: &[f64], noise: f64) -> Option<Self> {
        let equations = white.equations(weights);
        let mut posterior = equations.clone();
        for (column, ((value, error), drawn)) in given.beliefs.iter().zip(drawn).enumerate() {
            posterior.draw(column, *value, noise / (error * error));
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

impl Posterior {
    fn fit(intervals: &Intervals, prior: &Prior, has_static: bool) -> Option<Self> {
        let given = Given::new(intervals, prior, has_static);
        let (whitening, noise) = Self::likeliest(&given)?;
        Self::robust(&given, &whitening, noise)
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
    fn robust(given: &Given<'_>, whitening: &Whitening, mut noise: f64) -> Option<Self> {
        const ROUNDS: usize = 4;
        let white = given.raw.turned(whitening);
        let mut weights = vec![1.0; given.intervals.rows.len()];
        let mut round = 0;
        loop {
            let drawn = given.drawn_by_noise(whitening, &weights);
            let step = Step::take(given, &white, &drawn, &weights, noise)?;
            noise = step.noise * drift(&step.white_errors, &weights);
            round += 1;
            if round == ROUNDS {
                return Self::of_step(given, step, &drawn, noise);
            }
            let sizes: Vec<f64> = step.white_errors.iter().map(|error| error.abs()).collect();
            // The median of |x| of a normal distribution is 0.6745 standard deviations.
            let deviation = (median(&sizes) / 0.6745).max(given.least_noise.sqrt());
            for (weight, size) in weights.iter_mut().zip(&sizes) {
                *weight = (TOLERATED * deviation / size.max(f64::MIN_POSITIVE)).min(1.0);
            }
        }
    }

    /// With the covariance of what the rows and the beliefs contribute: of errors of the rows, and of beliefs
    /// by as much as they and the noise of counts drew the solution.
    fn of_step(given: &Given<'_>, step: Step, drawn: &[f64], noise: f64) -> Option<Self> {
        let mut posterior = step.equations.clone();
        let mut contributed = step.equations.gram() * noise;
        for (column, ((value, error), drawn)) in given.beliefs.iter().zip(drawn).enumerate() {
            let weight = noise / (error * error);
            posterior.draw(column, *value, weight);
            // Nothing is drawn to a value that is not known at all.
            if error.is_finite() {
                contributed[(column, column)] += ((weight + drawn) * error).powi(2);
            }
        }
        let inverse = posterior.inverse(&step.solution)?;
        let covariance = &inverse * contributed * &inverse;
        let events = given.raw.events.len();
        Some(Self { solution: step.solution, covariance, events, has_static: given.raw.static_terms > 0 })
    }

    /// Whether the static power is known, from the prior or from these intervals.
    fn static_is_known(&self, intervals: &Intervals, totals: &Totals, prior: &Prior) -> bool {
        let mean = totals.joules / totals.seconds / intervals.static_terms.max(1) as f64;
        let error = |term: usize| self.covariance[(self.events + term, self.events + term)].max(0.0).sqrt();
        prior.static_watts.is_some()
            || (0..intervals.static_terms).all(|term| error(term) < KNOWN_STATIC * mean)
    }

    fn into_result(self, intervals: &Intervals) -> SelfCalibration {
        let full = self.events + intervals.static_terms;
        let mut covariance = vec![0.0; full * full];
        for row in 0..self.solution.len() {
            for column in 0..self.solution.len() {
                covariance[row * full + column] = self.covariance[(row, column)];
            }
        }
        SelfCalibration {
            static_watts: self.has_static.then(|| self.solution[self.events..].to_vec()),
            joules_per_event: self.solution[..self.events].to_vec(),
            covariance,
            is_calibrated: true,
            ..SelfCalibration::judged(intervals)
        }
        .judge(intervals)
    }
}

#[cfg(test)]
#[path = "self_calibration_tests.rs"]
pub(super) mod tests;

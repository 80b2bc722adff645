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
//! noise for variation without effect on power, and would call the whole power static where load hardly
//! varies. The noise is known from the periods, so it is taken out of the sums (the method of moments
//! for errors in variables: Fuller, Measurement Error Models, 1987, section 2.2), and a recording
//! whose variation is no larger than it calibrates nothing but the scale.

use nalgebra::DMatrix;

use super::least_squares::{NormalEquations, Sign};
use super::model::Scale;

/// What happened in one interval, as the fit sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Which static power applies: the package's number, where several are fitted together.
    pub static_term: usize,
    /// Its length in seconds.
    pub seconds: f64,
    /// Measured joules.
    pub joules: f64,
    /// Event counts.
    pub counts: Vec<f64>,
}

/// The intervals of one recording and one kind of domain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Intervals {
    /// The intervals, in the order of time.
    pub rows: Vec<Interval>,
    /// For each event, the variance of one interval's count that comes from sampling.
    pub count_noise: Vec<f64>,
    /// The same of samples that came late: few intervals have all of it.
    pub late_noise: Vec<f64>,
    /// Number of static terms.
    pub static_terms: usize,
}

impl Intervals {
    /// Variance by sampling of an interval's joules at these costs of events.
    fn noise_of(&self, joules_per_event: &[f64]) -> f64 {
        let of = |variances: &[f64]| -> f64 {
            joules_per_event.iter().zip(variances).map(|(cost, variance)| cost * cost * variance).sum()
        };
        of(&self.count_noise) + of(&self.late_noise)
    }

    /// All intervals of a static term as one.
    fn pooled(&self) -> Self {
        let mut rows: Vec<Interval> = Vec::new();
        for row in &self.rows {
            match rows.iter_mut().find(|sum| sum.static_term == row.static_term) {
                Some(sum) => {
                    sum.seconds += row.seconds;
                    sum.joules += row.joules;
                    sum.counts.iter_mut().zip(&row.counts).for_each(|(sum, count)| *sum += count);
                }
                None => rows.push(row.clone()),
            }
        }
        Self { rows, ..self.clone() }
    }
}

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
const LEAST_NOISE: f64 = 0.003;

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
        if intervals.rows.len() < FEWEST_INTERVALS || !tells(intervals, prior) {
            return Self::of_whole(intervals, prior, scale);
        }
        let slope = match prior.scale {
            Scale::Joules => 1.0,
            // Proportions get their scale from the recording first, beside a static power if there is one.
            Scale::Relative => slope(intervals, prior).unwrap_or(without_static),
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
            Posterior::fit(intervals, if prior.scale == Scale::Relative { &whole } else { &scaled }, false)
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
        let rows = &intervals.rows;
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let joules: f64 = rows.iter().map(|row| row.joules).sum();
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
            noise += of_sampling + (LEAST_NOISE * row.joules).powi(2);
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

/// Whether the intervals differ by more than the noise of sampling.
fn tells(intervals: &Intervals, prior: &Prior) -> bool {
    let count = intervals.rows.len() as f64;
    let power = |row: &Interval| model_joules(prior, row);
    let mean = intervals.rows.iter().map(power).sum::<f64>() / count;
    let variance = intervals.rows.iter().map(|row| (power(row) - mean).powi(2)).sum::<f64>() / count;
    let noise = intervals.noise_of(&prior.joules_per_event);
    variance > TELLING_VARIATION * noise && variance > (LEAST_NOISE * mean).powi(2) * TELLING_VARIATION
}

/// Measured joules per joule of the prior, where a static power is fitted beside.
fn slope(intervals: &Intervals, prior: &Prior) -> Option<f64> {
    let mut equations = NormalEquations::empty(1 + intervals.static_terms);
    let mut row_values = vec![0.0; 1 + intervals.static_terms];
    for row in &intervals.rows {
        row_values.fill(0.0);
        row_values[0] = model_joules(prior, row);
        *row_values.get_mut(1 + row.static_term)? = row.seconds;
        equations.add_row(&row_values, row.joules);
    }
    let chosen: Vec<usize> = (0..=intervals.static_terms).collect();
    let solution = equations.solve(&chosen, Sign::NonNegative)?;
    (solution[0] > 0.0).then(|| solution[0])
}

/// Sums over all intervals, events first and then static terms.
fn sums(intervals: &Intervals, events: usize, size: usize, weights: &[f64]) -> Option<NormalEquations> {
    let mut sums = NormalEquations::empty(size);
    let mut values = vec![0.0; size];
    for (row, weight) in intervals.rows.iter().zip(weights) {
        let root = weight.sqrt();
        values.fill(0.0);
        for (value, count) in values.iter_mut().zip(row.counts.get(..events)?) {
            *value = count * root;
        }
        if size > events {
            *values.get_mut(events + row.static_term)? = row.seconds * root;
        }
        sums.add_row(&values, row.joules * root);
    }
    Some(sums)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// The fit, its columns first the events and then the static terms.
struct Posterior {
    solution: Vec<f64>,
    covariance: DMatrix<f64>,
    events: usize,
    has_static: bool,
}

impl Posterior {
    fn fit(intervals: &Intervals, prior: &Prior, has_static: bool) -> Option<Self> {
        const ROUNDS: usize = 6;
        let events = prior.joules_per_event.len();
        let size = events + if has_static { intervals.static_terms } else { 0 };
        let rows = &intervals.rows;
        let joules: f64 = rows.iter().map(|row| row.joules).sum();
        let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
        let mean = joules / rows.len() as f64;

        // What is believed: each coefficient and its standard error.
        let mut beliefs: Vec<(f64, f64)> = prior
            .joules_per_event
            .iter()
            .enumerate()
            .map(|(event, cost)| {
                let count: f64 = rows.iter().map(|row| row.counts[event]).sum();
                let least = if count > 0.0 { prior.least_share * joules / count } else { 0.0 };
                // What is believed to cost nothing and never happened must stay solvable.
                (*cost, (cost * prior.relative_error).max(least).max(f64::MIN_POSITIVE.sqrt()))
            })
            .collect();
        let belief = prior.static_watts.unwrap_or((0.0, 2.0 * joules / seconds));
        beliefs.resize(size, belief);

        let mut noise = (0.02 * mean).powi(2);
        let mut weights = vec![1.0; rows.len()];
        let mut solution = Vec::new();
        let mut last = [NormalEquations::empty(size), NormalEquations::empty(size)];
        for _ in 0..ROUNDS {
            let noisy = sums(intervals, events, size, &weights)?;
            let mut corrected = noisy.clone();
            for (event, variance) in intervals.count_noise.iter().enumerate().take(events) {
                corrected.take_out(event, variance * weights.iter().sum::<f64>());
            }
            let solve = |mut equations: NormalEquations| {
                equations.add_beliefs(&beliefs, noise);
                equations.solve(&(0..size).collect::<Vec<_>>(), Sign::NonNegative)
            };
            // Where columns nearly follow each other, the sums without their noise may have no solution.
            solution = solve(corrected.clone()).or_else(|| solve(noisy.clone()))?;
            let estimate = |row: &Interval| {
                let of_events: f64 = solution[..events].iter().zip(&row.counts).map(|(c, n)| c * n).sum();
                let watts = if has_static { solution[events + row.static_term] } else { 0.0 };
                of_events + watts * row.seconds
            };
            let residuals: Vec<f64> = rows.iter().map(|row| (row.joules - estimate(row)).abs()).collect();
            // The median of |x| of a normal distribution is 0.6745 standard deviations.
            let deviation = (median(&residuals) / 0.6745).max(LEAST_NOISE * mean);
            for (weight, residual) in weights.iter_mut().zip(&residuals) {
                *weight = (TOLERATED * deviation / residual.max(f64::MIN_POSITIVE)).min(1.0);
            }
            let square: f64 = residuals.iter().zip(&weights).map(|(r, weight)| weight * r * r).sum();
            let freedom = (rows.len() as f64 - size as f64).max(rows.len() as f64 / 2.0);
            noise = (square / freedom).max((LEAST_NOISE * mean).powi(2));
            last = [corrected, noisy];
        }
        let covariance = last.into_iter().find_map(|mut equations| {
            equations.add_beliefs(&beliefs, noise);
            equations.inverse(&solution)
        })? * noise;
        Some(Self { solution, covariance, events, has_static })
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
mod tests;

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

use super::columns::Columns;
use super::edge_noise::Whitening;
use super::intervals::{Interval, Intervals};
use super::model::Scale;
use super::posterior::Posterior;
use super::prior::Prior;
use super::unexplained::Unexplained;
use crate::numerics::nnls::Sign;

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
    /// What the model leaves unexplained of the power of code; `None` where what differs is lost in noise.
    pub unexplained: Option<Unexplained>,
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
/// No meter and no model is better than this share of the joules of an interval by which it is judged.
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
            Scale::Relative if prior.static_watts.is_some() => scale,
            Scale::Relative if line.slope > 0.0 => line.slope,
            Scale::Relative => without_static,
        };
        let scaled = prior.scaled(slope);
        let fit = Posterior::fit(intervals, &scaled, true);
        let fit = fit.filter(|fit| fit.static_is_known(intervals, &totals, prior));
        fit.or_else(|| {
            // A static power that the intervals do not tell would only take joules from the samples.
            let whole = prior.scaled(without_static);
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
        for at in 0..joules_per_event.len() {
            covariance[at * size + at] = (scale * prior.std_error(at)).powi(2);
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
        if prior.static_watts.is_none() || intervals.rows.is_empty() {
            return unchanged();
        }
        // What is off in a sum may be off by this code, and one sum tells nothing of that.
        let prior = &prior.scaled(scale).of_other_code();
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
            unexplained: None,
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

    /// Takes a static term to be off by so many watts more, one standard error, whatever events cost.
    pub fn static_is_unsure_by(&mut self, term: usize, watts: f64) {
        let size = (self.covariance.len() as f64).sqrt().round() as usize;
        let at = self.joules_per_event.len() + term;
        if let Some(variance) = self.covariance.get_mut(at * size + at) {
            *variance += watts * watts;
        }
    }

    /// Adds watts to a static term, and to all else what is to be expected beside that, by their covariance.
    pub fn move_static(&mut self, term: usize, watts: f64) {
        let events = self.joules_per_event.len();
        let size = (self.covariance.len() as f64).sqrt().round() as usize;
        let at = events + term;
        let Some(&variance) = self.covariance.get(at * size + at).filter(|variance| **variance > 0.0) else {
            return;
        };
        let values = self.joules_per_event.iter_mut().chain(self.static_watts.iter_mut().flatten());
        for (value, with) in values.zip(&self.covariance[at * size..(at + 1) * size]) {
            *value = (*value + with / variance * watts).max(0.0);
        }
    }

    /// The joules that the model gives an interval.
    pub fn joules(&self, interval: &Interval) -> f64 {
        let of_events: f64 =
            self.joules_per_event.iter().zip(&interval.counts).map(|(cost, count)| cost * count).sum();
        of_events + self.static_joules(interval)
    }

    fn static_joules(&self, interval: &Interval) -> f64 {
        let watts = self.static_watts.as_ref().and_then(|watts| watts.get(interval.static_term));
        watts.copied().unwrap_or(0.0) * interval.seconds
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
        self.unexplained = Unexplained::by(
            intervals,
            &self.joules_per_event,
            |row| self.joules(row),
            |row| self.static_joules(row),
        );
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
            totals.model += prior.joules(row);
        }
        totals
    }
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
            events: vec![rows.iter().map(|row| prior.joules(row)).collect()],
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

impl Posterior {
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

//! What is believed of a domain's power before a recording is seen.

use super::intervals::Interval;
use super::model::Scale;

/// A power model that a recording's own fit is drawn to.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// Joules per event.
    pub joules_per_event: Vec<f64>,
    /// Standard error of each coefficient as a share of it, where [`Prior::std_errors`] does not say.
    pub relative_error: f64,
    /// Standard error of each coefficient in joules per event; empty if only the share is known.
    pub std_errors: Vec<f64>,
    /// By this share of each coefficient code that the prior was not made of may be off, beyond those errors: believed as far
    /// as a recording contradicts the prior.
    pub misfit: f64,
    /// Standard error of each coefficient at least: what this share of the domain's joules would be by
    /// that event alone.
    pub least_share: f64,
    /// What code is believed to draw more or less than any coefficients say, one standard deviation as a share of it.
    pub unexplained: f64,
    /// Whether the coefficients are joules or proportions.
    pub scale: Scale,
    /// Static watts and their standard error, which may be infinite; `None` where the coefficients have
    /// no scale that a static power could be told from.
    pub static_watts: Option<(f64, f64)>,
}

impl Prior {
    /// What the coefficients say of an interval, without static power.
    pub(super) fn joules(&self, interval: &Interval) -> f64 {
        self.joules_per_event.iter().zip(&interval.counts).map(|(cost, count)| cost * count).sum()
    }

    /// Standard error of an event's coefficient in code of which nothing else is known.
    pub(super) fn std_error(&self, event: usize) -> f64 {
        self.own_error(event).hypot(self.cost(event) * self.misfit)
    }

    /// Standard error of an event's coefficient in code like that of which the prior was made.
    pub(super) fn own_error(&self, event: usize) -> f64 {
        let by_share = || self.cost(event) * self.relative_error;
        self.std_errors.get(event).copied().unwrap_or_else(by_share)
    }

    fn cost(&self, event: usize) -> f64 {
        self.joules_per_event.get(event).copied().unwrap_or(0.0)
    }

    /// The same with each event so many times as dear.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let scaled = |values: &[f64]| values.iter().map(|value| value * factor).collect();
        Self {
            joules_per_event: scaled(&self.joules_per_event),
            std_errors: scaled(&self.std_errors),
            ..self.clone()
        }
    }

    /// The same for code that is known to be none of which it was made.
    pub(super) fn of_other_code(&self) -> Self {
        let std_errors = (0..self.std_errors.len()).map(|event| self.std_error(event)).collect();
        Self { std_errors, misfit: 0.0, ..self.clone() }
    }

    /// The same of these events only.
    pub(super) fn select(&self, events: &[usize]) -> Self {
        let joules_per_event = events.iter().map(|&event| self.joules_per_event[event]).collect();
        let std_errors = events.iter().filter_map(|&event| self.std_errors.get(event).copied()).collect();
        Self { joules_per_event, std_errors, ..self.clone() }
    }
}

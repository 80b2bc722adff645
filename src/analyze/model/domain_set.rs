//! The fit by which a domain's joules are divided.

use crate::power_model::event_set::EventSet;
use crate::profile::{DomainDivision, UnexplainedPower};
use crate::units::Watts;

/// What was found for the kind of a domain, and which of its static terms is the domain's.
#[derive(Debug, Clone)]
pub(crate) struct DomainSet {
    pub set: EventSet,
    static_term: usize,
    /// What is believed where the recording does not tell.
    unexplained: f64,
}

impl DomainSet {
    pub fn new(set: EventSet, static_term: usize, unexplained: f64) -> Self {
        Self { set, static_term, unexplained }
    }

    pub fn static_watts(&self) -> Option<f64> {
        self.set.calibration.static_watts.as_ref()?.get(self.static_term).copied()
    }

    /// Square watts.
    pub fn static_variance(&self) -> f64 {
        self.set.calibration.static_std_error(self.static_term).powi(2)
    }

    /// By so many watts, and the coefficients with it.
    pub fn move_static(&mut self, watts: f64) {
        self.set.calibration.move_static(self.static_term, watts);
    }

    /// Covariance of the events' coefficients and of this domain's own static power.
    pub fn covariance(&self) -> Vec<f64> {
        let model = &self.set.calibration;
        let events = model.joules_per_event.len();
        let size = (model.covariance.len() as f64).sqrt().round() as usize;
        let own: Vec<usize> = (0..events).chain([events + self.static_term]).collect();
        let at =
            |row: usize, column: usize| model.covariance.get(row * size + column).copied().unwrap_or(0.0);
        own.iter().flat_map(|&row| own.iter().map(move |&column| at(row, column))).collect()
    }

    /// The same for people.
    pub fn division(&self) -> DomainDivision {
        let model = &self.set.calibration;
        DomainDivision {
            joules_per_event: model.joules_per_event.clone(),
            std_errors: (0..model.joules_per_event.len()).map(|event| model.std_error(event)).collect(),
            static_power: self.static_watts().map(Watts::from_watts),
            static_std_error: Watts::from_watts(model.static_std_error(self.static_term)),
            is_calibrated: model.is_calibrated,
            explained: model.explained,
            mean_error: model.mean_error,
            unexplained: model.unexplained.map(|seen| UnexplainedPower {
                of_difference: seen.of_difference,
                of_joules: seen.of_joules,
                seconds: seen.seconds,
            }),
            believed_unexplained: self.unexplained,
            intervals: model.intervals,
        }
    }
}

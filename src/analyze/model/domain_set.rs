//! The fit by which a domain's joules are divided.

use crate::attribute::Rise;
use crate::power_model::drift::Drift;
use crate::power_model::event_set::EventSet;
use crate::profile::{DomainDivision, StaticRise, UnexplainedPower};
use crate::units::{Nanoseconds, Timestamp, Watts};

/// What was found for the kind of a domain, and which of its static terms is the domain's.
#[derive(Debug, Clone)]
pub(crate) struct DomainSet {
    pub set: EventSet,
    static_term: usize,
    /// What is believed where the recording does not tell.
    unexplained: f64,
    /// How static power changes, since when.
    drift: Option<(Timestamp, Drift)>,
}

impl DomainSet {
    pub fn new(set: EventSet, static_term: usize, unexplained: f64) -> Self {
        Self { set, static_term, unexplained, drift: None }
    }

    /// With static power that changes.
    pub fn changing(self, drift: Option<(Timestamp, Drift)>) -> Self {
        Self { drift, ..self }
    }

    /// By how much static power is more than [`DomainSet::static_watts`] over time.
    pub fn rise(&self) -> Option<Rise> {
        let (begin, drift) = self.drift.as_ref().filter(|_| self.static_watts().is_some())?;
        let time = |seconds: f64| *begin + Nanoseconds::from_nanos((seconds * 1e9) as u64);
        let points = drift.points().iter().map(|&(at, watts)| (time(at), Watts::from_watts(watts)));
        Some(Rise::new(points.collect()))
    }

    /// Static watts on average over the recording.
    pub fn mean_static_watts(&self) -> Option<f64> {
        let more = self.drift.as_ref().map_or(0.0, |(_, drift)| drift.mean_of_points());
        Some(self.static_watts()? + more)
    }

    /// From how many watts to how many static power changes, if it does.
    pub fn static_rise(&self) -> Option<StaticRise> {
        let (_, drift) = self.drift.as_ref()?;
        let constant = self.static_watts()?;
        let (first, last) = drift.points().first().zip(drift.points().last())?;
        Some(StaticRise {
            from: Watts::from_watts(constant + first.1),
            to: Watts::from_watts(constant + last.1),
            std_error: Watts::from_watts(drift.std_error()),
        })
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
            static_rise: self.static_rise(),
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

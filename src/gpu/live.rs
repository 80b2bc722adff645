//! Joules from power readings as they come.

use crate::units::{Joules, Timestamp, Watts};

/// Adds up a power sensor's readings by their time stamps: straight lines from reading to reading.
///
/// A reading lags by half the sensor's window and half its refresh period; that shifts the joules in
/// time and does not change their sum. Trace files are corrected for it by [`super::correct`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PowerIntegrator {
    last: Option<(Timestamp, Watts)>,
    energy: Joules,
}

impl PowerIntegrator {
    /// Takes a reading and gives the energy since the first one. Power below zero and time that goes
    /// back add nothing.
    pub fn add(&mut self, time: Timestamp, power: Watts) -> Joules {
        if let Some((before, watts)) = self.last {
            let added = (watts + power) * 0.5 * time.since(before);
            self.energy += added.max(Joules::ZERO);
        }
        self.last = Some((time, power));
        self.energy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanoseconds;

    #[test]
    fn areas_add_up() {
        let mut sum = PowerIntegrator::default();
        let at = |ms| Timestamp::default() + Nanoseconds::from_millis(ms);
        assert_eq!(sum.add(at(0), Watts::from_watts(100.0)), Joules::ZERO);
        assert_eq!(sum.add(at(500), Watts::from_watts(200.0)), Joules::from_joules(75.0));
        assert_eq!(sum.add(at(500), Watts::from_watts(900.0)), Joules::from_joules(75.0));
        assert_eq!(sum.add(at(400), Watts::from_watts(100.0)), Joules::from_joules(75.0));
    }
}

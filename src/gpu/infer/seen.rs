//! What sensors see of a power curve: means of windows, and charges of capacitors.

use crate::gpu::curve::PowerCurve;
use crate::units::Timestamp;

/// The reference in seconds from its start, with running integrals.
pub(super) struct Cumulative {
    times: Vec<f64>,
    watts: Vec<f64>,
    joules: Vec<f64>,
}

impl Cumulative {
    pub fn new(reference: &PowerCurve, start: Timestamp) -> Self {
        let times: Vec<f64> =
            reference.knots().iter().map(|(time, _)| time.since(start).as_secs_f64()).collect();
        let watts: Vec<f64> = reference.knots().iter().map(|(_, watts)| watts.as_watts()).collect();
        let mut joules = vec![0.0; times.len()];
        for i in 1..times.len() {
            joules[i] = joules[i - 1] + (watts[i] + watts[i - 1]) / 2.0 * (times[i] - times[i - 1]);
        }
        Self { times, watts, joules }
    }

    fn until(&self, time: f64) -> f64 {
        let after = self.times.partition_point(|knot| *knot <= time);
        match (after.checked_sub(1), self.times.get(after)) {
            (None, _) => 0.0,
            (Some(before), None) => self.joules[before],
            (Some(before), Some(next)) => {
                let share = (time - self.times[before]) / (next - self.times[before]);
                let watts = self.watts[before] + (self.watts[after] - self.watts[before]) * share;
                self.joules[before] + (self.watts[before] + watts) / 2.0 * (time - self.times[before])
            }
        }
    }

    /// Mean power between two times, as a window sees it.
    pub fn mean(&self, from: f64, to: f64) -> f64 {
        (self.until(to) - self.until(from)) / (to - from)
    }
}

/// What a capacitor shows that is charged by the reference: `c' = (watts - c) / constant`, solved from knot
/// to knot, between which watts are a line.
pub(super) struct Charge<'c> {
    reference: &'c Cumulative,
    constant: f64,
    at_knots: Vec<f64>,
}

impl<'c> Charge<'c> {
    pub fn new(reference: &'c Cumulative, constant: f64) -> Self {
        let mut charge = Self { reference, constant, at_knots: Vec::with_capacity(reference.times.len()) };
        // Before the reference begins it is taken to have been as it is then.
        charge.at_knots.extend(reference.watts.first());
        for knot in 1..reference.times.len() {
            charge.at_knots.push(charge.after(knot - 1, reference.times[knot]));
        }
        charge
    }

    pub fn at(&self, time: f64) -> f64 {
        let after = self.reference.times.partition_point(|knot| *knot <= time);
        match after.checked_sub(1) {
            Some(knot) => self.after(knot, time),
            None => self.at_knots.first().copied().unwrap_or(0.0),
        }
    }

    /// Later than a knot and not after the next.
    fn after(&self, knot: usize, time: f64) -> f64 {
        let (times, watts) = (&self.reference.times, &self.reference.watts);
        let (start, age) = (self.at_knots[knot], time - times[knot]);
        let slope = match times.get(knot + 1).map(|next| next - times[knot]) {
            Some(span) if span > 0.0 => (watts[knot + 1] - watts[knot]) / span,
            _ => 0.0,
        };
        let lag = slope * self.constant;
        watts[knot] + slope * age - lag + (start - watts[knot] + lag) * (-age / self.constant).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Watts;

    #[test]
    fn a_charge_follows_steps_and_ramps() {
        let at = |seconds: f64| Timestamp::from_nanos((seconds * 1e9) as u64);
        let watts = Watts::from_watts;
        let knots = vec![
            (at(1.0), watts(10.0)),
            (at(2.0), watts(10.0)),
            (at(2.0), watts(30.0)),
            (at(4.0), watts(30.0)),
            (at(9.0), watts(80.0)),
        ];
        let cumulative = Cumulative::new(&PowerCurve::new(knots), at(1.0));
        let charge = Charge::new(&cumulative, 0.5);
        let expected = |watts: f64, time: f64| {
            assert!((charge.at(time) - watts).abs() < 1e-6, "{time}: {} W", charge.at(time));
        };
        expected(10.0, 0.0);
        expected(10.0, 0.99);
        // One second after the step to 30 W, two time constants.
        expected(30.0 - 20.0 * (-2.0f64).exp(), 2.0);
        // Long after a ramp of 10 W/s began, a time constant behind it.
        let rest = (30.0 - 20.0 * (-4.0f64).exp() - 30.0 + 5.0) * (-8.0f64).exp();
        expected(70.0 - 5.0 + rest, 7.0);
        // What comes before readings can be asked for too.
        expected(10.0, -3.0);
    }

    #[test]
    fn a_window_sees_the_mean() {
        let at = |seconds: f64| Timestamp::from_nanos((seconds * 1e9) as u64);
        let watts = Watts::from_watts;
        let knots = vec![
            (at(1.0), watts(10.0)),
            (at(3.0), watts(10.0)),
            (at(3.0), watts(30.0)),
            (at(4.0), watts(30.0)),
            (at(8.0), watts(80.0)),
        ];
        let cumulative = Cumulative::new(&PowerCurve::new(knots), at(1.0));
        // Joules at the knots: 20 of 2 s, 30 of the third, 4 s of 55 W on average.
        assert_eq!(cumulative.joules, [0.0, 20.0, 20.0, 50.0, 270.0]);
        for (from, to, expected) in [
            (0.0, 2.0, 10.0),
            (0.5, 1.5, 10.0),
            (1.5, 2.5, 20.0),
            // A ramp of 12.5 W/s from 30 W: at its middle, and over the step before it.
            (4.0, 6.0, 30.0 + 12.5 * 2.0),
            (1.0, 5.0, (10.0 + 30.0 + 2.0 * 42.5) / 4.0),
            // Before and behind it nothing is known to have been spent.
            (-1.0, 1.0, 5.0),
            (6.0, 8.0, (67.5 + 80.0) / 4.0),
        ] {
            let found = cumulative.mean(from, to);
            assert!((found - expected).abs() < 1e-9, "{from} to {to}: {found} for {expected}");
        }
    }
}

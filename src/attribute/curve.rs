//! Cumulative energy over time, from single readings.

use std::collections::VecDeque;

use crate::units::{Joules, Timestamp};

/// The energy of one domain as a curve that never falls: linear between readings.
#[derive(Debug, Clone, Default)]
pub struct EnergyCurve {
    points: VecDeque<(Timestamp, Joules)>,
    first: Option<(Timestamp, Joules)>,
}

impl EnergyCurve {
    /// Adds a reading. One that lies before the last, in time or in energy, is refused (`false`): a
    /// meter's readings are cumulative, so such a one is a reading out of order or a counter reset.
    pub fn push(&mut self, time: Timestamp, energy: Joules) -> bool {
        if let Some((last_time, last_energy)) = self.points.back()
            && (time <= *last_time || energy < *last_energy)
        {
            return false;
        }
        self.first.get_or_insert((time, energy));
        self.points.push_back((time, energy));
        true
    }

    /// The energy at a time. Before the first and after the last reading nothing is known, so that
    /// the curve is flat there: joules are never made up.
    pub fn at(&self, time: Timestamp) -> Joules {
        let next = self.points.partition_point(|(point, _)| *point < time);
        match (next.checked_sub(1).and_then(|index| self.points.get(index)), self.points.get(next)) {
            (None, None) => Joules::ZERO,
            (Some((_, energy)), None) | (None, Some((_, energy))) => *energy,
            (Some((t0, e0)), Some((t1, e1))) => {
                let share = time.since(*t0).as_nanos() as f64 / t1.since(*t0).as_nanos() as f64;
                *e0 + (*e1 - *e0) * share
            }
        }
    }

    /// When the curve first reaches an energy; `None` if it has not yet.
    pub fn time_of(&self, energy: Joules) -> Option<Timestamp> {
        let next = self.points.partition_point(|(_, point)| *point < energy);
        let (t1, e1) = *self.points.get(next)?;
        let Some((t0, e0)) = next.checked_sub(1).and_then(|index| self.points.get(index)).copied() else {
            return Some(t1);
        };
        let share = (energy - e0) / (e1 - e0);
        let nanos = (t1.since(t0).as_nanos() as f64 * share).round() as u64;
        Some(Timestamp::from_nanos(t0.as_nanos() + nanos))
    }

    /// The newest reading.
    pub fn last(&self) -> Option<(Timestamp, Joules)> {
        self.points.back().copied()
    }

    /// The first reading of all, also after [`EnergyCurve::forget_before`].
    pub fn first(&self) -> Option<(Timestamp, Joules)> {
        self.first
    }

    /// Drops readings that no time at or after `time` needs.
    pub fn forget_before(&mut self, time: Timestamp) {
        while self.points.len() >= 2 && self.points[1].0 <= time {
            self.points.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(points: &[(u64, f64)]) -> EnergyCurve {
        let mut curve = EnergyCurve::default();
        for (nanos, joules) in points {
            assert!(curve.push(Timestamp::from_nanos(*nanos), Joules::from_joules(*joules)));
        }
        curve
    }

    #[test]
    fn two_readings_of_one_time_and_a_plateau() {
        let mut curve = curve(&[(100, 1.0), (200, 1.0), (300, 2.0)]);
        assert!(!curve.push(Timestamp::from_nanos(300), Joules::from_joules(3.0)), "the same time again");
        assert!(curve.push(Timestamp::from_nanos(400), Joules::from_joules(2.0)), "nothing was spent");
        let time_of = |joules| curve.time_of(Joules::from_joules(joules)).map(Timestamp::as_nanos);
        // An energy is reached when it is reached first.
        assert_eq!([time_of(1.0), time_of(1.25), time_of(2.0)], [Some(100), Some(225), Some(300)]);
        let mut short = curve.clone();
        short.forget_before(Timestamp::from_nanos(200));
        assert_eq!(short.points.len(), 3);
        short.forget_before(Timestamp::from_nanos(399));
        assert_eq!(short.points.len(), 2, "what lies between two readings needs both");
        short.forget_before(Timestamp::from_nanos(900));
        assert_eq!(short.points.len(), 1);
        assert_eq!(short.first(), curve.first());
        assert_eq!(EnergyCurve::default().at(Timestamp::from_nanos(5)), Joules::ZERO);
    }

    #[test]
    fn linear_between_readings_and_flat_outside() {
        let curve = curve(&[(100, 1.0), (200, 3.0)]);
        let at = |nanos| curve.at(Timestamp::from_nanos(nanos)).as_joules();
        assert_eq!([at(0), at(100), at(150), at(200), at(900)], [1.0, 1.0, 2.0, 3.0, 3.0]);
        let time_of = |joules| curve.time_of(Joules::from_joules(joules)).map(Timestamp::as_nanos);
        assert_eq!([time_of(0.5), time_of(2.0), time_of(3.0)], [Some(100), Some(150), Some(200)]);
        assert_eq!(time_of(3.5), None);
    }

    #[test]
    fn a_falling_counter_is_refused() {
        let mut curve = curve(&[(100, 1.0)]);
        assert!(!curve.push(Timestamp::from_nanos(200), Joules::from_joules(0.5)));
        assert!(!curve.push(Timestamp::from_nanos(50), Joules::from_joules(1.5)));
        assert_eq!(curve.last(), Some((Timestamp::from_nanos(100), Joules::from_joules(1.0))));
    }

    proptest! {
        /// Forgetting the past changes nothing from there on.
        #[test]
        fn forgetting_keeps_the_present(
            steps in prop::collection::vec((1u64..50, 0.0f64..2.0), 1..30),
            from in 0u64..1000,
            ahead in 0u64..500,
        ) {
            let mut whole = EnergyCurve::default();
            let (mut time, mut joules) = (0, 0.0);
            for (span, energy) in steps {
                time += span;
                joules += energy;
                whole.push(Timestamp::from_nanos(time), Joules::from_joules(joules));
            }
            let mut short = whole.clone();
            short.forget_before(Timestamp::from_nanos(from));
            let asked = Timestamp::from_nanos(from + ahead);
            prop_assert_eq!(whole.at(asked), short.at(asked));
            prop_assert_eq!(whole.first(), short.first());
        }
    }
}

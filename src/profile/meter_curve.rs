//! What a meter counted in the course of a recording, so that recordings of one machine can be compared.

use crate::units::{Joules, Timestamp};

/// A meter's readings, as many as tell its energy between any two times well enough: at most [`MeterCurve::MOST`] spread
/// evenly, and the last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MeterCurve {
    points: Vec<(Timestamp, Joules)>,
    last: Option<(Timestamp, Joules)>,
    /// Of so many readings one is kept.
    every: u64,
    seen: u64,
}

impl MeterCurve {
    /// Most readings that are kept. At 100 readings a second it takes more than five minutes until every other one goes.
    pub const MOST: usize = 1 << 15;

    /// Adds a reading. One that lies before the last, in time or in energy, is left out, as attribution leaves it out.
    pub fn push(&mut self, time: Timestamp, energy: Joules) {
        if self.last.is_some_and(|(last, highest)| time <= last || energy < highest) {
            return;
        }
        self.every = self.every.max(1);
        self.last = Some((time, energy));
        if self.seen.is_multiple_of(self.every) {
            if self.points.len() == Self::MOST {
                let mut at = 0;
                self.points.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.points.push((time, energy));
            }
        }
        self.seen += 1;
    }

    /// Times of the first and the last reading.
    pub fn window(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.points.first()?.0, self.last?.0))
    }

    /// Which share of all its energy the meter counted between two times, from 0 to 1. By time, if it counted none.
    pub fn share(&self, from: Timestamp, to: Timestamp) -> f64 {
        let (Some((start, end)), Some(first), Some(last)) = (self.window(), self.points.first(), self.last)
        else {
            return 0.0;
        };
        let (from, to) = (from.max(start), to.min(end));
        if to <= from {
            return 0.0;
        }
        if (from, to) == (start, end) {
            return 1.0;
        }
        let whole = (last.1 - first.1).as_joules();
        if whole > 0.0 {
            (self.at(to) - self.at(from)).as_joules() / whole
        } else {
            to.since(from).as_nanos() as f64 / end.since(start).as_nanos() as f64
        }
    }

    /// The energy at a time between the first and the last reading.
    fn at(&self, time: Timestamp) -> Joules {
        let next = self.points.partition_point(|(point, _)| *point < time);
        let before = next.checked_sub(1).and_then(|index| self.points.get(index));
        match (before, self.points.get(next).copied().or(self.last)) {
            (Some((t0, e0)), Some((t1, e1))) if t1 > *t0 => {
                let share = time.since(*t0).as_nanos() as f64 / t1.since(*t0).as_nanos() as f64;
                *e0 + (e1 - *e0) * share.min(1.0)
            }
            (Some((_, energy)), _) => *energy,
            (None, next) => next.map_or(Joules::ZERO, |(_, energy)| energy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn curve(points: &[(u64, f64)]) -> MeterCurve {
        let mut curve = MeterCurve::default();
        points.iter().for_each(|(time, joules)| curve.push(at(*time), Joules::from_joules(*joules)));
        curve
    }

    #[test]
    fn readings_of_one_time_or_below_are_left_out() {
        let curve = curve(&[(0, 1.0), (10, 3.0), (10, 4.0), (20, 2.9), (30, 3.0), (40, 5.0)]);
        assert_eq!(curve.points.len(), 4);
        assert_eq!(curve.share(at(0), at(10)), 0.5);
        assert_eq!([curve.share(at(10), at(30)), curve.share(at(35), at(90))], [0.0, 0.25]);
        assert_eq!(curve.share(at(20), at(20)), 0.0);
    }

    #[test]
    fn energy_between_two_times() {
        let curve = curve(&[(10, 1.0), (20, 2.0), (15, 9.0), (25, 1.0), (40, 5.0)]);
        assert_eq!(curve.window(), Some((at(10), at(40))));
        assert_eq!(curve.share(at(0), at(99)), 1.0);
        assert_eq!(curve.share(at(10), at(20)), 0.25);
        assert_eq!(curve.share(at(15), at(30)), (0.5 + 1.5) / 4.0);
        assert_eq!(curve.share(at(50), at(60)), 0.0);
    }

    #[test]
    fn a_meter_that_stands_still_is_shared_by_time() {
        assert_eq!(curve(&[(0, 3.0), (10, 3.0)]).share(at(0), at(4)), 0.4);
        assert_eq!(MeterCurve::default().share(at(0), at(4)), 0.0);
    }

    #[test]
    fn a_long_curve_is_thinned_and_keeps_its_ends() {
        let mut curve = MeterCurve::default();
        let count = 200_001u64;
        (0..count).for_each(|time| curve.push(at(time), Joules::from_joules(time as f64)));
        assert!(curve.points.len() <= MeterCurve::MOST);
        assert_eq!(curve.window(), Some((at(0), at(count - 1))));
        let share = curve.share(at(50_001), at(100_003));
        assert!((share - 50_002.0 / 200_000.0).abs() < 1e-9, "{share}");
        assert!((curve.share(at(0), at(count - 2)) - 199_999.0 / 200_000.0).abs() < 1e-9);
    }
}

//! Power over time as a curve that can be integrated.

use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// Power over time: straight lines between knots. Two knots at one time make a jump.
///
/// Outside its knots the curve is unknown: integrals stop at its ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PowerCurve {
    knots: Vec<(Timestamp, Watts)>,
    /// Energy from the first knot to each knot.
    cumulative: Vec<Joules>,
}

impl PowerCurve {
    /// A curve through knots in time order; a knot earlier than the one before it is dropped.
    pub fn new(mut knots: Vec<(Timestamp, Watts)>) -> Self {
        let mut latest = Timestamp::default();
        knots.retain(|(time, power)| {
            let keep = *time >= latest && power.as_watts().is_finite();
            if keep {
                latest = *time;
            }
            keep
        });
        let mut cumulative = Vec::with_capacity(knots.len());
        let mut energy = Joules::ZERO;
        for (index, knot) in knots.iter().enumerate() {
            if let Some(before) = index.checked_sub(1).map(|before| knots[before]) {
                energy += trapezoid(before, *knot);
            }
            cumulative.push(energy);
        }
        Self { knots, cumulative }
    }

    /// A staircase: each segment's power holds from its start to its end.
    pub fn from_segments(segments: &[Segment]) -> Self {
        let knots = segments.iter().flat_map(|s| [(s.start, s.power), (s.end, s.power)]).collect();
        Self::new(knots)
    }

    /// The knots in time order.
    pub fn knots(&self) -> &[(Timestamp, Watts)] {
        &self.knots
    }

    /// Times of the first and the last knot.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        Some((self.knots.first()?.0, self.knots.last()?.0))
    }

    /// Power at a time; right after a jump that lies at it. `None` outside the knots.
    pub fn at(&self, time: Timestamp) -> Option<Watts> {
        let after = self.knots.partition_point(|(knot, _)| *knot <= time);
        let before = *self.knots.get(after.checked_sub(1)?)?;
        match self.knots.get(after) {
            Some(next) => Some(interpolate(before, *next, time)),
            None => (before.0 == time).then_some(before.1),
        }
    }

    /// Energy between two times, as far as the curve reaches; zero if `end` is not after `start`.
    pub fn energy(&self, start: Timestamp, end: Timestamp) -> Joules {
        if end <= start { Joules::ZERO } else { self.energy_until(end) - self.energy_until(start) }
    }

    /// Mean power between two times, as far as the curve reaches.
    pub fn mean(&self, start: Timestamp, end: Timestamp) -> Option<Watts> {
        let (first, last) = self.span()?;
        let span = end.min(last).since(start.max(first));
        (span > Nanoseconds::ZERO).then(|| self.energy(start, end) / span)
    }

    fn energy_until(&self, time: Timestamp) -> Joules {
        let after = self.knots.partition_point(|(knot, _)| *knot <= time);
        let Some(before) = after.checked_sub(1) else { return Joules::ZERO };
        let whole = self.cumulative[before];
        match self.knots.get(after) {
            Some(next) => {
                whole + trapezoid(self.knots[before], (time, interpolate(self.knots[before], *next, time)))
            }
            None => whole,
        }
    }
}

/// A stretch of time with one mean power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// From here
    pub start: Timestamp,
    /// to here
    pub end: Timestamp,
    /// the mean power was this.
    pub power: Watts,
}

impl Segment {
    /// Its length.
    pub fn duration(&self) -> Nanoseconds {
        self.end.since(self.start)
    }

    /// Its energy.
    pub fn energy(&self) -> Joules {
        self.power * self.duration()
    }
}

fn trapezoid(from: (Timestamp, Watts), to: (Timestamp, Watts)) -> Joules {
    (from.1 + to.1) * 0.5 * to.0.since(from.0)
}

fn interpolate(from: (Timestamp, Watts), to: (Timestamp, Watts), time: Timestamp) -> Watts {
    let whole = to.0.since(from.0).as_secs_f64();
    if whole == 0.0 { to.1 } else { from.1 + (to.1 - from.1) * (time.since(from.0).as_secs_f64() / whole) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn knot(seconds: f64, watts: f64) -> (Timestamp, Watts) {
        (Timestamp::from_nanos((seconds * 1e9) as u64), Watts::from_watts(watts))
    }

    #[test]
    fn knots_out_of_order_and_no_numbers_are_dropped() {
        let curve = PowerCurve::new(vec![
            knot(1.0, 10.0),
            knot(0.5, 99.0),
            knot(1.5, f64::NAN),
            knot(1.5, f64::INFINITY),
            knot(2.0, 30.0),
            knot(1.9, 99.0),
        ]);
        assert_eq!(curve.knots(), [knot(1.0, 10.0), knot(2.0, 30.0)]);
        assert_eq!(curve.cumulative, [0.0, 20.0].map(Joules::from_joules));
        let at = |seconds: f64| curve.at(knot(seconds, 0.0).0);
        assert_eq!(
            [at(1.0), at(2.0), at(2.1)],
            [Some(Watts::from_watts(10.0)), Some(Watts::from_watts(30.0)), None]
        );
        let mean = |from: f64, to: f64| curve.mean(knot(from, 0.0).0, knot(to, 0.0).0).map(Watts::as_watts);
        assert_eq!([mean(0.0, 9.0), mean(1.0, 1.5), mean(2.0, 3.0)], [Some(20.0), Some(15.0), None]);
        assert_eq!(curve.energy(knot(1.5, 0.0).0, knot(1.5, 0.0).0), Joules::ZERO);
        assert_eq!(PowerCurve::default().mean(knot(0.0, 0.0).0, knot(1.0, 0.0).0), None);
    }

    #[test]
    fn a_staircase_has_the_energy_of_its_steps() {
        let step = |start: f64, end: f64, watts: f64| {
            let power = Watts::from_watts(watts);
            Segment { start: knot(start, 0.0).0, end: knot(end, 0.0).0, power }
        };
        let steps = [step(1.0, 1.5, 10.0), step(1.5, 3.0, 40.0)];
        assert_eq!(steps[1].energy(), Joules::from_joules(60.0));
        assert_eq!(steps[1].duration(), Nanoseconds::from_millis(1500));
        let curve = PowerCurve::from_segments(&steps);
        assert_eq!(curve.energy(knot(1.0, 0.0).0, knot(3.0, 0.0).0), Joules::from_joules(65.0));
        assert_eq!(curve.at(knot(1.5, 0.0).0), Some(Watts::from_watts(40.0)));
    }

    #[test]
    fn area_under_a_ramp_and_a_jump() {
        let curve = PowerCurve::new(vec![knot(1.0, 10.0), knot(2.0, 20.0), knot(2.0, 50.0), knot(4.0, 50.0)]);
        assert_eq!(curve.energy(knot(1.0, 0.0).0, knot(2.0, 0.0).0), Joules::from_joules(15.0));
        assert_eq!(curve.energy(knot(1.5, 0.0).0, knot(3.0, 0.0).0), Joules::from_joules(8.75 + 50.0));
        assert_eq!(curve.at(knot(1.5, 0.0).0), Some(Watts::from_watts(15.0)));
        assert_eq!(curve.at(knot(2.0, 0.0).0), Some(Watts::from_watts(50.0)));
        assert_eq!(curve.at(knot(0.5, 0.0).0), None);
    }

    #[test]
    fn nothing_is_known_outside_the_knots() {
        let curve = PowerCurve::new(vec![knot(1.0, 10.0), knot(2.0, 10.0)]);
        assert_eq!(curve.energy(knot(0.0, 0.0).0, knot(9.0, 0.0).0), Joules::from_joules(10.0));
        assert_eq!(curve.energy(knot(5.0, 0.0).0, knot(1.0, 0.0).0), Joules::ZERO);
    }

    proptest! {
        #[test]
        fn an_integral_is_the_sum_of_its_parts(
            points in prop::collection::vec((0u64..1_000_000, 0.0f64..500.0), 2..40),
            cuts in prop::collection::vec(0u64..1_000_000, 1..6),
        ) {
            let mut knots: Vec<_> =
                points.iter().map(|(t, w)| (Timestamp::from_nanos(t * 1000), Watts::from_watts(*w))).collect();
            knots.sort_by_key(|(time, _)| *time);
            let curve = PowerCurve::new(knots);
            let mut cuts: Vec<_> = cuts.iter().map(|t| Timestamp::from_nanos(t * 1000)).collect();
            cuts.sort();
            let (first, last) = curve.span().expect("two knots");
            let whole = curve.energy(first, last);
            let mut parts = Joules::ZERO;
            let mut from = first;
            for cut in cuts.into_iter().filter(|cut| *cut > first && *cut < last) {
                parts += curve.energy(from, cut);
                from = cut;
            }
            parts += curve.energy(from, last);
            prop_assert!((whole - parts).abs().as_joules() <= 1e-9 * whole.as_joules().max(1e-3));
        }
    }
}

//! Whether what lies around switching times is what they say: load after the first of them, rest after the second.

use super::curve::PowerCurve;
use crate::units::{Nanoseconds, Timestamp, Watts};

/// What a list of switching times says and the readings do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contradiction {
    /// Where.
    pub place: Place,
    /// What the GPU drew there.
    pub found: Watts,
    /// What it drew while it should have been at work,
    pub load: Watts,
    /// and what it drew at rest.
    pub rest: Watts,
}

/// Where times and readings contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It drew what it draws at work, though the load had not begun.
    BeforeFirst,
    /// It was at rest, though the last of an odd number of times would switch the load on.
    RestAfterLast,
    /// It was at work, though the last of an even number of times would switch the load off.
    LoadAfterLast,
    /// It drew less while it should have been at work than between, all the time.
    Between,
}

/// How much of the time before the first switch and after the last is looked at: later it may have been put to other work,
/// or have fallen lower, as a GPU does that nobody uses.
const NEAR: Nanoseconds = Nanoseconds::from_millis(1000);
/// Load and rest that differ by a smaller share of the greater are not told apart.
const LEAST_CONTRAST: f64 = 0.1;

/// Where corrected power contradicts the times at which the load was switched on and off in turn.
pub fn contradictions(curve: &PowerCurve, switches: &[Timestamp]) -> Vec<Contradiction> {
    let (Some(&first), Some(&last)) = (switches.first(), switches.last()) else { return Vec::new() };
    let start = Timestamp::from_nanos(first.as_nanos().saturating_sub(NEAR.as_nanos()));
    let (before, behind) = (curve.mean(start, first), curve.mean(last, last + NEAR));
    let (load, between) = (mean_of(curve, switches), mean_of(curve, &switches[1..]));
    let is_apart = |a: Watts, b: Watts| {
        let (a, b) = (a.as_watts(), b.as_watts());
        (a - b).abs() > LEAST_CONTRAST * a.abs().max(b.abs())
    };
    let Some(load) = load else { return Vec::new() };
    // Where load and the rests between have one mean, rest is what it was before.
    let between = between.filter(|rest| is_apart(load, *rest));
    let Some(rest) = between.or(before).filter(|rest| is_apart(load, *rest)) else { return Vec::new() };
    let told = |place, found| Contradiction { place, found, load, rest };
    if load < rest {
        return vec![told(Place::Between, load)];
    }
    let is_load = |found: Watts| found - rest > load - found;
    let before = before.filter(|found| is_load(*found)).map(|found| told(Place::BeforeFirst, found));
    let behind = behind.and_then(|found| match (is_load(found), switches.len().is_multiple_of(2)) {
        (false, false) => Some(told(Place::RestAfterLast, found)),
        (true, true) => Some(told(Place::LoadAfterLast, found)),
        _ => None,
    });
    before.into_iter().chain(behind).collect()
}

/// The mean power from each odd time to the next.
fn mean_of(curve: &PowerCurve, times: &[Timestamp]) -> Option<Watts> {
    let (first, last) = curve.span()?;
    let within = |at: Timestamp| at.clamp(first, last);
    let pairs = times.chunks_exact(2).map(|pair| (within(pair[0]), within(pair[1])));
    let sum = |(joules, seconds): (f64, f64), (start, end): (Timestamp, Timestamp)| {
        (joules + curve.energy(start, end).as_joules(), seconds + end.since(start).as_secs_f64())
    };
    let (joules, seconds) = pairs.fold((0.0, 0.0), sum);
    (seconds > 0.0).then(|| Watts::from_watts(joules / seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Timestamp {
        Timestamp::from_nanos(((100.0 + seconds) * 1e9) as u64)
    }

    /// Watts from whole seconds on, until one after the last.
    fn curve(watts: &[f64]) -> PowerCurve {
        let knot = |(second, watts): (u32, &f64)| {
            let second = f64::from(second);
            [(at(second), Watts::from_watts(*watts)), (at(second + 1.0), Watts::from_watts(*watts))]
        };
        PowerCurve::new((0..).zip(watts).flat_map(knot).collect())
    }

    fn places(watts: &[f64], switches: &[f64]) -> Vec<Place> {
        let switches: Vec<Timestamp> = switches.iter().map(|second| at(*second)).collect();
        contradictions(&curve(watts), &switches).into_iter().map(|of| of.place).collect()
    }

    #[test]
    fn what_follows_the_last_switch_may_be_what_it_says_or_not() {
        // On, off and on again.
        assert_eq!(places(&[50.0, 150.0, 60.0, 145.0], &[1.0, 2.0, 3.0]), []);
        assert_eq!(places(&[50.0, 150.0, 60.0, 55.0], &[1.0, 2.0, 3.0]), [Place::RestAfterLast]);
        // On and off: the middle between 50 and 150 W is the border.
        assert_eq!(places(&[50.0, 150.0, 99.0], &[1.0, 2.0]), []);
        assert_eq!(places(&[50.0, 150.0, 101.0], &[1.0, 2.0]), [Place::LoadAfterLast]);
        // Where the trace ends nothing contradicts.
        assert_eq!(places(&[50.0, 150.0, 60.0], &[1.0, 2.0, 3.0]), []);
        assert_eq!(places(&[50.0, 150.0], &[1.0, 2.0]), []);
    }

    #[test]
    fn what_comes_before_the_first_and_between() {
        assert_eq!(places(&[140.0, 150.0, 60.0, 150.0, 60.0], &[1.0, 2.0, 3.0, 4.0]), [Place::BeforeFirst]);
        // A list that begins with switching off.
        assert_eq!(places(&[150.0, 60.0, 150.0, 60.0, 150.0], &[1.0, 2.0, 3.0, 4.0]), [Place::Between]);
        // What differs by less than a tenth is not told apart.
        assert_eq!(places(&[140.0, 150.0, 139.0, 150.0], &[1.0, 2.0, 3.0]), []);
        assert_eq!(places(&[], &[1.0, 2.0]), []);
        assert_eq!(places(&[50.0], &[]), []);
    }

    /// Load and rests have one mean where readings do not tell them apart: then rest is what it was before.
    #[test]
    fn a_mixture_is_no_rest() {
        assert_eq!(places(&[50.0, 100.0, 100.0, 52.0], &[1.0, 2.0, 3.0]), [Place::RestAfterLast]);
        assert_eq!(places(&[50.0, 100.0, 100.0, 140.0], &[1.0, 2.0, 3.0]), []);
    }
}

//! Readings of a capacitor as stretches of steady power that charged it, and whether it can have been so: a sensor that is taken
//! for another one gives powers that no GPU has.

use thiserror::Error;

use super::curve::Segment;
use super::refresh::Refresh;
use super::sensor::SensorModel;
use super::stretches::{self, Course, Stretch};
use crate::numerics::quantiles;
use crate::units::{Nanoseconds, Timestamp, Watts};

/// Why readings are not those of a capacitor of this time constant.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error(
    "bad fit: a sensor with a time constant of {constant} would have shown other readings, whatever the GPU drew: they are \
     {percent:.1} % of their range off; at most {limit:.1} % is accepted"
)]
pub struct Unexplained {
    /// The time constant.
    constant: Nanoseconds,
    /// What they are off, in percent.
    percent: f64,
    /// The limit.
    limit: f64,
}

/// Largest residual as a share of the range: that of sensors beside switching times.
const WORST_RESIDUAL: f64 = 0.15;
/// What is off by no more than this many times the noise of a reading is noise.
const BEYOND_NOISE: f64 = 3.0;

/// Standard deviation of a reading.
pub(super) fn reading_noise(refreshes: &[Refresh]) -> Watts {
    let watts: Vec<f64> = refreshes.iter().map(|refresh| refresh.power.as_watts()).collect();
    Watts::from_watts(stretches::reading_noise(&watts))
}

/// Stretches of steady power, from switch to switch, and why no capacitor was charged by them.
pub(super) fn steady(
    refreshes: &[Refresh],
    time_constant: Nanoseconds,
    noise: Watts,
    model: &SensorModel,
) -> (Vec<Segment>, Option<Unexplained>) {
    let (Some(first), Some(last)) = (refreshes.first(), refreshes.last()) else { return (Vec::new(), None) };
    let constant = time_constant.as_secs_f64();
    let times: Vec<f64> =
        refreshes.iter().map(|refresh| refresh.time().since(first.time()).as_secs_f64()).collect();
    let watts: Vec<f64> = refreshes.iter().map(|refresh| refresh.power.as_watts()).collect();
    let found = stretches::cut(&times, &watts, Course::Exponential(constant), noise.as_watts()).stretches;
    let mut edges = vec![first.time()];
    let switches = stretches::switches(&times, &found, constant);
    edges.extend(switches.into_iter().map(|at| first.time() + Nanoseconds::from_secs_f64(at)));
    edges.push(last.time());
    let segment = |(edge, stretch): (&[Timestamp], &Stretch)| Segment {
        start: edge[0],
        end: edge[1],
        power: model.scaled(Watts::from_watts(stretch.level)),
    };
    let levels: Vec<Segment> =
        edges.windows(2).zip(&found).map(segment).filter(|segment| segment.end > segment.start).collect();
    (levels, unexplained(&times, &watts, &found, time_constant, noise))
}

/// Stretches each begin where the readings are; a capacitor goes on from where it was, so that what moves faster than it can
/// shows in that.
fn unexplained(
    times: &[f64],
    watts: &[f64],
    found: &[Stretch],
    constant: Nanoseconds,
    noise: Watts,
) -> Option<Unexplained> {
    let (low, high) = quantiles::range(watts.iter().copied());
    let off = stretches::misfit(times, watts, found, constant.as_secs_f64());
    let share = off / (high - low).max(1e-9);
    let is_off = share > WORST_RESIDUAL && off > BEYOND_NOISE * noise.as_watts();
    is_off.then_some(Unexplained { constant, percent: 100.0 * share, limit: 100.0 * WORST_RESIDUAL })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 60 and 180 W in turn for 300 ms, as a sensor shows them that settles at once or as one that charges in this time.
    fn refreshes(constant: Option<f64>) -> Vec<Refresh> {
        let mut shown = 60.0;
        let refresh = |n: u64| {
            let watts = if (n / 20).is_multiple_of(2) { 60.0 } else { 180.0 };
            shown = constant.map_or(watts, |constant| watts + (shown - watts) * (-0.015 / constant).exp());
            let time = Timestamp::from_nanos(n * 15_000_000);
            Refresh { earliest: time, latest: time, power: Watts::from_watts(shown) }
        };
        (0..400).map(refresh).collect()
    }

    #[test]
    fn what_moves_faster_than_a_capacitor_can_is_told() {
        let of = |refreshes: &[Refresh], millis: u64| {
            let constant = Nanoseconds::from_millis(millis);
            steady(refreshes, constant, reading_noise(refreshes), &SensorModel::k20()).1
        };
        assert_eq!(of(&refreshes(Some(0.8333)), 833), None);
        let found = of(&refreshes(None), 833).expect("steps of 120 W within 15 ms");
        assert!(found.percent > 15.0 && found.to_string().contains("at most 15.0 %"), "{found}");
        // Noise alone is not followed by anything, and is no reason.
        let mut quiet = refreshes(Some(0.8333));
        for (n, of) in quiet.iter_mut().enumerate() {
            of.power = Watts::from_watts(60.0 + (n * 7 % 5) as f64 * 0.1);
        }
        assert_eq!(of(&quiet, 833), None);
    }

    #[test]
    fn one_reading_is_no_stretch() {
        let one = &refreshes(None)[..1];
        let found = steady(one, Nanoseconds::from_millis(100), Watts::ZERO, &SensorModel::k20());
        assert_eq!(found, (Vec::new(), None));
    }
}

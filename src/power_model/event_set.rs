//! Which of a recording's events divide its joules.
//!
//! The best set differs from program to program (Ono et al., table 5): an event that hardly fires brings
//! a few large quanta that fall by chance, and one whose coefficient is wrong here widens the spread of
//! the buckets' energies. So each set of the recording's events is fitted to one half of its intervals and
//! judged by the other half: by how far the measured joules of an interval lie from the estimated ones.

use std::fmt;

use super::intervals::Intervals;
use super::model::Scale;
use super::prior::Prior;
use super::self_calibration::SelfCalibration;

/// Why an event does not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LeftOut {
    /// So few samples that where they fell is chance.
    HardlyFires(u64),
    /// Nothing says that it costs energy here.
    NoCost,
    /// The spread of energies is larger with it than without: both as a share of the mean.
    WidensSpread {
        /// With it.
        with: f64,
        /// Without it.
        without: f64,
    },
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HardlyFires(0) => f.write_str("it never fired"),
            Self::HardlyFires(1) => f.write_str("one sample only"),
            Self::HardlyFires(samples) => write!(f, "{samples} samples only"),
            Self::NoCost => f.write_str("no cost here"),
            Self::WidensSpread { with, without } => write!(
                f,
                "energies spread by {:.1} % with it, {:.1} % without",
                with * 100.0,
                without * 100.0
            ),
        }
    }
}

/// The events that count, and the model over them.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSet {
    /// For each event, why it does not count.
    pub left_out: Vec<Option<LeftOut>>,
    /// The model; events that do not count cost nothing in it.
    pub calibration: SelfCalibration,
    /// How far intervals' joules lie from the estimates for intervals that the fit did not see: root mean
    /// square, as a share of the mean. `None` if that cannot be told.
    pub spread: Option<f64>,
}

/// Fewer samples than this say nothing.
const FEWEST_SAMPLES: u64 = 8;
/// An event is left out if the spread is smaller by this share without it.
const WORTHWHILE: f64 = 0.05;
/// The same of an event whose joules are known from elsewhere: that it costs nothing here is then the less likely. An
/// event that varies little could else be taken for static power at hardly any loss.
const WORTHWHILE_OF_JOULES: f64 = 0.3;
/// Sets are tried one by one up to so many events.
const MOST_EVENTS: usize = 12;

/// Chooses among events that had so many samples.
pub fn choose(intervals: &Intervals, prior: &Prior, samples: &[u64]) -> EventSet {
    let events = prior.joules_per_event.len();
    let mut left_out: Vec<Option<LeftOut>> = (0..events)
        .map(|event| match samples.get(event).copied().unwrap_or(0) {
            few @ 0..FEWEST_SAMPLES => Some(LeftOut::HardlyFires(few)),
            _ if prior.joules_per_event[event] <= 0.0 && prior.least_share <= 0.0 => Some(LeftOut::NoCost),
            _ => None,
        })
        .collect();
    let costs = |event: usize| prior.joules_per_event[event] > 0.0;
    if !(0..events).any(|event| left_out[event].is_none() && costs(event)) {
        // Better by a few samples than not at all.
        for event in (0..events).filter(|&event| costs(event) && samples.get(event).is_some_and(|n| *n > 0)) {
            left_out[event] = None;
        }
    }
    let worthwhile = match prior.scale {
        Scale::Joules => WORTHWHILE_OF_JOULES,
        Scale::Relative => WORTHWHILE,
    };
    let mut used: Vec<usize> = (0..events).filter(|&event| left_out[event].is_none()).collect();
    let mut spread = spread_of(intervals, prior, &used);
    if used.len() <= MOST_EVENTS
        && SelfCalibration::new(&intervals.select(&used), &prior.select(&used)).is_calibrated
    {
        while let (Some(with), true) = (spread, used.len() > 1) {
            let without = |event: &usize| {
                let rest: Vec<usize> = used.iter().copied().filter(|other| other != event).collect();
                rest.iter().any(|&event| costs(event)).then(|| spread_of(intervals, prior, &rest)).flatten()
            };
            let best = used.iter().filter_map(|event| Some((*event, without(event)?)));
            let Some((event, without)) = best.min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            if without >= with * (1.0 - worthwhile) {
                break;
            }
            left_out[event] = Some(LeftOut::WidensSpread { with, without });
            used.retain(|other| *other != event);
            spread = Some(without);
        }
    }
    let calibration = SelfCalibration::new(&intervals.select(&used), &prior.select(&used));
    let mut calibration = embed(calibration, &used, events, intervals.static_terms);
    for (event, left_out) in left_out.iter_mut().enumerate() {
        if left_out.is_none() && calibration.joules_per_event[event] <= 0.0 {
            *left_out = Some(LeftOut::NoCost);
        }
    }
    calibration.intervals = intervals.rows.len();
    EventSet { left_out, calibration, spread }
}

/// The spread of a set, each half of the intervals judged by a fit to the other half. The halves are stretches
/// that take turns: of intervals in a row a fit learns most.
fn spread_of(intervals: &Intervals, prior: &Prior, used: &[usize]) -> Option<f64> {
    const FEWEST: usize = 24;
    const STRETCHES: usize = 12;
    /// More would cost time and tell no more.
    const MOST: usize = 512;
    let judged = intervals.rows.len() / intervals.judged_together.max(1);
    if judged < FEWEST || used.is_empty() {
        return None;
    }
    let together = intervals.rows.len().div_ceil(MOST).min(intervals.judged_together.max(1));
    let chosen = intervals.select(used).merged(together);
    let prior = prior.select(used);
    let length = chosen.rows.len().div_ceil(STRETCHES);
    let (mut square, mut sum, mut count) = (0.0, 0.0, 0.0);
    for half in 0..2 {
        let is_held_back = |at: usize| at / length % 2 == half;
        let fit = SelfCalibration::new(&chosen.part(|at| !is_held_back(at)), &prior);
        for row in &chosen.part(is_held_back).for_judging().rows {
            square += (row.joules - fit.joules(row)).powi(2);
            sum += row.joules;
            count += 1.0;
        }
    }
    (sum > 0.0).then(|| (square / count).sqrt() / (sum / count))
}

/// A model of some of the events as one of all.
fn embed(model: SelfCalibration, used: &[usize], events: usize, static_terms: usize) -> SelfCalibration {
    let mut joules_per_event = vec![0.0; events];
    let (small, large) = (used.len() + static_terms, events + static_terms);
    let place = |at: usize| used.get(at).copied().unwrap_or(events + at.saturating_sub(used.len()));
    let mut covariance = vec![0.0; large * large];
    for row in 0..small {
        for column in 0..small {
            covariance[place(row) * large + place(column)] =
                model.covariance.get(row * small + column).copied().unwrap_or(0.0);
        }
    }
    for (&event, cost) in used.iter().zip(&model.joules_per_event) {
        joules_per_event[event] = *cost;
    }
    SelfCalibration { joules_per_event, covariance, ..model }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::intervals::Interval;
    use crate::power_model::paper;

    const COSTS: [f64; 4] = [2.71e-10, 2.06e-10, 3.161e-9, 6.058e-9];

    /// One program after another with the paper's rates, but with a fifth event whose cost is a fiction.
    fn programs(programs: &[usize]) -> Intervals {
        let rows = (0..96).map(|at| {
            let rates = paper::PROGRAMS[programs[at / 8 % programs.len()]].rates_per_core();
            let seconds = 0.1;
            let joules = 12.41 * seconds
                + rates.iter().zip(COSTS).map(|(rate, cost)| rate * cost * seconds).sum::<f64>();
            let unrelated = if at % 3 == 0 { 5e8 } else { 0.0 };
            let counts = rates.iter().copied().chain([unrelated]).map(|rate| rate * seconds).collect();
            Interval { static_term: 0, follows: false, seconds, joules, counts, busy: 0.0, guessed: 0.0 }
        });
        Intervals {
            rows: rows.collect(),
            count_noise: vec![1e10; 5],
            late_noise: vec![0.0; 5],
            static_terms: 1,
            edge_noise: 0.0,
            pieces_of_code: None,
            judged_together: 1,
        }
    }

    fn prior() -> Prior {
        Prior {
            unexplained: 0.0,
            joules_per_event: COSTS.into_iter().chain([3e-9]).collect(),
            relative_error: 0.1,
            std_errors: Vec::new(),
            misfit: 0.0,
            least_share: 0.0,
            scale: Scale::Joules,
            static_watts: Some((12.0, 2.0)),
        }
    }

    #[test]
    fn an_event_that_hardly_fires_is_left_out() {
        let set = choose(&programs(&[0, 1]), &prior(), &[900, 900, 3, 0, 0]);
        assert_eq!(set.left_out[2], Some(LeftOut::HardlyFires(3)));
        assert_eq!(set.left_out[3], Some(LeftOut::HardlyFires(0)));
        assert_eq!(set.calibration.joules_per_event[3], 0.0);
        assert!(set.left_out[0].is_none() && set.left_out[1].is_none());
    }

    #[test]
    fn an_event_that_says_nothing_of_the_power_is_left_out() {
        let set = choose(&programs(&[0, 1, 4, 5]), &prior(), &[900; 5]);
        let left_out: Vec<usize> = (0..5).filter(|&event| set.left_out[event].is_some()).collect();
        assert_eq!(left_out, [4], "{:?}", set.left_out);
        assert!(set.spread.expect("enough intervals") < 0.01, "{:?}", set.spread);
        for (found, truth) in set.calibration.joules_per_event.iter().zip(COSTS) {
            assert!((found / truth - 1.0).abs() < 0.05, "{found} {truth}");
        }
    }

    #[test]
    fn where_all_hardly_fire_all_are_used() {
        let set = choose(&Intervals { static_terms: 1, ..Intervals::default() }, &prior(), &[2, 1, 0, 0, 0]);
        assert_eq!(set.left_out[0], None);
        assert_eq!(set.left_out[2], Some(LeftOut::HardlyFires(0)));
    }

    #[test]
    fn what_counted_nothing_has_no_spread() {
        let mut intervals = programs(&[0, 1, 4]);
        assert!(spread_of(&intervals, &prior(), &[0, 1, 2]).is_some_and(|spread| spread > 0.0));
        assert_eq!(spread_of(&intervals, &prior(), &[]), None);
        intervals.rows.iter_mut().for_each(|row| row.joules = 0.0);
        assert_eq!(spread_of(&intervals, &prior(), &[0, 1, 2]), None);
        // 24 intervals to judge by are the fewest.
        let first = |count: usize| programs(&[0, 1, 4]).part(|at| at < count);
        assert!(spread_of(&first(24), &prior(), &[0, 1]).is_some());
        assert_eq!(spread_of(&first(23), &prior(), &[0, 1]), None);
    }
}

//! Static power that changes while the program runs: told apart from what code draws where that can be known, and in errors
//! where it cannot.

use crate::analyze::intervals::survey::Survey;
use crate::analyze::model::domain_set::DomainSet;
use crate::hardware::DomainInfo;
use crate::power_model::drift::Drift;
use crate::power_model::event_set::{self, EventSet};
use crate::power_model::intervals::Intervals;
use crate::power_model::prior::Prior;
use crate::units::Timestamp;

/// The fit of a kind of domain, and how static power changes beside it.
#[derive(Debug)]
pub(super) struct Drifting {
    pub set: EventSet,
    /// When changes begin.
    pub begin: Timestamp,
    /// By static term: what is known of it.
    pub drifts: Vec<Option<Drift>>,
}

impl Drifting {
    /// Static power is the same all the time.
    pub fn none(set: EventSet) -> Self {
        Self { set, begin: Timestamp::default(), drifts: Vec::new() }
    }
}

/// A fit shows how static power changes, and what changes spoils the fit a little: it is made anew so many times.
const ROUNDS: usize = 2;

/// `set` was fitted to these intervals of domains of one kind, one static term after the other. Where what is believed of static
/// power `is_of_the_beginning`, it rises from there; else it is believed of the whole recording.
pub(super) fn follow(
    set: EventSet,
    intervals: &Intervals,
    prior: &Prior,
    (survey, domains): (&Survey, &[usize]),
    is_of_the_beginning: bool,
) -> Drifting {
    let begins = domains.iter().filter_map(|&domain| Some((*survey.readings.get(domain)?)?[0].0));
    let (Some(begin), Some(_)) = (begins.min(), &set.calibration.static_watts) else {
        return Drifting::none(set);
    };
    let drifts_beside = |set: &EventSet| -> Vec<Option<Drift>> {
        let shares = |times: &[_]| survey.mixture.shares_in(begin, times);
        let of = |term| Drift::of(intervals, term, &set.calibration, prior.unexplained, shares);
        (0..intervals.static_terms).map(of).collect()
    };
    let mut found = drifts_beside(&set);
    let mut changing = Drifting { set, begin, drifts: vec![None; found.len()] };
    for _ in 0..ROUNDS {
        let told = |drift: &Option<Drift>| {
            let drift = drift.clone().filter(Drift::is_told);
            drift.map(|drift| if is_of_the_beginning { drift } else { drift.around_the_mean() })
        };
        changing.drifts = found.iter().map(told).collect();
        if changing.drifts.iter().all(Option::is_none) {
            break;
        }
        let mut without = intervals.clone();
        for (term, drift) in changing.drifts.iter().enumerate() {
            drift.iter().for_each(|drift| drift.taken_out(&mut without, term));
        }
        changing.set = event_set::choose(&without, prior, &survey.samples);
        found = drifts_beside(&changing.set);
    }
    for (term, (found, taken)) in found.iter().zip(&changing.drifts).enumerate() {
        let Some(found) = found else { continue };
        // Of changes around what is believed of the whole recording it is not known where in it that was true.
        let unsure = match taken {
            Some(_) if !is_of_the_beginning => found.mean().hypot(found.unsure()),
            _ => found.unsure(),
        };
        changing.set.calibration.static_is_unsure_by(term, unsure);
    }
    changing
}

/// What is to be said of it.
pub(super) fn told(sets: &[Option<DomainSet>], domains: &[DomainInfo]) -> Vec<String> {
    let of_domain = |(set, domain): (&Option<DomainSet>, &DomainInfo)| {
        let rise = set.as_ref()?.static_rise()?;
        Some(format!(
            "{}: static power changed from {:.2} to {:.2} W (± {:.2} W) while the program ran, as of a machine that warms up: what \
             was measured changed slowly, and neither the code that ran nor its events did. That is in static, not in functions",
            domain.name,
            rise.from.as_watts(),
            rise.to.as_watts(),
            rise.std_error.as_watts()
        ))
    };
    sets.iter().zip(domains).filter_map(of_domain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::intervals::Interval;
    use crate::power_model::model::Scale;
    use crate::units::Joules;

    /// A program whose load changes every fourth interval of 0.1 s, 0 to 9 W; static power rises from 10 W by 2 W in 24 s.
    fn intervals() -> Intervals {
        let row = |at: usize| {
            let load = (at / 4 * 7 % 10) as f64;
            let static_watts = 10.0 + 2.0 * (at as f64 + 0.5) / 240.0;
            Interval {
                static_term: 0,
                follows: at > 0,
                seconds: 0.1,
                joules: 0.1 * (static_watts + load),
                counts: vec![0.1 * load],
                busy: 1.0,
                guessed: 0.0,
            }
        };
        Intervals {
            rows: (0..240).map(row).collect(),
            count_noise: vec![0.0],
            late_noise: vec![0.0],
            static_terms: 1,
            judged_together: 1,
            ..Intervals::default()
        }
    }

    fn prior(watts: f64) -> Prior {
        Prior {
            unexplained: 0.12,
            misfit: 0.0,
            joules_per_event: vec![1.1],
            relative_error: 0.2,
            least_share: 0.0,
            std_errors: Vec::new(),
            scale: Scale::Joules,
            static_watts: Some((watts, 0.05)),
        }
    }

    fn followed(is_of_the_beginning: bool, watts: f64) -> Drifting {
        let prior = prior(watts);
        let reading = |seconds: u64| (Timestamp::from_nanos(seconds * 1_000_000_000), Joules::ZERO);
        let survey = Survey {
            samples: vec![10_000],
            readings: vec![Some([reading(5), reading(29)])],
            ..Survey::default()
        };
        let set = event_set::choose(&intervals(), &prior, &survey.samples);
        follow(set, &intervals(), &prior, (&survey, &[0]), is_of_the_beginning)
    }

    #[test]
    fn from_what_was_seen_before_static_power_rises() {
        let Drifting { set, begin, drifts } = followed(true, 10.0);
        assert_eq!(begin, Timestamp::from_nanos(5_000_000_000));
        let drift = drifts[0].as_ref().expect("a rise");
        assert!((drift.mean() - 1.0).abs() < 0.01, "{drift:?}");
        let watts = set.calibration.static_watts.as_ref().expect("known")[0];
        assert!((watts - 10.0).abs() < 0.05, "{watts}");
        // An event costs what it does, in place of what the rise would have added.
        assert!((set.calibration.joules_per_event[0] - 1.0).abs() < 0.01, "{:?}", set.calibration);
        assert!(set.calibration.static_std_error(0) < 0.1);
    }

    #[test]
    fn what_is_believed_of_the_whole_may_have_been_true_at_any_time() {
        let Drifting { set, drifts, .. } = followed(false, 11.0);
        let drift = drifts[0].as_ref().expect("a rise");
        let [first, last] = drift.points() else { panic!("straight") };
        assert!((first.1 + 1.0).abs() < 0.01 && (last.1 - 1.0).abs() < 0.01, "{drift:?}");
        let watts = set.calibration.static_watts.as_ref().expect("known")[0];
        assert!((watts - 11.0).abs() < 0.05, "{watts}");
        // By a watt, which is what it was off at both ends.
        let unsure = set.calibration.static_std_error(0);
        assert!((unsure - 1.0).abs() < 0.05, "{unsure}");
    }

    #[test]
    fn a_fit_without_static_power_or_readings_is_left_alone() {
        let set = || followed(true, 10.0).set;
        let prior = prior(10.0);
        let unread = Survey { readings: vec![None], samples: vec![10_000], ..Survey::default() };
        let left = follow(set(), &intervals(), &prior, (&unread, &[0]), true);
        assert!(left.drifts.is_empty() && left.set == set());
    }
}

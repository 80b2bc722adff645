//! How the joules of a recording are to be divided: decided between its two passes.

use std::collections::BTreeMap;

use crate::analyze::earlier::EarlierIntervals;
use crate::analyze::events::{EventRoles, EventUnit};
use crate::analyze::intervals::survey::Survey;
use crate::analyze::model::bucket_size::bucket_size;
use crate::analyze::model::choice::BaseModel;
use crate::analyze::model::domain_set::DomainSet;
use crate::analyze::model::drift::{self, Drifting};
use crate::analyze::model::nested;
use crate::analyze::options::ModelChoice;
use crate::analyze::options::{Options, StaticEnergy};
use crate::attribute::{EventWeights, Rise, Sharing};
use crate::hardware::{DomainInfo, DomainKind, Method, RestPower};
use crate::power_model::event_set::{self, EventSet};
use crate::power_model::prior::Prior;
use crate::power_model::self_calibration::SelfCalibration;
use crate::profile::{BucketReason, Division};
use crate::recording::metadata::{EventInfo, Metadata};
use crate::units::{Joules, Nanoseconds, Watts};

/// What the second pass needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Model joules per event and domain.
    pub weights: EventWeights,
    /// Constant power by domain, to be told apart.
    pub static_power: Vec<Watts>,
    /// By how much more it is over time, by domain.
    pub rises: Vec<Option<Rise>>,
    /// Energy of a bucket.
    pub bucket: Joules,
    /// Over which time proportions hold.
    pub sharing: Sharing,
    /// Covariance of events' weights and the static power, by domain; empty where they are exact.
    pub covariances: Vec<Vec<f64>>,
    /// The same for people; `None` where there is nothing to divide.
    pub division: Option<Division>,
    /// What was expected and not done.
    pub warnings: Vec<String>,
}

/// Domains of one kind have more static terms than this only in common: there are many single cores.
const MOST_STATIC_TERMS: usize = 4;

impl Plan {
    pub fn new(metadata: Option<&Metadata>, roles: &EventRoles, survey: &Survey, options: &Options) -> Self {
        let domains = metadata.map_or(&[][..], |metadata| &metadata.domains);
        let bucket = bucket_size(domains, survey, options.bucket);
        let by_time = || time_weights(roles, survey, domains.len());
        let mut plan = Self {
            weights: by_time(),
            static_power: domains.iter().map(|domain| domain.static_power.unwrap_or(Watts::ZERO)).collect(),
            rises: vec![None; domains.len()],
            bucket: bucket.joules,
            sharing: Sharing::ByBucket,
            covariances: vec![Vec::new(); domains.len()],
            division: None,
            warnings: Vec::new(),
        };
        let Some(metadata) = metadata.filter(|metadata| !metadata.domains.is_empty()) else { return plan };
        let base =
            BaseModel::choose(&options.model, options.stored_model.as_ref(), metadata, &mut plan.warnings);
        let sets = base.as_ref().map_or_else(
            || domains.iter().map(|_| None).collect(),
            |base| sets_by_domain(base, metadata, roles, survey, options.earlier.as_ref()),
        );
        if options.model == ModelChoice::Time {
            plan.sharing = Sharing::Whole;
        } else {
            plan.weights = weights(&sets, &plan.weights);
        }
        for (power, domain) in plan.static_power.iter_mut().zip(&sets) {
            if let Some(watts) = domain.as_ref().and_then(DomainSet::static_watts) {
                *power = Watts::from_watts(watts);
            }
        }
        plan.rises = sets.iter().map(|domain| domain.as_ref().and_then(DomainSet::rise)).collect();
        plan.warnings.extend(drift::told(&sets, domains));
        plan.covariances =
            sets.iter().map(|domain| domain.as_ref().map_or_else(Vec::new, DomainSet::covariance)).collect();
        if options.static_energy == StaticEnergy::Spread {
            plan.static_power.fill(Watts::ZERO);
            plan.rises.fill(None);
        }
        let mut division =
            division(base.as_ref(), &sets, metadata, roles, options, (bucket.joules, bucket.reason));
        let is_by_time = sets.iter().any(Option::is_none);
        let stand_in = in_place_of_time(roles, survey).and_then(|event| roles.sampled().get(event));
        division.in_place_of_time = stand_in.filter(|_| is_by_time).map(|event| event.name.clone());
        plan.warnings.extend(division.in_place_of_time.as_deref().map(not_of_time));
        plan.division = Some(division);
        let is_estimated = domains.iter().all(|domain| domain.method == Method::Estimated);
        plan.warnings.extend(bucket.unsure_by.map(|share| {
            let (tells, moves) = match is_estimated {
                true => ("CPU times tell", "they are read"),
                false => ("the meter tells", "it moves"),
            };
            format!(
                "buckets of {} are so short that {tells} the energy of one only to {:.0} %: {moves} {:.0} times in each",
                bucket.joules,
                share * 100.0,
                1.0 / share
            )
        }));
        plan
    }
}

/// The events and the model of each domain; `None` for domains that are divided by time: those that no
/// meter measures, and those of which no event tells.
fn sets_by_domain(
    base: &BaseModel,
    metadata: &Metadata,
    roles: &EventRoles,
    survey: &Survey,
    earlier: Option<&EarlierIntervals>,
) -> Vec<Option<DomainSet>> {
    let events: Vec<Option<&EventInfo>> = roles
        .sampled()
        .iter()
        .map(|event| metadata.events.iter().find(|info| info.name == event.name))
        .collect();
    let mut by_kind: BTreeMap<DomainKind, Vec<usize>> = BTreeMap::new();
    for (index, domain) in metadata.domains.iter().enumerate() {
        if domain.method == Method::Measured && domain.kind != DomainKind::Gpu {
            by_kind.entry(domain.kind).or_default().push(index);
        }
    }
    let mut sets = vec![None; metadata.domains.len()];
    for (kind, indices) in by_kind {
        let told: Option<Vec<f64>> =
            indices.iter().map(|&index| metadata.domains[index].static_power.map(Watts::as_watts)).collect();
        let static_power = told.map(|told| Watts::from_watts(told.iter().sum::<f64>() / told.len() as f64));
        let prior = base.prior(kind, &events, static_power, at_rest(&indices, &metadata.domains));
        if prior.joules_per_event.iter().all(|cost| *cost <= 0.0) {
            continue;
        }
        let domains = (kind, &indices[..]);
        let Drifting { set, begin, drifts } =
            set_of(base, &prior, domains, &metadata.domains, survey, earlier);
        if set.calibration.joules_per_event.iter().all(|cost| *cost <= 0.0) {
            continue;
        }
        let terms = set.calibration.static_watts.as_ref().map_or(1, Vec::len);
        for (position, index) in indices.into_iter().enumerate() {
            let static_term = position.min(terms.saturating_sub(1));
            let drift = drifts.get(static_term).cloned().flatten().map(|drift| (begin, drift));
            sets[index] = Some(DomainSet::new(set.clone(), static_term, prior.unexplained).changing(drift));
        }
    }
    nested::reconcile(&mut sets, &metadata.domains, survey);
    sets
}

/// What one of these domains drew at rest; the errors of several have their causes in common.
fn at_rest(indices: &[usize], domains: &[DomainInfo]) -> Option<RestPower> {
    let seen: Option<Vec<RestPower>> = indices.iter().map(|&index| domains[index].rest).collect();
    let seen = seen.filter(|seen| !seen.is_empty())?;
    let mean = |of: fn(&RestPower) -> Watts| {
        Watts::from_watts(seen.iter().map(|rest| of(rest).as_watts()).sum::<f64>() / seen.len() as f64)
    };
    Some(RestPower { power: mean(|rest| rest.power), std_error: mean(|rest| rest.std_error) })
}

fn set_of(
    base: &BaseModel,
    prior: &Prior,
    (kind, indices): (DomainKind, &[usize]),
    domains: &[DomainInfo],
    survey: &Survey,
    earlier: Option<&EarlierIntervals>,
) -> Drifting {
    let refresh = indices.iter().filter_map(|&index| domains[index].refresh).max();
    let refresh = refresh.unwrap_or(Nanoseconds::from_millis(1));
    let mut intervals = survey.intervals.of_domains(indices, refresh);
    intervals.pieces_of_code = survey.pieces.effective();
    if indices.len() > MOST_STATIC_TERMS {
        intervals.static_terms = 1;
        intervals.rows.iter_mut().for_each(|row| row.static_term = 0);
    }
    // Intervals of several recordings, or of many cores in one term, do not follow each other in time.
    let is_in_order = earlier.is_none() && indices.len() <= MOST_STATIC_TERMS;
    let (intervals, samples) = match earlier {
        Some(earlier) => earlier.join(kind, intervals, &survey.samples),
        None => (intervals, survey.samples.clone()),
    };
    let is_incomplete = prior.static_watts.is_none_or(|(_, error)| error.is_infinite());
    if base.is_correctable || is_incomplete {
        let set = event_set::choose(&intervals, prior, &samples);
        if !is_in_order {
            return Drifting::none(set);
        }
        let is_of_the_beginning = indices
            .iter()
            .all(|&index| domains[index].rest.is_some() && domains[index].static_power.is_none());
        return drift::follow(set, &intervals, prior, (survey, indices), is_of_the_beginning);
    }
    Drifting::none(EventSet {
        left_out: vec![None; prior.joules_per_event.len()],
        calibration: SelfCalibration::of_prior(&intervals, prior, 1.0),
        spread: None,
    })
}

/// The event of most samples, if none tells time.
fn in_place_of_time(roles: &EventRoles, survey: &Survey) -> Option<usize> {
    let most = survey.samples.iter().enumerate().max_by_key(|(_, samples)| **samples);
    (!roles.any_tells_time()).then(|| most.map_or(0, |(event, _)| event))
}

/// Only those events count that tell time; if none does, that of most samples.
fn time_weights(roles: &EventRoles, survey: &Survey, domains: usize) -> EventWeights {
    let most = in_place_of_time(roles, survey);
    EventWeights::from_time(roles.sampled().len(), domains, |event| {
        roles.tells_time(event as u32) || most == Some(event)
    })
}

/// What must be known of joules that follow an event that tells no time.
fn not_of_time(event: &str) -> String {
    format!(
        "no event of this recording tells time: its shares are of {event}, as perf's are, and nobody knows the joules of \
         any function. Record time as well: -e cpu-clock,{event}; then `eprof report` has joules, and \
         `eprof report --event {event}` its counts"
    )
}

/// The model's weights where there is a model, else those by time.
fn weights(sets: &[Option<DomainSet>], by_time: &EventWeights) -> EventWeights {
    let events = sets.iter().flatten().map(|domain| domain.set.left_out.len()).max();
    let Some(events) = events else { return by_time.clone() };
    EventWeights::new(events, sets.len(), |event, domain| match &sets[domain] {
        Some(domain) => domain.set.calibration.joules_per_event[event],
        None => by_time.of_event(event)[domain],
    })
}

fn division(
    base: Option<&BaseModel>,
    sets: &[Option<DomainSet>],
    metadata: &Metadata,
    roles: &EventRoles,
    options: &Options,
    (bucket, bucket_reason): (Joules, BucketReason),
) -> Division {
    let in_recording = metadata.events.iter().any(|event| !event.joules_per_event.is_empty());
    let (model, source) = match (base, &options.model) {
        (None, _) => ("time".to_owned(), "all code is taken to draw the same power".to_owned()),
        (Some(_), ModelChoice::SelfCalibrated) => {
            ("self".to_owned(), "proportions to begin with, then this recording".to_owned())
        }
        (Some(_), ModelChoice::Auto) if in_recording => {
            ("recorded".to_owned(), "coefficients that the recording carries".to_owned())
        }
        (Some(base), _) => (base.model.name.clone(), base.model.source.clone()),
    };
    let used = sets.iter().any(Option::is_some);
    // The whole first: what the events of the package are is what most want to know.
    let first = sets.iter().flatten().next();
    let left_out = roles.sampled().iter().enumerate().map(|(event, about)| {
        if !used && roles.any_tells_time() {
            let reason = match about.unit {
                EventUnit::Nanoseconds => "another clock tells the time",
                _ => "it tells no time",
            };
            return (!roles.tells_time(event as u32)).then(|| reason.to_owned());
        }
        let counts = |domain: &DomainSet| domain.set.calibration.joules_per_event[event] > 0.0;
        if sets.iter().flatten().any(counts) {
            return None;
        }
        first.and_then(|domain| domain.set.left_out[event]).map(|reason| reason.to_string())
    });
    Division {
        left_out: left_out.collect(),
        is_exact: base.is_none_or(|base| !base.is_correctable),
        domains: sets.iter().map(|domain| domain.as_ref().map(DomainSet::division)).collect(),
        model: if used || base.is_none() { model } else { "time".to_owned() },
        source: if used || base.is_none() { source } else { "no sampled event has a known cost".to_owned() },
        bucket,
        bucket_reason,
        is_by_time: options.model == ModelChoice::Time,
        static_is_spread: options.static_energy == StaticEnergy::Spread,
        in_place_of_time: None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use perf_data::attr::EventAttr;
    use perf_data::format::event_type;
    use perf_data::{EventDesc, Features, PerfDataWriter};

    use super::*;
    use crate::analyze::fixture::{event, metadata, recording_of_stacks};
    use crate::analyze::intervals::survey::survey;
    use crate::hardware::Role;
    use crate::recording::Recording;

    #[test]
    fn power_at_rest_is_the_mean_of_the_domains_that_are_fitted_together() {
        let mut domains = metadata().domains;
        let rest = |power, error| {
            Some(RestPower { power: Watts::from_watts(power), std_error: Watts::from_watts(error) })
        };
        (domains[0].rest, domains[1].rest) = (rest(10.0, 0.5), rest(14.0, 1.5));
        let found = |indices: &[usize]| at_rest(indices, &domains);
        assert_eq!((found(&[0, 1]), found(&[1])), (rest(12.0, 1.0), rest(14.0, 1.5)));
        // Of the third nothing is known.
        assert_eq!((found(&[0, 2]), found(&[])), (None, None));
    }

    /// The events of a recording that has nothing else, by kind and number.
    fn roles(events: &[(&str, u32, u64)]) -> EventRoles {
        let described = events.iter().zip(1..).map(|(&(name, kind, config), id)| EventDesc {
            name: name.to_owned(),
            attr: EventAttr { kind, config, ..EventAttr::default() },
            ids: vec![id],
        });
        let writer = PerfDataWriter::create(Cursor::new(Vec::new()), described.collect());
        let file = writer.and_then(|writer| writer.finish(&Features::default())).expect("a vector takes all");
        EventRoles::new(&Recording::from_bytes(file.into_inner()).expect("a recording"))
    }

    #[test]
    fn what_does_not_divide_by_time_is_another_clock_or_none() {
        let roles = roles(&[
            ("cpu-clock", event_type::SOFTWARE, 0),
            ("task-clock", event_type::SOFTWARE, 1),
            ("cycles", event_type::HARDWARE, 0),
        ]);
        let bucket = (Joules::ZERO, BucketReason::Usual);
        let found = division(None, &[], &metadata(), &roles, &Options::default(), bucket);
        let left_out: Vec<Option<&str>> = found.left_out.iter().map(Option::as_deref).collect();
        assert_eq!(left_out, [None, Some("another clock tells the time"), Some("it tells no time")]);
    }

    /// An event that has a cost and no sample divides nothing.
    #[test]
    fn domains_whose_events_never_came_are_divided_by_time() {
        let recording = recording_of_stacks(&vec![vec![1, 2]; 400]);
        let roles = EventRoles::new(&recording);
        let metadata =
            Metadata { events: vec![event("cpu-clock", Role::Clk, "software/config=0x0/")], ..metadata() };
        let mut survey = survey(&recording, &roles);
        let by_model = |survey: &Survey| {
            let plan = Plan::new(Some(&metadata), &roles, survey, &Options::default());
            plan.division.expect("joules").domains.iter().map(Option::is_some).collect::<Vec<_>>()
        };
        assert!(by_model(&survey)[0]);
        survey.samples = vec![0];
        assert_eq!(by_model(&survey), [false; 3]);
    }
}

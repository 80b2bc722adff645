//! What a calibrated model says to a recording: which of its events to sample, how often, what they
//! cost, and what the machine takes without any.

use crate::machine::Role;
use crate::power_model::model::PowerModel;
use crate::record::events::{SampleInterval, SampledEvent, unmodelled_period};
use crate::record::options::SamplingRate;
use crate::recording::metadata::{DomainInfo, DomainKind, Method};
use crate::units::Joules;

/// Model joules of a sample: a hundredth of a bucket of the usual size.
const SAMPLE: Joules = Joules::from_joules(0.01);
/// However dear or cheap an event is, it is sampled at most so many times as often as without a model,
/// or so many times as rarely: the kernel throttles more, and less tells nothing of short functions.
const MOST_CHANGE: u64 = 10;

/// Gives the events their costs and periods `R = P / C`; one that the model knows and that costs nothing
/// is left out, but for cycles, which also tell time.
pub fn apply(
    model: &PowerModel,
    rate: SamplingRate,
    events: &mut Vec<SampledEvent>,
    notes: &mut Vec<String>,
) {
    for event in events.iter_mut() {
        let Some(role) = event.role else { continue };
        let Some(index) = model.event(&role.to_string(), event.spec.core_kind) else { continue };
        event.joules_per_event = model.joules_per_event(index);
        let is_free =
            rate == SamplingRate::Default && event.spec.period.is_none() && event.spec.frequency.is_none();
        if let (true, Some(period)) = (is_free, period(role, cost(event))) {
            event.interval = SampleInterval::Period(period);
        }
    }
    let is_known =
        |event: &SampledEvent| event.role.is_none_or(|role| role == Role::Clk) || cost(event) > 0.0;
    for event in events.iter().filter(|event| !is_known(event)) {
        notes.push(format!(
            "{} is not sampled: it costs nothing in the model of this machine",
            event.spec.name
        ));
    }
    events.retain(is_known);
}

/// Joules of an event in all domains that do not overlap: the package, or else its cores, and memory.
fn cost(event: &SampledEvent) -> f64 {
    let of = |domain: &str| event.joules_per_event.get(domain).copied();
    of("package").or(of("cores")).unwrap_or(0.0) + of("dram").unwrap_or(0.0)
}

/// The period of an event of this cost; `None` if it has none.
fn period(role: Role, cost: f64) -> Option<u64> {
    let usual = unmodelled_period(role);
    let period = SAMPLE.as_joules() / cost;
    // Odd, so that sampling does not fall into step with loops of even length.
    (cost > 0.0).then(|| (period as u64).clamp(usual / MOST_CHANGE, usual * MOST_CHANGE) | 1)
}

/// Tells readers of the recording what measured domains take without any event.
pub fn tell_static_power(model: &PowerModel, domains: &mut [DomainInfo]) {
    for domain in domains.iter_mut().filter(|domain| domain.method == Method::Measured) {
        let kind = match domain.kind {
            DomainKind::Package => "package",
            DomainKind::Cores => "cores",
            DomainKind::Dram => "dram",
            _ => continue,
        };
        if let (None, Some(of_model)) = (domain.static_power, model.domains.get(kind)) {
            domain.static_power = Some(of_model.static_power);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::machine::{Roots, resolve_events};
    use crate::power_model::model::{DomainModel, ModelEvent, Scale};
    use crate::recording::metadata::CoreKind;
    use crate::units::Watts;

    fn event(name: &str, role: Role) -> SampledEvent {
        let spec = resolve_events(&Roots::default(), name).expect("known").remove(0);
        SampledEvent::new(spec, Some(role), SamplingRate::Default)
    }

    fn model() -> PowerModel {
        let event = |role: &str| ModelEvent {
            role: role.to_owned(),
            name: role.to_owned(),
            encoding: String::new(),
            core_kind: CoreKind::Performance,
        };
        let domain = |watts: f64, costs: [f64; 3]| DomainModel {
            static_power: Watts::from_watts(watts),
            static_std_error: None,
            active_core: None,
            joules_per_event: costs.to_vec(),
            std_errors: Vec::new(),
            quality: None,
        };
        PowerModel {
            name: "calibrated".to_owned(),
            source: String::new(),
            scale: Scale::Joules,
            events: ["clk", "inst", "llc-miss"].map(event).to_vec(),
            domains: BTreeMap::from([
                ("package".to_owned(), domain(15.0, [0.0, 2e-10, 1e-8])),
                ("cores".to_owned(), domain(12.0, [0.0, 1e-10, 0.0])),
                ("dram".to_owned(), domain(1.5, [0.0, 0.0, 4e-8])),
            ]),
        }
    }

    #[test]
    fn an_event_is_sampled_as_often_as_it_spends() {
        let mut events = vec![
            event("cycles", Role::Clk),
            event("instructions", Role::Inst),
            event("cache-misses", Role::LlcMiss),
        ];
        let mut notes = Vec::new();
        apply(&model(), SamplingRate::Default, &mut events, &mut notes);
        // 10 mJ / 0.2 nJ, and 10 mJ / (10 + 40) nJ; package and cores overlap.
        let periods: Vec<SampleInterval> = events.iter().map(|event| event.interval).collect();
        assert_eq!(
            periods,
            [5_999_993, 50_000_001, 200_001].map(SampleInterval::Period),
            "cycles tell time and keep their own"
        );
        assert_eq!(events[2].info().joules_per_event["dram"], 4e-8);
        assert!(notes.is_empty());
    }

    #[test]
    fn what_costs_nothing_is_left_out_and_said() {
        let mut without = model();
        without.domains.values_mut().for_each(|domain| domain.joules_per_event[1] = 0.0);
        let mut events = vec![event("cycles", Role::Clk), event("instructions", Role::Inst)];
        let mut notes = Vec::new();
        apply(&without, SamplingRate::Default, &mut events, &mut notes);
        assert_eq!(events.len(), 1);
        assert!(notes[0].starts_with("instructions is not sampled"), "{notes:?}");
    }

    #[test]
    fn the_users_rate_stays() {
        let mut events = vec![event("instructions", Role::Inst)];
        let before = events[0].interval;
        apply(&model(), SamplingRate::Frequency(99), &mut events, &mut Vec::new());
        assert_eq!(events[0].interval, before);
        assert!(!events[0].joules_per_event.is_empty());
    }

    #[test]
    fn a_dear_event_is_not_sampled_beyond_measure() {
        assert_eq!(period(Role::L2, 1.0), Some((999_983 / 10) | 1));
        assert_eq!(period(Role::L2, 1e-20), Some((999_983 * 10) | 1));
        assert_eq!(period(Role::L2, 0.0), None);
    }
}

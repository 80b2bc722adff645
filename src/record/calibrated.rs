//! What a calibrated model says to a recording: which of its events to sample, how often, what they
//! cost, and what the machine takes without any.

use crate::hardware::{DomainInfo, MachineInfo, Method, Role};
use crate::power_model::model::PowerModel;
use crate::power_model::stored::StoredModel;
use crate::record::options::SamplingRate;
use crate::record::periods;
use crate::record::sampled_event::{SampledEvent, set_periods};

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
        let Some(index) = model.event(role, event.spec.core_kind) else { continue };
        event.joules_per_event = model.joules_per_event(index);
    }
    let is_known =
        |event: &SampledEvent| event.role.is_none_or(|role| role == Role::Clk) || cost(model, event) > 0.0;
    for event in events.iter().filter(|event| !is_known(event)) {
        notes.push(format!(
            "{} is not sampled: it costs nothing in the model of this machine",
            event.spec.name
        ));
    }
    events.retain(is_known);
    set_periods(events, rate, |events| periods::by_model(model, events));
}

/// Joules of an event in all domains that do not overlap.
fn cost(model: &PowerModel, event: &SampledEvent) -> f64 {
    event.role.and_then(|role| periods::cost(model, role, event.spec.core_kind)).unwrap_or(0.0)
}

/// Tells readers of the recording what measured domains take without any event, if the model is of this machine.
pub fn tell_static_power(stored: &StoredModel, machine: &MachineInfo, domains: &mut [DomainInfo]) {
    if stored.cpu_identity != machine.cpu_identity {
        return;
    }
    for domain in domains.iter_mut().filter(|domain| domain.method == Method::Measured) {
        if let (None, Some(of_model)) = (domain.static_power, stored.model.domains.get(&domain.kind)) {
            domain.static_power = Some(of_model.static_power);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hardware::{CoreKind, DomainKind};
    use crate::machine::{Roots, resolve_events};
    use crate::power_model::model::{DomainModel, ModelEvent, Scale};
    use crate::record::sampled_event::SampleInterval;
    use crate::units::Watts;

    fn event(name: &str, role: Role) -> SampledEvent {
        let spec = resolve_events(&Roots::default(), name).expect("known").remove(0);
        SampledEvent::new(spec, Some(role), SamplingRate::Default)
    }

    fn model() -> PowerModel {
        let event = |role: Role| ModelEvent {
            role: Some(role),
            name: role.to_string(),
            encoding: String::new(),
            core_kind: CoreKind::Performance,
        };
        let domain = |watts: f64, costs: [f64; 3]| DomainModel {
            static_power: Watts::from_watts(watts),
            static_std_error: None,
            sampled_by: Vec::new(),
            joules_per_event: costs.to_vec(),
            std_errors: Vec::new(),
            quality: None,
        };
        PowerModel {
            name: "calibrated".to_owned(),
            source: String::new(),
            scale: Scale::Joules,
            events: [Role::Clk, Role::Inst, Role::LlcMiss].map(event).to_vec(),
            domains: BTreeMap::from([
                (DomainKind::Package, domain(15.0, [0.0, 2e-10, 1e-8])),
                (DomainKind::Cores, domain(12.0, [0.0, 1e-10, 0.0])),
                (DomainKind::Dram, domain(1.5, [0.0, 0.0, 4e-8])),
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
        // 0.2 nJ and 10 + 40 nJ, as package and cores overlap; cycles tell time and have their usual period.
        let periods: Vec<u64> = events
            .iter()
            .map(|event| match event.interval {
                SampleInterval::Period(period) => period,
                SampleInterval::Frequency(_) => panic!("{event:?}"),
            })
            .collect();
        assert!((periods[1] as f64 / periods[2] as f64 - 250.0).abs() < 0.01, "{periods:?}");
        assert_eq!(periods[0], 10_000_001);
        assert_eq!(events[2].info().joules_per_event[&DomainKind::Dram], 4e-8);
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
}

//! Which events are sampled.

use crate::hardware::{MachineInfo, Role};
use crate::machine::{ModelEvent, ModelEvents, Roots, choose_model_events, resolve_events};
use crate::power_model::stored::{StoredModel, StoredModelError};
use crate::record::calibrated;
use crate::record::error::RecordError;
use crate::record::options::SamplingRate;
use crate::record::periods;
use crate::record::sampled_event::{SampledEvent, set_periods};

/// Events to sample, and what is to be known of their choice.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChosenEvents {
    /// The events.
    pub events: Vec<SampledEvent>,
    /// What was replaced or left out, and why.
    pub notes: Vec<String>,
    /// Nobody asked for these events by name.
    pub by_eprof: bool,
}

/// The events of these lists, or those of the power model if there are none. A calibrated model tells
/// what its events cost and how often to sample them; without one, the preset of the microarchitecture tells
/// how often.
///
/// # Errors
/// The first event that this machine does not know.
pub fn choose_events(
    roots: &Roots,
    machine: &MachineInfo,
    lists: &[String],
    rate: SamplingRate,
    model: Option<&StoredModel>,
) -> Result<ChosenEvents, RecordError> {
    if lists.is_empty() {
        let ModelEvents { events, mut notes, .. } = choose_model_events(roots, machine);
        let sampled = |event: ModelEvent| SampledEvent::new(event.spec, Some(event.role), rate);
        let mut events: Vec<SampledEvent> = events.into_iter().map(sampled).collect();
        let microarchitecture = machine.microarchitecture.as_deref();
        set_periods(&mut events, rate, |events| periods::by_preset(microarchitecture, events));
        if let Some(stored) = model {
            match check(stored, machine, &events) {
                Ok(()) => calibrated::apply(&stored.model, rate, &mut events, &mut notes),
                Err(error) => notes.push(format!("the calibrated model was not used: {error}")),
            }
        }
        return Ok(ChosenEvents { events, notes, by_eprof: true });
    }
    let mut events = Vec::new();
    for list in lists {
        let specs = resolve_events(roots, list)?.into_iter();
        events.extend(specs.map(|spec| SampledEvent::new(spec, None, rate)));
    }
    Ok(ChosenEvents { events, notes: Vec::new(), by_eprof: false })
}

fn check(
    stored: &StoredModel,
    machine: &MachineInfo,
    events: &[SampledEvent],
) -> Result<(), StoredModelError> {
    let of_event = |event: &SampledEvent| Some((event.role?, event.spec.encoding()));
    let encodings: Vec<(Role, String)> = events.iter().filter_map(of_event).collect();
    stored.check(&machine.cpu_identity, encodings.iter().map(|(role, code)| (*role, code.as_str())))
}

/// What is sampled where the hardware's events turn out not to be there.
///
/// # Errors
/// None in practice: every kernel has this event.
pub fn clock_instead(roots: &Roots, rate: SamplingRate) -> Result<Vec<SampledEvent>, RecordError> {
    let specs = resolve_events(roots, "cpu-clock")?.into_iter();
    Ok(specs.map(|spec| SampledEvent::new(spec, Some(Role::Clk), rate)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::hardware::{CoreKind, DomainKind};
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::topology;
    use crate::power_model::model::{DomainModel, ModelEvent, PowerModel, Scale};
    use crate::power_model::stored::STORED_FORMAT;
    use crate::record::sampled_event::SampleInterval;
    use crate::units::Watts;

    fn chosen(lists: &[&str], rate: SamplingRate) -> Vec<SampledEvent> {
        let folder = tempfile::tempdir().expect("folder");
        let lists: Vec<String> = lists.iter().map(|&list| list.to_owned()).collect();
        let roots = Roots::under(folder.path());
        choose_events(&roots, &MachineInfo::default(), &lists, rate, None).expect("known events").events
    }

    #[test]
    fn without_hardware_cpu_time_is_sampled_by_an_exact_period() {
        let [event] = &chosen(&[], SamplingRate::Default)[..] else { panic!("one event") };
        assert_eq!(event.spec.name, "cpu-clock");
        assert_eq!(event.interval, SampleInterval::Period(996_979));
        assert_eq!(event.info().role, Some(Role::Clk));
    }

    #[test]
    fn several_lists_and_rates_of_their_own() {
        let events = chosen(&["page-faults,cpu-clock:u", "task-clock"], SamplingRate::Frequency(100));
        let names: Vec<&str> = events.iter().map(|event| event.spec.name.as_str()).collect();
        assert_eq!(names, ["page-faults", "cpu-clock:u", "task-clock"]);
        assert!(events.iter().all(|event| event.interval == SampleInterval::Frequency(100)));
        assert!(events[1].spec.modifiers.exclude_kernel);
    }

    #[test]
    fn each_kind_of_core_has_events_and_weights_of_its_own() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/machines");
        let hybrid = FixtureMachine::load(&folder.join("alderlake-hybrid.machine"));
        let roots = Roots::under(hybrid.path());
        let machine = topology::detect(&roots).expect("a machine");
        let choose = |model: Option<&StoredModel>| {
            choose_events(&roots, &machine, &[], SamplingRate::Default, model).expect("known events")
        };
        let plain = choose(None).events;
        assert_eq!(plain.len(), 10);
        let small_cpus: Vec<u32> = (16..24).collect();
        for event in &plain {
            let is_small = event.spec.core_kind == CoreKind::Efficiency;
            let on_small = small_cpus.iter().filter(|&&cpu| event.spec.counts_on(cpu)).count();
            assert_eq!((on_small, event.spec.counts_on(0)), if is_small { (8, false) } else { (0, true) });
        }
        // A small core's events cost half.
        let model_event = |event: &SampledEvent| ModelEvent {
            role: event.role,
            name: event.spec.name.clone(),
            encoding: event.spec.encoding(),
            core_kind: event.spec.core_kind,
        };
        let half = |event: &SampledEvent| {
            if event.spec.core_kind == CoreKind::Efficiency { 0.5e-9 } else { 1e-9 }
        };
        let package = DomainModel {
            static_power: Watts::from_watts(10.0),
            static_std_error: None,
            sampled_by: Vec::new(),
            joules_per_event: plain.iter().map(half).collect(),
            std_errors: Vec::new(),
            quality: None,
        };
        let stored = StoredModel {
            format: STORED_FORMAT,
            eprof_version: String::new(),
            cpu_identity: machine.cpu_identity.clone(),
            cpu_model: String::new(),
            created_unix: 0,
            model: PowerModel {
                name: "calibrated".to_owned(),
                source: String::new(),
                scale: Scale::Joules,
                events: plain.iter().map(model_event).collect(),
                domains: BTreeMap::from([(DomainKind::Package, package)]),
            },
        };
        let ChosenEvents { events, notes, .. } = choose(Some(&stored));
        assert!(!notes.iter().any(|note| note.contains("not used")), "{notes:?}");
        let period = |event: &SampledEvent| match event.interval {
            SampleInterval::Period(period) => period as f64,
            SampleInterval::Frequency(_) => f64::NAN,
        };
        // Clocks, instructions and stalls; the dear caches' periods are held to what the kernel bears.
        for role in [Role::Clk, Role::Inst, Role::Resource] {
            let of_role: Vec<&SampledEvent> =
                events.iter().filter(|event| event.role == Some(role)).collect();
            let [large, small] = of_role[..] else { panic!("{of_role:?}") };
            assert_eq!(
                (large.joules_per_event[&DomainKind::Package], small.joules_per_event[&DomainKind::Package]),
                (1e-9, 0.5e-9)
            );
            assert!((period(small) / period(large) - 2.0).abs() < 1e-3, "{large:?} {small:?}");
        }
    }
}

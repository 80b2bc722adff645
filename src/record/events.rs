//! Which events are sampled, and how often.

use std::collections::BTreeMap;

use perf_data::format::event_type;

use crate::hardware::{CoreKind, DomainKind, MachineInfo, Role};
use crate::machine::{EventSpec, ModelEvent, ModelEvents, Roots, choose_model_events, resolve_events};
use crate::power_model::stored::{StoredModel, StoredModelError};
use crate::record::calibrated;
use crate::record::error::RecordError;
use crate::record::options::SamplingRate;
use crate::record::periods;
use crate::record::uprobe::Uprobe;
use crate::recording::metadata::EventInfo;

/// An event to sample, and its place in the power model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledEvent {
    /// What is counted.
    pub spec: EventSpec,
    /// How often a sample is taken.
    pub interval: SampleInterval,
    /// Role in the power model, if it has one.
    pub role: Option<Role>,
    /// Model joules per event, by domain kind.
    pub joules_per_event: BTreeMap<DomainKind, f64>,
    /// Where in a program's code it happens, of an event that a probe there makes.
    pub probe: Option<Uprobe>,
}

/// The distance between two samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleInterval {
    /// A number of events.
    Period(u64),
    /// As many events as keep to this many samples a second.
    Frequency(u64),
}

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

/// Nanoseconds of CPU time between two samples of a clock: a thousand samples a second, but a prime
/// number, so that sampling does not fall into step with a program that works in whole milliseconds. A
/// period and not a frequency, because the kernel counts nanoseconds exactly.
const CLOCK_PERIOD: u64 = 999_983;
/// Samples a second of an event of which nothing more is known.
const DEFAULT_FREQUENCY: u64 = 999;
/// `config` of cpu-clock and task-clock.
const CPU_CLOCK: u64 = 0;
const TASK_CLOCK: u64 = 1;

impl SampledEvent {
    /// An event that is sampled as its own terms say, or else the rate, or else as suits it.
    pub fn new(spec: EventSpec, role: Option<Role>, rate: SamplingRate) -> Self {
        let own = spec.period.map(SampleInterval::Period).or(spec.frequency.map(SampleInterval::Frequency));
        let interval = own.unwrap_or(match rate {
            SamplingRate::Frequency(frequency) => SampleInterval::Frequency(frequency),
            SamplingRate::Period(period) => SampleInterval::Period(period),
            SamplingRate::Default if is_clock(&spec) => SampleInterval::Period(CLOCK_PERIOD),
            SamplingRate::Default if spec.perf_type == event_type::TRACEPOINT => SampleInterval::Period(1),
            SamplingRate::Default => SampleInterval::Frequency(DEFAULT_FREQUENCY),
        });
        // Without hardware events CPU time stands for the cycles of the power model.
        let role = role.or(is_clock(&spec).then_some(Role::Clk));
        Self { spec, interval, role, joules_per_event: BTreeMap::new(), probe: None }
    }

    /// Its place in the power model, if its period follows from that: neither the event nor the recording
    /// was given an interval of its own.
    fn modelled(&self, rate: SamplingRate) -> Option<(Role, CoreKind)> {
        let is_free =
            rate == SamplingRate::Default && self.spec.period.is_none() && self.spec.frequency.is_none();
        Some((self.role?, self.spec.core_kind)).filter(|_| is_free && !self.is_clock())
    }

    /// Counts time, not something that happens.
    pub fn is_clock(&self) -> bool {
        is_clock(&self.spec)
    }

    /// Takes no samples of the idle task.
    pub fn leave_out_idle(&mut self) {
        self.spec.modifiers.exclude_idle = true;
    }

    /// What the recording says of it.
    pub fn info(&self) -> EventInfo {
        EventInfo {
            name: self.spec.name.clone(),
            role: self.role,
            encoding: self.spec.encoding(),
            joules_per_event: self.joules_per_event.clone(),
            core_kind: self.spec.core_kind,
        }
    }
}

fn is_clock(spec: &EventSpec) -> bool {
    spec.perf_type == event_type::SOFTWARE && matches!(spec.config, CPU_CLOCK | TASK_CLOCK)
}

/// Gives the power model's events the periods that `of` tells for their roles and kinds of core; intervals
/// that somebody asked for stay.
pub fn set_periods(
    events: &mut [SampledEvent],
    rate: SamplingRate,
    of: impl FnOnce(&[(Role, CoreKind)]) -> Vec<u64>,
) {
    let modelled: Vec<(Role, CoreKind)> = events.iter().filter_map(|event| event.modelled(rate)).collect();
    let free = events.iter_mut().filter(|event| event.modelled(rate).is_some());
    for (event, period) in free.zip(of(&modelled)) {
        event.interval = SampleInterval::Period(period);
    }
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
    use super::*;
    use crate::machine::fixture::FixtureMachine;
    use crate::machine::topology;
    use crate::power_model::model::{DomainModel, ModelEvent, PowerModel, Scale};
    use crate::power_model::stored::STORED_FORMAT;
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
        assert_eq!(event.interval, SampleInterval::Period(999_983));
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
    fn the_models_events_have_periods_of_their_own() {
        let spec = || resolve_events(&Roots::default(), "cycles").expect("known").remove(0);
        let of_role = |role, rate| {
            let mut events = [SampledEvent::new(spec(), role, rate)];
            set_periods(&mut events, rate, |modelled| vec![77; modelled.len()]);
            events[0].interval
        };
        assert_eq!(of_role(Some(Role::Clk), SamplingRate::Default), SampleInterval::Period(77));
        assert_eq!(of_role(None, SamplingRate::Default), SampleInterval::Frequency(999));
        assert_eq!(of_role(Some(Role::Clk), SamplingRate::Frequency(99)), SampleInterval::Frequency(99));
        assert_eq!(of_role(Some(Role::Clk), SamplingRate::Period(5)), SampleInterval::Period(5));
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
            active_core: None,
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

//! Which events are sampled, and how often.

use std::collections::BTreeMap;

use crate::machine::{EventSpec, Roots, resolve_events};
use crate::record::error::RecordError;
use crate::record::options::SamplingRate;
use crate::recording::format::event_type;
use crate::recording::metadata::EventInfo;

/// An event to sample, and its place in the power model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledEvent {
    /// What is counted.
    pub spec: EventSpec,
    /// How often a sample is taken.
    pub interval: SampleInterval,
    /// Role in the power model, if it has one.
    pub role: Option<String>,
    /// Model joules per event, by domain kind.
    pub joules_per_event: BTreeMap<String, f64>,
}

/// The distance between two samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleInterval {
    /// A number of events.
    Period(u64),
    /// As many events as keep to this many samples a second.
    Frequency(u64),
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
    /// An event that is sampled as the rate says, or as suits it.
    pub fn new(spec: EventSpec, rate: SamplingRate) -> Self {
        let own = spec.period.map(SampleInterval::Period).or(spec.frequency.map(SampleInterval::Frequency));
        let interval = own.unwrap_or(match rate {
            SamplingRate::Frequency(frequency) => SampleInterval::Frequency(frequency),
            SamplingRate::Period(period) => SampleInterval::Period(period),
            SamplingRate::Default if is_clock(&spec) => SampleInterval::Period(CLOCK_PERIOD),
            SamplingRate::Default if spec.perf_type == event_type::TRACEPOINT => SampleInterval::Period(1),
            SamplingRate::Default => SampleInterval::Frequency(DEFAULT_FREQUENCY),
        });
        // Without hardware events CPU time stands for the clock ticks of the power model.
        let role = is_clock(&spec).then(|| "clk".to_owned());
        Self { spec, interval, role, joules_per_event: BTreeMap::new() }
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
            role: self.role.clone(),
            encoding: self.spec.encoding(),
            joules_per_event: self.joules_per_event.clone(),
            core_kind: self.spec.core_kind,
        }
    }
}

fn is_clock(spec: &EventSpec) -> bool {
    spec.perf_type == event_type::SOFTWARE && matches!(spec.config, CPU_CLOCK | TASK_CLOCK)
}

/// The events of these lists, or those that eprof chooses if there are none.
///
/// # Errors
/// The first event that this machine does not know.
pub fn choose_events(
    roots: &Roots,
    lists: &[String],
    rate: SamplingRate,
) -> Result<Vec<SampledEvent>, RecordError> {
    let default = ["cpu-clock".to_owned()];
    let lists = if lists.is_empty() { &default[..] } else { lists };
    let mut events = Vec::new();
    for list in lists {
        events.extend(resolve_events(roots, list)?.into_iter().map(|spec| SampledEvent::new(spec, rate)));
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(lists: &[&str], rate: SamplingRate) -> Vec<SampledEvent> {
        let folder = tempfile::tempdir().expect("folder");
        let lists: Vec<String> = lists.iter().map(|&list| list.to_owned()).collect();
        choose_events(&Roots::under(folder.path()), &lists, rate).expect("known events")
    }

    #[test]
    fn without_hardware_cpu_time_is_sampled_by_an_exact_period() {
        let [event] = &chosen(&[], SamplingRate::Default)[..] else { panic!("one event") };
        assert_eq!(event.spec.name, "cpu-clock");
        assert_eq!(event.interval, SampleInterval::Period(999_983));
        assert_eq!(event.role.as_deref(), Some("clk"));
    }

    #[test]
    fn several_lists_and_rates_of_their_own() {
        let events = chosen(&["page-faults,cpu-clock:u", "task-clock"], SamplingRate::Frequency(100));
        let names: Vec<&str> = events.iter().map(|event| event.spec.name.as_str()).collect();
        assert_eq!(names, ["page-faults", "cpu-clock:u", "task-clock"]);
        assert!(events.iter().all(|event| event.interval == SampleInterval::Frequency(100)));
        assert!(events[1].spec.modifiers.exclude_kernel);
    }
}

//! Which events are sampled, and how often.

use std::collections::BTreeMap;

use crate::record::error::RecordError;
use crate::record::options::SamplingRate;
use crate::recording::metadata::{CoreKind, EventInfo};

/// An event as `perf_event_open` takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventSpec {
    /// Name for people and for the file.
    pub name: String,
    /// Type of PMU (`perf_event_attr.type`).
    pub pmu_type: u32,
    /// Encodings, as the PMU understands them.
    pub config: [u64; 3],
    /// Does not count in programs.
    pub exclude_user: bool,
    /// Does not count in the kernel.
    pub exclude_kernel: bool,
    /// How exact the instruction pointer must be (`precise_ip`, 0 to 3).
    pub precise: u8,
    /// The CPUs that can count it; `None` for all.
    pub cpus: Option<Vec<u32>>,
}

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
    /// Kind of core that counts it.
    pub core_kind: CoreKind,
}

/// The distance between two samples of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleInterval {
    /// A number of events.
    Period(u64),
    /// As many events as keep to this many samples a second.
    Frequency(u64),
}

impl SampledEvent {
    /// What the recording says of it.
    pub fn info(&self) -> EventInfo {
        let [config, config1, config2] = self.spec.config;
        EventInfo {
            name: self.spec.name.clone(),
            role: self.role.clone(),
            encoding: format!(
                "type={},config={config:#x},config1={config1:#x},config2={config2:#x}",
                self.spec.pmu_type
            ),
            joules_per_event: self.joules_per_event.clone(),
            core_kind: self.core_kind,
        }
    }
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_RAW: u32 = 4;

/// Nanoseconds of CPU time between two samples of a clock: a thousand samples a second, but a prime
/// number, so that sampling does not fall into step with a program that works in whole milliseconds.
const CLOCK_PERIOD: u64 = 999_983;
/// Samples a second of an event of which nothing more is known.
const DEFAULT_FREQUENCY: u64 = 999;

/// The events for these names, or those that eprof chooses if there are none.
pub fn choose_events(names: &[String], rate: SamplingRate) -> Result<Vec<SampledEvent>, RecordError> {
    if names.is_empty() {
        return Ok(vec![sampled(resolve("cpu-clock")?, rate)]);
    }
    names.iter().map(|name| Ok(sampled(resolve(name)?, rate))).collect()
}

fn sampled(spec: EventSpec, rate: SamplingRate) -> SampledEvent {
    let is_clock = spec.pmu_type == TYPE_SOFTWARE && spec.config[0] < 2;
    let interval = match rate {
        SamplingRate::Frequency(frequency) => SampleInterval::Frequency(frequency),
        SamplingRate::Period(period) => SampleInterval::Period(period),
        SamplingRate::Default if is_clock => SampleInterval::Period(CLOCK_PERIOD),
        SamplingRate::Default => SampleInterval::Frequency(DEFAULT_FREQUENCY),
    };
    let role = (spec.pmu_type == TYPE_SOFTWARE && spec.config[0] == 0).then(|| "clk".to_owned());
    SampledEvent { spec, interval, role, joules_per_event: BTreeMap::new(), core_kind: CoreKind::default() }
}

fn resolve(name: &str) -> Result<EventSpec, RecordError> {
    const HARDWARE: [&str; 10] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
    const SOFTWARE: [&str; 9] = [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
    ];
    let (base, modifiers) = name.split_once(':').unwrap_or((name, ""));
    let unknown = |why: &str| RecordError::UnknownEvent { name: name.to_owned(), why: why.to_owned() };
    let position = |table: &[&str]| table.iter().position(|&known| known == base).map(|at| at as u64);
    let (pmu_type, config) = if let Some(number) = position(&HARDWARE) {
        (TYPE_HARDWARE, number)
    } else if let Some(number) = position(&SOFTWARE) {
        (TYPE_SOFTWARE, number)
    } else if let Some(Ok(raw)) = base.strip_prefix('r').map(|raw| u64::from_str_radix(raw, 16)) {
        (TYPE_RAW, raw)
    } else {
        return Err(unknown("neither a hardware nor a software event nor rNNNN"));
    };
    let mut spec =
        EventSpec { name: name.to_owned(), pmu_type, config: [config, 0, 0], ..EventSpec::default() };
    for modifier in modifiers.chars() {
        match modifier {
            'u' => spec.exclude_kernel = true,
            'k' => spec.exclude_user = true,
            'p' if spec.precise < 3 => spec.precise += 1,
            _ => return Err(unknown("modifiers are u, k and p")),
        }
    }
    Ok(spec)
}

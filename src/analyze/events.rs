//! What each event of a recording is for.

use perf_data::EventDesc;
use perf_data::attr::flag;
use perf_data::format::event_type;

use crate::recording::Recording;
use crate::recording::energy::domain_of_event;
use crate::recording::gpu_activity::GPU_ACTIVITY_EVENT;
use crate::recording::gpu_events::{CONTEXTS_EVENT, GpuCall, KERNEL_NAMES_EVENT};
use crate::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT, Metadata};

/// What an event counts, as far as time is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventUnit {
    /// Nanoseconds of a task or CPU (`cpu-clock`, `task-clock`): the period itself is time.
    Nanoseconds,
    /// Cycles: at a clock rate that changes little from one sample to the next.
    Cycles,
    /// Anything else says nothing about time.
    Other,
}

/// The role of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    /// Sampled: the index in the profile's list of events.
    Sampled(u32),
    /// Readings of an energy domain: its index among the metadata's domains.
    Energy(u32),
    /// CPU times.
    CpuTimes,
    /// eprof's description of the recording.
    Metadata,
    /// A call that a GPU's launches are known by: the index of its function in the list of them.
    Gpu(u32),
    /// The name of a GPU's kernel.
    KernelName,
    /// The GPU of a context.
    Context,
    /// What GPUs did, as CUPTI tells it.
    GpuActivity,
    /// Readings in whose place the recording was given better ones.
    Superseded,
}

/// The roles of all events of a recording.
#[derive(Debug, Clone)]
pub struct EventRoles {
    roles: Vec<EventRole>,
    sampled: Vec<SampledEvent>,
    /// By sampled event.
    tells_time: Vec<bool>,
    gpu_calls: Vec<(GpuCall, String)>,
}

/// An event that programs were sampled by.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledEvent {
    /// Its name.
    pub name: String,
    /// What it counts, as far as time goes.
    pub unit: EventUnit,
    /// Events per sample where that is fixed and not in the samples.
    pub fixed_period: Option<u64>,
    /// Of several kinds of core that one whose PMU counts it, by the kernel's number; 0 for all others.
    pub pmu: u32,
    /// The modes that it is sampled in: [`USER`] and [`KERNEL`].
    modes: u8,
}

/// Code of programs.
const USER: u8 = 1;
/// The kernel, and what lies below it.
const KERNEL: u8 = 2;

impl EventRoles {
    /// From a recording's events and metadata.
    pub fn new(recording: &Recording) -> Self {
        let metadata = recording.metadata();
        let (mut sampled, mut gpu_calls) = (Vec::new(), Vec::new());
        let roles = recording.events().iter().map(|event| {
            // Who sampled an event of such a name by other means has no list of kernels.
            let probed = metadata.and_then(|_| GpuCall::of_event(&event.name));
            match probed {
                Some((call, function)) => {
                    gpu_calls.push((call, function.to_owned()));
                    EventRole::Gpu(gpu_calls.len() as u32 - 1)
                }
                None if is_superseded(recording, &event.name) => EventRole::Superseded,
                None => role(event, metadata, &mut sampled),
            }
        });
        let roles = roles.collect();
        let tells_time = time_tellers(&sampled);
        Self { roles, sampled, tells_time, gpu_calls }
    }

    /// The role of an event by its index in the recording. A record whose event cannot be told is of
    /// the first one, as perf takes it.
    pub fn of(&self, event: Option<u32>) -> Option<EventRole> {
        self.roles.get(event.unwrap_or(0) as usize).copied()
    }

    /// Launches of GPU kernels were recorded.
    pub fn has_launches(&self) -> bool {
        !self.gpu_calls.is_empty()
    }

    /// The meaning of an event of `EventRole::Gpu`, and its function.
    pub fn gpu_call(&self, index: u32) -> Option<(GpuCall, &str)> {
        self.gpu_calls.get(index as usize).map(|(call, function)| (*call, function.as_str()))
    }

    /// Sampled events, in the order of the profile's list.
    pub fn sampled(&self) -> &[SampledEvent] {
        &self.sampled
    }

    /// Whether this sampled event is one of those that tell time: a clock, else cycles of each kind of core.
    pub fn tells_time(&self, event: u32) -> bool {
        self.tells_time.get(event as usize).copied().unwrap_or(false)
    }

    /// Whether any sampled event tells time.
    pub fn any_tells_time(&self) -> bool {
        self.tells_time.contains(&true)
    }
}

/// Which of the sampled events tell time: a clock, else cycles. Where each kind of core has cycles of its own, all of them
/// do, since no CPU counts two of them. What every core counts stands beside no other. Of one mode each, as `cpu-clock:u` and
/// `cpu-clock:k`, two tell different times; beside one of both modes neither does.
fn time_tellers(sampled: &[SampledEvent]) -> Vec<bool> {
    let has = |unit| sampled.iter().any(|event| event.unit == unit);
    let unit = if has(EventUnit::Nanoseconds) { EventUnit::Nanoseconds } else { EventUnit::Cycles };
    let mut of_unit: Vec<usize> = (0..sampled.len()).filter(|index| sampled[*index].unit == unit).collect();
    of_unit.sort_by_key(|index| std::cmp::Reverse(sampled[*index].modes.count_ones()));
    let mut tellers = vec![false; sampled.len()];
    for index in of_unit {
        let event = &sampled[index];
        let tells_the_same = |other: &SampledEvent| {
            let is_of_same_core = other.pmu == event.pmu || other.pmu == 0 || event.pmu == 0;
            is_of_same_core && (event.modes == 0 || other.modes & event.modes != 0)
        };
        tellers[index] = !(0..sampled.len()).any(|at| tellers[at] && tells_the_same(&sampled[at]));
    }
    tellers
}

/// Whether an event has readings that do not count.
fn is_superseded(recording: &Recording, name: &str) -> bool {
    recording.metadata().is_some() && recording.lent_readings().is_some() && domain_of_event(name).is_some()
}

fn role(event: &EventDesc, metadata: Option<&Metadata>, sampled: &mut Vec<SampledEvent>) -> EventRole {
    if event.name == METADATA_EVENT {
        return EventRole::Metadata;
    }
    if event.name == KERNEL_NAMES_EVENT {
        return EventRole::KernelName;
    }
    if event.name == CONTEXTS_EVENT {
        return EventRole::Context;
    }
    if event.name == GPU_ACTIVITY_EVENT {
        return EventRole::GpuActivity;
    }
    if event.name == CPU_TIMES_EVENT {
        return EventRole::CpuTimes;
    }
    let domain = domain_of_event(&event.name)
        .and_then(|name| metadata?.domains.iter().position(|domain| domain.name == name));
    if let Some(domain) = domain {
        return EventRole::Energy(domain as u32);
    }
    sampled.push(SampledEvent {
        name: event.name.clone(),
        unit: unit(event),
        fixed_period: event.attr.fixed_period(),
        pmu: match event.attr.kind {
            event_type::HARDWARE => (event.attr.config >> 32) as u32,
            event_type::SOFTWARE => 0,
            kind => kind,
        },
        modes: [(USER, flag::EXCLUDE_USER), (KERNEL, flag::EXCLUDE_KERNEL)]
            .into_iter()
            .filter(|(_, excluded)| !event.attr.has(*excluded))
            .fold(0, |modes, (mode, _)| modes | mode),
    });
    EventRole::Sampled(sampled.len() as u32 - 1)
}

fn unit(event: &EventDesc) -> EventUnit {
    let attr = &event.attr;
    // PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK and PERF_COUNT_HW_CPU_CYCLES of the kernel's
    // perf_event.h. On hybrid machines the upper half of the config names the kind of core.
    match (attr.kind, attr.config as u32) {
        (event_type::SOFTWARE, 0 | 1) => EventUnit::Nanoseconds,
        (event_type::HARDWARE, 0) => EventUnit::Cycles,
        (event_type::SOFTWARE | event_type::TRACEPOINT, _) => EventUnit::Other,
        // The same by the name that a PMU lists it under, `cpu_core/cycles/u`: only vendors know its encoding.
        _ if is_cycles(&event.name) => EventUnit::Cycles,
        _ => EventUnit::Other,
    }
}

/// Whether a name with or without PMU and modifiers is that of unhalted cycles.
fn is_cycles(name: &str) -> bool {
    let event = match name.split_once('/') {
        Some((_, in_pmu)) => in_pmu.split(['/', ',']).next().unwrap_or_default(),
        None => name.split(':').next().unwrap_or_default(),
    };
    ["cycles", "cpu-cycles", "cpu_cycles"].iter().any(|cycles| event.eq_ignore_ascii_case(cycles))
}

#[cfg(test)]
mod tests {
    use perf_data::attr::EventAttr;

    use super::*;

    fn described(name: &str, kind: u32, config: u64) -> EventDesc {
        EventDesc {
            name: name.to_owned(),
            attr: EventAttr { kind, config, ..EventAttr::default() },
            ids: Vec::new(),
        }
    }

    /// Which of the events tell time.
    fn tellers(events: &[EventDesc]) -> Vec<bool> {
        let mut sampled = Vec::new();
        for event in events {
            role(event, None, &mut sampled);
        }
        time_tellers(&sampled)
    }

    #[test]
    fn each_kind_of_core_has_cycles_that_tell_its_time() {
        let atom = described("cpu_atom/cycles/P", event_type::HARDWARE, 0xa << 32);
        let core = described("cpu_core/cycles/P", event_type::HARDWARE, 4 << 32);
        let again = described("cpu_core/cycles/u", event_type::HARDWARE, 4 << 32);
        let misses = described("cache-misses", event_type::HARDWARE, 3);
        assert_eq!(tellers(&[misses.clone(), atom.clone(), core.clone(), again]), [false, true, true, false]);
        let clock = described("cpu-clock", event_type::SOFTWARE, 0);
        assert_eq!(tellers(&[core, clock, atom]), [false, true, false]);
        let listed = described("cpu_core/cpu-cycles/ppp", event_type::RAW, 0x3c);
        // Without kinds of cores the same cycles by two names are counted twice.
        let generic = described("cycles", event_type::HARDWARE, 0);
        assert_eq!(tellers(&[generic.clone(), listed.clone()]), [true, false]);
        assert_eq!(tellers(&[listed.clone(), generic]), [true, false]);
        let stalls = described("cpu/cycles-not-halted/", event_type::RAW, 0x3d);
        assert_eq!(tellers(&[stalls, listed, misses]), [false, true, false]);
    }

    #[test]
    fn clocks_of_one_mode_each_tell_different_times() {
        let clock = |flags: u64| EventDesc {
            attr: EventAttr { flags, ..described("", event_type::SOFTWARE, 0).attr },
            ..described("cpu-clock", event_type::SOFTWARE, 0)
        };
        let [both, user, kernel] = [0, flag::EXCLUDE_KERNEL, flag::EXCLUDE_USER].map(clock);
        assert_eq!(tellers(&[user.clone(), kernel.clone()]), [true, true]);
        assert_eq!(tellers(&[kernel.clone(), user.clone(), user.clone()]), [true, true, false]);
        assert_eq!(tellers(&[user.clone(), both.clone(), kernel]), [false, true, false]);
        assert_eq!(tellers(&[both.clone(), both]), [true, false]);
        assert_eq!(tellers(&[clock(flag::EXCLUDE_KERNEL | flag::EXCLUDE_USER), user]), [false, true]);
    }

    #[test]
    fn a_recording_by_a_clock_tells_time_and_has_no_launches() {
        let recording = crate::analyze::fixture::recording_of_stacks(&[vec![1]]);
        let roles = EventRoles::new(&recording);
        assert!(roles.any_tells_time() && roles.tells_time(0) && !roles.tells_time(1));
        assert!(!roles.has_launches() && roles.gpu_call(0).is_none());
        assert_eq!(roles.of(None), Some(EventRole::Sampled(0)), "what cannot be told is of the first");
        let domains = (1..).map_while(|event| roles.of(Some(event)));
        let energies = domains.filter_map(|role| match role {
            EventRole::Energy(domain) => Some(domain),
            _ => None,
        });
        assert_eq!(energies.collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(roles.of(Some(99)), None);
    }

    #[test]
    fn cycles_are_known_by_kind_and_name() {
        let unit = |name: &str, kind, config| unit(&described(name, kind, config));
        for (name, kind, config, expected) in [
            ("cpu-clock", event_type::SOFTWARE, 0, EventUnit::Nanoseconds),
            ("task-clock", event_type::SOFTWARE, 1, EventUnit::Nanoseconds),
            ("page-faults", event_type::SOFTWARE, 2, EventUnit::Other),
            ("cycles", event_type::SOFTWARE, 2, EventUnit::Other),
            ("anything", event_type::HARDWARE, 4 << 32, EventUnit::Cycles),
            ("instructions", event_type::HARDWARE, 1, EventUnit::Other),
            ("sched:cycles", event_type::TRACEPOINT, 0, EventUnit::Other),
            ("cycles:u", event_type::RAW, 0x3c, EventUnit::Cycles),
            ("cpu/CPU_CYCLES,period=5/", event_type::RAW, 0x11, EventUnit::Cycles),
            ("cpu/stalled-cycles/", event_type::RAW, 0x11, EventUnit::Other),
        ] {
            assert_eq!(unit(name, kind, config), expected, "{name}");
        }
    }
}

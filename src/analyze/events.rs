//! What each event of a recording is for.

use perf_data::EventDesc;
use perf_data::attr::EventAttr;
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
}

/// The roles of all events of a recording.
#[derive(Debug, Clone)]
pub struct EventRoles {
    roles: Vec<EventRole>,
    sampled: Vec<SampledEvent>,
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
}

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
                None => role(event, metadata, &mut sampled),
            }
        });
        let roles = roles.collect();
        Self { roles, sampled, gpu_calls }
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

    /// The sampled event that tells time best: a clock, else cycles.
    pub fn time_event(&self) -> Option<u32> {
        let first = |unit| self.sampled.iter().position(|event| event.unit == unit);
        first(EventUnit::Nanoseconds).or_else(|| first(EventUnit::Cycles)).map(|index| index as u32)
    }
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
        unit: unit(&event.attr),
        fixed_period: event.attr.fixed_period(),
    });
    EventRole::Sampled(sampled.len() as u32 - 1)
}

fn unit(attr: &EventAttr) -> EventUnit {
    // PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK and PERF_COUNT_HW_CPU_CYCLES of the kernel's
    // perf_event.h. On hybrid machines the upper half of the config names the kind of core.
    match (attr.kind, attr.config as u32) {
        (event_type::SOFTWARE, 0 | 1) => EventUnit::Nanoseconds,
        (event_type::HARDWARE, 0) => EventUnit::Cycles,
        _ => EventUnit::Other,
    }
}

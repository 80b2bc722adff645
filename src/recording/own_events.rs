//! The events that the kernel knows nothing of: metadata, CPU times, energy readings, and what GPUs did.
//!
//! They are [payload events](perf_data::payload), which every reader of perf.data knows how to skip. A recording that
//! has them says so by the events' [`descriptions`], and carries their samples, which the other functions here make.

use perf_data::encode::RecordTooLong;
use perf_data::payload::PayloadEvent;
use perf_data::{EventDesc, Nanoseconds, Timestamp};

use crate::hardware::DomainInfo;
use crate::recording::energy::{CpuTimes, EnergyReading, event_name};
use crate::recording::gpu_activity::{GPU_ACTIVITY_EVENT, GpuActivity};
use crate::recording::gpu_events::{CONTEXTS_EVENT, ContextDevice, KERNEL_NAMES_EVENT, KernelName};
use crate::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT, Metadata};

const METADATA: PayloadEvent = PayloadEvent::new(0);
const CPU_TIMES: PayloadEvent = PayloadEvent::new(1);
const FIRST_ENERGY: u64 = 2;
/// Far above those of the energy domains.
const KERNEL_NAMES: PayloadEvent = PayloadEvent::new(1 << 32);
const GPU_ACTIVITY: PayloadEvent = PayloadEvent::new((1 << 32) + 1);
const CONTEXTS: PayloadEvent = PayloadEvent::new((1 << 32) + 2);

const fn energy_of(domain: usize) -> PayloadEvent {
    PayloadEvent::new(FIRST_ENERGY + domain as u64)
}

/// The descriptions of all of them but what GPUs have, to follow those of the sampled events.
pub fn descriptions(domains: &[DomainInfo]) -> Vec<EventDesc> {
    let energy = |(index, domain): (usize, &DomainInfo)| energy_of(index).describe(event_name(&domain.name));
    let mut events = vec![METADATA.describe(METADATA_EVENT), CPU_TIMES.describe(CPU_TIMES_EVENT)];
    events.extend(domains.iter().enumerate().map(energy));
    events
}

/// The descriptions of what handles of GPU kernels and contexts stand for, for recordings that have
/// launches.
pub fn gpu_handles_descriptions() -> Vec<EventDesc> {
    vec![KERNEL_NAMES.describe(KERNEL_NAMES_EVENT), CONTEXTS.describe(CONTEXTS_EVENT)]
}

/// The description of what GPUs did, for recordings with CUPTI.
pub fn gpu_activity_description() -> EventDesc {
    GPU_ACTIVITY.describe(GPU_ACTIVITY_EVENT)
}

/// Appends the metadata, in as many samples as they need.
pub fn metadata(metadata: &Metadata, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let json = serde_json::to_vec(metadata).unwrap_or_default();
    METADATA.write_in_parts(time, 0, &json, out)
}

/// Appends a part of the list of the recorder's own records, see [`OwnBlocks`](super::own_blocks::OwnBlocks).
pub(super) fn own_blocks(payload: &[u8], time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    METADATA.write(time, 0, payload, out)
}

/// Appends the name of a GPU kernel.
pub fn kernel_name(name: &KernelName, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    KERNEL_NAMES.write(time, 0, &name.to_bytes(), out)
}

/// Appends which GPU a context is on.
pub fn context(context: ContextDevice, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    CONTEXTS.write(time, 0, &context.to_bytes(), out)
}

/// Appends what a process's GPU did.
pub fn gpu_activity(
    activity: &GpuActivity<'_>,
    time: Timestamp,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    GPU_ACTIVITY.write(time, 0, &activity.to_bytes(), out)
}

/// Appends CPU times.
pub fn cpu_times(times: &CpuTimes, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    CPU_TIMES.write(time, 0, &times.to_bytes(), out)
}

/// Appends CPU times with those of the recorded program on each CPU, counted exactly.
pub fn cpu_times_with_target(
    times: &CpuTimes,
    target: &[(u32, Nanoseconds)],
    time: Timestamp,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    CPU_TIMES.write(time, 0, &times.to_bytes_with_target(target), out)
}

/// Appends a reading of the domain of this index, whose first CPU is `cpu`.
pub fn energy(
    domain: usize,
    reading: &EnergyReading,
    time: Timestamp,
    cpu: u32,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    energy_of(domain).write(time, cpu, &reading.to_bytes(), out)
}

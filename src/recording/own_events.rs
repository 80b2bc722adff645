//! The events that the kernel knows nothing of: metadata, CPU times and energy readings.
//!
//! They are of a software type that exists for data handed in by others (bpf-output), so that every
//! reader of perf.data knows how to skip them. A recording that has them says so by the events'
//! [`descriptions`], and carries their samples, which the other functions here make.

use perf_data::EventDesc;
use perf_data::attr::{EventAttr, flag};
use perf_data::encode::{self, RecordTooLong, SampleFields};
use perf_data::format::{event_type, sample_type};

use crate::hardware::DomainInfo;
use crate::recording::energy::{CpuTimes, EnergyReading, event_name, metadata_payloads};
use crate::recording::gpu_activity::{GPU_ACTIVITY_EVENT, GpuActivity};
use crate::recording::gpu_events::{CONTEXTS_EVENT, ContextDevice, KERNEL_NAMES_EVENT, KernelName};
use crate::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT, Metadata};
use crate::units::{Nanoseconds, Timestamp};

const SAMPLE_TYPE: u64 = encode::TRAILER_FIELDS | sample_type::RAW;

/// Ids of our own events start here. The kernel counts its ids from one, so they never meet.
const FIRST_ID: u64 = 1 << 62;
const METADATA_ID: u64 = FIRST_ID;
const CPU_TIMES_ID: u64 = FIRST_ID + 1;
const ENERGY_ID: u64 = FIRST_ID + 2;
/// Far above those of the energy domains.
const KERNEL_NAMES_ID: u64 = FIRST_ID + (1 << 32);
const GPU_ACTIVITY_ID: u64 = KERNEL_NAMES_ID + 1;
const CONTEXTS_ID: u64 = KERNEL_NAMES_ID + 2;

/// The descriptions of all of them, to follow those of the sampled events.
pub fn descriptions(domains: &[DomainInfo]) -> Vec<EventDesc> {
    let describe = |name: String, id| EventDesc { attr: attr(), ids: vec![id], name };
    let own = [(METADATA_EVENT.to_owned(), METADATA_ID), (CPU_TIMES_EVENT.to_owned(), CPU_TIMES_ID)];
    let energy = domains
        .iter()
        .enumerate()
        .map(|(index, domain)| (event_name(&domain.name), ENERGY_ID + index as u64));
    own.into_iter().chain(energy).map(|(name, id)| describe(name, id)).collect()
}

/// The descriptions of what handles of GPU kernels and contexts stand for, for recordings that have
/// launches.
pub fn gpu_handles_descriptions() -> Vec<EventDesc> {
    let own = [(KERNEL_NAMES_EVENT, KERNEL_NAMES_ID), (CONTEXTS_EVENT, CONTEXTS_ID)];
    own.map(|(name, id)| EventDesc { attr: attr(), ids: vec![id], name: name.to_owned() }).to_vec()
}

/// The description of what GPUs did, for recordings with CUPTI.
pub fn gpu_activity_description() -> EventDesc {
    EventDesc { attr: attr(), ids: vec![GPU_ACTIVITY_ID], name: GPU_ACTIVITY_EVENT.to_owned() }
}

/// An attribute that could be opened, though it never is: one sample per occurrence.
fn attr() -> EventAttr {
    EventAttr {
        kind: event_type::SOFTWARE,
        config: event_type::SOFTWARE_BPF_OUTPUT,
        sample_period: 1,
        sample_type: SAMPLE_TYPE,
        flags: flag::SAMPLE_ID_ALL,
        ..EventAttr::default()
    }
}

/// Appends the metadata, in as many samples as they need.
pub fn metadata(metadata: &Metadata, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let json = serde_json::to_vec(metadata).unwrap_or_default();
    metadata_payloads(&json).iter().try_for_each(|payload| sample(METADATA_ID, time, 0, payload, out))
}

/// Appends the name of a GPU kernel.
pub fn kernel_name(name: &KernelName, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    sample(KERNEL_NAMES_ID, time, 0, &name.to_bytes(), out)
}

/// Appends which GPU a context is on.
pub fn context(context: ContextDevice, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    sample(CONTEXTS_ID, time, 0, &context.to_bytes(), out)
}

/// Appends what a process's GPU did.
pub fn gpu_activity(
    activity: &GpuActivity<'_>,
    time: Timestamp,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    sample(GPU_ACTIVITY_ID, time, 0, &activity.to_bytes(), out)
}

/// Appends CPU times.
pub fn cpu_times(times: &CpuTimes, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    sample(CPU_TIMES_ID, time, 0, &times.to_bytes(), out)
}

/// Appends CPU times with those of the recorded program on each CPU, counted exactly.
pub fn cpu_times_with_target(
    times: &CpuTimes,
    target: &[(u32, Nanoseconds)],
    time: Timestamp,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    sample(CPU_TIMES_ID, time, 0, &times.to_bytes_with_target(target), out)
}

/// Appends a reading of the domain of this index, whose first CPU is `cpu`.
pub fn energy(
    domain: usize,
    reading: &EnergyReading,
    time: Timestamp,
    cpu: u32,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    sample(ENERGY_ID + domain as u64, time, cpu, &reading.to_bytes(), out)
}

fn sample(id: u64, time: Timestamp, cpu: u32, raw: &[u8], out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    encode::sample(SAMPLE_TYPE, &SampleFields { id, time, cpu, raw, ..SampleFields::default() }, out)
}

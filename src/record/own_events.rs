//! The events that the kernel knows nothing of: metadata, CPU times and energy readings.
//!
//! They are of a software type that exists for data handed in by others (bpf-output), so that every
//! reader of perf.data knows how to skip them.

use crate::record::readings::DomainReading;
use crate::recording::encode::{self, RecordTooLong, SampleFields, sample_type};
use crate::recording::energy::{CpuTimes, event_name, metadata_payloads};
use crate::recording::metadata::{CPU_TIMES_EVENT, DomainInfo, METADATA_EVENT, Metadata};
use crate::recording::writer::EventDescription;
use crate::units::Timestamp;

const TYPE_SOFTWARE: u32 = 1;
const CONFIG_BPF_OUTPUT: u64 = 10;
const SAMPLE_TYPE: u64 = sample_type::TRAILER | sample_type::RAW;
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Ids of our own events start here. The kernel counts its ids from one, so they never meet.
const FIRST_ID: u64 = 1 << 62;
const METADATA_ID: u64 = FIRST_ID;
const CPU_TIMES_ID: u64 = FIRST_ID + 1;
const ENERGY_ID: u64 = FIRST_ID + 2;

/// The descriptions of all of them, to follow those of the sampled events.
pub fn descriptions(domains: &[DomainInfo]) -> Vec<EventDescription> {
    let describe = |name: String, id| EventDescription { attr: attr(), ids: vec![id], name };
    let own = [(METADATA_EVENT.to_owned(), METADATA_ID), (CPU_TIMES_EVENT.to_owned(), CPU_TIMES_ID)];
    let energy = domains
        .iter()
        .enumerate()
        .map(|(index, domain)| (event_name(&domain.name), ENERGY_ID + index as u64));
    own.into_iter().chain(energy).map(|(name, id)| describe(name, id)).collect()
}

/// A `perf_event_attr` that could be opened, though it never is.
fn attr() -> Vec<u8> {
    const SIZE: usize = 112;
    let mut attr = vec![0; SIZE];
    let mut put = |at: usize, bytes: &[u8]| attr[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &TYPE_SOFTWARE.to_le_bytes());
    put(4, &(SIZE as u32).to_le_bytes());
    put(8, &CONFIG_BPF_OUTPUT.to_le_bytes());
    // One sample per occurrence.
    put(16, &1u64.to_le_bytes());
    put(24, &SAMPLE_TYPE.to_le_bytes());
    put(40, &SAMPLE_ID_ALL.to_le_bytes());
    attr
}

/// Appends the metadata, in as many samples as they need.
pub fn metadata(metadata: &Metadata, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let json = serde_json::to_vec(metadata).unwrap_or_default();
    metadata_payloads(&json).iter().try_for_each(|payload| sample(METADATA_ID, time, 0, payload, out))
}

/// Appends CPU times.
pub fn cpu_times(times: &CpuTimes, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    sample(CPU_TIMES_ID, time, 0, &times.to_bytes(), out)
}

/// Appends the reading of a domain that belongs to `cpu`.
pub fn energy(reading: &DomainReading, cpu: u32, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let id = ENERGY_ID + reading.domain as u64;
    sample(id, reading.time, cpu, &reading.reading.to_bytes(), out)
}

fn sample(id: u64, time: Timestamp, cpu: u32, raw: &[u8], out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    encode::sample(SAMPLE_TYPE, &SampleFields { id, time, cpu, raw, ..SampleFields::default() }, out)
}

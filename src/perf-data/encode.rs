//! Records as bytes, for a recorder that has more to say than what it copies from the kernel's rings: payloads,
//! the state of processes found running, names of events.
//!
//! Every record starts with the kernel's header (`type: u32, misc: u16, size: u16`), is a multiple of
//! eight bytes long and little-endian. Records that are no samples end with a [`SampleId`], as `sample_id_all`
//! asks for: the samples of all events of the file must have the [`TRAILER_FIELDS`].

use std::ops::Range;

use crate::format::{RECORD_HEADER_SIZE, event_update, misc, record_type, sample_type};
use crate::record::CpuMode;
use crate::time::Timestamp;

/// Fields that [`SampleId`] puts behind a record that is no sample.
pub const TRAILER_FIELDS: u64 =
    sample_type::TID | sample_type::TIME | sample_type::CPU | sample_type::IDENTIFIER;
/// Fields that [`sample`] can write.
pub const WRITABLE_FIELDS: u64 =
    TRAILER_FIELDS | sample_type::IP | sample_type::CALLCHAIN | sample_type::PERIOD | sample_type::RAW;

/// A record would be longer than the 16-bit size of its header can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record of {0} bytes does not fit into perf.data, whose records end at 65528 bytes")]
pub struct RecordTooLong(pub usize);

/// The fields behind every record that is no sample: thread, time, CPU, event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process; `u32::MAX` for none.
    pub pid: u32,
    /// Thread; `u32::MAX` for none.
    pub tid: u32,
    /// Time; zero for the state that was found before the recording began.
    pub time: Timestamp,
    /// CPU.
    pub cpu: u32,
    /// Id of the event.
    pub id: u64,
}

/// The fields of a sample; those that the event's `sample_type` does not name are not written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SampleFields<'a> {
    /// Id of the event.
    pub id: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// In which mode the CPU ran.
    pub mode: CpuMode,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time.
    pub time: Timestamp,
    /// CPU.
    pub cpu: u32,
    /// Period.
    pub period: u64,
    /// Callchain, innermost first, with the kernel's context markers.
    pub callchain: &'a [u64],
    /// Raw data. It is written as the kernel does it: with zeros behind it until its length and the four bytes that
    /// tell the length make a multiple of eight, and they count as its own.
    pub raw: &'a [u8],
}

/// A mapping of an executable file as MMAP2 says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingFields<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Addresses.
    pub addresses: Range<u64>,
    /// Offset in the file.
    pub file_offset: u64,
    /// Device (major, minor) and inode.
    pub inode: (u32, u32, u64),
    /// PROT_* bits.
    pub protection: u32,
    /// MAP_* bits.
    pub flags: u32,
    /// Path.
    pub path: &'a [u8],
}

/// A counter's final value, as a READ record says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// The count.
    pub value: u64,
    /// Nanoseconds the event was enabled.
    pub time_enabled: u64,
    /// Nanoseconds the event was on a counter.
    pub time_running: u64,
    /// Samples dropped for this event, where the kernel tells (`PERF_FORMAT_LOST`).
    pub lost: Option<u64>,
}

/// Appends a sample of an event whose `sample_type` is `kind`.
pub fn sample(kind: u64, fields: &SampleFields<'_>, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::SAMPLE, fields.mode.bits());
    let has = |bit| kind & bit != 0;
    if has(sample_type::IDENTIFIER) {
        record.u64(fields.id);
    }
    if has(sample_type::IP) {
        record.u64(fields.ip);
    }
    if has(sample_type::TID) {
        record.u32(fields.pid);
        record.u32(fields.tid);
    }
    if has(sample_type::TIME) {
        record.u64(fields.time.as_nanos());
    }
    if has(sample_type::CPU) {
        record.u32(fields.cpu);
        record.u32(0);
    }
    if has(sample_type::PERIOD) {
        record.u64(fields.period);
    }
    if has(sample_type::CALLCHAIN) {
        record.u64(fields.callchain.len() as u64);
        for &address in fields.callchain {
            record.u64(address);
        }
    }
    if has(sample_type::RAW) {
        record.raw(fields.raw);
    }
    record.finish()
}

/// Appends a mapping found in `/proc/PID/maps`.
pub fn mmap2(mapping: &MappingFields<'_>, id: &SampleId, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::MMAP2, CpuMode::User.bits());
    record.u32(mapping.pid);
    record.u32(mapping.tid);
    record.u64(mapping.addresses.start);
    record.u64(mapping.addresses.end.saturating_sub(mapping.addresses.start));
    record.u64(mapping.file_offset);
    let (major, minor, inode) = mapping.inode;
    record.u32(major);
    record.u32(minor);
    record.u64(inode);
    record.u64(0);
    record.u32(mapping.protection);
    record.u32(mapping.flags);
    record.text(mapping.path);
    record.sample_id(id);
    record.finish()
}

/// Appends the mapping of a part of the kernel: its text or a module. `file_offset` is the address of
/// `_text` for the kernel itself, as perf has it, and zero for modules.
pub fn kernel_mmap(
    addresses: Range<u64>,
    file_offset: u64,
    path: &[u8],
    id: &SampleId,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::MMAP, CpuMode::Kernel.bits());
    record.u32(u32::MAX);
    record.u32(0);
    record.u64(addresses.start);
    record.u64(addresses.end.saturating_sub(addresses.start));
    record.u64(file_offset);
    record.text(path);
    record.sample_id(id);
    record.finish()
}

/// Appends a task's name.
pub fn comm(
    pid: u32,
    tid: u32,
    name: &[u8],
    exec: bool,
    id: &SampleId,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    let misc = if exec { misc::COMM_EXEC } else { 0 };
    let mut record = RecordBuilder::begin(out, record_type::COMM, misc);
    record.u32(pid);
    record.u32(tid);
    record.text(name);
    record.sample_id(id);
    record.finish()
}

/// Appends the birth of a task: of the process `child` when the numbers differ from its parent's, of
/// a thread otherwise. Each pair is (pid, tid).
pub fn fork(
    child: (u32, u32),
    parent: (u32, u32),
    id: &SampleId,
    out: &mut Vec<u8>,
) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::FORK, 0);
    record.u32(child.0);
    record.u32(parent.0);
    record.u32(child.1);
    record.u32(parent.1);
    record.u64(id.time.as_nanos());
    record.sample_id(id);
    record.finish()
}

/// Appends the number and the path of a control group that was there before.
pub fn cgroup(number: u64, path: &[u8], id: &SampleId, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::CGROUP, 0);
    record.u64(number);
    record.text(path);
    record.sample_id(id);
    record.finish()
}

/// Appends a counter's value. The event's `read_format` must be ID with both times, and LOST if
/// `value.lost` is given.
pub fn read(value: &CounterValue, id: &SampleId, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::READ, 0);
    record.u32(id.pid);
    record.u32(id.tid);
    record.u64(value.value);
    record.u64(value.time_enabled);
    record.u64(value.time_running);
    record.u64(id.id);
    if let Some(lost) = value.lost {
        record.u64(lost);
    }
    record.sample_id(id);
    record.finish()
}

/// Appends what the kernel writes into a ring when there is room again: so many records found none.
pub fn lost(count: u64, id: &SampleId, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::LOST, 0);
    record.u64(id.id);
    record.u64(count);
    record.sample_id(id);
    record.finish()
}

/// Appends that the kernel stops the event `id.id` for coming too often, or lets it go on.
pub fn throttle(stopped: bool, id: &SampleId, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let kind = if stopped { record_type::THROTTLE } else { record_type::UNTHROTTLE };
    let mut record = RecordBuilder::begin(out, kind, 0);
    record.u64(id.time.as_nanos());
    record.u64(id.id);
    record.u64(id.id);
    record.sample_id(id);
    record.finish()
}

/// Appends how many samples of the event `id.id` were dropped on the CPU `id.cpu` in the whole recording.
pub fn lost_samples(count: u64, id: &SampleId, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::LOST_SAMPLES, 0);
    record.u64(count);
    record.sample_id(id);
    record.finish()
}

/// Appends the mark that every ring was read once since the last such mark.
pub fn finished_round(out: &mut Vec<u8>) {
    RecordBuilder::begin(out, record_type::FINISHED_ROUND, 0).finish_short();
}

/// Appends the name of the event with this id, so that a file cut off before its features has names.
pub fn event_name(id: u64, name: &[u8], out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
    let mut record = RecordBuilder::begin(out, record_type::EVENT_UPDATE, 0);
    record.u64(event_update::NAME);
    record.u64(id);
    record.text(name);
    record.finish()
}

/// A record under construction at the end of a buffer; taken back if it grows too long.
struct RecordBuilder<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> RecordBuilder<'a> {
    fn begin(out: &'a mut Vec<u8>, kind: u32, misc: u16) -> Self {
        let start = out.len();
        out.extend(kind.to_le_bytes());
        out.extend(misc.to_le_bytes());
        out.extend([0; 2]);
        Self { out, start }
    }

    fn u32(&mut self, value: u32) {
        self.out.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.out.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
    }

    /// Raw data behind their length, padded as [`SampleFields::raw`] says.
    fn raw(&mut self, bytes: &[u8]) {
        let padded = (bytes.len() + 4).next_multiple_of(8) - 4;
        self.u32(padded as u32);
        self.bytes(bytes);
        self.out.resize(self.out.len() + padded - bytes.len(), 0);
    }

    /// Text with its terminating zero, padded so that the record stays a multiple of eight.
    fn text(&mut self, text: &[u8]) {
        self.out.extend(text);
        self.out.push(0);
        self.pad();
    }

    fn sample_id(&mut self, id: &SampleId) {
        self.u32(id.pid);
        self.u32(id.tid);
        self.u64(id.time.as_nanos());
        self.u32(id.cpu);
        self.u32(0);
        self.u64(id.id);
    }

    fn pad(&mut self) {
        let length = self.out.len() - self.start;
        self.out.resize(self.start + length.next_multiple_of(8), 0);
    }

    fn finish(mut self) -> Result<(), RecordTooLong> {
        self.pad();
        let length = self.out.len() - self.start;
        match u16::try_from(length) {
            Ok(size) => {
                self.set_size(size);
                Ok(())
            }
            Err(_) => {
                self.out.truncate(self.start);
                Err(RecordTooLong(length))
            }
        }
    }

    /// Ends a record of nothing but its header.
    fn finish_short(mut self) {
        self.set_size(RECORD_HEADER_SIZE as u16);
    }

    fn set_size(&mut self, size: u16) {
        self.out[self.start + 6..self.start + 8].copy_from_slice(&size.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SampleId = SampleId { pid: 7, tid: 8, time: Timestamp::from_nanos(9), cpu: 1, id: 42 };

    fn header(bytes: &[u8]) -> (u32, u16, u16) {
        (
            u32::from_le_bytes(bytes[0..4].try_into().expect("4 bytes")),
            u16::from_le_bytes(bytes[4..6].try_into().expect("2 bytes")),
            u16::from_le_bytes(bytes[6..8].try_into().expect("2 bytes")),
        )
    }

    #[test]
    fn a_comm_is_laid_out_as_the_kernel_does_it() {
        let mut out = Vec::new();
        comm(7, 8, b"sh", true, &ID, &mut out).expect("short");
        assert_eq!(header(&out), (3, 1 << 13, 56));
        assert_eq!(out.len(), 56);
        assert_eq!(&out[8..24], [7, 0, 0, 0, 8, 0, 0, 0, b's', b'h', 0, 0, 0, 0, 0, 0]);
        // The trailer: pid and tid, time, CPU, identifier.
        assert_eq!(out[24], 7);
        assert_eq!(out[28], 8);
        assert_eq!(out[32], 9);
        assert_eq!(out[40], 1);
        assert_eq!(out[48], 42);
    }

    #[test]
    fn a_sample_holds_only_what_its_type_names() {
        let fields = SampleFields { id: 42, raw: &[5; 28], callchain: &[1, 2], ..Default::default() };
        let mut out = Vec::new();
        sample(TRAILER_FIELDS | sample_type::RAW, &fields, &mut out).expect("short");
        assert_eq!(out.len(), 8 + 8 + 8 + 8 + 8 + 4 + 28);
        out.clear();
        sample(sample_type::IDENTIFIER | sample_type::CALLCHAIN, &fields, &mut out).expect("short");
        assert_eq!(out.len(), 8 + 8 + 8 + 16);
    }

    #[test]
    fn raw_data_are_padded_as_the_kernel_does_it() {
        for (length, padded) in [(0, 4), (3, 4), (4, 4), (5, 12), (12, 12)] {
            let fields = SampleFields { raw: &[7; 12][..length], ..Default::default() };
            let mut out = Vec::new();
            sample(sample_type::RAW, &fields, &mut out).expect("short");
            assert_eq!(out.len(), 8 + 4 + padded);
            assert_eq!(out[8..12], (padded as u32).to_le_bytes());
            assert_eq!(out[12..], [vec![7; length], vec![0; padded - length]].concat());
        }
    }

    #[test]
    fn a_record_that_is_too_long_is_taken_back() {
        let mut out = vec![1, 2, 3, 4, 5, 6, 7, 8];
        let fields = SampleFields { raw: &[0; 65532], ..Default::default() };
        assert!(sample(sample_type::RAW, &fields, &mut out).is_err());
        assert_eq!(out.len(), 8);
    }

    #[test]
    fn a_round_ends_with_a_bare_header() {
        let mut out = Vec::new();
        finished_round(&mut out);
        assert_eq!(header(&out), (68, 0, 8));
    }
}

//! Reading the sections.

use super::{BuildId, ClockPair, Compression, CpuCount, EventDescription, EventGroup, Features, NumaNode};
use crate::attr::EventAttr;
use crate::bytes::{ByteOrder, Cursor, until_zero};
use crate::format::{BUILD_ID_SIZE, RECORD_HEADER_SIZE, feature, misc};
use crate::record::CpuMode;
use crate::time::{Nanoseconds, Timestamp};

impl Features {
    /// Takes in the section of feature number `bit` (see [`feature`]). Unknown ones and what is cut off
    /// are passed over: no feature is needed to read the records.
    pub(crate) fn read_section(&mut self, bit: u32, section: &[u8], order: ByteOrder) {
        let mut fields = Cursor::new(section, order);
        let fields = &mut fields;
        match bit {
            feature::TRACING_DATA => self.tracing_data = section.to_vec(),
            feature::BUILD_ID => self.build_ids = build_ids(section, order),
            feature::HOSTNAME => self.hostname = fields.string(),
            feature::OSRELEASE => self.os_release = fields.string(),
            feature::VERSION => self.version = fields.string(),
            feature::ARCH => self.arch = fields.string(),
            feature::NRCPUS => self.cpus = cpu_count(fields),
            feature::CPUDESC => self.cpu_description = fields.string(),
            feature::CPUID => self.cpu_id = fields.string(),
            feature::TOTAL_MEM => self.total_memory_kb = fields.u64(),
            feature::CMDLINE => self.command_line = list(fields, Cursor::string),
            feature::EVENT_DESC => self.event_descriptions = event_descriptions(fields, order),
            feature::NUMA_TOPOLOGY => self.numa_nodes = list(fields, numa_node),
            feature::PMU_MAPPINGS => {
                self.pmu_names = list(fields, |fields| Some((fields.u32()?, fields.string()?)));
            }
            feature::GROUP_DESC => self.groups = list(fields, event_group),
            feature::SAMPLE_TIME => self.sample_times = sample_times(fields),
            feature::CLOCKID => self.clock_resolution = fields.u64().map(Nanoseconds::from_nanos),
            feature::CLOCK_DATA => self.clock = clock_pair(fields),
            feature::COMPRESSED => self.compression = compression(fields),
            _ => {}
        }
    }
}

/// A counted list, as far as it goes. The count is not trusted: elements are read until there are no more.
fn list<'a, T>(fields: &mut Cursor<'a>, mut element: impl FnMut(&mut Cursor<'a>) -> Option<T>) -> Vec<T> {
    let count = fields.u32().unwrap_or(0);
    (0..count).map_while(|_| element(fields)).collect()
}

fn cpu_count(fields: &mut Cursor<'_>) -> Option<CpuCount> {
    let available = fields.u32()?;
    Some(CpuCount { available, online: fields.u32()? })
}

fn event_descriptions(fields: &mut Cursor<'_>, order: ByteOrder) -> Vec<EventDescription> {
    let read = |fields: &mut Cursor<'_>| {
        let count = fields.u32()?;
        let attr_size = fields.u32()? as usize;
        Some((count, attr_size))
    };
    let Some((count, attr_size)) = read(fields) else { return Vec::new() };
    let mut event = || {
        let attr = EventAttr::from_bytes(fields.take(attr_size)?, order)?;
        let id_count = fields.u32()? as usize;
        let name = fields.string()?;
        let ids = Cursor::new(fields.take(id_count.checked_mul(8)?)?, order).u64s();
        Some(EventDescription { attr, name, ids })
    };
    (0..count).map_while(|_| event()).collect()
}

fn numa_node(fields: &mut Cursor<'_>) -> Option<NumaNode> {
    let node = fields.u32()?;
    Some(NumaNode { node, total_kb: fields.u64()?, free_kb: fields.u64()?, cpus: fields.string()? })
}

fn event_group(fields: &mut Cursor<'_>) -> Option<EventGroup> {
    Some(EventGroup { name: fields.string()?, leader: fields.u32()?, members: fields.u32()? })
}

fn sample_times(fields: &mut Cursor<'_>) -> Option<(Timestamp, Timestamp)> {
    Some((Timestamp::from_nanos(fields.u64()?), Timestamp::from_nanos(fields.u64()?)))
}

fn clock_pair(fields: &mut Cursor<'_>) -> Option<ClockPair> {
    let _version = fields.u32()?;
    Some(ClockPair { clockid: fields.u32()?, wall_clock_ns: fields.u64()?, clock_ns: fields.u64()? })
}

fn compression(fields: &mut Cursor<'_>) -> Option<Compression> {
    let _version = fields.u32()?;
    Some(Compression {
        kind: fields.u32()?,
        level: fields.u32()?,
        ratio: fields.u32()?,
        ring_size: fields.u32()?,
    })
}

/// The section is a row of records, each with a record's header.
fn build_ids(mut section: &[u8], order: ByteOrder) -> Vec<BuildId> {
    let mut found = Vec::new();
    while let Some((bits, size)) = build_id_header(section, order) {
        let Some((record, rest)) = section.split_at_checked(size) else { break };
        found.extend(record.get(RECORD_HEADER_SIZE..).and_then(|body| build_id(bits, body, order)));
        section = rest;
    }
    found
}

fn build_id_header(section: &[u8], order: ByteOrder) -> Option<(u16, usize)> {
    let mut header = Cursor::new(section, order);
    let _kind = header.u32()?;
    let bits = header.u16()?;
    let size = usize::from(header.u16()?);
    (size >= RECORD_HEADER_SIZE).then_some((bits, size))
}

/// The body of a build-id record: process, id (20 bytes, then its length where `bits` say so), path.
pub(crate) fn build_id(bits: u16, body: &[u8], order: ByteOrder) -> Option<BuildId> {
    let mut fields = Cursor::new(body, order);
    let pid = fields.u32()? as i32;
    let id = fields.take(BUILD_ID_SIZE)?;
    let size = usize::from(*fields.take(4)?.first()?);
    let id = if bits & misc::BUILD_ID_SIZE != 0 { id.get(..size)? } else { id };
    let mode = CpuMode::of_bits(bits);
    Some(BuildId { mode, pid, id: id.to_vec(), path: until_zero(fields.rest()).to_vec() })
}

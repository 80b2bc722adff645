//! The kernel's records other than samples.

use crate::bytes::{ByteOrder, Cursor, u64_at, until_zero};
use crate::error::Missing;
use crate::format::{BUILD_ID_SIZE, misc, read_format, record_type};
use crate::layout::EventLayout;
use crate::raw::RawRecord;
use crate::record::{CpuMode, FileIdentity, Mmap, ReadValue, Record, RecordContext, TaskChange};
use crate::time::Timestamp;

/// The time that some records carry themselves, for recordings without `sample_id`.
pub(super) fn time_in_body(raw: &RawRecord<'_>) -> Option<Timestamp> {
    let at = match raw.kind {
        record_type::FORK | record_type::EXIT => 16,
        record_type::THROTTLE | record_type::UNTHROTTLE => 0,
        _ => return None,
    };
    // Births that the recorder made up have time 0.
    u64_at(raw.body, at).filter(|&time| time != 0).map(Timestamp::from_nanos)
}

pub(super) fn decode<'a>(
    layout: &EventLayout,
    raw: &RawRecord<'a>,
    context: &RecordContext,
) -> Result<Record<'a>, Missing> {
    let own = raw.body.len().checked_sub(layout.trailer.size.into()).ok_or("sample_id")?;
    let mut fields = Cursor::new(&raw.body[..own], ByteOrder::Little);
    match raw.kind {
        record_type::MMAP => mmap(raw, &mut fields).map(Record::Mmap).ok_or("mapping"),
        record_type::MMAP2 => mmap2(layout, raw, &mut fields).map(Record::Mmap).ok_or("mapping"),
        record_type::COMM => comm(raw, &mut fields).ok_or("name"),
        record_type::FORK => task_change(&mut fields).map(Record::Fork).ok_or("task"),
        record_type::EXIT => task_change(&mut fields).map(Record::Exit).ok_or("task"),
        record_type::LOST => {
            fields.u64();
            fields.u64().map(|count| Record::Lost { count }).ok_or("count")
        }
        record_type::LOST_SAMPLES => lost_samples(raw, context, &mut fields).ok_or("count"),
        record_type::THROTTLE => Ok(Record::Throttle(true)),
        record_type::UNTHROTTLE => Ok(Record::Throttle(false)),
        record_type::READ => read(layout, &mut fields).ok_or("counter value"),
        record_type::SWITCH | record_type::SWITCH_CPU_WIDE => {
            Ok(Record::Switch { out: raw.misc & misc::SWITCH_OUT != 0 })
        }
        record_type::KSYMBOL => ksymbol(&mut fields).ok_or("kernel symbol"),
        record_type::CGROUP => cgroup(&mut fields).ok_or("control group"),
        other => Ok(Record::Other(other)),
    }
}

fn mmap<'a>(raw: &RawRecord<'_>, fields: &mut Cursor<'a>) -> Option<Mmap<'a>> {
    Some(Mmap {
        pid: fields.u32()?,
        tid: fields.u32()?,
        address: fields.u64()?,
        length: fields.u64()?,
        file_offset: fields.u64()?,
        path: until_zero(fields.rest()),
        mode: CpuMode::of_bits(raw.misc),
        is_data: raw.misc & misc::MMAP_DATA != 0,
        protection: None,
        identity: FileIdentity::Unknown,
    })
}

fn mmap2<'a>(layout: &EventLayout, raw: &RawRecord<'_>, fields: &mut Cursor<'a>) -> Option<Mmap<'a>> {
    Some(Mmap {
        pid: fields.u32()?,
        tid: fields.u32()?,
        address: fields.u64()?,
        length: fields.u64()?,
        file_offset: fields.u64()?,
        identity: identity(layout, raw.misc, fields)?,
        protection: {
            let protection = fields.u32()?;
            let _flags = fields.u32()?;
            Some(protection)
        },
        path: until_zero(fields.rest()),
        mode: CpuMode::of_bits(raw.misc),
        is_data: raw.misc & misc::MMAP_DATA != 0,
    })
}

/// Whether MMAP2 with these bits has a build-id, whose size and bytes would be `place`, or an inode there.
///
/// The bit alone does not tell. While another recorder on the machine asks for build-ids, the kernel marks the records
/// of all, and fills in the build-id for those who asked; see kernel-notes/perf-data-format.md. Tools that add build-ids afterwards
/// do not say that they were asked for, so what looks like one of the usual lengths is one.
pub(super) fn has_build_id(layout: &EventLayout, bits: u16, place: &[u8]) -> bool {
    let looks_like_one = || match place.split_at_checked(4) {
        Some(([size @ (16 | 20), 0, 0, 0], id)) => {
            id.get(usize::from(*size)..).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
        }
        _ => false,
    };
    bits & misc::MMAP_BUILD_ID != 0 && (layout.asked_build_ids || looks_like_one())
}

fn identity<'a>(layout: &EventLayout, bits: u16, fields: &mut Cursor<'a>) -> Option<FileIdentity<'a>> {
    if has_build_id(layout, bits, fields.clone().take(4 + BUILD_ID_SIZE)?) {
        let size = usize::from(*fields.take(4)?.first()?);
        return Some(FileIdentity::BuildId(fields.take(BUILD_ID_SIZE)?.get(..size)?));
    }
    Some(FileIdentity::Inode {
        major: fields.u32()?,
        minor: fields.u32()?,
        inode: fields.u64()?,
        generation: fields.u64()?,
    })
}

fn comm<'a>(raw: &RawRecord<'_>, fields: &mut Cursor<'a>) -> Option<Record<'a>> {
    Some(Record::Comm {
        pid: fields.u32()?,
        tid: fields.u32()?,
        name: until_zero(fields.rest()),
        exec: raw.misc & misc::COMM_EXEC != 0,
    })
}

fn task_change(fields: &mut Cursor<'_>) -> Option<TaskChange> {
    let pid = fields.u32()?;
    let parent_pid = fields.u32()?;
    let tid = fields.u32()?;
    let parent_tid = fields.u32()?;
    Some(TaskChange { pid, tid, parent_pid, parent_tid })
}

/// A record of this kind is never of a group: the kernel refuses to count a group for it.
fn read<'a>(layout: &EventLayout, fields: &mut Cursor<'_>) -> Option<Record<'a>> {
    let pid = fields.u32()?;
    let tid = fields.u32()?;
    let value = fields.u64()?;
    let mut field = |bit: u64| match layout.read_format & bit {
        0 => Some(None),
        _ => fields.u64().map(Some),
    };
    let time_enabled = field(read_format::TOTAL_TIME_ENABLED)?;
    let time_running = field(read_format::TOTAL_TIME_RUNNING)?;
    let id = field(read_format::ID)?;
    let lost = field(read_format::LOST)?;
    Some(Record::Read { pid, tid, value: ReadValue { value, time_enabled, time_running, id, lost } })
}

/// The kernel writes such a record when hardware dropped samples; perf writes one of each counter at its end.
fn lost_samples<'a>(
    raw: &RawRecord<'_>,
    context: &RecordContext,
    fields: &mut Cursor<'_>,
) -> Option<Record<'a>> {
    let count = fields.u64()?;
    Some(match context.time {
        // Nobody wanted them.
        _ if raw.misc & misc::LOST_SAMPLES_BPF != 0 => Record::Other(raw.kind),
        Some(_) => Record::Lost { count },
        None => Record::LostInAll { count },
    })
}

fn cgroup<'a>(fields: &mut Cursor<'a>) -> Option<Record<'a>> {
    Some(Record::Cgroup { id: fields.u64()?, path: until_zero(fields.rest()) })
}

fn ksymbol<'a>(fields: &mut Cursor<'a>) -> Option<Record<'a>> {
    const UNREGISTERED: u16 = 1;
    let address = fields.u64()?;
    let length = fields.u32()?;
    let _kind = fields.u16()?;
    let flags = fields.u16()?;
    Some(Record::Ksymbol {
        address,
        length,
        unregistered: flags & UNREGISTERED != 0,
        name: until_zero(fields.rest()),
    })
}

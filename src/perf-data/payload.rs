//! Payloads: data of a program's own, which tools that do not know them pass over.
//!
//! Tools refuse a file with record types that they do not know, so what a program wants to put beside the kernel's
//! records must look like one of these. A payload is the raw data of a sample, of an event of the software type
//! "bpf-output", which exists to carry what others hand in. The kernel is never asked to open such an event: it
//! stands in the file only. (Tried: `perf report` and `perf script` of perf 6.1, and samply, read files with them.)
//!
//! Each kind of payload has an event, a [`PayloadEvent`], and the event has a name, by which readers find it. Names
//! that begin with the program's own (`weather/degrees/`) are never those of another program or of perf.
//!
//! - **Writing**: give [`PayloadEvent::describe`]'s events to [`PerfDataWriter::create`], with those of the kernel
//!   or alone; put records of [`PayloadEvent::write`] among the others. Times should be those of the samples' clock,
//!   so that all can be put in one order. If there are events of the kernel, their samples must have
//!   [`sample_type::IDENTIFIER`], and [`flag::SAMPLE_ID_ALL`] must be set, so that records can be told apart.
//! - **Reading**: find the event by [`PerfData::event_named`]; its samples come among the other records, in the
//!   file's order, with the payload as [`Sample::raw`]. Behind it stand up to seven zeros: a payload that is not of a
//!   fixed size says its length itself.
//! - **Longer values** than [`LONGEST`] go in parts, by [`PayloadEvent::write_in_parts`], and come back by
//!   [`PerfData::joined_parts`]. Written before all else, they are there however early the file is cut off.
//!
//! ```
//! use std::io::Cursor;
//!
//! use perf_data::payload::PayloadEvent;
//! use perf_data::record::Record;
//! use perf_data::{Features, PerfData, PerfDataWriter, Timestamp};
//!
//! const STATION: PayloadEvent = PayloadEvent::new(0);
//! const DEGREES: PayloadEvent = PayloadEvent::new(1);
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let events = vec![STATION.describe("weather/station/"), DEGREES.describe("weather/degrees/")];
//! let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events)?;
//! let mut records = Vec::new();
//! STATION.write_in_parts(Timestamp::from_nanos(1), 0, b"a long description", &mut records)?;
//! DEGREES.write(Timestamp::from_nanos(5), 0, &21.5f64.to_le_bytes(), &mut records)?;
//! writer.write_raw(&records)?;
//! let bytes = writer.finish(&Features::default())?.into_inner();
//!
//! let file = PerfData::from_bytes(bytes)?;
//! let station = file.event_named("weather/station/").and_then(|event| file.joined_parts(event, 1 << 20));
//! assert_eq!(station.ok_or("no station")?.bytes, b"a long description");
//! let degrees = file.event_named("weather/degrees/").ok_or("no degrees")?;
//! let mut read = Vec::new();
//! let mut records = file.records();
//! while let Some((_, context, record)) = records.next()? {
//!     if let (Record::Sample(sample), true) = (record, context.event == Some(degrees)) {
//!         let value = sample.raw.first_chunk().ok_or("too short")?;
//!         read.push((context.time, f64::from_le_bytes(*value)));
//!     }
//! }
//! assert_eq!(read, [(Some(Timestamp::from_nanos(5)), 21.5)]);
//! # Ok(())
//! # }
//! ```
//!
//! [`PerfData::event_named`]: crate::PerfData::event_named
//! [`PerfData::joined_parts`]: crate::PerfData::joined_parts
//! [`PerfDataWriter::create`]: crate::PerfDataWriter::create
//! [`Sample::raw`]: crate::record::Sample::raw

use crate::attr::{EventAttr, flag};
use crate::bytes::u32_at;
use crate::encode::{self, RecordTooLong, SampleFields};
use crate::event::EventDesc;
use crate::format::{event_type, sample_type};
use crate::record::{EventIndex, Record};
use crate::records::Records;
use crate::time::Timestamp;

/// Ids of payload events start here. The kernel counts its ids from one, so they never meet.
pub const FIRST_ID: u64 = 1 << 62;
/// What a sample of a payload event holds: bits of [`sample_type`].
pub const SAMPLE_TYPE: u64 = encode::TRAILER_FIELDS | sample_type::RAW;
/// The longest payload of one sample, in bytes.
pub const LONGEST: usize = 65_528 - 8 - 4 * 8 - 4;

/// Bytes of a value that one part holds.
const PART: usize = 32 * 1024;
/// What stands before them: number of the part, number of parts, number of bytes.
const PART_HEADER: usize = 12;

/// An event whose samples carry payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadEvent {
    id: u64,
}

impl PayloadEvent {
    /// The event of this number, below 2⁶². The payload events of one file have different numbers, in any order.
    pub const fn new(number: u64) -> Self {
        Self { id: FIRST_ID.saturating_add(number) }
    }

    /// The id by which its samples are told from others'.
    pub const fn id(self) -> u64 {
        self.id
    }

    /// The event as the file's attributes and descriptions have it. The kernel would accept this attribute, with one
    /// sample per occurrence, though it is never asked to.
    pub fn describe(self, name: impl Into<String>) -> EventDesc {
        let attr = EventAttr {
            kind: event_type::SOFTWARE,
            config: event_type::SOFTWARE_BPF_OUTPUT,
            sample_period: 1,
            sample_type: SAMPLE_TYPE,
            flags: flag::SAMPLE_ID_ALL,
            ..EventAttr::default()
        };
        EventDesc { name: name.into(), attr, ids: vec![self.id] }
    }

    /// Appends a sample with this payload, of this time and about this CPU.
    ///
    /// # Errors
    /// If the payload is longer than [`LONGEST`]; nothing is appended then.
    pub fn write(
        self,
        time: Timestamp,
        cpu: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordTooLong> {
        let fields = SampleFields { id: self.id, time, cpu, raw: payload, ..SampleFields::default() };
        encode::sample(SAMPLE_TYPE, &fields, out)
    }

    /// Appends a value of any length, in as many samples as it needs. Only the first value of an event can be
    /// [read back](crate::PerfData::joined_parts).
    ///
    /// # Errors
    /// None; as [`PayloadEvent::write`], of which each part is short enough.
    pub fn write_in_parts(
        self,
        time: Timestamp,
        cpu: u32,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), RecordTooLong> {
        parts(value).try_for_each(|part| self.write(time, cpu, &part, out))
    }
}

/// A value that came in parts, joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedParts {
    /// The value.
    pub bytes: Vec<u8>,
    /// Offset in the file of the record with the last part.
    pub offset: u64,
}

/// The payloads that a value is cut into; one for an empty value.
fn parts(value: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let count = value.len().div_ceil(PART).max(1);
    (0..count).map(move |number| {
        let bytes = &value[number * PART..value.len().min((number + 1) * PART)];
        let header = [number as u32, count as u32, bytes.len() as u32].map(u32::to_le_bytes);
        [header.as_flattened(), bytes].concat()
    })
}

/// One part of a value, out of its payload: its number, the number of parts, its bytes.
fn part(payload: &[u8]) -> Option<(u32, u32, &[u8])> {
    let length = u32_at(payload, 8)? as usize;
    let bytes = payload.get(PART_HEADER..PART_HEADER.checked_add(length)?)?;
    Some((u32_at(payload, 0)?, u32_at(payload, 4)?, bytes))
}

/// Joins the parts that the first samples of an event carry.
pub(crate) fn join(mut records: Records<'_>, event: EventIndex, longest: usize) -> Option<JoinedParts> {
    let mut joined = Vec::new();
    let mut parts_read = 0;
    while let Ok(Some((raw, context, record))) = records.next() {
        let Record::Sample(sample) = record else { continue };
        if context.event != Some(event) {
            continue;
        }
        let (number, parts, bytes) = part(sample.raw)?;
        if number != parts_read || bytes.len() > longest - joined.len() {
            return None;
        }
        joined.extend_from_slice(bytes);
        parts_read += 1;
        if parts_read >= parts {
            return Some(JoinedParts { bytes: joined, offset: raw.offset });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::{Features, PerfData, PerfDataWriter};

    const VALUE: PayloadEvent = PayloadEvent::new(1 << 40);
    const OTHER: PayloadEvent = PayloadEvent::new(0);

    fn file(records: &[u8]) -> PerfData {
        let events = vec![OTHER.describe("other"), VALUE.describe("value")];
        let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events).expect("memory");
        writer.write_raw(records).expect("memory");
        let file = writer.finish(&Features::default()).expect("memory");
        PerfData::from_bytes(file.into_inner()).expect("a file")
    }

    fn payloads(records: &[u8]) -> Vec<(EventIndex, Vec<u8>)> {
        let file = file(records);
        let mut records = file.records();
        let mut found = Vec::new();
        while let Some((_, context, record)) = records.next().expect("sound") {
            if let Record::Sample(sample) = record {
                found.push((context.event.expect("known"), sample.raw.to_vec()));
            }
        }
        found
    }

    fn joined(records: &[u8], longest: usize) -> Option<JoinedParts> {
        let file = file(records);
        file.joined_parts(file.event_named("value").expect("described"), longest)
    }

    #[test]
    fn a_payload_of_the_greatest_length_fits_and_no_other() {
        let mut records = Vec::new();
        VALUE.write(Timestamp::from_nanos(1), 0, &[7; LONGEST], &mut records).expect("it fits");
        assert_eq!(records.len(), 65_528);
        let refused = VALUE.write(Timestamp::from_nanos(1), 0, &[7; LONGEST + 1], &mut records);
        assert!(refused.is_err());
        assert_eq!(records.len(), 65_528);
        assert_eq!(payloads(&records), [(EventIndex(1), vec![7; LONGEST])]);
    }

    #[test]
    fn parts_that_are_missing_or_out_of_order_make_no_value() {
        let payloads: Vec<Vec<u8>> = parts(&[1; 2 * PART + 1]).collect();
        assert_eq!(payloads.len(), 3);
        let written = |order: &[usize]| {
            let mut records = Vec::new();
            for &number in order {
                VALUE.write(Timestamp::from_nanos(1), 0, &payloads[number], &mut records).expect("it fits");
            }
            joined(&records, usize::MAX).map(|value| value.bytes.len())
        };
        assert_eq!(written(&[0, 1, 2]), Some(2 * PART + 1));
        assert_eq!(written(&[0, 1, 2, 0]), Some(2 * PART + 1));
        for order in [&[0, 1][..], &[0, 2, 1], &[1, 2], &[0, 0], &[]] {
            assert_eq!(written(order), None, "{order:?}");
        }
    }

    #[test]
    fn a_value_longer_than_asked_for_is_none() {
        let mut records = Vec::new();
        VALUE.write_in_parts(Timestamp::from_nanos(1), 0, &[1; PART + 5], &mut records).expect("it fits");
        assert!(joined(&records, PART + 5).is_some());
        assert_eq!(joined(&records, PART + 4), None);
    }

    proptest! {
        #[test]
        fn values_come_back_as_they_were_written(length in 0..3 * PART, factor: usize) {
            let value: Vec<u8> = (0..length).map(|at| (at.wrapping_mul(factor) >> 7) as u8).collect();
            let mut records = Vec::new();
            OTHER.write(Timestamp::from_nanos(1), 3, b"else", &mut records).expect("it fits");
            VALUE.write_in_parts(Timestamp::from_nanos(2), 3, &value, &mut records).expect("it fits");
            prop_assert_eq!(joined(&records, value.len()).expect("there").bytes, value);
            prop_assert_eq!(&payloads(&records)[0], &(EventIndex(0), b"else".to_vec()));
        }
    }
}

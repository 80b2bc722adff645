//! From a record's bytes to what it says. Pure: bytes in, borrowed values out, nothing allocated.

use crate::attr::EventAttr;
use crate::bytes::{Words, u64_at};
use crate::error::ReadError;
use crate::format::record_type;
use crate::ids::EventIds;
use crate::layout::EventLayout;
use crate::raw::RawRecord;
use crate::record::{EventIndex, Record, RecordContext, Sample};
use crate::time::Timestamp;

mod kernel;
mod sample;
mod swap;

/// Decodes the records of one recording. It holds no state, so that records can be decoded in any
/// order and by several threads.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    layouts: Vec<EventLayout>,
    ids: EventIds,
    /// The word of a sample's body that is the event's id; `None` if there is nothing to tell apart.
    id_in_sample: Option<u16>,
    /// Bytes from the event's id to the end of other records.
    id_before_end: Option<u16>,
    /// The word of a sample's body that is its time, if it is the same for all events.
    time_in_sample: Option<u16>,
}

impl Decoder {
    /// A decoder for events of these attributes and ids.
    ///
    /// # Errors
    /// [`ReadError::MixedLayouts`] if the samples of the events have different fields and no
    /// common place for an id that says which event they are of.
    pub fn new<'a>(events: impl IntoIterator<Item = (&'a EventAttr, &'a [u64])>) -> Result<Self, ReadError> {
        let mut decoder = Self::default();
        let mut all_ids = Vec::new();
        for (index, (attr, ids)) in events.into_iter().enumerate() {
            decoder.layouts.push(EventLayout::new(attr));
            all_ids.extend(ids.iter().map(|&id| (id, EventIndex(index as u32))));
        }
        decoder.ids = all_ids.into_iter().collect();
        decoder.time_in_sample = common(decoder.layouts.iter().map(|layout| Some(layout.sample.time)));
        if decoder.layouts.len() > 1 {
            decoder.id_in_sample = common(decoder.layouts.iter().map(EventLayout::id_in_sample));
            decoder.id_before_end = common(decoder.layouts.iter().map(EventLayout::id_before_end));
            let same_fields = common(decoder.layouts.iter().map(|layout| Some(layout.sample_type))).is_some();
            if decoder.id_in_sample.is_none() && !same_fields {
                return Err(ReadError::MixedLayouts);
            }
        }
        Ok(decoder)
    }

    /// When, where and for which event a record was made.
    ///
    /// Fields that the recording does not have are `None`, and so is all of a record that the
    /// recorder made up (mappings that were there before): its `sample_id` is zeros, but for the event of
    /// [`Record::LostInAll`].
    #[inline]
    pub fn context(&self, raw: &RawRecord<'_>) -> RecordContext {
        match raw.kind {
            record_type::SAMPLE => self.sample_context(raw.body),
            record_type::USER_START.. => RecordContext::default(),
            _ => self.kernel_context(raw),
        }
    }

    /// When a record was made, as its [`Decoder::context`] has it but for samples of unknown events.
    #[inline(always)]
    pub fn time(&self, raw: &RawRecord<'_>) -> Option<Timestamp> {
        match (raw.kind, self.time_in_sample) {
            (record_type::SAMPLE, Some(at)) => Words::new(raw.body).u64(at).map(Timestamp::from_nanos),
            _ => self.context(raw).time,
        }
    }

    /// Decodes a record, given what [`Decoder::context`] says of it.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] if the record is too short for what it must hold.
    #[inline]
    pub fn decode<'a>(&self, raw: &RawRecord<'a>, context: &RecordContext) -> Result<Record<'a>, ReadError> {
        let mut record = Record::FinishedRound;
        self.decode_into(raw, context, &mut record)?;
        Ok(record)
    }

    /// As [`Decoder::decode`], to where the record will be read: a sample is large, and nearly all records are samples.
    ///
    /// # Errors
    /// As [`Decoder::decode`]; `record` then says nothing.
    #[inline(always)]
    pub fn decode_into<'a>(
        &self,
        raw: &RawRecord<'a>,
        context: &RecordContext,
        record: &mut Record<'a>,
    ) -> Result<(), ReadError> {
        let Some(layout) = self.layouts.get(context.event.map_or(0, |event| event.0 as usize)) else {
            *record = Record::Other(raw.kind);
            return Ok(());
        };
        if raw.kind != record_type::SAMPLE {
            *record = Self::decode_other(layout, raw, context)?;
            return Ok(());
        }
        *record = Record::Sample(Sample::default());
        match record {
            Record::Sample(sample) => {
                let malformed = |field| ReadError::Malformed { offset: raw.offset, kind: raw.kind, field };
                sample::decode_into(layout, raw.misc, raw.body, sample).map_err(malformed)
            }
            _ => Ok(()),
        }
    }

    fn decode_other<'a>(
        layout: &EventLayout,
        raw: &RawRecord<'a>,
        context: &RecordContext,
    ) -> Result<Record<'a>, ReadError> {
        let malformed = |field| ReadError::Malformed { offset: raw.offset, kind: raw.kind, field };
        match raw.kind {
            record_type::FINISHED_ROUND => Ok(Record::FinishedRound),
            record_type::USER_START.. => Ok(Record::Other(raw.kind)),
            _ => kernel::decode(layout, raw, context).map_err(malformed),
        }
    }

    /// Events that a sample stands for, as [`Sample::period`](crate::record::Sample::period) has it, without
    /// decoding the rest of the sample.
    #[inline]
    pub fn period(&self, raw: &RawRecord<'_>, context: &RecordContext) -> Option<u64> {
        let layout = self.layouts.get(context.event.map_or(0, |event| event.0 as usize))?;
        Words::new(raw.body).u64(layout.sample.period).or(layout.fixed_period)
    }

    /// The event of a sample, as its [`Decoder::context`] has it, without looking at the rest of it.
    #[inline]
    pub fn event_of_sample(&self, raw: &RawRecord<'_>) -> Option<EventIndex> {
        let event = match self.id_in_sample {
            None => EventIndex(0),
            Some(at) => self.event_of_id(Words::new(raw.body).u64(at).unwrap_or_default())?,
        };
        self.layouts.get(event.0 as usize).map(|_| event)
    }

    /// The address that a sample was taken at, without decoding the rest of the sample.
    #[inline]
    pub fn instruction_pointer(&self, raw: &RawRecord<'_>, context: &RecordContext) -> Option<u64> {
        let layout = self.layouts.get(context.event.map_or(0, |event| event.0 as usize))?;
        Words::new(raw.body).u64(layout.sample.ip)
    }

    #[inline(always)]
    fn sample_context(&self, body: &[u8]) -> RecordContext {
        let fields = Words::new(body);
        let event = match self.id_in_sample {
            None => Some(EventIndex(0)),
            Some(at) => self.event_of_id(fields.u64(at).unwrap_or_default()),
        };
        let Some(layout) = self.layouts.get(event.map_or(0, |event| event.0 as usize)) else {
            return RecordContext::default();
        };
        let layout = &layout.sample;
        let time = fields.u64(layout.time).map(Timestamp::from_nanos);
        context(time, fields.u32s(layout.tid), fields.u32s(layout.cpu), event)
    }

    fn kernel_context(&self, raw: &RawRecord<'_>) -> RecordContext {
        let event = match self.id_before_end {
            None => Some(EventIndex(0)),
            Some(distance) => {
                let at = raw.body.len().checked_sub(distance.into());
                self.event_of_id(at.and_then(|at| u64_at(raw.body, at)).unwrap_or_default())
            }
        };
        let Some(layout) = self.layouts.get(event.map_or(0, |event| event.0 as usize)) else {
            return RecordContext::default();
        };
        let trailer = match raw.body.len().checked_sub(layout.trailer.size.into()) {
            Some(start) if layout.trailer.size > 0 => Words::new(&raw.body[start..]),
            _ => return RecordContext { time: kernel::time_in_body(raw), ..RecordContext::default() },
        };
        let layout = &layout.trailer;
        let time = trailer.u64(layout.time);
        if time == Some(0) {
            // What is told of a counter at the end has its id all the same.
            let event = event.filter(|_| raw.kind == record_type::LOST_SAMPLES);
            return RecordContext { event, ..RecordContext::default() };
        }
        let time = time.map(Timestamp::from_nanos);
        context(time, trailer.u32s(layout.tid), trailer.u32s(layout.cpu), event)
    }

    /// The event of an id. Id 0 is in records that the recorder made up: they go to the first event.
    #[inline]
    fn event_of_id(&self, id: u64) -> Option<EventIndex> {
        if id == 0 { Some(EventIndex(0)) } else { self.ids.get(id) }
    }
}

/// From fields as they are recorded: process and thread in one word, the CPU and nothing in another.
#[inline]
fn context(
    time: Option<Timestamp>,
    task: Option<(u32, u32)>,
    cpu: Option<(u32, u32)>,
    event: Option<EventIndex>,
) -> RecordContext {
    // Records that the recorder made up name no CPU.
    let cpu = cpu.map(|(cpu, _)| cpu).filter(|&cpu| cpu != u32::MAX);
    RecordContext { time, pid: task.map(|(pid, _)| pid), tid: task.map(|(_, tid)| tid), cpu, event }
}

/// The value that all have, if they have one and the same.
fn common<T: PartialEq>(values: impl IntoIterator<Item = Option<T>>) -> Option<T> {
    let mut values = values.into_iter();
    let first = values.next()??;
    values.all(|value| value.as_ref() == Some(&first)).then_some(first)
}

//! The records of a recording in the order of time.

use std::ops::ControlFlow;

use perf_data::format::record_type;
use perf_data::record::{Record, RecordContext};
use perf_data::{Decoder, RawRecord, ReadError, RecordPosition, Records};

use crate::recording::Recording;
use crate::timeline::RoundSorter;

/// A recording without round marks is sorted in portions of this many records: more than any ring
/// holds, so that what is older has come.
const LONGEST_ROUND: usize = 1 << 20;

/// Walks a recording in time order.
#[derive(Debug)]
pub struct Replay<'r> {
    recording: &'r Recording,
    records: Records<'r>,
    sorter: RoundSorter<RecordPosition>,
    malformed: Malformed,
    /// The last record found.
    latest: RecordPosition,
    /// Where it lies in the file.
    offset: u64,
}

#[derive(Debug, Default)]
struct Malformed {
    count: u64,
    first: Option<ReadError>,
}

/// How a walk ended.
#[derive(Debug, Default)]
pub struct ReplayEnd {
    /// What stopped it before the recording's end; all before was walked.
    pub stopped_by: Option<ReadError>,
    /// Number of records that could not be decoded and were left out.
    pub malformed: u64,
    /// The first of these.
    pub first_malformed: Option<ReadError>,
}

impl ReplayEnd {
    /// What happened, in sentences for the reader of a report.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(error) = &self.stopped_by {
            warnings.push(format!("{error}; what precedes it is used"));
        }
        if let Some(error) = &self.first_malformed {
            warnings.push(format!("{} damaged records were left out; the first: {error}", self.malformed));
        }
        warnings
    }
}

impl<'r> Replay<'r> {
    /// A walk from the beginning.
    pub fn new(recording: &'r Recording) -> Self {
        Self {
            recording,
            records: recording.records(),
            sorter: RoundSorter::default(),
            malformed: Malformed::default(),
            latest: RecordPosition::default(),
            offset: 0,
        }
    }

    /// Calls `visit` with every record and its place in the file, in time order. Records without a time
    /// (made up by the recorder about what was there before) come when they are found.
    pub fn for_each(self, mut visit: impl FnMut(RecordPosition, &RecordContext, &Record<'_>)) -> ReplayEnd {
        self.try_for_each(|position, context, record| {
            visit(position, context, record);
            ControlFlow::Continue(())
        })
    }

    /// As [`Replay::for_each`], until `visit` breaks off.
    pub fn try_for_each(
        mut self,
        mut visit: impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
    ) -> ReplayEnd {
        let mut stopped_by = None;
        // Who breaks off wants to hear no more, so that it does not matter where.
        let _ = self.walk(&mut visit, &mut stopped_by);
        ReplayEnd { stopped_by, malformed: self.malformed.count, first_malformed: self.malformed.first }
    }

    fn walk(
        &mut self,
        visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
        stopped_by: &mut Option<ReadError>,
    ) -> ControlFlow<()> {
        let decoder = self.recording.decoder();
        *stopped_by = loop {
            let raw = match self.records.next_raw() {
                Ok(Some(raw)) => raw,
                Ok(None) => break None,
                Err(error) if error.is_recoverable() => {
                    self.malformed.add(error);
                    continue;
                }
                Err(error) => break Some(error),
            };
            if raw.kind == record_type::FINISHED_ROUND {
                self.finish_round(visit)?;
                continue;
            }
            (self.latest, self.offset) = (raw.position, raw.offset);
            match decoder.time(&raw) {
                Some(time) => {
                    self.sorter.push(time, raw.position);
                    if self.sorter.len() >= 2 * LONGEST_ROUND {
                        self.finish_round(visit)?;
                    }
                }
                None => deliver_raw(&raw, decoder, &mut self.malformed, visit)?,
            }
        };
        for (_, position) in self.sorter.finish() {
            deliver(&self.records, decoder, position, &mut self.malformed, visit)?;
        }
        ControlFlow::Continue(())
    }

    fn finish_round(
        &mut self,
        visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let decoder = self.recording.decoder();
        for (_, position) in self.sorter.finish_round() {
            deliver(&self.records, decoder, position, &mut self.malformed, visit)?;
        }
        self.recording.note_read(self.offset);
        let oldest = self.sorter.iter().map(|(_, position)| *position).min();
        self.records.release_before(oldest.unwrap_or(self.latest));
        ControlFlow::Continue(())
    }
}

fn deliver(
    records: &Records<'_>,
    decoder: &Decoder,
    position: RecordPosition,
    malformed: &mut Malformed,
    visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // A position comes from `next_raw` and is released only after it was delivered. The record is found again
    // rather than kept: what is sorted stays small.
    match records.get(position) {
        Some(raw) => deliver_raw(&raw, decoder, malformed, visit),
        None => ControlFlow::Continue(()),
    }
}

fn deliver_raw(
    raw: &RawRecord<'_>,
    decoder: &Decoder,
    malformed: &mut Malformed,
    visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let context = decoder.context(raw);
    let mut record = Record::FinishedRound;
    match decoder.decode_into(raw, &context, &mut record) {
        Ok(()) => return visit(raw.position, &context, &record),
        Err(error) => malformed.add(error),
    }
    ControlFlow::Continue(())
}

impl Malformed {
    fn add(&mut self, error: ReadError) {
        self.count += 1;
        self.first.get_or_insert(error);
    }
}

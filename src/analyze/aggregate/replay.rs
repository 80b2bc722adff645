//! The records of a recording in the order of time.

use std::ops::ControlFlow;
use std::sync::Arc;

use perf_data::format::record_type;
use perf_data::record::{Record, RecordContext};
use perf_data::{Decoder, RawRecord, ReadError, RecordPosition, Records, RecordsInFile};

use crate::recording::Recording;
use crate::timeline::RoundSorter;

/// A recording without round marks is sorted in portions of this many records: more than any ring
/// holds, so that what is older has come.
const LONGEST_ROUND: usize = 1 << 20;

/// So many records at most are one batch.
const BATCH: usize = 1 << 14;

/// Walks a recording in time order.
#[derive(Debug)]
pub struct Replay<'r> {
    recording: &'r Recording,
    records: Records<'r>,
    sorter: RoundSorter<RecordPosition>,
    /// Of more records than so many, older ones are complete.
    most_pending: usize,
    /// Records whose turn has come, and how many of them were handed out.
    ready: Vec<RecordPosition>,
    handed_out: usize,
    /// The last record found.
    latest: RecordPosition,
    /// Where it lies in the file.
    offset: u64,
    /// There are no more records, or what stopped the walk.
    end: Option<Option<ReadError>>,
}

/// Records in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub positions: Arc<Vec<RecordPosition>>,
    /// What was no record on the way to them.
    damages: Vec<ReadError>,
    /// So far the file was read.
    offset: u64,
}

/// Records that tell nothing.
#[derive(Debug, Clone)]
pub struct LeftOut<T> {
    /// How many.
    pub count: u64,
    /// What is known of the first.
    pub first: Option<T>,
}

/// How a walk ended.
#[derive(Debug, Default)]
pub struct ReplayEnd {
    /// What stopped it before the recording's end; all before was walked.
    pub stopped_by: Option<ReadError>,
    /// Records that could not be decoded.
    pub malformed: LeftOut<ReadError>,
    /// Records of a type that is not known: the type, and where in the file.
    pub unknown: LeftOut<(u32, u64)>,
}

impl ReplayEnd {
    /// What happened, in sentences for the reader of a report.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(error) = &self.stopped_by {
            warnings.push(format!("{error}; what precedes it is used"));
        }
        let LeftOut { count, first } = &self.malformed;
        if let Some(error) = first {
            warnings.push(format!("{count} damaged records were left out; the first: {error}"));
        }
        let LeftOut { count, first } = &self.unknown;
        if let Some((kind, offset)) = first {
            warnings.push(format!(
                "{count} records of a type that eprof does not know were left out; the first: type {kind} at byte {offset}. A newer \
                 perf wrote them, or the file is damaged"
            ));
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
            most_pending: match recording.perf_data().is_of_several_files() {
                true => usize::MAX,
                false => 2 * LONGEST_ROUND,
            },
            ready: Vec::new(),
            handed_out: 0,
            latest: RecordPosition::default(),
            offset: 0,
            end: None,
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
        let (mut batch, mut told) = (Batch::default(), Told::new(self.recording));
        while self.next_batch(&mut batch, 1) {
            // Who breaks off wants to hear no more, so that it does not matter where.
            if told.batch(&mut batch, |position| self.records.get(position), &mut visit).is_break() {
                break;
            }
        }
        told.end(self)
    }

    /// Finds the records that come next, `least` of them or more if there are as many; `false` where there are no more. Those of the
    /// batch before are given up. Whoever looks at them next finds few of them in the CPU's cache still.
    pub(crate) fn next_batch(&mut self, batch: &mut Batch, least: usize) -> bool {
        // It is nobody else's where batches are looked at one after the other.
        Arc::make_mut(&mut batch.positions).clear();
        batch.damages.clear();
        if self.handed_out == self.ready.len() {
            self.ready.clear();
            self.handed_out = 0;
            let oldest = self.sorter.iter().map(|(_, position)| *position).min();
            self.records.release_before(oldest.unwrap_or(self.latest));
        }
        while self.ready.len() - self.handed_out < least && self.end.is_none() {
            self.find(batch);
        }
        batch.offset = self.offset;
        let positions = Arc::make_mut(&mut batch.positions);
        if self.handed_out == 0 && self.ready.len() <= BATCH {
            std::mem::swap(positions, &mut self.ready);
        } else {
            let until = self.ready.len().min(self.handed_out + BATCH);
            positions.extend_from_slice(&self.ready[self.handed_out..until]);
            self.handed_out = until;
        }
        !batch.positions.is_empty() || !batch.damages.is_empty()
    }

    /// Where other threads look up the records of all batches so far; see [`Records::in_file`].
    pub(crate) fn in_file(&self) -> Option<RecordsInFile<'r>> {
        self.records.in_file()
    }

    /// The record at a position of the last batch.
    pub(crate) fn get(&self, position: RecordPosition) -> Option<RawRecord<'_>> {
        self.records.get(position)
    }

    /// Walks until a round ends.
    fn find(&mut self, batch: &mut Batch) {
        let decoder = self.recording.decoder();
        let end = loop {
            let raw = match self.records.next_raw() {
                Ok(Some(raw)) => raw,
                Ok(None) => break None,
                Err(error) if error.is_recoverable() => {
                    batch.damages.push(error);
                    continue;
                }
                Err(error) => break Some(error),
            };
            if raw.kind == record_type::FINISHED_ROUND {
                self.ready.extend(self.sorter.finish_round().map(|(_, position)| position));
                return;
            }
            (self.latest, self.offset) = (raw.position, raw.offset);
            match decoder.time(&raw) {
                Some(time) => {
                    self.sorter.push(time, raw.position);
                    if self.sorter.len() >= self.most_pending {
                        self.ready.extend(self.sorter.finish_round().map(|(_, position)| position));
                        return;
                    }
                }
                None => {
                    self.ready.push(raw.position);
                    if self.ready.len() >= BATCH {
                        return;
                    }
                }
            }
        };
        self.ready.extend(self.sorter.finish().map(|(_, position)| position));
        self.end = Some(end);
    }
}

/// What was told of a recording, batch by batch.
#[derive(Debug)]
pub(crate) struct Told<'r> {
    recording: &'r Recording,
    malformed: LeftOut<ReadError>,
    unknown: LeftOut<(u32, u64)>,
}

impl<'r> Told<'r> {
    pub fn new(recording: &'r Recording) -> Self {
        Self { recording, malformed: LeftOut::default(), unknown: LeftOut::default() }
    }

    /// Calls `visit` with the records of a batch, which `find` looks up.
    #[inline]
    pub fn batch<'b>(
        &mut self,
        batch: &mut Batch,
        find: impl Fn(RecordPosition) -> Option<RawRecord<'b>>,
        visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let decoder = self.recording.decoder();
        batch.damages.drain(..).for_each(|error| self.malformed.add(error));
        for &position in batch.positions.iter() {
            // It was found, and is given up only after the batch. It is found again rather than kept: what is sorted stays
            // small.
            if let Some(raw) = find(position) {
                self.deliver(&raw, decoder, visit)?;
            }
        }
        self.recording.note_read(batch.offset);
        ControlFlow::Continue(())
    }

    /// The same with a visit that does not break off.
    #[inline]
    pub fn all<'b>(
        &mut self,
        batch: &mut Batch,
        find: impl Fn(RecordPosition) -> Option<RawRecord<'b>>,
        mut visit: impl FnMut(RecordPosition, &RecordContext, &Record<'_>),
    ) {
        let visit = &mut |at, context: &RecordContext, record: &Record<'_>| {
            visit(at, context, record);
            ControlFlow::Continue(())
        };
        let ControlFlow::Continue(()) = self.batch(batch, find, visit) else { return };
    }

    #[inline]
    fn deliver(
        &mut self,
        raw: &RawRecord<'_>,
        decoder: &Decoder,
        visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let context = decoder.context(raw);
        let mut record = Record::FinishedRound;
        if let Err(error) = decoder.decode_into(raw, &context, &mut record) {
            self.malformed.add(error);
            return ControlFlow::Continue(());
        }
        if matches!(record, Record::Other(kind) if !record_type::is_known(kind)) {
            self.unknown.add((raw.kind, raw.offset));
        }
        visit(raw.position, &context, &record)
    }

    /// How the walk ended.
    pub fn end(self, replay: Replay<'_>) -> ReplayEnd {
        ReplayEnd { stopped_by: replay.end.flatten(), malformed: self.malformed, unknown: self.unknown }
    }
}

impl<T> LeftOut<T> {
    fn add(&mut self, one: T) {
        self.count += 1;
        self.first.get_or_insert(one);
    }
}

impl<T> Default for LeftOut<T> {
    fn default() -> Self {
        Self { count: 0, first: None }
    }
}

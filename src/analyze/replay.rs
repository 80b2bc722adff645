//! The records of a recording in the order of time.

use crate::recording::format::record_type;
use crate::recording::record::{Record, RecordContext};
use crate::recording::{Decoder, RecordPosition, Recording, RecordingError, Records};
use crate::timeline::RoundSorter;

/// A recording without round marks is sorted in portions of this many records: more than any ring
/// holds, so that what is older has come.
const LONGEST_ROUND: usize = 1 << 20;

/// Walks a recording in time order.
#[derive(Debug)]
pub struct Replay<'r> {
    recording: &'r Recording,
    records: Records<'r>,
    sorter: RoundSorter<(RecordPosition, RecordContext)>,
    malformed: Malformed,
    /// The last record found.
    latest: RecordPosition,
}

#[derive(Debug, Default)]
struct Malformed {
    count: u64,
    first: Option<RecordingError>,
}

/// How a walk ended.
#[derive(Debug, Default)]
pub struct ReplayEnd {
    /// What stopped it before the recording's end; all before was walked.
    pub stopped_by: Option<RecordingError>,
    /// Number of records that could not be decoded and were left out.
    pub malformed: u64,
    /// The first of these.
    pub first_malformed: Option<RecordingError>,
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
        }
    }

    /// Calls `visit` with every record and its place in the file, in time order. Records without a time (made up by the recorder
    /// about what was there before) come when they are found.
    pub fn for_each(
        mut self,
        mut visit: impl FnMut(RecordPosition, &RecordContext, &Record<'_>),
    ) -> ReplayEnd {
        let decoder = self.recording.decoder();
        let stopped_by = loop {
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
                self.finish_round(&mut visit);
                continue;
            }
            let context = decoder.context(&raw);
            self.latest = raw.position;
            match context.time {
                Some(time) => {
                    self.sorter.push(time, (raw.position, context));
                    if self.sorter.len() >= 2 * LONGEST_ROUND {
                        self.finish_round(&mut visit);
                    }
                }
                None => match decoder.decode(&raw, &context) {
                    Ok(record) => visit(raw.position, &context, &record),
                    Err(error) => self.malformed.add(error),
                },
            }
        };
        for (_, (position, context)) in self.sorter.finish() {
            deliver(&self.records, decoder, position, &context, &mut self.malformed, &mut visit);
        }
        ReplayEnd { stopped_by, malformed: self.malformed.count, first_malformed: self.malformed.first }
    }

    fn finish_round(&mut self, visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>)) {
        let decoder = self.recording.decoder();
        for (_, (position, context)) in self.sorter.finish_round() {
            deliver(&self.records, decoder, position, &context, &mut self.malformed, visit);
        }
        let oldest = self.sorter.iter().map(|(_, (position, _))| *position).min();
        self.records.release_before(oldest.unwrap_or(self.latest));
    }
}

fn deliver(
    records: &Records<'_>,
    decoder: &Decoder,
    position: RecordPosition,
    context: &RecordContext,
    malformed: &mut Malformed,
    visit: &mut impl FnMut(RecordPosition, &RecordContext, &Record<'_>),
) {
    // A position comes from `next_raw` and is released only after it was delivered.
    let Some(raw) = records.get(position) else { return };
    match decoder.decode(&raw, context) {
        Ok(record) => visit(position, context, &record),
        Err(error) => malformed.add(error),
    }
}

impl Malformed {
    fn add(&mut self, error: RecordingError) {
        self.count += 1;
        self.first.get_or_insert(error);
    }
}

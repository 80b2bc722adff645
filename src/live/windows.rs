//! Records in, windows out.

use std::collections::VecDeque;

use perf_data::format::{RECORD_HEADER_SIZE, record_type};
use perf_data::record::Record;
use perf_data::{EventDesc, RawRecord, RecordPosition};

use super::alive::is_alive;
use super::error::LiveError;
use super::footprint::Footprint;
use super::known_tasks::KnownTasks;
use super::meter_curves::MeterCurves;
use crate::analyze::CountedTime;
use crate::process::clocks::monotonic_now;
use crate::recording::Recording;
use crate::recording::energy::{EnergyReading, domain_of_event};
use crate::recording::gpu_events::{CONTEXTS_EVENT, KERNEL_NAMES_EVENT};
use crate::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT, Metadata, Target};
use crate::units::{Joules, Nanoseconds, Timestamp};
use held::{Held, What, is_state};

mod held;
mod written;

/// Where windows are cut.
#[derive(Debug, Clone, Copy)]
pub struct CutOptions {
    /// A window is at least so long.
    pub period: Nanoseconds,
    /// It is cut at the latest when it holds so many bytes of records.
    pub most_bytes: usize,
}

impl Default for CutOptions {
    fn default() -> Self {
        Self { period: Nanoseconds::from_millis(1000), most_bytes: 256 << 20 }
    }
}

/// Samples of so long a time on the other side of a cut are in a window too: their stretches may go over it, and how far is
/// told by the samples before.
const MARGIN: Nanoseconds = Nanoseconds::from_millis(50);
/// A meter that is not read for so long after a cut does not hold it up.
const PATIENCE: Nanoseconds = Nanoseconds::from_millis(1500);
/// What is so much later than the recorder's own last look at the clock, which it takes ten times a second, and lies in the future
/// besides, has a wrong time. A recorder that was stopped for a while finds records that are later than its last look.
const AHEAD: Nanoseconds = Nanoseconds::from_millis(60_000);
/// Names of GPU kernels and of their contexts are told once, and kept as long as they are so few.
const MOST_GPU_BYTES: usize = 16 << 20;

/// A window.
pub struct Cut {
    /// Its records, and samples of a short time around it, by which it is known when events began and ended.
    pub recording: Recording,
    /// The window itself.
    pub counted: CountedTime,
}

/// Cuts the records of one recording, as they come, into windows.
pub struct Windows {
    head: Recording,
    metadata: Metadata,
    kinds: Vec<Kind>,
    options: CutOptions,
    tasks: KnownTasks,
    meters: MeterCurves,
    /// When the CPU times of the machine were read.
    cpu_times: VecDeque<Timestamp>,
    held: Vec<Held>,
    bytes: Vec<u8>,
    gpu_names: Vec<u8>,
    /// Samples are of counters that follow tasks: one that ends before its first sample is in no CPU's.
    has_counters_of_tasks: bool,
    begin: Option<Timestamp>,
    /// The latest time of all records since the recorder first looked at the clock,
    arrived: Timestamp,
    /// and of those of whole rounds: until a round's end what some CPUs did is still to come.
    newest: Timestamp,
    /// When the recorder last looked at the clock itself.
    looked: Option<Timestamp>,
    /// Bytes at the end of what was pushed that are no whole record yet.
    rest: Vec<u8>,
    dropped: u64,
}

/// What the samples of an event are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sampled,
    Metadata,
    CpuTimes,
    Energy(usize),
    GpuName,
}

impl Windows {
    /// Of the recording that `head` is the beginning of; its records are to be pushed.
    ///
    /// # Errors
    /// A recording that is not eprof's.
    pub fn new(head: Recording, options: CutOptions) -> Result<Self, LiveError> {
        let metadata = head.metadata().cloned().ok_or(LiveError::NotEprofs)?;
        let kind = |event: &EventDesc| {
            let domain = domain_of_event(&event.name)
                .and_then(|name| metadata.domains.iter().position(|domain| domain.name == name));
            match (event.name.as_str(), domain) {
                (METADATA_EVENT, _) => Kind::Metadata,
                (CPU_TIMES_EVENT, _) => Kind::CpuTimes,
                (KERNEL_NAMES_EVENT | CONTEXTS_EVENT, _) => Kind::GpuName,
                (_, Some(domain)) => Kind::Energy(domain),
                _ => Kind::Sampled,
            }
        };
        let targets = match &metadata.target {
            Target::Command { pid, .. } => vec![*pid],
            Target::Processes(pids) | Target::Threads(pids) => pids.clone(),
            Target::System => Vec::new(),
        };
        let has_counters_of_tasks = metadata.target != Target::System && !metadata.system_wide_samples;
        Ok(Self {
            has_counters_of_tasks,
            kinds: head.events().iter().map(kind).collect(),
            tasks: KnownTasks::new(targets, is_alive),
            meters: MeterCurves::new(metadata.domains.len()),
            cpu_times: VecDeque::new(),
            held: Vec::new(),
            bytes: Vec::new(),
            gpu_names: Vec::new(),
            begin: None,
            arrived: Timestamp::default(),
            newest: Timestamp::default(),
            looked: None,
            rest: Vec::new(),
            dropped: 0,
            head,
            metadata,
            options,
        })
    }

    /// What the recording says of itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// From now on windows are at least so long.
    pub fn set_period(&mut self, period: Nanoseconds) {
        self.options.period = period;
    }

    /// Whether what is new is not told by name any more, since there were too many names: a recording that begins anew has room.
    pub fn is_full(&self) -> bool {
        self.tasks.is_full()
    }

    /// Bytes of records that are held.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// What is kept of tasks, and of records: see [`Footprint`].
    pub(super) fn footprint(&self) -> Footprint {
        let [processes, names, mappings] = self.tasks.sizes();
        Footprint { processes, names, mappings, bytes: self.bytes.len(), ..Footprint::default() }
    }

    /// What all meters of a domain counted between two instants, as far as both are still known.
    pub fn counted(&self, domain: usize, from: Timestamp, to: Timestamp) -> Joules {
        self.meters.counted(domain, from, to)
    }

    /// Takes records as they lie in the file; a last one that is not all there is waited for.
    pub fn push(&mut self, records: &[u8]) {
        let mut rest = std::mem::take(&mut self.rest);
        if rest.is_empty() {
            let taken = self.records(records);
            rest.extend_from_slice(&records[taken..]);
        } else {
            rest.extend_from_slice(records);
            let taken = self.records(&rest);
            rest.drain(..taken);
        }
        self.rest = rest;
    }

    /// Takes as many records as are whole, and gives their bytes.
    fn records(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + RECORD_HEADER_SIZE) {
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            if size < RECORD_HEADER_SIZE {
                // The recorder writes no such record: nothing behind it can be found.
                self.dropped += 1;
                return bytes.len();
            }
            let Some(record) = bytes.get(at..at + size) else { break };
            self.record(record);
            at += size;
        }
        at
    }

    fn record(&mut self, bytes: &[u8]) {
        let raw = RawRecord {
            position: RecordPosition::default(),
            offset: 0,
            kind: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            misc: u16::from_le_bytes([bytes[4], bytes[5]]),
            body: &bytes[RECORD_HEADER_SIZE..],
        };
        if raw.kind >= record_type::USER_START {
            if raw.kind == record_type::FINISHED_ROUND {
                self.newest = self.newest.max(self.arrived);
            }
            return;
        }
        let decoder = self.head.decoder();
        let context = decoder.context(&raw);
        let mut what = What::Other;
        if raw.kind == record_type::SAMPLE {
            let kind = context.event.and_then(|event| self.kinds.get(event.0 as usize)).copied();
            match kind {
                Some(Kind::Metadata) => return,
                Some(Kind::GpuName) => {
                    if self.gpu_names.len() + bytes.len() <= MOST_GPU_BYTES {
                        self.gpu_names.extend(bytes);
                    }
                    return;
                }
                Some(Kind::CpuTimes) => {
                    what = What::CpuTimes;
                    self.cpu_times.extend(context.time);
                }
                Some(Kind::Energy(domain)) => {
                    what = What::Reading;
                    if let (Some(time), Ok(Record::Sample(sample))) =
                        (context.time, decoder.decode(&raw, &context))
                        && let Some(reading) = EnergyReading::from_bytes(sample.raw)
                    {
                        self.meters.push(domain, time, context.cpu.unwrap_or(0), reading);
                    }
                }
                Some(Kind::Sampled) | None => {}
            }
        } else if is_state(raw.kind) {
            what = What::State;
        }
        if matches!(what, What::CpuTimes | What::Reading) {
            self.looked = self.looked.max(context.time);
        }
        // One wrong time would be waited for, window by window, for as long as it says.
        let is_possible = |time: &Timestamp| {
            self.looked.is_none_or(|looked| time.since(looked) <= AHEAD) || *time <= monotonic_now()
        };
        let Some(time) = context.time.filter(is_possible) else {
            self.dropped += u64::from(context.time.is_some());
            // Made up by the recorder of what was there before, or of no time.
            if let (What::State, Ok(record)) = (what, decoder.decode(&raw, &context)) {
                self.tasks.record(&record, &raw, bytes);
            }
            return;
        };
        if self.looked.is_some() {
            self.arrived = self.arrived.max(time);
        }
        let pid = context.pid.filter(|_| raw.kind == record_type::SAMPLE);
        self.held.push(Held { at: self.bytes.len(), size: bytes.len(), time, pid, what });
        self.bytes.extend(bytes);
    }

    /// The next window, as a recording of its own, once all that belongs to it has come.
    ///
    /// # Errors
    /// None but of what could not be read as it was written.
    pub fn next_window(&mut self) -> Result<Option<Cut>, LiveError> {
        let Some(begin) = self.begin() else { return Ok(None) };
        let Some(cut) = self.next_cut(begin) else { return Ok(None) };
        self.cut(begin, cut).map(Some)
    }

    /// What is left when the recording has ended: the last window, if there are joules or samples in it.
    ///
    /// # Errors
    /// As [`Windows::next_window`].
    pub fn finish(&mut self) -> Result<Option<Cut>, LiveError> {
        let Some(begin) = self.begin() else { return Ok(None) };
        let end = self.meters.last().unwrap_or(self.arrived);
        if end <= begin {
            return Ok(None);
        }
        let mut last = self.cut(begin, end)?;
        // The last instant is nobody else's.
        last.counted.end = end + Nanoseconds::from_nanos(1);
        Ok(Some(last))
    }

    /// Where the window at hand begins: with the first reading of any meter.
    fn begin(&mut self) -> Option<Timestamp> {
        if self.begin.is_none() {
            let first_held = || self.held.iter().map(|held| held.time).min();
            self.begin = match self.metadata.domains.is_empty() {
                false => self.meters.first(),
                true => first_held(),
            };
        }
        self.begin
    }

    /// The instant at which the window can be cut: CPU times were read then, all meters have been read since, and the
    /// samples around it have come.
    fn next_cut(&self, begin: Timestamp) -> Option<Timestamp> {
        let earliest = begin + self.options.period;
        let is_over = |cut: Timestamp| self.newest.since(cut) > PATIENCE;
        let mut cut = self.cpu_times.iter().copied().find(|time| *time >= earliest);
        if cut.is_none() && is_over(earliest) {
            cut = Some(earliest);
        }
        let is_full = self.bytes.len() >= self.options.most_bytes;
        if let (None, true) = (cut, is_full) {
            // Without a reading, as of a meter that has gone, what has come must do.
            cut = [self.meters.last(), Some(self.newest)].into_iter().flatten().find(|last| *last > begin);
        }
        let cut = cut?;
        let has_come = self.newest > cut + MARGIN && self.meters.reach(cut);
        (has_come || is_over(cut) || is_full).then_some(cut)
    }

    fn cut(&mut self, begin: Timestamp, end: Timestamp) -> Result<Cut, LiveError> {
        let window = self.window(begin, end);
        self.go_on_from(end);
        let counted = CountedTime { start: begin, end };
        Ok(Cut { recording: Recording::from_bytes(window?)?, counted })
    }

    /// Gives up what the window had and the next one has not.
    fn go_on_from(&mut self, end: Timestamp) {
        self.begin = Some(end);
        let keep_from = Timestamp::from_nanos(end.as_nanos().saturating_sub(MARGIN.as_nanos()));
        let times_before = self.cpu_times.iter().rev().find(|time| **time <= end).copied();
        // The next window will have as many.
        let (mut held, mut bytes) =
            (Vec::with_capacity(self.held.len()), Vec::with_capacity(self.bytes.len()));
        let mut told: Vec<Held> = Vec::new();
        for record in &self.held {
            let is_kept = match record.what {
                What::Reading => record.time > end,
                What::CpuTimes => times_before.is_none_or(|before| record.time >= before),
                What::State => record.time > end,
                What::Other => record.time >= keep_from,
            };
            if record.what == What::State && !is_kept {
                told.push(*record);
            }
            if is_kept {
                let at = bytes.len();
                bytes.extend(&self.bytes[record.at..record.at + record.size]);
                held.push(Held { at, ..*record });
            }
        }
        // Rings of several CPUs come one after the other.
        told.sort_by_key(|record| record.time);
        let decoder = self.head.decoder();
        for pid in self.held.iter().filter_map(|held| held.pid) {
            self.tasks.sampled(pid);
        }
        for record in told {
            let bytes = &self.bytes[record.at..record.at + record.size];
            let raw = RawRecord {
                position: RecordPosition::default(),
                offset: 0,
                kind: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
                misc: u16::from_le_bytes([bytes[4], bytes[5]]),
                body: &bytes[RECORD_HEADER_SIZE..],
            };
            let context = decoder.context(&raw);
            if let Ok(record) = decoder.decode(&raw, &context) {
                self.tasks.record(&record, &raw, bytes);
            }
        }
        (self.held, self.bytes) = (held, bytes);
        self.cpu_times.retain(|time| times_before.is_none_or(|before| *time >= before));
        self.meters.forget_before(end);
    }
}

#[cfg(test)]
mod tests;

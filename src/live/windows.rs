//! Records in, windows out.

use std::collections::{BTreeSet, VecDeque};
use std::io::Cursor;

use perf_data::features::CpuCount;
use perf_data::format::{RECORD_HEADER_SIZE, misc, record_type};
use perf_data::record::Record;
use perf_data::{EventDesc, Features, PerfDataWriter, RawRecord, RecordPosition, encode};
use rustc_hash::FxHashMap;

use super::error::LiveError;
use super::footprint::Footprint;
use super::known_tasks::{KERNEL_PID, KnownTasks};
use super::meter_curves::MeterCurves;
use crate::analyze::CountedTime;
use crate::recording::energy::{EnergyReading, domain_of_event};
use crate::recording::gpu_events::{CONTEXTS_EVENT, KERNEL_NAMES_EVENT};
use crate::recording::metadata::{CPU_TIMES_EVENT, METADATA_EVENT, Metadata, Target};
use crate::recording::{Recording, own_events};
use crate::units::{Joules, Nanoseconds, Timestamp};

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
    begin: Option<Timestamp>,
    newest: Timestamp,
    /// Bytes at the end of what was pushed that are no whole record yet.
    rest: Vec<u8>,
    dropped: u64,
}

/// A record that is held.
#[derive(Debug, Clone, Copy)]
struct Held {
    at: usize,
    size: usize,
    time: Timestamp,
    /// Of samples.
    pid: Option<u32>,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Says something of tasks or code.
    State,
    Reading,
    CpuTimes,
    Other,
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
        Ok(Self {
            kinds: head.events().iter().map(kind).collect(),
            tasks: KnownTasks::new(targets),
            meters: MeterCurves::new(metadata.domains.len()),
            cpu_times: VecDeque::new(),
            held: Vec::new(),
            bytes: Vec::new(),
            gpu_names: Vec::new(),
            begin: None,
            newest: Timestamp::default(),
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
        let Some(time) = context.time else {
            // Made up by the recorder of what was there before.
            if let (What::State, Ok(record)) = (what, decoder.decode(&raw, &context)) {
                self.tasks.record(&record, &raw, bytes);
            }
            return;
        };
        self.newest = self.newest.max(time);
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
        let end = self.meters.last().unwrap_or(self.newest);
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
            cut = self.meters.last().filter(|last| *last > begin);
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

    /// The window as a recording's file: what is known when it begins, then its records.
    fn window(&self, begin: Timestamp, end: Timestamp) -> Result<Vec<u8>, LiveError> {
        let first = Timestamp::from_nanos(begin.as_nanos().saturating_sub(MARGIN.as_nanos()));
        let last = end + MARGIN;
        // What others used is told from one reading of the CPU times to the next.
        let times_before = self.cpu_times.iter().rev().find(|time| **time <= begin).copied();
        let times_after = self.cpu_times.iter().find(|time| **time >= end).copied();
        let belongs = |held: &&Held| match held.what {
            What::Reading => begin < held.time && held.time < end,
            What::CpuTimes => {
                times_before.is_none_or(|before| held.time >= before)
                    && times_after.is_none_or(|after| held.time <= after)
            }
            // What was told since the tasks were described.
            What::State => held.time <= last,
            What::Other => first <= held.time && held.time <= last,
        };
        let pids = self.told_apart(belongs);
        let events = self.head.events().to_vec();
        let id = events.first().and_then(|event| event.ids.first()).copied().unwrap_or(0);
        let write = || -> Result<Vec<u8>, encode::RecordTooLong> {
            let mut records = Vec::new();
            own_events::metadata(&self.metadata, begin, &mut records)?;
            self.tasks.describe(&pids, id, &mut records)?;
            records.extend(&self.gpu_names);
            encode::finished_round(&mut records);
            self.meters.encode_at(begin, &mut records)?;
            for held in self.held.iter().filter(belongs).filter(|held| self.says_something_of(held, &pids)) {
                records.extend(&self.bytes[held.at..held.at + held.size]);
            }
            self.meters.encode_at(end, &mut records)?;
            encode::finished_round(&mut records);
            Ok(records)
        };
        let records = write().map_err(LiveError::TooLong)?;
        let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events).map_err(LiveError::Read)?;
        writer.write_raw(&records).map_err(LiveError::Read)?;
        let file = writer.finish(&self.features()).map_err(LiveError::Read)?;
        Ok(file.into_inner())
    }

    /// The processes of which something must be known: those that were sampled, and those that these came from meanwhile, whose
    /// code they have.
    fn told_apart(&self, belongs: impl Fn(&&Held) -> bool) -> BTreeSet<u32> {
        let mut of_child: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let (mut found, mut next) = (BTreeSet::new(), Vec::new());
        for held in self.held.iter().filter(belongs) {
            match (held.what, Subject::of(&self.bytes[held.at..held.at + held.size])) {
                (What::State, Some(Subject { pid, parent: Some(parent) })) => {
                    of_child.entry(pid).or_default().push(parent);
                }
                (What::State, _) => {}
                _ => next.extend(held.pid.filter(|pid| *pid != u32::MAX)),
            }
        }
        while let Some(pid) = next.pop() {
            if found.insert(pid) {
                next.extend(of_child.get(&pid).into_iter().flatten());
            }
        }
        found
    }

    /// Whether a record says something of these processes or of all. Of a thousand processes a second few are ever sampled.
    fn says_something_of(&self, held: &Held, pids: &BTreeSet<u32>) -> bool {
        held.what != What::State
            || Subject::of(&self.bytes[held.at..held.at + held.size])
                .is_none_or(|Subject { pid, .. }| pid == KERNEL_PID || pids.contains(&pid))
    }

    /// Gives up what the window had and the next one has not.
    fn go_on_from(&mut self, end: Timestamp) {
        self.begin = Some(end);
        let keep_from = Timestamp::from_nanos(end.as_nanos().saturating_sub(MARGIN.as_nanos()));
        let times_before = self.cpu_times.iter().rev().find(|time| **time <= end).copied();
        let (mut held, mut bytes) = (Vec::new(), Vec::new());
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

    fn features(&self) -> Features {
        let machine = &self.metadata.machine;
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let cpus = machine.cpus.len() as u32;
        Features {
            hostname: some(&machine.hostname),
            os_release: some(&machine.kernel),
            version: Some(format!("eprof {}", self.metadata.eprof_version)),
            arch: some(&machine.arch),
            cpus: (cpus > 0).then_some(CpuCount { available: cpus, online: cpus }),
            cpu_description: some(&machine.cpu_model),
            cpu_id: some(&machine.cpu_identity),
            command_line: self.metadata.command_line.clone(),
            ..Features::default()
        }
    }
}

/// Whom a record of tasks or code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Subject {
    pid: u32,
    /// The process that this one was forked off, where the record tells of that.
    parent: Option<u32>,
}

impl Subject {
    /// `None` of records that are about no process.
    fn of(record: &[u8]) -> Option<Self> {
        use record_type::{COMM, EXIT, FORK, MMAP, MMAP2};
        let number = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let kind = number(0).filter(|kind| matches!(*kind, MMAP | MMAP2 | COMM | FORK | EXIT))?;
        // What the kernel maps is in all of them.
        let mode = u16::from(*record.get(4)?) & misc::CPUMODE_MASK;
        if matches!(kind, MMAP | MMAP2) && !matches!(mode, misc::USER | misc::GUEST_USER) {
            return None;
        }
        let (pid, parent) = (number(RECORD_HEADER_SIZE)?, number(RECORD_HEADER_SIZE + 4)?);
        Some(Self { pid, parent: (kind == FORK && parent != pid).then_some(parent) })
    }
}

fn is_state(kind: u32) -> bool {
    use record_type::{CGROUP, COMM, EXIT, FORK, KSYMBOL, MMAP, MMAP2};
    matches!(kind, MMAP | MMAP2 | COMM | FORK | EXIT | KSYMBOL | CGROUP)
}

#[cfg(test)]
mod tests {
    use perf_data::encode::{MappingFields, SampleFields, SampleId};
    use perf_data::record::CpuMode;

    use super::*;
    use crate::analyze::fixture::{PERIOD, SAMPLE_TYPE, file_with, metadata};
    use crate::analyze::{Options, analyze};
    use crate::profile::Cell;

    /// All processes that the records of a window are about.
    fn told(cut: &Cut) -> BTreeSet<u32> {
        let mut records = cut.recording.records();
        let mut pids = BTreeSet::new();
        while let Some((_, _, record)) = records.next().expect("as written") {
            match record {
                Record::Fork(change) | Record::Exit(change) => pids.extend([change.pid]),
                Record::Comm { pid, .. } => pids.extend([pid]),
                _ => {}
            }
        }
        pids
    }

    #[test]
    fn a_window_tells_of_what_was_sampled_and_of_what_that_came_from() {
        // 50 is sampled. It comes from 300, and that from 200; 700 and what comes from it left no sample.
        let file = file_with(
            &vec![vec![1]; 120],
            metadata(),
            |_| true,
            |time, records| {
                let id = |pid: u32| SampleId { pid, tid: pid, time, cpu: 0, id: 1 };
                // The child's ring comes first.
                for (child, parent) in [(50, 300), (300, 200), (700, 200), (701, 700)] {
                    encode::fork((child, child), (parent, parent), &id(parent), records).expect("short");
                    encode::comm(child, child, b"name", true, &id(child), records).expect("short");
                }
            },
        );
        let whole = Recording::from_bytes(file.clone()).expect("a recording");
        let mut windows = Windows::new(whole, CutOptions::default()).expect("eprof's");
        let place = Recording::from_bytes(file.clone()).expect("a recording").perf_data().data_range();
        windows.push(&file[place.start as usize..place.end as usize]);
        let cut = windows.finish().expect("a window").expect("a window");
        assert_eq!(told(&cut), BTreeSet::from([50, 300]));
    }

    /// Of each window, the code that samples of process 61 lie in, and what that process is called.
    fn code_of_the_child(file: &[u8], most_bytes: usize) -> Vec<Option<(String, String)>> {
        let whole = Recording::from_bytes(file.to_vec()).expect("a recording");
        let place = whole.perf_data().data_range();
        let mut windows =
            Windows::new(whole, CutOptions { most_bytes, ..CutOptions::default() }).expect("eprof's");
        let mut cuts = Vec::new();
        for record in file[place.start as usize..place.end as usize].chunks(4_096) {
            windows.push(record);
            cuts.extend(std::iter::from_fn(|| windows.next_window().expect("a window")));
        }
        cuts.extend(windows.finish().expect("a window"));
        let code = |cut: &Cut| {
            let options = Options { counted: Some(cut.counted), ..Options::default() };
            let profile = analyze(&cut.recording, &options);
            let of_child = |cell: &&Cell| profile.threads[cell.thread.0 as usize].pid == 61;
            let cell = profile.cells.iter().find(of_child)?;
            let address = profile.stacks.innermost(cell.stack).expect("a frame");
            let module = profile.addresses[address.0 as usize].module;
            let process = profile.threads[cell.thread.0 as usize].process_name.clone();
            Some((process, profile.modules[module.0 as usize].path.clone()))
        };
        cuts.iter().map(code).collect()
    }

    /// A server that forks workers, which never `exec`: it runs no more itself, and was told of before the window began or in it.
    #[test]
    fn a_child_without_a_program_of_its_own_runs_its_parents_code() {
        const BEGIN: u64 = 1_000_000_000;
        const CONTEXT_USER: u64 = -512i64 as u64;
        let file = file_with(
            &vec![vec![1]; 2_000],
            metadata(),
            |_| true,
            |time, records| {
                let id = |pid: u32| SampleId { pid, tid: pid, time, cpu: 0, id: 1 };
                let since = time.as_nanos() - BEGIN;
                if since == 0 {
                    encode::comm(60, 60, b"server", true, &id(60), records).expect("short");
                    let fields = MappingFields {
                        pid: 60,
                        tid: 60,
                        addresses: 0x1000..0x5000,
                        file_offset: 0,
                        inode: (8, 1, 5),
                        protection: 5,
                        flags: 2,
                        path: b"/bin/server",
                    };
                    encode::mmap2(&fields, &id(60), records).expect("short");
                }
                // Readings are 20 ms apart.
                if (600_000_000..620_000_000).contains(&since) {
                    encode::fork((61, 61), (60, 60), &id(60), records).expect("short");
                }
                if since >= 620_000_000 {
                    let fields = SampleFields {
                        id: 1,
                        ip: 0x1010,
                        mode: CpuMode::User,
                        pid: 61,
                        tid: 61,
                        time,
                        cpu: 0,
                        period: PERIOD,
                        callchain: &[CONTEXT_USER, 0x1010],
                        raw: &[],
                    };
                    encode::sample(SAMPLE_TYPE, &fields, records).expect("short");
                }
            },
        );
        let expected = ("server".to_owned(), "/bin/server".to_owned());
        // All in one window, and a window of a tenth of a second each.
        for (most_bytes, least) in [(1 << 30, 1), (20_000, 3)] {
            let found = code_of_the_child(&file, most_bytes);
            let of_child: Vec<_> = found.iter().flatten().collect();
            assert!(of_child.len() >= least, "{found:?}");
            assert!(of_child.iter().all(|found| **found == expected), "{found:?}");
        }
    }

    #[test]
    fn what_the_kernel_maps_is_of_all() {
        let record = |kind: u32, mode: u16| {
            let words = [kind.to_le_bytes(), [mode as u8, 0, 24, 0], 7u32.to_le_bytes(), 8u32.to_le_bytes()];
            words.as_flattened().to_vec()
        };
        let of = |kind, mode| Subject::of(&record(kind, mode));
        let (process, child) = (Subject { pid: 7, parent: None }, Subject { pid: 7, parent: Some(8) });
        assert_eq!(of(record_type::MMAP2, misc::USER), Some(process));
        assert_eq!(of(record_type::MMAP2, 1), None);
        assert_eq!(of(record_type::FORK, 0), Some(child));
        assert_eq!(of(record_type::EXIT, 0), Some(process));
        assert_eq!(of(record_type::KSYMBOL, 0), None);
        assert_eq!(Subject::of(&record(record_type::COMM, 0)[..12]), None);
    }
}

//! What is known of the tasks that live: told to each window when it begins, as a recorder tells what it finds running.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use perf_data::encode::{self, RecordTooLong, SampleId};
use perf_data::format::record_type;
use perf_data::record::{CpuMode, Mmap, Record, TaskChange};
use perf_data::{RawRecord, Timestamp};
use rustc_hash::FxHashMap;

/// The pid of the kernel's own mappings.
pub(super) const KERNEL_PID: u32 = u32::MAX;
/// Where records that map have process and thread.
const IDS_AT: usize = 8;
/// Where their trailers have them, and the time behind: from the end.
const TRAILER: usize = 32;
/// Mappings of a process that are kept. Just-in-time compilers map for ever, and nobody tells what was unmapped.
const MOST_MAPPINGS: usize = 8_192;
/// Names of threads of a process that are kept: where the ends of threads are lost, nobody tells that they are gone.
const MOST_NAMES: usize = 16_384;
/// Processes that are kept; with more, those that ended unseen make room first.
const MOST_PROCESSES: usize = 65_536;
/// Longest chain of parents.
const DEEPEST: usize = 1_000;
/// Functions and modules of the kernel, and control groups, that are kept of each.
const MOST_OF_KERNEL: usize = 65_536;

/// Tasks and their code at one time.
#[derive(Debug, Default)]
pub struct KnownTasks {
    processes: FxHashMap<u32, Process>,
    /// The kernel's mappings, functions and control groups: records by what each one is about.
    kernel: BTreeMap<(u32, u64), Arc<[u8]>>,
    /// Processes that are never forgotten: what was recorded is told by who descends from them.
    targets: BTreeSet<u32>,
    /// Counts what was seen, to know what has not been for long.
    clock: u64,
}

#[derive(Debug, Clone, Default)]
struct Process {
    parent: u32,
    names: BTreeMap<u32, Arc<[u8]>>,
    /// By start: end, and the record.
    mappings: BTreeMap<u64, (u64, Arc<[u8]>)>,
    seen: u64,
}

impl KnownTasks {
    /// Of a recording of these processes; none where everything was recorded.
    pub fn new(targets: impl IntoIterator<Item = u32>) -> Self {
        Self { targets: targets.into_iter().collect(), ..Self::default() }
    }

    /// Whether control groups and functions of the kernel that are new find no room. Those that are gone are not told, and
    /// keep theirs.
    pub fn is_full(&self) -> bool {
        self.kernel.len() >= MOST_OF_KERNEL
    }

    /// How much is known: of processes, of their threads' names, and of mappings and what else lies in them.
    pub fn sizes(&self) -> [usize; 3] {
        let names = self.processes.values().map(|process| process.names.len()).sum();
        let mappings = self.processes.values().map(|process| process.mappings.len()).sum::<usize>();
        [self.processes.len(), names, mappings + self.kernel.len()]
    }

    /// A record that says something of tasks, in the order of time; `bytes` are all of it.
    pub fn record(&mut self, record: &Record<'_>, raw: &RawRecord<'_>, bytes: &[u8]) {
        match record {
            Record::Mmap(mapping) => self.map(mapping, bytes),
            Record::Comm { pid, tid, name, exec } => self.rename(*pid, *tid, name, *exec),
            Record::Fork(change) => self.fork(change),
            Record::Exit(change) => self.exit(change),
            Record::Ksymbol { address, unregistered: true, .. } => {
                self.kernel.remove(&(raw.kind, *address));
            }
            Record::Ksymbol { address, .. } => self.keep_of_kernel(raw.kind, *address, bytes),
            Record::Cgroup { id, .. } => self.keep_of_kernel(raw.kind, *id, bytes),
            _ => {}
        }
    }

    /// A sample of a process: it lives.
    pub fn sampled(&mut self, pid: u32) {
        self.clock += 1;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.seen = self.clock;
        }
    }

    /// Appends what is known of these processes and of their ancestors, in records of the event `id` without a time.
    ///
    /// # Errors
    /// None: what is told was a record before.
    pub fn describe(&self, pids: &BTreeSet<u32>, id: u64, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        for record in self.kernel.values() {
            push_without_time(record, None, out);
        }
        let mut told = BTreeSet::new();
        for &pid in pids {
            let mut chain = Vec::new();
            let mut next = pid;
            while let Some(process) = self.processes.get(&next)
                && chain.len() < DEEPEST
                && told.insert(next)
            {
                chain.push((next, process));
                next = process.parent;
            }
            for (pid, process) in chain.into_iter().rev() {
                let with_code = pids.contains(&pid);
                process.describe(pid, with_code, id, out)?;
            }
        }
        Ok(())
    }

    fn keep_of_kernel(&mut self, kind: u32, what: u64, bytes: &[u8]) {
        let kind = if kind == record_type::MMAP { record_type::MMAP2 } else { kind };
        if self.kernel.len() < MOST_OF_KERNEL || self.kernel.contains_key(&(kind, what)) {
            self.kernel.insert((kind, what), Arc::from(bytes));
        }
    }

    fn map(&mut self, mapping: &Mmap<'_>, bytes: &[u8]) {
        if mapping.pid == KERNEL_PID || matches!(mapping.mode, CpuMode::Kernel | CpuMode::GuestKernel) {
            self.keep_of_kernel(record_type::MMAP2, mapping.address, bytes);
            return;
        }
        let (start, end) = (mapping.address, mapping.address.saturating_add(mapping.length));
        let process = self.process(mapping.pid);
        // What it covers is not there any more; what it covers in part still is beside it, as later mappings win.
        let inside = process.mappings.range(start..end).filter(|(_, (its, _))| *its <= end);
        let covered: Vec<u64> = inside.map(|(start, _)| *start).collect();
        covered.into_iter().for_each(|start| drop(process.mappings.remove(&start)));
        process.mappings.insert(start, (end, Arc::from(bytes)));
        if process.mappings.len() > MOST_MAPPINGS {
            process.mappings.pop_first();
        }
    }

    fn rename(&mut self, pid: u32, tid: u32, name: &[u8], exec: bool) {
        let process = self.process(pid);
        if exec {
            process.mappings.clear();
            process.names.clear();
        }
        process.name(pid, tid, Arc::from(name));
    }

    fn fork(&mut self, change: &TaskChange) {
        let TaskChange { pid, tid, parent_pid, parent_tid } = *change;
        let of_parent = self.processes.get(&parent_pid);
        let name = of_parent.and_then(|parent| {
            parent.names.get(&parent_tid).or_else(|| parent.names.get(&parent_pid)).cloned()
        });
        if pid != parent_pid {
            let mappings = of_parent.map(|parent| parent.mappings.clone()).unwrap_or_default();
            let process = Process { parent: parent_pid, mappings, ..Process::default() };
            *self.process(pid) = process;
        }
        self.clock += 1;
        let seen = self.clock;
        let process = self.process(pid);
        process.seen = seen;
        if let Some(name) = name {
            process.name(pid, tid, name);
        }
    }

    fn exit(&mut self, change: &TaskChange) {
        let Some(process) = self.processes.get_mut(&change.pid) else { return };
        process.names.remove(&change.tid);
        if process.names.is_empty() && !self.targets.contains(&change.pid) {
            self.forget(change.pid);
        }
    }

    /// Forgets a process. Its children descend from whom it descended from.
    fn forget(&mut self, pid: u32) {
        let Some(gone) = self.processes.remove(&pid) else { return };
        for child in self.processes.values_mut().filter(|child| child.parent == pid) {
            child.parent = gone.parent;
        }
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            let others = self.processes.iter().filter(|(pid, _)| !self.targets.contains(pid));
            if let Some(oldest) = others.min_by_key(|(_, process)| process.seen).map(|(pid, _)| *pid) {
                self.forget(oldest);
            }
        }
        self.processes.entry(pid).or_default()
    }
}

impl Process {
    /// The name of a thread. The main one's is never given up for others.
    fn name(&mut self, pid: u32, tid: u32, name: Arc<[u8]>) {
        self.names.insert(tid, name);
        if self.names.len() > MOST_NAMES {
            let lowest = self.names.keys().copied().find(|known| *known != pid && *known != tid);
            lowest.and_then(|lowest| self.names.remove(&lowest));
        }
    }

    fn describe(&self, pid: u32, with_code: bool, id: u64, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        let sample_id = |tid| SampleId { pid, tid, time: Timestamp::default(), cpu: 0, id };
        encode::fork((pid, pid), (self.parent, self.parent), &sample_id(pid), out)?;
        if let Some(name) = self.names.get(&pid) {
            encode::comm(pid, pid, name, false, &sample_id(pid), out)?;
        }
        if !with_code {
            return Ok(());
        }
        for (_, record) in self.mappings.values() {
            push_without_time(record, Some(pid), out);
        }
        for (tid, name) in self.names.iter().filter(|(tid, _)| **tid != pid) {
            encode::fork((pid, *tid), (pid, pid), &sample_id(*tid), out)?;
            encode::comm(pid, *tid, name, false, &sample_id(*tid), out)?;
        }
        Ok(())
    }
}

/// Appends a record as if its recorder had made it up of what was there before: without a time. A mapping that a process
/// has from its parent is said to be its own.
fn push_without_time(record: &[u8], owner: Option<u32>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(record);
    let Some(trailer) = record.len().checked_sub(TRAILER) else { return };
    // Process, thread; time; CPU; event: the fields of all trailers that eprof records.
    out[start + trailer + 8..start + trailer + 16].fill(0);
    if let Some(pid) = owner {
        for at in [IDS_AT, IDS_AT + 4, trailer, trailer + 4] {
            out[start + at..start + at + 4].copy_from_slice(&pid.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use perf_data::RecordPosition;
    use perf_data::encode::MappingFields;

    use super::*;
    use crate::analyze::fixture::recording_of_stacks;
    use crate::recording::Recording;

    /// Records as the recorder's file has them, given to `tasks` one by one.
    fn tell(tasks: &mut KnownTasks, recording: &Recording, mut records: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while records.len() >= 8 {
            let (bytes, rest) = records.split_at(usize::from(u16::from_le_bytes([records[6], records[7]])));
            let raw = RawRecord {
                position: RecordPosition::default(),
                offset: 0,
                kind: u32::from(bytes[0]),
                misc: u16::from_le_bytes([bytes[4], bytes[5]]),
                body: &bytes[8..],
            };
            let context = recording.decoder().context(&raw);
            let record = recording.decoder().decode(&raw, &context).expect("well made");
            tasks.record(&record, &raw, bytes);
            all.push(bytes.to_vec());
            records = rest;
        }
        all
    }

    fn id(pid: u32) -> SampleId {
        SampleId { pid, tid: pid, time: Timestamp::from_nanos(5), cpu: 0, id: 1 }
    }

    fn mapping(pid: u32, start: u64, path: &[u8], out: &mut Vec<u8>) {
        let fields = MappingFields {
            pid,
            tid: pid,
            addresses: start..start + 0x1000,
            file_offset: 0,
            inode: (8, 1, 5),
            protection: 5,
            flags: 2,
            path,
        };
        encode::mmap2(&fields, &id(pid), out).expect("short");
    }

    #[test]
    fn a_child_has_its_parents_code_and_name_when_the_parent_is_gone() {
        let recording = recording_of_stacks(&[]);
        let mut tasks = KnownTasks::new([10]);
        let mut records = Vec::new();
        encode::fork((10, 10), (1, 1), &id(10), &mut records).expect("short");
        encode::comm(10, 10, b"first", true, &id(10), &mut records).expect("short");
        mapping(10, 0x1000, b"/bin/first", &mut records);
        encode::fork((20, 20), (10, 10), &id(10), &mut records).expect("short");
        encode::fork((30, 30), (20, 20), &id(20), &mut records).expect("short");
        tell(&mut tasks, &recording, &records);
        tasks.exit(&TaskChange { pid: 20, tid: 20, parent_pid: 10, parent_tid: 10 });
        assert_eq!(tasks.sizes()[0], 2, "the target and the grandchild");

        let mut described = Vec::new();
        tasks.describe(&BTreeSet::from([30]), 1, &mut described).expect("short");
        let mut other = KnownTasks::default();
        let told = tell(&mut other, &recording, &described);
        assert_eq!(told.iter().map(|record| record[0]).collect::<Vec<_>>(), [7, 3, 7, 3, 10]);
        assert!(told[4].windows(10).any(|bytes| bytes == b"/bin/first"));
        let child = &other.processes[&30];
        assert_eq!((child.parent, &*child.names[&30]), (10, &b"first"[..]));
        assert_eq!(child.mappings.len(), 1);
        let raw = |record: &[u8]| {
            recording.decoder().time(&RawRecord {
                position: RecordPosition::default(),
                offset: 0,
                kind: record[0].into(),
                misc: 0,
                body: &record[8..],
            })
        };
        assert!(told.iter().all(|record| raw(record).is_none()), "they have no time");
    }

    #[test]
    fn short_processes_and_mappings_upon_each_other_leave_nothing() {
        let recording = recording_of_stacks(&[]);
        let mut tasks = KnownTasks::new([10]);
        for round in 0..5_000u32 {
            let mut records = Vec::new();
            let pid = 100 + round;
            encode::fork((pid, pid), (10, 10), &id(10), &mut records).expect("short");
            mapping(10, 0x1000 * u64::from(round % 7), b"//anon", &mut records);
            tell(&mut tasks, &recording, &records);
            tasks.exit(&TaskChange { pid, tid: pid, parent_pid: 10, parent_tid: 10 });
        }
        // A child without a name ends as well.
        assert!(tasks.sizes()[0] <= 2, "{:?}", tasks.sizes());
        assert_eq!(tasks.processes[&10].mappings.len(), 7);
    }

    #[test]
    fn threads_whose_ends_were_lost_do_not_pile_up() {
        let mut tasks = KnownTasks::new([10]);
        tasks.rename(10, 10, b"main", false);
        for tid in 11..3 * MOST_NAMES as u32 {
            tasks.rename(10, tid, b"worker", false);
        }
        let names = &tasks.processes[&10].names;
        assert_eq!(names.len(), MOST_NAMES);
        assert!(names.contains_key(&10) && names.contains_key(&(3 * MOST_NAMES as u32 - 1)));
    }
}

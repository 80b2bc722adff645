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
/// Names of threads of a process that are kept. Each window tells all of them, and each profile has them.
const MOST_NAMES: usize = 16_384;
/// With more names of a process than these it is asked which of the threads are there: where the ends of threads are lost, nobody tells
/// that they are gone.
const NAMES_ASKED_FROM: usize = 1_024;
/// Processes that are kept; with more, those that nothing was heard of for longest make room.
const MOST_PROCESSES: usize = 65_536;
/// Of them so many of a hundred go at once: to find the oldest takes a look at all.
const PER_CENT_THAT_GO: usize = 12;
/// With more processes than these it is asked which of them are there: where a ring was full, the ends of some were lost.
const ASKED_FROM: usize = 4_096;
/// Longest chain of parents.
const DEEPEST: usize = 1_000;
/// Functions and modules of the kernel, and control groups, that are kept of each.
const MOST_OF_KERNEL: usize = 65_536;

/// Tasks and their code at one time.
#[derive(Debug)]
pub struct KnownTasks {
    processes: FxHashMap<u32, Process>,
    /// How many processes have this one for a parent, whether that is known or not; without those that have none.
    children: FxHashMap<u32, u32>,
    /// The kernel's mappings, functions and control groups: records by what each one is about.
    kernel: BTreeMap<(u32, u64), Arc<[u8]>>,
    /// Processes that are never forgotten: what was recorded is told by who descends from them.
    targets: BTreeSet<u32>,
    /// Counts what was seen, to know what has not been for long.
    clock: u64,
    /// Whether a process is there, by its number.
    is_alive: fn(u32) -> bool,
    /// The number of processes at which that is asked the next time, and when it was asked last.
    ask_at: usize,
    asked: u64,
}

#[derive(Debug, Clone, Default)]
struct Process {
    parent: u32,
    names: BTreeMap<u32, Name>,
    /// The number of names at which it is asked which of the threads are there, if that is more than the least; and when it was asked last.
    ask_names_at: usize,
    names_asked: u64,
    /// A child has its parent's, until one of them maps something else.
    mappings: Arc<Mappings>,
    seen: u64,
}

/// What a thread is called, and since when.
#[derive(Debug, Clone)]
struct Name {
    text: Arc<[u8]>,
    since: u64,
}

/// By start: end, and the record.
type Mappings = BTreeMap<u64, (u64, Arc<[u8]>)>;

impl KnownTasks {
    /// Of a recording of these processes; none where everything was recorded.
    pub fn new(targets: impl IntoIterator<Item = u32>, is_alive: fn(u32) -> bool) -> Self {
        Self {
            processes: FxHashMap::default(),
            children: FxHashMap::default(),
            kernel: BTreeMap::new(),
            targets: targets.into_iter().collect(),
            clock: 0,
            is_alive,
            ask_at: ASKED_FROM,
            asked: 0,
        }
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
        let mappings = Arc::make_mut(&mut self.process(mapping.pid).mappings);
        // What it covers is not there any more; what it covers in part still is beside it, as later mappings win.
        let inside = mappings.range(start..end).filter(|(_, (its, _))| *its <= end);
        let covered: Vec<u64> = inside.map(|(start, _)| *start).collect();
        covered.into_iter().for_each(|start| drop(mappings.remove(&start)));
        mappings.insert(start, (end, Arc::from(bytes)));
        if mappings.len() > MOST_MAPPINGS {
            mappings.pop_first();
        }
    }

    fn rename(&mut self, pid: u32, tid: u32, name: &[u8], exec: bool) {
        let process = self.process(pid);
        if exec {
            process.mappings = Arc::default();
            process.names.clear();
        }
        self.name(pid, tid, Arc::from(name));
    }

    fn fork(&mut self, change: &TaskChange) {
        let TaskChange { pid, tid, parent_pid, parent_tid } = *change;
        let of_parent = self.processes.get(&parent_pid);
        let name = of_parent.and_then(|parent| {
            let name = parent.names.get(&parent_tid).or_else(|| parent.names.get(&parent_pid));
            name.map(|name| name.text.clone())
        });
        if pid != parent_pid {
            let mappings = of_parent.map(|parent| parent.mappings.clone()).unwrap_or_default();
            self.process(pid);
            self.set_parent(pid, parent_pid);
            let process = self.process(pid);
            (process.mappings, process.names) = (mappings, BTreeMap::new());
        }
        self.process(pid);
        if let Some(name) = name {
            self.name(pid, tid, name);
        }
    }

    /// The name of a thread of a process that is known.
    fn name(&mut self, pid: u32, tid: u32, text: Arc<[u8]>) {
        let (since, is_alive) = (self.clock, self.is_alive);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.name(pid, tid, Name { text, since }, is_alive);
        }
    }

    fn exit(&mut self, change: &TaskChange) {
        let Some(process) = self.processes.get_mut(&change.pid) else { return };
        process.names.remove(&change.tid);
        if process.names.is_empty() && !self.targets.contains(&change.pid) {
            self.forget(&[change.pid]);
        }
    }

    /// Forgets processes. Their children descend from whom they descended from.
    fn forget(&mut self, pids: &[u32]) {
        let gone: FxHashMap<u32, u32> = pids
            .iter()
            .filter_map(|pid| Some((*pid, self.processes.remove(pid)?.parent)))
            .inspect(|(_, parent)| remove_child(&mut self.children, *parent))
            .collect();
        // Nearly all that end have none left, and there may be ten thousands to look at.
        if !gone.keys().any(|pid| self.children.contains_key(pid)) {
            return;
        }
        for child in self.processes.values_mut().filter(|child| gone.contains_key(&child.parent)) {
            let before = child.parent;
            for _ in 0..DEEPEST {
                let Some(&next) = gone.get(&child.parent) else { break };
                child.parent = next;
            }
            remove_child(&mut self.children, before);
            *self.children.entry(child.parent).or_default() += 1;
        }
    }

    /// The process, which was heard of now.
    fn process(&mut self, pid: u32) -> &mut Process {
        if !self.processes.contains_key(&pid) {
            self.make_room();
            *self.children.entry(Process::default().parent).or_default() += 1;
        }
        self.clock += 1;
        let process = self.processes.entry(pid).or_default();
        process.seen = self.clock;
        process
    }

    fn set_parent(&mut self, pid: u32, parent: u32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let before = std::mem::replace(&mut process.parent, parent);
        remove_child(&mut self.children, before);
        *self.children.entry(parent).or_default() += 1;
    }

    /// Forgets processes that have ended, and if there are too many all the same, those that nothing was heard of for longest.
    fn make_room(&mut self) {
        if self.processes.len() >= self.ask_at {
            let (asked, is_alive) = (self.asked, self.is_alive);
            // Of those that were heard of since, more may be to come that is not read yet.
            let silent = self.others().filter(|(_, process)| process.seen <= asked);
            let ended: Vec<u32> = silent.map(|(pid, _)| pid).filter(|pid| !is_alive(*pid)).collect();
            self.forget(&ended);
            self.asked = self.clock;
            self.ask_at = ASKED_FROM.max(self.processes.len() + self.processes.len() / 2);
        }
        if self.processes.len() >= MOST_PROCESSES {
            let mut oldest: Vec<(u64, u32)> =
                self.others().map(|(pid, process)| (process.seen, pid)).collect();
            oldest.sort_unstable();
            oldest.truncate(MOST_PROCESSES * PER_CENT_THAT_GO / 100);
            self.forget(&oldest.into_iter().map(|(_, pid)| pid).collect::<Vec<_>>());
        }
    }

    /// All but those that are never forgotten.
    fn others(&self) -> impl Iterator<Item = (u32, &Process)> {
        let others = self.processes.iter().filter(|(pid, _)| !self.targets.contains(pid));
        others.map(|(pid, process)| (*pid, process))
    }
}

fn remove_child(children: &mut FxHashMap<u32, u32>, parent: u32) {
    if let Some(count) = children.get_mut(&parent) {
        *count -= 1;
        if *count == 0 {
            children.remove(&parent);
        }
    }
}

impl Process {
    /// The name of a thread. The main one's is never given up for others.
    fn name(&mut self, pid: u32, tid: u32, name: Name, is_alive: fn(u32) -> bool) {
        let now = name.since;
        self.names.insert(tid, name);
        if self.names.len() >= self.ask_names_at.max(NAMES_ASKED_FROM) {
            // Of those that came since, more may be to come that is not read yet.
            let asked = self.names_asked;
            self.names.retain(|known, name| *known == pid || name.since > asked || is_alive(*known));
            self.names_asked = now;
            self.ask_names_at = self.names.len() + self.names.len() / 2;
        }
        if self.names.len() > MOST_NAMES {
            let lowest = self.names.keys().copied().find(|known| *known != pid && *known != tid);
            lowest.and_then(|lowest| self.names.remove(&lowest));
        }
    }

    fn describe(&self, pid: u32, with_code: bool, id: u64, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        let sample_id = |tid| SampleId { pid, tid, time: Timestamp::default(), cpu: 0, id };
        encode::fork((pid, pid), (self.parent, self.parent), &sample_id(pid), out)?;
        if let Some(name) = self.names.get(&pid) {
            encode::comm(pid, pid, &name.text, false, &sample_id(pid), out)?;
        }
        if !with_code {
            return Ok(());
        }
        for (_, record) in self.mappings.values() {
            push_without_time(record, Some(pid), out);
        }
        for (tid, name) in self.names.iter().filter(|(tid, _)| **tid != pid) {
            encode::fork((pid, *tid), (pid, pid), &sample_id(*tid), out)?;
            encode::comm(pid, *tid, &name.text, false, &sample_id(*tid), out)?;
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
        let mut tasks = KnownTasks::new([10], |_| true);
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
        let mut other = KnownTasks::new([], |_| true);
        let told = tell(&mut other, &recording, &described);
        assert_eq!(told.iter().map(|record| record[0]).collect::<Vec<_>>(), [7, 3, 7, 3, 10]);
        assert!(told[4].windows(10).any(|bytes| bytes == b"/bin/first"));
        let child = &other.processes[&30];
        assert_eq!((child.parent, &*child.names[&30].text), (10, &b"first"[..]));
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
        let mut tasks = KnownTasks::new([10], |_| true);
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
        let mut tasks = KnownTasks::new([10], |_| true);
        tasks.rename(10, 10, b"main", false);
        for tid in 11..3 * MOST_NAMES as u32 {
            tasks.rename(10, tid, b"worker", false);
        }
        let names = &tasks.processes[&10].names;
        assert_eq!(names.len(), MOST_NAMES);
        assert!(names.contains_key(&10) && names.contains_key(&(3 * MOST_NAMES as u32 - 1)));
    }

    #[test]
    fn threads_whose_ends_were_lost_go_when_they_are_not_there() {
        const LIVES: u32 = 10_000_000;
        let mut tasks = KnownTasks::new([10], |tid| tid >= LIVES);
        tasks.rename(10, 10, b"main", false);
        for number in 0..100u32 {
            tasks.rename(10, LIVES + number, b"stays", false);
        }
        for tid in 11..20 * NAMES_ASKED_FROM as u32 {
            tasks.rename(10, tid, b"worker", false);
            let names = &tasks.processes[&10].names;
            assert!(names.len() <= 3 * NAMES_ASKED_FROM, "{}", names.len());
            assert!(names.contains_key(&tid), "it came just now");
        }
        let names = &tasks.processes[&10].names;
        assert!(names.contains_key(&10), "the main one is not asked for");
        assert!((0..100).all(|number| names.contains_key(&(LIVES + number))));
    }

    /// Of a thousand processes a second some ends are lost.
    #[test]
    fn processes_whose_ends_were_lost_go_when_they_are_not_there() {
        const LIVES: u32 = 10_000_000;
        let mut tasks = KnownTasks::new([10], |pid| pid >= LIVES);
        let fork = |pid, parent| TaskChange { pid, tid: pid, parent_pid: parent, parent_tid: parent };
        for number in 0..100u32 {
            tasks.fork(&fork(LIVES + number, 10));
        }
        // One of them comes from a process whose end is lost.
        tasks.fork(&fork(20, 10));
        tasks.fork(&fork(LIVES + 100, 20));
        for pid in 100..10 * ASKED_FROM as u32 {
            tasks.fork(&fork(pid, 10));
            assert!(tasks.sizes()[0] <= 2 * ASKED_FROM, "{:?}", tasks.sizes());
        }
        assert!((0..=100).all(|number| tasks.processes.contains_key(&(LIVES + number))));
        assert_eq!(tasks.processes[&(LIVES + 100)].parent, 10, "what came from whom is still known");
        let by_parent = |pid: u32| tasks.processes.values().filter(|process| process.parent == pid).count();
        for (parent, count) in &tasks.children {
            assert_eq!(by_parent(*parent), *count as usize, "children of {parent}");
        }
    }

    #[test]
    fn of_too_many_processes_that_live_those_go_that_were_silent_for_longest() {
        let mut tasks = KnownTasks::new([10], |_| true);
        let fork = |pid| TaskChange { pid, tid: pid, parent_pid: 10, parent_tid: 10 };
        tasks.rename(10, 10, b"target", true);
        tasks.fork(&fork(11));
        for pid in 100..2 * MOST_PROCESSES as u32 {
            tasks.fork(&fork(pid));
            tasks.sampled(11);
        }
        let [processes, ..] = tasks.sizes();
        assert!(processes <= MOST_PROCESSES && processes > MOST_PROCESSES * 8 / 10, "{processes}");
        assert!(tasks.processes.contains_key(&10) && tasks.processes.contains_key(&11));
    }
}

//! Threads that find the keys of samples: what of them is looked up frame by frame.
//!
//! One thread finds records and brings them into the order of time, batch by batch. Each batch is one worker's, which finds the
//! keys of its samples; of the others' batches it looks at what tells of processes and their memory, so that every worker knows
//! what lies where at each time. The thread that gathers takes the batches in order, with the keys that were found.
//! It gives modules, addresses and callers the numbers that they would have if it had found all of it alone: results do not depend
//! on how many workers there are.
//!
//! ```text
//!   find, sort ──┬─► keys of batches 0, 3, 6 ─┐
//!                ├─► keys of batches 1, 4, 7 ─┼─► gather ─► attribute
//!                └─► keys of batches 2, 5, 8 ─┘     ▲
//!                └────────── batches ───────────────┘
//! ```
//!
//! With two CPUs there are no workers. Where stacks are sets of functions, another thread finds records nevertheless: the one that
//! attributes has so little to do that three threads keep two CPUs busy.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use perf_data::format::record_type;
use perf_data::record::{Record, RecordContext, Sample};
use perf_data::{Decoder, RecordPosition, RecordsInFile};

use crate::analyze::aggregate::collect::Collector;
use crate::analyze::aggregate::found_keys::{FoundKeys, KnownNumbers};
use crate::analyze::aggregate::jit::JitFunctions;
use crate::analyze::aggregate::replay::{Batch, Replay};
use crate::analyze::aggregate::unwind::{SampleUnwinder, unwound};
use crate::analyze::aggregate::whose::Whose;
use crate::analyze::events::{EventRole, EventRoles};
use crate::profile::HiddenCallers;
use crate::timeline::Tasks;

/// More do not help: what the thread that gathers has left to do takes as long.
const MOST_WORKERS: usize = 6;
/// What the paths may take that a worker remembers, to tell them by number: little enough to stay in its CPU's cache, mostly.
pub(super) const BYTES_OF_WORKER: usize = 2 << 20;
/// So many records in a row are worth handing to another thread. Tests have few records, and are to have many batches.
const BATCH: usize = if cfg!(test) { 50 } else { 1 << 12 };
/// Batches that a worker may be ahead.
const AHEAD: usize = 2;

/// For so many bytes that call paths may take there may be one worker, which takes less than a tenth of it. Tests have small
/// tables.
const BYTES_FOR_ONE: usize = if cfg!(test) { 100 } else { 64 << 20 };

/// How many workers go with so many threads, where call paths may take so many bytes: one thread gathers and one attributes, which keeps
/// two CPUs busy.
pub(super) fn workers(threads: usize, most_bytes: usize) -> usize {
    threads.saturating_sub(2).min(MOST_WORKERS).min(most_bytes / BYTES_FOR_ONE)
}

/// What a record tells of processes and their memory.
pub(super) fn follow(record: &Record<'_>, tasks: &mut Tasks, jit: &mut JitFunctions) {
    match record {
        Record::Mmap(mmap) => {
            tasks.map(mmap);
            jit.mapped(mmap.path);
        }
        Record::Comm { pid, tid, name, exec } => tasks.rename(*pid, *tid, name, *exec),
        Record::Fork(change) => tasks.fork(change),
        Record::Ksymbol { address, length, unregistered: false, name } => {
            tasks.kernel_symbol(*address, *length, name);
        }
        Record::Cgroup { id, path } => tasks.name_cgroup(*id, path),
        _ => {}
    }
}

/// Finds the keys of samples.
pub(super) struct KeyFinder<'r> {
    pub decoder: &'r Decoder,
    pub records: RecordsInFile<'r>,
    pub roles: &'r EventRoles,
    pub whose: Whose<'r>,
    pub tasks: Tasks,
    pub jit: JitFunctions,
    pub collector: Collector,
    pub unwinder: Option<SampleUnwinder>,
    pub told: KnownNumbers,
}

/// What a worker is to look at.
struct Work {
    positions: Arc<Vec<RecordPosition>>,
    /// The keys of its samples are asked for.
    is_own: bool,
}

impl KeyFinder<'_> {
    fn keys(&mut self, positions: &[RecordPosition]) -> FoundKeys {
        let mut found = self.collector.begin_keys();
        let mut record = Record::FinishedRound;
        for &at in positions {
            let Some(raw) = self.records.get(at) else { continue };
            let context = self.decoder.context(&raw);
            // Whoever gathers counts what cannot be decoded.
            if self.decoder.decode_into(&raw, &context, &mut record).is_err() {
                continue;
            }
            self.advance(&context);
            match &record {
                Record::Sample(sample) => self.sample(&mut found, at, &context, sample),
                record => follow(record, &mut self.tasks, &mut self.jit),
            }
        }
        self.collector.end_keys(found, &mut self.told, &self.tasks)
    }

    fn sample(
        &mut self,
        found: &mut FoundKeys,
        at: RecordPosition,
        context: &RecordContext,
        sample: &Sample<'_>,
    ) {
        let role = self.roles.of(context.event.map(|event| event.0));
        let pid = context.pid.unwrap_or(0);
        if !matches!(role, Some(EventRole::Sampled(_)))
            || self.whose.charge_elsewhere(&self.tasks, pid).is_some()
        {
            return;
        }
        let task = self.tasks.task(pid, context.tid.unwrap_or(pid));
        let unwound = unwound(&mut self.unwinder, &self.tasks, task, sample);
        let key = self.collector.key(&mut self.tasks, task, sample, unwound);
        self.collector.found(found, &self.told, at, key);
    }

    /// Looks at what tells of processes alone.
    fn follow(&mut self, positions: &[RecordPosition]) {
        let records = self.records;
        for raw in positions.iter().filter_map(|at| records.get(*at)) {
            let context = self.decoder.context(&raw);
            if let Ok(record) = self.decoder.decode(&raw, &context) {
                self.advance(&context);
                follow(&record, &mut self.tasks, &mut self.jit);
            }
        }
    }

    fn advance(&mut self, context: &RecordContext) {
        if let Some(time) = context.time {
            self.jit.advance(time, &mut self.tasks);
        }
    }

    /// Works until there is no more, or nobody wants to know; how often callers were hidden.
    fn run(mut self, works: Receiver<Work>, keys: SyncSender<FoundKeys>) -> HiddenCallers {
        for Work { positions, is_own } in works {
            if !is_own {
                self.follow(&positions);
            } else if keys.send(self.keys(&positions)).is_err() {
                break;
            }
        }
        let unwound = self.unwinder.map(|unwinder| unwinder.hidden_callers()).unwrap_or_default();
        unwound.and(self.collector.hidden_callers())
    }
}

/// Where the walk stands when it is given back.
pub(super) struct Rest<'r> {
    pub replay: Replay<'r>,
    /// Found, but not handed on: it does not lie in the file as it is.
    pub batch: Option<Batch>,
    pub hidden_callers: HiddenCallers,
}

/// Walks on, in a thread of its own, while each of `finders`, of which there may be none, finds keys in another one. `take` is
/// given each batch in order, whose turn it is, and a way to ask for what that one found; it may ask no more from some batch on.
pub(super) fn with_workers<'r>(
    replay: Replay<'r>,
    records: RecordsInFile<'r>,
    finders: Vec<KeyFinder<'r>>,
    mut take: impl FnMut(&mut Batch, usize, &mut dyn FnMut() -> Option<FoundKeys>) -> bool,
) -> Rest<'r> {
    thread::scope(|scope| {
        let (mut works, mut keys, mut workers) = (Vec::new(), Vec::new(), Vec::new());
        for finder in finders {
            let (work_sender, work_receiver) = sync_channel(AHEAD * (MOST_WORKERS + 1));
            let (key_sender, key_receiver) = sync_channel(AHEAD);
            workers.push(scope.spawn(move || finder.run(work_receiver, key_sender)));
            works.push(work_sender);
            keys.push(Some(key_receiver));
        }
        let count = works.len();
        let (batch_sender, batches) = sync_channel(AHEAD * (count + 1));
        let scout = scope.spawn(move || scout(replay, records, &works, &batch_sender));
        let mut asks = true;
        for (number, mut batch) in batches.into_iter().enumerate() {
            let turn = number % count.max(1);
            let mut ask = || keys[turn].as_ref().and_then(|keys: &Receiver<FoundKeys>| keys.recv().ok());
            if !take(&mut batch, turn, &mut ask) && asks {
                // Workers whose keys nobody takes end.
                asks = false;
                keys.iter_mut().for_each(|keys| *keys = None);
            }
        }
        let (replay, batch) = scout.join().unwrap_or_else(|panic| resume_unwind(panic));
        drop(keys);
        let hidden =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let hidden_callers = hidden.fold(HiddenCallers::default(), HiddenCallers::and);
        Rest { replay, batch, hidden_callers }
    })
}

/// Finds records and hands them on, as long as they lie in the file as they are.
fn scout<'r>(
    mut replay: Replay<'r>,
    records: RecordsInFile<'r>,
    works: &[SyncSender<Work>],
    batches: &SyncSender<Batch>,
) -> (Replay<'r>, Option<Batch>) {
    for number in 0.. {
        let mut batch = Batch::default();
        if !replay.next_batch(&mut batch, BATCH) {
            break;
        }
        if replay.in_file().is_none() {
            return (replay, Some(batch));
        }
        hand_on(&batch, number, records, works);
        if batches.send(batch).is_err() {
            break;
        }
    }
    (replay, None)
}

/// Gives a batch to the worker whose turn it is, and what it tells of processes to the others.
fn hand_on(batch: &Batch, number: usize, records: RecordsInFile<'_>, works: &[SyncSender<Work>]) {
    if works.is_empty() {
        return;
    }
    let is_sample = |at: &RecordPosition| records.get(*at).is_some_and(|raw| raw.kind == record_type::SAMPLE);
    let of_processes: Arc<Vec<RecordPosition>> =
        Arc::new(batch.positions.iter().filter(|at| !is_sample(at)).copied().collect());
    for (worker, work) in works.iter().enumerate() {
        let is_own = number % works.len() == worker;
        let positions = if is_own { &batch.positions } else { &of_processes };
        // A worker ends when its keys are not asked for.
        let _ = work.send(Work { positions: Arc::clone(positions), is_own });
    }
}

#[cfg(test)]
#[path = "key_workers_tests.rs"]
mod tests;

//! A walk in which other threads find keys.

use perf_data::record::{Record, RecordContext};
use perf_data::{RecordPosition, RecordsInFile};

use super::Gatherer;
use crate::analyze::aggregate::found_keys::Numbering;
use crate::analyze::aggregate::functions::SAMPLES_BEFORE;
use crate::analyze::aggregate::key_workers::{BYTES_OF_WORKER, KeyFinder, with_workers, workers};
use crate::analyze::aggregate::replay::{Batch, Replay, ReplayEnd, Told};
use crate::analyze::aggregate::unwind::{SampleUnwinder, copies_stacks, finder_of_chains};
use crate::analyze::options::Options;
use crate::analyze::steps::Step;

impl<'r, F: FnMut(Step)> Gatherer<'r, F> {
    /// Walks through the recording: alone first, and then with threads that find keys, as far as these are of use.
    pub(super) fn walk(&mut self, options: &Options) -> ReplayEnd {
        let (mut replay, mut told) = (Replay::new(self.recording), Told::new(self.recording));
        let mut batch = Batch::default();
        // To ask how many CPUs there are reads files.
        let threads = options.threads();
        let count = workers(threads, self.room.limits.paths);
        while replay.next_batch(&mut batch, 1) {
            told.all(&mut batch, |at| replay.get(at), |at, context, record| self.visit(at, context, record));
            // With two CPUs it helps that another thread finds records where stacks are sets, which leave the thread that attributes
            // idle for half of the time.
            let helps = count > 0 || (threads == 2 && self.collector.makes_sets());
            let Some(records) = replay.in_file().filter(|_| helps && self.may_ask_workers()) else {
                continue;
            };
            let finders = self.finders(count, options, records);
            let rest = with_workers(replay, records, finders, |batch, turn, keys| {
                if let Some(numbering) = self.numberings.get_mut(turn) {
                    numbering.begin(keys().unwrap_or_default());
                }
                self.turn = turn;
                told.all(batch, |at| records.get(at), |at, context, record| self.visit(at, context, record));
                !self.numberings.is_empty()
            });
            self.numberings.clear();
            self.hidden_from_workers = self.hidden_from_workers.and(rest.hidden_callers);
            replay = rest.replay;
            if let Some(mut batch) = rest.batch {
                told.all(
                    &mut batch,
                    |at| replay.get(at),
                    |at, context, record| self.visit(at, context, record),
                );
            }
        }
        told.end(replay)
    }

    fn visit(&mut self, at: RecordPosition, context: &RecordContext, record: &Record<'_>) {
        if let Some(time) = context.time {
            self.lent_until(time);
        }
        self.record(at, context, record);
    }

    /// Whether other threads may find keys from now on: of samples with call paths, all of which are kept, and where it is
    /// known which functions' addresses are not told apart.
    fn may_ask_workers(&self) -> bool {
        self.keyed >= SAMPLES_BEFORE
            && self.functions.is_none()
            && !self.is_too_large
            && !self.room.in_parts
            && self.samples.is_none()
            && self.has_stacks
            && !copies_stacks(self.recording)
            && self.numberings.is_empty()
    }

    /// What finds keys in so many other threads.
    fn finders(&mut self, count: usize, options: &Options, records: RecordsInFile<'r>) -> Vec<KeyFinder<'r>> {
        self.numberings = (0..count).map(|_| Numbering::new(&self.collector.told(&self.tasks))).collect();
        let finder = |_| KeyFinder {
            decoder: self.recording.decoder(),
            records,
            roles: self.roles,
            whose: self.whose,
            tasks: self.tasks.clone(),
            jit: self.jit.clone(),
            collector: self.collector.of_worker(BYTES_OF_WORKER, finder_of_chains(self.recording, options)),
            unwinder: SampleUnwinder::of_options(self.recording, options),
            told: self.collector.told(&self.tasks),
        };
        (0..count).map(finder).collect()
    }
}

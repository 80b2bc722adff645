//! What attribution takes in: quanta, and the window of them that buckets still need.

use std::collections::VecDeque;

use crate::units::{Nanoseconds, Timestamp};

/// Whom a quantum is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// A cell of the profile.
    Cell(u32),
    /// A process that was not to be profiled.
    OtherProcess,
    /// eprof's own recorder.
    Recorder,
    /// Nobody knows: the records were lost.
    Lost,
}

/// A sample as attribution sees it: a number of events spread over a span of time on one CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantum {
    /// Time of the event's previous sample on this CPU.
    pub start: Timestamp,
    /// Time of the sample.
    pub end: Timestamp,
    /// The CPU; `None` if the recording does not tell.
    pub cpu: Option<u32>,
    /// Index of the event.
    pub event: u32,
    /// Number of events.
    pub count: u64,
    /// CPU time that this sample stands for; zero for events that do not tell time.
    pub running: Nanoseconds,
    /// Whom it is charged to.
    pub charge: Charge,
}

/// A quantum as it waits for its buckets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub start: Timestamp,
    pub end: Timestamp,
    /// Number of events.
    pub count: f64,
    /// CPU nanoseconds.
    pub running: f64,
    /// Of CPUs that are fed alike, see [`super::cpu_groups::CpuGroups`].
    pub group: u32,
    pub event: u32,
    pub charge: Charge,
}

impl Pending {
    /// The share of the quantum's span that lies after `start` and not after `end`.
    fn overlap(&self, start: Timestamp, end: Timestamp) -> f64 {
        if self.end <= start || self.start >= end && self.start < self.end {
            return 0.0;
        }
        if self.start >= start && self.end <= end {
            return 1.0;
        }
        let whole = self.end.since(self.start).as_nanos();
        if whole == 0 {
            return 0.0;
        }
        let shared = self.end.min(end).since(self.start.max(start)).as_nanos();
        shared as f64 / whole as f64
    }
}

/// Quanta that are not wholly distributed, in blocks in the order of arrival, so that a bucket passes
/// over what lies behind it without looking at every quantum.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Full ones, the oldest first.
    blocks: VecDeque<Block>,
    /// The one that is being filled.
    latest: Block,
    /// Emptied blocks, to be used again.
    spare: Vec<Vec<Pending>>,
}

#[derive(Debug)]
struct Block {
    quanta: Vec<Pending>,
    earliest_start: Timestamp,
    latest_end: Timestamp,
}

/// Quanta in a block.
const BLOCK: usize = 128;

impl Default for Block {
    /// An empty block, which lies nowhere.
    fn default() -> Self {
        Self {
            quanta: Vec::new(),
            earliest_start: Timestamp::from_nanos(u64::MAX),
            latest_end: Timestamp::from_nanos(0),
        }
    }
}

impl Window {
    /// Adds a quantum.
    #[inline]
    pub fn push(&mut self, quantum: Pending) {
        if self.latest.quanta.len() == BLOCK {
            self.begin_block();
        }
        let block = &mut self.latest;
        block.earliest_start = block.earliest_start.min(quantum.start);
        block.latest_end = block.latest_end.max(quantum.end);
        block.quanta.push(quantum);
    }

    #[cold]
    fn begin_block(&mut self) {
        let quanta = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK));
        self.blocks.push_back(std::mem::replace(&mut self.latest, Block { quanta, ..Block::default() }));
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().chain([&self.latest])
    }

    /// Quanta that share time with the span, and which part of each does.
    pub fn overlapping(&self, start: Timestamp, end: Timestamp) -> impl Iterator<Item = (&Pending, f64)> {
        let blocks = self.blocks();
        let blocks = blocks.filter(move |block| block.earliest_start <= end && block.latest_end > start);
        blocks.flat_map(|block| &block.quanta).filter_map(move |quantum| {
            let overlap = quantum.overlap(start, end);
            (overlap > 0.0).then_some((quantum, overlap))
        })
    }

    /// Charges the cells of all quanta to others: `into` tells for a quantum which one it becomes.
    pub fn recharge(&mut self, into: impl Fn(&Pending) -> u32) {
        let blocks = self.blocks.iter_mut().chain([&mut self.latest]);
        for quantum in blocks.flat_map(|block| &mut block.quanta) {
            if let Charge::Cell(_) = quantum.charge {
                quantum.charge = Charge::Cell(into(quantum));
            }
        }
    }

    /// Forgets what ends by then.
    pub fn forget_until(&mut self, end: Timestamp) {
        while self.blocks.front().is_some_and(|block| block.latest_end <= end) {
            if let Some(mut block) = self.blocks.pop_front() {
                block.quanta.clear();
                self.spare.push(block.quanta);
            }
        }
        if self.blocks.is_empty() && self.latest.latest_end <= end {
            let mut quanta = std::mem::take(&mut self.latest).quanta;
            quanta.clear();
            self.latest.quanta = quanta;
        }
        self.spare.truncate(64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn pending(start: u64, end: u64) -> Pending {
        let charge = Charge::Cell(0);
        Pending { start: at(start), end: at(end), count: 1.0, running: 1.0, group: 0, event: 0, charge }
    }

    #[test]
    fn overlaps_by_hand() {
        let of = |start, end| pending(start, end).overlap(at(100), at(200));
        assert_eq!([of(0, 50), of(0, 100), of(200, 300), of(250, 300)], [0.0; 4]);
        assert_eq!([of(100, 200), of(120, 130)], [1.0; 2]);
        assert_eq!([of(50, 150), of(150, 250), of(50, 300)], [0.5, 0.5, 0.4]);
        // What takes no time lies where it ends: in the interval that ends then, not in that which begins then.
        assert_eq!([of(100, 100), of(150, 150), of(200, 200), of(201, 201)], [0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn a_window_holds_no_more_than_what_is_needed() {
        let mut window = Window::default();
        (0..3 * BLOCK as u64 + 1).for_each(|n| window.push(pending(n, n + 10)));
        let lengths = |window: &Window| window.blocks().map(|block| block.quanta.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&window), [BLOCK, BLOCK, BLOCK, 1]);
        // The last of the first block ends at 127 + 10.
        window.forget_until(at(136));
        assert_eq!(window.blocks().count(), 4);
        window.forget_until(at(137));
        assert_eq!((lengths(&window), window.spare.len()), (vec![BLOCK, BLOCK, 1], 1));
        let found: Vec<u64> =
            window.overlapping(at(200), at(201)).map(|(quantum, _)| quantum.start.as_nanos()).collect();
        assert_eq!(found, (191..=200).collect::<Vec<_>>());
        // A block that is emptied is used again: the second of these begins within the last.
        (0..BLOCK as u64).for_each(|n| window.push(pending(1000 + n, 2000)));
        assert_eq!((lengths(&window), window.spare.len()), (vec![BLOCK, BLOCK, BLOCK, 1], 0));
        window.forget_until(at(5000));
        assert_eq!(window.overlapping(at(0), at(9000)).count(), 0);
        assert_eq!(lengths(&window), [0]);
    }

    #[test]
    fn cells_alone_are_charged_anew() {
        let mut window = Window::default();
        window.push(Pending { event: 3, ..pending(0, 10) });
        window.push(Pending { charge: Charge::Recorder, ..pending(0, 10) });
        window.recharge(|quantum| quantum.event + 4);
        let charges: Vec<Charge> =
            window.overlapping(at(0), at(10)).map(|(quantum, _)| quantum.charge).collect();
        assert_eq!(charges, [Charge::Cell(7), Charge::Recorder]);
    }
}

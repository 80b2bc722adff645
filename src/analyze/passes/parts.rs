//! A profile in parts, each of which is given away when all its joules are known.
//!
//! The joules of a sample are known when its bucket is closed, some time after the sample was met. A part that ended
//! waits for that long, while cells of the next one are found already.

use std::collections::VecDeque;

use crate::analyze::aggregate::cell_counts::CellCounts;
use crate::analyze::aggregate::cells::CellTable;
use crate::analyze::sample_key::SampleKey;
use crate::attribute::{Attribution, Attributor, TakenCells};
use crate::profile::{Cell, NO_CELL, StackTable, TrailFollower};
use crate::units::{Nanoseconds, Timestamp};

/// What was found in one stretch of the recording.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub stacks: StackTable,
    pub cells: Vec<Cell>,
    /// Joules and the like, by number of the cell.
    pub taken: TakenCells,
    /// Numbers in the whole profile's sequence, and which cell each is.
    pub sequence: Vec<(u32, u32)>,
}

/// Makes parts of cells and gives them away.
pub(crate) struct PartsMaker<'r> {
    give: &'r mut dyn FnMut(Part),
    follower: Option<TrailFollower>,
    /// Of the part at hand: what is in the sequence, and when its last sample ended.
    sequence: Vec<(u32, u32)>,
    until: Timestamp,
    /// Parts to which joules may still come, the first of them first.
    waiting: VecDeque<Waiting>,
    /// Launches get their joules in the end: they are a part of their own.
    launches: LaunchCells,
}

/// The cells of launches.
#[derive(Debug, Default)]
pub(crate) struct LaunchCells {
    pub cells: CellTable,
    pub cell_counts: CellCounts,
    /// By number of the launch.
    pub of_launches: Vec<u32>,
}

struct Waiting {
    callers: StackTable,
    cells: CellTable,
    cell_counts: CellCounts,
    sequence: Vec<(u32, u32)>,
    until: Timestamp,
}

impl<'r> PartsMaker<'r> {
    /// Gives parts to `give`. `follower` finds the samples of the whole profile's sequence, if it has one.
    pub fn new(follower: Option<TrailFollower>, give: &'r mut dyn FnMut(Part)) -> Self {
        Self {
            give,
            follower,
            sequence: Vec::new(),
            until: Timestamp::default(),
            waiting: VecDeque::new(),
            launches: LaunchCells::default(),
        }
    }

    /// A sample of a cell of the part at hand, or of [`NO_CELL`].
    pub fn sampled(&mut self, end: Timestamp, cell: u32) {
        self.until = self.until.max(end);
        let follower = self.follower.as_mut();
        if let Some(number) = follower.and_then(|follower| follower.next(cell != NO_CELL)) {
            self.sequence.push((number, cell));
        }
    }

    /// Lost records, which stand in the whole's sequence too.
    pub fn lost(&mut self) {
        if let Some(follower) = &mut self.follower {
            follower.next(false);
        }
    }

    /// A launch.
    pub fn launch(&mut self, key: SampleKey, cpu: u32, event: u32) {
        let cell = self.launches.cells.cell(key, cpu, event);
        self.launches.cell_counts.count(cell, 1, Nanoseconds::ZERO);
        self.launches.of_launches.push(cell);
    }

    /// The part at hand ends.
    pub fn end_part(&mut self, callers: StackTable, cells: CellTable, cell_counts: CellCounts) {
        let sequence = std::mem::take(&mut self.sequence);
        self.waiting.push_back(Waiting { callers, cells, cell_counts, sequence, until: self.until });
    }

    /// Gives away all parts to which no more joules come.
    pub fn give_settled(&mut self, attributor: &mut Attributor) {
        while let Some(part) = self.waiting.pop_front_if(|part| attributor.is_settled(part.until)) {
            let taken = attributor.take_cells(part.cells.len());
            (self.give)(part.finish(taken));
        }
    }

    /// Gives away what is left when the recording has ended; what is known of launches.
    pub fn finish(mut self, mut attribution: Attribution) -> LaunchCells {
        for part in self.waiting.drain(..) {
            let taken = attribution.take_cells(part.cells.len());
            (self.give)(part.finish(taken));
        }
        self.launches
    }
}

impl Waiting {
    fn finish(self, taken: TakenCells) -> Part {
        let (cells, stacks) = self.cells.finish(self.cell_counts.into_iter());
        Part { stacks: self.callers.with_stacks_of(stacks), cells, taken, sequence: self.sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::SampleSequence;

    /// Of a long recording each second block of samples is in the sequence. What was lost counts for where blocks end.
    #[test]
    fn lost_records_stand_between_the_samples_that_are_found_again() {
        let mut sequence = SampleSequence::default();
        (0..300_000).for_each(|cell| sequence.push(0, cell));
        let mut follower = sequence.follow();
        let is_lost = |at: u32| at.is_multiple_of(3);
        let expected: Vec<(u32, u32)> =
            (0..20_000).filter_map(|at| Some((follower.next(!is_lost(at))?, at))).collect();
        assert!((4000..8000).contains(&expected.len()), "some are in it: {}", expected.len());
        let mut found = Vec::new();
        let mut give = |part: Part| found.extend(part.sequence);
        let mut parts = PartsMaker::new(Some(sequence.follow()), &mut give);
        for at in 0..20_000 {
            if is_lost(at) { parts.lost() } else { parts.sampled(Timestamp::default(), at) }
        }
        parts.end_part(StackTable::default(), CellTable::default(), CellCounts::default());
        parts.finish(Attribution::default());
        assert_eq!(found, expected);
    }
}

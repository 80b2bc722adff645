//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::Hasher;

use foldhash::fast::FixedState;

use crate::analyze::aggregate::key_table::{KeyTable, hash};
use crate::analyze::memory::{BYTES_PER_CELL, BYTES_PER_KEY, BYTES_PER_STACK};
use crate::analyze::sample_key::{NO_CPU, SampleKey};
use crate::profile::{Cell, StackId, StackTable, ThreadIndex};
use crate::timeline::StackInterner;
use crate::units::Nanoseconds;

/// The cells so far.
#[derive(Debug)]
pub struct CellTable {
    /// Cells, by a hash of what they are: code may lie at several addresses.
    known: KeyTable,
    hashers: [FixedState; 2],
    cells: Vec<CellParts>,
    stacks: StackInterner,
}

/// What tells a cell from others.
#[derive(Debug, Clone, Copy)]
struct CellParts {
    stack: StackId,
    thread: ThreadIndex,
    cpu: u32,
    event: u32,
}

impl Default for CellTable {
    fn default() -> Self {
        Self {
            known: KeyTable::default(),
            hashers: [FixedState::with_seed(1), FixedState::with_seed(2)],
            cells: Vec::new(),
            stacks: StackInterner::default(),
        }
    }
}

impl CellTable {
    /// The cell of a sample, made if need be. Where CPUs are not told apart, `cpu` is [`NO_CPU`].
    pub fn cell(&mut self, key: SampleKey, cpu: u32, event: u32) -> u32 {
        let SampleKey { callers, own, thread } = key;
        let known = hash(&self.hashers, |hasher| {
            hasher.write_u64(u64::from(callers.0) << 32 | u64::from(thread.0));
            hasher.write_u64(u64::from(cpu) << 32 | u64::from(event));
            hasher.write_u64(own.number());
        });
        if let Some(cell) = self.known.find(known) {
            return cell;
        }
        let stack = self.stacks.stack(callers, own.get());
        let cell = self.cells.len() as u32;
        self.cells.push(CellParts { stack, thread, cpu, event });
        self.known.insert(known, cell);
        cell
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// The event of a cell.
    pub fn event_of(&self, cell: u32) -> Option<u32> {
        self.cells.get(cell as usize).map(|parts| parts.event)
    }

    /// What the cells take at most, with so many bytes of joules and the like for each.
    pub fn bytes(&self, joules: usize) -> usize {
        let stacks = BYTES_PER_STACK * self.stacks.stacks().len();
        stacks + (BYTES_PER_CELL + BYTES_PER_KEY + joules) * self.cells.len()
    }

    /// The cells with what was counted of each, and the stacks without their callers' frames.
    pub fn finish(self, counts: impl Iterator<Item = (u64, u64, Nanoseconds)>) -> (Vec<Cell>, StackTable) {
        let Self { cells, stacks, .. } = self;
        let cell = |(parts, (samples, count, time))| {
            let CellParts { stack, thread, cpu, event } = parts;
            Cell { stack, thread, cpu: (cpu != NO_CPU).then_some(cpu), event, samples, count, time }
        };
        (cells.into_iter().zip(counts).map(cell).collect(), stacks.into_stacks())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{AddressId, CallersId};

    fn key(callers: u32, own: u32) -> SampleKey {
        SampleKey { callers: CallersId(callers), own: Some(AddressId(own)).into(), thread: ThreadIndex(0) }
    }

    fn counts() -> impl Iterator<Item = (u64, u64, Nanoseconds)> {
        std::iter::repeat_with(Default::default)
    }

    #[test]
    fn equal_samples_share_a_cell() {
        let mut table = CellTable::default();
        let first = table.cell(key(1, 1), NO_CPU, 0);
        let others = [
            (key(1, 2), NO_CPU, 0),
            (key(2, 1), NO_CPU, 0),
            (SampleKey { own: None.into(), ..key(1, 1) }, NO_CPU, 0),
            (SampleKey { thread: ThreadIndex(1), ..key(1, 1) }, NO_CPU, 0),
            (key(1, 1), 0, 0),
            (key(1, 1), NO_CPU, 1),
        ];
        let others = others.map(|(key, cpu, event)| table.cell(key, cpu, event));
        assert!(others.iter().all(|&other| other != first));
        assert_eq!(table.cell(key(1, 1), NO_CPU, 0), first);
        assert_eq!((table.len(), table.event_of(6), table.event_of(7)), (7, Some(1), None));
        let cells_alone = 7 * (BYTES_PER_CELL + BYTES_PER_KEY);
        assert_eq!(table.bytes(0), cells_alone + 4 * BYTES_PER_STACK);
        assert_eq!(table.bytes(24), table.bytes(0) + 7 * 24);
        let (cells, stacks) = table.finish(counts());
        assert_eq!((cells.len(), stacks.len()), (7, 4));
        assert_eq!((cells[0].cpu, cells[5].cpu), (None, Some(0)));
    }
}

//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::Hasher;

use foldhash::fast::FixedState;
use rustc_hash::FxHashSet;

use super::known::{KnownKeys, hash};
use crate::profile::{AddressId, CallersId, Cell, StackId, StackTable, ThreadIndex};
use crate::timeline::StackInterner;
use crate::units::Nanoseconds;

/// Most call stacks that are told apart. A stack takes about 20 bytes and a cell of it 100: a program of which
/// nearly every sample has a stack of its own would fill any memory.
const MOST_STACKS: usize = 1 << 20;

/// What of a sample decides its cell.
#[derive(Debug, Clone, Copy)]
pub struct SampleKey {
    /// All frames but its own address.
    pub callers: CallersId,
    /// Its own address.
    pub own: Option<AddressId>,
    /// The thread, if threads are told apart.
    pub thread: ThreadIndex,
    /// The CPU, if CPUs are told apart; else [`NO_CPU`].
    pub cpu: u32,
    /// Index of the event.
    pub event: u32,
}

/// No CPU, as a number in keys.
pub const NO_CPU: u32 = u32::MAX;

/// The cells so far.
#[derive(Debug)]
pub struct CellTable {
    most_stacks: usize,
    /// Cells, by a hash of what they are: code may lie at several addresses.
    known: KnownKeys,
    hashers: [FixedState; 2],
    cells: Vec<CellParts>,
    stacks: StackInterner,
    /// Cells whose samples all are without their callers.
    cut: FxHashSet<u32>,
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
            most_stacks: MOST_STACKS,
            known: KnownKeys::default(),
            hashers: [FixedState::with_seed(1), FixedState::with_seed(2)],
            cells: Vec::new(),
            stacks: StackInterner::default(),
            cut: FxHashSet::default(),
        }
    }
}

impl CellTable {
    /// The cell of a sample, made if need be. A stack loses its callers if there are too many stacks.
    pub fn cell(&mut self, key: SampleKey) -> u32 {
        let hash_with = |callers: CallersId| {
            hash(&self.hashers, |hasher| {
                hasher.write_u64(u64::from(callers.0) << 32 | u64::from(key.thread.0));
                hasher.write_u64(u64::from(key.cpu) << 32 | u64::from(key.event));
                // One more than the address's number, so that none is 0.
                hasher.write_u64(key.own.map_or(0, |own| u64::from(own.0) + 1));
            })
        };
        let known = hash_with(key.callers);
        if let Some(cell) = self.known.find(known) {
            return cell;
        }
        let is_full =
            self.stacks.stacks().len() >= self.most_stacks || self.cells.len() >= 2 * self.most_stacks;
        let cell = if is_full && key.callers != CallersId::NONE {
            let without = hash_with(CallersId::NONE);
            let cell = self.known.find(without).unwrap_or_else(|| {
                let cell = self.add(SampleKey { callers: CallersId::NONE, ..key });
                self.known.insert(without, cell);
                cell
            });
            self.cut.insert(cell);
            cell
        } else {
            self.add(key)
        };
        self.known.insert(known, cell);
        cell
    }

    fn add(&mut self, key: SampleKey) -> u32 {
        let SampleKey { callers, own, thread, cpu, event } = key;
        let stack = self.stacks.stack(callers, own);
        self.cells.push(CellParts { stack, thread, cpu, event });
        self.cells.len() as u32 - 1
    }

    /// The cells with what was counted of each, the stacks without their callers' frames, and the cells whose
    /// samples are all without their callers.
    pub fn finish(
        self,
        counts: impl Iterator<Item = (u64, u64, Nanoseconds)>,
    ) -> (Vec<Cell>, StackTable, FxHashSet<u32>) {
        let Self { cells, stacks, cut, .. } = self;
        let cell = |(parts, (samples, count, time))| {
            let CellParts { stack, thread, cpu, event } = parts;
            Cell { stack, thread, cpu: (cpu != NO_CPU).then_some(cpu), event, samples, count, time }
        };
        (cells.into_iter().zip(counts).map(cell).collect(), stacks.into_stacks(), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(callers: u32, own: u32) -> SampleKey {
        SampleKey {
            callers: CallersId(callers),
            own: Some(AddressId(own)),
            thread: ThreadIndex(0),
            cpu: NO_CPU,
            event: 0,
        }
    }

    fn counts() -> impl Iterator<Item = (u64, u64, Nanoseconds)> {
        std::iter::repeat_with(Default::default)
    }

    #[test]
    fn equal_samples_share_a_cell() {
        let mut table = CellTable::default();
        let first = table.cell(key(1, 1));
        let others = [
            key(1, 2),
            key(2, 1),
            SampleKey { own: None, ..key(1, 1) },
            SampleKey { thread: ThreadIndex(1), ..key(1, 1) },
            SampleKey { cpu: 0, ..key(1, 1) },
            SampleKey { event: 1, ..key(1, 1) },
        ];
        assert!(others.map(|other| table.cell(other)).iter().all(|&other| other != first));
        assert_eq!(table.cell(key(1, 1)), first);
        let (cells, stacks, cut) = table.finish(counts());
        assert_eq!((cells.len(), stacks.len(), cut.len()), (7, 4, 0));
        assert_eq!((cells[0].cpu, cells[5].cpu), (None, Some(0)));
    }

    #[test]
    fn too_many_stacks_lose_their_callers() {
        let mut table = CellTable { most_stacks: 2, ..CellTable::default() };
        let whole = [table.cell(key(1, 1)), table.cell(key(2, 1))];
        let cut = table.cell(key(3, 1));
        assert!(!whole.contains(&cut));
        assert_eq!(table.cell(key(4, 1)), cut, "told apart by callers alone");
        assert_eq!(table.cell(key(3, 1)), cut);
        assert_eq!(table.cell(key(2, 1)), whole[1], "those that were there stay");
        let (cells, stacks, is_cut) = table.finish(counts());
        assert_eq!(stacks.callers(cells[cut as usize].stack), CallersId::NONE);
        assert!(is_cut.contains(&cut) && is_cut.len() == 1);
    }
}

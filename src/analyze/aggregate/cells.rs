//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::Hasher;

use foldhash::fast::FixedState;
use rustc_hash::FxHashSet;

use crate::analyze::aggregate::known::{KnownKeys, hash};
use crate::profile::{AddressId, CallersId, Cell, StackId, StackTable, ThreadIndex};
use crate::timeline::StackInterner;
use crate::units::Nanoseconds;

/// Most call stacks that are told apart. A stack takes about 20 bytes and a cell of it 100: a program of which
/// nearly every sample has a stack of its own would fill any memory.
const MOST_STACKS: usize = 1 << 20;

/// What of a sample decides its cell, beside its event and its CPU.
#[derive(Debug, Clone, Copy)]
pub struct SampleKey {
    /// All frames but its own address.
    pub callers: CallersId,
    /// Its own address.
    pub own: OwnAddress,
    /// The thread, if threads are told apart.
    pub thread: ThreadIndex,
}

/// An [`AddressId`] or none, in as many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnAddress(u32);

impl From<Option<AddressId>> for OwnAddress {
    fn from(address: Option<AddressId>) -> Self {
        // One more than the number, so that no address is 0.
        Self(address.map_or(0, |address| address.0 + 1))
    }
}

impl OwnAddress {
    fn get(self) -> Option<AddressId> {
        self.0.checked_sub(1).map(AddressId)
    }
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
    /// The cell of a sample, made if need be. A stack loses its callers if there are too many stacks. Where CPUs
    /// are not told apart, `cpu` is [`NO_CPU`].
    pub fn cell(&mut self, key: SampleKey, cpu: u32, event: u32) -> u32 {
        let hash_with = |callers: CallersId| {
            hash(&self.hashers, |hasher| {
                hasher.write_u64(u64::from(callers.0) << 32 | u64::from(key.thread.0));
                hasher.write_u64(u64::from(cpu) << 32 | u64::from(event));
                hasher.write_u64(u64::from(key.own.0));
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
                let cell = self.add(SampleKey { callers: CallersId::NONE, ..key }, cpu, event);
                self.known.insert(without, cell);
                cell
            });
            self.cut.insert(cell);
            cell
        } else {
            self.add(key, cpu, event)
        };
        self.known.insert(known, cell);
        cell
    }

    fn add(&mut self, key: SampleKey, cpu: u32, event: u32) -> u32 {
        let SampleKey { callers, own, thread } = key;
        let stack = self.stacks.stack(callers, own.get());
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
        let (cells, stacks, cut) = table.finish(counts());
        assert_eq!((cells.len(), stacks.len(), cut.len()), (7, 4, 0));
        assert_eq!((cells[0].cpu, cells[5].cpu), (None, Some(0)));
    }

    #[test]
    fn too_many_stacks_lose_their_callers() {
        let mut table = CellTable { most_stacks: 2, ..CellTable::default() };
        let mut cell = |callers| table.cell(key(callers, 1), NO_CPU, 0);
        let whole = [cell(1), cell(2)];
        let cut = cell(3);
        assert!(!whole.contains(&cut));
        assert_eq!(cell(4), cut, "told apart by callers alone");
        assert_eq!(cell(3), cut);
        assert_eq!(cell(2), whole[1], "those that were there stay");
        let (cells, stacks, is_cut) = table.finish(counts());
        assert_eq!(stacks.callers(cells[cut as usize].stack), CallersId::NONE);
        assert!(is_cut.contains(&cut) && is_cut.len() == 1);
    }
}

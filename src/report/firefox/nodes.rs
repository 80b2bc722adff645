//! The nodes that the stacks of a profile have in the trees of their threads.

use std::ops::Range;

use super::code::{Code, Frame};
use super::tables::Tables;
use super::thread_samples::Threads;
use crate::profile::{AddressId, CallersId, Profile, StackId, StackTable};

/// A place in a thread's tree of stacks.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    /// `None` above all frames.
    number: Option<u32>,
    /// There was no memory for what it calls.
    is_cut: bool,
}

/// Of a part of a profile: the cells that are wanted, and the node of each in its thread's tree.
///
/// Callers are followed in the order of their numbers, in which each comes behind its own callers, so that each is looked at
/// once in each thread, however many stacks share it.
#[derive(Debug)]
pub struct Nodes<'p> {
    part: &'p Profile,
    /// Those that are wanted, by thread and stack.
    cells: Vec<u32>,
    /// By cell.
    node_of: Vec<Option<u32>>,
    callers: MarkedCallers,
    /// By callers, true of those of the thread at hand. None at all are above all frames.
    node_of_callers: Vec<Node>,
    /// Paths that end at callers, since there was no memory for more.
    pub cut_paths: u64,
}

impl<'p> Nodes<'p> {
    /// Of these cells of a part.
    pub fn of(part: &'p Profile, mut cells: Vec<u32>) -> Self {
        cells.sort_unstable_by_key(|&cell| key_of(part, cell));
        Self {
            part,
            cells,
            node_of: vec![None; part.cells.len()],
            callers: MarkedCallers::new(part.stacks.callers_len()),
            node_of_callers: vec![Node::default(); part.stacks.callers_len()],
            cut_paths: 0,
        }
    }

    /// Finds the nodes, and makes those that are new: no more than `room`, of which each thread gets as much as its paths are
    /// of all; the outermost frame always has a place.
    pub fn find(&mut self, code: &Code<'_>, threads: &mut Threads, room: &mut usize) {
        let cells = std::mem::take(&mut self.cells);
        let part = self.part;
        let by_thread = || cells.chunk_by(|&a, &b| key_of(part, a).0 == key_of(part, b).0);
        let sizes: Vec<usize> = by_thread().map(|cells| self.callers_of(cells)).collect();
        let mut size_left: usize = sizes.iter().sum();
        for (cells, size) in by_thread().zip(sizes) {
            // What one does not need is there for the next.
            let share = (*room as u128 * size as u128 / size_left.max(1) as u128) as usize;
            let tables = &mut threads.thread(part.cells[cells[0] as usize].thread.0).tables;
            let mut tree = Growing { code, tables, room: share };
            self.find_in(cells, &mut tree);
            *room -= share - tree.room;
            size_left -= size;
        }
        self.cells = cells;
    }

    /// The node of a cell that was wanted.
    pub fn of_cell(&self, cell: u32) -> Option<u32> {
        self.node_of[cell as usize]
    }

    /// So many callers and stacks these cells have.
    fn callers_of(&mut self, cells: &[u32]) -> usize {
        self.callers.mark_all(&self.part.stacks, stacks_of(self.part, cells));
        let mut count = cells.len();
        self.callers.take(|_| count += 1);
        count
    }

    /// Finds the nodes of cells of one thread.
    fn find_in(&mut self, cells: &[u32], tree: &mut Growing<'_>) {
        let Self { part, node_of, callers, node_of_callers, .. } = self;
        let stacks = &part.stacks;
        callers.mark_all(stacks, stacks_of(part, cells));
        callers.take(|at| {
            if let Some((address, outer)) = stacks.caller(at) {
                let node = tree.below(node_of_callers[outer.0 as usize], Some(address));
                node_of_callers[at.0 as usize] = node;
            }
        });
        for same in cells.chunk_by(|&a, &b| key_of(part, a) == key_of(part, b)) {
            let stack = part.cells[same[0] as usize].stack;
            let callers = node_of_callers[stacks.callers(stack).0 as usize];
            let mut node = tree.below(callers, stacks.innermost(stack));
            if node.number.is_none() {
                // Without a frame it would say that nothing ran.
                node = tree.add(node, Frame::UNKNOWN);
            }
            self.cut_paths += u64::from(node.is_cut);
            same.iter().for_each(|&cell| node_of[cell as usize] = node.number);
        }
    }
}

fn key_of(part: &Profile, cell: u32) -> (u32, StackId) {
    let cell = &part.cells[cell as usize];
    (cell.thread.0, cell.stack)
}

fn stacks_of<'a>(part: &'a Profile, cells: &'a [u32]) -> impl Iterator<Item = StackId> + 'a {
    cells.iter().map(|&cell| part.cells[cell as usize].stack)
}

/// A thread's tree with what decides whether it may grow.
struct Growing<'a> {
    code: &'a Code<'a>,
    tables: &'a mut Tables,
    /// So many nodes may be made.
    room: usize,
}

impl Growing<'_> {
    /// The node of code that another one calls.
    fn below(&mut self, node: Node, address: Option<AddressId>) -> Node {
        let code = self.code;
        let frames = address.into_iter().flat_map(|address| code.of_address(address));
        frames.fold(node, |node, frame| self.add(node, frame))
    }

    /// The node of a frame, if there is memory for it and for what it is called by.
    fn add(&mut self, node: Node, frame: Frame) -> Node {
        if node.is_cut {
            return node;
        }
        let has_room = self.room > 0 || node.number.is_none();
        let before = self.tables.stack_count();
        let next = self.tables.stack(self.code, node.number, frame, has_room);
        self.room = self.room.saturating_sub(self.tables.stack_count() - before);
        match next {
            Some(next) => Node { number: Some(next), is_cut: false },
            None => Node { is_cut: true, ..node },
        }
    }
}

/// A set of callers, a bit for each.
#[derive(Debug)]
struct MarkedCallers {
    words: Vec<u64>,
    /// Where those are that have a mark.
    range: Range<usize>,
}

impl MarkedCallers {
    fn new(callers: usize) -> Self {
        Self { words: vec![0; callers.div_ceil(64)], range: 0..0 }
    }

    /// Marks the callers of stacks, and theirs.
    fn mark_all(&mut self, table: &StackTable, stacks: impl Iterator<Item = StackId>) {
        for stack in stacks {
            let mut at = table.callers(stack);
            while at != CallersId::NONE {
                let (index, bit) = (at.0 as usize / 64, 1 << (at.0 % 64));
                if self.words[index] & bit != 0 {
                    break;
                }
                self.words[index] |= bit;
                self.range = match self.range.is_empty() {
                    true => index..index + 1,
                    false => self.range.start.min(index)..self.range.end.max(index + 1),
                };
                at = table.caller(at).map_or(CallersId::NONE, |(_, outer)| outer);
            }
        }
    }

    /// Visits those that are marked by their numbers, and marks none any more.
    fn take(&mut self, mut visit: impl FnMut(CallersId)) {
        for index in std::mem::replace(&mut self.range, 0..0) {
            let mut bits = std::mem::take(&mut self.words[index]);
            while bits != 0 {
                visit(CallersId(index as u32 * 64 + bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
    }
}

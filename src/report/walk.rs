//! Walking the call tree of many stacks without building it.
//!
//! The stacks are divided by their first frame, each part by its second, and so on. The memory is one
//! small cursor per stack; a part that weighs less than a threshold is not divided further, so that
//! what cannot be seen costs nothing.

use super::frames::{FrameTable, UNKNOWN};
use crate::profile::{Profile, StackId};

/// The direction in which stacks are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    /// From the outermost frame to the innermost: who calls what.
    FromOutermost,
    /// From the innermost frame to the outermost: by whom is it called.
    FromInnermost,
}

/// A stack and what it weighs.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeighedStack {
    /// A frame above all frames of the stack (a thread, a process), as index into the names of such
    /// frames.
    pub above: Option<u32>,
    pub stack: StackId,
    pub weight: f64,
}

/// A frame of the call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum TreeFrame {
    /// Index of a frame above all stacks.
    Above(u32),
    /// A key of the [`FrameTable`].
    Key(u32),
}

/// A node of the call tree as [`walk`] shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    /// The frames from the root to this node.
    pub path: &'a [TreeFrame],
    /// What ends here, the branches below the threshold included.
    pub own: f64,
}

/// Walks the call tree in preorder, siblings in the order of `rank` (by key; frames above all stacks
/// by index). Branches that weigh less than `threshold` are counted as their parent's own. `visit`
/// may end the walk with an error.
pub(super) fn walk<E>(
    profile: &Profile,
    frames: &FrameTable,
    stacks: &[WeighedStack],
    tree: TreeShape<'_>,
    mut visit: impl FnMut(Node<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let walker = Walker::new(profile, frames, stacks, tree);
    let mut cursors: Vec<Cursor> = stacks.iter().map(|stack| walker.start(stack)).collect();
    let mut path = Vec::new();
    // Parts still to be visited: a range of cursors whose stacks share `depth` frames.
    let mut parts = vec![Part { start: 0, end: cursors.len(), depth: 0, frame: None }];
    while let Some(part) = parts.pop() {
        if let Some(frame) = part.frame {
            path.truncate(part.depth - 1);
            path.push(frame);
        }
        let own = walker.divide(&mut cursors[part.start..part.end], &part, &mut parts);
        if !path.is_empty() || own != 0.0 {
            visit(Node { path: &path, own })?;
        }
    }
    Ok(())
}

/// How [`walk`] sees the stacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeShape<'a> {
    pub direction: Direction,
    pub threshold: f64,
    pub rank: &'a [u32],
}

struct Part {
    start: usize,
    end: usize,
    depth: usize,
    frame: Option<TreeFrame>,
}

/// A stack read up to some frame.
#[derive(Clone, Copy)]
struct Cursor {
    weight: f64,
    stack: StackId,
    /// The place of the next frame among its siblings; [`ENDED`] if there is none.
    next: u32,
    /// Frames (addresses) of the stack already entered, and keys of the current one already read.
    address: u32,
    key: u32,
}

/// The place of no frame; frames have higher ones.
const ENDED: u32 = 0;

struct Walker<'a> {
    profile: &'a Profile,
    frames: &'a FrameTable,
    shape: TreeShape<'a>,
    /// Frames above all stacks take the places from 1 to this one, keys those behind it.
    last_above: u32,
    /// The key of each rank.
    by_rank: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(
        profile: &'a Profile,
        frames: &'a FrameTable,
        stacks: &[WeighedStack],
        shape: TreeShape<'a>,
    ) -> Self {
        let last_above = stacks.iter().filter_map(|stack| stack.above).max().map_or(0, |above| above + 1);
        let mut by_rank = vec![UNKNOWN; shape.rank.len()];
        for (key, &rank) in shape.rank.iter().enumerate() {
            by_rank[rank as usize] = key as u32;
        }
        Self { profile, frames, shape, last_above, by_rank }
    }

    fn start(&self, weighed: &WeighedStack) -> Cursor {
        let mut cursor =
            Cursor { weight: weighed.weight, stack: weighed.stack, next: ENDED, address: 0, key: 0 };
        cursor.next = match weighed.above {
            Some(above) => above + 1,
            None => self.first(&mut cursor),
        };
        cursor
    }

    fn place_of(&self, key: u32) -> u32 {
        self.last_above + 1 + self.shape.rank[key as usize]
    }

    fn frame_at(&self, place: u32) -> TreeFrame {
        match place.checked_sub(self.last_above + 1) {
            Some(rank) => TreeFrame::Key(self.by_rank[rank as usize]),
            None => TreeFrame::Above(place - 1),
        }
    }

    /// The place of a stack's first key; a stack without frames has one that is unknown.
    fn first(&self, cursor: &mut Cursor) -> u32 {
        let is_empty = self.profile.stacks.frames(cursor.stack).is_empty();
        if is_empty { self.place_of(UNKNOWN) } else { self.read(cursor) }
    }

    /// Takes the next key of a stack.
    fn read(&self, cursor: &mut Cursor) -> u32 {
        let addresses = self.profile.stacks.frames(cursor.stack);
        let keys_at = |index: u32| {
            let index = index as usize;
            let address = match self.shape.direction {
                Direction::FromOutermost => addresses.get(index),
                Direction::FromInnermost => {
                    addresses.len().checked_sub(index + 1).and_then(|at| addresses.get(at))
                }
            };
            address.map(|&address| self.frames.of_address(address))
        };
        let Some(mut keys) = keys_at(cursor.address) else { return ENDED };
        if cursor.key as usize == keys.len() {
            cursor.address += 1;
            cursor.key = 0;
            let Some(next) = keys_at(cursor.address) else { return ENDED };
            keys = next;
        }
        cursor.key += 1;
        let at = match self.shape.direction {
            Direction::FromOutermost => cursor.key as usize - 1,
            Direction::FromInnermost => keys.len() - cursor.key as usize,
        };
        keys.get(at).map_or(ENDED, |&key| self.place_of(key))
    }

    /// Divides a part by the next frame; what ends here or is too small is returned.
    fn divide(&self, cursors: &mut [Cursor], part: &Part, parts: &mut Vec<Part>) -> f64 {
        let ended = move_to_front(cursors, |cursor| cursor.next == ENDED);
        let (ended, going_on) = cursors.split_at_mut(ended);
        // Most stacks share their outermost frames: then there is nothing to sort.
        if !going_on.iter().all(|cursor| cursor.next == going_on[0].next) {
            going_on.sort_unstable_by_key(|cursor| cursor.next);
        }
        let mut own = sum(ended);
        let first_part = parts.len();
        let mut start = part.start + ended.len();
        for group in going_on.chunk_by_mut(|a, b| a.next == b.next) {
            let end = start + group.len();
            let total = sum(group);
            if total >= self.shape.threshold {
                let frame = self.frame_at(group[0].next);
                for cursor in group {
                    cursor.next = match frame {
                        TreeFrame::Above(_) => self.first(cursor),
                        TreeFrame::Key(_) => self.read(cursor),
                    };
                }
                parts.push(Part { start, end, depth: part.depth + 1, frame: Some(frame) });
            } else {
                own += total;
            }
            start = end;
        }
        // The last part pushed is visited first.
        parts[first_part..].reverse();
        own
    }
}

/// Moves what satisfies a condition before all else; how much that is.
fn move_to_front<T>(items: &mut [T], condition: impl Fn(&T) -> bool) -> usize {
    let mut front = 0;
    for index in 0..items.len() {
        if condition(&items[index]) {
            items.swap(front, index);
            front += 1;
        }
    }
    front
}

fn sum(cursors: &[Cursor]) -> f64 {
    cursors.iter().map(|cursor| cursor.weight).sum()
}

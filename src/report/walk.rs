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
    let walker = Walker { profile, frames, shape: tree };
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

/// A stack read up to some frame; `next` is the frame to come.
#[derive(Clone, Copy)]
struct Cursor {
    weight: f64,
    stack: StackId,
    next: Option<TreeFrame>,
    /// Frames (addresses) of the stack already entered, and keys of the current one already read.
    address: u32,
    key: u32,
}

struct Walker<'a> {
    profile: &'a Profile,
    frames: &'a FrameTable,
    shape: TreeShape<'a>,
}

impl Walker<'_> {
    fn start(&self, weighed: &WeighedStack) -> Cursor {
        let mut cursor =
            Cursor { weight: weighed.weight, stack: weighed.stack, next: None, address: 0, key: 0 };
        cursor.next = match weighed.above {
            Some(above) => Some(TreeFrame::Above(above)),
            None if self.profile.stacks.frames(cursor.stack).is_empty() => Some(TreeFrame::Key(UNKNOWN)),
            None => self.read(&mut cursor),
        };
        cursor
    }

    /// Takes the next key of a stack.
    fn read(&self, cursor: &mut Cursor) -> Option<TreeFrame> {
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
        let mut keys = keys_at(cursor.address)?;
        if cursor.key as usize == keys.len() {
            cursor.address += 1;
            cursor.key = 0;
            keys = keys_at(cursor.address)?;
        }
        cursor.key += 1;
        let at = match self.shape.direction {
            Direction::FromOutermost => cursor.key as usize - 1,
            Direction::FromInnermost => keys.len() - cursor.key as usize,
        };
        keys.get(at).map(|&key| TreeFrame::Key(key))
    }

    /// Divides a part by the next frame; what ends here or is too small is returned.
    fn divide(&self, cursors: &mut [Cursor], part: &Part, parts: &mut Vec<Part>) -> f64 {
        let order = |cursor: &Cursor| match cursor.next {
            None => (0, 0),
            Some(TreeFrame::Above(above)) => (1, above),
            Some(TreeFrame::Key(key)) => (2, self.shape.rank[key as usize]),
        };
        cursors.sort_unstable_by_key(|cursor| (order(cursor), cursor.stack));
        let mut own = 0.0;
        let first_part = parts.len();
        let mut start = part.start;
        for group in cursors.chunk_by_mut(|a, b| a.next == b.next) {
            let end = start + group.len();
            let total = sum(group);
            match group[0].next {
                Some(frame) if total >= self.shape.threshold => {
                    for cursor in group.iter_mut() {
                        cursor.next = self.read_after(frame, cursor);
                    }
                    parts.push(Part { start, end, depth: part.depth + 1, frame: Some(frame) });
                }
                _ => own += total,
            }
            start = end;
        }
        // The last part pushed is visited first.
        parts[first_part..].reverse();
        own
    }

    fn read_after(&self, frame: TreeFrame, cursor: &mut Cursor) -> Option<TreeFrame> {
        let is_empty = self.profile.stacks.frames(cursor.stack).is_empty();
        match frame {
            TreeFrame::Above(_) if is_empty => Some(TreeFrame::Key(UNKNOWN)),
            _ => self.read(cursor),
        }
    }
}

fn sum(cursors: &[Cursor]) -> f64 {
    cursors.iter().map(|cursor| cursor.weight).sum()
}

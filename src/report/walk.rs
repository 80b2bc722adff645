//! The call tree by names, walked without building it.
//!
//! Stacks are divided by their first frame, each part by its second, and so on. Stacks that differ in their
//! innermost frame alone are read as one up to there; a part that weighs less than a threshold is not
//! divided further, so that what cannot be seen costs nothing.

use self::trunk::Trunk;
use super::frames::{FrameTable, UNKNOWN};
use crate::profile::{AddressId, CallersId, Profile, StackId, StacksByCallers};

mod trunk;

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

/// How [`walk`] sees the stacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeShape<'a> {
    pub direction: Direction,
    pub threshold: f64,
    pub rank: &'a [u32],
}

/// Walks the call tree in preorder, siblings in the order of `rank` (by key; frames above all stacks
/// by index). `stacks` are in the order of the frames above them. Branches that weigh less than
/// `threshold` are counted as their parent's own. `visit` may end the walk with an error.
pub(super) fn walk<E>(
    profile: &Profile,
    frames: &FrameTable,
    stacks: &[WeighedStack],
    shape: TreeShape<'_>,
    mut visit: impl FnMut(Node<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let groups = || stacks.chunk_by(|a, b| a.above == b.above);
    let is_small = |group: &[WeighedStack]| group[0].above.is_some() && total(group) < shape.threshold;
    let small: f64 = groups().filter(|group| is_small(group)).map(total).sum();
    if small != 0.0 {
        visit(Node { path: &[], own: small })?;
    }
    let mut walker = Walker::new(profile, frames, shape);
    groups().filter(|group| !is_small(group)).try_for_each(|group| walker.walk(group, &mut visit))
}

fn total(stacks: &[WeighedStack]) -> f64 {
    stacks.iter().map(|stack| stack.weight).sum()
}

/// A branch still to be visited: all its cursors are at the same frame.
struct Part {
    cursors: Vec<Cursor>,
    /// Frames on the path to it, its own included.
    depth: usize,
    frame: Option<TreeFrame>,
    /// Its cursors have gone along this way since they were put down.
    trunk: Option<Trunk>,
    /// So many steps are to be made before a trunk is looked for.
    plain: u32,
}

/// A place on a stack, or on all stacks that have the same callers.
#[derive(Clone, Copy)]
struct Cursor {
    /// Of the stacks that go through it.
    weight: f64,
    at: Place,
    /// Which of the names that the frame's address has, in the direction of the walk.
    nth: u32,
    /// The name's rank among its siblings.
    rank: u32,
}

#[derive(Clone, Copy)]
enum Place {
    /// A frame of a list of callers: its index among those of all lists, and how many are behind it in the
    /// direction of the walk.
    Caller(CallersId, u32, u32),
    /// The innermost frame of a stack.
    Innermost(StackId),
    /// A stack has no frames.
    Nowhere,
}

struct Walker<'a> {
    profile: &'a Profile,
    frames: &'a FrameTable,
    shape: TreeShape<'a>,
    /// The key of each rank.
    by_rank: Vec<u32>,
    /// The rank of each address that has one name; of others [`SEVERAL`].
    only_rank: Vec<u32>,
    by_callers: StacksByCallers,
    /// What each stack weighs.
    own: Vec<f64>,
    path: Vec<TreeFrame>,
    parts: Vec<Part>,
}

/// Stands for the ranks of an address that has several names.
const SEVERAL: u32 = u32::MAX;

impl<'a> Walker<'a> {
    fn new(profile: &'a Profile, frames: &'a FrameTable, shape: TreeShape<'a>) -> Self {
        let mut by_rank = vec![UNKNOWN; shape.rank.len()];
        for (key, &rank) in shape.rank.iter().enumerate() {
            by_rank[rank as usize] = key as u32;
        }
        let rank_of = |address| match frames.of_address(AddressId(address)) {
            &[key] => shape.rank[key as usize],
            _ => SEVERAL,
        };
        Self {
            profile,
            frames,
            shape,
            by_rank,
            only_rank: (0..profile.addresses.len() as u32).map(rank_of).collect(),
            by_callers: profile.stacks.by_callers(),
            own: Vec::new(),
            path: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Walks the stacks below one frame.
    fn walk<E>(
        &mut self,
        stacks: &[WeighedStack],
        visit: &mut impl FnMut(Node<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut next = self.begin(stacks);
        self.path.clear();
        self.path.extend(stacks[0].above.map(TreeFrame::Above));
        let own = self.divide(&mut next, 0, None);
        if !self.path.is_empty() || own != 0.0 {
            visit(Node { path: &self.path, own })?;
        }
        while let Some(part) = self.parts.pop() {
            self.path.truncate(part.depth - 1);
            self.path.extend(part.frame);
            let trunk = match part.trunk {
                Some(mut trunk) => {
                    self.visit_inlined(&trunk, visit)?;
                    trunk.passed += 1;
                    Some(trunk)
                }
                None if part.plain > 0 => None,
                None => self.trunk(&part.cursors),
            };
            match trunk {
                Some(trunk) => self.follow(part.cursors, trunk, &mut next, visit)?,
                None => self.step(&part.cursors, part.plain.saturating_sub(1), &mut next, visit)?,
            }
        }
        Ok(())
    }

    /// Goes on by one frame with all cursors; their parts then make so many plain steps, too.
    fn step<E>(
        &mut self,
        cursors: &[Cursor],
        plain: u32,
        next: &mut Vec<Cursor>,
        visit: &mut impl FnMut(Node<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        next.clear();
        let mut own = 0.0;
        for &cursor in cursors {
            own += self.go_on(cursor, next);
        }
        own += self.divide(next, plain, None);
        visit(Node { path: &self.path, own })
    }

    /// Where the walk of these stacks begins.
    fn begin(&mut self, stacks: &[WeighedStack]) -> Vec<Cursor> {
        let mut cursors = Vec::new();
        if self.shape.direction == Direction::FromInnermost {
            for &WeighedStack { stack, weight, .. } in stacks {
                if !self.push_innermost(stack, weight, &mut cursors) {
                    self.push_last_caller(stack, weight, &mut cursors);
                }
            }
            return cursors;
        }
        self.own.clear();
        self.own.resize(self.profile.stacks.len(), 0.0);
        for stack in stacks {
            self.own[stack.stack.0 as usize] += stack.weight;
        }
        for (callers, with_them) in self.by_callers.iter() {
            let weight: f64 = with_them.iter().map(|stack| self.own[stack.0 as usize]).sum();
            if weight <= 0.0 {
                continue;
            }
            if callers != CallersId::NONE {
                let range = self.profile.stacks.range_of_callers(callers);
                let first = Place::Caller(callers, range.start, range.len() as u32 - 1);
                cursors.push(self.first(first, weight));
                continue;
            }
            for &stack in with_them.iter().filter(|stack| self.own[stack.0 as usize] > 0.0) {
                let weight = self.own[stack.0 as usize];
                if !self.push_innermost(stack, weight, &mut cursors) {
                    cursors.push(self.first(Place::Nowhere, weight));
                }
            }
        }
        cursors
    }

    fn address(&self, place: Place) -> Option<AddressId> {
        match place {
            Place::Caller(_, at, _) => Some(self.profile.stacks.caller_frames()[at as usize]),
            Place::Innermost(stack) => self.profile.stacks.innermost(stack),
            Place::Nowhere => None,
        }
    }

    /// The first of a place's names, in the direction of the walk.
    #[inline]
    fn first(&self, at: Place, weight: f64) -> Cursor {
        let only = self.address(at).map_or(SEVERAL, |address| self.only_rank[address.0 as usize]);
        if only != SEVERAL {
            return Cursor { weight, at, nth: 0, rank: only };
        }
        self.nth(at, 0, weight).unwrap_or(Cursor {
            weight,
            at,
            nth: 0,
            rank: self.shape.rank[UNKNOWN as usize],
        })
    }

    /// One of a place's names; `None` if there are not so many.
    fn nth(&self, at: Place, nth: u32, weight: f64) -> Option<Cursor> {
        let keys = self.frames.of_address(self.address(at)?);
        let key = match self.shape.direction {
            Direction::FromOutermost => keys.get(nth as usize),
            Direction::FromInnermost => keys.iter().rev().nth(nth as usize),
        };
        Some(Cursor { weight, at, nth, rank: self.shape.rank[*key? as usize] })
    }

    /// The next of the names that a cursor's place has.
    #[inline]
    fn next_name(&self, cursor: &Cursor) -> Option<Cursor> {
        let address = self.address(cursor.at)?;
        let has_several = self.only_rank[address.0 as usize] == SEVERAL;
        if has_several { self.nth(cursor.at, cursor.nth + 1, cursor.weight) } else { None }
    }

    /// Goes to the innermost frame of a stack if it has one.
    fn push_innermost(&self, stack: StackId, weight: f64, next: &mut Vec<Cursor>) -> bool {
        let has_one = self.profile.stacks.innermost(stack).is_some();
        if has_one {
            next.push(self.first(Place::Innermost(stack), weight));
        }
        has_one
    }

    /// Goes to the innermost of a stack's callers; to nowhere if it has none.
    fn push_last_caller(&self, stack: StackId, weight: f64, next: &mut Vec<Cursor>) {
        let callers = self.profile.stacks.callers(stack);
        let frames = self.profile.stacks.range_of_callers(callers);
        let place = match frames.len().checked_sub(1) {
            Some(left) => Place::Caller(callers, frames.end - 1, left as u32),
            None => Place::Nowhere,
        };
        next.push(self.first(place, weight));
    }

    /// Adds the places behind a cursor; what ends there is returned.
    fn go_on(&self, cursor: Cursor, next: &mut Vec<Cursor>) -> f64 {
        let Cursor { weight, at, .. } = cursor;
        if let Some(name) = self.next_name(&cursor) {
            next.push(name);
            return 0.0;
        }
        let stacks = &self.profile.stacks;
        match (self.shape.direction, at) {
            (Direction::FromOutermost, Place::Caller(callers, index, left)) => {
                if left > 0 {
                    next.push(self.first(Place::Caller(callers, index + 1, left - 1), weight));
                    return 0.0;
                }
                let with_them = self.by_callers.of(callers).iter();
                let weighed = with_them.map(|&stack| (stack, self.own[stack.0 as usize]));
                let ended =
                    weighed.filter(|(stack, own)| *own > 0.0 && !self.push_innermost(*stack, *own, next));
                ended.map(|(_, own)| own).sum()
            }
            (Direction::FromInnermost, Place::Innermost(stack)) => {
                if stacks.callers(stack) == CallersId::NONE {
                    return weight;
                }
                self.push_last_caller(stack, weight, next);
                0.0
            }
            (Direction::FromInnermost, Place::Caller(callers, index, left)) if left > 0 => {
                next.push(self.first(Place::Caller(callers, index - 1, left - 1), weight));
                0.0
            }
            _ => weight,
        }
    }

    /// Makes parts of cursors by their ranks, and of those that stay on a trunk with its next frame's rank, which
    /// no other has; what is too small is returned.
    fn divide(
        &mut self,
        next: &mut [Cursor],
        plain: u32,
        mut staying: Option<(u32, Vec<Cursor>, Trunk)>,
    ) -> f64 {
        // Most often all go on alike: then there is nothing to sort.
        if !next.iter().all(|cursor| cursor.rank == next[0].rank) {
            // Stable, so that cursors stay in the order in which their frames lie in memory.
            next.sort_by_key(|cursor| cursor.rank);
        }
        let mut small = 0.0;
        // The last part pushed is visited first.
        for group in next.chunk_by(|a, b| a.rank == b.rank).rev() {
            if let Some((rank, cursors, trunk)) = staying.take_if(|(rank, ..)| *rank > group[0].rank) {
                small += self.push_part(rank, cursors, 0, Some(trunk));
            }
            small += self.push_part(group[0].rank, group.to_vec(), plain, None);
        }
        if let Some((rank, cursors, trunk)) = staying {
            small += self.push_part(rank, cursors, 0, Some(trunk));
        }
        small
    }

    /// Adds a part, unless it is too small: then what it weighs is returned.
    fn push_part(&mut self, rank: u32, cursors: Vec<Cursor>, plain: u32, trunk: Option<Trunk>) -> f64 {
        let weight: f64 = cursors.iter().map(|cursor| cursor.weight).sum();
        if weight < self.shape.threshold {
            return weight;
        }
        let frame = Some(TreeFrame::Key(self.by_rank[rank as usize]));
        self.parts.push(Part { cursors, depth: self.path.len() + 1, frame, trunk, plain });
        0.0
    }
}

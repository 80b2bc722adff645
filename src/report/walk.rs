//! The call tree by names, walked without building it.
//!
//! From the outermost frame on, the tree of callers is walked, in which places with equal names become one; from
//! the innermost, stacks are divided by their first frame, each part by its second, and so on. A part that weighs
//! less than a threshold is not divided further, so that what cannot be seen costs nothing.

use super::frames::{FrameTable, UNKNOWN};
use super::parallel::in_parallel;
use crate::profile::{AddressId, ByCallers, CallersId, Profile, StackId};

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
}

/// A place in the tree of callers, or on a stack.
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
    /// The innermost of callers.
    Caller(CallersId),
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
    /// What the stacks weigh in the tree; only from the outermost frame on.
    tree: Option<WeighedTree>,
    path: Vec<TreeFrame>,
    parts: Vec<Part>,
}

/// The tree of callers and what weighs in it.
struct WeighedTree {
    called: ByCallers<CallersId>,
    by_callers: ByCallers<StackId>,
    weights: Weights,
}

impl WeighedTree {
    /// With the weights of these stacks.
    fn new(profile: &Profile, stacks: &[WeighedStack]) -> Self {
        let weigh = || {
            let mut weights = Weights::new(profile);
            weights.add(profile, stacks);
            weights
        };
        let lists = || (profile.stacks.called(), profile.stacks.by_callers());
        let ((called, by_callers), weights) = in_parallel(lists, weigh);
        Self { called, by_callers, weights }
    }
}

/// Weights in the tree of callers.
struct Weights {
    /// What each stack weighs.
    own: Vec<f64>,
    /// What each place weighs with all below it.
    below: Vec<f64>,
    /// Places that stacks go through, where they are few.
    touched: Vec<CallersId>,
    is_touched: Vec<bool>,
}

/// Stands for the ranks of an address that has several names.
const SEVERAL: u32 = u32::MAX;

impl Weights {
    fn new(profile: &Profile) -> Self {
        Self {
            own: vec![0.0; profile.stacks.len()],
            below: vec![0.0; profile.stacks.callers_len()],
            touched: Vec::new(),
            is_touched: Vec::new(),
        }
    }

    /// Puts the weights of stacks where there are none yet. Only what they go through is looked at: there may be
    /// many threads, each with stacks of its own.
    fn add(&mut self, profile: &Profile, stacks: &[WeighedStack]) {
        for &WeighedStack { stack, weight, .. } in stacks {
            self.own[stack.0 as usize] += weight;
            self.below[profile.stacks.callers(stack).0 as usize] += weight;
        }
        // Callers have lower numbers than those that they call.
        if self.are_many(stacks) {
            profile.stacks.all_callers().rev().for_each(|at| self.pass_on(profile, at));
            return;
        }
        self.is_touched.resize(self.below.len(), false);
        for stack in stacks {
            let mut at = profile.stacks.callers(stack.stack);
            while let Some((_, outer)) = profile.stacks.caller(at)
                && !std::mem::replace(&mut self.is_touched[at.0 as usize], true)
            {
                self.touched.push(at);
                at = outer;
            }
        }
        self.touched.sort_unstable_by(|a, b| b.cmp(a));
        for place in 0..self.touched.len() {
            self.pass_on(profile, self.touched[place]);
        }
    }

    /// Adds what a place weighs to its callers.
    fn pass_on(&mut self, profile: &Profile, at: CallersId) {
        if let Some((_, outer)) = profile.stacks.caller(at) {
            self.below[outer.0 as usize] += self.below[at.0 as usize];
        }
    }

    /// So many stacks that it is best to go through the whole tree.
    fn are_many(&self, stacks: &[WeighedStack]) -> bool {
        stacks.len() >= self.own.len() / 8
    }

    /// Takes all weights away.
    fn clear(&mut self, stacks: &[WeighedStack]) {
        stacks.iter().for_each(|stack| self.own[stack.stack.0 as usize] = 0.0);
        if self.are_many(stacks) {
            self.below.fill(0.0);
            return;
        }
        for at in self.touched.drain(..) {
            self.below[at.0 as usize] = 0.0;
            self.is_touched[at.0 as usize] = false;
        }
        self.below[CallersId::NONE.0 as usize] = 0.0;
    }
}

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
            tree: None,
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
        match &mut self.tree {
            Some(tree) => tree.weights.add(self.profile, stacks),
            None if self.shape.direction == Direction::FromOutermost => {
                self.tree = Some(WeighedTree::new(self.profile, stacks));
            }
            None => {}
        }
        let mut next = Vec::new();
        self.begin(stacks, &mut next);
        self.path.clear();
        self.path.extend(stacks[0].above.map(TreeFrame::Above));
        let own = self.divide(&mut next);
        if !self.path.is_empty() || own != 0.0 {
            visit(Node { path: &self.path, own })?;
        }
        while let Some(part) = self.parts.pop() {
            self.path.truncate(part.depth - 1);
            self.path.extend(part.frame);
            next.clear();
            let mut own = 0.0;
            for &cursor in &part.cursors {
                own += self.go_on(cursor, &mut next);
            }
            own += self.divide(&mut next);
            visit(Node { path: &self.path, own })?;
        }
        if let Some(tree) = &mut self.tree {
            tree.weights.clear(stacks);
        }
        Ok(())
    }

    /// Where the walk of these stacks begins.
    fn begin(&self, stacks: &[WeighedStack], next: &mut Vec<Cursor>) {
        let nowhere = |weight| self.first(Place::Nowhere, weight);
        let Some(tree) = &self.tree else {
            for &WeighedStack { stack, weight, .. } in stacks {
                if !self.push_innermost(stack, weight, next) && !self.push_caller_of(stack, weight, next) {
                    next.push(nowhere(weight));
                }
            }
            return;
        };
        let ended = self.push_called(tree, CallersId::NONE, next);
        if ended > 0.0 {
            next.push(nowhere(ended));
        }
    }

    fn address(&self, place: Place) -> Option<AddressId> {
        match place {
            Place::Caller(callers) => self.profile.stacks.caller(callers).map(|(address, _)| address),
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

    /// Goes to the innermost of a stack's callers if it has any.
    fn push_caller_of(&self, stack: StackId, weight: f64, next: &mut Vec<Cursor>) -> bool {
        let callers = self.profile.stacks.callers(stack);
        let has_some = callers != CallersId::NONE;
        if has_some {
            next.push(self.first(Place::Caller(callers), weight));
        }
        has_some
    }

    /// Goes to all that these callers called; what ends there is returned.
    fn push_called(&self, tree: &WeighedTree, callers: CallersId, next: &mut Vec<Cursor>) -> f64 {
        for called in tree.called.of(callers) {
            let weight = tree.weights.below[called.0 as usize];
            if weight > 0.0 {
                next.push(self.first(Place::Caller(called), weight));
            }
        }
        let mut ended = 0.0;
        for stack in tree.by_callers.of(callers) {
            let weight = tree.weights.own[stack.0 as usize];
            if weight > 0.0 && !self.push_innermost(stack, weight, next) {
                ended += weight;
            }
        }
        ended
    }

    /// Adds the places behind a cursor; what ends there is returned.
    fn go_on(&self, cursor: Cursor, next: &mut Vec<Cursor>) -> f64 {
        let Cursor { weight, at, .. } = cursor;
        if let Some(name) = self.next_name(&cursor) {
            next.push(name);
            return 0.0;
        }
        match (&self.tree, at) {
            (Some(tree), Place::Caller(callers)) => self.push_called(tree, callers, next),
            (None, Place::Innermost(stack)) if self.push_caller_of(stack, weight, next) => 0.0,
            (None, Place::Caller(callers)) => match self.profile.stacks.caller(callers) {
                Some((_, outer)) if outer != CallersId::NONE => {
                    next.push(self.first(Place::Caller(outer), weight));
                    0.0
                }
                _ => weight,
            },
            _ => weight,
        }
    }

    /// Makes parts of cursors by their ranks; what is too small is returned.
    fn divide(&mut self, next: &mut [Cursor]) -> f64 {
        // Most often all go on alike: then there is nothing to sort.
        if !next.iter().all(|cursor| cursor.rank == next[0].rank) {
            // Stable, so that cursors stay in the order in which their frames lie in memory.
            next.sort_by_key(|cursor| cursor.rank);
        }
        let mut small = 0.0;
        // The last part pushed is visited first.
        for group in next.chunk_by(|a, b| a.rank == b.rank).rev() {
            let weight: f64 = group.iter().map(|cursor| cursor.weight).sum();
            if weight < self.shape.threshold {
                small += weight;
                continue;
            }
            let frame = Some(TreeFrame::Key(self.by_rank[group[0].rank as usize]));
            self.parts.push(Part { cursors: group.to_vec(), depth: self.path.len() + 1, frame });
        }
        small
    }
}

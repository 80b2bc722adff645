//! The call tree by names, walked without building it.
//!
//! From the outermost frame on, the tree of callers is walked, in which places with equal names become one; from
//! the innermost, stacks are divided by their first frame, each part by its second, and so on. A part that weighs
//! less than a threshold is not divided further, so that what cannot be seen costs nothing.

use std::convert::Infallible;
use std::ops::Range;

use super::frames::{FrameTable, UNKNOWN};
use crate::profile::{AddressId, CallersId, Profile, StackId};
use crate::threads::Threads;
pub(super) use weighed_tree::WeighedStack;
use weighed_tree::WeighedTree;

mod weighed_tree;

/// The direction in which stacks are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    /// From the outermost frame to the innermost: who calls what.
    FromOutermost,
    /// From the innermost frame to the outermost: by whom is it called.
    FromInnermost,
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
    let small = small_groups(stacks, shape);
    if small != 0.0 {
        visit(Node { path: &[], own: small })?;
    }
    let mut ground = Ground::new(profile, frames, shape, false);
    large_groups(stacks, shape).try_for_each(|group| {
        ground.put(group);
        let mut walker = Walker::new(&ground);
        let own = walker.begin(group);
        if !walker.path.is_empty() || own != 0.0 {
            visit(Node { path: &walker.path, own })?;
        }
        walker.go_on(&mut visit)?;
        ground.clear(group);
        Ok(())
    })
}

/// The same by several threads: each makes of some nodes in a row what `digest` makes of them, which `take` is given in their
/// order. Nodes without weight of their own are left out.
pub(super) fn walk_at_once<T: Default + Send, E>(
    profile: &Profile,
    frames: &FrameTable,
    stacks: &[WeighedStack],
    shape: TreeShape<'_>,
    digest: impl Fn(&mut T, Node<'_>) + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let small = small_groups(stacks, shape);
    if small > 0.0 {
        let mut made = T::default();
        digest(&mut made, Node { path: &[], own: small });
        take(made)?;
    }
    let threads = Threads::new((stacks.len() < FEW_STACKS).then_some(1));
    let mut ground = Ground::new(profile, frames, shape, true);
    large_groups(stacks, shape).try_for_each(|group| {
        ground.put(group);
        let errands = Walker::new(&ground).errands(group, stacks.len() / BUNDLES);
        let bundles = bundles(&errands, stacks.len() / BUNDLES);
        let work = |bundle: usize| {
            let mut made = T::default();
            let mut walker = Walker::new(&ground);
            for errand in &errands[bundles[bundle].clone()] {
                walker.run(errand, &mut |node| digest(&mut made, node));
            }
            made
        };
        threads.in_order(bundles.len(), work, &mut take)?;
        ground.clear(group);
        Ok(())
    })
}

/// Fewer stacks are walked before another thread has begun. Tests have few.
const FEW_STACKS: usize = if cfg!(test) { 4 } else { 1 << 14 };
/// Work is divided in about so many pieces, whatever the number of threads is.
const BUNDLES: usize = if cfg!(test) { 5 } else { 1024 };
/// So many pieces of one group are told apart at most: a path may be very deep, and each has its own.
const MOST_ERRANDS: usize = 1 << 13;

fn groups(stacks: &[WeighedStack]) -> impl Iterator<Item = &[WeighedStack]> {
    stacks.chunk_by(|a, b| a.above == b.above)
}

fn is_small(group: &[WeighedStack], shape: TreeShape<'_>) -> bool {
    group[0].above.is_some() && total(group) < shape.threshold
}

/// What the groups below one frame weigh that are not walked, since they weigh too little.
fn small_groups(stacks: &[WeighedStack], shape: TreeShape<'_>) -> f64 {
    groups(stacks).filter(|group| is_small(group, shape)).map(total).sum()
}

fn large_groups<'s>(
    stacks: &'s [WeighedStack],
    shape: TreeShape<'s>,
) -> impl Iterator<Item = &'s [WeighedStack]> {
    groups(stacks).filter(move |group| !is_small(group, shape))
}

/// A piece of a walk.
enum Errand {
    /// A node with weight of its own.
    Node { path: Vec<TreeFrame>, own: f64 },
    /// A branch, with the path to its frame, and how many stacks go through it.
    Branch { path: Vec<TreeFrame>, part: Part, stacks: usize },
}

/// Puts pieces in a row together until so many stacks go through them.
fn bundles(errands: &[Errand], most_stacks: usize) -> Vec<Range<usize>> {
    let (mut bundles, mut first, mut stacks) = (Vec::new(), 0, 0);
    for (place, errand) in errands.iter().enumerate() {
        stacks += match errand {
            Errand::Node { .. } => 1,
            Errand::Branch { stacks, .. } => *stacks,
        };
        if stacks >= most_stacks {
            bundles.push(first..place + 1);
            (first, stacks) = (place + 1, 0);
        }
    }
    if first < errands.len() {
        bundles.push(first..errands.len());
    }
    bundles
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

/// What a walk looks at, and does not change.
struct Ground<'a> {
    profile: &'a Profile,
    frames: &'a FrameTable,
    shape: TreeShape<'a>,
    /// Whether stacks are counted.
    counts: bool,
    /// The key of each rank.
    by_rank: Vec<u32>,
    /// The rank of each address that has one name; of others [`SEVERAL`].
    only_rank: Vec<u32>,
    /// What the stacks at hand weigh in the tree; only from the outermost frame on.
    tree: Option<WeighedTree>,
}

struct Walker<'g> {
    ground: &'g Ground<'g>,
    path: Vec<TreeFrame>,
    parts: Vec<Part>,
    /// Where the branch at hand goes on.
    next: Vec<Cursor>,
}

/// Stands for the ranks of an address that has several names.
const SEVERAL: u32 = u32::MAX;

impl<'a> Ground<'a> {
    fn new(profile: &'a Profile, frames: &'a FrameTable, shape: TreeShape<'a>, counts: bool) -> Self {
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
            counts,
            by_rank,
            only_rank: (0..profile.addresses.len() as u32).map(rank_of).collect(),
            tree: None,
        }
    }

    /// Puts the weights of stacks below one frame in the place of none.
    fn put(&mut self, stacks: &[WeighedStack]) {
        match &mut self.tree {
            Some(tree) => tree.weights.add(self.profile, stacks),
            None if self.shape.direction == Direction::FromOutermost => {
                self.tree = Some(WeighedTree::new(self.profile, stacks, self.counts));
            }
            None => {}
        }
    }

    /// Takes them away.
    fn clear(&mut self, stacks: &[WeighedStack]) {
        if let Some(tree) = &mut self.tree {
            tree.weights.clear(stacks);
        }
    }

    /// How many stacks go through all places of a branch.
    fn stacks_through(&self, part: &Part) -> usize {
        let through = |cursor: &Cursor| match (cursor.at, &self.tree) {
            (Place::Caller(callers), Some(tree)) => tree.weights.stacks_through(callers),
            _ => 1,
        };
        part.cursors.iter().map(through).sum()
    }

    /// Where the walk of these stacks begins.
    fn push_first(&self, stacks: &[WeighedStack], next: &mut Vec<Cursor>) {
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
    fn push_next(&self, cursor: Cursor, next: &mut Vec<Cursor>) -> f64 {
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
}

impl<'g> Walker<'g> {
    fn new(ground: &'g Ground<'g>) -> Self {
        Self { ground, path: Vec::new(), parts: Vec::new(), next: Vec::new() }
    }

    /// Begins to walk the stacks below one frame; what ends there is returned.
    fn begin(&mut self, stacks: &[WeighedStack]) -> f64 {
        self.path.clear();
        self.path.extend(stacks[0].above.map(TreeFrame::Above));
        self.next.clear();
        self.ground.push_first(stacks, &mut self.next);
        self.divide()
    }

    /// Walks all branches that are still to be visited.
    fn go_on<E>(&mut self, visit: &mut impl FnMut(Node<'_>) -> Result<(), E>) -> Result<(), E> {
        while let Some(part) = self.parts.pop() {
            self.enter(&part);
            let own = self.branch(&part);
            visit(Node { path: &self.path, own })?;
        }
        Ok(())
    }

    /// The pieces that the walk of the stacks below one frame consists of, in its order: branches that not more than so many
    /// stacks go through, and nodes.
    fn errands(&mut self, stacks: &[WeighedStack], most_stacks: usize) -> Vec<Errand> {
        let mut errands = Vec::new();
        let own = self.begin(stacks);
        errands.extend((own > 0.0).then(|| Errand::Node { path: self.path.clone(), own }));
        while let Some(part) = self.parts.pop() {
            self.enter(&part);
            let stacks = self.ground.stacks_through(&part);
            if stacks <= most_stacks || errands.len() >= MOST_ERRANDS {
                errands.push(Errand::Branch { path: self.path.clone(), part, stacks });
                continue;
            }
            let own = self.branch(&part);
            errands.extend((own > 0.0).then(|| Errand::Node { path: self.path.clone(), own }));
        }
        errands
    }

    /// Walks one of the pieces.
    fn run(&mut self, errand: &Errand, visit: &mut impl FnMut(Node<'_>)) {
        match errand {
            Errand::Node { path, own } => visit(Node { path, own: *own }),
            Errand::Branch { path, part, .. } => {
                self.path.clone_from(path);
                let own = self.branch(part);
                let mut visit_own = |node: Node<'_>| {
                    if node.own > 0.0 {
                        visit(node);
                    }
                    Ok::<(), Infallible>(())
                };
                let Ok(()) = visit_own(Node { path: &self.path, own });
                let Ok(()) = self.go_on(&mut visit_own);
            }
        }
    }

    /// Goes to a branch's frame.
    fn enter(&mut self, part: &Part) {
        self.path.truncate(part.depth - 1);
        self.path.extend(part.frame);
    }

    /// Divides the branch at hand; what ends there is returned.
    fn branch(&mut self, part: &Part) -> f64 {
        self.next.clear();
        let mut own = 0.0;
        for &cursor in &part.cursors {
            own += self.ground.push_next(cursor, &mut self.next);
        }
        own + self.divide()
    }

    /// Makes parts of cursors by their ranks; what is too small is returned.
    fn divide(&mut self) -> f64 {
        let Self { ground, path, parts, next } = self;
        // Most often all go on alike: then there is nothing to sort.
        if !next.iter().all(|cursor| cursor.rank == next[0].rank) {
            // Stable, so that cursors stay in the order in which their frames lie in memory.
            next.sort_by_key(|cursor| cursor.rank);
        }
        let mut small = 0.0;
        // The last part pushed is visited first.
        for group in next.chunk_by(|a, b| a.rank == b.rank).rev() {
            let weight: f64 = group.iter().map(|cursor| cursor.weight).sum();
            if weight < ground.shape.threshold {
                small += weight;
                continue;
            }
            let frame = Some(TreeFrame::Key(ground.by_rank[group[0].rank as usize]));
            parts.push(Part { cursors: group.to_vec(), depth: path.len() + 1, frame });
        }
        small
    }
}

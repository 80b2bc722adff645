//! The nodes of a call tree that are drawn: all that are not too light, or as many of them as a page has room for.

use std::convert::Infallible;

use rustc_hash::FxHashMap;

use super::tree::CallTree;
use super::walk::TreeFrame;

/// Branches lighter than this share of the whole are part of their parent, where there are many.
const LIGHTEST: f64 = 1e-6;
/// Each time that there are too many nodes, branches must be so much heavier.
const STEP: f64 = 4.0;
/// A page of so many nodes has a few hundred kilobytes of them, and is drawn at once.
const MOST_NODES: usize = 12_000;
/// So many nodes are drawn however much else there is.
const FEWEST_NODES: usize = 500;

/// The nodes of a call tree that are drawn.
pub struct Nodes {
    /// Of each node the one that it lies in. Node 0 is everything.
    pub parents: Vec<u32>,
    /// Of each node its frame: 0 is everything, others are one more than their place in `frames`.
    pub node_frames: Vec<u32>,
    pub frames: Vec<TreeFrame>,
    frame_ids: FxHashMap<TreeFrame, u32>,
    children: FxHashMap<(u32, u32), u32>,
    /// The share of the whole below which branches are not drawn; 0 if all are.
    pub lightest: f64,
}

/// There are more nodes than a page has room for.
struct TooMany;

impl Nodes {
    /// Without branches that are lighter than a share of the whole, or than a page has room for.
    pub fn new(tree: &CallTree<'_>, lightest: f64) -> Self {
        let mut lightest = lightest;
        loop {
            let has_room = |nodes| if nodes > MOST_NODES { Err(TooMany) } else { Ok(()) };
            match Self::grown(tree, lightest, has_room) {
                Ok(nodes) => return nodes,
                Err(TooMany) => lightest = (lightest * STEP).max(LIGHTEST),
            }
        }
    }

    /// Without branches that are lighter than a share of the whole, however many others there are.
    pub fn all(tree: &CallTree<'_>, lightest: f64) -> Self {
        let Ok(nodes) = Self::grown(tree, lightest, |_| Ok::<(), Infallible>(()));
        nodes
    }

    /// `may_grow` says of a number of nodes whether there may be more.
    fn grown<E>(
        tree: &CallTree<'_>,
        lightest: f64,
        may_grow: impl Fn(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut nodes = Self {
            parents: vec![0],
            node_frames: vec![0],
            frames: Vec::new(),
            frame_ids: FxHashMap::default(),
            children: FxHashMap::default(),
            lightest,
        };
        tree.for_each_own(tree.total() * lightest, |path, _| {
            nodes.add(path);
            may_grow(nodes.parents.len())
        })?;
        Ok(nodes)
    }

    /// Less of the tree; `None` if there is little of it already.
    pub fn with_fewer(&self, tree: &CallTree<'_>) -> Option<Self> {
        let lightest = (self.lightest * STEP).max(LIGHTEST);
        (self.parents.len() > FEWEST_NODES).then(|| Self::new(tree, lightest))
    }

    /// The number of a frame.
    pub fn frame(&mut self, frame: TreeFrame) -> u32 {
        let frames = &mut self.frames;
        *self.frame_ids.entry(frame).or_insert_with(|| {
            frames.push(frame);
            frames.len() as u32
        })
    }

    /// The frame of a node; `None` of everything.
    pub fn frame_of(&self, node: u32) -> Option<TreeFrame> {
        let frame = self.node_frames[node as usize].checked_sub(1)?;
        self.frames.get(frame as usize).copied()
    }

    fn add(&mut self, path: &[TreeFrame]) {
        let mut node = 0;
        for &frame in path {
            let frame = self.frame(frame);
            node = self.child(node, frame);
        }
    }

    /// The node of a frame that lies in another; a new one if there is none.
    fn child(&mut self, node: u32, frame: u32) -> u32 {
        let next = self.parents.len() as u32;
        let child = *self.children.entry((node, frame)).or_insert(next);
        if child == next {
            self.parents.push(node);
            self.node_frames.push(frame);
        }
        child
    }

    /// The node that a path ends in, or the last of its ancestors that is drawn.
    pub fn of(&self, path: &[TreeFrame]) -> u32 {
        self.follow(path.iter().copied(), Reached::ALL).node()
    }

    /// Goes on with a path from where it has led.
    #[inline]
    pub fn follow(&self, path: impl IntoIterator<Item = TreeFrame>, from: Reached) -> Reached {
        let mut reached = from;
        for frame in path {
            if reached.is_beyond() {
                break;
            }
            let at = reached.node();
            let child = self.frame_ids.get(&frame).and_then(|frame| self.children.get(&(at, *frame)));
            reached = child.map_or(Reached(at | BEYOND), |child| Reached(*child));
        }
        reached
    }
}

/// How far a path lies in nodes that are drawn: the node that it has led to, and whether it goes on where none is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Reached(u32);

const BEYOND: u32 = 1 << 31;

impl Reached {
    /// Nothing of a path yet: the node of all.
    pub const ALL: Self = Self(0);

    /// The last node that is drawn.
    pub fn node(self) -> u32 {
        self.0 & !BEYOND
    }

    /// The node that a path ends in; `None` if it goes on where none is drawn.
    pub fn end(self) -> Option<u32> {
        (!self.is_beyond()).then(|| self.node())
    }

    fn is_beyond(self) -> bool {
        self.0 & BEYOND != 0
    }
}

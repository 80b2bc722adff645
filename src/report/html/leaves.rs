//! Where the weight of a page lies: at places of the call tree, in threads, on CPUs, in time.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::Label;
use crate::profile::{Profile, ThreadIndex};
use crate::report::node_paths::NodePaths;
use crate::report::nodes::Nodes;
use crate::report::tree::CallTree;

/// So many threads and CPUs are told apart; the rest of them are one.
const MOST_TRACKS: usize = 32;

/// A page with more leaves, or with more weights of them in time, takes them apart, and where that is not enough has less of the call tree.
pub const MOST_LEAVES: usize = 15_000;

/// A place where weight lies: what a page's sums are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// The node of the call tree; `None` of what is a function's alone.
    pub node: Option<u32>,
    /// The innermost function, which is the node's own unless that branch is too light to be drawn; `None` of what is
    /// a node's alone.
    pub frame: Option<u32>,
    /// The function that an inlined one was put into, where the nodes do not tell it.
    pub put_into: Option<u32>,
    /// Index in [`Tracks::names`].
    pub thread: u32,
}

/// Leaves, each once.
pub struct Leaves {
    pub all: Vec<Leaf>,
    ids: FxHashMap<Leaf, u32>,
    /// Where a branch is not drawn, what lies in it is told of the node and of the function, and not of the pairs of
    /// both: in call trees without two equal paths these are too many.
    pub are_apart: bool,
}

/// What stands for leaves in a page.
#[derive(Serialize)]
pub struct LeafTable {
    /// Difference to the leaf before. Nodes are counted from 1 here, 0 is none.
    node: Vec<i64>,
    /// Functions are counted from 2 here: 0 is the node's own, 1 is none.
    function: Vec<u32>,
    thread: Vec<u32>,
    /// Pairs of leaf and the function that its own was put into by the compiler, where no node tells it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    put_into: Vec<(u32, u32)>,
}

/// The innermost function of a path, and the one that it was put into by the compiler where no node tells it.
#[derive(Debug, Clone, Copy)]
struct Innermost {
    frame: u32,
    put_into: Option<u32>,
}

impl Leaves {
    pub fn new(are_apart: bool) -> Self {
        Self { all: Vec::new(), ids: FxHashMap::default(), are_apart }
    }

    fn id(&mut self, leaf: Leaf) -> u32 {
        let all = &mut self.all;
        *self.ids.entry(leaf).or_insert_with(|| {
            all.push(leaf);
            all.len() as u32 - 1
        })
    }

    /// The leaves of weight in a function that lies in a node or in a branch of it.
    fn of(&mut self, nodes: &Nodes, node: u32, innermost: Innermost, thread: u32) -> [Option<u32>; 2] {
        let Innermost { frame, put_into } = innermost;
        if !self.are_apart || nodes.node_frames[node as usize] == frame {
            return [Some(self.id(Leaf { node: Some(node), frame: Some(frame), put_into, thread })), None];
        }
        let of_node = self.id(Leaf { node: Some(node), frame: None, put_into: None, thread });
        let of_function = self.id(Leaf { node: None, frame: Some(frame), put_into, thread });
        [Some(of_node), Some(of_function)]
    }

    pub fn table(&self, nodes: &Nodes) -> LeafTable {
        let function = |leaf: &Leaf| match (leaf.node, leaf.frame) {
            (_, None) => 1,
            (Some(node), Some(frame)) if nodes.node_frames[node as usize] == frame => 0,
            (_, Some(frame)) => frame + 2,
        };
        let node = |leaf: &Leaf| leaf.node.map_or(0, |node| i64::from(node) + 1);
        let before = [0].into_iter().chain(self.all.iter().map(node));
        LeafTable {
            node: self.all.iter().zip(before).map(|(leaf, before)| node(leaf) - before).collect(),
            function: self.all.iter().map(function).collect(),
            thread: self.all.iter().map(|leaf| leaf.thread).collect(),
            put_into: (0..).zip(&self.all).filter_map(|(at, leaf)| Some((at, leaf.put_into?))).collect(),
        }
    }
}

/// Threads or CPUs, the heaviest first, and the rest as one.
pub struct Tracks<K> {
    pub names: Vec<Label>,
    ids: BTreeMap<K, u32>,
}

impl<K: Ord + Copy> Tracks<K> {
    pub fn new(weights: &BTreeMap<K, f64>, name: impl Fn(K) -> String, rest: &str) -> Self {
        let mut heaviest: Vec<K> = weights.keys().copied().collect();
        heaviest.sort_by(|a, b| weights[b].total_cmp(&weights[a]).then(a.cmp(b)));
        let shown = if heaviest.len() > MOST_TRACKS { MOST_TRACKS - 1 } else { heaviest.len() };
        let mut names: Vec<Label> = heaviest[..shown].iter().map(|&key| Label::new(&name(key))).collect();
        if heaviest.len() > shown {
            names.push(Label::new(&format!("{} {rest}", heaviest.len() - shown)));
        }
        let ids = heaviest.iter().enumerate().map(|(at, &key)| (key, at.min(shown) as u32)).collect();
        Self { names, ids }
    }

    pub fn of(&self, key: K) -> u32 {
        self.ids.get(&key).copied().unwrap_or_default()
    }
}

/// The threads and CPUs that a call tree has weight of.
pub struct Places {
    pub threads: Tracks<ThreadIndex>,
    pub cpus: Tracks<Option<u32>>,
}

impl Places {
    pub fn new(tree: &CallTree<'_>) -> Self {
        let (mut threads, mut cpus) = (BTreeMap::new(), BTreeMap::new());
        tree.parts().for_each_part(&mut |part| {
            for (cell, totals, _) in tree.cells(part) {
                let (cell, weight) = (&part.cells[cell], totals.weight(tree.weight));
                *threads.entry(cell.thread).or_default() += weight;
                *cpus.entry(cell.cpu).or_default() += weight;
            }
        });
        let profile = tree.parts().profile();
        let thread_name = |thread: ThreadIndex| match profile.threads.get(thread.0 as usize) {
            Some(thread) => thread.title(),
            None => "[unknown]".to_owned(),
        };
        let cpu_name = |cpu: Option<u32>| cpu.map_or_else(|| "no CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        Self {
            threads: Tracks::new(&threads, thread_name, "other threads"),
            cpus: Tracks::new(&cpus, cpu_name, "other CPUs"),
        }
    }
}

/// The selected cells of a part of the profile: their weights, leaves and CPUs.
pub struct PlacedCells {
    /// `None` for those that are not selected.
    pub of_cell: Vec<Option<Placed>>,
}

/// What was spent somewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    pub weight: f64,
    /// Of CPUs, where that is told.
    pub seconds: f64,
}

impl Spent {
    pub fn is_nothing(&self) -> bool {
        self.weight <= 0.0 && self.seconds <= 0.0
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.weight += other.weight;
        self.seconds += other.seconds;
    }
}

/// A cell, as the page has it.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub spent: Spent,
    pub leaves: [Option<u32>; 2],
    pub cpu: u32,
}

impl PlacedCells {
    pub fn new(
        tree: &CallTree<'_>,
        part: &Profile,
        nodes: &mut Nodes,
        places: &Places,
        leaves: &mut Leaves,
    ) -> Self {
        let mut paths = NodePaths::new(tree, part);
        let mut of_cell = vec![None; part.cells.len()];
        for (index, totals, path) in tree.cells(part) {
            let spent = Spent { weight: totals.weight(tree.weight), seconds: totals.time.as_secs_f64() };
            let (node, innermost) = paths.find(nodes, path);
            let frame = innermost.map_or(0, |frame| nodes.frame(frame));
            let is_drawn = nodes.node_frames[node as usize] == frame;
            let put_into = if is_drawn { None } else { tree.put_into(part, path) };
            let innermost = Innermost { frame, put_into: put_into.map(|frame| nodes.frame(frame)) };
            if !spent.is_nothing() {
                let cell = &part.cells[index];
                let leaves = leaves.of(nodes, node, innermost, places.threads.of(cell.thread));
                of_cell[index] = Some(Placed { spent, leaves, cpu: places.cpus.of(cell.cpu) });
            }
        }
        Self { of_cell }
    }
}

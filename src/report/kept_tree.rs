//! A call tree by names of which only so many frames are kept as there is memory for.
//!
//! It is made of profiles that come in parts ([`ProfileParts`](crate::profile::ProfileParts)), in two passes. In the
//! first, every path grows the tree; when it has too many frames, the lightest half of them is folded, subtree by
//! subtree, into what stands above it. From then on a path that is no heavier than what was folded grows the tree by one
//! frame at most: where it comes again, it grows by another, and where it does not, its rest would only have taken the
//! room in which others are counted. What was folded may come again, so that weights are not known then. In the second
//! pass the shape is fixed, and each path is added to those of its frames that are there: what is kept has its exact
//! weight, and the rest is known as folded below the frame that it left the tree at.
//!
//! Exactly which the lightest subtrees are, nobody knows before all are counted. A subtree may be missed that always came
//! in doses lighter than what was folded next; one that was kept by luck is folded in the end if it is lighter than the
//! heaviest that had to go.
//!
//! Paths are by name, since a frame of the picture is a name: folded by address, a function would be missing where it was
//! called from one place and there where it was called from another, and what is drawn of it would be wrong.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::walk::TreeFrame;

/// A frame with its entry in the table, while the table grows and while the lightest are looked for.
const BYTES_PER_NODE: usize = 96;
/// However little memory there is: some hundred kilobytes.
const LEAST_NODES: usize = 1 << 12;

/// A call tree.
pub(super) struct KeptTree {
    most_nodes: usize,
    /// Callers before those that they call; the first is the root, which is no frame.
    nodes: Vec<Node>,
    /// Nodes by what they are.
    known: HashTable<u32>,
    /// The heaviest subtree that was folded.
    cut: f64,
    is_fixed: bool,
}

#[derive(Clone, Copy)]
struct Node {
    caller: u32,
    frame: TreeFrame,
    /// Of paths that end here.
    own: f64,
    /// Of paths that go on to frames that are not kept.
    folded: f64,
}

const ROOT: u32 = 0;

impl KeptTree {
    /// An empty tree that may take so many bytes.
    pub fn within(bytes: usize) -> Self {
        Self::of_nodes((bytes / BYTES_PER_NODE).clamp(LEAST_NODES, u32::MAX as usize / 2))
    }

    /// An empty tree of at most so many frames.
    pub fn of_nodes(most_nodes: usize) -> Self {
        let root = Node { caller: ROOT, frame: TreeFrame::Above(u32::MAX), own: 0.0, folded: 0.0 };
        Self { most_nodes, nodes: vec![root], known: HashTable::new(), cut: 0.0, is_fixed: false }
    }

    /// Something was folded: the paths must be added once more, after [`KeptTree::fix`].
    pub fn has_folded(&self) -> bool {
        self.cut > 0.0
    }

    /// Keeps the shape and forgets all weights.
    pub fn fix(&mut self) {
        self.is_fixed = true;
        for node in &mut self.nodes {
            (node.own, node.folded) = (0.0, 0.0);
        }
    }

    /// Adds a path, the frame nearest to the root first.
    pub fn add(&mut self, path: &[TreeFrame], weight: f64) {
        let mut at = ROOT;
        let mut room = if weight > self.cut { usize::MAX } else { 1 };
        for &frame in path {
            at = match self.find(at, frame) {
                Some(next) => next,
                None if self.is_fixed => {
                    self.nodes[at as usize].folded += weight;
                    return;
                }
                None if room == 0 => break,
                None => {
                    room -= 1;
                    self.push(at, frame)
                }
            };
        }
        self.nodes[at as usize].own += weight;
        if self.nodes.len() > self.most_nodes && !self.is_fixed {
            self.fold_half();
        }
    }

    /// Folds what turned out to be no heavier than what had to be folded.
    pub fn fold_lightest(&mut self) {
        self.fold(self.cut);
    }

    /// How many of a path's frames are kept.
    pub fn kept(&self, path: &[TreeFrame]) -> usize {
        let mut at = ROOT;
        let is_kept = |frame: &&TreeFrame| match self.find(at, **frame) {
            Some(next) => {
                at = next;
                true
            }
            None => false,
        };
        path.iter().take_while(is_kept).count()
    }

    /// What all paths weigh.
    pub fn total(&self) -> f64 {
        self.nodes.iter().map(|node| node.own + node.folded).sum()
    }

    /// What is folded.
    pub fn folded(&self) -> f64 {
        self.nodes.iter().map(|node| node.folded).sum()
    }

    /// Walks the tree as [`super::walk::walk`] walks a profile's: in preorder, siblings by `rank`, with the frame
    /// `folded` behind them for what is folded; branches that weigh less than `threshold` are their caller's own.
    pub fn walk<E>(
        &self,
        threshold: f64,
        rank: &[u32],
        folded: TreeFrame,
        mut visit: impl FnMut(&[TreeFrame], f64) -> Result<(), E>,
    ) -> Result<(), E> {
        let totals = self.totals();
        let calls = Calls::new(&self.nodes, rank);
        let is_drawn = |weight: f64| weight > 0.0 && weight >= threshold;
        let mut path = Vec::new();
        // Nodes still to be visited, the next one last, and how many frames are on the path to each.
        let mut open = vec![(Visit::Node(ROOT), 0)];
        while let Some((next, depth)) = open.pop() {
            path.truncate(depth);
            let at = match next {
                Visit::Folded(weight) => {
                    path.push(folded);
                    visit(&path, weight)?;
                    continue;
                }
                Visit::Node(at) => at,
            };
            let node = &self.nodes[at as usize];
            if at != ROOT {
                path.push(node.frame);
            }
            let mut own = node.own;
            match node.folded {
                weight if is_drawn(weight) => open.push((Visit::Folded(weight), path.len())),
                weight => own += weight,
            }
            for &called in calls.of(at).iter().rev() {
                match totals[called as usize] {
                    weight if is_drawn(weight) => open.push((Visit::Node(called), path.len())),
                    weight => own += weight,
                }
            }
            if own > 0.0 {
                visit(&path, own)?;
            }
        }
        Ok(())
    }

    fn find(&self, caller: u32, frame: TreeFrame) -> Option<u32> {
        let is_it = |node: &u32| {
            let node = &self.nodes[*node as usize];
            node.caller == caller && node.frame == frame
        };
        self.known.find(hash_of(caller, frame), is_it).copied()
    }

    fn push(&mut self, caller: u32, frame: TreeFrame) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { caller, frame, own: 0.0, folded: 0.0 });
        self.make_known(node);
        node
    }

    fn make_known(&mut self, node: u32) {
        let nodes = &self.nodes;
        let hash = |node: &u32| {
            let node = &nodes[*node as usize];
            hash_of(node.caller, node.frame)
        };
        self.known.insert_unique(hash(&node), node, hash);
    }

    /// What each node weighs with all below it. No node weighs less than one that it calls.
    fn totals(&self) -> Vec<f64> {
        let mut totals: Vec<f64> = self.nodes.iter().map(|node| node.own + node.folded).collect();
        for at in (1..self.nodes.len()).rev() {
            totals[self.nodes[at].caller as usize] += totals[at];
        }
        totals
    }

    fn fold_half(&mut self) {
        let mut totals = self.totals();
        let middle = self.most_nodes / 2;
        let (_, lightest, _) = totals.select_nth_unstable_by(middle, |a, b| b.total_cmp(a));
        self.cut = self.cut.max(*lightest);
        self.fold(self.cut);
    }

    /// Folds all subtrees that are no heavier than `cut`.
    fn fold(&mut self, cut: f64) {
        let totals = self.totals();
        let mut kept: Vec<Node> = Vec::new();
        // Of those that stay, where; of others, nothing.
        let mut moved = vec![u32::MAX; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let is_root = at == ROOT as usize;
            let caller = if is_root { ROOT } else { moved[node.caller as usize] };
            if is_root || totals[at] > cut {
                moved[at] = kept.len() as u32;
                kept.push(Node { caller, ..*node });
            } else if let Some(caller) = kept.get_mut(caller as usize) {
                caller.folded += totals[at];
            }
        }
        (self.nodes, self.known) = (kept, HashTable::new());
        (1..self.nodes.len() as u32).for_each(|node| self.make_known(node));
    }
}

enum Visit {
    Node(u32),
    Folded(f64),
}

/// Who calls whom, siblings in their order.
struct Calls {
    sorted: Vec<u32>,
    /// Where the nodes that each node calls begin.
    starts: Vec<u32>,
}

impl Calls {
    fn new(nodes: &[Node], rank: &[u32]) -> Self {
        let place = |frame| match frame {
            TreeFrame::Above(index) => (0, index),
            TreeFrame::Key(key) => (1, rank[key as usize]),
        };
        let mut sorted: Vec<u32> = (1..nodes.len() as u32).collect();
        sorted.sort_unstable_by_key(|&node| {
            let Node { caller, frame, .. } = nodes[node as usize];
            (caller, place(frame))
        });
        let mut starts = vec![0; nodes.len() + 1];
        nodes[1..].iter().for_each(|node| starts[node.caller as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Self { sorted, starts }
    }

    fn of(&self, caller: u32) -> &[u32] {
        let [start, end] = [0, 1].map(|next| self.starts[caller as usize + next] as usize);
        &self.sorted[start..end]
    }
}

fn hash_of(caller: u32, frame: TreeFrame) -> u64 {
    FxBuildHasher.hash_one((caller, frame))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const FOLDED: TreeFrame = TreeFrame::Above(9);

    fn frames(path: &[u32]) -> Vec<TreeFrame> {
        path.iter().map(|&key| TreeFrame::Key(key)).collect()
    }

    fn tree(paths: &[(Vec<u32>, u32)], most_nodes: usize) -> KeptTree {
        let mut tree = KeptTree::of_nodes(most_nodes);
        let add = |tree: &mut KeptTree| {
            paths.iter().for_each(|(path, weight)| tree.add(&frames(path), f64::from(*weight)));
        };
        add(&mut tree);
        if tree.has_folded() {
            tree.fix();
            add(&mut tree);
            tree.fold_lightest();
        }
        tree
    }

    /// What each path weighs, with all that goes through it.
    fn totals(tree: &KeptTree) -> BTreeMap<Vec<TreeFrame>, f64> {
        let rank: Vec<u32> = (0..4).collect();
        let mut totals = BTreeMap::new();
        let visited = tree.walk(0.0, &rank, FOLDED, |path, own| {
            (0..=path.len()).for_each(|depth| *totals.entry(path[..depth].to_vec()).or_default() += own);
            Ok::<(), ()>(())
        });
        assert_eq!(visited, Ok(()));
        totals
    }

    fn any_paths() -> impl Strategy<Value = Vec<(Vec<u32>, u32)>> {
        prop::collection::vec((prop::collection::vec(0u32..4, 1..8), 1u32..20), 1..200)
    }

    proptest! {
        /// However few frames are kept, those that are have their exact weights, and nothing is lost.
        #[test]
        fn what_is_kept_does_not_depend_on_the_memory(paths in any_paths(), most_nodes in 2usize..60) {
            let whole = totals(&tree(&paths, usize::MAX));
            let folded_tree = tree(&paths, most_nodes);
            prop_assert!(folded_tree.nodes.len() <= most_nodes);
            let folded = totals(&folded_tree);
            let mut of_folded = 0.0;
            for (path, weight) in &folded {
                match path.last() {
                    Some(&FOLDED) => of_folded += weight,
                    _ => prop_assert_eq!(Some(weight), whole.get(path)),
                }
            }
            prop_assert_eq!(folded.get(&vec![]), whole.get(&vec![]));
            prop_assert_eq!(of_folded, folded_tree.folded());
            let all: u32 = paths.iter().map(|(_, weight)| weight).sum();
            prop_assert_eq!(folded_tree.total(), f64::from(all));
            prop_assert_eq!(folded_tree.has_folded(), whole.len() > most_nodes);
            for (path, _) in &paths {
                let path = frames(path);
                prop_assert!(folded.contains_key(&path[..folded_tree.kept(&path)]));
            }
        }

        /// A subtree is folded only if it is no heavier than all that are kept, as long as none comes in light doses.
        #[test]
        fn the_lightest_subtrees_are_folded(paths in any_paths(), most_nodes in 2usize..60) {
            let folded = tree(&paths, most_nodes);
            let lightest_kept = folded.totals().into_iter().fold(f64::INFINITY, f64::min);
            prop_assert!(!folded.has_folded() || lightest_kept > folded.cut || folded.nodes.len() == 1);
        }

        /// Branches below a threshold are their caller's own, the folded one too.
        #[test]
        fn light_branches_belong_to_their_callers(
            paths in any_paths(),
            most_nodes in 2usize..60,
            threshold in 0.0f64..100.0,
        ) {
            let tree = tree(&paths, most_nodes);
            let all = totals(&tree);
            let rank: Vec<u32> = (0..4).collect();
            let mut sum = 0.0;
            let mut before: Option<Vec<TreeFrame>> = None;
            let visited = tree.walk(threshold, &rank, FOLDED, |path, own| {
                let total = all[path];
                assert!(path.is_empty() || total >= threshold, "{path:?} has {total}");
                let sort_key = |path: &[TreeFrame]| {
                    path.iter().map(|frame| (*frame == FOLDED, *frame)).collect::<Vec<_>>()
                };
                assert!(before.as_ref().is_none_or(|before| sort_key(before) < sort_key(path)));
                before = Some(path.to_vec());
                sum += own;
                Ok::<(), ()>(())
            });
            prop_assert_eq!(visited, Ok(()));
            prop_assert_eq!(sum, tree.total());
        }
    }

    #[test]
    fn a_frame_of_a_heavy_path_is_kept_among_many_light_ones() {
        let light = (0..500u32).map(|number| ((0..5).map(|digit| number >> (2 * digit) & 3).collect(), 1));
        let heavy = (0..500).map(|_| (vec![3, 2, 1, 0, 3, 2, 1], 4));
        let paths: Vec<(Vec<u32>, u32)> = light.zip(heavy).flat_map(|(a, b)| [a, b]).collect();
        let tree = tree(&paths, 40);
        let path = frames(&[3, 2, 1, 0, 3, 2, 1]);
        assert_eq!(tree.kept(&path), path.len());
        assert_eq!(totals(&tree)[&path], 2000.0);
        assert!(tree.folded() > 0.0 && tree.folded() <= 500.0, "{}", tree.folded());
    }
}

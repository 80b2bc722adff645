//! The tree of call stacks of one thread.

use rustc_hash::FxHashMap;

/// Callees of one node that are looked through one by one. Most nodes have one or two, which were made just before and lie
/// in the CPU's cache, as no table of all nodes would.
const MOST_IN_LIST: usize = 8;
const NONE: u32 = u32::MAX;

/// A tree in which each node has a frame, and callers stand before those that they call.
#[derive(Debug)]
pub struct StackTree {
    nodes: Vec<Node>,
    first_root: u32,
    /// Callees beyond those of the lists, by caller (of roots [`NONE`]) and frame.
    others: FxHashMap<(u32, u32), u32>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    caller: u32,
    frame: u32,
    first_callee: u32,
    /// The next of the same caller.
    sibling: u32,
}

impl Default for StackTree {
    fn default() -> Self {
        Self { nodes: Vec::new(), first_root: NONE, others: FxHashMap::default() }
    }
}

impl StackTree {
    /// The node of a frame that this node calls, or that nothing calls. If there is none yet, `make` tells whether there is to
    /// be one.
    pub fn callee(&mut self, caller: Option<u32>, frame: u32, make: bool) -> Option<u32> {
        let first = caller.map_or(self.first_root, |caller| self.nodes[caller as usize].first_callee);
        let (mut at, mut passed) = (first, 0);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.frame == frame {
                return Some(at);
            }
            (at, passed) = (node.sibling, passed + 1);
        }
        let has_others = passed == MOST_IN_LIST;
        let caller_number = caller.unwrap_or(NONE);
        if has_others && let Some(&known) = self.others.get(&(caller_number, frame)) {
            return Some(known);
        }
        let number = u32::try_from(self.nodes.len()).ok().filter(|number| make && *number < NONE)?;
        let sibling = if has_others { NONE } else { first };
        self.nodes.push(Node { caller: caller_number, frame, first_callee: NONE, sibling });
        match caller {
            _ if has_others => _ = self.others.insert((caller_number, frame), number),
            Some(caller) => self.nodes[caller as usize].first_callee = number,
            None => self.first_root = number,
        }
        Some(number)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Caller and frame of each node.
    pub fn nodes(&self) -> impl Iterator<Item = (Option<u32>, u32)> + '_ {
        self.nodes.iter().map(|node| ((node.caller != NONE).then_some(node.caller), node.frame))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each path has one node, however many callees its callers have, and callers stand before it.
        #[test]
        fn paths_are_found_again(paths in prop::collection::vec(prop::collection::vec(0u32..20, 1..5), 0..200)) {
            let mut tree = StackTree::default();
            let mut known: BTreeMap<&[u32], u32> = BTreeMap::new();
            for path in &paths {
                let mut caller = None;
                for end in 1..=path.len() {
                    let (part, frame) = (&path[..end], path[end - 1]);
                    prop_assert_eq!(tree.callee(caller, frame, false), known.get(part).copied());
                    let node = tree.callee(caller, frame, true);
                    let expected = tree.len() as u32 - 1;
                    prop_assert_eq!(node, Some(*known.entry(part).or_insert(expected)));
                    caller = node;
                }
            }
            prop_assert_eq!(tree.len(), known.len());
            let nodes: Vec<_> = tree.nodes().collect();
            for (path, number) in &known {
                let (last, callers) = path.split_last().expect("a frame");
                let caller = known.get(callers).copied();
                prop_assert_eq!(nodes[*number as usize], (caller, *last));
                prop_assert!(caller < Some(*number));
            }
        }
    }
}

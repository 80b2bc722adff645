//! Where the paths of a profile's cells lie in the nodes of a call tree that are drawn.

use super::nodes::{Nodes, Reached};
use super::tree::{CallTree, CellPath};
use super::walk::TreeFrame;
use crate::profile::Profile;

/// Finds where the paths of a part of the profile lie in the nodes of a call tree.
pub(super) struct NodePaths<'a> {
    tree: &'a CallTree<'a>,
    part: &'a Profile,
    /// Below each frame above stacks how far each place in the tree of callers lies in the nodes.
    by_root: Vec<(Option<TreeFrame>, Vec<Reached>)>,
}

/// Below so many frames above stacks the callers of all paths are followed once; below others each path for itself.
const MOST_ROOTS: usize = 4;

impl<'a> NodePaths<'a> {
    /// Of a part of the profile that the tree is made of.
    pub fn new(tree: &'a CallTree<'a>, part: &'a Profile) -> Self {
        Self { tree, part, by_root: Vec::new() }
    }

    /// The node that a path ends in or the last of its ancestors that is drawn, and its innermost frame.
    pub fn find(&mut self, nodes: &Nodes, path: CellPath) -> (u32, Option<TreeFrame>) {
        self.find_by_callers(nodes, path).unwrap_or_else(|| {
            let frames = self.tree.frames_of(self.part, path);
            (nodes.of(&frames), frames.last().copied())
        })
    }

    fn find_by_callers(&mut self, nodes: &Nodes, path: CellPath) -> Option<(u32, Option<TreeFrame>)> {
        let (tree, stacks) = (self.tree, &self.part.stacks);
        let own = tree.frames_at(stacks.innermost(path.stack())?)?;
        let innermost = own.clone().next_back()?;
        let root = path.root();
        let known = match self.by_root.iter().position(|(of, _)| *of == root) {
            Some(known) => known,
            None if self.by_root.len() == MOST_ROOTS => return None,
            None => {
                let mut reached = vec![nodes.follow(root, Reached::ALL); stacks.callers_len()];
                for callers in stacks.all_callers() {
                    if let Some((address, outer)) = stacks.caller(callers) {
                        let frames = tree.frames_at(address)?;
                        reached[callers.0 as usize] = nodes.follow(frames, reached[outer.0 as usize]);
                    }
                }
                self.by_root.push((root, reached));
                self.by_root.len() - 1
            }
        };
        let reached = self.by_root[known].1[stacks.callers(path.stack()).0 as usize];
        Some((nodes.follow(own, reached).node(), Some(innermost)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::laws::any_profile;
    use crate::report::tree::{Direction, Root, TreeOptions};

    proptest! {
        /// Paths that are followed together end where each of them ends by itself, however many frames stand above
        /// stacks and however much of the tree is drawn.
        #[test]
        fn paths_end_where_they_lead(
            (profile, symbols) in any_profile(),
            innermost in any::<bool>(),
            root in prop::sample::select(vec![Root::None, Root::Thread]),
            lightest in prop::sample::select(vec![0.0, 0.02, 0.1]),
        ) {
            let direction = if innermost { Direction::FromInnermost } else { Direction::FromOutermost };
            let options = TreeOptions { direction, root, ..TreeOptions::default() };
            let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
            let nodes = Nodes::new(&tree, lightest);
            let mut paths = NodePaths::new(&tree, &profile);
            for (_, _, path) in tree.cells(&profile) {
                let frames = tree.frames_of(&profile, path);
                prop_assert_eq!(paths.find(&nodes, path), (nodes.of(&frames), frames.last().copied()));
            }
        }
    }
}

//! What the frames of a call tree are called.

use std::borrow::Cow;

use super::walk::TreeFrame;

/// The names of the frames of a call tree.
pub(super) struct FrameNames<'a> {
    /// By key of the frame table.
    pub keys: Vec<Cow<'a, str>>,
    /// Of frames above all stacks.
    pub roots: Vec<Cow<'a, str>>,
}

impl FrameNames<'_> {
    /// A frame's name, with inferno's mark for what it is.
    pub fn of(&self, frame: TreeFrame) -> &str {
        match frame {
            TreeFrame::Above(root) => &self.roots[root as usize],
            TreeFrame::Key(key) => &self.keys[key as usize],
        }
    }

    /// The names of a path, apart by `;`.
    pub fn join(&self, path: &[TreeFrame]) -> String {
        let separators = path.len().saturating_sub(1);
        let mut text =
            String::with_capacity(path.iter().map(|&frame| self.of(frame).len()).sum::<usize>() + separators);
        self.add_joined(path, &mut text);
        text
    }

    /// Adds the names of a path to a text, apart by `;`.
    pub fn add_joined(&self, path: &[TreeFrame], text: &mut String) {
        for (depth, &frame) in path.iter().enumerate() {
            if depth > 0 {
                text.push(';');
            }
            *text += self.of(frame);
        }
    }
}

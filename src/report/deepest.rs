//! How deep a picture of stacks goes. A single stack of hundreds of frames, as unwinding makes them of a damaged one, would
//! make a flamegraph so high that nothing else is seen of it.

use std::borrow::Cow;

/// Stacks that reach below the deepest row weigh together less than this share of all: what is left away is one frame.
const RARE: f64 = 0.01;
/// So many rows more are drawn than are needed for the others.
const SPARE_ROWS: usize = 8;
/// And nothing is left away where fewer rows would be saved.
const FEWEST_SAVED: usize = 16;
/// The frame for what is deeper.
pub(super) const DEEPER: &str = "[deeper]";

/// What stacks weigh, by their number of frames.
#[derive(Debug, Default)]
pub(super) struct Depths(Vec<f64>);

impl Depths {
    /// A stack of so many frames.
    pub fn add(&mut self, depth: usize, weight: f64) {
        if depth >= self.0.len() {
            self.0.resize(depth + 1, 0.0);
        }
        self.0[depth] += weight;
    }

    /// Frames of the deepest stack.
    pub fn deepest(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Frames of a stack that are drawn at most; `None` if all are.
    pub fn most(&self) -> Option<usize> {
        let all: f64 = self.0.iter().sum();
        let deepest = self.deepest();
        let mut deeper = 0.0;
        let needed = self.0.iter().enumerate().rev().find(|(_, weight)| {
            deeper += **weight;
            deeper >= all * RARE
        });
        let most = needed?.0 + SPARE_ROWS;
        (deepest >= most + FEWEST_SAVED).then_some(most)
    }
}

/// A folded stack with no more frames than `most`; the last of them stands for all that is deeper.
pub(super) fn cut(stack: &str, most: Option<usize>) -> Cow<'_, str> {
    let kept = most.and_then(|most| stack.match_indices(';').nth(most.max(2) - 2));
    let last = kept.and_then(|(end, _)| stack[end + 1..].contains(';').then_some(end));
    match last {
        Some(end) => Cow::Owned(format!("{};{DEEPER}", &stack[..end])),
        None => Cow::Borrowed(stack),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_deep_stacks_are_cut_and_common_ones_are_not() {
        let most = |stacks: &[(usize, f64)]| {
            let mut depths = Depths::default();
            stacks.iter().for_each(|&(depth, weight)| depths.add(depth, weight));
            depths.most()
        };
        assert_eq!(most(&[(5, 50.0), (9, 49.5), (500, 0.5)]), Some(9 + SPARE_ROWS));
        // Deep recursion that takes more is the program's own.
        assert_eq!(most(&[(5, 50.0), (9, 49.0), (500, 1.0)]), None);
        // Nothing is gained.
        assert_eq!(most(&[(9, 99.5), (9 + SPARE_ROWS + FEWEST_SAVED - 1, 0.5)]), None);
        assert_eq!(most(&[]), None);
    }

    #[test]
    fn what_is_cut_is_one_frame() {
        assert_eq!(cut("a;b;c;d;e", Some(3)), "a;b;[deeper]");
        assert_eq!(cut("a;b;c", Some(3)), "a;b;c");
        assert_eq!(cut("a;b;c;d;e", None), "a;b;c;d;e");
        assert_eq!(cut("a", Some(3)), "a");
    }
}

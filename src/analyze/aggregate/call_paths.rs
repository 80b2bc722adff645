//! The tree of callers, in which call paths share their outer parts.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use crate::analyze::aggregate::key_table::{KeyHash, KeyTable};
use crate::analyze::memory::{BYTES_PER_CALLER, BYTES_PER_DRAWN_CALLER, BYTES_PER_KEY};
use crate::profile::{AddressId, CallersId, StackTable};

/// A path shares so many frames with another one, or twice as many, and so on.
///
/// To look for each frame among those that its caller called would be an access to memory for each; so only every
/// fourth is known, and the three behind it may stand in the tree again.
const STEP: usize = 4;

/// Gives each distinct path of callers a place in a tree.
#[derive(Debug)]
pub(crate) struct CallPaths {
    table: StackTable,
    /// Whole paths and the outer parts that others share, by their hashes.
    known: KeyTable,
    hashers: [FixedState; 2],
    /// Of the path at hand: each outer part and the whole.
    hashes: Vec<KeyHash>,
}

impl Default for CallPaths {
    fn default() -> Self {
        Self {
            table: StackTable::default(),
            known: KeyTable::default(),
            hashers: [FixedState::with_seed(3), FixedState::with_seed(4)],
            hashes: Vec::new(),
        }
    }
}

impl CallPaths {
    /// The number of a path, given outermost first.
    pub fn callers(&mut self, path: &[AddressId]) -> CallersId {
        self.hash(path);
        let Some((whole, parts)) = self.hashes.split_last() else { return CallersId::NONE };
        if let Some(callers) = self.known.find(*whole) {
            return CallersId(callers);
        }
        // If a frame is known, so are all the frames outside of it: search for the innermost that is.
        let (mut shared, mut callers) = (0, CallersId::NONE);
        let mut unknown = parts.len();
        while shared < unknown {
            let middle = shared + (unknown - shared).div_ceil(2);
            match self.known.find(parts[middle - 1]) {
                Some(known) => (shared, callers) = (middle, CallersId(known)),
                None => unknown = middle - 1,
            }
        }
        for (part, frames) in path.chunks(STEP).enumerate().skip(shared) {
            callers = frames.iter().fold(callers, |callers, &frame| self.table.push_caller(callers, frame));
            self.known.insert(self.hashes[part], callers.0);
        }
        callers
    }

    /// Number of places in the tree.
    pub fn len(&self) -> usize {
        self.table.callers_len()
    }

    /// What the tree takes at most: while it is made, with so many keys beside, or when it is drawn.
    pub fn bytes(&self, keys: usize) -> usize {
        let made = BYTES_PER_CALLER * self.len() + BYTES_PER_KEY * (self.known.len() + keys);
        made.max(BYTES_PER_DRAWN_CALLER * self.len())
    }

    /// The tree.
    pub fn into_table(self) -> StackTable {
        self.table
    }

    fn hash(&mut self, path: &[AddressId]) {
        self.hashes.clear();
        let [mut first, mut second] = self.hashers.each_ref().map(BuildHasher::build_hasher);
        for frames in path.chunks(STEP) {
            for pair in frames.chunks(2) {
                // One more than the number, so that none is 0, which stands for a frame that is not there.
                let number = |at: usize| pair.get(at).map_or(0, |frame: &AddressId| frame.0.wrapping_add(1));
                let both = u64::from(number(0)) << 32 | u64::from(number(1));
                first.write_u64(both);
                second.write_u64(both);
            }
            self.hashes.push(KeyHash { first: first.finish(), second: second.finish() as u32 });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Equal paths have one number, others have not, and all are found in the tree.
        #[test]
        fn paths_are_found_again(
            paths in prop::collection::vec(prop::collection::vec(0u32..3, 0..14), 0..60),
        ) {
            let mut known = BTreeMap::new();
            let mut tree = CallPaths::default();
            for path in &paths {
                let addresses: Vec<AddressId> = path.iter().copied().map(AddressId).collect();
                let callers = tree.callers(&addresses);
                prop_assert_eq!(*known.entry(path).or_insert(callers), callers);
            }
            let places = tree.len();
            let table = tree.into_table();
            let distinct: std::collections::BTreeSet<_> = known.values().collect();
            prop_assert_eq!(distinct.len(), known.len());
            for (path, callers) in known {
                let mut frames: Vec<u32> = table.frames_of_callers(callers).map(|frame| frame.0).collect();
                frames.reverse();
                prop_assert_eq!(&frames, path);
            }
            let frames: usize = paths.iter().map(Vec::len).sum();
            prop_assert!(places <= frames + 1);
        }
    }

    #[test]
    fn paths_share_their_outer_parts() {
        let mut tree = CallPaths::default();
        let path =
            |depth: u32, last: u32| -> Vec<AddressId> { (0..depth).chain([last]).map(AddressId).collect() };
        tree.callers(&path(40, 100));
        let before = tree.len();
        tree.callers(&path(40, 101));
        assert_eq!(tree.len(), before + 1);
        tree.callers(&path(39, 102));
        assert_eq!(tree.len(), before + 1 + 4, "from the 36th on");
    }
}

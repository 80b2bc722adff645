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
    /// Which of them are known.
    found: Vec<Option<u32>>,
    /// What was added, if somebody is to be told of it.
    new: Option<NewParts>,
}

/// Parts of paths that were added to a tree, in this order.
#[derive(Debug, Default)]
pub(crate) struct NewParts {
    parts: Vec<NewPart>,
    /// The frames of all parts.
    frames: Vec<AddressId>,
}

/// A part of a path.
#[derive(Debug, Clone, Copy)]
struct NewPart {
    hash: KeyHash,
    outer: CallersId,
    /// Where its frames end.
    end: u32,
}

impl NewParts {
    /// Number of parts.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    fn add(&mut self, hash: KeyHash, outer: CallersId, frames: &[AddressId]) {
        self.frames.extend_from_slice(frames);
        self.parts.push(NewPart { hash, outer, end: self.frames.len() as u32 });
    }
}

/// Two numbers that stand for a code address wherever it is numbered, as if drawn.
pub(crate) type AddressHash = [u64; 2];

impl Default for CallPaths {
    fn default() -> Self {
        Self {
            table: StackTable::default(),
            known: KeyTable::default(),
            hashers: [FixedState::with_seed(3), FixedState::with_seed(4)],
            hashes: Vec::new(),
            found: Vec::new(),
            new: None,
        }
    }
}

impl CallPaths {
    /// One that tells what is added to it.
    pub fn telling() -> Self {
        Self { new: Some(NewParts::default()), ..Self::default() }
    }

    /// Takes the tree out; paths are numbered anew, and told if they were.
    pub fn take_table(&mut self) -> StackTable {
        let none = if self.new.is_some() { Self::telling() } else { Self::default() };
        std::mem::replace(self, none).into_table()
    }

    /// What was added since the last time.
    pub fn take_new(&mut self) -> NewParts {
        self.new.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Number of parts that were added since they were taken.
    pub fn new_len(&self) -> usize {
        self.new.as_ref().map_or(0, NewParts::len)
    }

    /// Adds a part of another tree, if this one does not have it: `callers` has the numbers here of the callers there, in
    /// their order, and is given those of the part; `address` numbers the other's addresses.
    pub fn add_part(
        &mut self,
        new: &NewParts,
        part: usize,
        callers: &mut Vec<CallersId>,
        address: impl Fn(AddressId) -> AddressId,
    ) {
        let NewPart { hash, outer, end } = new.parts[part];
        let begin = part.checked_sub(1).map_or(0, |before| new.parts[before].end);
        let frames = &new.frames[begin as usize..end as usize];
        let last = match self.known.find(hash) {
            Some(known) => known,
            None => {
                let outer = callers[outer.0 as usize];
                let push = |callers, &frame| self.table.push_caller(callers, address(frame));
                let last = frames.iter().fold(outer, push).0;
                self.known.insert(hash, last);
                last
            }
        };
        // The frames of a part were added one after the other.
        callers.extend((last + 1 - frames.len() as u32..=last).map(CallersId));
    }

    /// The number of a path, given outermost first; `hashes` are those of all addresses.
    pub fn callers(&mut self, path: &[AddressId], hashes: &[AddressHash]) -> CallersId {
        self.hash(path, hashes);
        // All of them at once, though some are looked for in vain: none waits for what another one's place in memory says.
        self.found.clear();
        self.found.extend(self.hashes.iter().map(|part| self.known.find(*part)));
        // If a part is known, so are all parts outside of it.
        let innermost = self.found.iter().rposition(Option::is_some);
        let shared = innermost.map_or(0, |innermost| innermost + 1);
        let mut callers =
            innermost.and_then(|innermost| self.found[innermost]).map_or(CallersId::NONE, CallersId);
        for (part, frames) in path.chunks(STEP).enumerate().skip(shared) {
            let outer = callers;
            callers = frames.iter().fold(outer, |callers, &frame| self.table.push_caller(callers, frame));
            self.known.insert(self.hashes[part], callers.0);
            if let Some(new) = &mut self.new {
                new.add(self.hashes[part], outer, frames);
            }
        }
        callers
    }

    /// Number of places in the tree.
    pub fn len(&self) -> usize {
        self.table.callers_len()
    }

    /// Number of whole paths and outer parts that are known.
    pub fn parts(&self) -> usize {
        self.known.len()
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

    fn hash(&mut self, path: &[AddressId], hashes: &[AddressHash]) {
        self.hashes.clear();
        let [mut first, mut second] = self.hashers.each_ref().map(BuildHasher::build_hasher);
        for frames in path.chunks(STEP) {
            for pair in frames.chunks(2) {
                let of =
                    |at: usize| pair.get(at).map_or([0; 2], |frame: &AddressId| hashes[frame.0 as usize]);
                // Two numbers as if drawn, of which one is turned so that their order matters: a sum of them tells as much.
                let ([a, b], [c, d]) = (of(0), of(1));
                first.write_u64(a ^ c.rotate_left(32));
                second.write_u64(b ^ d.rotate_left(32));
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

    /// Hashes of so many addresses, as if drawn.
    fn hashes(addresses: u32) -> Vec<AddressHash> {
        let hashers = [FixedState::with_seed(7), FixedState::with_seed(8)];
        (0..addresses).map(|address| hashers.each_ref().map(|hasher| hasher.hash_one(address))).collect()
    }

    proptest! {
        /// Parts that two trees tell, which number addresses in another way, make the tree that all paths would.
        #[test]
        fn parts_of_others_make_the_same_tree(
            paths in prop::collection::vec(prop::collection::vec(0u32..3, 0..14), 0..80),
            turns in prop::collection::vec((0usize..2, any::<bool>()), 80),
        ) {
            let (hashes, turned) = (hashes(3), hashes(3).into_iter().rev().collect::<Vec<_>>());
            let [mut alone, mut merged] = [CallPaths::default(), CallPaths::default()];
            let mut others = [0, 1].map(|_| (CallPaths::telling(), vec![CallersId::NONE]));
            for (path, (other, begins_anew)) in paths.iter().zip(&turns) {
                let here: Vec<AddressId> = path.iter().copied().map(AddressId).collect();
                let there: Vec<AddressId> = path.iter().map(|frame| AddressId(2 - frame)).collect();
                let expected = alone.callers(&here, &hashes);
                let (tree, callers) = &mut others[*other];
                if *begins_anew {
                    (*tree, *callers) = (CallPaths::telling(), vec![CallersId::NONE]);
                }
                let found = tree.callers(&there, &turned);
                let new = tree.take_new();
                for part in 0..new.len() {
                    merged.add_part(&new, part, callers, |frame| AddressId(2 - frame.0));
                }
                prop_assert_eq!(callers[found.0 as usize], expected);
            }
            prop_assert_eq!(alone.known.len(), merged.known.len());
            let tables = [alone, merged].map(CallPaths::into_table);
            prop_assert!(tables[0].all_callers().eq(tables[1].all_callers()));
            prop_assert!(tables[0].all_callers().all(|at| tables[0].caller(at) == tables[1].caller(at)));
        }

        /// Equal paths have one number, others have not, and all are found in the tree.
        #[test]
        fn paths_are_found_again(
            paths in prop::collection::vec(prop::collection::vec(0u32..3, 0..14), 0..60),
        ) {
            let mut known = BTreeMap::new();
            let mut tree = CallPaths::default();
            for path in &paths {
                let addresses: Vec<AddressId> = path.iter().copied().map(AddressId).collect();
                let callers = tree.callers(&addresses, &hashes(3));
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
        tree.callers(&path(40, 100), &hashes(103));
        let before = tree.len();
        tree.callers(&path(40, 101), &hashes(103));
        assert_eq!(tree.len(), before + 1);
        tree.callers(&path(39, 102), &hashes(103));
        assert_eq!(tree.len(), before + 1 + 4, "from the 36th on");
    }
}

//! Stacks as sets of functions, where totals alone are asked for.
//!
//! A total counts a function once on each stack, whoever called it and however often it called itself. So stacks of the same
//! functions are alike, and of these there are far fewer than call paths. One path stands for all of a set; what reports
//! find out about paths beside totals, whether they begin where programs do, is the same of it: frames without
//! a function that they could be one with stay, all of them, in their order and on the same side of the first function.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

use crate::analyze::aggregate::key_table::{KeyHash, hash};
use crate::profile::AddressId;

/// What an address is to the set of a stack that it lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nobody has said yet: see [`FunctionSets::meet`].
    Unmet,
    /// It stands for its function, which is in a set once.
    Function,
    /// It stands for itself.
    Frame,
    /// Of the stack more must be known than its functions: where nothing called, or nobody knows what, paths end or are
    /// shortened.
    Unclear,
}

/// Finds the sets of stacks, one after the other. Nearly all frames of nearly all samples come by here.
#[derive(Debug)]
pub(crate) struct FunctionSets {
    /// By address.
    known: Vec<Known>,
    /// The stack at hand. Functions that are on it have its number.
    turn: u32,
    /// Its functions, each once.
    functions: Vec<AddressId>,
    /// The sum of what was drawn for them.
    sum: [u64; 2],
    /// Its other frames, the innermost first, and how many of them are farther out than all functions.
    frames: Vec<AddressId>,
    outside: usize,
    hashers: [FixedState; 2],
}

#[derive(Debug, Clone, Copy)]
struct Known {
    part: Part,
    /// The last stack that a function was on.
    turn: u32,
    /// A number of its own, as if drawn: a set is known by the sum of those of its functions.
    drawn: [u64; 2],
}

impl Known {
    const UNMET: Self = Self { part: Part::Unmet, turn: 0, drawn: [0; 2] };
}

impl Default for FunctionSets {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            turn: 0,
            functions: Vec::new(),
            sum: [0; 2],
            frames: Vec::new(),
            outside: 0,
            hashers: [FixedState::with_seed(5), FixedState::with_seed(6)],
        }
    }
}

impl FunctionSets {
    /// Begins with a stack without frames.
    pub fn begin(&mut self) {
        self.turn = match self.turn.checked_add(1) {
            Some(turn) => turn,
            None => {
                self.known.iter_mut().for_each(|known| known.turn = 0);
                1
            }
        };
        self.functions.clear();
        self.sum = [0; 2];
        self.frames.clear();
        self.outside = 0;
    }

    /// Adds the next frame, the innermost first, and says what it is. One that was not met yet, or is unclear, is not
    /// added.
    #[inline]
    pub fn add(&mut self, address: AddressId) -> Part {
        let Some(known) = self.known.get_mut(address.0 as usize) else { return Part::Unmet };
        match known.part {
            Part::Function => {
                self.outside = 0;
                if known.turn != self.turn {
                    known.turn = self.turn;
                    self.sum[0] = self.sum[0].wrapping_add(known.drawn[0]);
                    self.sum[1] = self.sum[1].wrapping_add(known.drawn[1]);
                    self.functions.push(address);
                }
            }
            Part::Frame => {
                self.frames.push(address);
                self.outside += 1;
            }
            Part::Unmet | Part::Unclear => {}
        }
        known.part
    }

    /// From now on an address is this, for the stack at hand too if it is not on it yet.
    #[cold]
    pub fn meet(&mut self, address: AddressId, part: Part) {
        let at = address.0 as usize;
        if self.known.len() <= at {
            self.known.resize(at + 1, Known::UNMET);
        }
        // It may be on the stack at hand already.
        if self.known[at].part == part {
            return;
        }
        let drawn = self.hashers.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(0x9e37_79b9_7f4a_7c15 ^ u64::from(address.0));
            hasher.finish()
        });
        self.known[at] = Known { part, turn: 0, drawn };
    }

    /// Stands for the set in tables.
    pub fn key(&self, spaces: u64) -> KeyHash {
        hash(&self.hashers, |hasher| {
            hasher.write_u64(spaces);
            hasher.write_u64((self.outside as u64) << 32 | self.functions.len() as u64);
            hasher.write_u64(self.sum[0]);
            hasher.write_u64(self.sum[1]);
            self.frames.iter().for_each(|frame| hasher.write_u32(frame.0));
        })
    }

    /// Makes the path that stands for the set, the outermost first.
    pub fn path(&mut self, path: &mut Vec<AddressId>) {
        path.clear();
        self.functions.sort_unstable();
        let (inside, outside) = self.frames.split_at(self.frames.len() - self.outside);
        path.extend(outside.iter().rev());
        path.extend(&self.functions);
        path.extend(inside.iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn part(address: AddressId) -> Part {
        match address.0 {
            0..=5 => Part::Function,
            6..=8 => Part::Frame,
            _ => Part::Unclear,
        }
    }

    /// Key and path of a stack, given the innermost frame first.
    fn found(sets: &mut FunctionSets, stack: &[u32]) -> Option<((u64, u32), Vec<u32>)> {
        sets.begin();
        for &number in stack {
            let address = AddressId(number);
            let mut added = sets.add(address);
            if added == Part::Unmet {
                sets.meet(address, part(address));
                added = sets.add(address);
            }
            if added == Part::Unclear {
                return None;
            }
        }
        let KeyHash { first, second } = sets.key(1);
        let mut path = Vec::new();
        sets.path(&mut path);
        Some(((first, second), path.into_iter().map(|address| address.0).collect()))
    }

    proptest! {
        /// Stacks have one key if they have one path; it has the same functions, each once, and the same other
        /// frames in the same order, of which those outside of all functions stay there.
        #[test]
        fn stacks_of_the_same_functions_are_alike(
            stacks in prop::collection::vec(prop::collection::vec(0u32..10, 0..9), 0..120),
        ) {
            let mut sets = FunctionSets::default();
            let mut by_path = BTreeMap::new();
            for stack in &stacks {
                let Some((key, path)) = found(&mut sets, stack) else {
                    prop_assert!(stack.contains(&9));
                    continue;
                };
                prop_assert!(!stack.contains(&9));
                let is_function = |address: &&u32| part(AddressId(**address)) == Part::Function;
                let of = |frames: &[u32]| frames.iter().filter(is_function).copied().collect::<Vec<_>>();
                let others = |frames: &[u32]| -> Vec<u32> {
                    frames.iter().filter(|address| !is_function(address)).copied().collect()
                };
                let outermost_first: Vec<u32> = stack.iter().rev().copied().collect();
                let expected: BTreeSet<u32> = of(stack).into_iter().collect();
                prop_assert_eq!(of(&path), expected.into_iter().collect::<Vec<_>>());
                prop_assert_eq!(others(&path), others(&outermost_first));
                let outside = |frames: &[u32]| frames.iter().take_while(|frame| !is_function(frame)).count();
                prop_assert_eq!(outside(&path), outside(&outermost_first));
                prop_assert_eq!(*by_path.entry(path).or_insert(key), key);
            }
            let keys: BTreeSet<_> = by_path.values().collect();
            prop_assert_eq!(keys.len(), by_path.len());
        }
    }

    #[test]
    fn an_address_can_turn_out_to_be_unclear() {
        let mut sets = FunctionSets::default();
        assert!(found(&mut sets, &[1, 2]).is_some());
        sets.meet(AddressId(2), Part::Unclear);
        assert!(found(&mut sets, &[1, 2]).is_none());
        assert!(found(&mut sets, &[1]).is_some());
    }

    #[test]
    fn turns_begin_anew() {
        let mut sets = FunctionSets::default();
        let first = found(&mut sets, &[1, 2]);
        sets.turn = u32::MAX;
        assert_eq!(found(&mut sets, &[2, 1, 1]), first);
    }
}

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

/// Functions that are one bit of a set each.
const NEAR: usize = 128;

/// Finds the sets of stacks, one after the other. Nearly all frames of nearly all samples come by here.
#[derive(Debug, Clone)]
pub(crate) struct FunctionSets {
    /// By address.
    known: Vec<Known>,
    /// The first functions that were met, by their bits, and how many there may be.
    near: Vec<AddressId>,
    most_near: usize,
    /// The stack at hand. Far functions that are on it have its number.
    turn: u32,
    set: Set,
    /// Its far functions, each once.
    far: Vec<AddressId>,
    /// Its other frames, the innermost first.
    frames: Vec<AddressId>,
    hashers: [FixedState; 2],
}

/// What tells the set of a stack from others, but for frames that are of no function.
#[derive(Debug, Clone, Copy, Default)]
struct Set {
    /// Near functions, a bit each.
    near: [u64; 2],
    /// The sum of what was drawn for far functions, and how many they are.
    sum: [u64; 2],
    far: u32,
    /// So many of the other frames are farther out than all functions.
    outside: u32,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    kind: Kind,
    /// The last stack that a far function was on.
    turn: u32,
    /// Of a near function its bit; of a far one a number of its own, as if drawn: what a set has of them is known by the sum.
    words: [u64; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unmet,
    Near,
    Far,
    Frame,
    Unclear,
}

impl Kind {
    fn part(self) -> Part {
        match self {
            Self::Unmet => Part::Unmet,
            Self::Near | Self::Far => Part::Function,
            Self::Frame => Part::Frame,
            Self::Unclear => Part::Unclear,
        }
    }
}

impl Known {
    const UNMET: Self = Self { kind: Kind::Unmet, turn: 0, words: [0; 2] };
}

impl Default for FunctionSets {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            near: Vec::new(),
            most_near: NEAR,
            turn: 0,
            set: Set::default(),
            far: Vec::new(),
            frames: Vec::new(),
            hashers: [FixedState::with_seed(5), FixedState::with_seed(6)],
        }
    }
}

/// A set that is being made, in so few words that a loop keeps most of them in registers.
pub(crate) struct Adding<'s> {
    known: &'s mut [Known],
    turn: u32,
    set: Set,
    far: &'s mut Vec<AddressId>,
    frames: &'s mut Vec<AddressId>,
    made: &'s mut Set,
}

impl Adding<'_> {
    /// Adds the next frame, the innermost first, and says what it is. One that was not met yet, or is unclear, is not
    /// added.
    #[inline(always)]
    pub fn add(&mut self, address: AddressId) -> Part {
        let Some(known) = self.known.get_mut(address.0 as usize) else { return Part::Unmet };
        let set = &mut self.set;
        match known.kind {
            Kind::Near => {
                set.near[0] |= known.words[0];
                set.near[1] |= known.words[1];
                set.outside = 0;
            }
            Kind::Far => {
                set.outside = 0;
                if known.turn != self.turn {
                    known.turn = self.turn;
                    set.sum[0] = set.sum[0].wrapping_add(known.words[0]);
                    set.sum[1] = set.sum[1].wrapping_add(known.words[1]);
                    set.far += 1;
                    self.far.push(address);
                }
            }
            Kind::Frame => {
                self.frames.push(address);
                set.outside += 1;
            }
            Kind::Unmet | Kind::Unclear => {}
        }
        known.kind.part()
    }

    /// The bit of a function that is near; `None` of all else.
    #[inline(always)]
    pub fn bit(&self, address: AddressId) -> Option<[u64; 2]> {
        let known = self.known.get(address.0 as usize)?;
        (known.kind == Kind::Near).then_some(known.words)
    }

    /// Adds the next frames, all of them of functions that have these bits.
    #[inline(always)]
    pub fn add_bits(&mut self, [low, high]: [u64; 2]) {
        let set = &mut self.set;
        set.near = [set.near[0] | low, set.near[1] | high];
        set.outside = 0;
    }

    /// All was added.
    #[inline(always)]
    pub fn end(self) {
        *self.made = self.set;
    }
}

impl FunctionSets {
    /// Begins with a stack without frames.
    #[inline]
    pub fn begin(&mut self) -> Adding<'_> {
        self.turn = match self.turn.checked_add(1) {
            Some(turn) => turn,
            None => {
                self.known.iter_mut().for_each(|known| known.turn = 0);
                1
            }
        };
        let Self { known, turn, set, far, frames, .. } = self;
        far.clear();
        frames.clear();
        Adding { known, turn: *turn, set: Set::default(), far, frames, made: set }
    }

    /// From now on an address is this. A set that is being made is to be begun anew.
    #[cold]
    pub fn meet(&mut self, address: AddressId, part: Part) {
        let at = address.0 as usize;
        if self.known.len() <= at {
            self.known.resize(at + 1, Known::UNMET);
        }
        if self.known[at].kind.part() == part {
            return;
        }
        let (kind, words) = match part {
            Part::Function if self.near.len() < self.most_near => {
                let bit = self.near.len();
                self.near.push(address);
                let mut words = [0; 2];
                words[bit / 64] = 1 << (bit % 64);
                (Kind::Near, words)
            }
            Part::Function => (Kind::Far, self.drawn(address)),
            Part::Frame => (Kind::Frame, [0; 2]),
            Part::Unmet => (Kind::Unmet, [0; 2]),
            Part::Unclear => (Kind::Unclear, [0; 2]),
        };
        self.known[at] = Known { kind, turn: 0, words };
    }

    fn drawn(&self, address: AddressId) -> [u64; 2] {
        self.hashers.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(0x9e37_79b9_7f4a_7c15 ^ u64::from(address.0));
            hasher.finish()
        })
    }

    /// Stands for the set in tables.
    #[inline]
    pub fn key(&self, spaces: u64) -> KeyHash {
        let Set { near, sum, far, outside } = self.set;
        hash(&self.hashers, |hasher| {
            hasher.write_u64(spaces);
            hasher.write_u64(u64::from(outside) << 32 | u64::from(far));
            hasher.write_u64(near[0]);
            hasher.write_u64(near[1]);
            if far > 0 {
                hasher.write_u64(sum[0]);
                hasher.write_u64(sum[1]);
            }
            self.frames.iter().for_each(|frame| hasher.write_u32(frame.0));
        })
    }

    /// Makes the path that stands for the set, the outermost first.
    pub fn path(&self, path: &mut Vec<AddressId>) {
        path.clear();
        let (inside, outside) = self.frames.split_at(self.frames.len() - self.set.outside as usize);
        path.extend(outside.iter().rev());
        let of_functions = path.len();
        let is_on_it = |bit: usize| self.set.near[bit / 64] >> (bit % 64) & 1 == 1;
        path.extend(
            self.near.iter().enumerate().filter(|(bit, _)| is_on_it(*bit)).map(|(_, function)| function),
        );
        path.extend(&self.far);
        path[of_functions..].sort_unstable();
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
        let add = |sets: &mut FunctionSets| -> Vec<Part> {
            let mut adding = sets.begin();
            // Every other one as a loop over near functions adds it.
            let mut add = |(at, &number): (usize, &u32)| match adding.bit(AddressId(number)) {
                Some(bit) if at % 2 == 1 => {
                    adding.add_bits(bit);
                    Part::Function
                }
                _ => adding.add(AddressId(number)),
            };
            let added = stack.iter().enumerate().map(&mut add).collect();
            adding.end();
            added
        };
        let mut added = add(sets);
        if added.contains(&Part::Unmet) {
            stack
                .iter()
                .map(|&number| AddressId(number))
                .for_each(|address| sets.meet(address, part(address)));
            added = add(sets);
        }
        assert!(!added.contains(&Part::Unmet));
        if added.contains(&Part::Unclear) {
            return None;
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
            most_near in 0usize..7,
        ) {
            let mut sets = FunctionSets { most_near, ..FunctionSets::default() };
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
        assert_eq!(sets.near, [AddressId(1), AddressId(2)]);
        sets.meet(AddressId(2), Part::Unclear);
        assert!(found(&mut sets, &[1, 2]).is_none());
        assert!(found(&mut sets, &[1]).is_some());
    }

    /// More functions than bits: the last bit of each word, and the first function beyond.
    #[test]
    fn near_and_far_functions_are_one_set() {
        let mut sets = FunctionSets::default();
        let functions = || (0..NEAR as u32 + 2).map(AddressId);
        functions().for_each(|function| sets.meet(function, Part::Function));
        let mut path_of = |stack: &[u32]| {
            let mut adding = sets.begin();
            assert!(stack.iter().all(|&number| adding.add(AddressId(number)) == Part::Function));
            adding.end();
            let mut path = Vec::new();
            sets.path(&mut path);
            let KeyHash { first, second } = sets.key(0);
            (path.into_iter().map(|address| address.0).collect::<Vec<_>>(), (first, second))
        };
        let (path, key) = path_of(&[129, 63, 128, 0, 127, 64, 63, 129]);
        assert_eq!(path, [0, 63, 64, 127, 128, 129]);
        assert_eq!(path_of(&[0, 63, 64, 127, 128, 129]).1, key);
        for stack in [[63, 64, 127, 128, 129], [0, 63, 64, 127, 128], [0, 64, 127, 128, 129]] {
            assert_ne!(path_of(&stack).1, key, "{stack:?}");
        }
    }

    #[test]
    fn turns_begin_anew() {
        let mut sets = FunctionSets { most_near: 0, ..FunctionSets::default() };
        let first = found(&mut sets, &[1, 2]);
        sets.turn = u32::MAX;
        assert_eq!(found(&mut sets, &[2, 1, 1]), first);
    }
}

//! What each function, line or module spends itself and with all that it calls.

use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::frames::{FrameTable, UNKNOWN};
use super::parallel::in_parallel_if_large;
use super::select::Totals;
use crate::profile::{ByCallers, CallersId, Profile, StackId, StackTable};

/// Trees of so many places are divided between threads; smaller ones take less than a millisecond.
const LARGE: usize = 1 << 14;
/// Walking a place of a tree takes as long as so many frames of stacks that are gone through one by one.
const FRAMES_FOR_A_PLACE: usize = 6;
/// Most places above the divided parts of a tree.
const MOST_HEADS: usize = 1 << 10;

/// Own and total sums by key of a [`FrameTable`]. A function that calls itself counts once.
pub(super) fn sums_by_frame(
    profile: &Profile,
    frames: &FrameTable,
    stacks: &[Totals],
) -> Vec<(Totals, Totals)> {
    let places = profile.stacks.callers_len();
    if places >= LARGE && frames_of_all(&profile.stacks) < FRAMES_FOR_A_PLACE * places {
        return sums_one_by_one(profile, frames, stacks);
    }
    sums_by_parts(profile, frames, stacks, if places < LARGE { 1 } else { 16 })
}

/// About how many frames all stacks have together.
fn frames_of_all(stacks: &StackTable) -> usize {
    const LOOKED_AT: usize = 1 << 10;
    let every = stacks.len().div_ceil(LOOKED_AT).max(1);
    let frames = |stack: usize| stacks.frames(StackId(stack as u32)).count();
    (0..stacks.len()).step_by(every).map(frames).sum::<usize>() * every
}

/// The same stack by stack, each from its innermost frame on. Where stacks have little in common this passes over memory in the
/// order in which they were met, and needs no lists of what was called by whom.
fn sums_one_by_one(profile: &Profile, frames: &FrameTable, stacks: &[Totals]) -> Vec<(Totals, Totals)> {
    let keys = frames.keys.len();
    let sum = |range: Range<usize>| {
        let mut sums = vec![(Totals::default(), Totals::default()); keys];
        // By key, one more than the last stack that it was on.
        let mut on_stack = vec![0; keys];
        for index in range.filter(|&index| !stacks[index].is_empty()) {
            let (totals, this) = (stacks[index], index as u32 + 1);
            let mut innermost = None;
            for address in profile.stacks.frames(StackId(index as u32)) {
                let keys = frames.of_address(address);
                innermost = innermost.or(keys.last().copied());
                for &key in keys {
                    if std::mem::replace(&mut on_stack[key as usize], this) != this {
                        sums[key as usize].1 += totals;
                    }
                }
            }
            sums[innermost.unwrap_or(UNKNOWN) as usize].0 += totals;
            if innermost.is_none() {
                sums[UNKNOWN as usize].1 += totals;
            }
        }
        sums
    };
    let half = stacks.len() / 2;
    // The same halves however many CPUs there are, so that sums are rounded in the same way.
    let (mut sums, others) = in_parallel_if_large(stacks.len(), || sum(0..half), || sum(half..stacks.len()));
    for (sums, others) in sums.iter_mut().zip(others) {
        sums.0 += others.0;
        sums.1 += others.1;
    }
    sums
}

/// The same, with the tree divided until no part has more than one `parts`th of its places.
fn sums_by_parts(
    profile: &Profile,
    frames: &FrameTable,
    stacks: &[Totals],
    parts: usize,
) -> Vec<(Totals, Totals)> {
    let size = profile.stacks.len();
    let (called, by_callers) =
        in_parallel_if_large(size, || profile.stacks.called(), || profile.stacks.by_callers());
    let tree = Tree { profile, frames, stacks, called, by_callers };
    let Division { heads, halves: [first, second] } = Division::new(&profile.stacks, &tree.called, parts);
    let walk = |tops: Vec<CallersId>| {
        let mut walk = Walk::new(&tree);
        let found: Vec<_> = tops.into_iter().map(|top| (top, walk.subtree(top))).collect();
        (walk, found)
    };
    // The same halves however many CPUs there are, so that sums are rounded in the same way.
    let ((mut walk, found), (other, found_by_other)) =
        in_parallel_if_large(size, || walk(first), || walk(second));
    for (sums, others) in walk.sums.iter_mut().zip(other.sums) {
        sums.0 += others.0;
        sums.1 += others.1;
    }
    // What is below each head is known before it is its turn: callers come first in the list.
    let mut below: FxHashMap<Option<CallersId>, Totals> = FxHashMap::default();
    let outer = |top| profile.stacks.caller(top).map(|(_, outer)| outer);
    for (top, found) in found.into_iter().chain(found_by_other) {
        *below.entry(outer(top)).or_default() += found;
    }
    for head in heads.into_iter().rev() {
        let found = walk.head(head, below.remove(&Some(head)).unwrap_or_default());
        *below.entry(outer(head)).or_default() += found;
    }
    walk.sums
}

/// Parts of a tree that can be walked apart: about half of its places each, in whole subtrees.
struct Division {
    /// The places above these subtrees, each behind its callers.
    heads: Vec<CallersId>,
    /// The tops of subtrees.
    halves: [Vec<CallersId>; 2],
}

impl Division {
    fn new(stacks: &StackTable, called: &ByCallers<CallersId>, parts: usize) -> Self {
        if parts < 2 {
            return Self { heads: Vec::new(), halves: [vec![CallersId::NONE], Vec::new()] };
        }
        let sizes = sizes(stacks);
        let size_of = |at: CallersId| sizes[at.0 as usize];
        let mut largest = BinaryHeap::from([(size_of(CallersId::NONE), CallersId::NONE)]);
        let mut heads = Vec::new();
        while let Some(&(size, at)) = largest.peek()
            && size as usize > stacks.callers_len() / parts
            && heads.len() < MOST_HEADS
        {
            largest.pop();
            heads.push(at);
            largest.extend(called.of(at).map(|inner| (size_of(inner), inner)));
        }
        let mut halves = [Vec::new(), Vec::new()];
        let mut places = [0; 2];
        for (size, at) in largest.into_sorted_vec().into_iter().rev() {
            let half = usize::from(places[1] < places[0]);
            halves[half].push(at);
            places[half] += u64::from(size);
        }
        Self { heads, halves }
    }
}

/// Number of places in the subtree of each place, its own included.
fn sizes(stacks: &StackTable) -> Vec<u32> {
    let mut sizes = vec![1; stacks.callers_len()];
    // Callers have lower numbers than those that they call.
    for at in stacks.all_callers().rev() {
        if let Some((_, outer)) = stacks.caller(at) {
            sizes[outer.0 as usize] += sizes[at.0 as usize];
        }
    }
    sizes
}

/// The tree of callers, and what was found of its stacks.
struct Tree<'a> {
    profile: &'a Profile,
    frames: &'a FrameTable,
    stacks: &'a [Totals],
    called: ByCallers<CallersId>,
    by_callers: ByCallers<StackId>,
}

impl Tree<'_> {
    #[inline]
    fn keys(&self, callers: CallersId) -> &[u32] {
        let caller = self.profile.stacks.caller(callers);
        caller.map_or(&[], |(address, _)| self.frames.of_address(address))
    }
}

/// Goes through a part of the tree, from its top to its leaves and back: each key gets what was found below it
/// where the path to the root has it first.
struct Walk<'a> {
    tree: &'a Tree<'a>,
    sums: Vec<(Totals, Totals)>,
    /// How often each key is on the path at hand.
    on_path: Vec<u32>,
}

/// A place on the path.
struct Visit<'a> {
    keys: &'a [u32],
    /// The first that it called and that was not visited yet.
    next: Option<CallersId>,
    /// What was found there and below so far.
    found: Totals,
}

impl<'a> Walk<'a> {
    fn new(tree: &'a Tree<'a>) -> Self {
        let keys = tree.frames.keys.len();
        Self { tree, sums: vec![(Totals::default(), Totals::default()); keys], on_path: vec![0; keys] }
    }

    /// Goes through a whole subtree; what was found there is returned.
    fn subtree(&mut self, top: CallersId) -> Totals {
        let called = &self.tree.called;
        self.for_outer_keys(top, |on_path| *on_path += 1);
        let mut path = vec![self.enter(top)];
        let mut all = Totals::default();
        while let Some(last) = path.last_mut() {
            if let Some(next) = last.next {
                last.next = called.next(next);
                path.push(self.enter(next));
                continue;
            }
            let Visit { keys, found, .. } = *last;
            self.leave(keys, found);
            path.pop();
            match path.last_mut() {
                Some(outer) => outer.found += found,
                None => all = found,
            }
        }
        self.for_outer_keys(top, |on_path| *on_path -= 1);
        all
    }

    /// Visits a single place, below which something was found; the sum of all is returned.
    fn head(&mut self, head: CallersId, below: Totals) -> Totals {
        self.for_outer_keys(head, |on_path| *on_path += 1);
        let Visit { keys, mut found, .. } = self.enter(head);
        found += below;
        self.leave(keys, found);
        self.for_outer_keys(head, |on_path| *on_path -= 1);
        found
    }

    /// What is on the path to a place, without its own keys.
    fn for_outer_keys(&mut self, place: CallersId, mut change: impl FnMut(&mut u32)) {
        let tree = self.tree;
        let mut at = place;
        while let Some((_, outer)) = tree.profile.stacks.caller(at) {
            tree.keys(outer).iter().for_each(|&key| change(&mut self.on_path[key as usize]));
            at = outer;
        }
    }

    /// Goes to a place, and finds what its stacks themselves have.
    fn enter(&mut self, callers: CallersId) -> Visit<'a> {
        let tree = self.tree;
        let keys = tree.keys(callers);
        for &key in keys {
            self.on_path[key as usize] += 1;
        }
        let mut found = Totals::default();
        for stack in tree.by_callers.of(callers) {
            let totals = tree.stacks[stack.0 as usize];
            if !totals.is_empty() {
                found += totals;
                self.stack(callers, stack, totals);
            }
        }
        Visit { keys, next: tree.called.first(callers), found }
    }

    /// What a stack has beyond its callers.
    fn stack(&mut self, callers: CallersId, stack: StackId, totals: Totals) {
        let keys = match self.tree.profile.stacks.innermost(stack) {
            Some(address) => self.tree.frames.of_address(address),
            None if callers == CallersId::NONE => &[UNKNOWN],
            None => &[],
        };
        for (at, &key) in keys.iter().enumerate() {
            if self.on_path[key as usize] == 0 && !keys[..at].contains(&key) {
                self.sums[key as usize].1 += totals;
            }
        }
        // A sample without an address of its own is where its innermost caller is.
        let innermost = keys.last().or(self.tree.keys(callers).last());
        self.sums[innermost.copied().unwrap_or(UNKNOWN) as usize].0 += totals;
    }

    fn leave(&mut self, keys: &[u32], found: Totals) {
        for &key in keys {
            let on_path = &mut self.on_path[key as usize];
            *on_path -= 1;
            if *on_path == 0 && !found.is_empty() {
                self.sums[key as usize].1 += found;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::frames::Detail;
    use super::super::laws::any_profile;
    use super::*;
    use crate::profile::AddressId;
    use crate::units::Joules;

    /// As the definition has it.
    fn by_definition(profile: &Profile, frames: &FrameTable, stacks: &[Totals]) -> Vec<(Totals, Totals)> {
        let mut sums = vec![(Totals::default(), Totals::default()); frames.keys.len()];
        for (stack, &totals) in (0..).map(StackId).zip(stacks) {
            let keys: Vec<u32> = frames.of_stack(profile, stack).collect();
            sums[keys.first().copied().unwrap_or(UNKNOWN) as usize].0 += totals;
            let distinct: BTreeSet<u32> = keys.into_iter().collect();
            let or_unknown = distinct.is_empty().then_some(UNKNOWN);
            distinct.into_iter().chain(or_unknown).for_each(|key| sums[key as usize].1 += totals);
        }
        sums
    }

    proptest! {
        /// However a tree is divided, each key has the sums of its stacks.
        #[test]
        fn a_divided_tree_has_the_sums_of_its_stacks(
            (mut profile, symbols) in any_profile(),
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..60),
            stacks in prop::collection::vec(
                (any::<prop::sample::Index>(), prop::option::of(any::<prop::sample::Index>()), 0u32..9),
                1..60,
            ),
            parts in prop::sample::select(vec![1, 2, 4, 1000]),
            inline in any::<bool>(),
        ) {
            prop_assume!(!profile.addresses.is_empty());
            let address = |index: prop::sample::Index| AddressId(index.index(profile.addresses.len()) as u32);
            let mut table = StackTable::default();
            for (outer, frame) in places {
                let outer = CallersId(outer.index(table.callers_len()) as u32);
                table.push_caller(outer, address(frame));
            }
            let mut totals = Vec::new();
            for (callers, own, samples) in stacks {
                let callers = CallersId(callers.index(table.callers_len()) as u32);
                table.push(callers, own.map(address));
                // Whole numbers of joules add up exactly in any order.
                let joules = Joules::from_joules(f64::from(samples) * 3.0);
                totals.push(Totals { samples: samples.into(), ..Totals::of_joules(joules) });
            }
            profile.stacks = table;
            let frames = FrameTable::new(&profile, &symbols, Detail::Function, inline);
            let expected = by_definition(&profile, &frames, &totals);
            prop_assert_eq!(&sums_one_by_one(&profile, &frames, &totals), &expected);
            prop_assert_eq!(sums_by_parts(&profile, &frames, &totals, parts), expected);
        }
    }
}

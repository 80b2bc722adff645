//! What each function, line or module spends itself and with all that it calls.

use super::frames::{FrameTable, UNKNOWN};
use super::select::Totals;
use crate::profile::{ByCallers, CallersId, Profile, StackId};

/// Own and total sums by key of a [`FrameTable`]. A function that calls itself counts once.
pub(super) fn sums_by_frame(
    profile: &Profile,
    frames: &FrameTable,
    stacks: &[Totals],
) -> Vec<(Totals, Totals)> {
    let mut walk = Walk {
        profile,
        frames,
        stacks,
        by_callers: &profile.stacks.by_callers(),
        sums: vec![(Totals::default(), Totals::default()); frames.keys.len()],
        on_path: vec![0; frames.keys.len()],
    };
    walk.all();
    walk.sums
}

/// The tree of callers, from the root to its leaves and back: each key gets what was found below it where the path
/// to the root has it first.
struct Walk<'a> {
    profile: &'a Profile,
    frames: &'a FrameTable,
    stacks: &'a [Totals],
    by_callers: &'a ByCallers<StackId>,
    sums: Vec<(Totals, Totals)>,
    /// How often each key is on the path at hand.
    on_path: Vec<u32>,
}

/// A place on the path.
struct Visit {
    callers: CallersId,
    /// The first that it called and that was not visited yet.
    next: Option<CallersId>,
    /// What was found there and below so far.
    found: Totals,
}

impl<'a> Walk<'a> {
    fn all(&mut self) {
        let called = self.profile.stacks.called();
        let visit = |callers, found| Visit { callers, next: called.first(callers), found };
        let mut path = vec![visit(CallersId::NONE, self.enter(CallersId::NONE))];
        while let Some(last) = path.last_mut() {
            if let Some(next) = last.next {
                last.next = called.next(next);
                path.push(visit(next, self.enter(next)));
                continue;
            }
            let Visit { callers, found, .. } = *last;
            self.leave(callers, found);
            path.pop();
            if let Some(outer) = path.last_mut() {
                outer.found += found;
            }
        }
    }

    fn keys(&self, callers: CallersId) -> &'a [u32] {
        let caller = self.profile.stacks.caller(callers);
        caller.map_or(&[], |(address, _)| self.frames.of_address(address))
    }

    /// What the stacks of these callers themselves have.
    fn enter(&mut self, callers: CallersId) -> Totals {
        for &key in self.keys(callers) {
            self.on_path[key as usize] += 1;
        }
        let mut found = Totals::default();
        for stack in self.by_callers.of(callers) {
            let totals = self.stacks[stack.0 as usize];
            if !totals.is_empty() {
                found += totals;
                self.stack(callers, stack, totals);
            }
        }
        found
    }

    /// What a stack has beyond its callers.
    fn stack(&mut self, callers: CallersId, stack: StackId, totals: Totals) {
        let keys = match self.profile.stacks.innermost(stack) {
            Some(address) => self.frames.of_address(address),
            None if callers == CallersId::NONE => &[UNKNOWN],
            None => &[],
        };
        for (at, &key) in keys.iter().enumerate() {
            if self.on_path[key as usize] == 0 && !keys[..at].contains(&key) {
                self.sums[key as usize].1 += totals;
            }
        }
        // A sample without an address of its own is where its innermost caller is.
        let innermost = keys.last().or(self.keys(callers).last());
        self.sums[innermost.copied().unwrap_or(UNKNOWN) as usize].0 += totals;
    }

    fn leave(&mut self, callers: CallersId, found: Totals) {
        for &key in self.keys(callers) {
            let on_path = &mut self.on_path[key as usize];
            *on_path -= 1;
            if *on_path == 0 && !found.is_empty() {
                self.sums[key as usize].1 += found;
            }
        }
    }
}

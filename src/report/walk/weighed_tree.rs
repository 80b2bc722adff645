//! What stacks weigh in the tree of callers.

use crate::profile::{ByCallers, CallersId, Profile, StackId};
use crate::report::parallel::in_parallel;

/// A stack and what it weighs.
#[derive(Debug, Clone, Copy)]
pub(in crate::report) struct WeighedStack {
    /// A frame above all frames of the stack (a thread, a process), as index into the names of such
    /// frames.
    pub above: Option<u32>,
    pub stack: StackId,
    pub weight: f64,
}

/// The tree of callers and what weighs in it.
pub(super) struct WeighedTree {
    pub called: ByCallers<CallersId>,
    pub by_callers: ByCallers<StackId>,
    pub weights: Weights,
}

impl WeighedTree {
    /// With the weights of these stacks, and how many they are if that `counts`.
    pub fn new(profile: &Profile, stacks: &[WeighedStack], counts: bool) -> Self {
        let weigh = || {
            let mut weights = Weights::new(profile, counts);
            weights.add(profile, stacks);
            weights
        };
        let lists = || (profile.stacks.called(), profile.stacks.by_callers());
        let ((called, by_callers), weights) = in_parallel(lists, weigh);
        Self { called, by_callers, weights }
    }
}

/// Weights in the tree of callers.
pub(super) struct Weights {
    /// What each stack weighs.
    pub own: Vec<f64>,
    /// What each place weighs with all below it.
    pub below: Vec<f64>,
    /// How many stacks go through each place, if that is asked for.
    stacks: Option<Vec<u32>>,
    /// Places that stacks go through, where they are few.
    touched: Vec<CallersId>,
    is_touched: Vec<bool>,
}

impl Weights {
    fn new(profile: &Profile, counts: bool) -> Self {
        Self {
            own: written(profile.stacks.len()),
            below: written(profile.stacks.callers_len()),
            stacks: counts.then(|| written(profile.stacks.callers_len())),
            touched: Vec::new(),
            is_touched: Vec::new(),
        }
    }

    /// Puts the weights of stacks where there are none yet. Only what they go through is looked at: there may be
    /// many threads, each with stacks of its own.
    pub fn add(&mut self, profile: &Profile, stacks: &[WeighedStack]) {
        for &WeighedStack { stack, weight, .. } in stacks {
            self.own[stack.0 as usize] += weight;
            let callers = profile.stacks.callers(stack).0 as usize;
            self.below[callers] += weight;
            if let Some(stacks) = &mut self.stacks {
                stacks[callers] += 1;
            }
        }
        // Callers have lower numbers than those that they call.
        if self.are_many(stacks) {
            profile.stacks.all_callers().rev().for_each(|at| self.pass_on(profile, at));
            return;
        }
        self.is_touched.resize(self.below.len(), false);
        for stack in stacks {
            let mut at = profile.stacks.callers(stack.stack);
            while let Some((_, outer)) = profile.stacks.caller(at)
                && !std::mem::replace(&mut self.is_touched[at.0 as usize], true)
            {
                self.touched.push(at);
                at = outer;
            }
        }
        self.touched.sort_unstable_by(|a, b| b.cmp(a));
        for place in 0..self.touched.len() {
            self.pass_on(profile, self.touched[place]);
        }
    }

    /// How many stacks go through a place; 1 where that is not known.
    pub fn stacks_through(&self, at: CallersId) -> usize {
        self.stacks.as_ref().map_or(1, |stacks| stacks[at.0 as usize] as usize)
    }

    /// Adds what a place weighs to its callers.
    fn pass_on(&mut self, profile: &Profile, at: CallersId) {
        if let Some((_, outer)) = profile.stacks.caller(at) {
            self.below[outer.0 as usize] += self.below[at.0 as usize];
            if let Some(stacks) = &mut self.stacks {
                stacks[outer.0 as usize] += stacks[at.0 as usize];
            }
        }
    }

    /// So many stacks that it is best to go through the whole tree.
    fn are_many(&self, stacks: &[WeighedStack]) -> bool {
        stacks.len() >= self.own.len() / 8
    }

    /// Takes all weights away.
    pub fn clear(&mut self, stacks: &[WeighedStack]) {
        stacks.iter().for_each(|stack| self.own[stack.stack.0 as usize] = 0.0);
        if self.are_many(stacks) {
            self.below.fill(0.0);
            self.stacks.iter_mut().for_each(|stacks| stacks.fill(0));
            return;
        }
        for at in self.touched.drain(..).chain([CallersId::NONE]) {
            self.below[at.0 as usize] = 0.0;
            if let Some(stacks) = &mut self.stacks {
                stacks[at.0 as usize] = 0;
            }
            if let Some(is_touched) = self.is_touched.get_mut(at.0 as usize) {
                *is_touched = false;
            }
        }
    }
}

/// So many zeros, which are written: memory that the kernel gives without them being written is read as one page, and
/// given once more when it is written, with a message to all CPUs each time.
fn written<T: Copy + Default>(count: usize) -> Vec<T> {
    let mut zeros = Vec::with_capacity(count);
    zeros.resize(count, T::default());
    zeros
}

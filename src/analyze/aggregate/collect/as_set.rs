//! Callers of samples as sets of functions, where no more is asked for.

use perf_data::record::Sample;

use super::Collector;
use crate::analyze::aggregate::frames::{ChainCallers, Frame, for_each_caller};
use crate::analyze::aggregate::function_sets::{Adding, FunctionSets, Part};
use crate::analyze::aggregate::key_table::{AddressTable, KnownAddresses, Spaces};
use crate::profile::{AddressId, CallersId, DEEPEST_CHAIN};
use crate::timeline::{TaskId, Tasks};

impl Collector {
    /// Stacks are told apart by their functions alone.
    pub fn makes_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// The callers of a sample by their functions alone; `None` where there is more to know.
    #[inline]
    pub(super) fn callers_as_set(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> Option<CallersId> {
        let mut sets = self.sets.take()?;
        let is_set = self.add_callers(&mut sets, tasks, task, spaces, sample, unwound);
        let callers = is_set.then(|| {
            let hash = sets.key(u64::from(spaces.0.0) << 32 | u64::from(spaces.1.0));
            match self.known_callers.find(hash) {
                Some(callers) => CallersId(callers),
                None => {
                    sets.path(&mut self.path);
                    self.number_path(hash)
                }
            }
        });
        self.sets = Some(sets);
        callers
    }

    /// Makes the set of a sample's callers; `false` where there is more to know of them.
    fn add_callers(
        &mut self,
        sets: &mut FunctionSets,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> bool {
        let spaces = self.located.number_of(spaces);
        let parts = match self.add_met(sets, spaces, sample, unwound) {
            Some(parts) => Some(parts),
            None => {
                self.meet_all(sets, tasks, task, spaces, sample, unwound);
                self.add_met(sets, spaces, sample, unwound)
            }
        };
        // What cannot be met is nobody's: there is no memory for it.
        parts.unwrap_or(false)
    }

    /// Makes the set of a sample's callers, all of which were met before, and says whether it is all there is to know of them;
    /// `None` where some were not met.
    fn add_met(
        &self,
        sets: &mut FunctionSets,
        spaces: u32,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> Option<bool> {
        let known = self.located.known();
        let mut told = ToldOfCallers { callers: 0, are_met: true, is_clear: true };
        let mut adding = sets.begin();
        match ChainCallers::of(sample, unwound) {
            // Return addresses in functions that have a bit, as nearly all are, in a loop that is as short as can be.
            Some(mut callers) => loop {
                let (mode, mut bits) = (callers.mode(), [0; 2]);
                let passed = callers.pass_returns(|address| {
                    let found = known.find_at_once(AddressTable::key(spaces, mode, true, address));
                    let Some([low, high]) = found.and_then(|found| adding.bit(found)) else { return false };
                    bits = [bits[0] | low, bits[1] | high];
                    true
                });
                if passed > 0 {
                    adding.add_bits(bits);
                    told.callers += passed;
                }
                let Some(frame) = callers.next() else { break };
                told.add(known, &mut adding, spaces, frame);
            },
            None => for_each_caller(sample, unwound, |frame| told.add(known, &mut adding, spaces, frame)),
        }
        adding.end();
        // Of a path as deep as the kernel follows any, reports say so.
        let is_set = told.is_clear && 1 + told.callers < usize::from(DEEPEST_CHAIN);
        told.are_met.then_some(is_set)
    }

    /// Finds out what each of a sample's callers is to sets.
    #[cold]
    fn meet_all(
        &mut self,
        sets: &mut FunctionSets,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: u32,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) {
        for_each_caller(sample, unwound, |frame| {
            let (address, _) = self.located(tasks, task, spaces, frame);
            sets.meet(address, self.part(tasks, address));
        });
    }

    /// What an address is to the functions of a stack.
    fn part(&self, tasks: &Tasks, address: AddressId) -> Part {
        if self.no_return_addresses.contains(&address) || self.nowhere(tasks, address).is_some() {
            Part::Unclear
        } else if self.functions.is_standing(address) {
            Part::Function
        } else {
            Part::Frame
        }
    }
}

/// What is found out of a sample's callers while their set is made.
struct ToldOfCallers {
    callers: usize,
    /// Sets know what each of them is.
    are_met: bool,
    /// There is no more to know of them than their functions.
    is_clear: bool,
}

impl ToldOfCallers {
    #[inline(always)]
    fn add(&mut self, known: KnownAddresses<'_>, adding: &mut Adding<'_>, spaces: u32, frame: Frame) {
        let Frame { mode, address, is_return } = frame;
        self.callers += 1;
        match known.find(AddressTable::key(spaces, mode, is_return, address)).map(|at| adding.add(at)) {
            Some(Part::Function | Part::Frame) => {}
            Some(Part::Unclear) => self.is_clear = false,
            Some(Part::Unmet) | None => self.are_met = false,
        }
    }
}

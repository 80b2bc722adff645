//! Which call stacks a selection takes.

use super::frames::{Detail, FrameTable};
use super::select::{Selected, Selection, Totals};
use crate::profile::{AddressId, Profile, StackId};
use crate::symbolize::Symbols;

/// Tells stacks that pass through a function from others.
pub(super) struct StackFilter {
    /// For each address whether its code is of such a function; `None` if all stacks are taken.
    is_at: Option<Vec<bool>>,
}

impl StackFilter {
    pub fn new(profile: &Profile, symbols: &Symbols, selection: &Selection) -> Self {
        let is_at = selection.through.as_ref().map(|pattern| {
            let frames = FrameTable::new(profile, symbols, Detail::Function, true);
            let marked = frames.flags(|function| pattern.is_match(function.name.as_str()));
            let keys =
                (0..profile.addresses.len() as u32).map(|address| frames.of_address(AddressId(address)));
            keys.map(|keys| keys.iter().any(|&key| marked[key as usize])).collect()
        });
        Self { is_at }
    }

    /// Sums by stack of a part of the profile; stacks that do not pass through what was asked for are left empty.
    pub fn totals(&self, part: &Profile, selected: &Selected) -> Vec<Totals> {
        let mut stacks = selected.totals_by_stack(part);
        if let Some(is_at) = &self.is_at {
            let is_at = |address: AddressId| is_at.get(address.0 as usize).copied().unwrap_or(false);
            let table = &part.stacks;
            let mut pass = vec![false; table.callers_len()];
            for callers in table.all_callers() {
                let caller = table.caller(callers);
                pass[callers.0 as usize] =
                    caller.is_some_and(|(address, outer)| pass[outer.0 as usize] || is_at(address));
            }
            for (stack, totals) in (0..).map(StackId).zip(&mut stacks) {
                if !pass[table.callers(stack).0 as usize] && !table.innermost(stack).is_some_and(is_at) {
                    *totals = Totals::default();
                }
            }
        }
        stacks
    }

    /// For each stack of a part whether it is taken and has a selected cell that is not empty.
    pub fn taken(&self, part: &Profile, selected: &Selected) -> Vec<bool> {
        match self.is_at {
            None => selected.stacks(part),
            Some(_) => self.totals(part, selected).iter().map(|totals| !totals.is_empty()).collect(),
        }
    }
}

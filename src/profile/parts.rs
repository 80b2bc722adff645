//! Profiles of more cells than there is memory for.
//!
//! Every figure of a report is a sum over samples, and sums can be added up part by part: a profile whose call stacks
//! fit into memory is one part; of a larger one the parts come one after the other, each with the stacks, cells and
//! joules of a stretch of the recording, and are gone before the next. Nobody who adds them up need know which of both
//! it is, and no figure is worse for it.
//!
//! The alternative was to keep what is met most often and to leave out the callers of the rest. It needs no second
//! look at the recording, and is wrong just where programs are hard to understand: where they recurse.

use super::Profile;

/// A profile whose cells may come in parts.
pub trait ProfileParts {
    /// All that is there once: domains, events, modules, addresses, threads, balances, warnings. It has cells and
    /// stacks only if these are all in memory, see [`ProfileParts::whole`].
    fn profile(&self) -> &Profile;

    /// The profile with all its cells, if they are in memory.
    fn whole(&self) -> Option<&Profile>;

    /// Calls `visit` with each part in the order of time. Parts have all that [`ProfileParts::profile`] has, and
    /// stacks, cells, joules and slices of their own; an index of a thread, an address or a module means the same in
    /// all of them.
    fn for_each_part(&self, visit: &mut dyn FnMut(&Profile));

    /// How many bytes may be taken for what grows with the number of stacks, beside a part.
    fn spare_bytes(&self) -> usize;
}

impl ProfileParts for Profile {
    fn profile(&self) -> &Profile {
        self
    }

    fn whole(&self) -> Option<&Profile> {
        Some(self)
    }

    fn for_each_part(&self, visit: &mut dyn FnMut(&Profile)) {
        visit(self);
    }

    fn spare_bytes(&self) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_its_only_part_and_takes_nothing_from_what_is_left() {
        let profile = Profile { is_partial: true, ..Profile::default() };
        let mut visited = 0;
        profile.for_each_part(&mut |part| visited += usize::from(part.is_partial));
        assert_eq!((visited, profile.spare_bytes()), (1, usize::MAX));
        assert!(profile.whole().is_some_and(|whole| std::ptr::eq(whole, &profile)));
        assert!(std::ptr::eq(profile.profile(), &profile));
    }
}

//! From a recording to its profile, in one piece or in parts.

use std::sync::Arc;

use crate::analyze::build_ids::add_build_ids;
use crate::analyze::memory::{MemoryLimit, TableLimits};
use crate::analyze::model::estimate::Estimate;
use crate::analyze::options::{Options, WattsRange};
use crate::analyze::passes::assemble::Assembled;
use crate::analyze::passes::in_parts::{self, Known};
use crate::analyze::passes::whole::whole;
use crate::profile::{Profile, ProfileParts, StackTable};
use crate::recording::Recording;

/// Makes a profile of a recording, however much memory its call stacks take. Damage in the recording ends or thins
/// out the profile and is told in its warnings.
pub fn analyze(recording: &Recording, options: &Options) -> Profile {
    let limits = MemoryLimit::NONE.of_whole(options.dimensions.stacks);
    let (Assembled { mut profile, by_event, .. }, _) = whole(recording, options, None, limits);
    if by_event {
        profile
            .warnings
            .push("there are more call paths than can be numbered: nothing is known of them".to_owned());
    }
    add_build_ids(&mut profile.modules, recording);
    profile
}

/// Gives a profile without joules those of its CPU time, on a machine of so many CPUs and these watts.
pub fn estimate(profile: &mut Profile, cpus: u32, watts: WattsRange) {
    Estimate::new(cpus, watts).add_to(profile);
}

/// A recording's profile within so much memory.
///
/// As long as its tables fit, it is what [`analyze`] makes. If they do not, the walk through the recording goes on and
/// finds all that does not grow with the number of stacks: the balance of each domain, the code's addresses,
/// threads, error terms. Reports then ask for the profile's parts ([`ProfileParts`]), for which the recording is walked
/// through again. Joules are attributed to samples in the same way each time, since that does not depend on what the
/// samples' cells are; so every sum over parts is the sum over the whole but for the last bits.
///
/// Why again, and not once with names? A part's sums by function need the function of each address, which is known
/// when all of the recording was seen: a map of a process may be told late. And a call tree has to be seen
/// twice, first to find what is heavy in it, then to weigh that exactly.
pub struct Analysis {
    profile: Profile,
    /// What is needed to make the parts; `None` if the profile is whole.
    parts: Option<Parts>,
}

struct Parts {
    recording: Arc<Recording>,
    options: Options,
    limits: TableLimits,
    spare_bytes: usize,
    known: Known,
}

impl Analysis {
    /// Analyzes a recording.
    pub fn new(recording: &Arc<Recording>, options: &Options, limit: MemoryLimit) -> Self {
        let stacks = options.dimensions.stacks;
        let limits = [limit.of_whole(stacks), limit.of_part(stacks)];
        Self::with_limits(recording, options, limits, limit.of_sums())
    }

    pub(super) fn with_limits(
        recording: &Arc<Recording>,
        options: &Options,
        [of_whole, of_part]: [TableLimits; 2],
        spare_bytes: usize,
    ) -> Self {
        let (assembled, survey) = whole(recording, options, None, of_whole);
        let Assembled { mut profile, by_event, pool_factors, .. } = assembled;
        add_build_ids(&mut profile.modules, recording);
        let parts = by_event.then(|| Parts {
            recording: Arc::clone(recording),
            options: options.clone(),
            limits: of_part,
            spare_bytes,
            known: Known { survey, pool_factors },
        });
        if by_event {
            leave_cells_out(&mut profile);
        }
        Self { profile, parts }
    }

    /// The profile, if all of it is in memory.
    pub fn into_whole(self) -> Option<Profile> {
        self.parts.is_none().then_some(self.profile)
    }

    /// The profile, for what is to be added to its warnings.
    pub fn profile_mut(&mut self) -> &mut Profile {
        &mut self.profile
    }
}

impl ProfileParts for Analysis {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn whole(&self) -> Option<&Profile> {
        self.parts.is_none().then_some(&self.profile)
    }

    fn for_each_part(&self, visit: &mut dyn FnMut(&Profile)) {
        match &self.parts {
            None => visit(&self.profile),
            Some(Parts { recording, options, limits, known, .. }) => {
                in_parts::for_each_part(recording, options, *limits, known, &self.profile, visit);
            }
        }
    }

    fn spare_bytes(&self) -> usize {
        self.parts.as_ref().map_or(usize::MAX, |parts| parts.spare_bytes)
    }
}

/// Leaves in a profile what parts do not have.
fn leave_cells_out(profile: &mut Profile) {
    profile.stacks = StackTable::default();
    profile.cells = Vec::new();
    profile.cell_joules = Vec::new();
    profile.cell_variances = Vec::new();
    profile.slices.iter_mut().for_each(|slice| slice.by_cell = Vec::new());
    if let Some(errors) = &mut profile.errors {
        errors.sensitivities = Vec::new();
        errors.sequence.number();
    }
}

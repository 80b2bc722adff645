//! Another pass over a recording whose stacks do not fit into memory: its profile part by part.
//!
//! One thread does all of it. Two would have to wait for each other at the end of each part, lest trees of
//! callers pile up between them.

use std::sync::atomic::AtomicBool;

use crate::analyze::aggregate::gather::{Gathered, Room, gather};
use crate::analyze::events::EventRoles;
use crate::analyze::intervals::survey::Survey;
use crate::analyze::memory::TableLimits;
use crate::analyze::model::estimate::Estimate;
use crate::analyze::options::Options;
use crate::analyze::passes::attributing::Attributing;
use crate::analyze::passes::parts::{Part, PartsMaker};
use crate::analyze::steps::StepChunks;
use crate::attribute::TakenCells;
use crate::hardware::DomainKind;
use crate::profile::{Balance, InSlice, Profile, SampleSequence, TimeSlice};
use crate::recording::Recording;
use crate::units::Joules;

/// What the first look at a recording found that other looks need.
#[derive(Debug)]
pub(crate) struct Known {
    pub survey: Survey,
    /// See [`crate::attribute::Attribution::pool_factors`].
    pub pool_factors: Vec<f64>,
}

/// Calls `visit` with each part. `head` is all of the profile but cells.
pub(crate) fn for_each_part(
    recording: &Recording,
    options: &Options,
    limits: TableLimits,
    known: &Known,
    head: &Profile,
    visit: &mut dyn FnMut(&Profile),
) {
    let roles = EventRoles::new(recording);
    let mut view = View::new(recording, options, known, head, &roles);
    let mut give = |part: Part| view.show(part, visit);
    let maker = PartsMaker::new(head.errors.as_ref().map(|errors| errors.sequence.follow()), &mut give);
    let cells_are_full = AtomicBool::new(false);
    let room = Room { limits, in_parts: true, cells_are_full: &cells_are_full };
    let attributing =
        Attributing::new(recording, &roles, &known.survey, options, limits.cells, &cells_are_full);
    let mut attributing = attributing.in_parts(maker, known.pool_factors.clone());
    let mut chunks = StepChunks::new(|steps| attributing.take(steps));
    let gathered = gather(recording, &roles, options, None, room, |step| chunks.push(step));
    drop(chunks);
    let Gathered { collected, launches, .. } = gathered;
    let launched = attributing.finish_parts(collected.callers).unwrap_or_default();
    if !launched.of_launches.is_empty() {
        let (cells, stacks) = launched.cells.finish(launched.cell_counts.into_iter());
        let stacks = collected.callers_of_launches.with_stacks_of(stacks);
        view.put(Part { stacks, cells, taken: TakenCells::default(), sequence: Vec::new() });
        launches.settle(&mut view.profile, &launched.of_launches);
        visit(&view.profile);
    }
}

/// The profile with one part after the other.
struct View<'h> {
    head: &'h Profile,
    profile: Profile,
    /// Where joules are no meter's.
    estimate: Option<Estimate>,
    /// Domains of which only launches have joules.
    of_launches: Vec<usize>,
}

impl<'h> View<'h> {
    fn new(
        recording: &Recording,
        options: &Options,
        known: &Known,
        head: &'h Profile,
        roles: &EventRoles,
    ) -> Self {
        let watts = options.watts.filter(|_| !known.survey.tells_joules());
        let domains = head.domains.iter().enumerate();
        let gpus = domains.filter(|(_, domain)| domain.info.kind == DomainKind::Gpu);
        Self {
            head,
            profile: Profile { slices: Vec::new(), ..head.clone() },
            estimate: watts.map(|watts| Estimate::of_recording(recording, &known.survey, watts)),
            of_launches: gpus.map(|(index, _)| index).filter(|_| roles.has_launches()).collect(),
        }
    }

    /// Shows a part to `visit`, and gives back the memory that it takes.
    fn show(&mut self, part: Part, visit: &mut dyn FnMut(&Profile)) {
        self.put(part);
        visit(&self.profile);
        self.put(Part::default());
    }

    fn put(&mut self, part: Part) {
        let Part { stacks, cells, taken, sequence } = part;
        let TakenCells { mut joules, mut sensitivities, by_bucket } = taken;
        let columns = self.head.domains.len();
        // Cells that never got a quantum have no row yet.
        joules.resize(cells.len() * columns, Joules::ZERO);
        for row in joules.chunks_mut(columns.max(1)) {
            self.of_launches.iter().for_each(|&domain| row[domain] = Joules::ZERO);
        }
        if let Some(estimate) = &self.estimate {
            joules = estimate.joules(&cells);
        }
        let profile = &mut self.profile;
        if let Some(errors) = &mut profile.errors {
            if !sensitivities.is_empty() {
                sensitivities.resize(cells.len() * columns * errors.parameters, 0.0);
            }
            (errors.sensitivities, errors.sequence) = (sensitivities, SampleSequence::of_part(sequence));
        }
        let slice = |(bucket, by_cell): (usize, Vec<InSlice>)| {
            let whole = self.head.slices.get(bucket)?;
            let (measured, modelled, balance) = (Vec::new(), Joules::ZERO, Balance::default());
            Some(TimeSlice { start: whole.start, end: whole.end, measured, modelled, balance, by_cell })
        };
        profile.slices = by_bucket.into_iter().filter_map(slice).collect();
        (profile.stacks, profile.cells, profile.cell_joules) = (stacks, cells, joules);
    }
}

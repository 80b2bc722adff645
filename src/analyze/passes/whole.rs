//! Survey, plan and second pass, for a profile in one piece.

use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::analyze::aggregate::gather::{Gathered, Room, gather};
use crate::analyze::aggregate::samples::SampleList;
use crate::analyze::events::EventRoles;
use crate::analyze::intervals::survey::Survey;
use crate::analyze::memory::TableLimits;
use crate::analyze::options::Options;
use crate::analyze::passes::assemble::{Assembled, assemble};
use crate::analyze::passes::attributing::{Attributed, Attributing};
use crate::analyze::steps::{self, StepChunks};
use crate::recording::Recording;

/// Both passes, or one where there is nothing to be known before it. The last one's halves are alike whatever thread they run
/// in: attribution is told the same steps in the same order. If the tables take more than they may, there is one cell for each
/// event in the end, and all else is as it is.
pub(crate) fn whole(
    recording: &Recording,
    options: &Options,
    samples: Option<SampleList>,
    limits: TableLimits,
) -> (Assembled, Survey) {
    let roles = EventRoles::new(recording);
    let cells_are_full = AtomicBool::new(false);
    let room = Room { limits, in_parts: false, cells_are_full: &cells_are_full };
    let attributing =
        |survey: &_| Attributing::new(recording, &roles, survey, options, limits.cells, &cells_are_full);
    let assembled = |survey: Survey, attributed: Attributed, gathered: Gathered| {
        let (survey, attributed) = match survey.is_of_samples() {
            true => (survey, attributed),
            false => {
                let samples = gathered.totals.iter().map(|event| event.samples);
                let samples = samples.take(roles.sampled().len()).collect();
                let survey = survey.with_seen(samples, gathered.sampled, attributed.seen.clone());
                (survey, attributed.with_terms_of_seen())
            }
        };
        (assemble(recording, &survey, options, attributed, gathered), survey)
    };
    if options.threads() < 2 {
        let survey = Survey::ahead_of(recording, &roles);
        let mut attribution = attributing(&survey);
        let mut chunks = StepChunks::new(|steps| attribution.take(steps));
        let gathered = gather(recording, &roles, options, samples, room, |step| chunks.push(step));
        drop(chunks);
        return assembled(survey, attribution.finish(), gathered);
    }
    thread::scope(|scope| {
        let (mut sender, receiver) = steps::channel();
        let roles = &roles;
        let gathering =
            scope.spawn(move || gather(recording, roles, options, samples, room, |step| sender.push(step)));
        let survey = Survey::ahead_of(recording, roles);
        let mut attribution = attributing(&survey);
        receiver.for_each(|steps| attribution.take(steps));
        let gathered = gathering.join().unwrap_or_else(|panic| resume_unwind(panic));
        assembled(survey, attribution.finish(), gathered)
    })
}

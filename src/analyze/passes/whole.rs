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
        (assemble(recording, &roles, &survey, options, attributed, gathered), survey)
    };
    if options.threads() < 2 {
        let survey = Survey::ahead_of(recording, &roles, options.watts.is_some());
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
        let survey = Survey::ahead_of(recording, roles, options.watts.is_some());
        let mut attribution = attributing(&survey);
        recording.perf_data().map_records();
        receiver.for_each(|steps| attribution.take(steps));
        let gathered = gathering.join().unwrap_or_else(|panic| resume_unwind(panic));
        assembled(survey, attribution.finish(), gathered)
    })
}

#[cfg(test)]
mod tests {
    use eprof_testbed::{files_below, published_data};

    use super::*;
    use crate::analyze::intervals::survey::survey;
    use crate::analyze::memory::MemoryLimit;
    use crate::analyze::{Dimensions, WattsRange};
    use crate::units::Watts;

    /// Of recordings that others made, which have no joules.
    #[test]
    fn what_is_seen_on_the_way_is_what_a_survey_finds() {
        let Some(data) = published_data() else { return };
        let (mut compared, mut on_the_way) = (0, 0);
        let watts = WattsRange { idle: Watts::from_watts(10.0), busy: Watts::from_watts(65.0) };
        let folders = ["perf_data_converter", "perfparser", "hotspot", "linux-perf-data"];
        for path in folders.iter().flat_map(|folder| files_below(&data.join(folder))) {
            let Ok(recording) = Recording::open(&path) else { continue };
            let expected = survey(&recording, &EventRoles::new(&recording));
            let events = expected.samples.len();
            let expected_late: Vec<f64> =
                (0..events).map(|event| expected.intervals.lateness_of_changes(event)).collect();
            for threads in [1, 2] {
                let dimensions = Dimensions { stacks: false, threads: false, cpus: false };
                let options =
                    Options { dimensions, watts: Some(watts), threads: Some(threads), ..Options::default() };
                let limits = MemoryLimit::NONE.of_whole(false);
                let (Assembled { profile, .. }, survey) = whole(&recording, &options, None, limits);
                on_the_way += usize::from(!survey.is_of_samples());
                assert_eq!(survey.highest_cpu, expected.highest_cpu, "{}", path.display());
                assert_eq!(survey.sampled, expected.sampled, "{}", path.display());
                let terms = profile.errors.expect("joules by CPU time have errors");
                assert_eq!(terms.late, expected_late, "{}", path.display());
                assert_eq!(terms.lost, expected.lost(), "{}", path.display());
            }
            compared += 1;
        }
        assert!(compared > 20 && on_the_way > 10, "{compared} recordings, {on_the_way} on the way");
    }
}

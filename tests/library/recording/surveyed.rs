//! What is found on the way through the samples of a recording is what a look at all of them beforehand finds, which
//! recordings without measured joules do without.

use eprof::analyze::{Dimensions, EventRoles, Options, WattsRange, analyze, survey};
use eprof::hardware::Method;
use eprof::profile::{LostStretches, ProfileMethod};
use eprof::recording::Recording;
use eprof::units::Watts;
use eprof_testbed::{published_data, skip};

use crate::perf_counts::files_below;

#[test]
fn what_is_seen_on_the_way_is_what_a_survey_finds() {
    let Some(data) = published_data() else { return skip("no recordings of others") };
    let (mut compared, mut late, mut lost) = (0, 0, 0);
    let watts = WattsRange { idle: Watts::from_watts(10.0), busy: Watts::from_watts(65.0) };
    for path in ["perf_data_converter", "perfparser", "hotspot", "linux-perf-data"]
        .iter()
        .flat_map(|folder| files_below(&data.join(folder)))
    {
        let Ok(recording) = Recording::open(&path) else { continue };
        let is_measured = |metadata: &eprof::recording::metadata::Metadata| {
            metadata.domains.iter().any(|domain| domain.method == Method::Measured)
        };
        if recording.metadata().is_some_and(is_measured) {
            continue;
        }
        let expected = survey(&recording, &EventRoles::new(&recording));
        for threads in [1, 2] {
            let dimensions = Dimensions { stacks: false, threads: false, cpus: false };
            let options =
                Options { dimensions, watts: Some(watts), threads: Some(threads), ..Options::default() };
            let profile = analyze(&recording, &options);
            assert_ne!(profile.method(), ProfileMethod::Measured);
            let terms = profile.errors.expect("joules by CPU time have errors");
            let all = |event| expected.intervals.lateness_of_changes(event);
            let expected_late: Vec<f64> = (0..expected.samples.len()).map(all).collect();
            assert_eq!(terms.late, expected_late, "{}", path.display());
            assert_eq!(terms.lost, expected.lost(), "{}", path.display());
            late += usize::from(expected_late.iter().any(|late| *late != 1.0));
            lost += usize::from(terms.lost != LostStretches::default());
        }
        compared += 1;
    }
    assert!(
        compared > 20 && late > 10,
        "{compared} recordings, {late} with late samples, {lost} with losses"
    );
}

//! A recording that the benches repeat is a recording of a run that went on.

use std::fs;

use eprof::analyze;
use eprof::recording::Recording;
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::Sampling;
use eprof_testbed::simulate::simulate;

use super::support::assert_balance;
use eprof_testbed::repeat::repeat;

const TIMES: u32 = 3;

#[test]
fn three_repetitions_have_three_times_the_samples_and_joules() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (once, often) = (folder.path().join("once.data"), folder.path().join("often.data"));
    let alternation = Alternation {
        duration: Nanoseconds::from_millis(1000),
        joules_per_sample: Joules::from_joules(0.002),
        sampling: Sampling { lost_share: 0.05, ..Sampling::default() },
        others: 2,
        ..Alternation::default()
    };
    let simulation = simulate(&scenario(&alternation)).expect("a scenario that fits together");
    fs::write(&once, &simulation.recording).expect("room for a file");
    repeat(&once, &often, TIMES.into()).expect("a sound recording");
    let [once, often] = [once, often].map(|path| {
        let recording = Recording::open(&path).expect("a recording");
        assert!(recording.is_complete());
        let profile = analyze::analyze(&recording, &analyze::Options::default());
        assert_balance(&profile);
        (recording, profile)
    });
    assert_eq!(once.0.features().hostname, often.0.features().hostname);
    let samples =
        |profile: &eprof::profile::Profile| -> u64 { profile.events.iter().map(|event| event.samples).sum() };
    assert!(samples(&once.1) > 500, "{} samples", samples(&once.1));
    assert_eq!(samples(&often.1), samples(&once.1) * u64::from(TIMES));
    for (domain, repeated) in once.1.domains.iter().zip(&often.1.domains) {
        let ratio = repeated.balance.measured / domain.balance.measured;
        assert!((ratio - f64::from(TIMES)).abs() < 1e-6, "{}: {ratio} times", domain.info.name);
        // Buckets end elsewhere, but hardly.
        let ratio = repeated.balance.attributed / domain.balance.attributed;
        assert!((ratio - f64::from(TIMES)).abs() < 0.03, "functions: {ratio} times");
    }
}

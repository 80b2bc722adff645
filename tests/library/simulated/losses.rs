//! What was lost happened all the same: a model that is fitted without it takes the rest for dearer than it is.

use eprof::analyze::{EventRoles, survey};
use eprof::recording::Recording;
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::Sampling;
use eprof_testbed::simulate::simulate;

/// Cycles in the intervals that a model is fitted to.
fn cycles(lost_share: f64) -> f64 {
    let alternation = Alternation {
        duration: Nanoseconds::from_millis(2000),
        joules_per_sample: Joules::from_joules(0.004),
        sampling: Sampling { lost_share, ..Sampling::default() },
        ..Alternation::default()
    };
    let simulation = simulate(&scenario(&alternation)).expect("a scenario that fits together");
    let recording = Recording::from_bytes(simulation.recording).expect("a recording");
    let survey = survey(&recording, &EventRoles::new(&recording));
    let intervals = survey.intervals.of_domains(&[0], Nanoseconds::from_millis(1));
    intervals.rows.iter().map(|row| row.counts[0]).sum()
}

#[test]
fn models_are_fitted_to_what_was_lost_as_well() {
    let (whole, lossy) = (cycles(0.0), cycles(0.2));
    assert!((lossy / whole - 1.0).abs() < 0.03, "{lossy} of {whole} cycles");
}

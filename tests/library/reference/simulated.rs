//! Simulated machines: several packages and domains, neighbours, losses, rare readings, wrong models.

use eprof::analyze::{Dimensions, Options};
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::{Meter, Sampling, Scenario};
use eprof_testbed::simulate::simulate;

use super::judge::{Near, compare, is_here};

/// Where nothing has to be estimated, balances differ by rounding alone.
const EXACT: f64 = 1e-9;

/// Two seconds with tens of thousands of samples.
fn short() -> Alternation {
    Alternation {
        cores_per_package: 4,
        busy: 4,
        duration: Nanoseconds::from_millis(2000),
        joules_per_sample: Joules::from_joules(0.004),
        ..Alternation::default()
    }
}

fn judge(name: &str, scenario: &Scenario, near: Near) {
    if !is_here() {
        return;
    }
    let simulation = simulate(scenario).expect("a scenario that fits together");
    let dimensions = Dimensions { stacks: false, ..Dimensions::ALL };
    compare(name, simulation.recording, &Options { dimensions, ..Options::default() }, near);
}

#[test]
fn the_program_alone() {
    let near = Near { balance: EXACT, thread: 0.001, page: 0.001 };
    judge("the program alone", &scenario(&short()), near);
}

#[test]
fn two_packages_neighbours_and_threads_that_move() {
    let alternation = Alternation {
        packages: 2,
        busy: 6,
        others: 3,
        migrate_every: Some(Nanoseconds::from_millis(70)),
        ..short()
    };
    let near = Near { balance: 0.002, thread: 0.002, page: 0.002 };
    judge("two packages", &scenario(&alternation), near);
}

#[test]
fn lost_records() {
    let sampling = Sampling { lost_share: 0.1, ..Sampling::default() };
    let alternation = Alternation { sampling, others: 2, ..short() };
    let near = Near { balance: 0.0015, thread: 0.0015, page: 0.001 };
    judge("lost records", &scenario(&alternation), near);
}

#[test]
fn throttled_events() {
    let sampling = Sampling { most_per_tick: Some(2), ..Sampling::default() };
    let alternation = Alternation { sampling, joules_per_sample: Joules::from_joules(0.001), ..short() };
    let near = Near { balance: EXACT, thread: 0.0005, page: 0.0005 };
    judge("throttled events", &scenario(&alternation), near);
}

#[test]
fn neighbours_that_were_not_sampled() {
    let sampling = Sampling { system_wide: false, ..Sampling::default() };
    let alternation = Alternation { sampling, others: 3, ..short() };
    let near = Near { balance: 0.003, thread: 0.002, page: 0.002 };
    judge("neighbours unseen", &scenario(&alternation), near);
}

#[test]
fn a_meter_that_is_rarely_read() {
    let meter = Meter {
        interval: Nanoseconds::from_millis(100),
        interval_jitter: Nanoseconds::from_millis(30),
        ..Meter::default()
    };
    let scenario = Scenario { meter, ..scenario(&Alternation { others: 2, ..short() }) };
    let near = Near { balance: 0.0015, thread: 0.0015, page: 0.0015 };
    judge("rare readings", &scenario, near);
}

#[test]
fn a_wrong_model_and_unknown_static_power() {
    let alternation = Alternation {
        coefficient_errors: vec![1.4, 0.7, 1.2, 0.8, 1.5],
        static_power_known: false,
        busy: 3,
        ..short()
    };
    let near = Near { balance: EXACT, thread: 0.0015, page: 0.0005 };
    judge("wrong model", &scenario(&alternation), near);
}

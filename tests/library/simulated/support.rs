//! Simulates, analyses, and puts the result beside the truth.

use eprof::analyze::{self, Dimensions, ModelChoice};
use eprof::profile::{Profile, standard_errors, top_level};
use eprof::recording::Recording;
use eprof::units::Joules;
use eprof_testbed::simulate::alternating::model;
use eprof_testbed::simulate::{PROGRAM_PATH, Scenario, Truth, function_at, simulate};

/// Unoptimised, less is simulated.
pub const QUICK: bool = cfg!(debug_assertions);

/// Nothing but the function matters.
pub fn options() -> analyze::Options {
    let dimensions = Dimensions { stacks: false, threads: false, cpus: false };
    analyze::Options { dimensions, ..analyze::Options::default() }
}

/// With the power model as a calibration of the simulated machine would have found it.
pub fn calibrated() -> analyze::Options {
    analyze::Options { model: ModelChoice::Exactly(model(&[])), ..options() }
}

/// The profile of a simulated recording, and the truth.
pub fn play(scenario: &Scenario, options: &analyze::Options) -> (Profile, Truth) {
    let simulation = simulate(scenario).expect("a scenario that fits together");
    let recording = Recording::from_bytes(simulation.recording).expect("a recording");
    let profile = analyze::analyze(&recording, options);
    assert_balance(&profile);
    (profile, simulation.truth)
}

/// Every joule is somewhere.
pub fn assert_balance(profile: &Profile) {
    for domain in &profile.domains {
        let of = &domain.balance;
        let parts = of.attributed + of.static_energy + of.other_processes + of.recorder + of.lost;
        let off = (parts - of.measured).abs() / of.measured;
        assert!(off < 1e-9, "{}: the balance is off by {off:e}", domain.info.name);
    }
}

/// What a profile says of one function.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Found {
    /// Joules of all domains that add up to the whole.
    pub joules: f64,
    /// Standard error of the joules.
    pub std_error: f64,
    /// Share of the program's CPU time.
    pub time_share: f64,
}

/// What a profile says of the simulated functions.
pub fn functions(profile: &Profile, count: usize) -> Vec<Found> {
    let mut found = vec![Found::default(); count];
    let function_of = |cell: usize| {
        let leaf = profile.stacks.frames(profile.cells[cell].stack).last().expect("an innermost frame");
        let address = profile.addresses[leaf.0 as usize];
        assert_eq!(profile.modules[address.module.0 as usize].path, PROGRAM_PATH);
        function_at(address.address).expect("a function")
    };
    let mut seconds = 0.0;
    for (index, cell) in profile.cells.iter().enumerate() {
        let found = &mut found[function_of(index)];
        for (domain, _) in top_level(&profile.domains) {
            found.joules += profile.joules(index)[domain].as_joules();
        }
        found.time_share += cell.time.as_secs_f64();
        seconds += cell.time.as_secs_f64();
    }
    let errors = standard_errors(profile, count, |cell| Some(function_of(cell))).expect("measured joules");
    for (function, error) in found.iter_mut().zip(errors) {
        function.std_error = error.as_joules();
        function.time_share /= seconds;
    }
    found
}

/// True joules of each function in the domains that add up to the whole.
pub fn true_joules(profile: &Profile, truth: &Truth) -> Vec<f64> {
    let joules = |function: &eprof_testbed::simulate::truth::FunctionTruth| {
        top_level(&profile.domains).map(|(domain, _)| function.joules[domain]).sum::<Joules>().as_joules()
    };
    truth.functions.iter().map(joules).collect()
}

/// Mean and greatest of some relative errors, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Mean size.
    pub mean: f64,
    /// Greatest size.
    pub worst: f64,
}

impl Errors {
    /// Of pairs of what was found and what is true.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let sizes: Vec<f64> =
            pairs.into_iter().map(|(found, truth)| 100.0 * ((found - truth) / truth).abs()).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        Self { mean, worst: sizes.into_iter().fold(0.0, f64::max) }
    }
}

//! All numbers that come out of attribution, of power models and of merging for made-up machines, kept beside these tests:
//! a net below those that compare with the truth. Where a change alters them on purpose, `cargo insta review` accepts the new
//! ones; each test says by itself how far they may be from what is true.

use std::fmt::Write as _;

use eprof::analyze::{self, Dimensions, ModelChoice, StaticEnergy};
use eprof::identity::Identity;
use eprof::merge::merge;
use eprof::numerics::nnls::Sign;
use eprof::numerics::random::Random;
use eprof::power_model::dataset::{Dataset, Observation};
use eprof::power_model::estimator::{Estimator, EstimatorOptions};
use eprof::power_model::fit::{Fit, FitOptions, Prior, Weighting};
use eprof::power_model::prediction::LeftOutErrors;
use eprof::power_model::select::best_events;
use eprof::power_model::validate::{Protocol, validate};
use eprof::profile::{Profile, Summed, VarianceSums, standard_errors};
use eprof::recording::Recording;
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::figures::rounded;
use eprof_testbed::simulate::alternating::{Alternation, model, scenario};
use eprof_testbed::simulate::scenario::Sampling;
use eprof_testbed::simulate::{Scenario, Truth, function_at, simulate};

fn keep(name: &str, text: &str) {
    insta::assert_snapshot!(name, rounded(text));
}

/// Two packages of two cores for a second and a half, another process on one of them, some records lost.
fn small_machine(seed: u64) -> Scenario {
    scenario(&Alternation {
        seed,
        packages: 2,
        cores_per_package: 2,
        busy: 3,
        duration: Nanoseconds::from_millis(1500),
        turn: Nanoseconds::from_millis(7),
        coefficient_errors: vec![1.1, 0.9, 1.2, 0.8, 1.0],
        joules_per_sample: Joules::from_joules(0.004),
        sampling: Sampling { lost_share: 0.05, ..Sampling::default() },
        migrate_every: Some(Nanoseconds::from_millis(400)),
        others: 1,
        ..Alternation::default()
    })
}

fn options(model: ModelChoice) -> analyze::Options {
    let dimensions = Dimensions { stacks: false, threads: true, cpus: true };
    let bucket = Some(Joules::from_joules(0.7));
    analyze::Options { dimensions, model, bucket, keep_buckets: true, ..analyze::Options::default() }
}

/// Everything that a profile says in numbers.
fn describe(profile: &Profile) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} {} s", profile.duration.as_secs_f64(), profile.cells.len());
    for domain in &profile.domains {
        let _ = writeln!(text, "{} {:?}", domain.info.name, domain.balance);
    }
    for event in &profile.events {
        let _ = writeln!(text, "{event:?}");
    }
    let _ = writeln!(text, "{:?}", profile.division);
    let functions = by_function(profile);
    let errors = standard_errors(profile, 8, |cell| function_of(profile, cell));
    let top: Vec<usize> = profile.top_domains().map(|(domain, _)| domain).collect();
    let mut variances = VarianceSums::new(profile, &top).expect("measured joules");
    variances.add(&Summed { profile, domains: &top, takes: &|_, _| true }, |cell| function_of(profile, cell));
    let variances = variances.finish(8);
    let by_cpu = standard_errors(profile, 4, |cell| profile.cells[cell].cpu.map(|cpu| cpu as usize));
    for (function, joules) in functions.iter().enumerate() {
        let error = errors.as_ref().map(|errors| errors[function].as_joules());
        let _ = writeln!(text, "function {function}: {joules:?} ± {error:?} {:?}", variances[function]);
    }
    let _ = writeln!(text, "by CPU ± {by_cpu:?}");
    // Cells with an odd number, so that not all is said twice.
    for (index, cell) in profile.cells.iter().enumerate().filter(|(index, _)| index % 7 == 3) {
        let joules: Vec<f64> = profile.joules(index).iter().map(|joules| joules.as_joules()).collect();
        let _ = writeln!(
            text,
            "cell {:?} {:?} {} {} {} {} {joules:?}",
            cell.thread,
            cell.cpu,
            cell.event,
            cell.samples,
            cell.count,
            cell.time.as_secs_f64()
        );
    }
    for slice in profile.slices.iter().step_by(9) {
        let span = slice.end.since(slice.start).as_secs_f64();
        let _ = writeln!(text, "slice {span} {:?} {:?} {:?}", slice.measured, slice.modelled, slice.balance);
        let of_cells = slice.by_cell.iter().step_by(5).map(|of| (of.cell, of.joules, of.seconds));
        let _ = writeln!(text, "  {:?}", of_cells.collect::<Vec<_>>());
    }
    let _ = writeln!(text, "{} slices, gaps {:?}", profile.slices.len(), profile.gaps);
    for machine in &profile.machines {
        let _ = writeln!(text, "{machine:?}");
    }
    for warning in &profile.warnings {
        let _ = writeln!(text, "{warning}");
    }
    text
}

fn function_of(profile: &Profile, cell: usize) -> Option<usize> {
    let address = profile.stacks.innermost(profile.cells[cell].stack)?;
    function_at(profile.addresses[address.0 as usize].address)
}

/// Joules of each function, by domain.
fn by_function(profile: &Profile) -> Vec<Vec<f64>> {
    let mut functions = vec![vec![0.0; profile.domains.len()]; 6];
    for cell in 0..profile.cells.len() {
        let Some(function) = function_of(profile, cell) else { continue };
        for (sum, joules) in functions[function].iter_mut().zip(profile.joules(cell)) {
            *sum += joules.as_joules();
        }
    }
    functions
}

fn analyse(scenario: &Scenario, options: &analyze::Options) -> (Profile, Truth) {
    let simulation = simulate(scenario).expect("a scenario that fits together");
    let recording = Recording::from_bytes(simulation.recording).expect("a recording");
    (analyze::analyze(&recording, options), simulation.truth)
}

/// Functions are as far from the truth as said, of what was given to functions at all.
fn assert_near(profile: &Profile, truth: &Truth, limit: f64) {
    let top: Vec<usize> = profile.top_domains().map(|(domain, _)| domain).collect();
    let of = |joules: &[f64]| top.iter().map(|domain| joules[*domain]).sum::<f64>();
    let found: Vec<f64> = by_function(profile).iter().map(|joules| of(joules)).collect();
    let truth: Vec<f64> = truth
        .functions
        .iter()
        .map(|function| of(&function.joules.iter().map(|joules| joules.as_joules()).collect::<Vec<_>>()))
        .collect();
    let (all, all_found): (f64, f64) = (truth.iter().sum(), found.iter().sum());
    for (function, (found, truth)) in found.iter().zip(&truth).enumerate() {
        let off = found / all_found * all / truth - 1.0;
        assert!(off.abs() < limit, "function {function}: off by {off}");
    }
    for domain in &profile.domains {
        assert!(domain.balance.holds(), "{domain:?}");
    }
}

#[test]
fn a_known_model_divides() {
    let choice = ModelChoice::Exactly(model(&[]));
    let (profile, truth) = analyse(&small_machine(3), &options(choice.clone()));
    assert_near(&profile, &truth, 0.12);
    keep("known_model", &describe(&profile));
    let spread = analyze::Options { static_energy: StaticEnergy::Spread, ..options(choice) };
    let (profile, truth) = analyse(&small_machine(4), &spread);
    assert_near(&profile, &truth, 0.4);
    keep("static_spread", &describe(&profile));
}

#[test]
fn a_recording_calibrates_itself() {
    let mut scenario = small_machine(5);
    scenario.domains.iter_mut().for_each(|domain| domain.static_power_known = false);
    for (name, choice) in [("automatic", ModelChoice::Auto), ("self_calibrated", ModelChoice::SelfCalibrated)]
    {
        let (profile, truth) = analyse(&scenario, &options(choice));
        assert_near(&profile, &truth, 0.5);
        keep(name, &describe(&profile));
    }
}

#[test]
fn time_alone_divides() {
    let (profile, truth) = analyse(&small_machine(6), &options(ModelChoice::Time));
    assert_near(&profile, &truth, 0.8);
    keep("by_time", &describe(&profile));
}

/// Two recordings of one machine, and one of another that began later.
#[test]
fn recordings_are_merged() {
    let part = |seed: u64, boot: &str, recorder: u32| {
        let (mut profile, _) = analyse(&small_machine(seed), &options(ModelChoice::Exactly(model(&[]))));
        let origin = &mut profile.recordings[0];
        let identity =
            Identity { boot: Some(boot.to_owned()), pid_namespace: Some(1), ..Identity::default() };
        (origin.identity, origin.recorder_pid) = (Some(identity), Some(recorder));
        profile.threads.iter_mut().for_each(|thread| thread.pid = 1000 * recorder + thread.pid % 1000);
        profile
    };
    let parts = vec![part(7, "a", 1), part(7, "a", 2), part(8, "b", 3)];
    let of = |profile: &Profile| by_function(profile).iter().flatten().sum::<f64>();
    let sum: f64 = parts.iter().map(of).sum();
    let merged = merge(parts).profile;
    assert!(of(&merged) < sum, "the machine's meters count once");
    assert!(merged.domains.iter().all(|domain| domain.balance.holds()));
    keep("merged", &describe(&merged));
}

/// 30 W, a cost of each event, an event that depends on another and one that costs nothing.
fn observations(noise: f64) -> Dataset {
    let columns = ["instructions", "misses", "cycles", "nothing"].map(str::to_owned);
    let mut data = Dataset::new(columns.to_vec());
    let mut random = Random::seeded(17);
    let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
    for workload in 0..8 {
        let (instructions, misses) = (0.5 + uniform(), uniform());
        for _ in 0..5 {
            let instructions = 1e9 * (instructions + 0.3 * uniform());
            let misses = 1e7 * (misses + 0.2 * uniform());
            let cycles = 0.6 * instructions + 80.0 * misses + 2e8 * uniform();
            let watts = 30.0 + 8e-9 * instructions + 9e-7 * misses + 5e-9 * cycles;
            let watts = watts * (1.0 + noise * (uniform() - 0.5));
            let rates = vec![instructions, misses, cycles, 1e8 * uniform()];
            let name = format!("w{workload}");
            let is_taken = data.push(Observation { rates: &rates, watts, workload: &name, frequency: None });
            assert!(is_taken);
        }
    }
    data
}

#[test]
fn coefficients_are_fitted() {
    let mut text = String::new();
    for noise in [0.0, 0.04] {
        let data = observations(noise);
        for sign in [Sign::NonNegative, Sign::Free] {
            for weighting in [Weighting::Relative, Weighting::Absolute] {
                for strength in [0.0, 0.05] {
                    let prior = Prior { coefficients: vec![6e-9, 1e-6, 4e-9, 0.0], strength };
                    let prior = Some(prior).filter(|prior| prior.strength > 0.0);
                    let is_exact = noise == 0.0 && prior.is_none();
                    let fit = Fit::new(&data, &FitOptions { sign, weighting, prior }).expect("a fit");
                    let off = fit.watts(data.rates(0)) / data.watts(0) - 1.0;
                    assert!(off.abs() < if is_exact { 1e-9 } else { 0.03 }, "{off}");
                    let nano = |coefficient: &eprof::power_model::fit::Coefficient| {
                        (coefficient.value * 1e9, coefficient.std_error.map(|error| error * 1e9))
                    };
                    let _ = writeln!(
                        text,
                        "{noise} {sign:?} {weighting:?} {strength}: {:?} {:?} nJ, {} {} {} {:?}",
                        fit.constant,
                        fit.coefficients.iter().map(nano).collect::<Vec<_>>(),
                        fit.r_squared,
                        fit.condition,
                        fit.mean_error,
                        fit.workloads
                    );
                }
            }
        }
    }
    keep("coefficients", &text);
}

#[test]
fn events_are_selected_and_power_is_estimated() {
    let mut text = String::new();
    for noise in [0.0, 0.04] {
        let data = observations(noise);
        for most in 1..=4 {
            let best = best_events(&data, most, &FitOptions::default()).expect("columns that vary");
            let _ = writeln!(text, "at most {most}: {best:?}");
        }
        let options = EstimatorOptions { max_terms: 3, beam: 6, pool: 10, ..EstimatorOptions::default() };
        let estimator = Estimator::train(&data, &options).expect("an estimator");
        let watts: Vec<f64> =
            (0..data.len()).step_by(7).map(|row| estimator.watts(data.rates(row))).collect();
        for (watts, row) in watts.iter().zip((0..data.len()).step_by(7)) {
            assert!((watts / data.watts(row) - 1.0).abs() < 0.05, "{watts} instead of {} W", data.watts(row));
        }
        let recipes: Vec<String> = estimator.recipes().map(|recipe| recipe.to_string()).collect();
        let _ = writeln!(text, "{recipes:?} {} {watts:?}", estimator.expected_error());
    }
    keep("estimator", &text);
}

#[test]
fn rows_left_out_are_judged() {
    let data = observations(0.04);
    let train = |data: &Dataset| Fit::new(data, &FitOptions::default());
    let mut text = String::new();
    for protocol in [Protocol::LeaveOneWorkloadOut, Protocol::Blocks(5), Protocol::Forward(0.6)] {
        let found = validate(&data, protocol, train, Fit::watts).expect("rows enough");
        assert!(found.mean_over_folds() < 0.05, "{found:?}");
        let means = [found.mean_over_folds(), found.median_over_folds(), found.mean_over_rows()];
        let _ = writeln!(text, "{protocol}: {means:?} {:?}", found.folds);
    }
    let one = data.only(&(0..20).collect::<Vec<_>>());
    for data in [&data, &one] {
        let errors = LeftOutErrors::new(data, train, Fit::watts).expect("rows enough");
        let _ = writeln!(text, "{} {} {:?}", errors.groups(), errors.mean_error(), errors.kind());
        for level in [0.5, 0.9] {
            let (low, high) = errors.interval(40.0, level).expect("groups enough");
            assert!(low < 40.0 && 40.0 < high);
            let _ = writeln!(text, "  {level}: {low} to {high}");
        }
    }
    keep("left_out", &text);
}

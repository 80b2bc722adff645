//! Recordings of simulated machines, divided by models of every kind, and merged.

use std::fmt::Write as _;

use eprof::analyze::{self, Dimensions, ModelChoice, StaticEnergy};
use eprof::identity::Identity;
use eprof::merge::{InTime, merge};
use eprof::profile::{MachineEnergy, Profile, Summed, VarianceSums, standard_errors};
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
    let function = |cell| function_of(profile, cell);
    variances.add(&Summed { profile, domains: &top, takes: &|_, _| true }, function, function);
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
    let gaps: Vec<u64> = profile.gaps.iter().map(|gap| gap.after.as_nanos()).collect();
    let _ = writeln!(text, "{} slices, gaps {gaps:?}", profile.slices.len());
    for machine in &profile.machines {
        let MachineEnergy { name, boot, balances, in_slices } = machine;
        let of_machine =
            format!("MachineEnergy {{ name: {name:?}, boot: {boot:?}, balances: {balances:?} }}");
        let _ = writeln!(text, "{of_machine}");
        for (balance, in_slices) in balances.iter().zip(in_slices) {
            let measured = balance.map_or(0.0, |balance| balance.measured.as_joules());
            let sum: f64 = in_slices.iter().map(|joules| joules.as_joules()).sum();
            assert!(
                (sum - measured).abs() <= 1e-6 * measured.max(1.0),
                "{name}: {sum} J of {measured} J in slices"
            );
        }
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

/// Others are known by the CPU times of the whole machine alone, an event is sampled too often, and nobody says what the
/// machine takes at rest.
#[test]
fn others_are_told_by_cpu_times() {
    let mut scenario = scenario(&Alternation {
        seed: 9,
        packages: 2,
        cores_per_package: 2,
        busy: 4,
        duration: Nanoseconds::from_millis(1200),
        joules_per_sample: Joules::from_joules(0.003),
        sampling: Sampling { system_wide: false, most_per_tick: Some(12), ..Sampling::default() },
        others: 2,
        ..Alternation::default()
    });
    scenario.domains[0].static_power_known = false;
    let (profile, truth) = analyse(&scenario, &options(ModelChoice::Auto));
    assert_near(&profile, &truth, 0.5);
    let others: f64 = profile.domains.iter().map(|domain| domain.balance.other_processes.as_joules()).sum();
    assert!(others > 1.0, "{others} J");
    keep("cpu_times", &describe(&profile));
}

/// Functions that take turns in step with the sampling, and long ones, of which the last is never seen to change.
#[test]
fn errors_follow_from_how_code_takes_turns() {
    let mut text = String::new();
    for (turn, jitter) in [(1_000_000, 0.0), (300_000, 0.5), (120_000_000, 0.1)] {
        let scenario = scenario(&Alternation {
            seed: 10,
            cores_per_package: 2,
            busy: 2,
            duration: Nanoseconds::from_millis(900),
            turn: Nanoseconds::from_nanos(turn),
            jitter,
            joules_per_sample: Joules::from_joules(0.002),
            sampling: Sampling { lost_share: 0.1, ..Sampling::default() },
            ..Alternation::default()
        });
        let (profile, truth) = analyse(&scenario, &options(ModelChoice::Exactly(model(&[]))));
        assert_near(&profile, &truth, 0.6);
        let top: Vec<usize> = profile.top_domains().map(|(domain, _)| domain).collect();
        let errors =
            standard_errors(&profile, 8, |cell| function_of(&profile, cell)).expect("measured joules");
        let mut variances = VarianceSums::new(&profile, &top).expect("measured joules");
        let summed = Summed { profile: &profile, domains: &top, takes: &|_, _| true };
        let function = |cell| function_of(&profile, cell);
        variances.add(&summed, function, function);
        let _ = writeln!(text, "{turn} {errors:?} {:?}", variances.finish(6));
        let by_cpu = standard_errors(&profile, 2, |cell| profile.cells[cell].cpu.map(|cpu| cpu as usize));
        let one = standard_errors(&profile, 1, |_| Some(0));
        let _ = writeln!(text, "{by_cpu:?} {one:?}");
        let joules: f64 = truth.functions.iter().map(|function| function.joules[0].as_joules()).sum();
        assert!(one.expect("measured joules")[0].as_joules() < 0.2 * joules);
    }
    keep("turns", &text);
}

/// A recording of a boot by a recorder, which began so many seconds late; its processes have numbers of their own or not.
fn part(seed: u64, boot: &str, recorder: u32, late: u64, has_own_numbers: bool) -> Profile {
    let (mut profile, _) = analyse(&small_machine(seed), &options(ModelChoice::Exactly(model(&[]))));
    let origin = &mut profile.recordings[0];
    let identity = Identity { boot: Some(boot.to_owned()), pid_namespace: Some(1), ..Identity::default() };
    (origin.identity, origin.recorder_pid) = (Some(identity), Some(recorder));
    origin.started_unix_ns = Some(1_700_000_000_000_000_000 + late * 1_000_000_000);
    if has_own_numbers {
        profile.threads.iter_mut().for_each(|thread| thread.pid = 1000 * recorder + thread.pid % 1000);
    }
    profile
}

fn assert_merged(parts: Vec<Profile>, name: &str) {
    let of = |profile: &Profile| by_function(profile).iter().flatten().sum::<f64>();
    let sum: f64 = parts.iter().map(of).sum();
    let merged = merge(parts, InTime::Told).profile;
    assert!(of(&merged) < sum, "the machine's meters count once");
    assert!(merged.domains.iter().all(|domain| domain.balance.holds()));
    let in_slices: f64 = merged.slices.iter().map(|slice| slice.balance.attributed.as_joules()).sum();
    let top: f64 = merged.top_domains().map(|(_, domain)| domain.balance.attributed.as_joules()).sum();
    assert!((in_slices / top - 1.0).abs() < 1e-3, "{in_slices} in slices of {top} J");
    keep(name, &describe(&merged));
}

/// Two recordings of one machine, and one of another that began later.
#[test]
fn recordings_are_merged() {
    let parts = vec![part(7, "a", 1, 0, true), part(7, "a", 2, 0, true), part(8, "b", 3, 1, true)];
    assert_merged(parts, "merged");
}

/// Two recordings that have the same threads, and one that began when all others had ended.
#[test]
fn threads_of_two_recordings_are_taken_once_and_gaps_are_left_out() {
    let mut parts = vec![part(7, "a", 1, 0, false), part(7, "a", 2, 0, false), part(8, "b", 3, 60, true)];
    parts[1].recordings[0].is_of_system = true;
    parts[0].domains.pop();
    let columns = parts[0].domains.len();
    let joules = std::mem::take(&mut parts[0].cell_joules);
    let rows = joules.chunks_exact(columns + 1);
    parts[0].cell_joules = rows.flat_map(|row| row[..columns].to_vec()).collect();
    parts[0].errors = None;
    assert_merged(parts, "taken_once");
}

//! Several recordings of one simulated machine are what one recording of everything is, and nodes add up.

use eprof::analyze::{self, Dimensions, ModelChoice};
use eprof::identity::Identity;
use eprof::merge::{InTime, merge};
use eprof::profile::{Profile, standard_errors};
use eprof::recording::Recording;
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, model, scenario};
use eprof_testbed::simulate::{Scenario, function_at, simulate};

/// The profile of a recorder, as it would say that it is of this boot.
fn record(scenario: &Scenario, boot: &str, recorder: u32) -> Profile {
    let simulation = simulate(scenario).expect("a scenario that fits together");
    let recording = Recording::from_bytes(simulation.recording).expect("a recording");
    let dimensions = Dimensions { stacks: false, threads: true, cpus: false };
    let choice = ModelChoice::Exactly(model(&[]));
    let options = analyze::Options { dimensions, model: choice, ..analyze::Options::default() };
    let mut profile = analyze::analyze(&recording, &options);
    let origin = &mut profile.recordings[0];
    let identity = Identity { boot: Some(boot.to_owned()), pid_namespace: Some(1), ..Identity::default() };
    (origin.identity, origin.recorder_pid) = (Some(identity), Some(recorder));
    // The simulator gives every recorded program one number.
    profile.threads.iter_mut().for_each(|thread| thread.pid = 1000 * recorder + thread.pid % 1000);
    profile
}

fn alternation(seed: u64) -> Alternation {
    Alternation {
        seed,
        duration: Nanoseconds::from_millis(3000),
        joules_per_sample: Joules::from_joules(0.005),
        ..Alternation::default()
    }
}

/// Joules by function, and their number of samples.
fn functions(profile: &Profile) -> Vec<(f64, u64)> {
    let mut found = vec![(0.0, 0); 32];
    for (index, cell) in profile.cells.iter().enumerate() {
        let Some(address) = profile.stacks.innermost(cell.stack) else { continue };
        let Some(function) = function_at(profile.addresses[address.0 as usize].address) else { continue };
        let top = profile.top_domains().map(|(domain, _)| profile.joules(index)[domain]);
        found[function].0 += top.sum::<Joules>().as_joules();
        found[function].1 += cell.samples;
    }
    found
}

/// Recorders that sample the whole machine divide each bucket alike, whatever they call their own: what they find of
/// functions differs by the order of sums alone, of thousands of samples with errors of 1e-16 each.
#[test]
fn recorders_of_single_processes_see_what_one_of_all_sees() {
    let all = scenario(&alternation(7));
    let of = |mine: fn(usize) -> bool| {
        let mut scenario = all.clone();
        for (queue, number) in scenario.queues.iter_mut().zip(0..) {
            queue.tasks.iter_mut().for_each(|task| task.recorded = mine(number));
        }
        scenario
    };
    let whole = record(&all, "a", 9);
    let parts: [fn(usize) -> bool; 3] = [|queue| queue < 3, |queue| queue == 3, |queue| queue > 3];
    let parts: Vec<Profile> =
        (1..).zip(parts).map(|(recorder, mine)| record(&of(mine), "a", recorder)).collect();
    let counted: f64 = parts.iter().map(|part| part.domains[0].balance.measured.as_joules()).sum();
    let merged = merge(parts, InTime::Told).profile;
    let own: Vec<&String> =
        merged.warnings.iter().filter(|warning| !whole.warnings.contains(warning)).collect();
    assert_eq!(own, Vec::<&String>::new());
    assert!(
        counted > 2.9 * merged.domains[0].balance.measured.as_joules(),
        "each recorder measured all of it"
    );
    for (merged, whole) in merged.domains.iter().zip(&whole.domains) {
        assert!(merged.balance.holds());
        let (found, expected) = (merged.balance, whole.balance);
        let pairs = [
            (found.measured, expected.measured),
            (found.attributed, expected.attributed),
            (found.static_energy, expected.static_energy),
            (found.other_processes, expected.other_processes),
        ];
        for (found, expected) in pairs {
            let off = (found - expected).abs().as_joules();
            assert!(
                off <= 1e-9 * expected.as_joules().max(1.0),
                "{}: {found:?} {expected:?}",
                merged.info.name
            );
        }
    }
    let mut seen = 0;
    for ((joules, samples), (expected, of_whole)) in functions(&merged).into_iter().zip(functions(&whole)) {
        assert!((joules - expected).abs() <= 1e-9 * expected.max(1.0), "{joules} {expected}");
        assert_eq!(samples, of_whole);
        seen += usize::from(joules > 0.0);
    }
    assert!(seen >= 3, "{seen} functions");
}

/// Errors of two nodes are independent of each other: their variances add up.
#[test]
fn error_bars_of_nodes_add_up_as_variances() {
    let nodes: Vec<Profile> =
        [(1, "a"), (2, "b")].map(|(seed, boot)| record(&scenario(&alternation(seed)), boot, 1)).into();
    let errors = |profile: &Profile| {
        let function = |cell: usize| {
            let address = profile.stacks.innermost(profile.cells[cell].stack)?;
            function_at(profile.addresses[address.0 as usize].address)
        };
        standard_errors(profile, 32, function).expect("measured")
    };
    let of_nodes: Vec<Vec<Joules>> = nodes.iter().map(errors).collect();
    let merged = merge(nodes, InTime::Told).profile;
    let all = errors(&merged);
    assert!(all.iter().any(|error| *error > Joules::ZERO));
    for (index, error) in all.iter().enumerate() {
        let expected = of_nodes.iter().map(|of| of[index].as_joules().powi(2)).sum::<f64>().sqrt();
        assert!((error.as_joules() - expected).abs() <= 1e-9 * expected, "{error:?} {expected}");
    }
}

//! Merges that were worked out by hand.

use super::fixture::{Recorder, TICK, World, by_function, merge};
use crate::hardware::Method;
use crate::profile::{Balance, Gap, Origin, Profile, TimeSlice};
use crate::units::{Joules, Nanoseconds};

fn joules(joules: f64) -> Joules {
    Joules::from_joules(joules)
}

fn recorder(pid: u32, of: &[usize], window: (usize, usize)) -> Recorder {
    Recorder { pid, of: of.to_vec(), window }
}

/// Thirty ticks: 1 J static in each; processes 0 and 1 are ranks, 2 is nobody's.
///
/// ```text
///   tick          0 .. 10   10 .. 20   20 .. 30
///   static             10         10         10
///   rank 0             40         30          -
///   rank 1              -         20         50
///   nobody's            5          5          5
///   measured           55         65         65     = 185
/// ```
fn world() -> World {
    let tick = |tick: usize| match tick {
        0..10 => vec![4.0, 0.0, 0.5],
        10..20 => vec![3.0, 2.0, 0.5],
        _ => vec![0.0, 5.0, 0.5],
    };
    World { boot: "a", static_joules: 1.0, spent: (0..30).map(tick).collect() }
}

#[test]
fn two_ranks_of_which_one_starts_later() {
    let world = world();
    let [first, second] =
        [world.record(&recorder(1, &[0], (0, 20))), world.record(&recorder(2, &[1], (10, 30)))];
    // Each recorder alone: rank 0's measures 55 + 65, of which 20 are rank 1's and nobody's are 10.
    let alone = |measured, attributed, others| Balance {
        measured: joules(measured),
        attributed: joules(attributed),
        static_energy: joules(20.0),
        other_processes: joules(others),
        ..Balance::default()
    };
    assert_eq!(first.domains[0].balance, alone(120.0, 70.0, 30.0));
    assert_eq!(second.domains[0].balance, alone(130.0, 70.0, 40.0));
    let merged = merge(vec![second, first]).profile;
    // 250 J were measured, and 185 J were there: the 65 J of the middle were measured by both.
    let Balance { measured, attributed, static_energy, other_processes, recorder, lost } =
        merged.domains[0].balance;
    let found = [measured, attributed, static_energy, other_processes, recorder, lost];
    let expected = [185.0, 140.0, 30.0, 15.0, 0.0, 0.0];
    let is_near = |(found, expected): (&Joules, f64)| (found.as_joules() - expected).abs() < 1e-9;
    assert!(found.iter().zip(expected).all(is_near), "{found:?}");
    assert_eq!(by_function(&merged), [(0, 70.0), (1, 70.0)]);
    assert_eq!((merged.duration.as_nanos(), merged.machines.len()), (300_000_000, 1));
    assert_eq!(merged.warnings, Vec::<String>::new());
    assert_eq!(merged.recordings.iter().map(|origin| origin.machine).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn one_profile_stays_as_it_is() {
    let one = world().record(&recorder(1, &[0], (0, 20)));
    let merged = merge(vec![one.clone()]);
    assert_eq!(format!("{:?}", merged.profile), format!("{one:?}"));
    assert_eq!((merged.order, merge(Vec::new()).profile.cells.len()), (vec![0], 0));
}

#[test]
fn a_recording_without_joules_is_named_among_others() {
    let world = world();
    let with = world.record(&recorder(1, &[0], (0, 20)));
    let mut without = world.record(&recorder(2, &[1], (10, 30)));
    without.domains.clear();
    without.cell_joules.clear();
    without.recordings[0].name = Some("of-perf.data".to_owned());
    let said = |profiles| merge(profiles).profile.warnings.join("\n");
    assert!(said(vec![with, without.clone()]).contains("of-perf.data has no joules"));
    assert!(!said(vec![without.clone(), without]).contains("has no joules"), "there are none at all");
}

#[test]
fn a_recording_that_is_given_twice_counts_once() {
    let world = world();
    let [a, b] = [world.record(&recorder(1, &[0], (0, 30))), world.record(&recorder(2, &[1], (0, 30)))];
    let merged = merge(vec![a.clone(), b, a]);
    assert_eq!((merged.order.len(), merged.profile.domains[0].balance.measured), (2, joules(185.0)));
    assert!(merged.profile.warnings[0].contains("is counted once"), "{:?}", merged.profile.warnings);
}

/// A copy that was cut off has the same beginning, whichever is named first.
#[test]
fn of_a_recording_and_a_part_of_it_the_whole_counts() {
    let world = world();
    let [a, b] = [world.record(&recorder(1, &[0], (0, 30))), world.record(&recorder(2, &[1], (0, 30)))];
    let mut cut = world.record(&recorder(1, &[0], (0, 10)));
    cut.recordings[0] = Origin { name: Some("cut.data".to_owned()), ..a.recordings[0].clone() };
    for given in [[cut.clone(), b.clone(), a.clone()], [a, b, cut]] {
        let merged = merge(given.to_vec());
        assert_eq!((merged.order.len(), merged.profile.domains[0].balance.measured), (2, joules(185.0)));
        let said = &merged.profile.warnings[0];
        assert!(
            said.starts_with("cut.data is a part of the same recording as ") && said.ends_with("left out"),
            "{said}"
        );
    }
}

#[test]
fn a_process_of_two_recordings_is_taken_from_one() {
    let world = world();
    // One recorded everything, and is longer.
    let all = world.record(&recorder(1, &[0, 1, 2], (0, 30)));
    let rank = world.record(&recorder(2, &[1], (10, 30)));
    let merged = merge(vec![all, rank]).profile;
    let balance = merged.domains[0].balance;
    assert_eq!((balance.attributed, balance.measured), (joules(155.0), joules(185.0)));
    assert_eq!(by_function(&merged), [(0, 70.0), (1, 70.0), (2, 15.0)]);
    assert!(merged.warnings.iter().any(|warning| warning.contains("process 1001")), "{:?}", merged.warnings);
    let samples: u64 = merged.cells.iter().map(|cell| cell.samples).sum();
    assert_eq!(samples, 90, "what is not taken has no samples either");
}

/// A recording of everything, of which chance gave process 1 so many joules, samples and ticks more.
fn companion(world: &World, more: f64, more_ticks: u64) -> Profile {
    let mut all = world.record(&recorder(1, &[0, 1, 2], (0, 30)));
    all.recordings[0].is_of_system = true;
    let (cell, other) = (1, 0);
    all.cells[cell].samples = 20 + more_ticks;
    all.cells[cell].time = Nanoseconds::from_nanos((20 + more_ticks) * TICK.as_nanos());
    all.cell_joules[cell] += joules(more);
    all.cell_joules[other] -= joules(more);
    all
}

#[test]
fn a_rank_beside_its_companion_has_what_its_own_recorder_counted() {
    let world = world();
    let rank = world.record(&recorder(2, &[1], (10, 30)));
    // Chance gave the companion more of the rank's samples, or fewer.
    for (joules_more, ticks_more) in [(6.0, 2), (0.0, 0), (-6.0, 10)] {
        let merged = merge(vec![companion(&world, joules_more, ticks_more), rank.clone()]).profile;
        let by_function = by_function(&merged);
        let cells = merged.cells.iter().enumerate().filter(|(_, cell)| cell.samples > 0);
        let of_rank = cells.filter(|(_, cell)| merged.threads[cell.thread.0 as usize].recording.0 == 1);
        let of_rank: Vec<f64> = of_rank.map(|(cell, _)| merged.joules(cell)[0].as_joules()).collect();
        let balance = merged.domains[0].balance;
        assert!(balance.holds() && balance.measured == joules(185.0), "{balance:?}");
        assert_eq!(merged.warnings, Vec::<String>::new());
        // What the companion gave to others of the rank's is static energy's, or nobody's.
        let expected = [(0, 70.0 - joules_more), (1, 70.0), (2, 15.0)];
        assert_eq!(balance.static_energy, joules(30.0 + f64::min(joules_more, 0.0)));
        assert_eq!(balance.other_processes, joules(f64::max(joules_more, 0.0)));
        for ((found, expected), of_rank) in by_function.iter().zip(expected).zip([None, Some(&of_rank), None])
        {
            assert!(found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-9, "{found:?} {expected:?}");
            assert!(of_rank.is_none_or(|of_rank| of_rank[..] == [found.1]), "{of_rank:?} {found:?}");
        }
    }
}

#[test]
fn a_recorder_that_saw_a_part_of_a_process_does_not_take_all_of_it() {
    let world = world();
    // Attached for two ticks, with a sample in each; the companion has twenty.
    let attached = world.record(&recorder(2, &[1], (20, 22)));
    let merged = merge(vec![companion(&world, 0.0, 0), attached]).profile;
    assert_eq!(by_function(&merged), [(0, 70.0), (1, 70.0), (2, 15.0)]);
    assert_eq!(merged.warnings, Vec::<String>::new());
    // Two that both chose a process are told of it.
    let [long, short] =
        [world.record(&recorder(1, &[1], (0, 30))), world.record(&recorder(2, &[1], (20, 22)))];
    let merged = merge(vec![long, short]).profile;
    assert!(merged.warnings[0].contains("both have 1 thread(s)"), "{:?}", merged.warnings);
}

#[test]
fn a_rank_whose_recorder_was_killed_stays_that_rank() {
    let world = world();
    let mut rank = world.record(&recorder(2, &[1], (10, 14)));
    let of_ranks = |rank: &Profile| {
        let merged = merge(vec![companion(&world, 0.0, 0), rank.clone()]).profile;
        assert_eq!(by_function(&merged), [(0, 70.0), (1, 70.0), (2, 15.0)]);
        let of_cells: u64 = merged.cells.iter().map(|cell| cell.samples).sum();
        let of_events: u64 = merged.events.iter().map(|event| event.samples).sum();
        assert_eq!((of_cells, of_events), (80, 80), "each sample once");
        let mut sums = [0.0; 2];
        for (index, cell) in merged.cells.iter().enumerate() {
            let recording = merged.threads[cell.thread.0 as usize].recording.0 as usize;
            sums[recording] += merged.joules(index)[0].as_joules();
        }
        sums
    };
    // The companion has all of its time, of which its own recorder saw a fifth. Whoever ended it on purpose labelled that part.
    assert_eq!(of_ranks(&rank), [155.0, 0.0]);
    rank.is_partial = true;
    assert_eq!(of_ranks(&rank), [85.0, 70.0]);
}

#[test]
fn another_recorder_is_no_function() {
    let world = world();
    let all = world.record(&recorder(1, &[0, 1, 2], (0, 30)));
    let mut rank = world.record(&recorder(super::fixture::pid(2), &[1], (0, 30)));
    // Process 2 was the rank's recorder.
    rank.domains[0].balance.other_processes -= joules(15.0);
    rank.domains[0].balance.recorder = joules(15.0);
    let balance = merge(vec![all, rank]).profile.domains[0].balance;
    assert_eq!((balance.attributed, balance.recorder), (joules(140.0), joules(15.0)));
    assert!(balance.holds() && balance.other_processes < joules(1e-9));
}

#[test]
fn recordings_without_a_boot_are_told_to_be_unsure() {
    let world = world();
    let without = |pid, of: &[usize]| {
        let mut profile = world.record(&recorder(pid, of, (0, 30)));
        profile.recordings[0].identity = None;
        profile
    };
    let merged = merge(vec![without(1, &[0]), without(2, &[1])]).profile;
    assert_eq!(merged.domains[0].balance.measured, joules(370.0));
    let [unknown, suspects] = &merged.warnings[..] else { panic!("{:?}", merged.warnings) };
    assert!(unknown.contains("1.data, 2.data") && suspects.contains("counted twice"), "{unknown} {suspects}");
}

#[test]
fn a_package_within_a_platform_is_summed_apart_from_one_alone() {
    let record = |boot, pid| World { boot, ..world() }.record(&recorder(pid, &[0], (0, 30)));
    let mut with_platform = record("b", 2);
    let mut platform = with_platform.domains[0].clone();
    platform.info.name = "platform".to_owned();
    platform.balance = platform.balance + platform.balance;
    with_platform.domains[0].info.parent = Some("platform".to_owned());
    with_platform.domains.insert(0, platform);
    with_platform.cell_joules =
        with_platform.cell_joules.iter().flat_map(|&joules| [joules * 2.0, joules]).collect();
    let curve = with_platform.recordings[0].meters[0].clone();
    with_platform.recordings[0].meters.push(curve);
    let merged = merge(vec![record("a", 1), with_platform]).profile;
    let whole: Joules = merged.top_domains().map(|(_, domain)| domain.balance.measured).sum();
    assert_eq!(whole, joules(185.0 + 370.0), "{:?}", merged.domains);
    assert_eq!(merged.domains.len(), 3);
}

#[test]
fn measured_and_estimated_joules_of_one_machine_are_told() {
    let mut estimated = world().record(&recorder(1, &[0], (0, 30)));
    estimated.domains[0].info.method = Method::Estimated;
    let merged = merge(vec![estimated, world().record(&recorder(2, &[1], (0, 30)))]).profile;
    let named = merged.warnings.iter().filter(|warning| warning.contains("counted twice"));
    assert_eq!(named.count(), 1, "{:?}", merged.warnings);
    let names: Vec<&str> = merged.domains.iter().map(|domain| domain.info.name.as_str()).collect();
    assert_eq!(names, ["package-0", "package-0-measured"]);
}

#[test]
fn functions_that_are_more_than_was_measured_are_scaled() {
    let samples = std::cell::Cell::new(3_000);
    let rank = |pid: u32, process: usize, factor: f64| {
        let mut profile: Profile = world().record(&recorder(pid, &[process], (0, 30)));
        profile.cells[0].samples = samples.get();
        profile.cell_joules[0] = profile.cell_joules[0] * factor;
        profile.domains[0].balance.attributed = profile.cell_joules[0];
        profile
    };
    let merged = merge(vec![rank(1, 0, 2.0), rank(2, 1, 2.0)]).profile;
    let balance = merged.domains[0].balance;
    assert!(balance.holds() && (balance.attributed - joules(185.0)).abs() < joules(1e-9), "{balance:?}");
    assert!(merged.warnings[0].contains("scaled by 0.6607"), "{:?}", merged.warnings);
    // Of thirty samples each it may be chance, and is no more than that.
    samples.set(30);
    let by_chance = merge(vec![rank(1, 0, 2.0), rank(2, 1, 2.0)]).profile;
    assert_eq!((by_chance.domains[0].balance, by_chance.warnings), (balance, Vec::new()));
    samples.set(3_000);
    // A little too much takes from static energy.
    let merged = merge(vec![rank(1, 0, 1.0), rank(2, 1, 1.4)]).profile;
    let balance = merged.domains[0].balance;
    assert!(balance.holds() && (balance.static_energy - joules(17.0)).abs() < joules(1e-9), "{balance:?}");
    assert!(merged.warnings[0].contains("static"), "{:?}", merged.warnings);
}

/// Pieces of a merged profile, and what each measured, gave to functions and to others.
fn in_time(profile: &Profile) -> Vec<[f64; 3]> {
    let of_slice = |slice: &TimeSlice| {
        assert!((slice.balance.measured - slice.measured[0]).abs().as_joules() < 1e-9);
        assert!((slice.balance.measured - slice.balance.accounted()).abs().as_joules() < 1e-6, "{slice:?}");
        let functions: f32 = slice.by_cell.iter().map(|of| of.joules).sum();
        [slice.measured[0].as_joules(), f64::from(functions), slice.balance.other_processes.as_joules()]
    };
    profile.slices.iter().map(of_slice).collect()
}

fn assert_near(found: &[[f64; 3]], expected: &[[f64; 3]]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
    }
}

/// Pieces that follow each other as one.
fn together(pieces: &[[f64; 3]], count: usize) -> Vec<[f64; 3]> {
    let sum = |pieces: &[[f64; 3]]| [0, 1, 2].map(|part| pieces.iter().map(|piece| piece[part]).sum());
    pieces.chunks(count).map(sum).collect()
}

#[test]
fn power_over_time_counts_a_meter_once() {
    let world = world();
    let (first, second) =
        (world.record(&recorder(1, &[0], (0, 20))), world.record(&recorder(2, &[1], (10, 30))));
    // Forty slices on an axis of thirty ticks; four pieces are three ticks.
    let merged = merge(vec![second, first]).profile;
    let pieces = in_time(&merged);
    assert_eq!((pieces.len(), merged.gaps.len()), (40, 0));
    // 5.5 J a tick, of which 4 are rank 0's and a half nobody's, then 6.5, of which 5 are both ranks'.
    let thirds = [[16.5, 12.0, 1.5], [19.5, 15.0, 1.5]];
    let found = together(&pieces, 4);
    assert_near(&found[..3], &[thirds[0]; 3]);
    assert_near(&found[7..], &[thirds[1]; 3]);
    assert_near(&together(&pieces, 40), &[[185.0, 140.0, 15.0]]);
    assert_eq!(merged.slices[39].end.since(merged.slices[0].start), merged.duration);
}

#[test]
fn time_in_which_nobody_recorded_is_left_out() {
    let world = world();
    let parts =
        vec![world.record(&recorder(1, &[0, 1], (0, 10))), world.record(&recorder(2, &[0, 1], (25, 30)))];
    let merged = merge(parts).profile;
    let found = in_time(&merged);
    assert_near(&found[..10], &[[5.5, 4.0, 0.5]; 10]);
    assert_near(&found[10..], &[[6.5, 5.0, 0.5]; 5]);
    let gap = Gap { after: Nanoseconds::from_millis(100), length: Nanoseconds::from_millis(150) };
    assert_eq!(merged.gaps, [gap]);
    assert_eq!(merged.slices[14].end.since(merged.slices[0].start), merged.duration);
}

#[test]
fn machines_stand_on_one_axis_by_their_wall_clocks() {
    let world = world();
    let mut there = World { boot: "b", ..world.clone() }.record(&recorder(2, &[1], (10, 30)));
    let here = world.record(&recorder(1, &[0], (0, 20)));
    // Its clock has another beginning; on the wall it began ten ticks later.
    let later = TICK.as_nanos() * 10;
    there.recordings[0].started_unix_ns = here.recordings[0].started_unix_ns.map(|wall| wall + later);
    let merged = merge(vec![here.clone(), there.clone()]).profile;
    let found = together(&in_time(&merged), 4);
    // 16.5 J in three ticks here; both from tick 10 to 20; then 19.5 J there.
    assert_near(&found[..3], &[[16.5, 12.0, 1.5]; 3]);
    assert_near(&found[7..], &[[19.5, 15.0, 1.5]; 3]);
    // Both know of 65 J between ticks 10 and 20.
    assert_near(&together(&in_time(&merged), 40), &[[250.0, 140.0, 70.0]]);
    // Each machine has its own meter on it: 55 and 65 J here, 65 and 65 J there.
    let of_machine = |machine: usize| -> Vec<f64> {
        let measured: Vec<f64> =
            merged.machines[machine].in_slices[0].iter().map(|joules| joules.as_joules()).collect();
        let third = |at: usize| &measured[at * measured.len() / 3..(at + 1) * measured.len() / 3];
        (0..3).map(|at| third(at).iter().sum::<f64>().round()).collect()
    };
    assert_eq!((merged.slices.len(), merged.machines[0].in_slices[0].len()), (40, 40));
    let sums: Vec<f64> = (0..2).map(|machine| of_machine(machine).iter().sum()).collect();
    assert_eq!(sums, [120.0, 130.0]);
    assert!(of_machine(0)[2] < 4.0 && of_machine(1)[0] < 4.0, "{:?} {:?}", of_machine(0), of_machine(1));
    // Where one does not tell when it began, there is no such axis, and it is said.
    there.recordings[0].started_unix_ns = None;
    let merged = merge(vec![here, there]).profile;
    assert!(merged.slices.is_empty());
    let said = |sentence: &String| sentence.starts_with("2.data does not tell when it was recorded");
    assert!(merged.warnings.iter().any(said), "{:?}", merged.warnings);
}

#[test]
fn hidden_callers_add_up() {
    let hidden = |factor: u64| crate::profile::HiddenCallers {
        samples: 5 * factor,
        found: 3 * factor,
        out_of_reach: factor,
        unknown: 7 * factor,
    };
    assert_eq!(super::both(hidden(1), hidden(10)), hidden(11));
}

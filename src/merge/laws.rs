//! What holds for every machine, however its recorders share it.
//!
//! Recorders of the [`World`](super::fixture::World) make no errors, so that a merge must give what one recorder of all
//! would have seen. The tolerance is that of balances, [`BALANCE_TOLERANCE`]: the same joules are added up in
//! another order, and nothing else differs.

use proptest::prelude::*;

use super::fixture::{Recorder, World, by_function, merge};
use crate::profile::{BALANCE_TOLERANCE, Balance, Profile};

const PROCESSES: usize = 4;
const TICKS: usize = 30;

fn world(boot: &'static str) -> impl Strategy<Value = World> {
    let tick = prop::collection::vec(0.0f64..2.0, PROCESSES);
    (0.0f64..1.0, prop::collection::vec(tick, TICKS)).prop_map(move |(static_joules, spent)| World {
        boot,
        static_joules,
        spent,
    })
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= BALANCE_TOLERANCE * a.abs().max(b.abs()).max(1.0)
}

fn numbers(balance: &Balance) -> [f64; 6] {
    let Balance { measured, attributed, static_energy, other_processes, recorder, lost } = *balance;
    [measured, attributed, static_energy, other_processes, recorder, lost].map(|joules| joules.as_joules())
}

/// Two profiles have the same joules, by domain, by part of the balance, by function; and the same samples and time.
fn alike(a: &Profile, b: &Profile) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.domains.len(), b.domains.len());
    for (a, b) in a.domains.iter().zip(&b.domains) {
        prop_assert_eq!(&a.info.name, &b.info.name);
        prop_assert!(a.balance.holds(), "{:?}", a.balance);
        let pairs = numbers(&a.balance).into_iter().zip(numbers(&b.balance));
        prop_assert!(pairs.clone().all(|(a, b)| same(a, b)), "{:?}", pairs.collect::<Vec<_>>());
    }
    let (of_a, of_b) = (by_function(a), by_function(b));
    prop_assert_eq!(of_a.len(), of_b.len());
    for ((a, joules), (b, other)) in of_a.into_iter().zip(of_b) {
        prop_assert!(a == b && same(joules, other), "{} {} {} {}", a, joules, b, other);
    }
    prop_assert_eq!(&a.events, &b.events);
    prop_assert_eq!(a.duration, b.duration);
    Ok(())
}

/// All of some ticks in one recording.
fn whole(world: &World, window: (usize, usize)) -> Profile {
    world.record(&Recorder { pid: 9, of: (0..PROCESSES).collect(), window })
}

/// The joules of all cells are what the balance says that functions have.
fn cells_are_the_balances(profile: &Profile) -> Result<(), TestCaseError> {
    let cells: f64 = by_function(profile).into_iter().map(|(_, joules)| joules).sum();
    let attributed: f64 = profile.domains.iter().map(|domain| domain.balance.attributed.as_joules()).sum();
    prop_assert!(same(cells, attributed), "{} {}", cells, attributed);
    Ok(())
}

/// Pieces of time add up to the balance, part by part.
fn time_adds_up(profile: &Profile) -> Result<(), TestCaseError> {
    let of_domains = profile.domains.iter().fold(Balance::default(), |sum, domain| sum + domain.balance);
    let in_time = profile.slices.iter().fold(Balance::default(), |sum, slice| sum + slice.balance);
    for (sum, whole) in numbers(&in_time).into_iter().zip(numbers(&of_domains)) {
        prop_assert!(same(sum, whole), "{} {}", sum, whole);
    }
    // Joules of cells are told in fewer digits.
    let of_cells: f64 =
        profile.slices.iter().flat_map(|slice| &slice.by_cell).map(|of| f64::from(of.joules)).sum();
    let attributed = of_domains.attributed.as_joules();
    prop_assert!((of_cells - attributed).abs() <= 1e-5 * attributed.max(1.0), "{} {}", of_cells, attributed);
    // Each cell has in time what it has in all.
    let mut in_time = vec![0.0; profile.cells.len()];
    let all = profile.slices.iter().flat_map(|slice| &slice.by_cell);
    all.for_each(|of_cell| in_time[of_cell.cell as usize] += f64::from(of_cell.joules));
    for (cell, in_time) in in_time.into_iter().enumerate() {
        let joules: f64 = profile.joules(cell).iter().map(|joules| joules.as_joules()).sum();
        prop_assert!(
            (in_time - joules).abs() <= 1e-5 * joules.max(1.0),
            "cell {}: {} {}",
            cell,
            in_time,
            joules
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_split_by_process_changes_nothing(
        world in world("a"),
        owners in prop::collection::vec(0u32..3, PROCESSES),
    ) {
        let mut pids: Vec<u32> = owners.clone();
        pids.sort_unstable();
        pids.dedup();
        let of = |owner: u32| (0..PROCESSES).filter(|&process| owners[process] == owner).collect();
        let recorder = |owner: &u32| Recorder { pid: *owner + 1, of: of(*owner), window: (0, TICKS) };
        let parts: Vec<Profile> = pids.iter().map(|owner| world.record(&recorder(owner))).collect();
        let merged = merge(parts).profile;
        alike(&merged, &whole(&world, (0, TICKS)))?;
        time_adds_up(&merged)?;
        prop_assert_eq!(&merged.warnings, &Vec::<String>::new());
    }

    #[test]
    fn a_split_by_time_changes_nothing(world in world("a"), cuts in prop::collection::btree_set(1..TICKS, 0..5)) {
        let edges: Vec<usize> = [0].into_iter().chain(cuts).chain([TICKS]).collect();
        let parts = edges.windows(2).zip(1..).map(|(edge, pid)| {
            world.record(&Recorder { pid, of: (0..PROCESSES).collect(), window: (edge[0], edge[1]) })
        });
        let merged = merge(parts.collect()).profile;
        alike(&merged, &whole(&world, (0, TICKS)))?;
        time_adds_up(&merged)?;
        prop_assert_eq!(&merged.warnings, &Vec::<String>::new());
    }

    #[test]
    fn a_split_by_node_adds_up(a in world("a"), b in world("b")) {
        let (of_a, of_b) = (whole(&a, (0, TICKS)), whole(&b, (0, TICKS)));
        let expected = of_a.domains[0].balance + of_b.domains[0].balance;
        let functions: Vec<f64> =
            by_function(&of_a).iter().zip(by_function(&of_b)).map(|(a, b)| a.1 + b.1).collect();
        let merged = merge(vec![of_a, of_b]).profile;
        time_adds_up(&merged)?;
        prop_assert_eq!(merged.machines.len(), 2);
        let pairs = numbers(&merged.domains[0].balance).into_iter().zip(numbers(&expected));
        prop_assert!(pairs.clone().all(|(a, b)| same(a, b)), "{:?}", pairs.collect::<Vec<_>>());
        let found = by_function(&merged).into_iter().map(|(_, joules)| joules);
        prop_assert!(found.zip(functions).all(|(a, b)| same(a, b)));
    }

    /// Ranks begin and end when they like.
    #[test]
    fn windows_that_overlap_in_part_count_once(
        world in world("a"),
        windows in prop::collection::vec((0..TICKS, 1..=TICKS), PROCESSES),
    ) {
        let recorders = windows.iter().enumerate().map(|(process, &(a, b))| {
            let (from, to) = if a < b { (a, b) } else { (b.min(TICKS - 1), (a + 1).max(b + 1).min(TICKS)) };
            Recorder { pid: process as u32 + 1, of: vec![process], window: (from, to.max(from + 1)) }
        });
        let recorders: Vec<Recorder> = recorders.collect();
        let covered: Vec<usize> = (0..TICKS)
            .filter(|tick| recorders.iter().any(|Recorder { window: (from, to), .. }| (from..to).contains(&tick)))
            .collect();
        let measured: f64 = covered.iter().map(|&tick| world.measured((tick, tick + 1))).sum();
        let functions = recorders.iter().map(|Recorder { of, window, .. }| world.of_process(of[0], *window));
        let functions: f64 = functions.sum();
        let static_energy = world.static_joules * covered.len() as f64;
        let merged = merge(recorders.iter().map(|recorder| world.record(recorder)).collect()).profile;
        let balance = merged.domains[0].balance;
        prop_assert!(balance.holds(), "{balance:?}");
        let expected = [measured, functions, static_energy, measured - functions - static_energy, 0.0, 0.0];
        let pairs = numbers(&balance).into_iter().zip(expected);
        prop_assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-9 * measured.max(1.0)), "{:?}", pairs.collect::<Vec<_>>());
        prop_assert_eq!(merged.duration.as_nanos(), covered.len() as u64 * super::fixture::TICK.as_nanos());
        cells_are_the_balances(&merged)?;
        time_adds_up(&merged)?;
    }

    /// Several recorders have the same processes: each of them counts once, in time, too.
    #[test]
    fn processes_that_several_recordings_have_count_once(
        world in world("a"),
        owners in prop::collection::vec(prop::collection::btree_set(0u32..3, 1..3), PROCESSES),
    ) {
        let of = |owner: u32| (0..PROCESSES).filter(|&process| owners[process].contains(&owner)).collect();
        let recorder = |owner: u32| Recorder { pid: owner + 1, of: of(owner), window: (0, TICKS) };
        let recorders = (0..3).map(recorder).filter(|recorder| !recorder.of.is_empty());
        let parts: Vec<Profile> = recorders.map(|recorder| world.record(&recorder)).collect();
        prop_assume!(parts.len() > 1);
        let merged = merge(parts).profile;
        time_adds_up(&merged)?;
        cells_are_the_balances(&merged)?;
        let expected = by_function(&whole(&world, (0, TICKS)));
        for ((a, joules), (b, other)) in by_function(&merged).into_iter().zip(expected) {
            prop_assert!(a == b && same(joules, other), "{} {} {} {}", a, joules, b, other);
        }
    }

    /// Several recorders have the same processes, each for a time of its own: each process has what it spent while any of them recorded
    /// it.
    #[test]
    fn processes_that_several_recordings_have_count_once_in_windows_that_overlap(
        world in world("a"),
        of in prop::collection::vec(prop::collection::btree_set(0..PROCESSES, 1..=PROCESSES), 2..5),
        windows in prop::collection::vec((0..TICKS, 1..TICKS), 4),
        everything in prop::collection::vec(prop::bool::weighted(0.2), 4),
    ) {
        let of = of.iter().zip(&windows).zip(1..);
        let recorders: Vec<Recorder> = of
            .map(|((of, &(from, length)), pid)| {
                Recorder { pid, of: of.iter().copied().collect(), window: (from, (from + length).min(TICKS)) }
            })
            .collect();
        let record = |(recorder, is_of_system): (&Recorder, &bool)| {
            let mut profile = world.record(recorder);
            profile.recordings[0].is_of_system = *is_of_system;
            profile
        };
        let merged = merge(recorders.iter().zip(&everything).map(record).collect()).profile;
        time_adds_up(&merged)?;
        cells_are_the_balances(&merged)?;
        prop_assert!(merged.domains[0].balance.holds());
        let of_merged = by_function(&merged);
        for process in 0..PROCESSES {
            let is_recorded = |tick: usize| {
                recorders.iter().any(|Recorder { of, window: (from, to), .. }| {
                    of.contains(&process) && (*from..*to).contains(&tick)
                })
            };
            let ticks = (0..TICKS).filter(|&tick| is_recorded(tick));
            let (count, expected) = ticks.fold((0, 0.0), |(count, joules), tick| {
                (count + 1, joules + world.of_process(process, (tick, tick + 1)))
            });
            let found = of_merged.iter().find(|(address, _)| *address == process as u64);
            let found = found.map_or(0.0, |(_, joules)| *joules);
            // Joules in time are told in fewer digits; and of what a recording of everything has beside one of the process, nine samples
            // may be chance, of 2 J at most, in three of four recordings.
            let near = (found - expected).abs() <= 1e-5 * expected.max(1.0);
            let is_chance = everything.contains(&true) && (0.0..=3.0 * 9.0 * 2.0).contains(&(expected - found));
            prop_assert!(near || is_chance, "{} {} in {} ticks", found, expected, count);
        }
    }

    /// Whatever recorders say, nothing is less than nothing, and the sum is what was measured.
    #[test]
    fn recorders_that_contradict_each_other_still_add_up(
        world in world("a"),
        factors in prop::collection::vec(0.0f64..3.0, PROCESSES),
    ) {
        let parts = (0..PROCESSES).map(|process| {
            let pid = process as u32 + 1;
            let mut part = world.record(&Recorder { pid, of: vec![process], window: (0, TICKS) });
            let balance = &mut part.domains[0].balance;
            let more = balance.attributed * (factors[process] - 1.0);
            balance.attributed += more;
            balance.other_processes -= more;
            part.cell_joules[0] = part.cell_joules[0] * factors[process];
            for slice in &mut part.slices {
                slice.balance.attributed = slice.balance.attributed * factors[process];
                slice.by_cell.iter_mut().for_each(|of_cell| of_cell.joules *= factors[process] as f32);
            }
            part
        });
        let merged = merge(parts.collect()).profile;
        let balance = merged.domains[0].balance;
        prop_assert!(balance.holds(), "{balance:?}");
        prop_assert!(same(balance.measured.as_joules(), world.measured((0, TICKS))));
        prop_assert!(numbers(&balance).into_iter().all(|joules| joules >= 0.0), "{balance:?}");
        cells_are_the_balances(&merged)?;
        time_adds_up(&merged)?;
    }

    #[test]
    fn the_order_of_files_makes_no_difference(
        world in world("a"),
        other in world("b"),
        windows in prop::collection::vec((0..TICKS / 2, TICKS / 2..TICKS), PROCESSES),
        order in Just((0..=PROCESSES).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let recorders = windows.iter().enumerate();
        let recorder = |(process, &window)| Recorder { pid: process as u32 + 1, of: vec![process], window };
        let mut parts: Vec<Profile> = recorders.map(recorder).map(|recorder| world.record(&recorder)).collect();
        parts.push(whole(&other, (0, TICKS)));
        let shuffled: Vec<Profile> = order.iter().map(|&at| parts[at].clone()).collect();
        let (first, second) = (merge(parts), merge(shuffled));
        prop_assert_eq!(&first.profile.cells, &second.profile.cells);
        prop_assert_eq!(&first.profile.cell_joules, &second.profile.cell_joules);
        prop_assert_eq!(first.profile.domains[0].balance, second.profile.domains[0].balance);
        prop_assert_eq!(&first.profile.warnings, &second.profile.warnings);
        let named = |merged: &super::Merged| merged.profile.recordings.clone();
        prop_assert_eq!(named(&first), named(&second));
        let back: Vec<usize> = second.order.iter().map(|&at| order[at]).collect();
        prop_assert_eq!(first.order, back);
    }
}

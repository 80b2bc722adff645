//! What is taken of threads, by hand.

use super::*;
use crate::merge::covered::Covered;
use crate::merge::fixture::{Recorder, TICK, World};
use crate::profile::{ErrorTerms, SampleTime};
use crate::units::{Joules, Timestamp};

/// Twenty ticks of 10 ms in which three processes spend 1, 2 and 3 J each.
fn recording() -> Profile {
    let world = World { boot: "a", static_joules: 0.5, spent: vec![vec![1.0, 2.0, 3.0]; 20] };
    world.record(&Recorder { pid: 1, of: vec![0, 1, 2], window: (0, 20) })
}

fn joules(profile: &Profile) -> Vec<f64> {
    profile.cell_joules.iter().map(|joules| joules.as_joules()).collect()
}

/// Thread 1 is another's between two moments, in ticks after the beginning.
fn shared(profile: &Profile, (from, to): (f64, f64), is_expected: bool) -> Shared {
    let at = |ticks: f64| {
        let nanos = profile.start.as_nanos() + (ticks * TICK.as_nanos() as f64) as u64;
        Timestamp::from_nanos(nanos)
    };
    let mut covered = Covered::default();
    covered.add((at(from), at(to)));
    let mut shared = Shared::default();
    shared.threads.insert(1, Elsewhere { covered, is_expected });
    shared
}
/// Three cells in two domains with two parameters each: of the middle thread nothing is left, of the others all.
#[test]
fn nothing_is_left_of_a_thread_that_another_recording_has() {
    let mut part = recording();
    part.domains.push(part.domains[0].clone());
    part.cell_joules = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Joules::from_joules).to_vec();
    part.cell_variances = vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6];
    let sensitivities: Vec<f32> = (1..=12).map(|number| number as f32).collect();
    part.errors = Some(ErrorTerms { parameters: 2, sensitivities, ..ErrorTerms::default() });
    let before = part.clone();
    let mut variances = vec![0.0, 7.0];
    take_all(&mut part, |thread| thread == ThreadIndex(1), &mut variances);
    assert_eq!(joules(&part), [1.0, 2.0, 0.0, 0.0, 5.0, 6.0]);
    assert_eq!(part.cell_variances, [0.1, 0.2, 0.0, 0.0, 0.5, 0.6]);
    let left: Vec<f32> = [1, 2, 3, 4, 0, 0, 0, 0, 9, 10, 11, 12].map(|number| number as f32).to_vec();
    assert_eq!(part.errors.as_ref().expect("terms").sensitivities, left);
    // 3 and 4 J of twenty samples, known by their count.
    let chance = |joules: f64| chance::variance(joules, 20);
    assert!(chance(3.0) > 0.0);
    assert_eq!(variances, [chance(3.0), 7.0 + chance(4.0)]);
    let Cell { samples, count, time, .. } = part.cells[1];
    assert_eq!((samples, count, time), (0, 0, Nanoseconds::ZERO));
    assert_eq!((&part.cells[0], &part.cells[2]), (&before.cells[0], &before.cells[2]));
    for (domain, joules) in [3.0, 4.0].into_iter().enumerate() {
        let (after, before) = (part.domains[domain].balance, before.domains[domain].balance);
        assert!(
            (before.attributed - after.attributed - Joules::from_joules(joules)).abs().as_joules() < 1e-9
        );
        assert!(
            (after.other_processes - before.other_processes - Joules::from_joules(joules)).abs().as_joules()
                < 1e-9
        );
    }
}

#[test]
fn what_lies_outside_of_the_others_time_is_kept() {
    let mut part = recording();
    let mut variances = vec![0.0];
    // From tick 5 on another has thread 1: a quarter of its 40 J is left.
    let shared = shared(&part, (5.0, 30.0), false);
    let errors = ErrorTerms { parameters: 1, sensitivities: vec![4.0; 3], ..ErrorTerms::default() };
    (part.cell_variances, part.errors) = (vec![1.6; 3], Some(errors));
    take(&mut part, &shared, &mut variances);
    assert_eq!(joules(&part), [20.0, 10.0, 60.0]);
    let Cell { samples, count, time, .. } = part.cells[1];
    assert_eq!((samples, count, time), (5, 50, Nanoseconds::from_millis(50)));
    assert_eq!(part.cell_variances, [1.6, 0.1, 1.6]);
    assert_eq!(part.errors.as_ref().expect("terms").sensitivities, [4.0, 1.0, 4.0]);
    // Fifteen samples were taken, of 30 J.
    assert_eq!(variances, [30.0 * 30.0 / 15.0]);
    let balance = part.domains[0].balance;
    assert_eq!((balance.attributed, balance.other_processes), [90.0, 30.0].map(Joules::from_joules).into());
    let of_others: Vec<f64> =
        part.slices.iter().map(|slice| slice.balance.other_processes.as_joules()).collect();
    assert_eq!(of_others, [[0.0; 5].to_vec(), [2.0; 15].to_vec()].concat());
    let in_time = |tick: usize| part.slices[tick].by_cell.iter().map(|of| of.joules).collect::<Vec<f32>>();
    assert_eq!((in_time(4), in_time(5)), (vec![1.0, 2.0, 3.0], vec![1.0, 0.0, 3.0]));
}

/// In the slice where the other one began, the thread ran in its last quarter alone.
#[test]
fn times_of_samples_tell_more_than_slices() {
    let kept = |times: &[(f64, f64)]| {
        let mut part = recording();
        let at = |ticks: f64| {
            Timestamp::from_nanos(part.start.as_nanos() + (ticks * TICK.as_nanos() as f64) as u64)
        };
        part.sample_times = times
            .iter()
            .map(|&(start, end)| SampleTime { start: at(start), end: at(end), cell: 1 })
            .collect();
        let shared = shared(&part, (4.5, 30.0), false);
        take(&mut part, &shared, &mut [0.0]);
        (part.cells[1].time.as_nanos(), joules(&part)[1])
    };
    let tick = TICK.as_nanos();
    // Not known: half of the slice of 2 J.
    assert_eq!(kept(&[]), (4 * tick + tick / 2, 9.0));
    assert_eq!(kept(&[(4.75, 5.0)]), (4 * tick, 8.0));
    assert_eq!(kept(&[(4.0, 4.25)]), (5 * tick, 10.0));
    // A quarter before, three quarters after: half of what it ran lies outside of either.
    assert_eq!(kept(&[(4.25, 4.75)]), (4 * tick + tick / 2, 9.0));
}

#[test]
fn a_few_samples_at_the_edge_of_who_chose_the_thread_are_chance() {
    let kept = |from: f64, is_expected: bool| {
        let mut part = recording();
        let shared = shared(&part, (from, 30.0), is_expected);
        take(&mut part, &shared, &mut [0.0]);
        let of_slices: f32 = part.slices.iter().map(|slice| slice.by_cell[1].joules).sum();
        assert_eq!(f64::from(of_slices), joules(&part)[1]);
        joules(&part)[1]
    };
    assert_eq!([kept(9.0, false), kept(9.0, true), kept(10.0, true)], [18.0, 0.0, 20.0]);
}

#[test]
fn without_slices_nothing_is_left() {
    let mut part = recording();
    part.slices.clear();
    let shared = shared(&part, (5.0, 30.0), false);
    take(&mut part, &shared, &mut [0.0]);
    assert_eq!(joules(&part), [20.0, 0.0, 60.0]);
    assert_eq!(part.cells[1].samples, 0);
}

/// Cells of an event that no joules follow stand in no slice.
#[test]
fn cells_that_slices_leave_out_follow_their_thread() {
    let mut part = recording();
    part.cells.push(Cell { event: 1, samples: 20, count: 800, time: Nanoseconds::ZERO, ..part.cells[1] });
    part.cell_joules.push(Joules::ZERO);
    let shared = shared(&part, (5.0, 30.0), false);
    take(&mut part, &shared, &mut [0.0]);
    assert_eq!((part.cells[3].samples, part.cells[3].count), (5, 200));
}

/// Another one has thread 1 from the middle of the fifth slice on: half of it is left there, and nothing after.
#[test]
fn slices_keep_as_much_of_the_time_as_of_the_joules() {
    let mut part = recording();
    let before = part.clone();
    let shared = shared(&part, (4.5, 30.0), false);
    take(&mut part, &shared, &mut [0.0]);
    let shares = |of: fn(&InSlice) -> f32, cell: usize| -> Vec<f32> {
        let slices = part.slices.iter().zip(&before.slices);
        slices.map(|(left, all)| of(&left.by_cell[cell]) / of(&all.by_cell[cell])).collect()
    };
    let left = [[1.0; 4].to_vec(), vec![0.5], [0.0; 15].to_vec()].concat();
    assert_eq!((shares(|of| of.seconds, 1), shares(|of| of.joules, 1)), (left.clone(), left));
    assert_eq!(shares(|of| of.seconds, 0), [1.0; 20]);
}

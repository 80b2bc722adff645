use super::*;
use crate::numerics::random::Random;
use crate::power_model::model::Scale;
use crate::power_model::prior::Prior;

/// Static watts, and what an event costs.
const STATIC: f64 = 10.0;
const COST: f64 = 2.0;
/// Length of an interval in seconds; five of 240 are a block of half a second.
const LENGTH: f64 = 0.1;
const ROWS: usize = 240;
const ALL: f64 = 24.0;
/// What models are known to be off by.
const UNEXPLAINED: f64 = 0.12;

/// What runs at a time, as shares of functions of 8 W, and what the machine draws beyond 18 W then.
type Machine<'m> = (&'m dyn Fn(f64) -> Vec<f64>, &'m dyn Fn(f64) -> f64);

fn intervals(more: &dyn Fn(f64) -> f64) -> Intervals {
    let row = |at: usize| {
        let time = (at as f64 + 0.5) * LENGTH;
        Interval {
            static_term: 0,
            follows: at > 0,
            seconds: LENGTH,
            joules: (STATIC + 4.0 * COST + more(time)) * LENGTH,
            counts: vec![4.0 * LENGTH],
            busy: 1.0,
            guessed: 0.0,
        }
    };
    Intervals {
        rows: (0..ROWS).map(row).collect(),
        count_noise: vec![0.0],
        late_noise: vec![0.0],
        static_terms: 1,
        judged_together: 1,
        ..Intervals::default()
    }
}

fn model() -> SelfCalibration {
    let prior = Prior {
        unexplained: UNEXPLAINED,
        misfit: 0.0,
        joules_per_event: vec![COST],
        relative_error: 0.1,
        least_share: 0.0,
        std_errors: Vec::new(),
        scale: Scale::Joules,
        static_watts: Some((STATIC, 0.1)),
    };
    SelfCalibration::of_prior(&intervals(&|_| 0.0), &prior, 1.0)
}

fn of_intervals(intervals: &Intervals, runs: &dyn Fn(f64) -> Vec<f64>) -> Option<Drift> {
    let shares = |times: &[Range<f64>]| -> Vec<Vec<f64>> {
        times.iter().map(|time| runs((time.start + time.end) / 2.0)).collect()
    };
    Drift::of(intervals, 0, &model(), UNEXPLAINED, shares)
}

fn found((runs, more): Machine<'_>) -> Drift {
    of_intervals(&intervals(more), runs).expect("blocks enough")
}

fn one_function(_: f64) -> Vec<f64> {
    vec![1.0]
}

/// Six functions for four seconds each.
fn one_after_another(time: f64) -> Vec<f64> {
    (0..6).map(|function| f64::from(u8::from((time / 4.0) as usize == function))).collect()
}

/// The second takes over from the first little by little.
fn ever_more_of_another(time: f64) -> Vec<f64> {
    vec![1.0 - time / ALL, time / ALL]
}

/// Half of the time another function runs, all the time alike.
fn in_turns(_: f64) -> Vec<f64> {
    vec![0.5, 0.5]
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
}

#[test]
fn an_even_rise_by_hand() {
    let rises = |time: f64| 0.05 * time;
    let drift = found((&one_function, &rises));
    assert!(drift.is_told());
    // 24 s at 0.05 W each.
    let [(start, first), (end, last)] = drift.points() else { panic!("straight: {drift:?}") };
    for (found, expected) in [(*start, 0.0), (*first, 0.0), (*end, 24.0), (*last, 1.2)] {
        close(found, expected);
    }
    close(drift.mean(), 0.6);
    close(drift.mean_of_points(), 0.6);
    for (time, watts) in [(-1.0, 0.0), (6.0, 0.3), (24.0, 1.2), (99.0, 1.2)] {
        close(drift.at(time), watts);
    }
    let mut without = intervals(&rises);
    drift.taken_out(&mut without, 0);
    for (row, expected) in without.rows.iter().zip(intervals(&|_| 0.0).rows) {
        close(row.joules, expected.joules);
    }
    let mut other_term = intervals(&rises);
    drift.taken_out(&mut other_term, 1);
    assert_eq!(other_term, intervals(&rises));
    let around = drift.around_the_mean();
    for (time, watts) in [(0.0, -0.6), (12.0, 0.0), (24.0, 0.6)] {
        close(around.at(time), watts);
    }
    close(around.mean_of_points(), 0.0);
    close(around.mean(), 0.6);
}

#[test]
fn a_rise_that_ends_is_bent() {
    // 2 W within 12 s, and no more: a watt on average while it rises, and two behind it.
    let rises = |time: f64| (time / 6.0).min(2.0);
    let drift = found((&one_function, &rises));
    assert_eq!(drift.points().len(), 3, "{drift:?}");
    assert!((drift.mean() - 1.5).abs() < 0.01 && drift.is_told(), "{drift:?}");
    assert!((drift.at(12.0) - 2.0).abs() < 0.03 && (drift.at(24.0) - 2.0).abs() < 0.03, "{drift:?}");
}

#[test]
fn what_is_told_by_few_or_guessed_intervals_is_not() {
    let mut few = intervals(&|time| 0.05 * time);
    // Blocks of four: 23 of them, and 24.
    few.rows.truncate(92);
    assert_eq!(of_intervals(&few, &one_function), None);
    let mut enough = intervals(&|time| 0.05 * time);
    enough.rows.truncate(96);
    assert!(of_intervals(&enough, &one_function).is_some());
    // What was guessed of the first quarter is not asked; where it lies in time is kept.
    let mut guessed = intervals(&|time| 0.05 * time);
    guessed.rows[..60].iter_mut().for_each(|row| (row.guessed, row.joules) = (0.5, 0.0));
    let drift = of_intervals(&guessed, &one_function).expect("36 blocks");
    close(drift.mean(), 0.6);
    assert_eq!(of_intervals(&Intervals::default(), &one_function), None);
}

#[test]
fn more_than_half_of_static_power_is_no_warmth() {
    let rises = |watts: f64| found((&one_function, &|time| watts * time / ALL));
    assert!(rises(4.9).is_told() && rises(-4.9).is_told());
    let too_much = rises(5.1);
    assert!(!too_much.is_told());
    // It is seen all the same: static power may be off by all of it.
    assert!((too_much.unsure() - 2.55).abs() < 1e-3, "{too_much:?}");
}

/// Chance that differs from block to block, one standard deviation of 0.05 W.
fn noise(seed: u64) -> impl Fn(f64) -> f64 {
    move |time| Random::seeded(seed).part((time * 1e3) as u64).symmetric() * (3.0f64 * 5.0).sqrt() * 0.05
}

/// A line whose end is known to a fortieth of a watt: 0.05 W of each of 48 blocks, over the root of 48 times the variance of their
/// times, a twelfth. Its mean is half of that.
#[test]
fn a_change_is_known_as_well_as_chance_lets_it() {
    let noise = noise(1);
    let drift = found((&one_function, &|time| 0.05 * time + noise(time)));
    assert!(drift.is_told() && (drift.mean() - 0.6).abs() < 0.04, "{drift:?}");
    assert!((0.009..0.018).contains(&drift.std_error()), "{drift:?}");
    assert_eq!(drift.unsure(), drift.std_error());
}

/// How many of a hundred machines are said to warm up, and the mean square of what is found in standard errors.
fn told(runs: &dyn Fn(f64) -> Vec<f64>, more: impl Fn(u64, f64) -> f64) -> (usize, f64) {
    let all: Vec<Drift> = (0..100)
        .map(|seed| {
            let noise = noise(seed);
            found((runs, &|time| more(seed, time) + noise(time)))
        })
        .collect();
    let squares: f64 = all.iter().map(|drift| (drift.mean / drift.std_error).powi(2)).sum();
    (all.iter().filter(|drift| drift.is_told()).count(), squares / all.len() as f64)
}

/// What a function draws that no event tells of, drawn for each machine: uniform, of a standard deviation of 0.12 of 8 W.
fn hidden(seed: u64, function: usize) -> f64 {
    Random::seeded(1000 + seed).part(function as u64).symmetric() * 3f64.sqrt() * UNEXPLAINED * 8.0
}

/// Hostile machines: functions draw what no event tells of, and run early or late. That is no static power.
#[test]
fn hidden_events_that_come_and_go_are_no_drift() {
    let of = |runs: &dyn Fn(f64) -> Vec<f64>| {
        told(runs, |seed, time| {
            runs(time).iter().enumerate().map(|(function, share)| share * hidden(seed, function)).sum()
        })
    };
    for (name, runs) in [
        ("one after another", &one_after_another as &dyn Fn(f64) -> Vec<f64>),
        ("ever more", &ever_more_of_another),
        ("late", &|time| if time < 18.0 { vec![1.0, 0.0] } else { vec![0.7, 0.3] }),
        ("once", &|time| if time > 10.0 && time < 14.0 { vec![0.0, 1.0] } else { vec![1.0, 0.0] }),
        ("in turns", &in_turns),
    ] {
        let (told, square) = of(runs);
        assert_eq!(told, 0, "{name}");
        // Errors are as large as is said, or smaller.
        assert!(square < 1.5, "{name}: {square}");
    }
}

/// The same hidden events while static power rises: it is found where code is the same early and late, and by the slopes within
/// the stretches of each function where that is not so.
#[test]
fn a_rise_is_found_beside_hidden_events() {
    let with_rise = |runs: &dyn Fn(f64) -> Vec<f64>| {
        let more = |seed: u64, time: f64| -> f64 {
            let shares = runs(time).into_iter().enumerate();
            let of_code: f64 = shares.map(|(function, share)| share * hidden(seed, function)).sum();
            of_code + 2.0 * time / ALL
        };
        told(runs, more).0
    };
    assert_eq!(with_rise(&in_turns), 100);
    assert!(with_rise(&one_after_another) > 90, "{}", with_rise(&one_after_another));
    // What takes over little by little could be it.
    assert_eq!(with_rise(&ever_more_of_another), 0);
    let unsure = found((&ever_more_of_another, &|time| 2.0 * time / ALL)).unsure();
    assert!((unsure - 1.0).abs() < 0.05, "a watt on average: {unsure}");
}

/// Errors that last are not taken for as many independent ones: of clocks that are drawn anew every 3 s there are eight in all.
/// Taken for 48, they would be said to drift on most machines.
#[test]
fn errors_of_neighbours_that_are_alike_are_no_drift() {
    let clocks = |seed: u64, time: f64| Random::seeded(7 + seed).part((time / 3.0) as u64).symmetric();
    let (told, square) = told(&one_function, clocks);
    assert!(told <= 3 && square < 4.5, "{told}, {square}");
}

#[test]
fn a_line_is_bent_where_errors_fall_by_more_than_the_numbers_are_worth() {
    let line = |parts: usize, white: Vec<f64>| {
        let (solution, covariance) = (DVector::zeros(parts + 1), DMatrix::zeros(parts + 1, parts + 1));
        Line { fit: Fit { solution, covariance, white: DVector::from_vec(white) }, parts }
    };
    // A hundred errors of a sum of squares.
    let opposite = |square: f64| (0..100).map(|at| (square / 100.0).sqrt() * [1.0, -1.0][at % 2]).collect();
    let alike = |square: f64| vec![(square / 100.0).sqrt(); 100];
    let chosen = |fewer: Vec<f64>, (parts, more): (usize, Vec<f64>)| {
        let (fewer, more) = (line(parts / 2, fewer), line(parts, more));
        fewer.or(more).parts
    };
    // 3.9 for one number more, 7.8 for two.
    assert_eq!(chosen(opposite(100.0), (2, opposite(96.2))), 1);
    assert_eq!(chosen(opposite(100.0), (2, opposite(96.0))), 2);
    assert_eq!(chosen(opposite(100.0), (4, opposite(92.4))), 2);
    assert_eq!(chosen(opposite(100.0), (4, opposite(92.0))), 4);
    // Sums of errors that are all alike vary nineteen times as much, as is taken at most: 74.1 for each number.
    assert_eq!(chosen(alike(100.0), (2, alike(26.5))), 1);
    assert_eq!(chosen(alike(100.0), (2, opposite(26.5))), 1);
    assert_eq!(chosen(alike(100.0), (2, alike(25.0))), 2);
}

use super::*;
use crate::numerics::random::Random;

/// Joules per event of the machine that the intervals come from, and its static watts.
const TRUTH: [f64; 3] = [0.27e-9, 0.2e-9, 3.2e-9];
const STATIC: f64 = 12.0;
/// Variance of counts, as of a sampling period of 6 million events.
const NOISE: f64 = 6e12;

/// Deterministic numbers from -1 to 1.
fn ripple(seed: u32) -> f64 {
    Random::seeded(u64::from(seed)).symmetric()
}

/// Intervals of 0.1 s whose events happen at `rates(interval)`; counts and joules with noise.
fn intervals(count: u32, rates: impl Fn(u32) -> [f64; 3]) -> Intervals {
    let rows = (0..count).map(|at| {
        let seconds = 0.1;
        let truly = rates(at).map(|rate| rate * seconds);
        let joules: f64 = STATIC * seconds + truly.iter().zip(TRUTH).map(|(n, c)| n * c).sum::<f64>();
        let noisy = |event: usize| truly[event] + ripple(at * 4 + event as u32) * (3.0 * NOISE).sqrt();
        Interval {
            busy: 0.0,
            guessed: 0.0,
            static_term: 0,
            follows: false,
            seconds,
            joules: joules + ripple(at * 4 + 3) * 0.01,
            counts: (0..3).map(noisy).collect(),
        }
    });
    Intervals {
        rows: rows.collect(),
        count_noise: vec![NOISE; 3],
        late_noise: vec![0.0; 3],
        static_terms: 1,
        edge_noise: 0.0,
        pieces_of_code: None,
        judged_together: 1,
    }
}

fn phases(at: u32) -> [f64; 3] {
    [[0.0, 0.0, 0.0], [3e9, 5.5e9, 2e6], [3e9, 5.7e9, 1.5e9], [3e9, 1e9, 2e8], [2.8e9, 0.9e9, 5e8]]
        [at as usize / 10 % 5]
}

fn prior(errors: [f64; 3], static_watts: Option<(f64, f64)>) -> Prior {
    Prior {
        unexplained: 0.0,
        joules_per_event: TRUTH.iter().zip(errors).map(|(cost, error)| cost * error).collect(),
        relative_error: 0.3,
        std_errors: Vec::new(),
        misfit: 0.0,
        least_share: 0.0,
        scale: Scale::Joules,
        static_watts,
    }
}

#[test]
fn coefficients_that_are_20_percent_off_are_repaired() {
    let found = SelfCalibration::new(&intervals(100, phases), &prior([1.2, 0.8, 1.2], Some((15.0, 5.0))));
    assert!(found.is_calibrated);
    for (event, truth) in TRUTH.iter().enumerate() {
        let error = found.joules_per_event[event] / truth - 1.0;
        assert!(error.abs() < 0.07, "event {event}: {error:+.3}");
        assert!(found.std_error(event) < 0.2 * truth);
    }
    let watts = found.static_watts.as_ref().expect("known")[0];
    assert!((watts / STATIC - 1.0).abs() < 0.02, "{watts}");
    assert!(found.explained.expect("power varies") > 0.99 && found.mean_error < 0.01);
}

#[test]
fn proportions_alone_suffice_where_the_program_does_different_things() {
    let relative = Prior { scale: Scale::Relative, relative_error: 1.0, ..prior([7.0, 5.0, 9.0], None) };
    let found = SelfCalibration::new(&intervals(100, phases), &relative);
    for (cost, truth) in found.joules_per_event.iter().zip(TRUTH) {
        assert!((cost / truth - 1.0).abs() < 0.05, "{cost} instead of {truth}");
    }
    assert!((found.static_watts.expect("idle times tell")[0] / STATIC - 1.0).abs() < 0.05);
}

#[test]
fn a_program_that_does_one_thing_teaches_nothing_but_the_scale() {
    let steady = intervals(100, |_| phases(20));
    let given = prior([1.2, 0.8, 1.2], Some((12.0, 3.0)));
    let found = SelfCalibration::new(&steady, &given);
    assert!(!found.is_calibrated);
    for (cost, given) in found.joules_per_event.iter().zip(&given.joules_per_event) {
        assert!((cost / given - 1.0).abs() < 0.05, "only as far as the sum of joules asks for");
    }
    assert_eq!(found.explained, None);
    // Without any knowledge of static power, none is made up from the noise of counts.
    let relative = Prior { scale: Scale::Relative, ..prior([7.0, 7.0, 7.0], None) };
    let found = SelfCalibration::new(&steady, &relative);
    assert_eq!(found.static_watts, None);
    let total: f64 = steady.rows.iter().map(|row| row.joules).sum();
    let model: f64 = steady.rows.iter().map(|row| found.joules(row)).sum();
    assert!((model / total - 1.0).abs() < 1e-9);
}

#[test]
fn what_two_events_cannot_tell_apart_is_left_to_the_prior() {
    // Instructions always follow cycles: only their sum is known.
    let together = intervals(100, |at| [1e9, 2e9, 0.0].map(|rate| rate * f64::from(at / 10 % 4)));
    let found = SelfCalibration::new(&together, &prior([1.2, 1.2, 1.0], Some((12.0, 3.0))));
    let ratio = found.joules_per_event[0] / found.joules_per_event[1];
    assert!((ratio / (TRUTH[0] / TRUTH[1]) - 1.0).abs() < 0.5, "{ratio}");
    let sum = found.joules_per_event[0] + 2.0 * found.joules_per_event[1];
    assert!((sum / (TRUTH[0] + 2.0 * TRUTH[1]) - 1.0).abs() < 0.03, "{sum}");
    let error = found.std_error(2) / TRUTH[2];
    assert!(error > 0.25, "the third never happened: {error}");
}

#[test]
fn no_intervals_leave_the_prior() {
    let given = prior([1.0, 1.0, 1.0], None);
    let empty = Intervals { static_terms: 1, ..Intervals::default() };
    assert_eq!(SelfCalibration::new(&empty, &given).joules_per_event, given.joules_per_event);
}

#[test]
fn samples_that_came_late_are_no_variation_of_power() {
    let late = |noise| Intervals { late_noise: vec![noise; 3], ..intervals(100, phases) };
    let given = prior([1.2, 0.8, 1.2], Some((12.0, 3.0)));
    assert!(SelfCalibration::new(&late(0.0), &given).is_calibrated);
    assert!(!SelfCalibration::new(&late(1e17), &given).is_calibrated);
}

/// A neighbour that nobody sampled took as much again in some intervals in which one event happened often: least squares
/// alone would make that event dearer.
#[test]
fn a_few_wild_intervals_make_no_event_dearer() {
    let mut wild = intervals(200, phases);
    for at in [24, 75, 122, 176] {
        wild.rows[at].joules *= 1.6;
    }
    let prior = prior([1.2, 0.8, 1.2], Some((15.0, 5.0)));
    let found = SelfCalibration::new(&wild, &prior);
    let undisturbed = SelfCalibration::new(&intervals(200, phases), &prior);
    for (event, truth) in TRUTH.iter().enumerate() {
        let moved = (found.joules_per_event[event] - undisturbed.joules_per_event[event]) / truth;
        assert!(moved.abs() < 0.03, "event {event}: {moved:+.3}");
    }
}

/// A program never waits but while it starts, so that its first two intervals alone tell cycles from static watts; and what
/// starting does is not quite what the events say. Bars are as wide as that.
#[test]
fn what_two_intervals_decide_is_not_believed_more_than_they_agree_with_the_rest() {
    let busy = |at: u32| if at < 2 { [2e9, 1e9, 1e8] } else { phases(at % 40 + 10) };
    let (mut held, mut off, runs) = (0, 0.0, 40);
    for run in 0..runs {
        let mut seen = intervals(120, busy);
        for (at, row) in seen.rows.iter_mut().enumerate() {
            let seed = run * 1000 + at as u32;
            row.joules += ripple(seed) * if at < 2 { 0.06 } else { 0.01 };
        }
        let believed = STATIC + 0.2 * ripple(run * 1000 + 999);
        let found = SelfCalibration::new(&seen, &prior([1.0; 3], Some((believed, 0.15))));
        let watts = found.static_watts.as_ref().expect("believed")[0] - STATIC;
        held += u32::from(watts.abs() <= 1.96 * found.static_std_error(0));
        off += watts * watts / f64::from(runs);
    }
    println!("static watts {:.3} off, {held} of {runs} bars hold", f64::sqrt(off));
    assert!((36..=40).contains(&held) && off.sqrt() < 0.2, "{off} {held}");
}

/// What is known exactly is not moved, and moves nothing else; what is moved takes along what hangs together with it.
#[test]
fn static_power_that_is_exact_stays() {
    let prior =
        |error| Prior { joules_per_event: vec![2e-9, 1e-9, 1e-9], ..prior([1.0; 3], Some((12.0, error))) };
    let of = |error: f64| {
        let mut found = SelfCalibration::of_prior(
            &Intervals { static_terms: 1, ..Intervals::default() },
            &prior(error),
            1.0,
        );
        let before = found.clone();
        found.move_static(0, 1.5);
        (before, found)
    };
    let (before, after) = of(0.0);
    assert_eq!(after, before);
    let (before, after) = of(0.2);
    assert_eq!(after.static_watts, Some(vec![13.5]));
    assert_eq!(after.joules_per_event, before.joules_per_event, "they have no covariance yet");
    // Never below nothing.
    let (_, mut after) = of(0.2);
    after.move_static(0, -99.0);
    assert_eq!(after.static_watts, Some(vec![0.0]));
    after.move_static(7, 1.0);
    assert_eq!(after.static_watts, Some(vec![0.0]), "there is no such term");
}

/// A tenth too much and a tenth too little of 1.2 J; one interval alone judges nothing.
#[test]
fn two_intervals_judge_a_model() {
    let error = |joules: &[f64]| {
        let row = |joules: &f64| Interval {
            static_term: 0,
            follows: false,
            seconds: 0.1,
            joules: *joules,
            counts: vec![0.0; 3],
            busy: 0.0,
            guessed: 0.0,
        };
        let rows = joules.iter().map(row).collect();
        let intervals = Intervals { rows, static_terms: 1, judged_together: 1, ..Intervals::default() };
        SelfCalibration::of_prior(&intervals, &prior([1.0; 3], Some((12.0, 1.0))), 1.0).mean_error
    };
    assert!((error(&[1.32, 1.08]) - 0.1).abs() < 1e-12);
    assert_eq!((error(&[1.32]), error(&[])), (0.0, 0.0));
}

/// Two packages of 5 W each on average: each one's static power must be known to 0.75 W.
#[test]
fn static_power_is_known_if_that_of_every_package_is() {
    let known = |errors: [f64; 2], watts: Option<(f64, f64)>| {
        let variances = [9.0, 9.0, errors[0] * errors[0], errors[1] * errors[1]];
        let covariance = nalgebra::DMatrix::from_diagonal(&nalgebra::DVector::from_row_slice(&variances));
        let fit = Posterior { solution: vec![1.0; 4], covariance, events: 2, has_static: true };
        let totals = Totals { joules: 100.0, seconds: 10.0, model: 1.0 };
        let intervals = Intervals { static_terms: 2, ..Intervals::default() };
        fit.static_is_known(&intervals, &totals, &prior([1.0; 3], watts))
    };
    assert!(known([0.7, 0.7], None));
    assert!(!known([0.8, 0.7], None) && !known([0.7, 0.8], None));
    assert!(known([9.0, 9.0], Some((12.0, 3.0))), "it was known before");
}

#[test]
fn what_happened_without_any_event_tells_no_scale() {
    let mut intervals = intervals(20, phases);
    intervals.rows.iter_mut().for_each(|row| row.counts = vec![0.0; 3]);
    for scale in [Scale::Joules, Scale::Relative] {
        let prior = Prior { scale, ..prior([1.0; 3], None) };
        let found = SelfCalibration::new(&intervals, &prior);
        assert_eq!((found.joules_per_event, found.is_calibrated), (TRUTH.to_vec(), false));
    }
}

/// Of a tenth of a second each, of different joules and counts.
#[test]
fn totals_are_sums_over_all_intervals() {
    let mut intervals = intervals(3, |_| [0.0; 3]);
    for (row, joules) in intervals.rows.iter_mut().zip([1.0, 2.5, 4.0]) {
        (row.joules, row.counts) = (joules, vec![joules * 1e9, 0.0, 0.0]);
    }
    let totals = Totals::of(&intervals, &prior([1.0, 0.0, 0.0], None));
    // 7.5e9 events at 0.27 nJ.
    for (found, expected) in [(totals.joules, 7.5), (totals.seconds, 0.3), (totals.model, 2.025)] {
        assert!((found - expected).abs() < 1e-12, "{found} for {expected}");
    }
}

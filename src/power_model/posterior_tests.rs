//! The posterior beside the textbook's: least squares with what is believed as further observations, on dense matrices.

use nalgebra::{DMatrix, DVector};

use super::*;
use crate::numerics::random::Random;
use crate::power_model::model::Scale;

const COSTS: [f64; 2] = [2e-9, 5e-9];
const WATTS: [f64; 2] = [11.0, 17.0];

/// Intervals of two packages that do not follow each other, half of a second in all proportions. They are off by as much, to
/// this and to that side so that four in a row cancel out: nothing drifts, and none is wild.
fn intervals(rows: usize, off: f64) -> Intervals {
    let mut random = Random::seeded(5);
    let row = |at: usize| {
        let counts = vec![1e9 * random.uniform(), 3e8 + 4e8 * random.uniform()];
        let static_term = at / 4 % 2;
        let error = off * [1.0, -1.0, -1.0, 1.0][at % 4];
        let of_events: f64 = counts.iter().zip(COSTS).map(|(count, cost)| count * cost).sum();
        let joules = of_events + 0.5 * WATTS[static_term] + error;
        Interval { static_term, follows: false, seconds: 0.5, joules, counts, busy: 0.0, guessed: 0.0 }
    };
    Intervals {
        rows: (0..rows).map(row).collect(),
        count_noise: vec![0.0; 2],
        late_noise: vec![0.0; 2],
        static_terms: 2,
        judged_together: 1,
        ..Intervals::default()
    }
}

fn prior() -> Prior {
    Prior {
        joules_per_event: vec![2.3e-9, 4.5e-9],
        relative_error: 0.1,
        std_errors: Vec::new(),
        misfit: 0.0,
        least_share: 0.0,
        unexplained: 0.0,
        scale: Scale::Joules,
        static_watts: Some((13.0, 2.0)),
    }
}

/// What is to come out: with counts that are known to these variances, and beliefs of these errors.
struct Textbook {
    solution: DVector<f64>,
    covariance: DMatrix<f64>,
}

impl Textbook {
    fn of(
        intervals: &Intervals,
        beliefs: &[(f64, f64)],
        count_variances: &[f64],
        static_terms: usize,
    ) -> Self {
        let (rows, columns) = (intervals.rows.len(), 2 + static_terms);
        let design = DMatrix::from_fn(rows, columns, |row, column| {
            let row = &intervals.rows[row];
            match column {
                0 | 1 => row.counts[column],
                term => {
                    if row.static_term == term - 2 {
                        row.seconds
                    } else {
                        0.0
                    }
                }
            }
        });
        let joules = DVector::from_fn(rows, |row, _| intervals.rows[row].joules);
        let diagonal =
            |of: &dyn Fn(usize) -> f64| DMatrix::from_diagonal(&DVector::from_fn(columns, |at, _| of(at)));
        // What noise in the counts adds to the squares of a column.
        let noise_of_counts = diagonal(&|at| count_variances.get(at).copied().unwrap_or(0.0) * rows as f64);
        let certainty = diagonal(&|at| beliefs[at].1.powi(-2));
        let believed = DVector::from_fn(columns, |at, _| beliefs[at].0);
        let gram = design.transpose() * &design;
        let mut noise = 1.0;
        let mut solution = believed.clone();
        let mut inverse = gram.clone();
        for _ in 0..100 {
            let drawn = &certainty * noise + &noise_of_counts;
            // The noise of counts is in the sums already; as much again, and what is taken from the sums, goes to what is believed.
            inverse = (&gram + &drawn).try_inverse().expect("regular");
            solution = &inverse * (design.transpose() * &joules + (&drawn + &noise_of_counts) * &believed);
            noise = (&joules - &design * &solution).norm_squared() / (rows as f64 - columns as f64);
        }
        let of_beliefs = diagonal(&|at| {
            let squares = noise_of_counts[(at, at)];
            let (value, error) = beliefs[at];
            ((noise / error.powi(2) + 2.0 * squares) * error).powi(2) + (0.5 * squares * value).powi(2)
        });
        let covariance = &inverse * (gram * noise + of_beliefs) * &inverse;
        Self { solution, covariance }
    }

    fn compare(&self, found: &Posterior) {
        assert_eq!(found.solution.len(), self.solution.len());
        for (found, expected) in found.solution.iter().zip(self.solution.iter()) {
            assert!((found / expected - 1.0).abs() < 1e-5, "{found} for {expected}");
        }
        let scale = |at: usize| self.covariance[(at, at)].sqrt();
        for row in 0..self.solution.len() {
            for column in 0..self.solution.len() {
                let (found, expected) = (found.covariance[(row, column)], self.covariance[(row, column)]);
                let off = (found - expected).abs() / (scale(row) * scale(column));
                assert!(off < 1e-3, "{row}, {column}: {found} for {expected}");
            }
        }
    }
}

fn beliefs(prior: &Prior, static_terms: usize) -> Vec<(f64, f64)> {
    let events = prior.joules_per_event.iter().map(|cost| (*cost, cost * prior.relative_error));
    events.chain(std::iter::repeat_n(prior.static_watts.expect("given"), static_terms)).collect()
}

#[test]
fn it_is_least_squares_with_beliefs_as_further_observations() {
    for off in [0.1, 0.6] {
        let intervals = intervals(48, off);
        let found = Posterior::fit(&intervals, &prior(), true).expect("a fit");
        assert!((found.events, found.has_static) == (2, true));
        Textbook::of(&intervals, &beliefs(&prior(), 2), &[0.0; 2], 2).compare(&found);
    }
}

/// What is believed of an event is no better known than to this share of all joules by it alone, nor worse where it says so.
#[test]
fn beliefs_have_the_errors_that_the_prior_gives_them() {
    let intervals = intervals(48, 0.3);
    let joules: f64 = intervals.rows.iter().map(|row| row.joules).sum();
    let counts = |event: usize| intervals.rows.iter().map(|row| row.counts[event]).sum::<f64>();
    let wide = Prior { least_share: 0.05, std_errors: vec![1e-12, 2e-9], ..prior() };
    let found = Posterior::fit(&intervals, &wide, true).expect("a fit");
    let least = 0.05 * joules / counts(0);
    assert!(least > 1e-12 && 0.05 * joules / counts(1) < 2e-9);
    let given = [(2.3e-9, least), (4.5e-9, 2e-9), (13.0, 2.0), (13.0, 2.0)];
    Textbook::of(&intervals, &given, &[0.0; 2], 2).compare(&found);
    // Of static power nothing may be known: no more than that it is none and not twice all.
    let unknown = Prior { static_watts: None, ..prior() };
    let found = Posterior::fit(&intervals, &unknown, true).expect("a fit");
    let most = 2.0 * joules / 24.0;
    let given = [(2.3e-9, 2.3e-10), (4.5e-9, 4.5e-10), (0.0, most), (0.0, most)];
    Textbook::of(&intervals, &given, &[0.0; 2], 2).compare(&found);
}

#[test]
fn without_static_power_events_take_all() {
    let mut intervals = intervals(48, 0.2);
    intervals.rows.iter_mut().for_each(|row| row.joules -= 0.5 * WATTS[row.static_term]);
    let found = Posterior::fit(&intervals, &prior(), false).expect("a fit");
    assert_eq!((found.solution.len(), found.has_static), (2, false));
    Textbook::of(&intervals, &beliefs(&prior(), 0), &[0.0; 2], 0).compare(&found);
}

/// A calibration is known to 0.2 %, and may be a tenth off in code that it was not made of. A recording that says so moves it as
/// if that were known; one that agrees leaves it as it is.
#[test]
fn only_what_contradicts_a_calibration_moves_it() {
    let intervals = intervals(48, 0.1);
    let calibrated = |costs: [f64; 2]| Prior {
        joules_per_event: costs.to_vec(),
        std_errors: costs.map(|cost| 0.002 * cost).to_vec(),
        misfit: 0.1,
        ..prior()
    };
    let fit = |prior: &Prior| Posterior::fit(&intervals, prior, true).expect("a fit");
    let error = |found: &Posterior, event: usize| found.covariance[(event, event)].sqrt() / COSTS[event];
    // 15 and 10 % off, of which the intervals tell 2.5 %.
    let off = [2.3e-9, 4.5e-9];
    let known = |cost: f64| (cost, cost * 0.002f64.hypot(0.1));
    let given = [known(off[0]), known(off[1]), (13.0, 2.0), (13.0, 2.0)];
    Textbook::of(&intervals, &given, &[0.0; 2], 2).compare(&fit(&calibrated(off)));
    let agreed = fit(&calibrated(COSTS));
    let of_other_code = fit(&calibrated(COSTS).of_other_code());
    for (event, cost) in COSTS.into_iter().enumerate() {
        assert!((agreed.solution[event] / cost - 1.0).abs() < 0.001, "{:?}", agreed.solution);
        assert!(error(&agreed, event) < 0.0021, "{}", error(&agreed, event));
        assert!(error(&of_other_code, event) > 0.01, "{}", error(&of_other_code, event));
    }
}

/// As much as noise in counts draws to zero is drawn to what is believed, and as much again; half of the noise more or less
/// is in the errors.
#[test]
fn what_noise_of_counts_draws_to_zero_is_drawn_to_beliefs() {
    let mut intervals = intervals(48, 0.3);
    (intervals.count_noise, intervals.late_noise) = (vec![1e15, 0.0], vec![0.0, 4e14]);
    let found = Posterior::fit(&intervals, &prior(), true).expect("a fit");
    // Half of the variance for each of an interval's two edges.
    Textbook::of(&intervals, &beliefs(&prior(), 2), &[1e15, 4e14], 2).compare(&found);
}

/// A wild interval counts by its size: far less than least squares would have it.
#[test]
fn wild_intervals_hardly_count() {
    let calm = Posterior::fit(&intervals(48, 0.05), &prior(), true).expect("a fit");
    let watts = |by: f64| {
        let mut wild = intervals(48, 0.05);
        wild.rows[16].joules += by;
        Posterior::fit(&wild, &prior(), true).expect("a fit").solution[2] - calm.solution[2]
    };
    let (one, ten) = (watts(1.0), watts(10.0));
    // Alone among 24 intervals of half a second, least squares would move by 0.08 and by 0.8 W.
    assert!(one > 0.0 && one < 0.02 && ten < 0.12, "{one} {ten}");
}

#[test]
fn sums_of_errors_tell_a_drift() {
    // Blocks of four: what changes sign within them cancels, what lasts adds up to four times the variance.
    let signs = |length: usize| -> Vec<f64> {
        (0..96_usize).map(|at| if (at / length).is_multiple_of(2) { 0.3 } else { -0.3 }).collect()
    };
    let ones = vec![1.0; 96];
    assert_eq!(drift(&signs(2), &ones), 1.0);
    assert!((drift(&signs(4), &ones) - 4.0).abs() < 1e-12);
    assert!((drift(&signs(8), &ones) - 4.0).abs() < 1e-12);
    // By weights: half of each block counts a quarter. Sums are 2 · 0.3 + 2 · 0.15, squares 0.09 and 0.0225.
    let weights: Vec<f64> = (0..96).map(|at| if at % 4 < 2 { 1.0 } else { 0.25 }).collect();
    assert!((drift(&signs(4), &weights) - 0.81 / 4.0 / 0.05625).abs() < 1e-12);
    // Of 240 errors blocks have ten.
    let long: Vec<f64> = (0..240).map(|at| if at / 10 % 2 == 0 { 1.0 } else { -1.0 }).collect();
    assert!((drift(&long, &[1.0; 240]) - 10.0).abs() < 1e-12);
    // Three blocks tell nothing, and no errors have no drift; what fills no block is left out.
    assert_eq!((drift(&[1.0; 15], &[1.0; 15]), drift(&[0.0; 96], &ones)), (1.0, 1.0));
    assert!((drift(&[1.0; 16], &[1.0; 16]) - 4.0).abs() < 1e-12);
}

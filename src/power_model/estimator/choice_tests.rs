//! How recipes are chosen, by hand.

use super::*;
use crate::power_model::dataset::Observation;

const LINES: Recipe = Recipe::Lines(Sign::NonNegative, Weighting::Absolute);

/// Recipes and what they say of three workloads of two rows each, of 100 W.
fn judged(left_out: &[(Recipe, [f64; 6])]) -> Judged {
    Judged {
        left_out: left_out.iter().map(|(recipe, estimates)| (*recipe, estimates.to_vec())).collect(),
        watts: vec![100.0; 6],
        parts: vec![vec![0, 1], vec![2, 3], vec![4, 5]],
    }
}

fn chosen(left_out: &[(Recipe, [f64; 6])]) -> (Vec<Recipe>, f64) {
    let (recipes, error) = judged(left_out).choose();
    (recipes, (error * 1e9).round() / 1e9)
}

#[test]
fn errors_are_means_of_workloads() {
    let mut judged = judged(&[]);
    judged.parts = vec![vec![0], vec![1, 2, 3], vec![4, 5]];
    judged.watts[5] = 50.0;
    let errors = judged.errors(&[110.0, 100.0, 90.0, 130.0, 100.0, 100.0]);
    for (found, expected) in errors.iter().zip([0.1, 0.4 / 3.0, 0.5]) {
        assert!((found - expected).abs() < 1e-12, "{errors:?}");
    }
    assert!((score(&errors) - (0.6 + 0.4 / 3.0) / 3.0).abs() < 1e-12);
    assert_eq!([together(&mut [3.0, 1.0]), together(&mut [9.0, 1.0, 2.0])], [2.0, 2.0]);
}

#[test]
fn the_simplest_stays_unless_another_is_better_by_15_per_cent() {
    // Both too high, so that their mean is no better than the better one.
    assert_eq!(chosen(&[(Recipe::Constant, [110.0; 6])]), (vec![Recipe::Constant], 0.1));
    let of = |constant: f64| chosen(&[(Recipe::Constant, [constant; 6]), (Recipe::Curves, [120.0; 6])]);
    assert_eq!(of(123.1), (vec![Recipe::Curves], 0.2));
    assert_eq!(of(131.0), (vec![Recipe::Curves], 0.2), "too far off to be averaged");
    // Within 15 % the simpler one would do, but the mean of both is better than it.
    assert_eq!(of(122.9), (vec![Recipe::Curves, Recipe::Constant], 0.2145));
    assert_eq!(of(119.0), (vec![Recipe::Constant], 0.19));
    assert_eq!(chosen(&[]), (vec![Recipe::Constant], f64::INFINITY));
    let none = [(Recipe::Constant, [f64::NAN; 6]), (Recipe::Curves, [f64::INFINITY; 6])];
    assert_eq!(chosen(&none), (vec![Recipe::Constant], f64::INFINITY));
}

#[test]
fn what_errs_to_both_sides_is_averaged() {
    let of = |lines: f64| chosen(&[(Recipe::Constant, [110.0; 6]), (LINES, [lines; 6])]);
    assert_eq!(of(92.0), (vec![LINES, Recipe::Constant], 0.01));
    // Half as bad again is the most that has a say.
    assert_eq!(of(85.1), (vec![Recipe::Constant, LINES], 0.0245));
    assert_eq!(of(84.9), (vec![Recipe::Constant], 0.1));
    // Of three the middle one, row by row; a fourth has no say.
    let three = [
        (Recipe::Constant, [104.0, 90.0, 104.0, 90.0, 104.0, 90.0]),
        (LINES, [101.0, 111.0, 101.0, 111.0, 101.0, 111.0]),
        (Recipe::Curves, [90.0, 101.0, 90.0, 101.0, 90.0, 101.0]),
    ];
    let (recipes, error) = chosen(&three);
    assert_eq!((recipes.len(), error), (3, 0.01));
    let fourth = (Recipe::Lines(Sign::Free, Weighting::Relative), [107.0, 95.0, 107.0, 95.0, 107.0, 95.0]);
    let (recipes, _) = chosen(&[three[0], three[1], three[2], fourth]);
    assert!(recipes.len() <= 3);
}

/// Workloads of so many rows each, whose power is 10 W and 2 W for each unit of the first column; the second repeats itself.
fn data(workloads: usize, rows: usize) -> Dataset {
    let mut data = Dataset::new(vec!["a".into(), "b".into()]);
    for at in 0..workloads * rows {
        let rates = [(at * 7 % 11) as f64, (at % 2) as f64];
        let workload = format!("w{}", at / rows);
        data.push(Observation {
            rates: &rates,
            watts: 10.0 + 2.0 * rates[0],
            workload: &workload,
            frequency: None,
        });
    }
    data
}

#[test]
fn workloads_are_judged_by_themselves_if_there_are_three() {
    let parts = |workloads: usize| Judged::new(&data(workloads, 12), &EstimatorOptions::default()).parts;
    assert_eq!(parts(3), [(0..12).collect::<Vec<_>>(), (12..24).collect(), (24..36).collect()]);
    assert_eq!(parts(9).len(), 9);
    // Of two, six spans of four rows each count instead.
    let spans = parts(2);
    assert!(spans.len() == 6 && spans.iter().all(|part| part.len() == 4), "{spans:?}");
    // Every row is predicted by what did not see it; the lines find the truth.
    let judged = Judged::new(&data(4, 12), &EstimatorOptions::default());
    let (_, lines) = judged.left_out.iter().find(|(recipe, _)| *recipe == LINES).expect("rows enough");
    assert!(lines.iter().zip(&judged.watts).all(|(found, watts)| (found - watts).abs() < 1e-6), "{lines:?}");
    let (_, constant) = &judged.left_out[0];
    assert!(
        constant[..12].iter().all(|watts| *watts == constant[0])
            && constant.iter().all(|watts| watts.is_finite())
    );
}

/// A twentieth of the least and twice the most.
#[test]
fn estimates_stay_near_what_was_seen() {
    let limits = Limits::of(&data(3, 11));
    assert_eq!((limits.0, limits.1), (0.5, 60.0));
    assert_eq!([-3.0, 0.4, 7.0, 61.0].map(|watts| limits.apply(watts)), [0.5, 0.5, 7.0, 60.0]);
    let estimator = Estimator::train(&data(4, 11), &EstimatorOptions::default()).expect("rows enough");
    assert!((estimator.watts(&[4.0, 0.0]) - 18.0).abs() < 0.5 && estimator.expected_error() < 0.01);
    assert!(estimator.watts(&[1e9, 0.0]) <= 60.0 && estimator.watts(&[-1e9, 0.0]) >= 0.5);
    assert!(estimator.recipes().all(|recipe| recipe != Recipe::Constant));
    // Columns that do not vary tell nothing.
    let mut same = Dataset::new(vec!["same".into()]);
    for at in 0..12 {
        let workload = format!("w{}", at / 4);
        same.push(Observation { rates: &[1.0], watts: 5.0, workload: &workload, frequency: None });
    }
    assert_eq!(Estimator::train(&same, &EstimatorOptions::default()), Err(ModelError::NoColumns));
}

//! How wrong is the model on kernels and applications that it has never seen?

use serde::Serialize;

use super::blend::Blend;
use super::candidates::Allowed;
use super::choose::Ranking;
use super::fit::Recipe;
use super::table::Table;
use crate::numerics::folds::{Fold, Part, by_group, dealt};
use crate::numerics::left_out::LeftOutDistances;
use crate::numerics::quantiles::median;

/// Predictions of rows whose group was left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    /// Predicted power of each row of the table, watts.
    pub predicted: Vec<f64>,
    /// Recipes of each fit, with the first of the groups that it did not know.
    pub recipes: Vec<(String, Vec<Recipe>)>,
    /// Mean over the rows of the error as a share of the measured power.
    pub mean_error: f64,
    /// Median of the same.
    pub median_error: f64,
    /// Root mean square error in watts.
    pub rms: f64,
    /// Share of the variance that is predicted.
    pub r2: f64,
}

/// How intervals that are made of the errors of other groups hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Share of the rows that lie in their intervals, each group counted once.
    pub held: f64,
    /// Half the width of the intervals, as a share of the power: the mean of its logarithm.
    pub half_width: f64,
}

/// Leaves each group out, chooses and fits on the others alone, predicts the group; if there are more than `most`
/// groups, several at a time. Of a single group the rows. `None` if the others do not allow any fit.
pub fn leave_group_out(
    table: &Table,
    allowed: Allowed,
    most: usize,
    mut progress: impl FnMut(usize, usize),
) -> Option<Validation> {
    let folds = dealt(parts(table), most);
    let mut predicted = vec![0.0; table.rows.len()];
    let mut recipes = Vec::with_capacity(folds.len());
    for (index, part) in folds.iter().enumerate() {
        progress(index, folds.len());
        let Fold { held_out, kept } = Fold::holding_out(part, table.rows.len());
        let training = table.subset(&kept);
        let chosen = Ranking::of(&training, allowed)?.chosen;
        let model = Blend::fit(&chosen, &training)?;
        held_out.iter().for_each(|row| predicted[*row] = model.predict(&table.rows[*row]));
        recipes.push((held_out.first().map_or_else(String::new, |row| table.groups[*row].clone()), chosen));
    }
    Some(summarise(&table.power, predicted, recipes))
}

/// The rows that belong together: groups, or each row where there is one group only.
fn parts(table: &Table) -> Vec<Part> {
    match by_group(&table.groups) {
        groups if groups.len() > 1 => groups,
        _ => (0..table.rows.len()).map(|row| vec![row]).collect(),
    }
}

/// Predictions of a table by a model fitted elsewhere.
pub fn apply(model: &Blend, table: &Table) -> Validation {
    let predicted = table.rows.iter().map(|row| model.predict(row)).collect();
    summarise(&table.power, predicted, Vec::new())
}

impl Validation {
    /// How far groups of the table lay from their predictions.
    pub fn distances(&self, table: &Table) -> LeftOutDistances {
        LeftOutDistances::new(&self.predicted, &table.power, &parts(table))
    }

    /// How well intervals of this level hold: each group is put into those that the errors of all others make. `None`
    /// with fewer than three groups.
    pub fn coverage(&self, table: &Table, level: f64) -> Option<Coverage> {
        let all = parts(table);
        let (mut held, mut width) = (0.0, 0.0);
        for own in 0..all.len() {
            let others: Vec<Part> =
                (0..all.len()).filter(|at| *at != own).map(|at| all[at].clone()).collect();
            let distances = LeftOutDistances::new(&self.predicted, &table.power, &others);
            let share = 1.0 / (all[own].len() * all.len()) as f64;
            for &row in &all[own] {
                let (low, high) = distances.interval(self.predicted[row], level)?;
                held += if (low..=high).contains(&table.power[row]) { share } else { 0.0 };
                width += (high / low).ln() / 2.0 * share;
            }
        }
        (all.len() > 2).then_some(Coverage { held, half_width: width.exp_m1() })
    }

    /// How well the model's own intervals hold the rows that it predicted here; `None` if it has none.
    pub fn coverage_by(&self, model: &Blend, table: &Table, level: f64) -> Option<Coverage> {
        let (mut held, mut width) = (0.0, 0.0);
        let all = parts(table);
        for part in &all {
            let share = 1.0 / (part.len() * all.len()) as f64;
            for &row in part {
                let (low, high) = model.interval(self.predicted[row], level)?;
                held += if (low..=high).contains(&table.power[row]) { share } else { 0.0 };
                width += (high / low).ln() / 2.0 * share;
            }
        }
        Some(Coverage { held, half_width: width.exp_m1() })
    }
}

fn summarise(power: &[f64], predicted: Vec<f64>, recipes: Vec<(String, Vec<Recipe>)>) -> Validation {
    let count = power.len().max(1) as f64;
    let mut errors: Vec<f64> = power.iter().zip(&predicted).map(|(p, q)| (q / p - 1.0).abs()).collect();
    let squares: f64 = power.iter().zip(&predicted).map(|(p, q)| (p - q).powi(2)).sum();
    let mean = power.iter().sum::<f64>() / count;
    let variance: f64 = power.iter().map(|p| (p - mean).powi(2)).sum();
    let mean_error = errors.iter().sum::<f64>() / count;
    Validation {
        predicted,
        recipes,
        mean_error,
        median_error: median(&mut errors).unwrap_or(0.0),
        rms: (squares / count).sqrt(),
        r2: 1.0 - squares / variance.max(1e-300),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(power: &[f64], groups: &[&str]) -> Table {
        Table {
            columns: vec!["x".into()],
            rows: power.iter().map(|_| vec![1.0]).collect(),
            power: power.to_vec(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..Table::default()
        }
    }

    #[test]
    fn errors_by_hand() {
        let found = summarise(&[10.0, 20.0, 40.0], vec![11.0, 18.0, 40.0], Vec::new());
        assert!((found.mean_error - 0.2 / 3.0).abs() < 1e-12 && (found.median_error - 0.1).abs() < 1e-12);
        assert!((found.rms - (5.0f64 / 3.0).sqrt()).abs() < 1e-12, "{found:?}");
        // The measured powers are 70 / 3 W on average, and 1400 / 3 square watts about it.
        assert!((found.r2 - (1.0 - 5.0 * 3.0 / 1400.0)).abs() < 1e-12, "{found:?}");
        let nothing = summarise(&[], Vec::new(), Vec::new());
        assert_eq!((nothing.mean_error, nothing.median_error, nothing.rms), (0.0, 0.0, 0.0));
    }

    #[test]
    fn groups_belong_together_and_a_single_one_falls_apart() {
        assert_eq!(parts(&table(&[1.0, 2.0, 3.0], &["a", "b", "a"])), [vec![0, 2], vec![1]]);
        assert_eq!(parts(&table(&[1.0, 2.0], &["a", "a"])), [vec![0], vec![1]]);
    }

    /// Four groups, 10, 11, 12 and 5 % too high: each is put into what the middle one of the three others makes.
    #[test]
    fn intervals_are_those_that_the_others_make() {
        let table = table(&[100.0; 5], &["a", "b", "c", "d", "d"]);
        let found = summarise(&table.power, vec![110.0, 111.0, 112.0, 105.0, 105.0], Vec::new());
        let coverage = found.coverage(&table, 0.4).expect("four groups");
        // The first and the last are nearer than that, the second and the third farther.
        assert!((coverage.held - 0.5).abs() < 1e-12, "{coverage:?}");
        let width = (1.11f64 * 1.1).sqrt() - 1.0;
        assert!((coverage.half_width - width).abs() < 1e-12, "{coverage:?} {width}");
        let two = self::table(&[100.0, 100.0], &["a", "b"]);
        assert_eq!(summarise(&two.power, vec![101.0, 99.0], Vec::new()).coverage(&two, 0.5), None);
    }
}

//! How wrong is the model on kernels and applications that it has never seen?

use serde::Serialize;

use super::choose::{Allowed, choose};
use super::fit::{Model, Recipe};
use super::table::Table;
use crate::numerics::folds::Fold;
use crate::numerics::quantiles::median;

/// Predictions of rows whose group was left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    /// Predicted power of each row of the table, watts.
    pub predicted: Vec<f64>,
    /// Recipe of each group's fit, with the group's name.
    pub recipes: Vec<(String, Recipe)>,
    /// Mean over the rows of the error as a share of the measured power.
    pub mean_error: f64,
    /// Median of the same.
    pub median_error: f64,
    /// Root mean square error in watts.
    pub rms: f64,
    /// Share of the variance that is predicted.
    pub r2: f64,
}

/// Leaves each group out, chooses and fits on the others alone, predicts the group. `None` if some
/// group's others do not allow any fit.
pub fn leave_group_out(
    table: &Table,
    allowed: Allowed,
    mut progress: impl FnMut(usize, usize),
) -> Option<Validation> {
    let groups = table.by_group();
    let mut predicted = vec![0.0; table.rows.len()];
    let mut recipes = Vec::with_capacity(groups.len());
    for (index, (name, rows)) in groups.iter().enumerate() {
        progress(index, groups.len());
        let training = table.subset(&Fold::holding_out(rows, table.rows.len()).kept);
        let recipe = choose(&training, allowed)?.recipe;
        let model = Model::fit(recipe, &training)?;
        rows.iter().for_each(|row| predicted[*row] = model.predict(&table.rows[*row]));
        recipes.push((name.clone(), recipe));
    }
    Some(summarise(&table.power, predicted, recipes))
}

/// Predictions of a table by a model fitted elsewhere.
pub fn apply(model: &Model, table: &Table) -> Validation {
    let predicted = table.rows.iter().map(|row| model.predict(row)).collect();
    summarise(&table.power, predicted, Vec::new())
}

fn summarise(power: &[f64], predicted: Vec<f64>, recipes: Vec<(String, Recipe)>) -> Validation {
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

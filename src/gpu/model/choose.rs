//! Which recipe? The one with the least error on rows that it was not fitted to, within the training
//! rows alone.

use nalgebra::{DMatrix, DVector};

use super::fit::{Method, Recipe, Response, robust, similarity};
use super::form::{Columns, Form, Prepared, Scale};
use super::table::Table;
use crate::numerics::folds::{Fold, Part, dealt};
use crate::numerics::ridge::{Penalised, Ridge, with_constant};

/// Which recipes may be chosen from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// All.
    All,
    /// Those with coefficients.
    Linear,
    /// Plain least squares of counters per time, as in the paper.
    Published,
}

/// A recipe with its error on left-out training rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The recipe.
    pub recipe: Recipe,
    /// Mean error as a share of the power.
    pub error: f64,
}

/// More rows than this and fits by similarity take too long (cubic in the rows).
const MOST_SIMILAR: usize = 420;
/// A simpler recipe is preferred if it is worse by no more than this share.
const SIMPLER: f64 = 1.02;

/// The recipe with the least error when each group of rows is left out in turn.
pub fn choose(table: &Table, allowed: Allowed) -> Option<Choice> {
    ranked(table, allowed).into_iter().next()
}

/// All recipes that can be fitted, best first.
pub fn ranked(table: &Table, allowed: Allowed) -> Vec<Choice> {
    // A choice needs no more; the fit itself takes all rows.
    const ENOUGH: usize = 800;
    let step = table.rows.len().div_ceil(ENOUGH).max(1);
    let table = &table.subset(&(0..table.rows.len()).step_by(step).collect::<Vec<_>>());
    let folds = folds(table);
    let mut choices = Vec::new();
    for form in forms(table, allowed) {
        let (_, rows) = Prepared::learn(form, table);
        if rows.first().is_none_or(Vec::is_empty) {
            continue;
        }
        let methods = methods(table, allowed);
        let signed = |method: &Method| match method {
            Method::NonNegative(ridge) => Some(*ridge),
            _ => None,
        };
        // From the strongest on, which is found soonest and near the next.
        let mut ridges: Vec<f64> = methods.iter().filter_map(signed).collect();
        ridges.sort_by(|a, b| b.total_cmp(a));
        for response in responses(allowed) {
            for (ridge, residuals) in
                ridges.iter().zip(left_out_signed(table, form, response, &folds, &ridges))
            {
                let recipe = Recipe { form, response, method: Method::NonNegative(*ridge) };
                let error = |residuals| mean_error(response, &table.power, &residuals);
                choices.extend(residuals.map(|residuals| Choice { recipe, error: error(residuals) }));
            }
            let y = response.of(&table.power);
            let weights = response.weights(&table.power);
            let weights = weights.as_deref();
            for method in methods.iter().copied() {
                let recipe = Recipe { form, response, method };
                let residuals = match method {
                    Method::Similar { .. } if response == Response::Shares => None,
                    Method::Similar { length, noise } => left_out_similar(&rows, &y, &folds, length, noise),
                    Method::Ridge(ridge) => left_out_linear(&rows, &y, &folds, weights, ridge),
                    Method::Robust(ridge) => robust(&with_constant(&rows), &y, weights, ridge)
                        .and_then(|(_, weights)| left_out_linear(&rows, &y, &folds, Some(&weights), ridge)),
                    // All penalties at once, below.
                    Method::NonNegative(_) => None,
                };
                if let Some(residuals) = residuals {
                    choices.push(Choice { recipe, error: mean_error(response, &table.power, &residuals) });
                }
            }
        }
    }
    choices.retain(|choice| choice.error.is_finite());
    let cost = |choice: &Choice| match choice.recipe.method {
        Method::Similar { .. } => choice.error * SIMPLER,
        _ => choice.error,
    };
    choices.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    choices
}

fn responses(allowed: Allowed) -> Vec<Response> {
    match allowed {
        Allowed::Published => vec![Response::Watts],
        Allowed::All | Allowed::Linear => vec![Response::Watts, Response::Shares, Response::Log],
    }
}

fn forms(table: &Table, allowed: Allowed) -> Vec<Form> {
    let per_time = table.time.is_some() && !table.counts.is_empty();
    let rate = if per_time { Columns::PerTime } else { Columns::AsGiven };
    let plain = |columns, scale| Form { columns, scale, clock_products: false };
    if allowed == Allowed::Published {
        return vec![plain(rate, Scale::Linear)];
    }
    // A count that is not divided by its time tells energy, not power.
    let columns = if per_time { vec![Columns::PerTime, Columns::Pooled] } else { vec![Columns::AsGiven] };
    let mut forms: Vec<Form> = columns
        .into_iter()
        .flat_map(|columns| [Scale::Linear, Scale::Root, Scale::Log].map(|scale| plain(columns, scale)))
        .collect();
    if !table.clocks.is_empty() && table.rows.len() > 4 * table.columns.len() * (1 + table.clocks.len()) {
        forms.extend(
            [Scale::Linear, Scale::Log].map(|scale| Form { clock_products: true, ..plain(rate, scale) }),
        );
    }
    forms
}

/// Too few kernels for each counter's sign to come from the rows. Then physics gives it: fits whose
/// signs are free follow the noise, and choosing among them by rows left out follows it once more.
fn is_scarce(table: &Table) -> bool {
    const FEWEST_PER_COLUMN: usize = 3;
    table.by_group().len() < FEWEST_PER_COLUMN * table.columns.len()
}

fn methods(table: &Table, allowed: Allowed) -> Vec<Method> {
    if allowed == Allowed::Published {
        return vec![Method::Ridge(0.0)];
    }
    if is_scarce(table) {
        return [1e-3, 0.03, 0.1, 0.3].map(Method::NonNegative).to_vec();
    }
    let mut methods: Vec<Method> = [0.0, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0].map(Method::Ridge).to_vec();
    methods.extend([Method::Robust(1e-2), Method::Robust(0.1)]);
    methods.extend([0.0, 0.03, 0.3].map(Method::NonNegative));
    if allowed == Allowed::All && table.rows.len() <= MOST_SIMILAR {
        for length in [0.6, 1.0, 2.0] {
            methods.extend([0.003, 0.03, 0.15].map(|noise| Method::Similar { length, noise }));
        }
    }
    methods
}

/// Rows of each fold: the groups, put together to at most 25 folds. Of a single group the rows, as without
/// it there would be nothing to learn from.
fn folds(table: &Table) -> Vec<Part> {
    const MOST: usize = 25;
    let mut groups: Vec<Vec<usize>> = table.by_group().into_iter().map(|(_, rows)| rows).collect();
    if let [only] = groups.as_slice() {
        groups = only.iter().map(|row| vec![*row]).collect();
    }
    dealt(groups, MOST)
}

/// Residuals of each fold when it is left out.
fn left_out_linear(
    rows: &[Vec<f64>],
    y: &DVector<f64>,
    folds: &[Part],
    weights: Option<&[f64]>,
    ridge: f64,
) -> Option<DVector<f64>> {
    let design = with_constant(rows);
    Ridge::fit(&design, y, weights, ridge)?.left_out(&design, y, weights, folds)
}

/// The same for a fit by similarity, without a fit for each fold: `([C^-1]_ff)^-1 [C^-1 y]_f`.
fn left_out_similar(
    rows: &[Vec<f64>],
    y: &DVector<f64>,
    folds: &[Part],
    length: f64,
    noise: f64,
) -> Option<DVector<f64>> {
    let mean = y.mean();
    let inverse = similarity(rows, length, noise).cholesky()?.inverse();
    let solved = &inverse * y.map(|value| value - mean);
    let mut left_out = DVector::zeros(y.len());
    for fold in folds {
        let own = DMatrix::from_fn(fold.len(), fold.len(), |i, j| inverse[(fold[i], fold[j])]);
        let part = DVector::from_iterator(fold.len(), fold.iter().map(|i| solved[*i]));
        let residuals = own.lu().solve(&part)?;
        fold.iter().zip(residuals.iter()).for_each(|(index, value)| left_out[*index] = *value);
    }
    Some(left_out)
}

/// The same with given signs, for several penalties from the strongest on, where there is no short cut: each
/// fold is fitted without its rows, from the means of the columns on. `None` for a penalty under which the
/// rows outside of some fold do not determine the fit.
fn left_out_signed(
    table: &Table,
    form: Form,
    response: Response,
    folds: &[Part],
    ridges: &[f64],
) -> Vec<Option<DVector<f64>>> {
    let mut left_out = vec![Some(DVector::zeros(table.rows.len())); ridges.len()];
    for fold in folds {
        let Fold { held_out, kept } = Fold::holding_out(fold, table.rows.len());
        let training = table.subset(&kept);
        let (prepared, rows) = Prepared::learn(form, &training);
        let y = response.of(&training.power);
        let weights = response.weights(&training.power);
        let sums = Penalised::new(&with_constant(&rows), &y, weights.as_deref(), 0.0);
        let signs = prepared.signs();
        let mut x: Option<Vec<f64>> = None;
        for (ridge, left_out) in ridges.iter().zip(&mut left_out) {
            // Coefficients hardly differ from one penalty to the next.
            x = sums.with_more(*ridge).solve_signed(&signs, x.as_deref());
            let (Some(x), Some(residuals)) = (&x, left_out.as_mut()) else {
                *left_out = None;
                continue;
            };
            for row in &held_out {
                let terms = prepared.apply(&table.rows[*row]);
                let predicted = x[0] + x.iter().skip(1).zip(&terms).map(|(c, t)| c * t).sum::<f64>();
                let measured = response.of(&table.power[*row..=*row])[0];
                residuals[*row] = measured - predicted;
            }
        }
    }
    left_out
}

fn mean_error(response: Response, power: &[f64], residuals: &DVector<f64>) -> f64 {
    let share = |(watts, residual): (&f64, &f64)| {
        if response == Response::Log {
            ((-residual).min(5.0).exp() - 1.0).abs()
        } else {
            residual.abs() / watts
        }
    };
    power.iter().zip(residuals.iter()).map(share).sum::<f64>() / power.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let x = |i: u32, k: u32| f64::from((i * 7 + k * 13 + i * i * (k + 1)) % 11);
        Table {
            columns: vec!["a".into(), "b".into()],
            rows: (0..18).map(|i| vec![x(i, 0), x(i, 1)]).collect(),
            power: (0..18).map(|i| 50.0 + 3.0 * x(i, 0) + 5.0 * x(i, 1) + 0.5 * x(i, 2)).collect(),
            groups: (0..18).map(|i| format!("g{}", i / 3)).collect(),
            time: None,
            counts: vec![],
            clocks: vec![],
            left_out: vec![],
            skipped: 0,
        }
    }

    /// The short cut equals leaving the rows out, with means and deviations kept.
    #[test]
    fn left_out_residuals_equal_refitting() {
        let table = table();
        let form = Form { columns: Columns::AsGiven, scale: Scale::Linear, clock_products: false };
        let (_, rows) = Prepared::learn(form, &table);
        let y = Response::Watts.of(&table.power);
        let folds = folds(&table);
        let quick = left_out_linear(&rows, &y, &folds, None, 0.0).expect("a fit");
        for fold in &folds {
            let training = Fold::holding_out(fold, rows.len()).kept;
            let design = with_constant(&training.iter().map(|row| rows[*row].clone()).collect::<Vec<_>>());
            let x = Ridge::fit(&design, &y.select_rows(&training), None, 0.0).expect("a fit").coefficients;
            for row in fold {
                let predicted = x[0] + x[1] * rows[*row][0] + x[2] * rows[*row][1];
                assert!((quick[*row] - (y[*row] - predicted)).abs() < 1e-5);
            }
        }
    }

    /// Rows of a single application: none of it can be left out and the others learnt from.
    #[test]
    fn a_single_group_is_no_obstacle() {
        for rows in [18, 2, 1, 0] {
            let mut table = table().subset(&(0..rows).collect::<Vec<_>>());
            table.groups.fill("one".into());
            let error = choose(&table, Allowed::All).map(|best| best.error);
            match rows {
                18 => assert!(error.is_some_and(|error| error < 0.05), "{error:?}"),
                2 => assert!(error.is_none_or(f64::is_finite)),
                _ => assert_eq!(error, None),
            }
        }
    }

    #[test]
    fn a_linear_law_is_found() {
        let best = choose(&table(), Allowed::All).expect("a choice");
        assert!(best.error < 0.03, "{best:?}");
        let published = choose(&table(), Allowed::Published).expect("a choice");
        assert_eq!(published.recipe.method, Method::Ridge(0.0));
    }
}

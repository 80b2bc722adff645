//! Which recipes? Those with the least error on rows that they were not fitted to, within the training rows alone.

use nalgebra::{DMatrix, DVector};

use super::blend::average;
use super::candidates::{Allowed, forms, methods, responses};
use super::fit::{Method, Recipe, Response, level, robust, similarity};
use super::form::{Columns, Form, Prepared};
use super::table::Table;
use crate::numerics::folds::{Fold, Part, dealt};
use crate::numerics::mean::SampleMean;
use crate::numerics::quantiles::range;
use crate::numerics::ridge::{Penalised, with_constant};

/// A recipe with its error on left-out training rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The recipe.
    pub recipe: Recipe,
    /// Mean error as a share of the power.
    pub error: f64,
}

/// What was chosen among recipes by rows that were left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// All recipes that can be fitted, best first.
    pub choices: Vec<Choice>,
    /// The recipes whose average is best: often one alone.
    pub chosen: Vec<Recipe>,
    /// Mean error of that average as a share of the power.
    pub error: f64,
}

/// A simpler recipe is preferred if it is worse by no more than this share.
const SIMPLER: f64 = 1.02;
/// Counters must be better than none of them by this share: with few kernels some always look so by chance.
const BETTER_THAN_NONE: f64 = 0.95;
/// And by so many standard errors of the difference, by groups left out, or they speak together with the constant: the
/// best of a hundred recipes always looks better than that.
const BEYOND_CHANCE: f64 = 1.0;
/// Recipes that are averaged: of those whose error is at most so many times the least, at most so many.
const ALIKE: f64 = 1.3;
const MOST_MEMBERS: usize = 5;
/// With fewer rows, or fewer groups than counters, chance decides whether an average is better than the best recipe alone.
const FEWEST_TO_AVERAGE: usize = 50;

impl Ranking {
    /// Judges all recipes that are allowed by leaving out each group of rows in turn, and nothing of a group that is
    /// left out is known to any of them: neither its rows nor which columns go with its power. `None` if no recipe can
    /// be fitted.
    pub fn of(table: &Table, allowed: Allowed) -> Option<Self> {
        // A choice needs no more; the fit itself takes all rows.
        const ENOUGH: usize = 800;
        let step = table.rows.len().div_ceil(ENOUGH).max(1);
        let table = &table.subset(&(0..table.rows.len()).step_by(step).collect::<Vec<_>>());
        let judged = judge(table, allowed);
        let best = judged.first()?;
        let mut ranking = Self {
            choices: judged.iter().map(Judged::choice).collect(),
            chosen: vec![best.recipe],
            error: best.error,
        };
        let mut chosen_watts = best.watts.clone();
        // Of recipes that differ by little the best speaks for all.
        let mut members: Vec<&Judged> = Vec::new();
        let may_average =
            table.rows.len() >= FEWEST_TO_AVERAGE && table.columns.len() <= table.by_group().len();
        for one in judged.iter().filter(|_| may_average) {
            let is_alike = |other: &&Judged| one.recipe.is_like(&other.recipe);
            if one.error <= ALIKE * best.error
                && members.len() < MOST_MEMBERS
                && !members.iter().any(is_alike)
            {
                members.push(one);
            }
        }
        for count in 2..=members.len() {
            let of_row = |row| average(members[..count].iter().map(|member| member.watts[row]));
            let watts: Vec<f64> = (0..table.power.len()).map(of_row).collect();
            let error = mean_error(table, &watts);
            if error < ranking.error {
                ranking.error = error;
                chosen_watts = watts;
                ranking.chosen = members[..count].iter().map(|member| member.recipe).collect();
            }
        }
        let null = judged.iter().find(|judged| judged.recipe.form.columns == Columns::NoCounters);
        if let Some(null) = null {
            if ranking.error > BETTER_THAN_NONE * null.error {
                (ranking.chosen, ranking.error) = (vec![null.recipe], null.error);
            } else if !is_beyond_chance(table, &chosen_watts, &null.watts) {
                let of_row = |row: usize| average([best.watts[row], null.watts[row]].into_iter());
                let watts: Vec<f64> = (0..table.power.len()).map(of_row).collect();
                ranking.error = mean_error(table, &watts);
                ranking.chosen = vec![best.recipe, null.recipe];
            }
        }
        Some(ranking)
    }
}

fn mean_error(table: &Table, watts: &[f64]) -> f64 {
    let share = |(watts, measured): (&f64, &f64)| (watts / measured - 1.0).abs();
    watts.iter().zip(&table.power).map(share).sum::<f64>() / watts.len() as f64
}

/// Whether `watts` are nearer to the power of rows left out than `others` by more than chance: groups, whose rows belong
/// together, are what differs by it. Without two groups nothing tells, and the mean decides.
fn is_beyond_chance(table: &Table, watts: &[f64], others: &[f64]) -> bool {
    let share = |watts: f64, row: usize| (watts / table.power[row] - 1.0).abs();
    let rows = table.power.len() as f64;
    let gain = |row: usize| (share(others[row], row) - share(watts[row], row)) / rows;
    let gains: Vec<f64> = folds(table).iter().map(|part| part.iter().map(|&row| gain(row)).sum()).collect();
    // Standard error of a sum: that of the mean times the count.
    let error = SampleMean::of(gains.iter().copied()).and_then(|mean| mean.standard_error());
    error.is_none_or(|error| gains.iter().sum::<f64>() > BEYOND_CHANCE * error * gains.len() as f64)
}

/// A recipe, and what it says of each row that it was not fitted to.
struct Judged {
    recipe: Recipe,
    error: f64,
    /// Within the limits that a fitted model has.
    watts: Vec<f64>,
}

impl Judged {
    fn choice(&self) -> Choice {
        Choice { recipe: self.recipe, error: self.error }
    }

    /// By the residuals of rows left out, in the response's own scale.
    fn new(recipe: Recipe, table: &Table, residuals: &DVector<f64>) -> Self {
        let (low, high) = range(table.power.iter().copied());
        let measured = recipe.response.of(&table.power);
        let watts: Vec<f64> =
            (measured - residuals).iter().map(|value| recipe.response.watts_of(*value)).collect();
        // Without the limits, so that going astray counts against a recipe.
        let error = mean_error(table, &watts);
        let watts = watts.into_iter().map(|watts| watts.clamp(0.5 * low, 2.0 * high)).collect();
        Self { recipe, error, watts }
    }
}

/// All recipes that can be fitted, best first.
fn judge(table: &Table, allowed: Allowed) -> Vec<Judged> {
    let folds = folds(table);
    let methods = methods(table, allowed);
    let mut all = Vec::new();
    for form in forms(table, allowed) {
        let recipes = |method: &Method| {
            let method = *method;
            responses(form, method, allowed).into_iter().map(move |response| Recipe {
                form,
                response,
                method,
            })
        };
        let recipes: Vec<Recipe> =
            methods.iter().filter(|method| method.suits(form)).flat_map(recipes).collect();
        let (_, rows) = Prepared::learn(form, table);
        if rows.first().is_none_or(Vec::is_empty) && form.columns != Columns::NoCounters {
            continue;
        }
        let (similar, linear): (Vec<Recipe>, Vec<Recipe>) =
            recipes.into_iter().partition(|recipe| matches!(recipe.method, Method::Similar { .. }));
        for recipe in similar {
            if let Method::Similar { length, noise } = recipe.method
                && let Some(residuals) =
                    left_out_similar(&rows, &recipe.response.of(&table.power), &folds, length, noise)
            {
                all.push(Judged::new(recipe, table, &residuals));
            }
        }
        let residuals = left_out_linear(table, form, &linear, &folds);
        all.extend(linear.into_iter().zip(residuals).filter_map(|(recipe, residuals)| {
            residuals.map(|residuals| Judged::new(recipe, table, &residuals))
        }));
    }
    all.retain(|judged| judged.error.is_finite());
    let cost = |judged: &Judged| match judged.recipe.method {
        Method::Similar { .. } => judged.error * SIMPLER,
        _ => judged.error,
    };
    all.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    all
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

/// Residuals of each fold when it is left out of a fit by similarity, without a fit for each fold:
/// `([C^-1]_ff)^-1 [C^-1 y]_f`. (Means and deviations of the columns are those of all rows.)
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

/// The same of recipes of one form with coefficients: everything, from the choice and the means of the columns on, is
/// learnt without the fold. `None` for a recipe that the rows outside of some fold do not determine.
fn left_out_linear(
    table: &Table,
    form: Form,
    recipes: &[Recipe],
    folds: &[Part],
) -> Vec<Option<DVector<f64>>> {
    let mut left_out = vec![Some(DVector::zeros(table.rows.len())); recipes.len()];
    // From the strongest penalty on, which is found soonest and near the next.
    let mut order: Vec<usize> = (0..recipes.len()).collect();
    order.sort_by(|a, b| recipes[*b].method.penalty().total_cmp(&recipes[*a].method.penalty()));
    for fold in folds {
        let Fold { held_out, kept } = Fold::holding_out(fold, table.rows.len());
        let training = table.subset(&kept);
        let (prepared, rows) = Prepared::learn(form, &training);
        let design = with_constant(&rows);
        let signs = prepared.signs();
        let held_out: Vec<(usize, Vec<f64>)> =
            held_out.into_iter().map(|row| (row, prepared.apply(&table.rows[row]))).collect();
        for response in [Response::Watts, Response::Shares, Response::Log] {
            let of_response = || order.iter().filter(|&&at| recipes[at].response == response);
            if of_response().next().is_none() {
                continue;
            }
            let y = response.of(&training.power);
            let weights = response.weights(&training.power);
            let weights = weights.as_deref();
            let sums = Penalised::new(&design, &y, weights, 0.0);
            // Coefficients hardly differ from one penalty to the next.
            let mut start: Option<Vec<f64>> = None;
            for &at in of_response() {
                let x: Option<Vec<f64>> = match recipes[at].method {
                    Method::Ridge(ridge) => {
                        sums.with_more(ridge).solve().map(|fit| fit.coefficients.as_slice().to_vec())
                    }
                    Method::Robust(ridge) => {
                        robust(&design, &y, weights, ridge).map(|(x, _)| x.as_slice().to_vec())
                    }
                    Method::NonNegative(ridge) => {
                        start = sums.with_more(ridge).solve_signed(&signs, start.as_deref());
                        start.clone()
                    }
                    Method::Level => level(&training.power).map(|level| vec![level]),
                    Method::Similar { .. } => None,
                };
                let (Some(x), Some(residuals)) = (x, left_out[at].as_mut()) else {
                    left_out[at] = None;
                    continue;
                };
                for (row, terms) in &held_out {
                    let predicted = x[0] + x.iter().skip(1).zip(terms).map(|(c, t)| c * t).sum::<f64>();
                    residuals[*row] = response.of(&table.power[*row..=*row])[0] - predicted;
                }
            }
        }
    }
    left_out
}

#[cfg(test)]
mod tests {
    use super::super::form::Scale;
    use super::*;
    use crate::numerics::random::Random;

    fn table() -> Table {
        let x = |i: u32, k: u32| f64::from((i * 7 + k * 13 + i * i * (k + 1)) % 11);
        Table {
            columns: vec!["a".into(), "b".into()],
            rows: (0..18).map(|i| vec![x(i, 0), x(i, 1)]).collect(),
            power: (0..18).map(|i| 50.0 + 3.0 * x(i, 0) + 5.0 * x(i, 1) + 0.5 * x(i, 2)).collect(),
            groups: (0..18).map(|i| format!("g{}", i / 3)).collect(),
            ..Table::default()
        }
    }

    /// What is judged is what a model says that was fitted without the rows, of every method with coefficients.
    #[test]
    fn left_out_residuals_are_those_of_fitting_again() {
        let table = table();
        let form = Form::plain(Columns::AsGiven, Scale::Linear);
        let folds = folds(&table);
        let methods = [Method::Ridge(0.03), Method::Robust(0.1), Method::NonNegative(0.0)];
        let recipes: Vec<Recipe> = [Response::Watts, Response::Shares, Response::Log]
            .into_iter()
            .flat_map(|response| methods.map(|method| Recipe { form, response, method }))
            .collect();
        let found = left_out_linear(&table, form, &recipes, &folds);
        for (recipe, residuals) in recipes.iter().zip(found) {
            let residuals = residuals.expect("determined");
            for fold in &folds {
                let training = table.subset(&Fold::holding_out(fold, table.rows.len()).kept);
                let model = super::super::fit::Model::fit(*recipe, &training).expect("determined");
                for row in fold {
                    let measured = recipe.response.of(&table.power)[*row];
                    let watts = recipe.response.watts_of(measured - residuals[*row]);
                    assert!((watts - model.predict(&table.rows[*row])).abs() < 1e-6, "{recipe:?}");
                }
            }
        }
    }

    /// Rows of a single application: none of it can be left out and the others learnt from.
    #[test]
    fn a_single_group_is_no_obstacle() {
        for rows in [18, 2, 1, 0] {
            let mut table = table().subset(&(0..rows).collect::<Vec<_>>());
            table.groups.fill("one".into());
            let error = Ranking::of(&table, Allowed::All).map(|ranking| ranking.error);
            match rows {
                18 => assert!(error.is_some_and(|error| error < 0.05), "{error:?}"),
                2 => assert!(error.is_none_or(f64::is_finite)),
                _ => assert!(error.is_none_or(|error| !error.is_nan())),
            }
        }
    }

    #[test]
    fn a_linear_law_is_found() {
        let best = Ranking::of(&table(), Allowed::All).expect("a choice");
        assert!(best.error < 0.03, "{best:?}");
        let published = Ranking::of(&table(), Allowed::Published).expect("a choice");
        assert_eq!(published.choices.len(), 1);
        assert_eq!(published.chosen[0].method, Method::Ridge(0.0));
    }

    /// Twelve kernels with six counters of noise: some of these go with the power by chance, and are left out.
    #[test]
    fn counters_that_tell_nothing_are_not_used() {
        let (mut nothing, trials) = (0, 12);
        for seed in 0..trials {
            let mut random = Random::seeded(seed);
            let table = Table {
                columns: (0..6).map(|n| format!("c{n}")).collect(),
                rows: (0..12).map(|_| (0..6).map(|_| random.uniform()).collect()).collect(),
                power: (0..12).map(|_| 100.0 + 20.0 * random.symmetric()).collect(),
                groups: (0..12).map(|i| format!("g{i}")).collect(),
                ..table()
            };
            let ranking = Ranking::of(&table, Allowed::All).expect("a choice");
            nothing +=
                u32::from(ranking.chosen.iter().all(|recipe| recipe.form.columns == Columns::NoCounters));
        }
        // 9 of 12 are reached.
        println!("no counters in {nothing} of {trials}");
        assert!(nothing >= 8, "{nothing}");
    }

    /// Groups whose gains are 1, 2 and 3 % of the rows' power: 2 % with a standard error of 0.58; 10, -8 and 4 % are chance.
    #[test]
    fn a_gain_beyond_chance_is_one_of_most_groups() {
        let table = Table {
            power: vec![100.0; 6],
            groups: ["a", "a", "b", "b", "c", "c"].map(str::to_owned).to_vec(),
            rows: vec![vec![0.0]; 6],
            ..Table::default()
        };
        let beyond = |gains: [f64; 3]| {
            let watts: Vec<f64> = (0..6).map(|row| 120.0 - gains[row / 2]).collect();
            is_beyond_chance(&table, &watts, &[120.0; 6])
        };
        assert!(beyond([1.0, 2.0, 3.0]) && !beyond([-1.0, -2.0, -3.0]));
        assert!(!beyond([10.0, -8.0, 4.0]), "2 % with an error of 5.3");
    }

    /// Power that rises with the clock as no line or power of it does.
    #[test]
    fn a_curve_of_the_clock_is_found_by_steps() {
        let mut random = Random::seeded(3);
        let clocks = [800.0, 1000.0, 1200.0, 1400.0, 1600.0];
        let of_clock = [1.0, 1.02, 1.05, 1.5, 1.55];
        let mut table = Table {
            columns: vec!["work".into(), "clock".into()],
            clocks: vec![1],
            rows: Vec::new(),
            power: Vec::new(),
            groups: Vec::new(),
            ..table()
        };
        for kernel in 0..10 {
            let work = random.uniform();
            for (clock, factor) in clocks.iter().zip(of_clock) {
                table.rows.push(vec![work, *clock]);
                table.power.push(60.0 * (1.0 + work) * factor * (1.0 + 0.01 * random.symmetric()));
                table.groups.push(format!("k{kernel}"));
            }
        }
        let ranking = Ranking::of(&table, Allowed::Linear).expect("a choice");
        let best = |by_steps: bool| {
            let found = ranking.choices.iter().find(|choice| choice.recipe.form.clock_steps == by_steps);
            found.expect("such a recipe").error
        };
        println!("by steps {:.4}, without {:.4}", best(true), best(false));
        assert!(best(true) < 0.75 * best(false), "{:?}", &ranking.choices[..3]);
    }

    /// What a recipe says counts as an error in full; in an average it is half of the least power or twice the most.
    #[test]
    fn what_goes_astray_counts_against_a_recipe_and_is_limited_in_averages() {
        let form = Form::plain(Columns::AsGiven, Scale::Linear);
        let recipe = Recipe { form, response: Response::Watts, method: Method::Ridge(0.0) };
        let table = Table { power: vec![10.0, 20.0, 16.0], ..table() };
        // It says 100, 1 and 12 W.
        let judged = Judged::new(recipe, &table, &DVector::from_vec(vec![-90.0, 19.0, 4.0]));
        assert_eq!(judged.watts, [40.0, 5.0, 12.0]);
        assert!((judged.error - (9.0 + 0.95 + 0.25) / 3.0).abs() < 1e-12, "{}", judged.error);
        assert!((mean_error(&table, &[11.0, 18.0, 16.0]) - 0.2 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn methods_have_their_penalties() {
        let methods = [
            Method::Ridge(0.03),
            Method::Robust(0.1),
            Method::NonNegative(0.2),
            Method::Similar { length: 3.0, noise: 0.15 },
            Method::Level,
        ];
        assert_eq!(methods.map(Method::penalty), [0.03, 0.1, 0.2, 0.15, 0.0]);
    }
}

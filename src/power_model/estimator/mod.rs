//! Estimating power from rates as well as the data allow.
//!
//! A model for sampling periods must be a handful of events with straight lines ([`super::fit`]). To estimate watts
//! where no meter is, more is allowed, and what is best differs from data to data: curves of a few events
//! (`curves`) where workloads are few, straight lines in all columns (`lines`) where rows are many, the mean power
//! where nothing tells. So each of these recipes is a candidate, also the average of the best of them, and what was
//! left out of the training data chooses: each recipe learns from all but some of the workloads, with all that it
//! chooses itself, and is judged by those.

use std::fmt;

use super::dataset::Dataset;
use super::error::ModelError;
use super::fit::Weighting;
use super::terms::Shape;
use crate::numerics::folds::Fold;
use crate::numerics::nnls::Sign;
use crate::numerics::quantiles::{interpolated, range};

mod curves;
mod folds;
mod lines;
mod options;

use curves::Curves;
pub(super) use folds::inner_folds;
use lines::Lines;
pub use options::EstimatorOptions;

/// What an estimator may be made of, simplest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// The same power whatever happens.
    Constant,
    /// Least squares over all columns.
    Lines(Sign, Weighting),
    /// An average of small models, also curved ones.
    Curves,
}

impl Recipe {
    const ALL: [Self; 6] = [
        Self::Constant,
        Self::Lines(Sign::NonNegative, Weighting::Absolute),
        Self::Lines(Sign::NonNegative, Weighting::Relative),
        Self::Lines(Sign::Free, Weighting::Absolute),
        Self::Lines(Sign::Free, Weighting::Relative),
        Self::Curves,
    ];

    fn train(self, data: &Dataset, options: &EstimatorOptions) -> Option<Model> {
        match self {
            Self::Constant => Lines::constant(data).map(Model::Lines),
            Self::Lines(sign, weighting) => Lines::fit(data, sign, weighting).map(Model::Lines),
            Self::Curves => Curves::train(data, options).ok().map(Model::Curves),
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("a constant"),
            Self::Lines(sign, weighting) => {
                let signs = if *sign == Sign::Free { "least squares" } else { "non-negative least squares" };
                let errors = match weighting {
                    Weighting::Relative => "relative errors",
                    Weighting::Absolute => "errors in watts",
                };
                write!(f, "{signs} over all columns, {errors}")
            }
            Self::Curves => f.write_str("curves of a few columns, averaged"),
        }
    }
}

/// A recipe's model.
#[derive(Debug, Clone, PartialEq)]
enum Model {
    Lines(Lines),
    Curves(Curves),
}

impl Model {
    fn watts(&self, rates: &[f64]) -> f64 {
        match self {
            Self::Lines(lines) => lines.watts(rates),
            Self::Curves(curves) => curves.watts(rates),
        }
    }
}

/// Power as the average of one or a few models.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimator {
    members: Vec<(Recipe, Model)>,
    limits: Limits,
    expected_error: f64,
}

/// A twentieth of the least power measured (an idle machine takes far less than a busy one) and twice the most. No
/// estimate lies outside: what is so far from all that was seen is a straight line gone astray. The choice of recipes
/// sees them unlimited, so that straying counts against them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits(f64, f64);

impl Limits {
    fn of(data: &Dataset) -> Self {
        let (low, high) = range((0..data.len()).map(|row| data.watts(row)));
        Self(0.05 * low, 2.0 * high)
    }

    fn apply(self, watts: f64) -> f64 {
        watts.max(self.0).min(self.1)
    }
}

/// What is estimated for a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimated {
    /// Power in watts.
    pub watts: f64,
    /// The models alone say more or less: this is as far from all that was measured as an estimate may be.
    pub is_limited: bool,
}

/// Recipes that are averaged: those whose error is at most so many times the least, and at most so many.
const ALIKE: f64 = 1.5;
const MOST_MEMBERS: usize = 3;
/// A more complicated recipe must be better by this share.
const MARGIN: f64 = 0.15;

impl Estimator {
    /// Learns from `data`, and chooses by it alone.
    ///
    /// # Errors
    /// [`ModelError::NoColumns`] if no column varies, [`ModelError::TooFewRows`] if nothing can be fitted.
    pub fn train(data: &Dataset, options: &EstimatorOptions) -> Result<Self, ModelError> {
        let judged = Judged::new(data, options);
        let (recipes, expected_error) = judged.choose();
        let members: Vec<(Recipe, Model)> =
            recipes.into_iter().filter_map(|recipe| Some((recipe, recipe.train(data, options)?))).collect();
        if members.is_empty() {
            return Err(ModelError::TooFewRows { rows: data.len(), coefficients: 2 });
        }
        if members.iter().all(|(recipe, _)| *recipe == Recipe::Constant)
            && super::terms::Terms::of(data, &[Shape::Linear]).list().is_empty()
        {
            return Err(ModelError::NoColumns);
        }
        Ok(Self { members, limits: Limits::of(data), expected_error })
    }

    /// The power estimated for a row of rates, in watts.
    pub fn watts(&self, rates: &[f64]) -> f64 {
        self.estimate(rates).watts
    }

    /// The power estimated for a row of rates, and whether that is what the models say.
    pub fn estimate(&self, rates: &[f64]) -> Estimated {
        let told: Vec<f64> = self.members.iter().map(|(_, model)| model.watts(rates)).collect();
        let watts = together(&mut told.iter().map(|watts| self.limits.apply(*watts)).collect::<Vec<_>>());
        Estimated { watts, is_limited: together(&mut told.clone()) != watts }
    }

    /// The least power and the most that is ever estimated, in watts.
    pub fn limits(&self) -> (f64, f64) {
        (self.limits.0, self.limits.1)
    }

    /// What it is made of.
    pub fn recipes(&self) -> impl Iterator<Item = Recipe> + '_ {
        self.members.iter().map(|(recipe, _)| *recipe)
    }

    /// Mean relative error of what was chosen for workloads it was not trained with, inside the training data.
    pub fn expected_error(&self) -> f64 {
        self.expected_error
    }
}

/// What each recipe says of rows that it was not trained with.
struct Judged {
    /// Recipe, and an estimate for each row.
    left_out: Vec<(Recipe, Vec<f64>)>,
    watts: Vec<f64>,
    /// Rows that count together: workloads, or spans where these are too few.
    parts: Vec<Vec<usize>>,
}

impl Judged {
    fn new(data: &Dataset, options: &EstimatorOptions) -> Self {
        let (folds, _) = inner_folds(data, options.folds);
        let training: Vec<(Fold, Dataset)> = folds
            .iter()
            .map(|part| Fold::holding_out(part, data.len()))
            .map(|fold| {
                let kept = data.only(&fold.kept);
                (fold, kept)
            })
            .collect();
        let estimates = |recipe: Recipe| -> Option<Vec<f64>> {
            let mut estimates = vec![f64::NAN; data.len()];
            for (fold, kept) in &training {
                let model = recipe.train(kept, options)?;
                fold.held_out.iter().for_each(|&row| estimates[row] = model.watts(data.rates(row)));
            }
            Some(estimates)
        };
        let left_out = Recipe::ALL.into_iter().filter_map(|recipe| Some((recipe, estimates(recipe)?)));
        let by_workload = data.by_workload();
        Self {
            left_out: left_out.collect(),
            watts: (0..data.len()).map(|row| data.watts(row)).collect(),
            parts: if by_workload.len() < 3 { folds } else { by_workload },
        }
    }

    /// Error of each part: the mean of |estimate - measured| / measured.
    fn errors(&self, estimates: &[f64]) -> Vec<f64> {
        let of_row = |row: &usize| (estimates[*row] / self.watts[*row] - 1.0).abs();
        self.parts.iter().map(|part| part.iter().map(of_row).sum::<f64>() / part.len() as f64).collect()
    }

    /// The recipes to average, and the error that is to be expected of them.
    fn choose(&self) -> (Vec<Recipe>, f64) {
        let mut ranked: Vec<(f64, Recipe, &[f64])> = self
            .left_out
            .iter()
            .map(|(recipe, estimates)| (score(&self.errors(estimates)), *recipe, estimates.as_slice()))
            .filter(|(error, ..)| error.is_finite())
            .collect();
        // Stable: of equals the simplest is first.
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some(&(least, ..)) = ranked.first() else { return (vec![Recipe::Constant], f64::INFINITY) };
        let simplest = Recipe::ALL.into_iter().find_map(|recipe| {
            ranked.iter().find(|(error, other, _)| *other == recipe && *error <= least * (1.0 + MARGIN))
        });
        let (mut error, mut chosen) =
            simplest.map_or((least, vec![ranked[0].1]), |best| (best.0, vec![best.1]));
        for count in 2..=MOST_MEMBERS.min(ranked.len()) {
            if ranked[count - 1].0 > ALIKE * least {
                break;
            }
            let of_row = |row: usize| {
                together(
                    &mut ranked[..count].iter().map(|(_, _, estimates)| estimates[row]).collect::<Vec<_>>(),
                )
            };
            let averaged: Vec<f64> = (0..self.watts.len()).map(of_row).collect();
            let of_average = score(&self.errors(&averaged));
            if of_average < error {
                (error, chosen) =
                    (of_average, ranked[..count].iter().map(|(_, recipe, _)| *recipe).collect());
            }
        }
        (chosen, error)
    }
}

/// What several models say together: of three the middle one, so that one gone astray has no say.
fn together(watts: &mut [f64]) -> f64 {
    watts.sort_by(f64::total_cmp);
    interpolated(watts, 0.5).unwrap_or(f64::NAN)
}

/// One figure for the errors of all parts: their mean. (On the recordings of tests/library/power_choice.rs the geometric
/// mean and the median, which forgive a part that goes astray, choose worse.)
fn score(errors: &[f64]) -> f64 {
    errors.iter().sum::<f64>() / errors.len() as f64
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;

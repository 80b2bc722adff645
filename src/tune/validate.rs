//! How well the model predicts settings it has not seen: leave-one-out and k-fold cross validation.

use super::TuneError;
use super::formula::Formula;
use super::model::LogModel;
use super::runs::{Axis, Measurements};
use super::space::Space;
use crate::numerics::folds::{Fold, random_parts};
use crate::numerics::random::Random;

/// Relative errors of predictions against what was measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Errors {
    /// Predicted over measured, minus 1.
    pub relative: Vec<f64>,
    /// Settings that could not be predicted, as the others do not determine the model.
    pub undetermined: usize,
}

impl Errors {
    /// Root mean square; `None` if nothing could be predicted.
    pub fn root_mean_square(&self) -> Option<f64> {
        let squares: f64 = self.relative.iter().map(|error| error.powi(2)).sum();
        (!self.relative.is_empty()).then(|| (squares / self.relative.len() as f64).sqrt())
    }

    /// Share of the predictions that are wrong by less than `limit`.
    pub fn share_below(&self, limit: f64) -> Option<f64> {
        let below = self.relative.iter().filter(|error| error.abs() < limit).count();
        (!self.relative.is_empty()).then(|| below as f64 / self.relative.len() as f64)
    }
}

/// Predicts every setting by the model fitted to all others.
pub fn leave_one_out(model: &LogModel) -> Errors {
    let mut errors = Errors::default();
    for error in model.leave_one_out() {
        match error {
            Some(error) => errors.relative.push(error),
            None => errors.undetermined += 1,
        }
    }
    errors
}

/// Divides the settings into `folds` equal parts at random (reproducibly, by the seed) and predicts
/// each part by the model fitted to the others; one result per part.
///
/// # Errors
/// None for parts that the others do not determine: those are counted as undetermined.
pub fn k_fold(
    formula: &Formula,
    space: &Space,
    measured: &Measurements,
    axis: Axis,
    folds: usize,
    seed: u64,
) -> Result<Vec<Errors>, TuneError> {
    let count = measured.settings().len();
    let mut results = Vec::with_capacity(folds);
    for part in random_parts(count, folds, &mut Random::seeded(seed)) {
        let Fold { held_out, kept } = Fold::holding_out(&part, count);
        let model = match LogModel::fit(formula, space, &measured.only(&kept), axis) {
            Ok(model) => model,
            Err(TuneError::RankDeficient { .. } | TuneError::NoRuns) => {
                results.push(Errors { relative: Vec::new(), undetermined: held_out.len() });
                continue;
            }
            Err(other) => return Err(other),
        };
        let error = |&index: &usize| {
            let measured = &measured.settings()[index];
            model.predict(&measured.setting, 0.95).value / measured.value(axis) - 1.0
        };
        results.push(Errors { relative: held_out.iter().map(error).collect(), undetermined: 0 });
    }
    Ok(results)
}

/// The results of all folds as one.
pub fn pooled(folds: &[Errors]) -> Errors {
    Errors {
        relative: folds.iter().flat_map(|fold| &fold.relative).copied().collect(),
        undetermined: folds.iter().map(|fold| fold.undetermined).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::super::runs::{Responses, Run};
    use super::*;

    fn grid() -> (Space, Measurements) {
        let variables = ["threads=1..8", "freq=1,2,3"].map(|text| parse_named_variable(text).expect("valid"));
        let space = Space::new(variables.into()).expect("valid");
        let runs: Vec<Run> = space
            .settings()
            .enumerate()
            .map(|(index, setting)| {
                let wobble = 1.0 + 0.01 * ((index * 7 % 5) as f64 - 2.0);
                let threads = setting.0[0].number().expect("a number");
                Run { setting, values: [wobble / threads, wobble] }
            })
            .collect();
        let measured = Measurements::gather(Responses::Totals, &runs).expect("valid");
        (space, measured)
    }

    #[test]
    fn one_fold_per_setting_is_leave_one_out() {
        let (space, measured) = grid();
        let formula = Formula::usual(&space);
        let model = LogModel::fit(&formula, &space, &measured, Axis::Speed).expect("determined");
        let mut shortcut = leave_one_out(&model).relative;
        let folds = k_fold(&formula, &space, &measured, Axis::Speed, 24, 5).expect("valid");
        let mut refitted = pooled(&folds).relative;
        shortcut.sort_by(f64::total_cmp);
        refitted.sort_by(f64::total_cmp);
        assert_eq!(shortcut.len(), 24);
        assert!(shortcut.iter().zip(&refitted).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn three_folds_predict_every_setting_once() {
        let (space, measured) = grid();
        let folds = k_fold(&Formula::usual(&space), &space, &measured, Axis::Energy, 3, 1).expect("valid");
        assert_eq!(folds.iter().map(|fold| fold.relative.len()).collect::<Vec<_>>(), [8, 8, 8]);
        let all = pooled(&folds);
        assert!(all.root_mean_square().expect("predicted") < 0.05);
        assert_eq!(all.share_below(0.2), Some(1.0));
    }

    #[test]
    fn folds_that_determine_nothing_are_counted() {
        let (space, measured) = grid();
        let few = measured.only(&[0, 1, 2, 5, 9, 12, 17, 20, 23]);
        let folds = k_fold(&Formula::usual(&space), &space, &few, Axis::Energy, 3, 1).expect("valid");
        assert_eq!(pooled(&folds).undetermined, 9);
        assert_eq!(pooled(&folds).root_mean_square(), None);
    }
}

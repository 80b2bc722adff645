//! Which formula the runs of a tuning choose, each setting predicted by the others.

use super::TuneError;
use super::formula::Formula;
use super::model::LogModel;
use super::runs::{AXES, Axis, Measurements};
use super::space::Space;
use crate::numerics::least_squares::LeastSquares;

/// Another form must predict settings that it has not seen better than the usual one by this factor.
const CLEARLY: f64 = 0.9;
/// With fewer settings to spare, a form that suits them is one that suits their noise, and a degree of freedom for
/// having chosen would leave intervals that say nothing.
const SPARE: usize = 4;
/// Cells of a design matrix beyond which a second formula is not worth its time.
const MOST_CELLS: usize = 2_000_000;

/// The models of both responses by the usual formula, unless another one predicts settings that it has not seen clearly
/// better, by the runs alone. Of curves both have the same form; of laws each may have its own.
///
/// # Errors
/// As [`LogModel::fit`], for the usual formula.
pub(super) fn best_forms(space: &Space, measured: &Measurements) -> Result<[LogModel; 2], TuneError> {
    let [speed, energy] = best_curves(space, measured)?;
    Ok([(Axis::Speed, speed), (Axis::Energy, energy)]
        .map(|(axis, curve)| best_law(space, measured, axis, curve)))
}

/// Models of both responses by one formula.
///
/// # Errors
/// As [`LogModel::fit`].
pub(super) fn fit(
    formula: &Formula,
    space: &Space,
    measured: &Measurements,
) -> Result<[LogModel; 2], TuneError> {
    formula.check_size()?;
    let [speed, energy] = AXES.map(|axis| LogModel::fit(formula, space, measured, axis));
    Ok([speed?, energy?])
}

fn best_curves(space: &Space, measured: &Measurements) -> Result<[LogModel; 2], TuneError> {
    let settings = measured.settings().len();
    let error =
        |models: &[LogModel; 2]| models.iter().map(|model| left_out(&[model]).powi(2)).sum::<f64>().sqrt();
    let usual = Formula::usual(space);
    let mut best = fit(&usual, space, measured)?;
    for formula in Formula::candidates(space).into_iter().skip(1) {
        let is_other_form = formula.coefficients() <= usual.coefficients();
        if formula.coefficients() * settings > MOST_CELLS
            || (is_other_form && settings < formula.coefficients() + SPARE)
        {
            continue;
        }
        // A formula that the runs do not determine is no candidate.
        if let Ok(models) = fit(&formula, space, measured)
            && error(&models) < CLEARLY * error(&best)
        {
            best = if is_other_form { models.map(LogModel::chosen_among_others) } else { models };
        }
    }
    Ok(best)
}

/// A curve, or the law that is clearly better.
fn best_law(space: &Space, measured: &Measurements, axis: Axis, curve: LogModel) -> LogModel {
    let settings = measured.settings().len();
    let models: Vec<LogModel> = Formula::scaling_laws(space)
        .iter()
        .filter(|formula| formula.coefficients() * settings <= MOST_CELLS)
        // One more, as the share of serial work is a coefficient, too.
        .filter(|formula| settings > formula.coefficients() + SPARE)
        .filter_map(|formula| LogModel::fit(formula, space, measured, axis).ok())
        .collect();
    let models: Vec<&LogModel> = models.iter().collect();
    let least = left_out(&[&curve]);
    match closest(&models) {
        // The share of serial work was chosen by the runs, as a coefficient is, and the law besides. Where a curve passes
        // through all settings, nothing tells that it is worse.
        Some(law) if least.is_finite() && left_out(&models) < CLEARLY * least => {
            law.clone().chosen_among_others().chosen_among_others()
        }
        _ => curve,
    }
}

/// The model with the least sum of squares: of laws that differ in a number, the one that the runs choose.
fn closest<'a>(models: &[&'a LogModel]) -> Option<&'a LogModel> {
    let squares = |model: &LogModel| model.least_squares().residuals().iter().map(|r| r * r).sum::<f64>();
    models.iter().min_by(|a, b| squares(a).total_cmp(&squares(b))).copied()
}

/// The sum of squares of the fit of all others, by which is left out.
pub(super) fn squares_without(fit: &LeastSquares) -> Vec<f64> {
    let squares: f64 = fit.residuals().iter().map(|residual| residual * residual).sum();
    let without = |(residual, leverage): (&f64, &f64)| squares - residual * residual / (1.0 - leverage);
    fit.residuals().iter().zip(fit.leverages()).map(without).collect()
}

/// Root mean square relative error of each setting as predicted by the others, which also choose among the models:
/// infinite where they do not determine one.
fn left_out(models: &[&LogModel]) -> f64 {
    let Some(first) = models.first() else { return f64::INFINITY };
    let of_model = |model: &&LogModel| (squares_without(model.least_squares()), model.leave_one_out());
    let all: Vec<(Vec<f64>, Vec<Option<f64>>)> = models.iter().map(of_model).collect();
    let count = first.least_squares().residuals().len();
    let of_setting = |at: usize| -> Option<f64> {
        let determined = all.iter().filter(|(_, errors)| errors[at].is_some());
        let chosen = determined.min_by(|a, b| a.0[at].total_cmp(&b.0[at]))?;
        chosen.1[at].map(|error| error * error)
    };
    let squares: Option<f64> = (0..count).map(of_setting).sum();
    squares.map_or(f64::INFINITY, |squares| (squares / count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;

    use super::super::levels::parse_named_variable;
    use super::super::runs::{Responses, Run};
    use super::*;

    /// Means of 1, 2 and 6 without one of them are 4, 3.5 and 1.5.
    #[test]
    fn squares_without_one_are_those_of_a_fit_of_the_others() {
        let fit = LeastSquares::fit(&DMatrix::from_element(3, 1, 1.0), &[1.0, 2.0, 6.0]).expect("a column");
        for (found, expected) in squares_without(&fit).into_iter().zip([8.0, 12.5, 0.5]) {
            assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
        }
    }

    /// Of runs that all take a second and a joule the curve says so without an error: no law is better than that.
    #[test]
    fn a_law_that_is_as_good_as_the_curve_is_not_taken() {
        let space = Space::new(vec![parse_named_variable("threads=1..12").expect("valid")]).expect("valid");
        let runs: Vec<Run> = space.settings().map(|setting| Run { setting, values: [1.0, 1.0] }).collect();
        let measured = Measurements::gather(Responses::Totals, &runs).expect("positive");
        let curve =
            LogModel::fit(&Formula::usual(&space), &space, &measured, Axis::Energy).expect("settings");
        assert_eq!(left_out(&[&curve]), 0.0);
        let law = &Formula::scaling_laws(&space)[0];
        let law = LogModel::fit(law, &space, &measured, Axis::Energy).expect("settings enough");
        assert_eq!(left_out(&[&law]), 0.0);
        let chosen = best_law(&space, &measured, Axis::Energy, curve.clone());
        assert_eq!(chosen.formula(), curve.formula());
    }
}

//! The log-B-spline model: `ln(y) ~ terms`, fitted by least squares, predicting by `exp`.
//!
//! After Endrei et al., "Energy Efficiency Modeling of Parallel Applications" (SC 2018). One
//! observation is one setting: the mean logarithm of its runs. The variance of such an observation
//! about the model is taken from the residuals; with as many coefficients as settings there are
//! none, and the spread of repeated runs stands in for it.

use nalgebra::DMatrix;

use super::TuneError;
use super::formula::Formula;
use super::runs::{Axis, Measurements};
use super::space::{Setting, Space};
use crate::numerics::least_squares::LeastSquares;
use crate::numerics::student::t_quantile;

/// A value with an interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value itself.
    pub value: f64,
    /// Lower and upper end; `None` where the runs say nothing of their error.
    pub interval: Option<(f64, f64)>,
}

/// A model of one response.
#[derive(Debug, Clone)]
pub struct LogModel {
    formula: Formula,
    fit: LeastSquares,
    /// Variance of an observation's logarithm, and the degrees of freedom it was found with.
    variance: Option<(f64, usize)>,
}

impl LogModel {
    /// Fits the response `axis` of the measurements.
    ///
    /// # Errors
    /// [`TuneError::RankDeficient`] if the settings that were run do not determine every
    /// coefficient; it says how many runs are needed, and of which variable.
    pub fn fit(
        formula: &Formula,
        space: &Space,
        measured: &Measurements,
        axis: Axis,
    ) -> Result<Self, TuneError> {
        let settings = measured.settings();
        let rows: Vec<f64> = settings.iter().flat_map(|measured| formula.row(&measured.setting)).collect();
        let design = DMatrix::from_row_slice(settings.len(), formula.coefficients(), &rows);
        let response: Vec<f64> = settings.iter().map(|measured| measured.log_mean[axis as usize]).collect();
        let fit = LeastSquares::fit(&design, &response).map_err(|deficient| TuneError::RankDeficient {
            formula: formula.to_string(),
            coefficients: formula.coefficients(),
            rank: deficient.rank,
            settings: settings.len(),
            details: what_is_missing(formula, space, measured),
        })?;
        let from_residuals = fit.residual_variance().map(|variance| (variance, fit.degrees_of_freedom()));
        let variance = from_residuals.or_else(|| measured.mean_error(axis));
        Ok(Self { formula: formula.clone(), fit, variance })
    }

    /// The same model with one degree of freedom less behind its error: for having been chosen among several because
    /// it suits these runs. As it is with the last one, which tells what error is left.
    pub(super) fn chosen_among_others(mut self) -> Self {
        if let Some((variance, freedom)) = &mut self.variance
            && *freedom > 1
        {
            *variance *= *freedom as f64 / (*freedom - 1) as f64;
            *freedom -= 1;
        }
        self
    }

    /// The terms.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// The fit behind the model, for its diagnostics.
    pub fn least_squares(&self) -> &LeastSquares {
        &self.fit
    }

    /// Standard error of each coefficient, if the error is known.
    pub fn standard_errors(&self) -> Option<Vec<f64>> {
        self.variance.map(|(variance, _)| self.fit.standard_errors(variance))
    }

    /// Variance of an observation's logarithm about the model and the degrees of freedom behind it;
    /// `None` where the runs say nothing of their error.
    pub fn variance(&self) -> Option<(f64, usize)> {
        self.variance
    }

    /// The expected value at a setting.
    pub fn value_at(&self, setting: &Setting) -> f64 {
        self.fit.predict(&self.formula.row(setting)).exp()
    }

    /// The expected value at a setting, with the interval in which a new measurement of it will lie
    /// with probability `level`.
    pub fn predict(&self, setting: &Setting, level: f64) -> Estimate {
        let row = self.formula.row(setting);
        self.estimate(self.fit.predict(&row), 1.0 + self.fit.leverage_of(&row), level)
    }

    /// The expected value at a setting, with the confidence interval of that expectation.
    pub fn expect(&self, setting: &Setting, level: f64) -> Estimate {
        let row = self.formula.row(setting);
        self.estimate(self.fit.predict(&row), self.fit.leverage_of(&row), level)
    }

    /// The expected ratio of a setting's value to another's, with its confidence interval. It is
    /// narrower than that of each: what both have in common cancels out.
    pub fn ratio(&self, setting: &Setting, reference: &Setting, level: f64) -> Estimate {
        let mut row = self.formula.row(setting);
        for (value, other) in row.iter_mut().zip(self.formula.row(reference)) {
            *value -= other;
        }
        self.estimate(self.fit.predict(&row), self.fit.leverage_of(&row), level)
    }

    /// Variance of the prediction at a setting as a multiple of one observation's variance.
    pub fn leverage_of(&self, setting: &Setting) -> f64 {
        self.fit.leverage_of(&self.formula.row(setting))
    }

    /// Relative error of each measured setting as predicted by the model fitted without it; `None`
    /// where the others do not determine the model.
    pub fn leave_one_out(&self) -> Vec<Option<f64>> {
        self.fit
            .leave_one_out_residuals()
            .into_iter()
            .map(|residual| residual.map(|residual| (-residual).exp_m1()))
            .collect()
    }

    fn estimate(&self, log: f64, leverage: f64, level: f64) -> Estimate {
        let interval = self.variance.and_then(|(variance, freedom)| {
            let half = t_quantile(level, freedom)? * (variance * leverage).sqrt();
            Some(((log - half).exp(), (log + half).exp()))
        });
        Estimate { value: log.exp(), interval }
    }
}

/// Which variables have too few values, in a form that can be appended to the error.
fn what_is_missing(formula: &Formula, space: &Space, measured: &Measurements) -> String {
    let mut lacking = Vec::new();
    for (index, needed) in formula.levels_needed() {
        let variable = &space.variables()[index];
        let mut present: Vec<String> = measured
            .settings()
            .iter()
            .filter_map(|measured| Some(variable.show(measured.setting.0.get(index)?)))
            .collect();
        present.sort_unstable();
        present.dedup();
        if present.len() < needed {
            lacking.push(format!(
                "{} needs {needed} different values and has {}",
                variable.name,
                present.len()
            ));
        }
    }
    match lacking.is_empty() {
        true if measured.settings().len() >= formula.coefficients() && space.variables().len() > 1 => {
            ": combine the variables' values more evenly (`--plan` prints settings that do)".into()
        }
        true => " (`--plan` prints settings that do)".into(),
        false => format!(
            ": {} (`--plan` prints settings that do; `--formula` takes a smaller model)",
            lacking.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::super::runs::{Responses, Run};
    use super::super::space::Level;
    use super::*;

    fn space(variables: &[&str]) -> Space {
        Space::new(variables.iter().map(|text| parse_named_variable(text).expect("valid")).collect())
            .expect("valid")
    }

    fn runs(space: &Space, keep: impl Fn(usize) -> bool, time: impl Fn(f64, f64) -> f64) -> Measurements {
        let runs: Vec<Run> = (0..space.size())
            .filter(|&position| keep(position))
            .map(|position| {
                let setting = space.setting(position);
                let at = |index: usize| setting.0[index].number().expect("a number");
                let time = time(at(0), at(1));
                Run { setting, values: [time, 10.0 * time] }
            })
            .collect();
        Measurements::gather(Responses::Totals, &runs).expect("valid")
    }

    #[test]
    fn a_surface_of_the_models_own_form_is_found_exactly() {
        let space = space(&["threads=4..44:4", "freq=1.2..2.2GHz"]);
        let surface = |threads: f64, freq: f64| {
            (3.0 - 0.05 * threads + 0.0006 * threads * threads - 0.4 * freq + 0.002 * threads * freq).exp()
        };
        let measured = runs(&space, |position| position % 7 == 0, surface);
        let model = LogModel::fit(&Formula::as_in_the_paper(&space), &space, &measured, Axis::Speed)
            .expect("determined");
        for setting in space.settings() {
            let at = |index: usize| setting.0[index].number().expect("a number");
            let expected = surface(at(0), at(1));
            assert!((model.predict(&setting, 0.95).value / expected - 1.0).abs() < 1e-9);
        }
        assert!(model.leave_one_out().iter().flatten().all(|error| error.abs() < 1e-8));
    }

    #[test]
    fn too_few_runs_are_refused_with_the_number_needed() {
        let space = space(&["threads=4..44:4", "freq=1.2..2.2GHz"]);
        let measured = runs(&space, |position| position < 7, |threads, freq| threads / freq);
        let error = LogModel::fit(&Formula::usual(&space), &space, &measured, Axis::Speed)
            .expect_err("one thread count");
        let text = error.to_string();
        assert!(text.contains("8 coefficients"), "{text}");
        assert!(text.contains("at least 8 different settings"), "{text}");
        assert!(text.contains("threads needs 4 different values and has 1"), "{text}");
    }

    #[test]
    fn a_ratio_to_itself_is_exactly_one() {
        let space = space(&["threads=1..8", "freq=1,2,3"]);
        let mut turn = 0.0;
        let measured = runs(&space, |_| true, |threads, freq| threads + freq);
        let model =
            LogModel::fit(&Formula::usual(&space), &space, &measured, Axis::Energy).expect("determined");
        for setting in space.settings() {
            let ratio = model.ratio(&setting, &setting, 0.95);
            assert_eq!(ratio.interval, Some((1.0, 1.0)));
            let (low, high) = model.predict(&setting, 0.95).interval.expect("an error is known");
            let (inner_low, inner_high) = model.expect(&setting, 0.95).interval.expect("an error is known");
            assert!(low < inner_low && inner_low < inner_high && inner_high < high);
            turn += ratio.value;
        }
        assert_eq!(turn, 24.0);
    }

    #[test]
    fn without_spare_settings_repeats_tell_the_error() {
        let space = space(&["threads=1..2"]);
        let run = |threads: f64, time: f64| Run {
            setting: Setting(vec![Level::Number(threads)]),
            values: [time, time],
        };
        let once = Measurements::gather(Responses::Totals, &[run(1.0, 2.0), run(2.0, 1.0)]).expect("valid");
        let model = LogModel::fit(&Formula::usual(&space), &space, &once, Axis::Speed).expect("determined");
        assert_eq!(model.predict(&space.setting(0), 0.95).interval, None);
        let twice = Measurements::gather(
            Responses::Totals,
            &[run(1.0, 2.0), run(2.0, 1.0), run(1.0, 2.2), run(2.0, 1.1)],
        )
        .expect("valid");
        let model = LogModel::fit(&Formula::usual(&space), &space, &twice, Axis::Speed).expect("determined");
        assert!(model.predict(&space.setting(0), 0.95).interval.is_some());
    }

    /// Having been chosen costs a degree of freedom, but for the last one: of 4 on three of them the sum of squares stays 12.
    #[test]
    fn a_choice_costs_a_degree_of_freedom() {
        let space = space(&["threads=1..8", "freq=1,2,3"]);
        let measured = runs(&space, |_| true, |threads, freq| threads + freq);
        let mut model =
            LogModel::fit(&Formula::usual(&space), &space, &measured, Axis::Energy).expect("determined");
        model.variance = Some((4.0, 3));
        for expected in [(6.0, 2), (12.0, 1), (12.0, 1)] {
            model = model.chosen_among_others();
            assert_eq!(model.variance, Some(expected));
        }
    }
}

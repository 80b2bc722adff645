//! The fit that periods are made of: watts as a constant plus joules per event, with standard errors.

use nalgebra::{DMatrix, DVector};

use super::by_workload;
use super::dataset::Dataset;
use super::error::ModelError;
use crate::numerics::folds::Part;
use crate::numerics::least_squares::LeastSquares;
use crate::numerics::nnls::Sign;
use crate::numerics::normal_equations::NormalEquations;

/// How a model is fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOptions {
    /// Signs of the event coefficients. The constant is never negative.
    pub sign: Sign,
    /// What is made small.
    pub weighting: Weighting,
    /// What is believed before the data are seen.
    pub prior: Option<Prior>,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self { sign: Sign::NonNegative, weighting: Weighting::Relative, prior: None }
    }
}

/// Which errors least squares makes small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighting {
    /// Errors relative to the measured power: a watt counts more when idle.
    Relative,
    /// Errors in watts.
    Absolute,
}

/// A model that the fit is drawn to, as ridge regression draws to zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// Joules per event, one per column.
    pub coefficients: Vec<f64>,
    /// How much it counts: 1 weighs as much as all data together, 0 nothing.
    pub strength: f64,
}

/// One coefficient and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// Watts for the constant, joules per event (watts per unit of rate) else.
    pub value: f64,
    /// Its standard error, by leaving workloads out, or by the scatter of the rows where there are fewer than three
    /// ([`Fit::workloads`]); `None` if it is held at zero by its sign.
    pub std_error: Option<f64>,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Names of the events, in the order of `coefficients`.
    pub columns: Vec<String>,
    /// Power with no event at all.
    pub constant: Coefficient,
    /// Cost of each event.
    pub coefficients: Vec<Coefficient>,
    /// Share of the variance of watts that the model explains.
    pub r_squared: f64,
    /// Condition number of the weighted design with columns scaled to length one: above about 30 the
    /// coefficients depend on each other.
    pub condition: f64,
    /// Mean of |estimate - measured| / measured over the rows of the fit.
    pub mean_error: f64,
    /// Rows fitted.
    pub rows: usize,
    /// Workloads that were left out in turn for the standard errors; `None` if there were fewer than three, and
    /// errors are those of rows that have nothing to do with each other.
    pub workloads: Option<usize>,
}

/// A design worse than this has columns that differ by less than meters and counters can tell.
const LARGEST_CONDITION: f64 = 1e4;
/// Columns that take part in a near dependency have at least this share of the largest part.
const PART_OF_DEPENDENCY: f64 = 0.1;

impl Fit {
    /// Fits all columns of `data`.
    ///
    /// # Errors
    /// [`ModelError::TooFewRows`], [`ModelError::Constant`], [`ModelError::OutOfRange`], [`ModelError::Collinear`],
    /// [`ModelError::NoColumns`] or [`ModelError::PriorMismatch`].
    pub fn new(data: &Dataset, options: &FitOptions) -> Result<Self, ModelError> {
        let columns = data.columns().len();
        if columns == 0 {
            return Err(ModelError::NoColumns);
        }
        if data.len() < columns + 2 {
            return Err(ModelError::TooFewRows { rows: data.len(), coefficients: columns + 1 });
        }
        check_range(data)?;
        check_variation(data)?;
        let system = System::of(data, options)?;
        let condition = system.condition(data.columns())?;
        let equations = NormalEquations::of_rows(&system.design, &system.target);
        let active = active(&equations, options.sign)?;
        let parts = data.by_workload();
        let (solution, std_errors) = system.solve(&equations, &active, options.sign, &parts)?;
        let value = |index: usize| Coefficient {
            value: solution[index],
            std_error: active[index].then_some(std_errors[index]),
        };
        let mut fit = Self {
            columns: data.columns().to_vec(),
            constant: value(0),
            coefficients: (1..=columns).map(value).collect(),
            r_squared: 0.0,
            condition,
            mean_error: 0.0,
            rows: data.len(),
            workloads: (parts.len() >= by_workload::FEWEST_WORKLOADS).then_some(parts.len()),
        };
        let mean = (0..data.len()).map(|row| data.watts(row)).sum::<f64>() / data.len() as f64;
        let (mut residual, mut total, mut relative) = (0.0, 0.0, 0.0);
        for row in 0..data.len() {
            let error = fit.watts(data.rates(row)) - data.watts(row);
            residual += error * error;
            total += (data.watts(row) - mean).powi(2);
            relative += (error / data.watts(row)).abs();
        }
        fit.r_squared = if total > 0.0 { 1.0 - residual / total } else { 0.0 };
        fit.mean_error = relative / data.len() as f64;
        Ok(fit)
    }

    /// The power of a row of rates, in watts.
    pub fn watts(&self, rates: &[f64]) -> f64 {
        self.constant.value
            + rates.iter().zip(&self.coefficients).map(|(rate, c)| rate * c.value).sum::<f64>()
    }

    /// Variance inflation has no meaning to most; this says it in words where it matters.
    pub fn is_ill_conditioned(&self) -> bool {
        const TROUBLING: f64 = 30.0;
        self.condition > TROUBLING
    }
}

fn check_variation(data: &Dataset) -> Result<(), ModelError> {
    const LEAST_VARIATION: f64 = 1e-4;
    for (column, name) in data.columns().iter().enumerate() {
        let (low, high) = data
            .column(column)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rate| (low.min(rate), high.max(rate)));
        if high - low <= LEAST_VARIATION * low.abs().max(high.abs()) {
            return Err(ModelError::Constant(name.clone()));
        }
    }
    Ok(())
}

/// Refuses values whose squares are no numbers any more.
///
/// # Errors
/// [`ModelError::OutOfRange`] with the first column that has such values, [`ModelError::TooLittlePower`] where they come
/// about by a division by the power.
pub(super) fn check_range(data: &Dataset) -> Result<(), ModelError> {
    for column in 0..=data.columns().len() {
        let largest = largest_of_design(data, column);
        let square = largest * largest * data.len() as f64;
        if largest != 0.0 && !square.is_normal() {
            return Err(out_of_range(data, column));
        }
    }
    // Errors are relative, so that all is divided by the power.
    let least = (0..data.len()).map(|row| data.watts(row)).fold(f64::INFINITY, f64::min);
    let divided =
        |row: usize| data.rates(row).iter().fold(1.0f64, |max, rate| max.max(rate.abs())) / data.watts(row);
    let largest = (0..data.len()).map(divided).fold(0.0, f64::max);
    if (largest * largest * data.len() as f64).is_finite() {
        Ok(())
    } else {
        Err(ModelError::TooLittlePower { least })
    }
}

/// Of a column of the design without its sign; the first stands for the power.
fn largest_of_design(data: &Dataset, column: usize) -> f64 {
    let of_row = |row: usize| column.checked_sub(1).map_or(data.watts(row), |column| data.rates(row)[column]);
    (0..data.len()).map(|row| of_row(row).abs()).fold(0.0, f64::max)
}

fn out_of_range(data: &Dataset, column: usize) -> ModelError {
    let name = column.checked_sub(1).map(|column| format!("column `{}`", data.columns()[column]));
    let what = name.unwrap_or_else(|| "the power".to_owned());
    ModelError::OutOfRange { what, largest: largest_of_design(data, column) }
}

/// The weighted design, a constant first, with columns scaled to length one.
struct System {
    design: DMatrix<f64>,
    target: DVector<f64>,
    scale: Vec<f64>,
    /// Rows that are data, not prior.
    data_rows: usize,
}

impl System {
    fn of(data: &Dataset, options: &FitOptions) -> Result<Self, ModelError> {
        let (rows, columns) = (data.len(), data.columns().len());
        let prior = options.prior.as_ref().filter(|prior| prior.strength > 0.0);
        if let Some(prior) = prior
            && prior.coefficients.len() != columns
        {
            return Err(ModelError::PriorMismatch { prior: prior.coefficients.len(), columns });
        }
        let prior_rows = if prior.is_some() { columns } else { 0 };
        let mut design = DMatrix::zeros(rows + prior_rows, columns + 1);
        let mut target = DVector::zeros(rows + prior_rows);
        for row in 0..rows {
            let weight = match options.weighting {
                Weighting::Relative => 1.0 / data.watts(row),
                Weighting::Absolute => 1.0,
            };
            design[(row, 0)] = weight;
            for (column, rate) in data.rates(row).iter().enumerate() {
                design[(row, column + 1)] = weight * rate;
            }
            target[row] = weight * data.watts(row);
        }
        let scale: Vec<f64> = (0..=columns).map(|column| design.column(column).norm()).collect();
        for (column, scale) in scale.iter().enumerate() {
            if !(*scale > 0.0 && scale.is_finite()) {
                return Err(out_of_range(data, column));
            }
            design.column_mut(column).unscale_mut(*scale);
        }
        // The prior is one more observation of each coefficient, as heavy as `strength` times the data.
        if let Some(prior) = prior {
            for (column, coefficient) in prior.coefficients.iter().enumerate() {
                let weight = prior.strength.sqrt();
                design[(rows + column, column + 1)] = weight;
                target[rows + column] = weight * coefficient * scale[column + 1];
            }
        }
        Ok(Self { design, target, scale, data_rows: rows })
    }

    /// The condition number, or which columns make it too large.
    fn condition(&self, names: &[String]) -> Result<f64, ModelError> {
        let decomposition = self.design.clone().svd(false, true);
        let values = &decomposition.singular_values;
        let condition = values.max() / values.min();
        if condition <= LARGEST_CONDITION {
            return Ok(condition);
        }
        let Some(vectors) = decomposition.v_t else { return Ok(condition) };
        let weakest = vectors.row(values.imin());
        let largest = weakest.iter().fold(0.0f64, |max, part| max.max(part.abs()));
        let columns: Vec<String> = (1..weakest.len())
            .filter(|&index| weakest[index].abs() > PART_OF_DEPENDENCY * largest)
            .map(|index| names[index - 1].clone())
            .collect();
        match columns.as_slice() {
            [] => Err(ModelError::PriorTooStrong { condition }),
            [single] => Err(ModelError::Constant(single.clone())),
            _ => Err(ModelError::Collinear { columns, condition }),
        }
    }

    /// The coefficients of all columns that are found without some rows, scaled as the design is.
    fn without(&self, all: &NormalEquations, rows: &[usize], sign: Sign) -> Option<Vec<f64>> {
        let columns: Vec<usize> = (0..self.design.ncols()).collect();
        let mut kept = all.clone();
        kept.add(
            &NormalEquations::of_rows(&self.design.select_rows(rows), &self.target.select_rows(rows)),
            -1.0,
        );
        kept.solve(&columns, sign)
    }

    /// Coefficients and their standard errors, by orthogonal decomposition of the active columns.
    fn solve(
        &self,
        equations: &NormalEquations,
        active: &[bool],
        sign: Sign,
        workloads: &[Part],
    ) -> Result<(Vec<f64>, Vec<f64>), ModelError> {
        let index: Vec<usize> = (0..active.len()).filter(|&column| active[column]).collect();
        let mut solution = vec![0.0; active.len()];
        let mut std_errors = vec![0.0; active.len()];
        if index.is_empty() {
            return Ok((solution, std_errors));
        }
        let design = self.design.select_columns(&index);
        let target = self.target.as_slice();
        let fit = LeastSquares::fit(&design, target).map_err(|_| ModelError::NoColumns)?;
        // The prior's rows say nothing of how the data scatter.
        let data_residual: f64 = fit.residuals()[..self.data_rows].iter().map(|error| error * error).sum();
        let freedom = self.data_rows.saturating_sub(index.len()).max(1);
        let moved_without = |rows: &[usize]| {
            if sign == Sign::Free {
                return None;
            }
            let without = self.without(equations, rows, sign)?;
            let is_other = without.iter().zip(active).any(|(value, active)| (*value != 0.0) != *active);
            let is_free = |column: &usize| active[*column] || without[*column] != 0.0;
            let free: Vec<usize> = (0..active.len()).filter(is_free).collect();
            if !is_other || by_workload::is_told_by_them_alone(&self.design.select_columns(&free), rows) {
                return None;
            }
            let moved = |(at, &column): (usize, &usize)| without[column] - fit.coefficients()[at];
            Some(index.iter().enumerate().map(moved).collect())
        };
        let errors = by_workload::standard_errors(&design, target, fit.residuals(), workloads, moved_without)
            .unwrap_or_else(|| fit.standard_errors(data_residual / freedom as f64));
        for (at, &column) in index.iter().enumerate() {
            solution[column] = fit.coefficients()[at] / self.scale[column];
            std_errors[column] = errors[at] / self.scale[column];
        }
        Ok((solution, std_errors))
    }
}

/// Which coefficients are not held at zero.
fn active(equations: &NormalEquations, sign: Sign) -> Result<Vec<bool>, ModelError> {
    let columns: Vec<usize> = (0..equations.columns()).collect();
    let Some(solution) = equations.solve(&columns, sign) else { return Err(ModelError::NoColumns) };
    Ok(match sign {
        Sign::Free => vec![true; columns.len()],
        Sign::NonNegative | Sign::NonPositive => solution.iter().map(|value| *value != 0.0).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::quantiles;
    use crate::numerics::random::Random;
    use crate::power_model::dataset::Observation;

    /// 10 W and 2 nJ per `a`, 30 nJ per `b`, with a deterministic ripple of `noise` watts.
    fn machine(noise: f64) -> Dataset {
        let mut data = Dataset::new(vec!["a".into(), "b".into()]);
        for row in 0..60 {
            let a = 1e9 * f64::from(row % 10);
            let b = 1e8 * f64::from((row * 7) % 11);
            let ripple = noise * f64::from((row * 13) % 5 - 2);
            let watts = 10.0 + 2e-9 * a + 30e-9 * b + ripple;
            assert!(data.push(Observation { rates: &[a, b], watts, workload: "w", frequency: None }));
        }
        data
    }

    #[test]
    fn a_known_model_is_found() {
        let fit = Fit::new(&machine(0.0), &FitOptions::default()).expect("regular data");
        assert!((fit.constant.value - 10.0).abs() < 1e-9);
        assert!((fit.coefficients[0].value - 2e-9).abs() < 1e-18);
        assert!((fit.coefficients[1].value - 30e-9).abs() < 1e-17);
        assert!(fit.r_squared > 0.999_999 && fit.mean_error < 1e-9);
        assert!(!fit.is_ill_conditioned());
    }

    #[test]
    fn twice_the_noise_is_twice_the_standard_error() {
        let options = FitOptions { weighting: Weighting::Absolute, ..FitOptions::default() };
        let errors = |noise: f64| -> Vec<f64> {
            let fit = Fit::new(&machine(noise), &options).expect("regular data");
            fit.coefficients.iter().map(|of| of.std_error.expect("not at its bound")).collect()
        };
        for (once, twice) in errors(0.5).into_iter().zip(errors(1.0)) {
            assert!((twice / once - 2.0).abs() < 1e-6, "{once} {twice}");
        }
    }

    #[test]
    fn standard_errors_cover_the_truth() {
        let options = FitOptions { weighting: Weighting::Absolute, ..FitOptions::default() };
        let fit = Fit::new(&machine(0.5), &options).expect("regular data");
        for (coefficient, truth) in fit.coefficients.iter().zip([2e-9, 30e-9]) {
            let error = coefficient.std_error.expect("not at its bound");
            assert!(error > 0.0 && (coefficient.value - truth).abs() < 3.0 * error);
            assert!(error < 0.05 * truth);
        }
    }

    #[test]
    fn the_standard_error_of_a_mean_is_the_textbooks() {
        // One column of zeros and ones: two means, whose errors follow by hand.
        let mut data = Dataset::new(vec!["on".into()]);
        for (on, watts) in [(0.0, 9.0), (0.0, 11.0), (1.0, 19.0), (1.0, 21.0)] {
            data.push(Observation { rates: &[on], watts, workload: "w", frequency: None });
        }
        let options = FitOptions { weighting: Weighting::Absolute, ..FitOptions::default() };
        let fit = Fit::new(&data, &options).expect("regular data");
        // Residuals are +-1, variance 4 / (4 - 2) = 2; constant: sqrt(2 / 2), difference: sqrt(2 / 2 + 2 / 2).
        assert!((fit.constant.std_error.expect("free") - 1.0).abs() < 1e-9);
        assert!((fit.coefficients[0].std_error.expect("free") - 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn an_event_that_saves_energy_is_held_at_zero() {
        let mut data = Dataset::new(vec!["a".into(), "saver".into()]);
        for row in 0..20 {
            let (a, saver) = (f64::from(row), f64::from((row * 7) % 5));
            let watts = 30.0 + a - saver;
            data.push(Observation { rates: &[a, saver], watts, workload: "w", frequency: None });
        }
        let fit = Fit::new(&data, &FitOptions::default()).expect("regular data");
        assert_eq!(fit.coefficients[1], Coefficient { value: 0.0, std_error: None });
        let free =
            Fit::new(&data, &FitOptions { sign: Sign::Free, ..FitOptions::default() }).expect("regular");
        assert!((free.coefficients[1].value + 1.0).abs() < 1e-9);
    }

    #[test]
    fn collinear_columns_are_named() {
        let mut data = Dataset::new(vec!["cycles".into(), "other".into(), "ref-cycles".into()]);
        for row in 0..30 {
            let cycles = 1e9 * f64::from(row % 7 + 1);
            let rates = [cycles, f64::from((row * 5) % 9), cycles * 1.5];
            data.push(Observation {
                rates: &rates,
                watts: 5.0 + cycles * 1e-9,
                workload: "w",
                frequency: None,
            });
        }
        let error = Fit::new(&data, &FitOptions::default()).expect_err("collinear");
        let message = error.to_string();
        assert!(message.starts_with("columns `cycles` and `ref-cycles` say the same"), "{message}");
    }

    #[test]
    fn constant_and_missing_data_are_refused() {
        let mut data = Dataset::new(vec!["numSockets".into()]);
        for row in 0..5 {
            data.push(Observation {
                rates: &[2.0],
                watts: 1.0 + f64::from(row),
                workload: "w",
                frequency: None,
            });
        }
        assert_eq!(Fit::new(&data, &FitOptions::default()), Err(ModelError::Constant("numSockets".into())));
        let few = data.filter(|row| row == 0);
        assert_eq!(
            Fit::new(&few, &FitOptions::default()),
            Err(ModelError::TooFewRows { rows: 1, coefficients: 2 })
        );
    }

    #[test]
    fn a_strong_prior_is_kept_and_a_weak_one_is_not() {
        let prior = |strength| Some(Prior { coefficients: vec![4e-9, 10e-9], strength });
        let fit = |strength| {
            Fit::new(&machine(0.0), &FitOptions { prior: prior(strength), ..FitOptions::default() })
                .expect("regular data")
        };
        assert!((fit(1e6).coefficients[0].value / 4e-9 - 1.0).abs() < 1e-3);
        assert!((fit(1e-9).coefficients[0].value / 2e-9 - 1.0).abs() < 1e-3);
        let between = fit(0.3).coefficients[0].value;
        assert!(between > 2e-9 && between < 4e-9);
    }

    #[test]
    fn a_prior_repairs_what_data_cannot_tell() {
        // Both columns always move together: only the prior says which of them costs what.
        let mut data = Dataset::new(vec!["a".into(), "b".into()]);
        for row in 0..20 {
            let a = f64::from(row + 1);
            data.push(Observation { rates: &[a, a], watts: 5.0 + 3.0 * a, workload: "w", frequency: None });
        }
        assert!(Fit::new(&data, &FitOptions::default()).is_err());
        let prior = Some(Prior { coefficients: vec![1.0, 2.0], strength: 0.1 });
        let fit = Fit::new(&data, &FitOptions { prior, ..FitOptions::default() }).expect("prior decides");
        assert!((fit.coefficients[0].value - 1.0).abs() < 0.1);
        assert!((fit.coefficients[1].value - 2.0).abs() < 0.1);
    }
    #[test]
    fn rows_that_just_suffice_and_columns_that_just_vary() {
        let of = |rows: usize, low: f64, high: f64| {
            let mut data = Dataset::new(vec!["a".into()]);
            for row in 0..rows {
                let rate = if row % 2 == 0 { low } else { high };
                data.push(Observation {
                    rates: &[rate],
                    watts: 5.0 + row as f64,
                    workload: "w",
                    frequency: None,
                });
            }
            Fit::new(&data, &FitOptions::default()).map(|fit| fit.rows)
        };
        assert_eq!(of(3, 1.0, 2.0), Ok(3));
        assert_eq!(of(2, 1.0, 2.0), Err(ModelError::TooFewRows { rows: 2, coefficients: 2 }));
        // A rate that varies by less than a ten thousandth tells nothing, whatever its sign and size.
        let constant = Err(ModelError::Constant("a".into()));
        for (low, high) in [(1e6, 1e6 + 99.0), (-1e6 - 99.0, -1e6), (1e-6, 1e-6 + 9.9e-11), (0.0, 0.0)] {
            assert_eq!(of(8, low, high), constant, "{low} {high}");
        }
        assert_eq!(of(8, -1.0, 1.0), Ok(8));
    }

    #[test]
    fn what_a_fit_explains_by_hand() {
        // Means of 10 and 20 W, each 1 W off: 100 of the 104 square watts are explained.
        let mut data = Dataset::new(vec!["on".into()]);
        for (on, watts) in [(0.0, 9.0), (0.0, 11.0), (1.0, 19.0), (1.0, 21.0)] {
            data.push(Observation { rates: &[on], watts, workload: "w", frequency: None });
        }
        let options = FitOptions { weighting: Weighting::Absolute, ..FitOptions::default() };
        let fit = Fit::new(&data, &options).expect("regular data");
        assert!((fit.r_squared - 100.0 / 104.0).abs() < 1e-12);
        let relative = (1.0 / 9.0 + 1.0 / 11.0 + 1.0 / 19.0 + 1.0 / 21.0) / 4.0;
        assert!((fit.mean_error - relative).abs() < 1e-12);
        assert_eq!((fit.rows, fit.workloads), (4, None));
        // Columns (1, 1, 1, 1) / 2 and (0, 0, 1, 1) / sqrt 2 have a cosine of 1 / sqrt 2.
        let cosine = 0.5f64.sqrt();
        assert!((fit.condition - ((1.0 + cosine) / (1.0 - cosine)).sqrt()).abs() < 1e-9, "{}", fit.condition);
        // By relative errors, each level is the sum of 1 / w over that of 1 / w²: a little below the mean.
        let fit = Fit::new(&data, &FitOptions::default()).expect("regular data");
        let harmonic = |a: f64, b: f64| (1.0 / a + 1.0 / b) / (1.0 / (a * a) + 1.0 / (b * b));
        assert!((fit.constant.value - harmonic(9.0, 11.0)).abs() < 1e-9);
        assert!((fit.watts(&[1.0]) - harmonic(19.0, 21.0)).abs() < 1e-9);
        // Power that never changes is explained by nothing.
        let mut flat = Dataset::new(vec!["on".into()]);
        for on in [0.0, 0.0, 1.0, 1.0] {
            flat.push(Observation { rates: &[on], watts: 7.0, workload: "w", frequency: None });
        }
        assert_eq!(Fit::new(&flat, &options).expect("regular data").r_squared, 0.0);
        let ill = |condition: f64| Fit { condition, ..fit.clone() }.is_ill_conditioned();
        assert!(!ill(30.0) && ill(30.1));
    }

    /// `b` costs nothing by all workloads together, and something without one of some: the jackknife fits anew.
    #[test]
    fn what_is_held_at_zero_by_one_workload_is_free_without_it() {
        const OFF: [f64; 9] = [0.3, -0.4, 0.1, 0.5, -0.2, -0.5, 0.4, -0.1, 0.2];
        const WORKLOADS: usize = OFF.len();
        let names: Vec<String> = (0..WORKLOADS).map(|workload| workload.to_string()).collect();
        let rates = |row: usize| [(row * 7 % 11) as f64, OFF[row / 6] + 0.5 + (row * 5 % 7) as f64 / 7.0];
        let rows: Vec<(usize, [f64; 2])> = (0..6 * WORKLOADS).map(|row| (row / 6, rates(row))).collect();
        let fit = |left_out: Option<usize>| {
            let mut data = Dataset::new(vec!["a".into(), "b".into()]);
            for (workload, rates) in rows.iter().filter(|(workload, _)| Some(*workload) != left_out) {
                let watts = 30.0 + 2.0 * rates[0] - rates[1] + 3.0 * OFF[(workload * 4) % WORKLOADS];
                data.push(Observation { rates, watts, workload: &names[*workload], frequency: None });
            }
            Fit::new(&data, &FitOptions::default()).expect("regular data")
        };
        let whole = fit(None);
        assert_eq!(whole.coefficients[1], Coefficient { value: 0.0, std_error: None });
        let without: Vec<Fit> = (0..WORKLOADS).map(|workload| fit(Some(workload))).collect();
        let free = without.iter().filter(|fit| fit.coefficients[1].value > 0.0).count();
        assert_eq!(free, 2);
        let error = |of: &dyn Fn(&Fit) -> f64| {
            let squares: f64 = without.iter().map(|fit| (of(fit) - of(&whole)).powi(2)).sum();
            (squares * (WORKLOADS - 1) as f64 / WORKLOADS as f64).sqrt()
        };
        for (found, expected) in [
            (whole.constant, error(&|fit| fit.constant.value)),
            (whole.coefficients[0], error(&|fit| fit.coefficients[0].value)),
        ] {
            let found = found.std_error.expect("free");
            assert!((found / expected - 1.0).abs() < 1e-6, "{found}, not {expected}");
        }
    }

    /// Memory's power, of which cycles and instructions take nothing: where one of them is at its bound, idling alone tells the
    /// power at rest from what it costs. Without that workload it is anything, and says nothing of the error.
    #[test]
    fn power_at_rest_is_as_certain_as_the_idle_workload() {
        const WORKLOADS: [(&str, [f64; 3]); 6] = [
            ("idle", [0.02, 0.01, 0.0]),
            ("spin", [3.0, 9.0, 0.0]),
            ("chain", [3.1, 3.0, 0.0]),
            ("divide", [3.0, 1.0, 0.001]),
            ("mem", [2.9, 1.2, 0.05]),
            ("copy", [3.0, 2.5, 0.02]),
        ];
        let mut random = Random::seeded(5);
        let (mut errors, mut held, mut at_bound) = (Vec::new(), 0, 0);
        for _ in 0..300 {
            let mut data = Dataset::new(["cycles", "instructions", "misses"].map(str::to_owned).to_vec());
            for (workload, rates) in WORKLOADS {
                let off = 1.0 + 0.003 * (random.uniform() - 0.5);
                for _ in 0..3 {
                    let watts = (1.5 + 20.0 * rates[2]) * off * (1.0 + 0.001 * (random.uniform() - 0.5));
                    data.push(Observation { rates: &rates, watts, workload, frequency: None });
                }
            }
            let fit = Fit::new(&data, &FitOptions::default()).expect("regular data");
            at_bound += u32::from(fit.coefficients[..2].iter().any(|of| of.std_error.is_none()));
            let error = fit.constant.std_error.expect("free");
            held += u32::from((fit.constant.value - 1.5).abs() < 2.57 * error);
            errors.push(error / 1.5);
        }
        let most = errors.iter().fold(0.0f64, |most, error| most.max(*error));
        println!(
            "held {held} of 300, {at_bound} at a bound, most {most:.4}, {:.4}",
            quantiles::median(&mut errors).unwrap_or(0.0)
        );
        assert!(at_bound > 200, "{at_bound}");
        assert!(most < 0.01 && held > 270, "{most} {held}");
    }

    #[test]
    fn three_workloads_tell_standard_errors() {
        let of = |workloads: usize| {
            let mut data = Dataset::new(vec!["a".into()]);
            for row in 0..12 {
                let (rate, workload) = (row as f64, ["x", "y", "z"][row % workloads]);
                let watts = 10.0 + rate + 0.1 * (row * 7 % 5) as f64;
                data.push(Observation { rates: &[rate], watts, workload, frequency: None });
            }
            Fit::new(&data, &FitOptions::default()).expect("regular data").workloads
        };
        assert_eq!((of(1), of(2), of(3)), (None, None, Some(3)));
        // Rates whose squares are no numbers any more cannot be fitted.
        let mut data = Dataset::new(vec!["a".into()]);
        for row in 0..6 {
            let rates = [1e200 * (row + 1) as f64];
            data.push(Observation { rates: &rates, watts: 5.0 + row as f64, workload: "w", frequency: None });
        }
        let refused = ModelError::OutOfRange { what: "column `a`".into(), largest: 6.0 * 1e200 };
        assert_eq!(Fit::new(&data, &FitOptions::default()), Err(refused));
    }
}

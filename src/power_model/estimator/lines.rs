//! Straight lines in all columns at once: what anybody would try first, and hard to beat where rows are many.

use nalgebra::{DMatrix, DVector};

use crate::numerics::least_squares::LeastSquares;
use crate::numerics::nnls::{self, Sign};
use crate::power_model::dataset::Dataset;
use crate::power_model::fit::Weighting;

/// A constant and a coefficient for each column.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines {
    constant: f64,
    /// Watts per unit of rate; 0 for columns that vary with others only, or not at all.
    coefficients: Vec<f64>,
}

/// A column whose values differ by less than this share of the largest says nothing.
const LEAST_VARIATION: f64 = 1e-9;

impl Lines {
    /// Least squares over all columns that vary; `None` where rows are too few for them.
    pub fn fit(data: &Dataset, sign: Sign, weighting: Weighting) -> Option<Self> {
        let mut used: Vec<usize> = (0..data.columns().len()).filter(|&column| varies(data, column)).collect();
        let target: Vec<f64> =
            (0..data.len()).map(|row| weight(data, row, weighting) * data.watts(row)).collect();
        let mut design = design(data, &used, weighting);
        let solution = loop {
            match sign {
                Sign::Free => match LeastSquares::fit(&design, &target) {
                    Ok(fit) if fit.degrees_of_freedom() > 0 => break fit.coefficients().to_vec(),
                    Ok(_) => return None,
                    // The constant stays: what repeats it is no column that varies.
                    Err(deficient) => {
                        let redundant = |at: &usize| deficient.redundant.contains(at);
                        let kept: Vec<usize> =
                            (0..design.ncols()).filter(|at| *at == 0 || !redundant(at)).collect();
                        if kept.len() == design.ncols() || kept.len() >= data.len() {
                            return None;
                        }
                        design = design.select_columns(&kept);
                        used = kept[1..].iter().map(|at| used[at - 1]).collect();
                    }
                },
                sign => {
                    let moment = design.tr_mul(&DVector::from_column_slice(&target));
                    let signs = vec![sign; design.ncols()];
                    break nnls::solve(&design.tr_mul(&design), moment.as_slice(), &signs, None)?;
                }
            }
        };
        let mut coefficients = vec![0.0; data.columns().len()];
        used.iter().zip(&solution[1..]).for_each(|(&column, value)| coefficients[column] = *value);
        let lines = Self { constant: solution[0], coefficients };
        lines.is_finite().then_some(lines)
    }

    /// The same power whatever happens: the median of the rows, each workload counted once.
    pub fn constant(data: &Dataset) -> Option<Self> {
        let parts = data.by_workload();
        let mut watts: Vec<(f64, f64)> = Vec::with_capacity(data.len());
        for part in &parts {
            watts.extend(part.iter().map(|&row| (data.watts(row), 1.0 / part.len() as f64)));
        }
        watts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let middle = crate::numerics::quantiles::weighted(&watts, |(_, weight)| *weight, 0.5)?;
        Some(Self { constant: middle.0, coefficients: vec![0.0; data.columns().len()] })
    }

    /// The power of a row of rates, in watts.
    pub fn watts(&self, rates: &[f64]) -> f64 {
        self.constant + rates.iter().zip(&self.coefficients).map(|(rate, cost)| rate * cost).sum::<f64>()
    }

    fn is_finite(&self) -> bool {
        self.constant.is_finite() && self.coefficients.iter().all(|value| value.is_finite())
    }
}

fn varies(data: &Dataset, column: usize) -> bool {
    let (low, high) = crate::numerics::quantiles::range(data.column(column));
    high - low > LEAST_VARIATION * low.abs().max(high.abs())
}

fn weight(data: &Dataset, row: usize, weighting: Weighting) -> f64 {
    match weighting {
        Weighting::Relative => 1.0 / data.watts(row),
        Weighting::Absolute => 1.0,
    }
}

/// A constant first; each column relative to its largest value would change nothing but the rounding.
fn design(data: &Dataset, used: &[usize], weighting: Weighting) -> DMatrix<f64> {
    DMatrix::from_fn(data.len(), used.len() + 1, |row, at| {
        let value = if at == 0 { 1.0 } else { data.rates(row)[used[at - 1]] };
        value * weight(data, row, weighting)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_model::dataset::Observation;

    fn data(twice: bool) -> Dataset {
        let mut data = Dataset::new(vec!["a".into(), "b".into(), "same".into(), "c".into()]);
        for row in 0..30u32 {
            let (a, b) = (f64::from(row % 7), f64::from(row * 3 % 11));
            let rates = [a, b, 5.0, if twice { 2.0 * a } else { f64::from(row * row % 5) }];
            let workload = format!("w{}", row / 6);
            let watts = 20.0 + 3.0 * a - 0.5 * b;
            assert!(data.push(Observation { rates: &rates, watts, workload: &workload, frequency: None }));
        }
        data
    }

    #[test]
    fn a_plane_is_found_whatever_the_weights_and_however_often_a_column_comes() {
        for twice in [false, true] {
            for weighting in [Weighting::Absolute, Weighting::Relative] {
                let lines = Lines::fit(&data(twice), Sign::Free, weighting).expect("rows enough");
                assert!((lines.watts(&[4.0, 2.0, 5.0, if twice { 8.0 } else { 1.0 }]) - 31.0).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn signs_are_kept() {
        let lines = Lines::fit(&data(false), Sign::NonNegative, Weighting::Absolute).expect("rows enough");
        assert!(lines.coefficients.iter().all(|value| *value >= 0.0) && lines.coefficients[0] > 0.0);
        assert_eq!(lines.coefficients[1], 0.0);
    }

    #[test]
    fn too_few_rows_are_no_lines() {
        let few = data(false).filter(|row| row < 2);
        assert_eq!(Lines::fit(&few, Sign::Free, Weighting::Absolute), None);
        assert!(Lines::constant(&few).is_some());
        assert_eq!(Lines::constant(&few.filter(|_| false)), None);
    }

    /// Nine rows of 10 W are one workload, and two rows each of 20 and 30 W another.
    #[test]
    fn a_constant_is_the_median_of_workloads_and_not_of_rows() {
        let mut data = Dataset::new(vec!["a".into()]);
        for (workload, watts, rows) in [("long", 10.0, 9), ("short", 20.0, 2), ("other", 30.0, 2)] {
            for _ in 0..rows {
                assert!(data.push(Observation { rates: &[1.0], watts, workload, frequency: None }));
            }
        }
        assert_eq!(Lines::constant(&data).map(|lines| lines.watts(&[7.0])), Some(20.0));
    }
}

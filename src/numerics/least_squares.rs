//! Ordinary least squares by an orthogonal decomposition with column pivoting (P. Businger and G. H. Golub,
//! "Linear least squares solutions by Householder transformations", Numerische Mathematik 7, 1965), with what
//! diagnostics need: residuals, leverages, standard errors and the condition.

use nalgebra::{DMatrix, DVector};

/// A column that depends on the others to this relative accuracy is taken as redundant.
const RANK_TOLERANCE: f64 = 1e-9;

/// A fitted linear model `y = X b + e`.
#[derive(Debug, Clone)]
pub struct LeastSquares {
    coefficients: Vec<f64>,
    /// `G` with `G G' = (X'X)^-1`: all variances come from it.
    root_of_inverse: DMatrix<f64>,
    residuals: Vec<f64>,
    leverages: Vec<f64>,
    condition: f64,
    r_squared: f64,
}

/// The rows do not determine all coefficients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankDeficient {
    /// Number of coefficients the rows do determine.
    pub rank: usize,
    /// Columns that are combinations of the others.
    pub redundant: Vec<usize>,
}

impl LeastSquares {
    /// Fits `y` on the columns of `x` (one row per observation, as many rows as `y` has values).
    ///
    /// # Errors
    /// If the columns of `x` are linearly dependent, also where there are fewer rows than columns.
    ///
    /// # Panics
    /// If `x` and `y` differ in their number of rows.
    pub fn fit(x: &DMatrix<f64>, y: &[f64]) -> Result<Self, RankDeficient> {
        assert_eq!(x.nrows(), y.len(), "one row per observation");
        let (rows, columns) = x.shape();
        if rows == 0 || columns == 0 {
            return Err(RankDeficient { rank: 0, redundant: (0..columns).collect() });
        }
        // Columns of equal length, so that units do not decide what counts as redundant.
        let scales: Vec<f64> = x.column_iter().map(|column| column.norm()).collect();
        let scaled = DMatrix::from_fn(rows, columns, |row, column| match scales[column] {
            0.0 => 0.0,
            scale => x[(row, column)] / scale,
        });

        let decomposition = scaled.col_piv_qr();
        let r = decomposition.r();
        let order = permutation(decomposition.p(), columns);
        let rank = (0..rows.min(columns)).take_while(|&i| r[(i, i)].abs() > RANK_TOLERANCE).count();
        if rank < columns {
            let mut redundant = order[rank..].to_vec();
            redundant.sort_unstable();
            return Err(RankDeficient { rank, redundant });
        }

        let deficient = || RankDeficient { rank: columns, redundant: Vec::new() };
        let inverse_of_r =
            r.solve_upper_triangular(&DMatrix::identity(columns, columns)).ok_or_else(deficient)?;
        let mut root_of_inverse = DMatrix::zeros(columns, columns);
        for (position, &column) in order.iter().enumerate() {
            root_of_inverse.row_mut(column).copy_from(&(inverse_of_r.row(position) / scales[column]));
        }

        let observed = DVector::from_column_slice(y);
        let coefficients = &root_of_inverse * (decomposition.q().transpose() * &observed);
        let residuals: Vec<f64> = (&observed - x * &coefficients).iter().copied().collect();
        let leverages = x.row_iter().map(|row| (row * &root_of_inverse).norm_squared()).collect();
        let singular = r.singular_values();
        let mean = observed.mean();
        let total: f64 = y.iter().map(|value| (value - mean).powi(2)).sum();
        let unexplained: f64 = residuals.iter().map(|residual| residual.powi(2)).sum();
        Ok(Self {
            coefficients: coefficients.iter().copied().collect(),
            root_of_inverse,
            residuals,
            leverages,
            condition: singular.max() / singular.min(),
            r_squared: if total > 0.0 { 1.0 - unexplained / total } else { 1.0 },
        })
    }

    /// The coefficients, in the order of the columns.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Observations beyond those that the coefficients use up.
    pub fn degrees_of_freedom(&self) -> usize {
        self.residuals.len() - self.coefficients.len()
    }

    /// Variance of an observation about the model; `None` without degrees of freedom.
    pub fn residual_variance(&self) -> Option<f64> {
        let freedom = self.degrees_of_freedom();
        (freedom > 0)
            .then(|| self.residuals.iter().map(|residual| residual.powi(2)).sum::<f64>() / freedom as f64)
    }

    /// Standard error of each coefficient for observations of this variance.
    pub fn standard_errors(&self, variance: f64) -> Vec<f64> {
        self.root_of_inverse.row_iter().map(|row| row.norm() * variance.sqrt()).collect()
    }

    /// The model's value at a row.
    pub fn predict(&self, row: &[f64]) -> f64 {
        self.coefficients.iter().zip(row).map(|(coefficient, value)| coefficient * value).sum()
    }

    /// Variance of the model's value at a row, as a multiple of an observation's variance.
    pub fn leverage_of(&self, row: &[f64]) -> f64 {
        let columns = self.root_of_inverse.as_slice().chunks_exact(row.len().max(1));
        columns.map(|column| column.iter().zip(row).map(|(a, b)| a * b).sum::<f64>().powi(2)).sum()
    }

    /// Observed minus fitted.
    pub fn residuals(&self) -> &[f64] {
        &self.residuals
    }

    /// How much each observation determines its own fitted value: 0 not at all, 1 alone.
    pub fn leverages(&self) -> &[f64] {
        &self.leverages
    }

    /// Residual of each observation from the model fitted without it, by the identity `e / (1 - h)`.
    /// `None` where the others do not determine the model.
    pub fn leave_one_out_residuals(&self) -> Vec<Option<f64>> {
        let without = |(residual, leverage): (&f64, &f64)| {
            (*leverage < 1.0 - 1e-9).then(|| residual / (1.0 - leverage))
        };
        self.residuals.iter().zip(&self.leverages).map(without).collect()
    }

    /// Ratio of the largest to the smallest singular value of the columns at equal lengths.
    pub fn condition(&self) -> f64 {
        self.condition
    }

    /// Explained share of the variance (0..1).
    pub fn r_squared(&self) -> f64 {
        self.r_squared
    }
}

/// The column that stands at each position after pivoting.
fn permutation(sequence: &nalgebra::PermutationSequence<nalgebra::Dyn>, columns: usize) -> Vec<usize> {
    let mut positions = DMatrix::from_fn(1, columns, |_, column| column);
    sequence.permute_columns(&mut positions);
    positions.iter().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_fitted_to_nothing() {
        for (rows, columns) in [(0, 2), (2, 0), (0, 0)] {
            let error =
                LeastSquares::fit(&DMatrix::zeros(rows, columns), &vec![1.0; rows]).expect_err("nothing");
            assert_eq!((error.rank, error.redundant), (0, (0..columns).collect()));
        }
    }

    /// Two columns at a right angle, one of them ten times as long: at equal lengths they are as good as can be.
    #[test]
    fn the_condition_is_that_of_columns_of_one_length() {
        let x = DMatrix::from_row_slice(4, 2, &[1.0, 10.0, 1.0, -10.0, 1.0, 10.0, 1.0, -10.0]);
        let fit = LeastSquares::fit(&x, &[3.0, 3.0, 3.0, 3.0]).expect("of full rank");
        assert!((fit.condition() - 1.0).abs() < 1e-12);
        // Nothing varies, and all of that is explained.
        assert_eq!(fit.r_squared(), 1.0);
        // At an angle of 60 degrees: √((1 + ½) / (1 - ½)).
        let x = DMatrix::from_row_slice(2, 2, &[1.0, 0.5, 0.0, 0.75f64.sqrt()]);
        let fit = LeastSquares::fit(&x, &[1.0, 2.0]).expect("of full rank");
        assert!((fit.condition() - 3f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn columns_that_nearly_depend_are_redundant_from_a_billionth_on() {
        let fit = |angle: f64| {
            let x = DMatrix::from_row_slice(2, 2, &[1.0, 1.0, 0.0, angle]);
            LeastSquares::fit(&x, &[1.0, 2.0]).map(|fit| fit.degrees_of_freedom())
        };
        assert_eq!(fit(1.1e-9), Ok(0));
        assert_eq!(fit(0.9e-9).expect_err("the same direction").rank, 1);
    }

    /// y at x = 0, 1, 2, 3 is 1, 2, 2, 4: by hand the line is 0.9 + 0.9 x, with residuals 0.1, 0.2,
    /// -0.7, 0.4, so s2 = 0.7 / 2, and the standard errors are sqrt(s2 * 0.7) and sqrt(s2 / 5).
    #[test]
    fn a_line_by_hand() {
        let x = DMatrix::from_row_slice(4, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0]);
        let fit = LeastSquares::fit(&x, &[1.0, 2.0, 2.0, 4.0]).expect("of full rank");
        assert!((fit.coefficients()[0] - 0.9).abs() < 1e-12 && (fit.coefficients()[1] - 0.9).abs() < 1e-12);
        let variance = fit.residual_variance().expect("two degrees of freedom");
        assert!((variance - 0.35).abs() < 1e-12);
        let errors = fit.standard_errors(variance);
        assert!((errors[0] - (0.35f64 * 0.7).sqrt()).abs() < 1e-12);
        assert!((errors[1] - (0.35f64 / 5.0).sqrt()).abs() < 1e-12);
        assert!((fit.r_squared() - (1.0 - 0.7 / 4.75)).abs() < 1e-12);
        // At x = 4: 1/4 + 2.5^2 / 5.
        assert!((fit.leverage_of(&[1.0, 4.0]) - 1.5).abs() < 1e-12);
    }

    #[test]
    fn dependent_columns_are_named() {
        let x = DMatrix::from_row_slice(3, 3, &[1.0, 2.0, 3.0, 1.0, 4.0, 5.0, 1.0, 6.0, 7.0]);
        let error = LeastSquares::fit(&x, &[1.0, 2.0, 3.0]).expect_err("third column is first plus second");
        assert_eq!(error.rank, 2);
        assert_eq!(error.redundant.len(), 1);
    }

    #[test]
    fn fewer_rows_than_columns_are_refused() {
        let x = DMatrix::from_row_slice(2, 3, &[1.0, 2.0, 9.0, 1.0, 4.0, 5.0]);
        assert_eq!(LeastSquares::fit(&x, &[1.0, 2.0]).expect_err("two rows").rank, 2);
    }

    #[test]
    fn as_many_rows_as_columns_leave_no_variance() {
        let x = DMatrix::from_row_slice(2, 2, &[1.0, 0.0, 1.0, 1.0]);
        let fit = LeastSquares::fit(&x, &[3.0, 5.0]).expect("of full rank");
        assert_eq!(fit.residual_variance(), None);
        assert_eq!(fit.leave_one_out_residuals(), [None, None]);
        assert!((fit.predict(&[1.0, 2.0]) - 7.0).abs() < 1e-12);
    }

    proptest! {
        /// The shortcut for leaving one out is the same as really fitting again without it.
        #[test]
        fn leaving_one_out_is_fitting_again(values in proptest::collection::vec(-10.0..10.0f64, 12), left in 0usize..6) {
            let x = DMatrix::from_fn(6, 2, |row, column| if column == 0 { 1.0 } else { values[row] + row as f64 * 25.0 });
            let y = &values[6..];
            let whole = LeastSquares::fit(&x, y).expect("of full rank");
            let kept: Vec<usize> = (0..6).filter(|&row| row != left).collect();
            let without = LeastSquares::fit(&x.select_rows(&kept), &kept.iter().map(|&row| y[row]).collect::<Vec<_>>())
                .expect("of full rank");
            let row: Vec<f64> = x.row(left).iter().copied().collect();
            let expected = y[left] - without.predict(&row);
            let shortcut = whole.leave_one_out_residuals()[left].expect("determined");
            prop_assert!((shortcut - expected).abs() < 1e-8 * (1.0 + expected.abs()));
        }

        /// The same coefficients as by the singular value decomposition, and the same covariance.
        #[test]
        fn agrees_with_the_singular_value_decomposition(
            values in proptest::collection::vec(-1.0..1.0f64, 12 * 4),
            y in proptest::collection::vec(-5.0..5.0f64, 12),
        ) {
            let x = DMatrix::from_row_slice(12, 4, &values) + DMatrix::identity(12, 4) * 3.0;
            let fit = LeastSquares::fit(&x, &y).expect("of full rank");
            let decomposition = x.svd(true, true);
            let found = decomposition.solve(&DVector::from_vec(y), 0.0).expect("decomposed");
            prop_assert!(fit.coefficients().iter().zip(found.iter()).all(|(a, b)| (a - b).abs() < 1e-9));
            let vectors = decomposition.v_t.expect("asked for");
            for (column, error) in fit.standard_errors(1.0).into_iter().enumerate() {
                let parts = vectors.column(column).component_div(&decomposition.singular_values);
                prop_assert!((error - parts.norm()).abs() < 1e-9);
            }
        }

        /// Residuals are orthogonal to every column, and leverages add up to the number of columns.
        #[test]
        fn normal_equations_hold(values in proptest::collection::vec(-10.0..10.0f64, 16), scale in 1e-6..1e6f64) {
            let x = DMatrix::from_fn(8, 3, |row, column| match column {
                0 => 1.0,
                1 => scale * (row as f64 + values[row] * 0.01),
                _ => (row as f64).powi(2),
            });
            let fit = LeastSquares::fit(&x, &values[8..]).expect("of full rank");
            for column in x.column_iter() {
                let dot: f64 = column.iter().zip(fit.residuals()).map(|(a, b)| a * b).sum();
                prop_assert!(dot.abs() < 1e-7 * column.norm());
            }
            prop_assert!((fit.leverages().iter().sum::<f64>() - 3.0).abs() < 1e-9);
        }
    }
}

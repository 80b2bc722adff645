//! Penalised least squares: more columns than rows can tell apart, held together by a price on large
//! coefficients (A. E. Hoerl and R. W. Kennard, "Ridge regression: biased estimation for nonorthogonal
//! problems", Technometrics 12, 1970).
//!
//! The first column is the constant and free of the price; the others are best standardised. With `n` rows the
//! price is `n λ` times the square of each coefficient, so that it means the same for any number of rows.

use nalgebra::{DMatrix, DVector};

use super::nnls::{self, Sign};

/// A price so small that it only matters where columns depend on each other.
const LEAST: f64 = 1e-9;

/// A column of ones before the rows, all of one length.
pub fn with_constant(rows: &[Vec<f64>]) -> DMatrix<f64> {
    let width = rows.first().map_or(0, Vec::len);
    DMatrix::from_fn(rows.len(), width + 1, |i, j| if j == 0 { 1.0 } else { rows[i][j - 1] })
}

/// The normal equations of a penalised fit: `AᵀWA + n λ I` and `AᵀWy`.
#[derive(Debug, Clone, PartialEq)]
pub struct Penalised {
    matrix: DMatrix<f64>,
    moment: DVector<f64>,
    rows: usize,
}

impl Penalised {
    /// Sums up the rows of a design whose first column is the constant. `weights` say what the square of each
    /// row's error counts, one if there are none; `penalty` is `λ`.
    pub fn new(design: &DMatrix<f64>, y: &DVector<f64>, weights: Option<&[f64]>, penalty: f64) -> Self {
        let weighted = weighted(design, weights);
        let (matrix, moment) = (weighted.tr_mul(design), weighted.tr_mul(y));
        let mut sums = Self { matrix, moment, rows: design.nrows() };
        sums.add_penalty(penalty + LEAST);
        sums
    }

    /// The same with a larger penalty, by so much.
    pub fn with_more(&self, penalty: f64) -> Self {
        let mut more = self.clone();
        more.add_penalty(penalty);
        more
    }

    fn add_penalty(&mut self, penalty: f64) {
        for i in 1..self.matrix.nrows() {
            self.matrix[(i, i)] += penalty * self.rows as f64;
        }
    }

    /// The fit; `None` if the columns cannot be told apart all the same.
    pub fn solve(&self) -> Option<Ridge> {
        let inverse = self.matrix.clone().cholesky()?.inverse();
        Some(Ridge { coefficients: &inverse * &self.moment, inverse })
    }

    /// The coefficients under these signs, one for each column; see [`nnls::solve`], also for `start`.
    pub fn solve_signed(&self, signs: &[Sign], start: Option<&[f64]>) -> Option<Vec<f64>> {
        nnls::solve(&self.matrix, self.moment.as_slice(), signs, start)
    }
}

/// A penalised fit, with what tells the rows' part in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ridge {
    /// One for each column.
    pub coefficients: DVector<f64>,
    inverse: DMatrix<f64>,
}

impl Ridge {
    /// Fits a design; see [`Penalised::new`].
    pub fn fit(
        design: &DMatrix<f64>,
        y: &DVector<f64>,
        weights: Option<&[f64]>,
        penalty: f64,
    ) -> Option<Self> {
        Penalised::new(design, y, weights, penalty).solve()
    }

    /// Observed minus fitted of each row.
    pub fn residuals(&self, design: &DMatrix<f64>, y: &DVector<f64>) -> DVector<f64> {
        y - design * &self.coefficients
    }

    /// How much each row of the design determines its own fitted value: 0 not at all, 1 alone. For a fit
    /// without weights.
    pub fn leverages(&self, design: &DMatrix<f64>) -> Vec<f64> {
        design.row_iter().map(|row| (row * &self.inverse * row.transpose())[(0, 0)].clamp(0.0, 1.0)).collect()
    }

    /// Residual of each row from the fit without its part, for design, target and weights of this fit, and
    /// without a fit for each part: `(I - H)⁻¹ r` with the part's residuals `r` and its block `H` of the matrix
    /// that projects the target onto the fit. (With parts of one row, it is `r / (1 - h)`.)
    ///
    /// The penalty stays that of all rows. `None` if the rows outside of a part do not determine the fit.
    pub fn left_out(
        &self,
        design: &DMatrix<f64>,
        y: &DVector<f64>,
        weights: Option<&[f64]>,
        parts: &[Vec<usize>],
    ) -> Option<DVector<f64>> {
        let residuals = self.residuals(design, y);
        let mut left_out = DVector::zeros(y.len());
        for part in parts {
            let rows = design.select_rows(part);
            let weights = weights.map(|weights| part.iter().map(|&row| weights[row]).collect::<Vec<_>>());
            let weighted = weighted(&rows, weights.as_deref());
            let own =
                DMatrix::identity(part.len(), part.len()) - &rows * &self.inverse * weighted.transpose();
            let solved = own
                .lu()
                .solve(&DVector::from_iterator(part.len(), part.iter().map(|&row| residuals[row])))?;
            part.iter().zip(solved.iter()).for_each(|(&row, value)| left_out[row] = *value);
        }
        Some(left_out)
    }
}

fn weighted(design: &DMatrix<f64>, weights: Option<&[f64]>) -> DMatrix<f64> {
    let mut weighted = design.clone();
    if let Some(weights) = weights {
        for (mut row, weight) in weighted.row_iter_mut().zip(weights) {
            row *= *weight;
        }
    }
    weighted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::numerics::folds::{Fold, spans};
    use crate::numerics::least_squares::LeastSquares;

    fn design(values: &[f64]) -> DMatrix<f64> {
        with_constant(&values.chunks(4).map(<[f64]>::to_vec).collect::<Vec<_>>())
    }

    /// The price is for every coefficient but the constant's, as often as there are rows.
    #[test]
    fn the_price_is_as_said() {
        let design = with_constant(&[vec![1.0], vec![3.0]]);
        let sums = Penalised::new(&design, &DVector::from_vec(vec![1.0, 5.0]), Some(&[1.0, 2.0]), 0.5);
        let expected = DMatrix::from_row_slice(2, 2, &[3.0, 7.0, 7.0, 19.0 + 2.0 * 0.5]);
        assert!((&sums.matrix - expected).amax() < 1e-8);
        assert_eq!(sums.moment.as_slice(), [11.0, 31.0]);
        assert!((sums.with_more(0.25).matrix[(1, 1)] - 20.5).abs() < 1e-8);
        assert_eq!(with_constant(&[]).shape(), (0, 1));
    }

    #[test]
    fn a_large_price_leaves_the_mean() {
        let design = with_constant(&[vec![-1.0], vec![0.0], vec![1.0]]);
        let y = DVector::from_vec(vec![1.0, 2.0, 6.0]);
        let fit = Ridge::fit(&design, &y, None, 1e9).expect("regular");
        assert!((fit.coefficients[0] - 3.0).abs() < 1e-9 && fit.coefficients[1].abs() < 1e-6);
        // By hand with λ = 1: slope 5 / (2 + 3).
        let fit = Ridge::fit(&design, &y, None, 1.0).expect("regular");
        assert!((fit.coefficients[1] - 1.0).abs() < 1e-8);
    }

    #[test]
    fn a_row_of_weight_two_is_a_row_twice() {
        let rows = [vec![0.0, 1.0], vec![1.0, -1.0], vec![2.0, 0.5], vec![3.0, 0.0]];
        let y = [1.0, 2.0, 2.5, 4.5];
        let weighted =
            Ridge::fit(&with_constant(&rows), &DVector::from_row_slice(&y), Some(&[1.0, 1.0, 2.0, 1.0]), 0.0);
        let twice = [0, 1, 2, 2, 3];
        let repeated = Ridge::fit(
            &with_constant(&twice.map(|row: usize| rows[row].clone())),
            &DVector::from_iterator(5, twice.map(|row| y[row])),
            None,
            0.0,
        );
        let difference = weighted.expect("regular").coefficients - repeated.expect("regular").coefficients;
        assert!(difference.amax() < 1e-7);
    }

    proptest! {
        #[test]
        fn without_a_price_it_is_least_squares(
            values in prop::collection::vec(-2.0f64..2.0, 60),
            y in prop::collection::vec(-5.0f64..5.0, 15),
        ) {
            let (design, y) = (design(&values), DVector::from_vec(y));
            let plain = LeastSquares::fit(&design, y.as_slice()).expect("of full rank");
            prop_assume!(plain.condition() < 20.0);
            let fit = Ridge::fit(&design, &y, None, 0.0).expect("regular");
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
            prop_assert!(close(fit.coefficients.as_slice(), plain.coefficients()));
            prop_assert!(close(&fit.leverages(&design), plain.leverages()));
            // The residual of a row left out is that of least squares, too.
            let one_by_one = fit.left_out(&design, &y, None, &spans(15, 15)).expect("determined");
            for (left_out, plain) in one_by_one.iter().zip(plain.leave_one_out_residuals()) {
                let plain = plain.expect("determined");
                prop_assert!((left_out - plain).abs() < 1e-4 * (1.0 + plain.abs()), "{left_out} {plain}");
            }
        }

        /// The short cut equals fitting again without the rows, where the price is as high in both fits.
        #[test]
        fn left_out_residuals_are_those_of_fitting_again(
            values in prop::collection::vec(-2.0f64..2.0, 60),
            y in prop::collection::vec(-5.0f64..5.0, 15),
            weights in prop::collection::vec(0.2f64..3.0, 15),
            parts in 2usize..6,
        ) {
            const PENALTY: f64 = 0.1;
            let (design, y, parts) = (design(&values), DVector::from_vec(y), spans(15, parts));
            let whole = Ridge::fit(&design, &y, Some(&weights), PENALTY).expect("regular");
            let left_out = whole.left_out(&design, &y, Some(&weights), &parts).expect("determined");
            for part in parts {
                let kept = Fold::holding_out(&part, 15).kept;
                let of_kept: Vec<f64> = kept.iter().map(|&row| weights[row]).collect();
                let penalty = (PENALTY + LEAST) * 15.0 / kept.len() as f64 - LEAST;
                let (rows, target) = (design.select_rows(&kept), y.select_rows(&kept));
                let again = Ridge::fit(&rows, &target, Some(&of_kept), penalty).expect("regular");
                let residuals = again.residuals(&design, &y);
                prop_assert!(part.iter().all(|&row| (left_out[row] - residuals[row]).abs() < 1e-7));
            }
        }

        /// The conditions of the optimum: no gradient along what is used, none downhill along what is not.
        #[test]
        fn signed_fits_are_optimal(
            values in prop::collection::vec(-2.0f64..2.0, 60),
            y in prop::collection::vec(-5.0f64..5.0, 15),
            penalty in 0.0..0.5f64,
        ) {
            let (design, y) = (design(&values), DVector::from_vec(y));
            let signs = [Sign::Free, Sign::NonNegative, Sign::NonPositive, Sign::NonNegative, Sign::NonNegative];
            let sums = Penalised::new(&design, &y, None, penalty);
            let x = DVector::from_vec(sums.solve_signed(&signs, None).expect("regular"));
            let mut gradient = design.tr_mul(&(&design * &x - &y));
            (1..x.len()).for_each(|j| gradient[j] += 15.0 * penalty * x[j]);
            prop_assert!(gradient[0].abs() < 1e-5);
            for j in 1..x.len() {
                let sign = if signs[j] == Sign::NonPositive { -1.0 } else { 1.0 };
                let (x, gradient) = (sign * x[j], sign * gradient[j]);
                prop_assert!(x >= 0.0);
                prop_assert!(gradient > -1e-5 && (x == 0.0 || gradient.abs() < 1e-5), "{x} {gradient}");
            }
        }
    }
}

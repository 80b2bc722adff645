//! The linear algebra of the fits.

use nalgebra::{DMatrix, DVector};

/// Solves `(A^T W A + ridge n I) x = A^T W y` for a matrix whose first column is 1 and is not penalised.
pub fn ridge(
    rows: &DMatrix<f64>,
    y: &DVector<f64>,
    weights: Option<&[f64]>,
    ridge: f64,
) -> Option<DVector<f64>> {
    let (inverse, right) = normal(rows, y, weights, ridge)?;
    Some(inverse * right)
}

/// The inverse of the penalised normal matrix, and `A^T W y`.
pub fn normal(
    rows: &DMatrix<f64>,
    y: &DVector<f64>,
    weights: Option<&[f64]>,
    ridge: f64,
) -> Option<(DMatrix<f64>, DVector<f64>)> {
    let mut weighted = rows.clone();
    if let Some(weights) = weights {
        for (mut row, weight) in weighted.row_iter_mut().zip(weights) {
            row *= *weight;
        }
    }
    let mut matrix = weighted.tr_mul(rows);
    // So little that it only matters where columns depend on each other.
    const LEAST: f64 = 1e-9;
    for i in 1..matrix.nrows() {
        matrix[(i, i)] += (ridge + LEAST) * rows.nrows() as f64;
    }
    let inverse = matrix.cholesky()?.inverse();
    Some((inverse, weighted.tr_mul(y)))
}

/// A column of ones before the rows.
pub fn with_constant(rows: &[Vec<f64>]) -> DMatrix<f64> {
    let width = rows.first().map_or(0, Vec::len);
    DMatrix::from_fn(rows.len(), width + 1, |i, j| if j == 0 { 1.0 } else { rows[i][j - 1] })
}

/// Least squares with all coefficients but the constant at least zero: coordinates in turn, each put to
/// its best value or zero, until nothing moves (the problem is convex, so this is the minimum).
pub fn non_negative(rows: &DMatrix<f64>, y: &DVector<f64>) -> DVector<f64> {
    const ROUNDS: usize = 2000;
    let matrix = rows.tr_mul(rows);
    let right = rows.tr_mul(y);
    let mut x = DVector::zeros(rows.ncols());
    for _ in 0..ROUNDS {
        let mut moved: f64 = 0.0;
        for j in 0..x.len() {
            if matrix[(j, j)] <= 0.0 {
                continue;
            }
            let rest = right[j] - matrix.row(j).transpose().dot(&x) + matrix[(j, j)] * x[j];
            let best = rest / matrix[(j, j)];
            let best = if j == 0 { best } else { best.max(0.0) };
            moved = moved.max((best - x[j]).abs());
            x[j] = best;
        }
        if moved < 1e-10 * (1.0 + x.amax()) {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The conditions of the optimum: no gradient along what is used, none downhill along what is not.
        #[test]
        fn non_negative_fits_are_optimal(values in prop::collection::vec(-2.0f64..2.0, 60), y in prop::collection::vec(-5.0f64..5.0, 15)) {
            let rows: Vec<Vec<f64>> = values.chunks(4).map(<[f64]>::to_vec).collect();
            let (rows, y) = (with_constant(&rows), DVector::from_vec(y));
            let x = non_negative(&rows, &y);
            let gradient = rows.tr_mul(&(&rows * &x - &y));
            prop_assert!(gradient[0].abs() < 1e-5);
            for j in 1..x.len() {
                prop_assert!(x[j] >= 0.0);
                prop_assert!(gradient[j] > -1e-5 && (x[j] == 0.0 || gradient[j].abs() < 1e-5), "{} {}", x[j], gradient[j]);
            }
        }
    }
}

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
    let (matrix, right) = normal_equations(rows, y, weights, ridge);
    Some((matrix.cholesky()?.inverse(), right))
}

/// The penalised normal matrix, and `A^T W y`.
pub fn normal_equations(
    rows: &DMatrix<f64>,
    y: &DVector<f64>,
    weights: Option<&[f64]>,
    ridge: f64,
) -> (DMatrix<f64>, DVector<f64>) {
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
    (matrix, weighted.tr_mul(y))
}

/// A column of ones before the rows.
pub fn with_constant(rows: &[Vec<f64>]) -> DMatrix<f64> {
    let width = rows.first().map_or(0, Vec::len);
    DMatrix::from_fn(rows.len(), width + 1, |i, j| if j == 0 { 1.0 } else { rows[i][j - 1] })
}

/// The same with the sign of each coefficient but the constant's given: at least zero, or at most zero
/// where `falling` says so.
pub fn signed(
    rows: &DMatrix<f64>,
    y: &DVector<f64>,
    weights: Option<&[f64]>,
    ridge: f64,
    falling: &[bool],
) -> DVector<f64> {
    let (matrix, right) = normal_equations(rows, y, weights, ridge);
    signed_from(&matrix, &right, DVector::zeros(rows.ncols()), falling, 1e-9)
}

/// Solves normal equations under these signs: coordinates in turn, each put to its best value or zero,
/// until nothing moves by more than the tolerance (the problem is convex, so this is the minimum
/// wherever it starts).
pub fn signed_from(
    matrix: &DMatrix<f64>,
    right: &DVector<f64>,
    mut x: DVector<f64>,
    falling: &[bool],
    tolerance: f64,
) -> DVector<f64> {
    const ROUNDS: usize = 2000;
    let (entries, count) = (matrix.as_slice(), x.len());
    for _ in 0..ROUNDS {
        let mut moved: f64 = 0.0;
        for j in 0..count {
            // The matrix is symmetric: a column is a row, and lies together in memory.
            let column = &entries[j * count..(j + 1) * count];
            let own = column[j];
            if own <= 0.0 {
                continue;
            }
            let mut rest = right[j] + own * x[j];
            for (entry, value) in column.iter().zip(x.as_slice()) {
                rest -= entry * value;
            }
            let best: f64 = rest / own;
            let best = match j.checked_sub(1).map(|term| falling.get(term)) {
                None => best,
                Some(Some(true)) => best.min(0.0),
                Some(_) => best.max(0.0),
            };
            moved = moved.max((best - x[j]).abs());
            x[j] = best;
        }
        if moved < tolerance * (1.0 + x.amax()) {
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
        fn signed_fits_are_optimal(values in prop::collection::vec(-2.0f64..2.0, 60), y in prop::collection::vec(-5.0f64..5.0, 15)) {
            let rows: Vec<Vec<f64>> = values.chunks(4).map(<[f64]>::to_vec).collect();
            let (rows, y) = (with_constant(&rows), DVector::from_vec(y));
            let x = signed(&rows, &y, None, 0.0, &[false, true, false, false]);
            let gradient = rows.tr_mul(&(&rows * &x - &y));
            prop_assert!(gradient[0].abs() < 1e-5);
            for j in 1..x.len() {
                let sign = if j == 2 { -1.0 } else { 1.0 };
                let (x, gradient) = (sign * x[j], sign * gradient[j]);
                prop_assert!(x >= 0.0);
                prop_assert!(gradient > -1e-5 && (x == 0.0 || gradient.abs() < 1e-5), "{x} {gradient}");
            }
        }
    }
}

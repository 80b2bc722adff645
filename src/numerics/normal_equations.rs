//! Rows summed once, and any set of their columns fitted afterwards.
//!
//! Choosing among hundreds of sets of columns needs hundreds of thousands of small solutions over a few
//! sums of the same data, so the data are summed once ([`NormalEquations`]) and solved many times.
//! The price, a squared condition number, is bounded by scaling columns to length one; what matters to
//! the last digit goes back to the rows ([`super::least_squares`]).

use nalgebra::{DMatrix, DVector};

use super::nnls::{Sign, System};

/// Everything that least squares needs to know about weighted rows: `AᵀA`, `Aᵀb` and `bᵀb`.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalEquations {
    columns: usize,
    /// `AᵀA`, row by row.
    gram: Vec<f64>,
    /// `Aᵀb`.
    moment: Vec<f64>,
    /// `bᵀb`.
    square: f64,
    /// Number of rows, or their weight after scaling.
    rows: f64,
}

impl NormalEquations {
    /// No rows of `columns` columns.
    pub fn empty(columns: usize) -> Self {
        Self {
            columns,
            gram: vec![0.0; columns * columns],
            moment: vec![0.0; columns],
            square: 0.0,
            rows: 0.0,
        }
    }

    /// Sums up the rows of `design` and `target`, both already multiplied by their weights.
    pub fn of_rows(design: &DMatrix<f64>, target: &DVector<f64>) -> Self {
        let columns = design.ncols();
        let gram = design.tr_mul(design);
        let moment = design.tr_mul(target);
        Self {
            columns,
            gram: gram.as_slice().to_vec(),
            moment: moment.as_slice().to_vec(),
            square: target.norm_squared(),
            rows: design.nrows() as f64,
        }
    }

    /// Adds one row.
    pub fn add_row(&mut self, values: &[f64], target: f64) {
        debug_assert_eq!(values.len(), self.columns);
        for (i, value) in values.iter().enumerate() {
            for (j, other) in values.iter().enumerate() {
                self.gram[i * self.columns + j] += value * other;
            }
            self.moment[i] += value * target;
        }
        self.square += target * target;
        self.rows += 1.0;
    }

    /// Draws a coefficient towards a value: as rows would whose squares sum up to `weight`.
    pub fn draw(&mut self, column: usize, value: f64, weight: f64) {
        self.gram[column * self.columns + column] += weight;
        self.moment[column] += weight * value;
    }

    /// Makes up for noise in a column, which draws its coefficient to zero: with the sum of the squares of the
    /// noise it is drawn to `value` instead.
    pub fn make_up(&mut self, column: usize, value: f64, squares: f64) {
        self.moment[column] += squares * value;
    }

    /// `Aᵀ(b - Ax)`: half of how fast the squares of errors fall with each coefficient.
    pub fn slope(&self, solution: &[f64]) -> Vec<f64> {
        let product = |row: usize| -> f64 {
            self.gram[row * self.columns..][..self.columns].iter().zip(solution).map(|(a, x)| a * x).sum()
        };
        (0..self.columns).map(|row| self.moment[row] - product(row)).collect()
    }

    /// `AᵀA`.
    pub fn gram(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.columns, self.columns, &self.gram)
    }

    /// The inverse of `AᵀA` over the columns whose coefficient in `solution` is above zero, zero elsewhere:
    /// times the variance of the targets, it is the covariance of the solution. `None` if they cannot be told
    /// apart.
    pub fn inverse(&self, solution: &[f64]) -> Option<DMatrix<f64>> {
        let used: Vec<usize> =
            (0..self.columns).filter(|&i| solution.get(i).is_some_and(|c| *c > 0.0)).collect();
        let inverse = self.system(&used, Sign::Free)?.inverse()?;
        let mut whole = DMatrix::zeros(self.columns, self.columns);
        for (a, &i) in used.iter().enumerate() {
            for (b, &j) in used.iter().enumerate() {
                whole[(i, j)] = inverse[(a, b)];
            }
        }
        Some(whole)
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of rows, or their weight after [`NormalEquations::add`] with a factor.
    pub fn rows(&self) -> f64 {
        self.rows
    }

    /// Mean square of a column.
    pub fn mean_square(&self, column: usize) -> f64 {
        if self.rows > 0.0 { self.gram[column * self.columns + column] / self.rows } else { 0.0 }
    }

    /// Adds the rows of `other`, each counted `factor` times; a negative factor takes them out again.
    pub fn add(&mut self, other: &Self, factor: f64) {
        debug_assert_eq!(self.columns, other.columns);
        for (sum, value) in self.gram.iter_mut().zip(&other.gram) {
            *sum += factor * value;
        }
        for (sum, value) in self.moment.iter_mut().zip(&other.moment) {
            *sum += factor * value;
        }
        self.square += factor * other.square;
        self.rows += factor * other.rows;
    }

    /// The coefficients of `chosen` columns with the least squared error, in the order of `chosen`, all of
    /// them under the same sign.
    ///
    /// `None` if a column is zero, or if the columns cannot be told apart: with a sign, one of several that
    /// say the same is taken instead. See [`super::nnls`].
    pub fn solve(&self, chosen: &[usize], sign: Sign) -> Option<Vec<f64>> {
        self.system(chosen, sign)?.solve(None)
    }

    fn system(&self, chosen: &[usize], sign: Sign) -> Option<System> {
        let at = |i: usize, j: usize| self.gram[chosen[i] * self.columns + chosen[j]];
        System::new(chosen.len(), at, |i| self.moment[chosen[i]], |_| sign)
    }

    /// Mean squared error of these coefficients over the rows.
    pub fn mean_squared_error(&self, chosen: &[usize], coefficients: &[f64]) -> f64 {
        let mut sum = self.square;
        for (&i, x) in chosen.iter().zip(coefficients) {
            let row = &self.gram[i * self.columns..(i + 1) * self.columns];
            let product: f64 = chosen.iter().zip(coefficients).map(|(&j, y)| row[j] * y).sum();
            sum += x * (product - 2.0 * self.moment[i]);
        }
        // Rounding can leave a tiny negative number where the fit is exact.
        sum.max(0.0) / self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn equations(design: &DMatrix<f64>, target: &[f64]) -> NormalEquations {
        NormalEquations::of_rows(design, &DVector::from_column_slice(target))
    }

    /// What is drawn to 3 with a weight of 2 is what a row of √2 in that column says whose target is 3 √2.
    #[test]
    fn drawing_is_adding_a_row() {
        let mut drawn = NormalEquations::empty(2);
        drawn.add_row(&[1.0, 2.0], 5.0);
        let mut added = drawn.clone();
        drawn.draw(1, 3.0, 4.0);
        added.add_row(&[0.0, 2.0], 6.0);
        assert_eq!((&drawn.gram, &drawn.moment), (&added.gram, &added.moment));
        assert_eq!(drawn.gram, [1.0, 2.0, 2.0, 8.0]);
        assert_eq!((added.square, added.rows(), drawn.rows(), drawn.columns()), (61.0, 2.0, 1.0, 2));
        drawn.make_up(0, 2.0, 0.5);
        assert_eq!(drawn.moment, [6.0, 22.0]);
        assert_eq!((added.mean_square(0), added.mean_square(1)), (0.5, 4.0));
        assert_eq!(NormalEquations::empty(1).mean_square(0), 0.0);
    }

    #[test]
    fn the_inverse_is_of_the_columns_that_are_used() {
        let design = DMatrix::from_row_slice(2, 3, &[2.0, 1.0, 0.0, 0.0, 1.0, 5.0]);
        let sums = equations(&design, &[1.0, 2.0]);
        let inverse = sums.inverse(&[1.0, 0.0, 3.0]).expect("regular");
        // [4 0; 0 25] without the column in the middle.
        let expected = DMatrix::from_row_slice(3, 3, &[0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.04]);
        assert!((inverse - expected).amax() < 1e-12);
        assert_eq!(sums.inverse(&[-1.0, 0.0]).expect("nothing is used"), DMatrix::zeros(3, 3));
        assert_eq!(sums.gram()[(1, 2)], 5.0);
    }

    #[test]
    fn errors_are_squared_and_averaged() {
        let design = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
        let sums = equations(&design, &[2.0, 5.0, 9.0]);
        // 1 + 3 x misses the three by 1, 1 and 2.
        assert!((sums.mean_squared_error(&[0, 1], &[1.0, 3.0]) - 2.0).abs() < 1e-12);
        assert!((sums.mean_squared_error(&[1], &[4.0]) - (4.0 + 1.0 + 1.0) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_line_through_three_points() {
        // y = 2 + 3 x exactly.
        let design = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
        let sums = equations(&design, &[2.0, 5.0, 8.0]);
        let found = sums.solve(&[0, 1], Sign::NonNegative).expect("two different columns");
        assert!((found[0] - 2.0).abs() < 1e-12 && (found[1] - 3.0).abs() < 1e-12);
        assert!(sums.mean_squared_error(&[0, 1], &found) < 1e-12);
    }

    #[test]
    fn a_negative_slope_is_held_at_zero() {
        let design = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
        let sums = equations(&design, &[4.0, 3.0, 2.0]);
        let held = sums.solve(&[0, 1], Sign::NonNegative).expect("the constant alone");
        assert!((held[0] - 3.0).abs() < 1e-12 && held[1] == 0.0);
        let free = sums.solve(&[0, 1], Sign::Free).expect("regular");
        assert!((free[1] + 1.0).abs() < 1e-12);
    }

    #[test]
    fn equal_columns_cannot_be_told_apart() {
        let design = DMatrix::from_row_slice(3, 2, &[1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        let sums = equations(&design, &[1.0, 2.0, 3.0]);
        assert_eq!(sums.solve(&[0, 1], Sign::Free), None);
        let found = sums.solve(&[0, 1], Sign::NonNegative).expect("one of the two suffices");
        assert!((found[0] + found[1] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rows_taken_out_leave_what_was_there() {
        let design = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 3.0, 5.0]);
        let part = equations(&design, &[1.0, 2.0]);
        let mut whole = part.clone();
        whole.add(&part, 2.0);
        whole.add(&part, -2.0);
        assert_eq!(whole, part);
    }

    proptest! {
        /// Any set of columns, solved from the sums, is what the singular value decomposition of the rows gives.
        #[test]
        fn a_choice_of_columns_is_fitted_as_by_decomposing_its_rows(
            values in prop::collection::vec(-1.0..1.0f64, 12 * 5),
            target in prop::collection::vec(-1.0..3.0f64, 12),
            chosen in prop::sample::subsequence(vec![0usize, 1, 2, 3, 4], 1..=5),
        ) {
            let design = DMatrix::from_row_slice(12, 5, &values);
            let found = equations(&design, &target).solve(&chosen, Sign::Free).expect("independent");
            let part = design.select_columns(&chosen);
            let decomposed = part.svd(true, true).solve(&DVector::from_vec(target), 0.0).expect("decomposed");
            for (found, decomposed) in found.iter().zip(decomposed.iter()) {
                prop_assert!((found - decomposed).abs() < 1e-7 * (1.0 + decomposed.abs()));
            }
        }

        #[test]
        fn scaling_a_column_scales_its_coefficient(factor in 1e-9..1e12f64) {
            let design = DMatrix::from_row_slice(4, 2, &[1.0, 0.1, 1.0, 0.9, 1.0, 2.2, 1.0, 3.1]);
            let target = [2.0, 2.5, 4.1, 4.9];
            let plain = equations(&design, &target).solve(&[0, 1], Sign::NonNegative).expect("regular");
            let mut scaled = design;
            scaled.column_mut(1).scale_mut(factor);
            let other = equations(&scaled, &target).solve(&[0, 1], Sign::NonNegative).expect("regular");
            prop_assert!((other[1] * factor / plain[1] - 1.0).abs() < 1e-9);
        }
    }
}

//! Least squares on normal equations, with coefficients that may be held non-negative.
//!
//! Choosing among hundreds of sets of columns needs hundreds of thousands of small solutions over a few
//! sums of the same data, so the data are summed once ([`NormalEquations`]) and solved many times.
//! The price, a squared condition number, is bounded by scaling columns to length one; the final fit of
//! a chosen set goes back to the rows ([`super::fit`]).

use nalgebra::{DMatrix, DVector};

/// Which values a coefficient may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Zero or more: an event that costs energy. A sampling period needs it.
    NonNegative,
    /// Any.
    Free,
}

/// A squared pivot below this share of its column means that the column adds nothing to the others.
const SINGULAR_PIVOT: f64 = 1e-11;

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

    /// `AᵀA`.
    pub fn gram(&self) -> DMatrix<f64> {
        DMatrix::from_row_slice(self.columns, self.columns, &self.gram)
    }

    /// The inverse of `AᵀA` over the columns whose coefficient in `solution` is not zero, zero elsewhere:
    /// times the variance of the targets, it is the covariance of the solution.
    pub fn inverse(&self, solution: &[f64]) -> Option<DMatrix<f64>> {
        let free: Vec<usize> =
            (0..self.columns).filter(|&i| solution.get(i).is_some_and(|c| *c > 0.0)).collect();
        let system = Scaled::of(self, &free)?;
        let inverse = DMatrix::from_row_slice(free.len(), free.len(), &system.gram).cholesky()?.inverse();
        let mut whole = DMatrix::zeros(self.columns, self.columns);
        for (a, &i) in free.iter().enumerate() {
            for (b, &j) in free.iter().enumerate() {
                whole[(i, j)] = inverse[(a, b)] / (system.scale[a] * system.scale[b]);
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

    /// The coefficients of `chosen` columns with the least squared error, in the order of `chosen`.
    ///
    /// `None` if the columns cannot be told apart. With [`Sign::NonNegative`] every coefficient is zero
    /// or more (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23).
    pub fn solve(&self, chosen: &[usize], sign: Sign) -> Option<Vec<f64>> {
        let system = Scaled::of(self, chosen)?;
        let scaled = match sign {
            Sign::Free => system.solve_subset(&vec![true; chosen.len()])?,
            Sign::NonNegative => system.solve_non_negative()?,
        };
        Some(scaled.iter().zip(&system.scale).map(|(value, scale)| value / scale).collect())
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

/// The chosen part of normal equations with columns scaled to length one.
struct Scaled {
    n: usize,
    gram: Vec<f64>,
    moment: Vec<f64>,
    scale: Vec<f64>,
}

impl Scaled {
    fn of(equations: &NormalEquations, chosen: &[usize]) -> Option<Self> {
        let n = chosen.len();
        let at = |i: usize, j: usize| equations.gram[chosen[i] * equations.columns + chosen[j]];
        let scale: Vec<f64> = (0..n).map(|i| at(i, i).sqrt()).collect();
        if scale.iter().any(|scale| !(*scale > 0.0 && scale.is_finite())) {
            return None;
        }
        let mut gram = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                gram[i * n + j] = at(i, j) / (scale[i] * scale[j]);
            }
        }
        let moment = chosen.iter().zip(&scale).map(|(&i, scale)| equations.moment[i] / scale).collect();
        Some(Self { n, gram, moment, scale })
    }

    /// The least-squares solution over the columns marked in `passive`, zero elsewhere.
    fn solve_subset(&self, passive: &[bool]) -> Option<Vec<f64>> {
        let index: Vec<usize> = (0..self.n).filter(|&i| passive[i]).collect();
        let m = index.len();
        // Cholesky's lower triangle, then forward and back substitution.
        let mut lower = vec![0.0; m * m];
        let mut solution = vec![0.0; m];
        for i in 0..m {
            for j in 0..=i {
                let mut sum = self.gram[index[i] * self.n + index[j]];
                for k in 0..j {
                    sum -= lower[i * m + k] * lower[j * m + k];
                }
                if i == j {
                    if sum < SINGULAR_PIVOT {
                        return None;
                    }
                    lower[i * m + i] = sum.sqrt();
                } else {
                    lower[i * m + j] = sum / lower[j * m + j];
                }
            }
            let mut sum = self.moment[index[i]];
            for k in 0..i {
                sum -= lower[i * m + k] * solution[k];
            }
            solution[i] = sum / lower[i * m + i];
        }
        for i in (0..m).rev() {
            let mut sum = solution[i];
            for k in i + 1..m {
                sum -= lower[k * m + i] * solution[k];
            }
            solution[i] = sum / lower[i * m + i];
        }
        let mut full = vec![0.0; self.n];
        for (&i, value) in index.iter().zip(solution) {
            full[i] = value;
        }
        Some(full)
    }

    /// The gradient of the error, negated: what a coefficient would gain by growing.
    fn gain(&self, solution: &[f64], i: usize) -> f64 {
        let row = &self.gram[i * self.n..(i + 1) * self.n];
        self.moment[i] - row.iter().zip(solution).map(|(a, b)| a * b).sum::<f64>()
    }

    fn solve_non_negative(&self) -> Option<Vec<f64>> {
        // Most systems met here have a non-negative solution as they stand.
        if let Some(free) = self.solve_subset(&vec![true; self.n])
            && free.iter().all(|value| *value >= 0.0)
        {
            return Some(free);
        }
        let tolerance = 1e-12 * self.moment.iter().fold(0.0, |max: f64, value| max.max(value.abs()));
        let mut passive = vec![false; self.n];
        let mut barred = vec![false; self.n];
        let mut solution = vec![0.0; self.n];
        // The algorithm ends by itself; the limit only guards against rounding that makes it cycle.
        for _ in 0..20 * self.n + 20 {
            let enter = (0..self.n)
                .filter(|&i| !passive[i] && !barred[i])
                .map(|i| (i, self.gain(&solution, i)))
                .filter(|(_, gain)| *gain > tolerance)
                .max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((enter, _)) = enter else { return Some(solution) };
            passive[enter] = true;
            let Some(mut trial) = self.solve_subset(&passive) else {
                // A copy of columns that are already in: it can add nothing.
                passive[enter] = false;
                barred[enter] = true;
                continue;
            };
            while (0..self.n).any(|i| passive[i] && trial[i] <= 0.0) {
                let step = (0..self.n)
                    .filter(|&i| passive[i] && trial[i] <= 0.0)
                    .map(|i| solution[i] / (solution[i] - trial[i]))
                    .fold(1.0, f64::min);
                for i in 0..self.n {
                    if passive[i] {
                        solution[i] += step * (trial[i] - solution[i]);
                        if trial[i] <= 0.0 && solution[i] <= tolerance {
                            solution[i] = 0.0;
                            passive[i] = false;
                        }
                    }
                }
                trial = self.solve_subset(&passive)?;
            }
            solution = trial;
        }
        Some(solution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn equations(design: &DMatrix<f64>, target: &[f64]) -> NormalEquations {
        NormalEquations::of_rows(design, &DVector::from_column_slice(target))
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
        /// The Karush-Kuhn-Tucker conditions: what is zero would not gain by growing, what is not has no slope.
        #[test]
        fn non_negative_solutions_are_optimal(
            values in prop::collection::vec(-1.0..1.0f64, 12 * 5),
            target in prop::collection::vec(-1.0..3.0f64, 12),
        ) {
            let design = DMatrix::from_row_slice(12, 5, &values);
            let sums = equations(&design, &target);
            let chosen = [0, 1, 2, 3, 4];
            let found = sums.solve(&chosen, Sign::NonNegative).expect("random columns are independent");
            let residual = DVector::from_column_slice(&target) - &design * DVector::from_column_slice(&found);
            let gain = design.tr_mul(&residual);
            for (value, gain) in found.iter().zip(gain.iter()) {
                prop_assert!(*value >= 0.0);
                prop_assert!(*gain <= 1e-7);
                prop_assert!(*value == 0.0 || gain.abs() < 1e-7);
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

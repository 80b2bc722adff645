//! Least squares under signs: coefficients that may not be negative, not be positive, or be anything.
//!
//! The active-set algorithm of C. L. Lawson and R. J. Hanson (*Solving Least Squares Problems*, 1974, chapter
//! 23, NNLS) on the normal equations, as R. Bro and S. de Jong ("A fast non-negativity-constrained least
//! squares algorithm", Journal of Chemometrics 11, 1997) do it, who also begin where a similar problem ended.
//! Columns without a sign are never taken out, and a column that may not be positive is turned round.
//!
//! Normal equations square the condition number; columns scaled to length one bound the price.

use nalgebra::{Cholesky, DMatrix, DVector};

/// Which values a coefficient may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Zero or more.
    NonNegative,
    /// Zero or less.
    NonPositive,
    /// Any.
    Free,
}

/// A squared pivot below this share of its column means that the column adds nothing to the others.
const SINGULAR_PIVOT: f64 = 1e-11;

/// The coefficients `x` of the least `½ xᵀGx - mᵀx` under their signs, for normal equations `G = AᵀA`,
/// `m = Aᵀb` of any design and target.
///
/// `gram` is `G`, of which the upper triangle counts; `moment` and `signs` have one entry per column. `start`
/// is the solution of a similar problem, from which the search sets out: faster, and no less exact.
///
/// `None` if a column is zero or not finite, or if columns without a sign cannot be told apart.
///
/// # Panics
/// If the dimensions do not agree.
pub fn solve(gram: &DMatrix<f64>, moment: &[f64], signs: &[Sign], start: Option<&[f64]>) -> Option<Vec<f64>> {
    let columns = moment.len();
    assert!(gram.shape() == (columns, columns) && signs.len() == columns, "one row and one sign per column");
    let system = System::new(columns, |i, j| gram[(i.min(j), i.max(j))], |i| moment[i], |i| signs[i])?;
    system.solve(start)
}

/// Normal equations with columns scaled to length one, and turned round where their coefficient may not be
/// positive: then all signs are "zero or more" or none.
pub(super) struct System {
    n: usize,
    /// Row by row.
    gram: Vec<f64>,
    moment: Vec<f64>,
    /// What a column was divided by: its length, negative if it is turned round.
    scale: Vec<f64>,
    /// Columns without a sign.
    free: Vec<bool>,
}

impl System {
    /// `None` if a column has no length, or no finite one.
    pub fn new(
        n: usize,
        gram: impl Fn(usize, usize) -> f64,
        moment: impl Fn(usize) -> f64,
        sign: impl Fn(usize) -> Sign,
    ) -> Option<Self> {
        let length = |i| {
            let length = gram(i, i).sqrt();
            let usable = length > 0.0 && length.is_finite();
            usable.then_some(if sign(i) == Sign::NonPositive { -length } else { length })
        };
        let scale: Vec<f64> = (0..n).map(length).collect::<Option<_>>()?;
        let mut scaled = Vec::with_capacity(n * n);
        for i in 0..n {
            scaled.extend((0..n).map(|j| gram(i, j) / (scale[i] * scale[j])));
        }
        Some(Self {
            n,
            gram: scaled,
            moment: (0..n).map(|i| moment(i) / scale[i]).collect(),
            free: (0..n).map(|i| sign(i) == Sign::Free).collect(),
            scale,
        })
    }

    /// The coefficients under their signs; see [`solve`].
    pub fn solve(&self, start: Option<&[f64]>) -> Option<Vec<f64>> {
        let scaled = match start {
            Some(start) => self.solve_from(start).or_else(|| self.solve_afresh()),
            None => self.solve_afresh(),
        };
        scaled.map(|scaled| scaled.iter().zip(&self.scale).map(|(value, scale)| value / scale).collect())
    }

    /// The inverse of the matrix, unscaled.
    pub fn inverse(&self) -> Option<DMatrix<f64>> {
        let mut inverse = DMatrix::from_row_slice(self.n, self.n, &self.gram).cholesky()?.inverse();
        for i in 0..self.n {
            for j in 0..self.n {
                inverse[(i, j)] /= self.scale[i] * self.scale[j];
            }
        }
        Some(inverse)
    }

    fn solve_afresh(&self) -> Option<Vec<f64>> {
        // Most systems met have a solution of the right signs as they stand.
        let whole = self.solve_subset(&vec![true; self.n]);
        let keeps_signs =
            |solution: &Vec<f64>| solution.iter().zip(&self.free).all(|(value, free)| *free || *value >= 0.0);
        if whole.as_ref().is_some_and(keeps_signs) || !self.free.contains(&false) {
            return whole;
        }
        let mut state = ActiveSet { system: self, passive: self.free.clone(), solution: vec![0.0; self.n] };
        if state.passive.contains(&true) {
            state.solution = self.solve_subset(&state.passive)?;
        }
        state.run()
    }

    /// `None` also where the columns that `start` uses cannot be told apart here.
    fn solve_from(&self, start: &[f64]) -> Option<Vec<f64>> {
        let scaled = |((value, scale), free): ((&f64, &f64), &bool)| {
            if *free { value * scale } else { (value * scale).max(0.0) }
        };
        let solution: Vec<f64> = start.iter().zip(&self.scale).zip(&self.free).map(scaled).collect();
        let passive = solution.iter().zip(&self.free).map(|(value, free)| *free || *value > 0.0).collect();
        let mut state = ActiveSet { system: self, passive, solution };
        let trial = self.solve_subset(&state.passive)?;
        state.move_to(trial)?;
        state.run()
    }

    /// The least-squares solution over the columns marked in `passive`, zero elsewhere; `None` if they cannot
    /// be told apart.
    fn solve_subset(&self, passive: &[bool]) -> Option<Vec<f64>> {
        let index: Vec<usize> = (0..self.n).filter(|&i| passive[i]).collect();
        let part = DMatrix::from_fn(index.len(), index.len(), |i, j| self.gram[index[i] * self.n + index[j]]);
        let cholesky = Cholesky::new(part)?;
        let is_singular = |pivot: &f64| pivot * pivot < SINGULAR_PIVOT;
        if cholesky.l_dirty().diagonal().iter().any(is_singular) {
            return None;
        }
        let mut solution = DVector::from_iterator(index.len(), index.iter().map(|&i| self.moment[i]));
        cholesky.solve_mut(&mut solution);
        let mut full = vec![0.0; self.n];
        index.iter().zip(solution.iter()).for_each(|(&i, value)| full[i] = *value);
        Some(full)
    }

    /// The gradient of the error, negated: what a coefficient would gain by growing.
    fn gain(&self, solution: &[f64], i: usize) -> f64 {
        let row = &self.gram[i * self.n..(i + 1) * self.n];
        self.moment[i] - row.iter().zip(solution).map(|(a, b)| a * b).sum::<f64>()
    }
}

/// Where the search stands. Columns that are not passive are held at zero; those that are, and have a sign, are
/// above it.
struct ActiveSet<'s> {
    system: &'s System,
    passive: Vec<bool>,
    /// The best over the passive columns.
    solution: Vec<f64>,
}

impl ActiveSet<'_> {
    /// Values and gradients below this are zero.
    fn tolerance(&self) -> f64 {
        1e-12 * self.system.moment.iter().fold(0.0, |max: f64, value| max.max(value.abs()))
    }

    /// Takes in the column that gains most, until none gains.
    fn run(mut self) -> Option<Vec<f64>> {
        let (system, tolerance) = (self.system, self.tolerance());
        let mut barred = vec![false; system.n];
        // The algorithm ends by itself; the limit only guards against rounding that makes it cycle.
        for _ in 0..20 * system.n + 20 {
            let enter = (0..system.n)
                .filter(|&i| !self.passive[i] && !barred[i])
                .map(|i| (i, system.gain(&self.solution, i)))
                .filter(|(_, gain)| *gain > tolerance)
                .max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((enter, _)) = enter else { break };
            self.passive[enter] = true;
            match system.solve_subset(&self.passive).filter(|trial| trial[enter] > 0.0) {
                Some(trial) => {
                    self.move_to(trial)?;
                    barred.fill(false);
                }
                // It says what columns say that are in already, or gains by rounding alone.
                None => {
                    self.passive[enter] = false;
                    barred[enter] = true;
                }
            }
        }
        Some(self.solution)
    }

    /// Goes towards the solution over the passive columns, and where a coefficient with a sign reaches zero on
    /// the way, holds it there and goes on from that point.
    fn move_to(&mut self, mut trial: Vec<f64>) -> Option<()> {
        let (system, tolerance) = (self.system, self.tolerance());
        loop {
            let falls = |i: &usize| self.passive[*i] && !system.free[*i] && trial[*i] <= 0.0;
            let way = |i: usize| {
                let gap = self.solution[i] - trial[i];
                (i, if gap > 0.0 { self.solution[i] / gap } else { 0.0 })
            };
            let first = (0..system.n).filter(falls).map(way).min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((first, step)) = first else {
                self.solution = trial;
                return Some(());
            };
            let passive: Vec<usize> = (0..system.n).filter(|&i| self.passive[i]).collect();
            for i in passive {
                self.solution[i] += step * (trial[i] - self.solution[i]);
                let is_at_zero = i == first || trial[i] <= 0.0 && self.solution[i] <= tolerance;
                if !system.free[i] && is_at_zero {
                    self.solution[i] = 0.0;
                    self.passive[i] = false;
                }
            }
            trial = system.solve_subset(&self.passive)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIGNS: [Sign; 3] = [Sign::NonNegative, Sign::NonPositive, Sign::Free];

    fn least_squares(
        design: &DMatrix<f64>,
        target: &DVector<f64>,
        signs: &[Sign],
        start: Option<&[f64]>,
    ) -> Option<Vec<f64>> {
        solve(&design.tr_mul(design), design.tr_mul(target).as_slice(), signs, start)
    }

    /// The Karush-Kuhn-Tucker conditions: signs are kept; what is not zero has no slope, and what is zero would
    /// only lose by moving where it may.
    fn assert_optimal(
        design: &DMatrix<f64>,
        target: &DVector<f64>,
        signs: &[Sign],
        found: &[f64],
    ) -> Result<(), TestCaseError> {
        let residual = target - design * DVector::from_column_slice(found);
        let gain = design.tr_mul(&residual);
        for ((value, gain), sign) in found.iter().zip(gain.iter()).zip(signs) {
            let (value, gain) = match sign {
                Sign::NonPositive => (-value, -gain),
                _ => (*value, *gain),
            };
            prop_assert!(*sign == Sign::Free || value >= 0.0, "{sign:?} {value}");
            prop_assert!(gain <= 1e-7, "{sign:?} {value} would gain {gain}");
            prop_assert!((*sign != Sign::Free && value == 0.0) || gain >= -1e-7, "{sign:?} {value} {gain}");
        }
        Ok(())
    }

    #[test]
    fn a_start_at_zero_is_left_again() {
        let found = solve(&DMatrix::from_element(1, 1, 2.0), &[6.0], &[Sign::NonNegative], Some(&[0.0]));
        assert_eq!(found.map(|found| (found[0] * 1e9).round() / 1e9), Some(3.0));
    }

    /// Sixty columns at right angles, of which all but one have a coefficient of their own: each is taken in by itself.
    #[test]
    fn many_columns_are_taken_in_one_by_one() {
        let mut moment: Vec<f64> = (1..=60).map(f64::from).collect();
        moment[7] = -1.0;
        let found =
            solve(&DMatrix::identity(60, 60), &moment, &[Sign::NonNegative; 60], None).expect("regular");
        moment[7] = 0.0;
        assert!(
            found.iter().zip(&moment).all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{found:?}"
        );
    }

    /// The upper triangle counts.
    #[test]
    fn a_gram_matrix_may_be_half() {
        let whole = DMatrix::from_row_slice(2, 2, &[2.0, 1.0, 1.0, 3.0]);
        let half = DMatrix::from_row_slice(2, 2, &[2.0, 1.0, 0.0, 3.0]);
        let of = |gram: &DMatrix<f64>| solve(gram, &[4.0, 7.0], &[Sign::Free; 2], None).expect("regular");
        assert_eq!(of(&whole), of(&half));
        assert!((of(&whole)[0] - 1.0).abs() < 1e-12 && (of(&whole)[1] - 2.0).abs() < 1e-12);
    }

    /// Squared pivots: the second column's is the square of the sine of the angle between the two.
    #[test]
    fn columns_are_told_apart_from_a_tiny_angle_on() {
        let fit = |angle: f64| {
            let gram = DMatrix::from_row_slice(2, 2, &[1.0, angle.cos(), angle.cos(), 1.0]);
            solve(&gram, &[1.0, 0.5], &[Sign::Free; 2], None)
        };
        assert!(fit(5e-6).is_some() && fit(2e-6).is_none());
        let mixed = DMatrix::from_row_slice(2, 2, &[1.0, 1.0, 1.0, 1.0]);
        assert_eq!(solve(&mixed, &[1.0, 1.0], &[Sign::Free, Sign::NonNegative], None), Some(vec![1.0, 0.0]));
        assert_eq!(solve(&mixed, &[f64::NAN; 2], &[Sign::Free; 2], None), None);
    }

    #[test]
    fn inverses_are_those_of_the_matrix() {
        let (gram, signs) = ([[4.0, 2.0], [2.0, 9.0]], [Sign::NonPositive, Sign::NonNegative]);
        let system = System::new(2, |i, j| gram[i][j], |_| 0.0, |i| signs[i]).expect("lengths");
        let inverse = system.inverse().expect("regular");
        let expected = DMatrix::from_row_slice(2, 2, &[9.0, -2.0, -2.0, 4.0]) / 32.0;
        assert!((inverse - expected).amax() < 1e-12);
    }

    #[test]
    fn the_constant_is_free_and_the_slope_is_held() {
        // y = -1 - 2 x: neither sign of the slope's allows both.
        let design = DMatrix::from_row_slice(3, 2, &[1.0, 0.0, 1.0, 1.0, 1.0, 2.0]);
        let target = DVector::from_vec(vec![-1.0, -3.0, -5.0]);
        let of = |slope| least_squares(&design, &target, &[Sign::Free, slope], None).expect("regular");
        assert!((of(Sign::NonNegative)[0] + 3.0).abs() < 1e-12 && of(Sign::NonNegative)[1] == 0.0);
        assert!((of(Sign::NonPositive)[0] + 1.0).abs() < 1e-12);
        assert!((of(Sign::NonPositive)[1] + 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_column_of_zeros_has_no_solution() {
        let design = DMatrix::from_row_slice(2, 2, &[1.0, 0.0, 2.0, 0.0]);
        let target = DVector::from_vec(vec![1.0, 2.0]);
        assert_eq!(least_squares(&design, &target, &[Sign::NonNegative; 2], None), None);
    }

    /// Three columns at right angles, from 1 each towards -1, 0.3 and 2: half way the first is at zero, and goes no farther.
    /// The second was on its way to -0.1 beside it, and does not end there.
    #[test]
    fn what_reaches_zero_first_is_held_there_alone() {
        let gram = |i, j| if i == j { 1.0 } else { 0.0 };
        let system = System::new(3, gram, |i| [-1.0, 0.3, 2.0][i], |_| Sign::NonNegative).expect("columns");
        let mut state = ActiveSet { system: &system, passive: vec![true; 3], solution: vec![1.0; 3] };
        state.move_to(vec![-1.0, -0.1, 2.0]).expect("regular");
        assert_eq!(state.passive, [false, true, true]);
        let close = |(found, expected): (&f64, f64)| (found - expected).abs() < 1e-12;
        assert!(state.solution.iter().zip([0.0, 0.3, 2.0]).all(close), "{:?}", state.solution);
    }

    proptest! {
        #[test]
        fn solutions_satisfy_the_kkt_conditions(
            values in prop::collection::vec(-1.0..1.0f64, 14 * 8),
            target in prop::collection::vec(-2.0..3.0f64, 14),
            signs in prop::collection::vec(prop::sample::select(SIGNS.to_vec()), 8),
            copies in any::<bool>(),
            start in prop::collection::vec(-1.0..1.0f64, 8),
        ) {
            let mut design = DMatrix::from_row_slice(14, 8, &values);
            let mut signs = signs;
            if copies {
                // Columns that cannot be told apart, but for their signs.
                let first = design.column(0).clone_owned();
                design.set_column(5, &first);
                (signs[0], signs[5]) = (Sign::NonNegative, Sign::NonNegative);
            }
            let target = DVector::from_vec(target);
            let found = least_squares(&design, &target, &signs, None).expect("free columns are independent");
            assert_optimal(&design, &target, &signs, &found)?;
            // A start is a matter of speed.
            let warm = least_squares(&design, &target, &signs, Some(&start)).expect("as above");
            assert_optimal(&design, &target, &signs, &warm)?;
            if !copies {
                prop_assert!(found.iter().zip(&warm).all(|(a, b)| (a - b).abs() < 1e-7), "{found:?} {warm:?}");
            }
        }

        /// Where ordinary least squares has no negative coefficient, it is the solution.
        #[test]
        fn signs_that_hold_anyway_change_nothing(
            values in prop::collection::vec(0.0..1.0f64, 12 * 4),
            truth in prop::collection::vec(0.5..3.0f64, 4),
            noise in prop::collection::vec(-0.05..0.05f64, 12),
        ) {
            let design = DMatrix::from_row_slice(12, 4, &values) + DMatrix::identity(12, 4);
            let target = &design * DVector::from_vec(truth) + DVector::from_vec(noise);
            let free = design.clone().svd(true, true).solve(&target, 0.0).expect("decomposed");
            prop_assume!(free.iter().all(|value| *value >= 0.0));
            let found = least_squares(&design, &target, &[Sign::NonNegative; 4], None).expect("regular");
            for (found, free) in found.iter().zip(free.iter()) {
                prop_assert!((found - free).abs() < 1e-9, "{found} {free}");
            }
        }
    }
}

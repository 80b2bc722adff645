//! A straight line through points, by least squares.

/// Points `(x, y)` as far as a straight line through them needs to know: sums around their means, in two passes,
/// so that large means do not drown what varies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// How many points.
    pub count: usize,
    /// Mean of x and of y.
    pub mean: (f64, f64),
    /// Sum of the squares of `x - mean.0`.
    pub xx: f64,
    /// Sum of the products of both.
    pub xy: f64,
    /// Sum of the squares of `y - mean.1`.
    pub yy: f64,
}

impl Moments {
    /// Not a number in all of them without points.
    pub fn of(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in points {
            xx += (x - mean_x).powi(2);
            xy += (x - mean_x) * (y - mean_y);
            yy += (y - mean_y).powi(2);
        }
        Self { count: points.len(), mean: (mean_x, mean_y), xx, xy, yy }
    }

    /// The line's slope; `None` if x does not vary.
    pub fn slope(&self) -> Option<f64> {
        (self.xx > 0.0).then(|| self.xy / self.xx)
    }

    /// The line's value at x = 0, for a slope.
    pub fn intercept(&self, slope: f64) -> f64 {
        self.mean.1 - slope * self.mean.0
    }

    /// Sum of the squares that a line of this slope through the means leaves unexplained; of the least-squares
    /// slope only.
    pub fn unexplained(&self, slope: f64) -> f64 {
        (self.yy - slope * self.xy).max(0.0)
    }
}

/// The slope of a line, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// By how much y grows where x grows by one.
    pub value: f64,
    /// Its standard error.
    pub std_error: f64,
    /// Share of the variance of y that the line explains.
    pub r_squared: f64,
}

impl Slope {
    /// `None` with fewer than three points, which leave no error to see, or if x does not vary.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let moments = Moments::of(points);
        let value = moments.slope()?;
        let rest = moments.unexplained(value);
        let freedom = points.len() as f64 - 2.0;
        Some(Self {
            value,
            std_error: (rest / freedom / moments.xx).sqrt(),
            r_squared: if moments.yy > 0.0 { 1.0 - rest / moments.yy } else { 1.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DMatrix;
    use proptest::prelude::*;

    use super::*;
    use crate::numerics::least_squares::LeastSquares;

    #[test]
    fn a_level_line_explains_all_there_is() {
        let line = Slope::through(&[(0.0, 4.0), (1.0, 4.0), (3.0, 4.0)]).expect("three points");
        assert_eq!(line, Slope { value: 0.0, std_error: 0.0, r_squared: 1.0 });
        assert_eq!(Moments::of(&[(1.0, 2.0), (3.0, 6.0)]).unexplained(2.0), 0.0);
    }

    #[test]
    fn by_hand() {
        let line = Slope::through(&[(0.0, 1.0), (1.0, 2.0), (2.0, 5.0)]).expect("three points");
        assert!((line.value - 2.0).abs() < 1e-12);
        // Residuals 1/3, -2/3, 1/3: sum of squares 2/3, one degree of freedom, spread 2.
        assert!((line.std_error - (1.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((line.r_squared - (1.0 - 2.0 / 26.0)).abs() < 1e-12);
    }

    #[test]
    fn points_above_each_other_have_no_slope() {
        assert_eq!(Slope::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 5.0)]), None);
        assert_eq!(Slope::through(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Moments::of(&[]).slope(), None);
    }

    proptest! {
        #[test]
        fn a_line_is_a_fit_of_two_columns(points in prop::collection::vec((-10.0..10.0f64, -10.0..10.0f64), 3..20)) {
            let moments = Moments::of(&points);
            prop_assume!(moments.xx > 0.1);
            let design = DMatrix::from_fn(points.len(), 2, |row, column| if column == 0 { 1.0 } else { points[row].0 });
            let y: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
            let fit = LeastSquares::fit(&design, &y).expect("x varies");
            let line = Slope::through(&points).expect("x varies");
            let scale = 1.0 + fit.coefficients().iter().map(|c| c.abs()).sum::<f64>();
            prop_assert!((line.value - fit.coefficients()[1]).abs() < 1e-9 * scale);
            prop_assert!((moments.intercept(line.value) - fit.coefficients()[0]).abs() < 1e-9 * scale);
            prop_assert!((line.r_squared - fit.r_squared()).abs() < 1e-9);
            let variance = fit.residual_variance().expect("three points");
            prop_assert!((line.std_error - fit.standard_errors(variance)[1]).abs() < 1e-6 * scale);
        }
    }
}

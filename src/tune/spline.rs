//! B-splines: smooth piecewise polynomials that do not oscillate as plain polynomials do.

/// The B-spline functions of one variable, without the first one.
///
/// The functions of a full basis add up to 1 everywhere, so that one of them is redundant beside a
/// model's intercept. As in R's `bs()` and patsy's, it is the first that is left out: a basis of
/// degree `d` with `k` interior knots has `d + k` functions (its degrees of freedom).
///
/// Values follow the recurrence of C. de Boor, *A Practical Guide to Splines*, chapter IX.
#[derive(Debug, Clone, PartialEq)]
pub struct BSplineBasis {
    degree: usize,
    /// Boundary knots `degree + 1` times each, interior knots between them, in ascending order.
    knots: Vec<f64>,
}

impl BSplineBasis {
    /// A basis of `degree` on `lower..upper`. Interior knots outside of it are left out.
    ///
    /// Returns `None` where the boundary is no interval.
    pub fn new(degree: usize, lower: f64, upper: f64, interior: &[f64]) -> Option<Self> {
        if !(lower.is_finite() && upper.is_finite() && lower < upper) {
            return None;
        }
        let mut between: Vec<f64> =
            interior.iter().copied().filter(|knot| (lower..upper).contains(knot)).collect();
        between.retain(|&knot| knot > lower);
        between.sort_by(f64::total_cmp);
        let mut knots = vec![lower; degree + 1];
        knots.extend(between);
        knots.extend(vec![upper; degree + 1]);
        Some(Self { degree, knots })
    }

    /// Number of functions: degree plus interior knots.
    pub fn dimension(&self) -> usize {
        self.knots.len() - self.degree - 2
    }

    /// The values of all functions at `x`. Outside the boundary the outermost pieces go on.
    pub fn evaluate(&self, x: f64) -> Vec<f64> {
        let span = self.span_of(x);
        let mut values = vec![0.0; self.dimension() + 1];
        let first = span - self.degree;
        for (offset, value) in self.nonzero_functions(span, x).into_iter().enumerate() {
            values[first + offset] = value;
        }
        values.remove(0);
        values
    }

    /// The index `i` with `knots[i] <= x < knots[i + 1]`, of an interval that is not empty.
    fn span_of(&self, x: f64) -> usize {
        let last = self.knots.len() - self.degree - 2;
        let after = self.knots.partition_point(|&knot| knot <= x);
        after.saturating_sub(1).clamp(self.degree, last)
    }

    /// The `degree + 1` functions that are not zero on the span, raised from degree 0 step by step.
    fn nonzero_functions(&self, span: usize, x: f64) -> Vec<f64> {
        let mut values = vec![1.0];
        for degree in 1..=self.degree {
            let mut raised = vec![0.0; degree + 1];
            for (r, value) in values.iter().enumerate() {
                let left = self.knots[span + 1 + r - degree];
                let right = self.knots[span + 1 + r];
                // The span is not empty, and left..right contains it.
                let share = value / (right - left);
                raised[r] += share * (right - x);
                raised[r + 1] += share * (x - left);
            }
            values = raised;
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn quadratic_without_interior_knots_is_bernstein() {
        let basis = BSplineBasis::new(2, 0.0, 1.0, &[]).expect("an interval");
        let t: f64 = 0.3;
        assert!(close(&basis.evaluate(t), &[2.0 * t * (1.0 - t), t * t]));
        assert_eq!(basis.dimension(), 2);
    }

    /// By hand: on 0..4 with a knot at 2, at x = 1 the piece 0..2 gives (1/4, 5/8, 1/8, 0).
    #[test]
    fn quadratic_with_one_interior_knot() {
        let basis = BSplineBasis::new(2, 0.0, 4.0, &[2.0]).expect("an interval");
        assert_eq!(basis.dimension(), 3);
        assert!(close(&basis.evaluate(1.0), &[0.625, 0.125, 0.0]));
        assert!(close(&basis.evaluate(2.0), &[0.5, 0.5, 0.0]));
        assert!(close(&basis.evaluate(4.0), &[0.0, 0.0, 1.0]));
        assert!(close(&basis.evaluate(0.0), &[0.0, 0.0, 0.0]));
    }

    #[test]
    fn an_empty_interval_is_no_basis() {
        assert_eq!(BSplineBasis::new(2, 1.0, 1.0, &[]), None);
        assert_eq!(BSplineBasis::new(2, f64::NAN, 1.0, &[]), None);
    }

    #[test]
    fn knots_on_or_beyond_the_boundary_are_left_out() {
        let basis = BSplineBasis::new(2, 0.0, 1.0, &[0.0, 1.0, 2.0, 0.5]).expect("an interval");
        assert_eq!(basis.dimension(), 3);
    }

    proptest! {
        /// With the function that is left out, the values add up to 1; inside none is negative.
        #[test]
        fn a_partition_of_unity(x in 0.0..10.0f64, knot in 0.5..9.5f64, degree in 1usize..4) {
            let basis = BSplineBasis::new(degree, 0.0, 10.0, &[knot]).expect("an interval");
            let span = basis.span_of(x);
            let all = basis.nonzero_functions(span, x);
            prop_assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(all.iter().all(|&value| value >= -1e-12));
        }

        /// Every polynomial of the basis' degree is a combination of its functions, outside as well:
        /// the coefficients of x itself are the Greville points (averages of `degree` knots).
        #[test]
        fn reproduces_straight_lines(x in -5.0..15.0f64, knot in 0.5..9.5f64) {
            let basis = BSplineBasis::new(2, 0.0, 10.0, &[knot]).expect("an interval");
            let greville = [knot / 2.0, (knot + 10.0) / 2.0, 10.0];
            let line: f64 = basis.evaluate(x).iter().zip(greville).map(|(b, g)| b * g).sum();
            prop_assert!((line - x).abs() < 1e-9);
        }
    }
}

//! How wide an interval must be that is made from few values.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half the width of a two-sided interval, in standard errors: the quantile of Student's t at
/// `(1 + level) / 2`.
///
/// `None` without degrees of freedom or for a level outside 0..1.
pub fn t_quantile(level: f64, degrees_of_freedom: usize) -> Option<f64> {
    if degrees_of_freedom == 0 || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let distribution = StudentsT::new(0.0, 1.0, degrees_of_freedom as f64).ok()?;
    Some(distribution.inverse_cdf(0.5 + level / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of any textbook; the last line is close to the normal distribution's 1.645, 1.960 and 2.576.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, [ninety, ninety_five, ninety_nine]) in [
            (1, [6.314, 12.706, 63.657]),
            (2, [2.920, 4.303, 9.925]),
            (4, [2.132, 2.776, 4.604]),
            (5, [2.015, 2.571, 4.032]),
            (10, [1.812, 2.228, 3.169]),
            (30, [1.697, 2.042, 2.750]),
            (120, [1.658, 1.980, 2.617]),
        ] {
            for (level, tabled) in [(0.9, ninety), (0.95, ninety_five), (0.99, ninety_nine)] {
                let found = t_quantile(level, freedom).expect("valid");
                assert!((found - tabled).abs() < 6e-4, "{level} {freedom}: {found}");
            }
        }
    }

    #[test]
    fn nothing_is_said_without_freedom_or_of_certainty() {
        assert_eq!(t_quantile(0.95, 0), None);
        assert_eq!(t_quantile(1.0, 3), None);
        assert_eq!(t_quantile(0.0, 3), None);
        assert_eq!(t_quantile(f64::NAN, 3), None);
    }
}

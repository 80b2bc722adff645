//! Deviations and weights that a few wild values do not spoil.

use super::quantiles::median;

/// The median of `|x|` of a normal distribution, in standard deviations (more exactly 0.67449).
pub const MEDIAN_SIZE: f64 = 0.6745;

/// The standard deviation of errors from the median of their sizes `|x|`, if most are normally distributed;
/// `None` of nothing. Sorts the sizes.
pub fn deviation(sizes: &mut [f64]) -> Option<f64> {
    median(sizes).map(|median| median / MEDIAN_SIZE)
}

/// The standard deviation of equally spaced readings around a course that hardly bends, by the median of their
/// second differences, so that neither slopes nor steps count; `None` of fewer than three readings.
pub fn jitter(readings: &[f64]) -> Option<f64> {
    let mut bends: Vec<f64> = readings.windows(3).map(|w| (w[2] - 2.0 * w[1] + w[0]).abs()).collect();
    // A second difference has sqrt(1 + 4 + 1) standard deviations.
    deviation(&mut bends).map(|deviation| deviation / 6f64.sqrt())
}

/// What the square of an error counts where errors beyond `limit` are to count by their size and not by its
/// square (P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35,
/// 1964): 1 up to the limit, and less beyond.
pub fn huber_weight(size: f64, limit: f64) -> f64 {
    (limit / size.max(f64::MIN_POSITIVE)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;

    /// A sum of twelve uniform numbers is close to normal, of variance 1.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
    }

    /// Second differences 1, 1, 8, 1 and 1 have a median of 1.
    #[test]
    fn jitter_by_hand() {
        let found = jitter(&[0.0, 0.0, 1.0, 3.0, 13.0, 24.0, 36.0]).expect("readings");
        assert!((found - 1.0 / 0.6745 / 6f64.sqrt()).abs() < 1e-12, "{found}");
        assert_eq!(jitter(&[0.0, 1.0, 4.0]), Some(2.0 / MEDIAN_SIZE / 6f64.sqrt()));
    }

    #[test]
    fn a_tenth_of_wild_errors_hardly_moves_the_deviation() {
        let mut random = Random::seeded(4);
        let mut sizes: Vec<f64> = (0..20_000).map(|_| (2.0 * normal(&mut random)).abs()).collect();
        let clean = deviation(&mut sizes).expect("errors");
        assert!((clean - 2.0).abs() < 0.05, "{clean}");
        sizes.iter_mut().step_by(10).for_each(|size| *size *= 1000.0);
        let spoilt = deviation(&mut sizes).expect("errors");
        assert!(spoilt < 2.5, "{spoilt}");
        assert_eq!(deviation(&mut []), None);
    }

    #[test]
    fn steps_and_slopes_are_no_jitter() {
        let mut random = Random::seeded(9);
        let course = |at: usize| 0.01 * at as f64 + if at / 500 % 2 == 1 { 100.0 } else { 300.0 };
        let readings: Vec<f64> = (0..10_000).map(|at| course(at) + 0.5 * normal(&mut random)).collect();
        let found = jitter(&readings).expect("readings");
        assert!((found - 0.5).abs() < 0.02, "{found}");
        assert_eq!(jitter(&[1.0, 2.0]), None);
    }

    #[test]
    fn weights_fall_beyond_the_limit() {
        assert_eq!(huber_weight(0.0, 1.5), 1.0);
        assert_eq!(huber_weight(1.5, 1.5), 1.0);
        assert_eq!(huber_weight(6.0, 1.5), 0.25);
    }
}

//! The mean of repeated measurements and how far the true one may be from it.

use serde::Serialize;

use crate::numerics::mean::SampleMean;
use crate::numerics::student::t_quantile;

/// Share of such intervals that hold the true mean.
const CONFIDENCE: f64 = 0.95;

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval; `None` from a single value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// From values that were measured independently of each other; `None` without any.
    ///
    /// The interval is Student's: `mean ± t(0.975, n - 1) s / √n`. It is exact for normally distributed
    /// values and nearly so for others from about ten on.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = SampleMean::of(values.iter().copied())?;
        let half_width = mean
            .standard_error()
            .and_then(|error| t_quantile(CONFIDENCE, mean.count - 1).map(|quantile| quantile * error));
        Some(Self { mean: mean.value, half_width })
    }

    /// The interval's bounds.
    pub fn bounds(self) -> Option<(f64, f64)> {
        self.half_width.map(|half| (self.mean - half, self.mean + half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::random::Random;

    #[test]
    fn by_hand() {
        // Mean 12, s = 2, s/√3 = 1.1547, t(0.975, 2) = 4.3027 by the tables.
        let estimate = Estimate::of(&[10.0, 12.0, 14.0]).expect("values");
        assert_eq!(estimate.mean, 12.0);
        assert!((estimate.half_width.expect("three values") - 4.9683).abs() < 1e-4);
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(Estimate::of(&[3.0]), Some(Estimate { mean: 3.0, half_width: None }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn the_truth_is_inside_in_95_of_100_cases() {
        let cases = 4000u32;
        let mut random = Random::seeded(0);
        let held = (0..cases).filter(|_| {
            // Sums of twelve uniform numbers are close to normal, with mean 6.
            let mut value = || (0..12).map(|_| random.uniform()).sum::<f64>();
            let values: Vec<f64> = (0..5).map(|_| value()).collect();
            let (low, high) = Estimate::of(&values).and_then(Estimate::bounds).expect("five values");
            low <= 6.0 && 6.0 <= high
        });
        let share = held.count() as f64 / f64::from(cases);
        assert!((0.94..=0.96).contains(&share), "{share}");
    }
}

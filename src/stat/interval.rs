//! The mean of repeated measurements and how far the true one may be from it.

use serde::Serialize;

use crate::tune::least_squares::t_quantile;

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
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width =
            t_quantile(CONFIDENCE, values.len() - 1).map(|t| t * (squares / (count - 1.0) / count).sqrt());
        Some(Self { mean, half_width })
    }

    /// The interval's bounds.
    pub fn bounds(self) -> Option<(f64, f64)> {
        self.half_width.map(|half| (self.mean - half, self.mean + half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// A number between 0 and 1 that looks random.
    fn scrambled(index: u64) -> f64 {
        let mut bits = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / u64::MAX as f64
    }

    #[test]
    fn the_truth_is_inside_in_95_of_100_cases() {
        let cases = 4000u64;
        let held = (0..cases).filter(|case| {
            // Sums of twelve uniform numbers are close to normal, with mean 6.
            let value = |run: u64| (0..12).map(|part| scrambled(case * 1000 + run * 12 + part)).sum::<f64>();
            let values: Vec<f64> = (0..5).map(value).collect();
            let (low, high) = Estimate::of(&values).and_then(Estimate::bounds).expect("five values");
            low <= 6.0 && 6.0 <= high
        });
        let share = held.count() as f64 / cases as f64;
        assert!((0.94..=0.96).contains(&share), "{share}");
    }
}

//! The mean of repeated measurements and how far the true one may be from it.

use serde::Serialize;

use crate::numerics::mean::SampleMean;
use crate::numerics::student::t_quantile;

/// Share of such intervals that hold the true mean.
const CONFIDENCE: f64 = 0.95;
/// Standard errors to each side in that share of normally distributed values.
const NORMAL: f64 = 1.959_964;

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(into = "Written")]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval of repeats alone, as measurements of one machine differ; `None` from a single
    /// value.
    pub half_width: Option<f64>,
    /// What all values may be off by alike, one standard error as a share of them: no repeat shows it. 0 where they were
    /// measured.
    pub common_error: f64,
    /// The interval that the truth is to be expected in.
    bounds: Option<Bounds>,
}

/// An estimate as JSON has it. Half a width is that of the bounds beside it, or has a name that says what it is of.
#[derive(Serialize)]
struct Written {
    mean: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_width: Option<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    half_width_of_repeats: Option<Option<f64>>,
    #[serde(flatten)]
    bounds: Option<Bounds>,
}

impl From<Estimate> for Written {
    fn from(estimate: Estimate) -> Self {
        let Estimate { mean, half_width, common_error, bounds } = estimate;
        let is_of_repeats = common_error > 0.0;
        Self {
            mean,
            half_width: (!is_of_repeats).then_some(half_width),
            half_width_of_repeats: is_of_repeats.then_some(half_width),
            bounds,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Bounds {
    low: f64,
    high: f64,
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
        let bounds = half_width.map(|half| Bounds { low: mean.value - half, high: mean.value + half });
        Some(Self { mean: mean.value, half_width, common_error: 0.0, bounds })
    }

    /// The same of values that are all off by one unknown factor, of this standard error as a share (0.6: a truth
    /// of 1.6 times the values is one standard error away, and so is one of 1/1.6).
    ///
    /// A factor, since no energy is negative however little is known of it. Chance of repeats and the factor are
    /// independent, so that their half widths add as squares, as logarithms.
    pub fn with_common_error(self, share: f64) -> Self {
        if !(share > 0.0 && self.mean.abs() > 0.0) {
            return self;
        }
        let of_repeats = self.half_width.map_or(0.0, |half| half / self.mean.abs());
        let factor = (NORMAL * share.ln_1p()).hypot(of_repeats).exp();
        let (a, b) = (self.mean / factor, self.mean * factor);
        Self { common_error: share, bounds: Some(Bounds { low: a.min(b), high: a.max(b) }), ..self }
    }

    /// The interval's bounds: what the truth is to be expected between, not only the mean of more repeats.
    pub fn bounds(self) -> Option<(f64, f64)> {
        self.bounds.map(|bounds| (bounds.low, bounds.high))
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
        let one = Estimate::of(&[3.0]).expect("a value");
        assert_eq!((one.mean, one.half_width, one.bounds()), (3.0, None, None));
        assert_eq!(Estimate::of(&[]), None);
    }

    /// 60 %: 1.6 to the power of 1.96 is 2.512, whatever a single run says of repeats; 5 % beside it changes little.
    #[test]
    fn what_all_values_may_be_off_by_is_in_the_bounds() {
        let (low, high) = Estimate::of(&[10.0]).expect("one").with_common_error(0.6).bounds().expect("known");
        assert!((low - 10.0 / 2.5123).abs() < 1e-3 && (high - 25.123).abs() < 1e-2, "{low} {high}");
        let repeated = Estimate::of(&[10.0, 12.0, 14.0]).expect("values");
        assert_eq!(repeated.with_common_error(0.0), repeated);
        // sqrt((1.96 ln 1.1)^2 + (4.9683 / 12)^2) = 0.4543.
        let (low, high) = repeated.with_common_error(0.1).bounds().expect("three values");
        assert!((high / 12.0 - 0.4543f64.exp()).abs() < 1e-3 && (low * high - 144.0).abs() < 1e-9);
        assert_eq!(Estimate::of(&[0.0]).expect("one").with_common_error(0.6).bounds(), None);
        let written = |estimate: Estimate| {
            let value = serde_json::to_value(estimate).expect("JSON");
            let number = |key: &str| value[key].as_f64();
            (number("half_width"), number("half_width_of_repeats"), number("high"))
        };
        assert_eq!(written(repeated), (repeated.half_width, None, repeated.bounds().map(|bounds| bounds.1)));
        assert_eq!(written(repeated.with_common_error(0.1)), (None, repeated.half_width, Some(high)));
        let below = Estimate::of(&[-2.0]).expect("one").with_common_error(0.6).bounds().expect("known");
        assert!(below.0 < -2.0 && below.1 > -2.0 && below.1 < 0.0, "{below:?}");
    }

    /// Machines whose watts are off by a factor that differs from machine to machine, five runs on each.
    #[test]
    fn the_truth_of_an_estimate_is_inside_in_95_of_100_machines() {
        let machines = 4000u32;
        let mut random = Random::seeded(1);
        let held = (0..machines).filter(|_| {
            let mut normal = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
            let truth = 10.0 * (1.6f64.ln() * normal()).exp();
            let values: Vec<f64> = (0..5).map(|_| 10.0 + 0.5 * normal()).collect();
            let estimate = Estimate::of(&values).expect("five values").with_common_error(0.6);
            let (low, high) = estimate.bounds().expect("five values");
            low <= truth && truth <= high
        });
        let share = held.count() as f64 / f64::from(machines);
        assert!((0.93..=0.97).contains(&share), "{share}");
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

//! How much more one program takes than another.
//!
//! Runs are made in turns, A B A B, so that a run of A and the run of B after it share the state of the
//! machine: its temperature, its clock, its neighbours. The difference within such a pair is free of
//! what drifts from pair to pair, so the interval is made of pairs; Fieller's interval for the ratio of
//! two means takes the two as independent and would be wider for nothing. The difference is one of
//! logarithms: disturbances act by a factor, a ratio is never negative, and to exchange A and B must give
//! the inverse interval, which the logarithms do and the ratio of means does not.

use serde::Serialize;

use super::interval::Estimate;

/// The ratio B / A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// Geometric mean of the pairs' ratios.
    pub mean: f64,
    /// Its 95 % interval; `None` from a single pair.
    pub bounds: Option<(f64, f64)>,
}

impl Ratio {
    /// Whether the interval excludes that both take the same.
    pub fn differs(self) -> bool {
        self.bounds.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// The ratio of `b` to `a`, measured in pairs. A value without a partner is left out. `None` without a
/// pair, or if a value is not positive.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Ratio> {
    let pairs: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.ln() - a.ln()).collect();
    if !pairs.iter().all(|pair| pair.is_finite()) {
        return None;
    }
    let logarithm = Estimate::of(&pairs)?;
    Some(Ratio {
        mean: logarithm.mean.exp(),
        bounds: logarithm.bounds().map(|(low, high)| (low.exp(), high.exp())),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_interval_that_touches_one_does_not_differ() {
        let of = |low: f64, high: f64| Ratio { mean: 1.0, bounds: Some((low, high)) }.differs();
        assert!(of(1.01, 1.2) && of(0.8, 0.99));
        assert!(!of(1.0, 1.2) && !of(0.8, 1.0) && !of(0.9, 1.1));
    }

    #[test]
    fn what_both_runs_of_a_pair_share_does_not_widen_the_interval() {
        // The machine takes twice as much at the end; B takes 10 % more than A, give or take 1 %.
        let drift = [10.0, 12.0, 15.0, 20.0];
        let a = drift;
        let b = [11.0, 13.3, 16.4, 22.1];
        let found = ratio(&a, &b).expect("pairs");
        let (low, high) = found.bounds.expect("four pairs");
        assert!((found.mean - 1.1).abs() < 0.01 && low > 1.08 && high < 1.12, "{found:?}");
        assert!(found.differs());
        // The means alone are too uncertain to tell A from B.
        let bounds = |values: &[f64]| Estimate::of(values).and_then(Estimate::bounds).expect("values");
        assert!(bounds(&a).1 > bounds(&b).0);
    }

    #[test]
    fn no_energy_has_no_ratio() {
        assert_eq!(ratio(&[1.0, 0.0], &[1.0, 1.0]), None);
        assert_eq!(ratio(&[], &[1.0]), None);
        assert_eq!(ratio(&[2.0], &[3.0]).expect("a pair").bounds, None);
        assert!(!ratio(&[2.0], &[3.0]).expect("a pair").differs());
    }

    proptest! {
        #[test]
        fn exchanged_programs_have_the_inverse_interval(
            pairs in prop::collection::vec((0.01f64..1e4, 0.01f64..1e4), 2..12),
            scale in 0.1f64..10.0,
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (one, other) = (ratio(&a, &b).expect("positive"), ratio(&b, &a).expect("positive"));
            let (low, high) = one.bounds.expect("two pairs");
            let (low_of_other, high_of_other) = other.bounds.expect("two pairs");
            prop_assert!((one.mean * other.mean - 1.0).abs() < 1e-9);
            prop_assert!((low * high_of_other - 1.0).abs() < 1e-9 && (high * low_of_other - 1.0).abs() < 1e-9);
            prop_assert!(low <= one.mean && one.mean <= high);
            // A slower machine changes nothing.
            let scaled = |values: &[f64]| values.iter().map(|value| value * scale).collect::<Vec<_>>();
            let again = ratio(&scaled(&a), &scaled(&b)).expect("positive");
            prop_assert!((again.mean / one.mean - 1.0).abs() < 1e-9);
        }
    }
}

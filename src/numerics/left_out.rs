//! How wide an interval around an estimate must be, from how far estimates lay from what was left out.
//!
//! What a model says of its own rows is no measure of what it says of others. So parts of the rows are left out in
//! turn, the whole way from data to model is gone again without them, and how far they lie from their estimates tells
//! how wide an interval must be for yet another part. Distances are those of logarithms: shares of the value, and no
//! interval reaches below zero.

use serde::{Deserialize, Serialize};

use super::folds::Part;
use super::quantiles;
use super::student::t_quantile;

/// An estimate of nothing at all is as wrong as one of this share.
const LEAST_SHARE: f64 = 1e-3;
/// More distances than these say no more of how wide an interval must be.
const MOST_KEPT: usize = 500;

/// How far measurements lay from estimates that did not know them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOutDistances {
    /// `|ln(measured / estimated)|` and its weight, ascending. Each part weighs 1.
    distances: Vec<(f64, f64)>,
    mean_square: f64,
    mean_error: f64,
    parts: usize,
}

impl LeftOutDistances {
    /// Of each row what was estimated without it, and what was measured, both above zero; `parts` are the rows that
    /// were left out together, or that belong together: each counts the same, however many rows it has.
    pub fn new(estimated: &[f64], measured: &[f64], parts: &[Part]) -> Self {
        let mut distances = Vec::with_capacity(estimated.len());
        let (mut mean_square, mut mean_error) = (0.0, 0.0);
        for part in parts {
            let weight = 1.0 / part.len() as f64;
            for &row in part {
                let share = estimated[row] / measured[row];
                let distance = share.max(LEAST_SHARE).ln().abs();
                distances.push((distance, weight));
                mean_square += distance.powi(2) * weight / parts.len() as f64;
                mean_error += (share - 1.0).abs() * weight / parts.len() as f64;
            }
        }
        distances.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { distances: thinned(distances), mean_square, mean_error, parts: parts.len() }
    }

    /// Lowest and highest value between which a measurement lies with this probability (0..1) where a model of all
    /// the data says `value`; `None` for a level that is none, fewer than two parts, or a value that is not positive.
    ///
    /// With enough parts the interval is the share of what was left out that lay as near; with few, no share is
    /// that large, and Student's t at the root mean square of the distances takes its place.
    pub fn interval(&self, value: f64, level: f64) -> Option<(f64, f64)> {
        let distance = self.distance(level)?;
        (value > 0.0).then(|| (value * (-distance).exp(), value * distance.exp()))
    }

    fn distance(&self, level: f64) -> Option<f64> {
        let parts = self.parts as f64;
        let by_students_t =
            t_quantile(level, self.parts.checked_sub(1)?)? * (self.mean_square * (1.0 + 1.0 / parts)).sqrt();
        // As many as there are and one more that is farther than all: the part to come.
        let share = level * (parts + 1.0) / parts;
        let by_share = || quantiles::weighted(&self.distances, |(_, weight)| *weight, share);
        if share < 1.0 { by_share().map(|(distance, _)| *distance) } else { Some(by_students_t) }
    }

    /// Mean of |estimate - measured| / measured, each part counted once.
    pub fn mean_error(&self) -> f64 {
        self.mean_error
    }

    /// How many parts there were.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Whether all numbers are such as [`LeftOutDistances::new`] makes them, as they may not be if they come from a file.
    pub fn is_sound(&self) -> bool {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        self.distances.iter().all(|(distance, weight)| sound(*distance) && sound(*weight))
            && self.distances.is_sorted_by(|a, b| a.0 <= b.0)
            && sound(self.mean_square)
            && sound(self.mean_error)
    }
}

/// As few as say the same: neighbours become one of their common weight and the larger distance.
fn thinned(sorted: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = sorted.len().div_ceil(MOST_KEPT).max(1);
    let common = |all: &[(f64, f64)]| {
        let weight = all.iter().map(|(_, weight)| weight).sum();
        all.last().map(|(distance, _)| (*distance, weight))
    };
    sorted.chunks(step).filter_map(common).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::folds::spans;
    use crate::numerics::random::Random;

    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
    }

    #[test]
    fn by_hand() {
        // Two parts; one is 10 % off in both rows, the other exact: mean 5 %.
        let found = LeftOutDistances::new(&[1.1, 1.1, 2.0], &[1.0, 1.0, 2.0], &[vec![0, 1], vec![2]]);
        assert!((found.mean_error() - 0.05).abs() < 1e-12);
        let distance = 1.1f64.ln();
        let is_half = |level: f64, half: f64| {
            let (low, high) = found.interval(10.0, level).expect("two parts");
            (high - 10.0 * half.exp()).abs() < 1e-6 && (low - 10.0 * (-half).exp()).abs() < 1e-6
        };
        // Of two parts and one to come, half are one and a half: the exact one and a row of the other.
        assert!(is_half(0.5, distance));
        // 80 % would be more than both. Student's t of one degree is 3.0777 there, and the variance of one more beside two
        // is half as much again.
        assert!(is_half(0.8, 3.077_683_537 * (distance.powi(2) / 2.0 * 1.5).sqrt()));
        assert!(found.is_sound());
    }

    #[test]
    fn what_is_no_interval() {
        let one = LeftOutDistances::new(&[1.0, 1.2], &[1.0, 1.0], &[vec![0, 1]]);
        assert_eq!(one.interval(1.0, 0.95), None);
        let two = LeftOutDistances::new(&[1.0, 1.2], &[1.0, 1.0], &spans(2, 2));
        assert_eq!((two.interval(-1.0, 0.95), two.interval(1.0, 1.0)), (None, None));
        assert_eq!(LeftOutDistances::new(&[], &[], &[]).interval(1.0, 0.95), None);
        let broken = LeftOutDistances { mean_square: f64::NAN, ..two };
        assert!(!broken.is_sound());
    }

    /// Intervals by 2000 distances and by what is kept of them differ by no more than one of the kept.
    #[test]
    fn few_distances_say_what_many_do() {
        let mut random = Random::seeded(4);
        let estimated: Vec<f64> = (0..2000).map(|_| (0.1 * normal(&mut random)).exp()).collect();
        let found = LeftOutDistances::new(&estimated, &vec![1.0; 2000], &spans(2000, 2000));
        assert_eq!(found.distances.len(), MOST_KEPT);
        let (low, high) = found.interval(1.0, 0.95).expect("parts enough");
        assert!((0.185..0.212).contains(&high.ln()) && (low * high - 1.0).abs() < 1e-12, "{low} {high}");
        let held = estimated.iter().filter(|value| (low..=high).contains(value)).count();
        assert!((1900..=1912).contains(&held), "{held}");
    }
}

//! How far samples may be off by chance.

/// So many standard errors may be chance.
const LIKELY: f64 = 3.0;

/// The variance of what so many samples stand for: that of their count.
pub(super) fn variance(of_all: f64, samples: u64) -> f64 {
    of_all.powi(2) / samples.max(1) as f64
}

/// Whether chance explains a difference between what has this variance.
pub(super) fn explains(difference: f64, variance: f64) -> bool {
    difference <= LIKELY * variance.sqrt()
}

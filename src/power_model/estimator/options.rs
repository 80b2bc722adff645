//! What may be tried, and how far.

use crate::numerics::nnls::Sign;
use crate::power_model::terms::Shape;

/// How an [`Estimator`](super::Estimator) is made.
#[derive(Debug, Clone, PartialEq)]
pub struct EstimatorOptions {
    /// Curves that may be used.
    pub shapes: Vec<Shape>,
    /// Signs that coefficients of curves may have; with several, data decide.
    pub signs: Vec<Sign>,
    /// Largest number of terms of one small model. Never more than two fewer than training workloads.
    pub max_terms: usize,
    /// Small models of each size from which the next size is grown.
    pub beam: usize,
    /// Terms that are tried in sets of several: the best ones alone.
    pub pool: usize,
    /// A small model's weight falls by e for each such share of error above the best one's.
    pub tolerance: f64,
    /// Most groups that training workloads are dealt into for judging.
    pub folds: usize,
}

impl Default for EstimatorOptions {
    fn default() -> Self {
        Self {
            shapes: Shape::ALL.to_vec(),
            signs: vec![Sign::NonNegative, Sign::Free],
            max_terms: 6,
            beam: 30,
            pool: 64,
            tolerance: 1.0,
            folds: 8,
        }
    }
}

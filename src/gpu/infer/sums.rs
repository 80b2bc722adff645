//! Readings summed up as far as a fit of three levels needs them.

use nalgebra::{Matrix3, RowVector3, Vector3};

use crate::numerics::line::Moments;

/// Sums of readings and of what they see.
#[derive(Default)]
pub(super) struct Sums {
    pub gram: Matrix3<f64>,
    pub moment: Vector3<f64>,
    pub square: f64,
}

impl Sums {
    pub fn add(&mut self, row: RowVector3<f64>, above: f64) {
        self.gram += row.transpose() * row;
        self.moment += row.transpose() * above;
        self.square += above * above;
    }

    /// Readings in whose windows there is load and rest between loads, and nothing else: shares of load, and watts.
    ///
    /// What their mean says is sure. What they say by differing from each other is drawn to nothing where their times
    /// are not known well enough for the shares (`by_time`: sum of the squares that this makes), as of any line through
    /// points whose x is not known: then they say no more than their mean.
    pub fn add_mixtures(&mut self, within: &[(f64, f64)], by_time: f64) {
        const LITTLE: f64 = 0.03;
        if within.is_empty() {
            return;
        }
        let points = Moments::of(within);
        let count = points.count as f64;
        let row = RowVector3::new(0.0, 1.0 - points.mean.0, points.mean.0);
        self.gram += row.transpose() * row * count;
        self.moment += row.transpose() * points.mean.1 * count;
        self.square += points.yy + points.mean.1.powi(2) * count;
        if by_time < LITTLE * points.xx {
            let apart = RowVector3::new(0.0, -1.0, 1.0);
            self.gram += apart.transpose() * apart * points.xx;
            self.moment += apart.transpose() * points.xy;
        }
    }
}

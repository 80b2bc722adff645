//! The sensor's answer to one step of load, fitted.

use nalgebra::{Cholesky, Matrix3, Vector3};

use crate::numerics::quantiles::range;
use crate::numerics::search::golden_section;

/// Shape of an answer to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Exponential: `1 - exp(-t / length)`.
    Rc,
    /// Straight: `t / length`, up to 1.
    Boxcar,
}

impl Shape {
    /// Share of the step that the sensor shows `time` after it.
    pub fn answer(self, time: f64, length: f64) -> f64 {
        match self {
            _ if time <= 0.0 => 0.0,
            Self::Rc => 1.0 - (-time / length).exp(),
            Self::Boxcar => (time / length).min(1.0),
        }
    }
}

/// Readings around one step: seconds and watts.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// Seconds since the trace's start, rising.
    pub times: Vec<f64>,
    /// Watts.
    pub watts: Vec<f64>,
    /// Earliest and latest time at which the load can have changed.
    pub switched: (f64, f64),
}

/// A shape of one length put through one transition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepFit {
    /// When the load changed.
    pub at: f64,
    /// Level before it, watts.
    pub before: f64,
    /// Level after it, watts.
    pub after: f64,
    /// Sum of squared residuals, square watts.
    pub residual: f64,
}

impl Transition {
    /// Fits a shape of a given length: the time of the step by search, both levels and a drift of the
    /// level after the step (a board warms up) by least squares.
    pub fn fit(&self, shape: Shape, length: f64) -> Option<StepFit> {
        const STEPS: usize = 24;
        let (from, to) = self.switched;
        let try_at = |at: f64| self.fit_at(shape, length, at);
        let grid = (0..=STEPS).filter_map(|step| try_at(from + (to - from) * step as f64 / STEPS as f64));
        let best = grid.min_by(|a, b| a.residual.total_cmp(&b.residual))?;
        let width = (to - from) / STEPS as f64;
        let at = golden_section(best.at - width, best.at + width, |at| {
            try_at(at).map_or(f64::MAX, |fit| fit.residual)
        });
        Some(try_at(at).filter(|fit| fit.residual < best.residual).unwrap_or(best))
    }

    /// Difference between the highest and the lowest reading.
    pub fn range(&self) -> f64 {
        let (low, high) = range(self.watts.iter().copied());
        high - low
    }

    fn fit_at(&self, shape: Shape, length: f64, at: f64) -> Option<StepFit> {
        let last = *self.times.last()?;
        let row = |time: f64| {
            let drift = (time - at - length).max(0.0) / (last - at).max(length);
            [1.0, shape.answer(time - at, length), drift]
        };
        let mut normal = [[0.0; 3]; 3];
        let mut right = [0.0; 3];
        for (time, watts) in self.times.iter().zip(&self.watts) {
            let row = row(*time);
            for i in 0..3 {
                for j in 0..3 {
                    normal[i][j] += row[i] * row[j];
                }
                right[i] += row[i] * watts;
            }
        }
        // A little ridge keeps the drift at zero where nothing tells it.
        normal[2][2] += 1e-3 + 0.05 * self.times.len() as f64;
        normal[0][0] += 1e-9;
        normal[1][1] += 1e-9;
        let levels: [f64; 3] = Cholesky::new(Matrix3::from(normal))?.solve(&Vector3::from(right)).into();
        let value = |time: f64| row(time).iter().zip(levels).map(|(x, level)| x * level).sum::<f64>();
        let residual = self.times.iter().zip(&self.watts).map(|(t, w)| (w - value(*t)).powi(2)).sum();
        Some(StepFit { at, before: levels[0], after: levels[0] + levels[1], residual })
    }
}

/// Finds the transitions between low and high load in a trace of refreshes.
///
/// A transition is where the power crosses the middle between quiet and the highest level, from below
/// 35 % to above 65 % or back. It lasts while the slope is at least a twentieth of its steepest.
pub fn transitions(times: &[f64], watts: &[f64], period: f64, noise: f64) -> Vec<Transition> {
    let smooth: Vec<f64> = (0..watts.len())
        .map(|i| median3(watts[i.saturating_sub(1)], watts[i], watts[(i + 1).min(watts.len() - 1)]))
        .collect();
    let (low, high) = range(smooth);
    let share = |watts: f64| (watts - low) / (high - low);

    let mut crossings = Vec::new();
    let mut is_high: Option<bool> = None;
    for (index, watts) in watts.iter().enumerate() {
        let now = match share(*watts) {
            share if share > 0.65 => true,
            share if share < 0.35 => false,
            _ => continue,
        };
        if is_high.replace(now).is_some_and(|before| before != now) {
            crossings.push(index);
        }
    }
    let extents: Vec<(usize, usize)> = crossings.iter().map(|at| extent(watts, *at, noise)).collect();
    (0..extents.len())
        .map(|index| {
            let (start, end) = extents[index];
            let duration = times[end] - times[start];
            let after_previous = index.checked_sub(1).map_or(0, |before| extents[before].1).min(start);
            let before_next = extents.get(index + 1).map_or(times.len() - 1, |next| next.0).max(end);
            let from = times[start] - (0.5 * duration).max(4.0 * period);
            let to = times[end] + (0.4 * duration).max(4.0 * period);
            let inside: Vec<usize> =
                (after_previous..=before_next).filter(|i| (from..=to).contains(&times[*i])).collect();
            Transition {
                times: inside.iter().map(|i| times[*i]).collect(),
                watts: inside.iter().map(|i| watts[*i]).collect(),
                switched: (times[start] - 1.5 * period, times[start] + 0.3 * duration + 0.5 * period),
            }
        })
        .collect()
}

/// First and last reading of the change around a crossing.
fn extent(watts: &[f64], crossing: usize, noise: f64) -> (usize, usize) {
    let slope = |index: usize| watts[index] - watts[index - 1];
    let direction = slope(crossing).signum();
    let steepest = {
        let mut steepest = slope(crossing).abs();
        let around = crossing.saturating_sub(40).max(1)..(crossing + 40).min(watts.len());
        for index in around {
            // Only the part of the change that touches the crossing counts.
            if slope(index) * direction > steepest {
                steepest = slope(index) * direction;
            }
        }
        steepest
    };
    let least = (steepest / 20.0).max(2.0 * noise);
    let moves = |index: usize| index >= 1 && index < watts.len() && slope(index) * direction > least;
    let mut end = crossing;
    while moves(end + 1) || moves(end + 2) {
        end += 1;
    }
    let mut start = crossing - 1;
    while start >= 1 && (moves(start) || moves(start - 1)) {
        start -= 1;
    }
    (start, end)
}

fn median3(a: f64, b: f64, c: f64) -> f64 {
    a.max(b).min(a.min(b).max(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(shape: Shape, length: f64, at: f64) -> Transition {
        let times: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.02).collect();
        let watts = times.iter().map(|t| 30.0 + 100.0 * shape.answer(t - at, length)).collect();
        Transition { times, watts, switched: (0.1, 0.3) }
    }

    #[test]
    fn answers_by_hand() {
        assert_eq!([Shape::Rc.answer(0.0, 1.0), Shape::Boxcar.answer(-1.0, 1.0)], [0.0; 2]);
        assert_eq!([Shape::Boxcar.answer(0.5, 2.0), Shape::Boxcar.answer(3.0, 2.0)], [0.25, 1.0]);
        assert!((Shape::Rc.answer(2.0, 2.0) - (1.0 - (-1.0f64).exp())).abs() < 1e-12);
        assert_eq!([median3(1.0, 2.0, 3.0), median3(3.0, 1.0, 2.0), median3(2.0, 3.0, 1.0)], [2.0; 3]);
        assert_eq!(sampled(Shape::Boxcar, 0.1, 0.2).range(), 100.0);
    }

    #[test]
    fn the_extent_of_a_change_by_hand() {
        //           0    1    2    3    4     5     6     7     8
        let watts = [0.0, 0.0, 0.0, 5.0, 40.0, 80.0, 90.0, 90.5, 91.0];
        // The steepest is 40 W, a twentieth of it 2 W.
        assert_eq!(extent(&watts, 4, 0.0), (2, 6));
        // Twice a noise of 3 W lets the first 5 W pass.
        assert_eq!(extent(&watts, 4, 3.0), (3, 6));
        // One reading at rest does not end it, two do.
        let halting = [0.0, 20.0, 20.0, 40.0, 60.0, 60.0, 80.0, 80.0, 80.0, 100.0];
        assert_eq!(extent(&halting, 3, 0.0), (0, 6));
        let falling = [91.0, 91.0, 90.0, 50.0, 10.0, 0.0, 0.0, 0.0];
        assert_eq!(extent(&falling, 3, 0.0), (2, 5));
    }

    #[test]
    fn a_level_between_is_no_crossing() {
        let times: Vec<f64> = (0..12).map(f64::from).collect();
        // 60 of 100 W lies between 35 % and 65 %, 70 W does not.
        let burst = |watts: f64| [0.0, 0.0, 0.0, watts, watts, watts, 0.0, 0.0, 0.0, 100.0, 100.0, 100.0];
        assert_eq!(transitions(&times, &burst(60.0), 1.0, 0.0).len(), 1);
        let found = transitions(&times, &burst(70.0), 1.0, 0.0);
        assert_eq!(found.len(), 3);
        let Transition { times, watts, switched } = &found[1];
        // The fall from 5 s to 6 s, with the readings between its neighbours.
        assert_eq!((*switched, times.first(), times.last()), ((3.5, 5.8), Some(&3.0), Some(&8.0)));
        assert_eq!(watts, &[70.0, 70.0, 70.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_clean_answer_is_found_again() {
        for (shape, length) in
            [(Shape::Rc, 0.05), (Shape::Rc, 0.12), (Shape::Boxcar, 0.1), (Shape::Boxcar, 0.3)]
        {
            let fit = sampled(shape, length, 0.213).fit(shape, length).expect("a fit");
            assert!((fit.at - 0.213).abs() < 1e-3, "{shape:?} {fit:?}");
            assert!((fit.after - fit.before - 100.0).abs() < 0.5 && fit.residual < 0.1, "{shape:?} {fit:?}");
            let other = if shape == Shape::Rc { Shape::Boxcar } else { Shape::Rc };
            let worse = sampled(shape, length, 0.213).fit(other, length).expect("a fit");
            assert!(worse.residual > 20.0, "{worse:?}");
        }
    }

    #[test]
    fn both_ends_of_a_burst_are_found() {
        let times: Vec<f64> = (0..200).map(|i| f64::from(i) * 0.015).collect();
        let answer =
            |t: f64| 25.0 + 100.0 * (Shape::Rc.answer(t - 1.0, 0.06) - Shape::Rc.answer(t - 2.0, 0.06));
        let watts: Vec<f64> = times.iter().map(|t| answer(*t)).collect();
        let found = transitions(&times, &watts, 0.015, 0.05);
        assert_eq!(found.len(), 2);
        assert!(found[0].switched.0 < 1.0 && found[0].switched.1 > 1.0, "{:?}", found[0].switched);
        assert!(found[1].switched.0 < 2.0 && found[1].switched.1 > 2.0, "{:?}", found[1].switched);
    }

    #[test]
    fn a_change_reaches_as_far_as_it_moves() {
        // It is crossed at the reading of 50; a twentieth of the steepest step is 2.5.
        let watts = [10.0, 10.0, 12.0, 20.0, 50.0, 100.0, 103.0, 103.0, 104.0, 90.0];
        assert_eq!(extent(&watts, 4, 0.0), (2, 6));
        // Less than two deviations of the noise is no move.
        assert_eq!(extent(&watts, 4, 2.0), (2, 5));
        // A pause of one reading does not end it, and it may reach to the ends of what is there.
        assert_eq!(extent(&[0.0, 20.0, 20.0, 40.0, 60.0], 3, 0.0), (0, 4));
        assert_eq!(extent(&[60.0, 40.0, 40.0, 20.0, 0.0], 1, 0.0), (0, 4), "downwards alike");
        assert_eq!(extent(&[0.0, 20.0, 20.0, 20.0, 40.0], 4, 0.0), (3, 4), "two do");
    }
}

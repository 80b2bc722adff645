//! How well a predicted Pareto front agrees with an observed one: the paper's five measures, and the
//! distance between the two curves.

use super::front::{Cost, pareto_front};
use super::space::Space;

/// The five measures.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontAccuracy {
    /// 1: settings on both fronts.
    pub overlapping: usize,
    /// 2: for each setting on the observed front only, the distance to the nearest on the predicted
    /// one, as a share of the search space's dimension.
    pub observed_only: Vec<f64>,
    /// 3: for each setting on the predicted front only, the distance to the nearest observed one.
    pub predicted_only: Vec<f64>,
    /// 4: least and largest cost along both fronts.
    pub ends: FrontPair<[[f64; 2]; 2]>,
    /// 5: range of the trade-off against the default setting: for time and energy, the least and
    /// largest cost along the front as a share of the default's.
    pub range: FrontPair<[[f64; 2]; 2]>,
}

/// The same figure for the observed and the predicted front.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrontPair<T> {
    /// Of what was measured.
    pub observed: T,
    /// Of what the model says.
    pub predicted: T,
}

/// Compares the fronts of observed and predicted costs, both given for all settings of the space.
///
/// `default` is the position of the setting that the ranges refer to.
///
/// # Panics
/// If the costs are not one per setting of the space.
pub fn compare_fronts(space: &Space, observed: &[Cost], predicted: &[Cost], default: usize) -> FrontAccuracy {
    assert!(observed.len() == space.size() && predicted.len() == space.size(), "one cost per setting");
    let fronts = FrontPair { observed: pareto_front(observed), predicted: pareto_front(predicted) };
    let apart = |from: &[usize], to: &[usize]| {
        let alone = from.iter().filter(|position| !to.contains(position));
        let mut distances: Vec<f64> = alone
            .filter_map(|&position| {
                to.iter().map(|&other| distance(space, position, other)).min_by(f64::total_cmp)
            })
            .collect();
        distances.sort_by(f64::total_cmp);
        distances
    };
    let ends = FrontPair {
        observed: ends(observed, &fronts.observed),
        predicted: ends(predicted, &fronts.predicted),
    };
    let against =
        |ends: [[f64; 2]; 2], default: Cost| [0, 1].map(|axis| ends[axis].map(|end| end / default[axis]));
    FrontAccuracy {
        overlapping: fronts.observed.iter().filter(|position| fronts.predicted.contains(position)).count(),
        observed_only: apart(&fronts.observed, &fronts.predicted),
        predicted_only: apart(&fronts.predicted, &fronts.observed),
        range: FrontPair {
            observed: against(ends.observed, observed[default]),
            predicted: against(ends.predicted, predicted[default]),
        },
        ends,
    }
}

/// Steps between two settings as a share of the search space's dimension: the largest over the
/// variables, each step counting one over its number of levels (36 to 40 of 4..44 is 1/11).
fn distance(space: &Space, a: usize, b: usize) -> f64 {
    let coordinates = space.coordinates(a).into_iter().zip(space.coordinates(b));
    let steps = coordinates.zip(space.variables());
    steps.map(|((a, b), variable)| a.abs_diff(b) as f64 / variable.levels().len() as f64).fold(0.0, f64::max)
}

fn ends(costs: &[Cost], front: &[usize]) -> [[f64; 2]; 2] {
    [0, 1].map(|axis| {
        front
            .iter()
            .map(|&position| costs[position][axis])
            .fold([f64::INFINITY, 0.0], |[least, most], cost| [least.min(cost), most.max(cost)])
    })
}

/// Root mean square of the relative distance between two fronts, in time and in energy.
///
/// The predicted front is drawn as a line through its points, its ends extended parallel to the axes
/// (step 3 of the trade-off zone); every observed point is compared with the line at the same energy
/// (for time) and at the same time (for energy). `None` where a front is empty.
pub fn front_error(observed: &[Cost], predicted: &[Cost]) -> Option<[f64; 2]> {
    let line: Vec<Cost> = pareto_front(predicted).into_iter().map(|position| predicted[position]).collect();
    let points = pareto_front(observed);
    if line.is_empty() || points.is_empty() {
        return None;
    }
    Some([0, 1].map(|axis| {
        let other = 1 - axis;
        let squares: f64 = points
            .iter()
            .map(|&position| {
                (at(&line, other, observed[position][other]) / observed[position][axis] - 1.0).powi(2)
            })
            .sum();
        (squares / points.len() as f64).sqrt()
    }))
}

/// The line's cost on the other axis where its cost on `axis` is `cost`; beyond the ends, the end's.
fn at(line: &[Cost], axis: usize, cost: f64) -> f64 {
    let mut sorted: Vec<Cost> = line.to_vec();
    sorted.sort_by(|a, b| a[axis].total_cmp(&b[axis]));
    let other = 1 - axis;
    let above = sorted.partition_point(|point| point[axis] < cost);
    match (above.checked_sub(1).map(|below| sorted[below]), sorted.get(above)) {
        (Some(below), Some(above)) => {
            let share = (cost - below[axis]) / (above[axis] - below[axis]);
            below[other] + share * (above[other] - below[other])
        }
        (Some(end), None) => end[other],
        (None, Some(end)) => end[other],
        (None, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::parse_named_variable;
    use super::*;

    #[test]
    fn equal_fronts_have_no_distance() {
        let costs = [[1.0, 4.0], [2.0, 2.0], [4.0, 1.0], [4.0, 4.0]];
        assert_eq!(front_error(&costs, &costs), Some([0.0, 0.0]));
        assert_eq!(front_error(&costs, &[]), None);
    }

    /// All predictions 10 % too long and 20 % too dear. By hand, for the observed (2, 2): at 2 J the
    /// line is beyond... its points are (1.1, 4.8), (2.2, 2.4), (4.4, 1.2); at 2 J it lies a third of
    /// the way from the second to the third, at 2.2 + 2.2 / 3 s.
    #[test]
    fn distances_are_measured_along_the_axes() {
        let observed = [[2.0, 2.0]];
        let predicted = [[1.1, 4.8], [2.2, 2.4], [4.4, 1.2]];
        let [time, energy] = front_error(&observed, &predicted).expect("two fronts");
        assert!((time - ((2.2 + 2.2 / 3.0) / 2.0 - 1.0)).abs() < 1e-12);
        assert!((energy - ((4.8 - 2.4 * 0.9 / 1.1) / 2.0 - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn beyond_the_ends_the_line_runs_on_parallel_to_the_axes() {
        assert_eq!(front_error(&[[1.0, 1.0]], &[[2.0, 1.5]]), Some([1.0, 0.5]));
    }

    #[test]
    fn the_five_measures_by_hand() {
        let space = Space::new(vec![parse_named_variable("threads=4..44:4").expect("valid")]).expect("valid");
        let mut observed = vec![[100.0, 100.0]; 11];
        let mut predicted = observed.clone();
        (observed[0], observed[5], observed[8]) = ([4.0, 1.0], [2.0, 2.0], [1.0, 4.0]);
        (predicted[0], predicted[6], predicted[10]) = ([4.0, 1.5], [2.0, 2.5], [1.0, 5.0]);
        let accuracy = compare_fronts(&space, &observed, &predicted, 10);
        assert_eq!(accuracy.overlapping, 1);
        assert_eq!(accuracy.observed_only, [1.0 / 11.0, 2.0 / 11.0]);
        assert_eq!(accuracy.predicted_only, [1.0 / 11.0, 2.0 / 11.0]);
        assert_eq!(accuracy.ends.observed, [[1.0, 4.0], [1.0, 4.0]]);
        assert_eq!(accuracy.ends.predicted, [[1.0, 4.0], [1.5, 5.0]]);
        assert_eq!(accuracy.range.observed, [[0.01, 0.04], [0.01, 0.04]]);
        assert_eq!(accuracy.range.predicted, [[1.0, 4.0], [0.3, 1.0]]);
    }
}

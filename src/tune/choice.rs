//! Which setting to recommend.

use std::fmt;

use super::front::Cost;

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// The least energy, however long it takes.
    LeastEnergy,
    /// The least energy of what is at most this much slower than the default setting (0.2 for 20 %).
    MaxSlowdown(f64),
    /// The least energy times time.
    EnergyDelay,
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Goal::LeastEnergy => f.write_str("least energy"),
            Goal::MaxSlowdown(limit) => {
                write!(f, "least energy at no more than {} % slow-down", tenths(limit * 100.0))
            }
            Goal::EnergyDelay => f.write_str("least energy times time"),
        }
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The position of the best point, where `default` is the position of the default setting.
///
/// Of equally good points it is the faster one, then the first. `None` if no point has finite costs.
pub fn choose(goal: Goal, points: &[Cost], default: usize) -> Option<usize> {
    let limit = match goal {
        Goal::MaxSlowdown(limit) => points.get(default)?[0] * (1.0 + limit),
        Goal::LeastEnergy | Goal::EnergyDelay => f64::INFINITY,
    };
    let score = |position: &usize| {
        let [time, energy] = points[*position];
        match goal {
            Goal::EnergyDelay => [time * energy, time],
            Goal::LeastEnergy | Goal::MaxSlowdown(_) => [energy, time],
        }
    };
    (0..points.len())
        .filter(|&position| {
            points[position].iter().all(|cost| cost.is_finite()) && points[position][0] <= limit
        })
        .min_by(|a, b| {
            let (a, b) = (score(a), score(b));
            a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POINTS: [Cost; 4] = [[1.0, 10.0], [1.2, 7.0], [1.5, 6.0], [3.0, 5.0]];

    #[test]
    fn each_goal_has_its_own_answer() {
        assert_eq!(choose(Goal::LeastEnergy, &POINTS, 0), Some(3));
        assert_eq!(choose(Goal::MaxSlowdown(0.2), &POINTS, 0), Some(1));
        assert_eq!(choose(Goal::MaxSlowdown(0.6), &POINTS, 0), Some(2));
        assert_eq!(choose(Goal::EnergyDelay, &POINTS, 0), Some(1));
        assert_eq!(choose(Goal::LeastEnergy, &[], 0), None);
    }

    #[test]
    fn of_equals_the_faster() {
        assert_eq!(choose(Goal::LeastEnergy, &[[2.0, 5.0], [1.0, 5.0], [1.0, 5.0]], 0), Some(1));
    }

    #[test]
    fn a_goal_says_what_it_is() {
        assert_eq!(Goal::MaxSlowdown(0.2).to_string(), "least energy at no more than 20 % slow-down");
    }

    proptest! {
        /// The default itself is always allowed, so a limit of 0 never costs energy or time.
        #[test]
        fn no_worse_than_the_default(points in proptest::collection::vec((0.1..9.0f64, 0.1..9.0f64), 1..20)) {
            let points: Vec<Cost> = points.into_iter().map(|(a, b)| [a, b]).collect();
            let best = points[choose(Goal::MaxSlowdown(0.0), &points, 0).expect("the default")];
            prop_assert!(best[0] <= points[0][0] && best[1] <= points[0][1]);
        }
    }
}

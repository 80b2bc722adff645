//! Counters of many things, bounded in number, of which none ever falls.

use std::collections::BTreeMap;

/// What stands for all that has no counter of its own.
pub const OTHER: &str = "other";
/// With fewer samples nothing is known to be heavy.
const FEWEST_SAMPLES: u64 = 5;
/// The last place is for what has so many fair shares more.
const WHEN_FULL: f64 = 20.0;

/// A thing of a window.
#[derive(Debug, Clone, PartialEq)]
pub struct Part<K> {
    pub key: K,
    pub joules: f64,
    pub samples: u64,
}

/// What has a counter of its own keeps it; all else counts in one that stands for the rest.
///
/// A thing gets a counter in the first window in which it is seen well enough and has a fair share: one part in as many as
/// there may be, and more of it the less room is left, so that months of passers-by do not fill it. What it had before stays
/// with the rest. So nothing is counted twice, the sum of all is the sum of
/// what was added, and no counter goes down or away, in whatever order windows come.
///
/// The alternative, to show the heaviest at each time, folds and unfolds: the rest would rise by what a function had in all its
/// life when that leaves, and would have to fall when it comes back.
#[derive(Debug)]
pub struct BoundedSeries<K> {
    kept: BTreeMap<K, f64>,
    rest: f64,
    most: usize,
}

impl<K: Ord + Clone> BoundedSeries<K> {
    /// At most so many, beside the rest.
    pub fn new(most: usize) -> Self {
        Self { kept: BTreeMap::new(), rest: 0.0, most }
    }

    /// Another bound. Those that there are stay.
    pub fn set_bound(&mut self, most: usize) {
        self.most = most;
    }

    /// Adds the things of a window, and `whole`, which they are parts of: what they leave of it is of the rest. What is not
    /// above zero is not counted.
    pub fn add(&mut self, parts: impl IntoIterator<Item = Part<K>>, whole: f64) {
        let mut new: Vec<Part<K>> = Vec::new();
        let mut left = whole;
        for Part { key, joules, samples } in parts {
            let joules = above_zero(joules);
            left -= joules;
            match self.kept.get_mut(&key) {
                Some(sum) => *sum += joules,
                None => new.push(Part { key, joules, samples }),
            }
        }
        // The heaviest first; among equals the order is always the same.
        new.sort_by(|a, b| b.joules.total_cmp(&a.joules).then_with(|| a.key.cmp(&b.key)));
        for Part { key, joules, samples } in new {
            let is_wanted = samples >= FEWEST_SAMPLES && joules >= whole * self.least_share();
            // The same thing may be there twice.
            if self.kept.contains_key(&key) || (is_wanted && joules > 0.0 && self.kept.len() < self.most) {
                *self.kept.entry(key).or_default() += joules;
            } else {
                self.rest += joules;
            }
        }
        self.rest += above_zero(left);
    }

    /// What a new one must have of a window.
    fn least_share(&self) -> f64 {
        let most = self.most.max(1) as f64;
        let full = self.kept.len() as f64 / most;
        (1.0 + WHEN_FULL * full * full) / most
    }

    /// Those that have a counter of their own, in a certain order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, f64)> {
        self.kept.iter().map(|(key, joules)| (key, *joules))
    }

    /// All others.
    pub fn rest(&self) -> f64 {
        self.rest
    }
}

/// Counters only rise.
pub fn above_zero(joules: f64) -> f64 {
    if joules > 0.0 && joules.is_finite() { joules } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_counter_falls_or_goes_and_all_are_the_sum(
            windows in prop::collection::vec(
                prop::collection::vec((0u8..40, 0.0..100.0f64, 0u64..40), 0..30),
                1..20,
            ),
            most in 1usize..12,
        ) {
            let mut series = BoundedSeries::new(most);
            let (mut before, mut rest, mut all) = (BTreeMap::new(), 0.0, 0.0);
            for window in windows {
                let whole: f64 = window.iter().map(|(_, joules, _)| joules).sum();
                all += whole;
                series.add(window.into_iter().map(|(key, joules, samples)| Part { key, joules, samples }), whole);
                let now: BTreeMap<u8, f64> = series.iter().map(|(key, joules)| (*key, joules)).collect();
                prop_assert!(now.len() <= most);
                for (key, joules) in &before {
                    prop_assert!(now.get(key).is_some_and(|now| now >= joules), "{key} fell or went");
                }
                prop_assert!(series.rest() >= rest);
                let sum = now.values().sum::<f64>() + series.rest();
                prop_assert!((sum - all).abs() <= 1e-9 * all.max(1.0), "{sum} of {all}");
                (before, rest) = (now, series.rest());
            }
        }
    }

    #[test]
    fn room_is_for_what_weighs() {
        let part = |(key, joules)| Part { key, joules, samples: 100 };
        let mut series = BoundedSeries::new(20);
        let small = (10..60).map(|key| (key, 0.5));
        series.add([(1, 40.0), (2, 35.0)].into_iter().chain(small).map(part), 100.0);
        assert_eq!(series.iter().collect::<Vec<_>>(), [(&1, 40.0), (&2, 35.0)]);
        assert_eq!(series.rest(), 25.0);
        let seldom = Part { key: 4, joules: 10.0, samples: 1 };
        series.add([(3, 50.0), (1, 1.0)].map(part).into_iter().chain([seldom]), 70.0);
        assert_eq!(series.iter().collect::<Vec<_>>(), [(&1, 41.0), (&2, 35.0), (&3, 50.0)]);
        assert_eq!(series.rest(), 44.0, "what no part has is of the rest, and what was seen once");
    }

    #[test]
    fn passers_by_leave_room() {
        let mut series = BoundedSeries::new(20);
        for window in 0..10_000u32 {
            series
                .add((0..10).map(|at| Part { key: 100 + window * 10 + at, joules: 10.0, samples: 9 }), 100.0);
        }
        assert!(series.iter().count() < 10, "{}", series.iter().count());
        series.add([Part { key: 1, joules: 90.0, samples: 900 }], 100.0);
        assert!(series.iter().any(|(key, _)| *key == 1));
    }
}

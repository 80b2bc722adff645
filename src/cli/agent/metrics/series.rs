//! Counters of many things, bounded in number, of which none ever falls.

use std::collections::BTreeMap;

/// What has a counter of its own keeps it; all else counts in one that stands for the rest.
///
/// A thing gets a counter in the first window in which it has a fair share, as long as there is room: one part in as many as
/// there may be. What it had before stays with the rest. So nothing is counted twice, the sum of all is the sum of
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
    pub fn add(&mut self, parts: impl IntoIterator<Item = (K, f64)>, whole: f64) {
        let mut new: Vec<(K, f64)> = Vec::new();
        let mut left = whole;
        for (key, joules) in parts {
            let joules = above_zero(joules);
            left -= joules;
            match self.kept.get_mut(&key) {
                Some(sum) => *sum += joules,
                None => new.push((key, joules)),
            }
        }
        // The heaviest first; among equals the order is always the same.
        new.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        for (key, joules) in new {
            let is_fair = joules > 0.0 && joules * self.most as f64 >= whole;
            // The same thing may be there twice.
            if self.kept.contains_key(&key) || (is_fair && self.kept.len() < self.most) {
                *self.kept.entry(key).or_default() += joules;
            } else {
                self.rest += joules;
            }
        }
        self.rest += above_zero(left);
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
                prop::collection::vec((0u8..40, 0.0..100.0f64), 0..30),
                1..20,
            ),
            most in 1usize..12,
        ) {
            let mut series = BoundedSeries::new(most);
            let (mut before, mut rest, mut all) = (BTreeMap::new(), 0.0, 0.0);
            for window in windows {
                let whole: f64 = window.iter().map(|(_, joules)| joules).sum();
                all += whole;
                series.add(window, whole);
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
        let mut series = BoundedSeries::new(4);
        let small = (10..60).map(|key| (key, 0.5));
        series.add([(1, 40.0), (2, 35.0)].into_iter().chain(small), 100.0);
        assert_eq!(series.iter().collect::<Vec<_>>(), [(&1, 40.0), (&2, 35.0)]);
        assert_eq!(series.rest(), 25.0);
        series.add([(3, 50.0), (1, 1.0)], 60.0);
        assert_eq!(series.iter().collect::<Vec<_>>(), [(&1, 41.0), (&2, 35.0), (&3, 50.0)]);
        assert_eq!(series.rest(), 34.0, "what no part has is of the rest");
    }
}

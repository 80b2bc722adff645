//! Stretches of time.

use crate::units::Timestamp;

/// Time from one moment to another.
pub(super) type Window = (Timestamp, Timestamp);

/// The time that some windows cover together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Covered {
    /// In order; none meets another.
    windows: Vec<Window>,
}

impl Covered {
    /// Covers this window, too.
    pub fn add(&mut self, (mut start, mut end): Window) {
        let first = self.windows.partition_point(|window| window.1 < start);
        let last = self.windows.partition_point(|window| window.0 <= end);
        if let Some(met) = self.windows.get(first..last).filter(|met| !met.is_empty()) {
            (start, end) = (start.min(met[0].0), end.max(met[met.len() - 1].1));
        }
        self.windows.splice(first..last.max(first), [(start, end)]);
    }

    /// Nothing of a window lies outside.
    pub fn contains(&self, (start, end): Window) -> bool {
        self.windows.iter().any(|window| window.0 <= start && end <= window.1)
    }

    /// How much of a window lies outside, in nanoseconds.
    pub fn outside(&self, (start, end): Window) -> u64 {
        let inside = self.windows.iter().map(|window| {
            let (from, to) = (window.0.max(start), window.1.min(end));
            to.as_nanos().saturating_sub(from.as_nanos())
        });
        let length = end.as_nanos().saturating_sub(start.as_nanos());
        length.saturating_sub(inside.sum())
    }

    /// How much of a window lies outside, as a share: 0 to 1. A moment lies outside or not.
    pub fn share_outside(&self, (start, end): Window) -> f64 {
        match end.as_nanos().saturating_sub(start.as_nanos()) {
            0 => f64::from(u8::from(!self.contains((start, end)))),
            length => self.outside((start, end)) as f64 / length as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window((start, end): (u64, u64)) -> Window {
        (Timestamp::from_nanos(start), Timestamp::from_nanos(end))
    }

    fn covered(windows: &[(u64, u64)]) -> Covered {
        let mut covered = Covered::default();
        windows.iter().for_each(|&of| covered.add(window(of)));
        covered
    }

    #[test]
    fn windows_that_meet_are_one() {
        let found = covered(&[(10, 20), (40, 50), (20, 25), (60, 70)]);
        assert_eq!(found.windows, [window((10, 25)), window((40, 50)), window((60, 70))]);
        assert_eq!(covered(&[(10, 20), (40, 50), (15, 45)]).windows, [window((10, 50))]);
        assert!(found.contains(window((12, 25))) && !found.contains(window((12, 26))));
        assert!(found.contains(window((25, 25))) && !found.contains(window((26, 26))));
    }

    #[test]
    fn what_lies_outside_is_a_share_of_the_window() {
        let found = covered(&[(10, 20), (40, 50)]);
        assert_eq!(found.outside(window((0, 60))), 40);
        // 8 of 10, and a moment.
        assert_eq!(found.share_outside(window((18, 28))), 0.8);
        assert_eq!([15, 30].map(|at| found.share_outside(window((at, at)))), [0.0, 1.0]);
        assert_eq!(Covered::default().share_outside(window((1, 3))), 1.0);
    }

    proptest! {
        /// As if each moment were looked at alone.
        #[test]
        fn the_order_of_windows_makes_no_difference(
            windows in prop::collection::vec((0u64..40, 1u64..10), 0..8),
            asked in (0u64..45, 1u64..20),
        ) {
            let windows: Vec<(u64, u64)> = windows.into_iter().map(|(start, length)| (start, start + length)).collect();
            let asked = (asked.0, asked.0 + asked.1);
            let is_outside = |at: &u64| !windows.iter().any(|window| window.0 <= *at && *at < window.1);
            let outside = (asked.0..asked.1).filter(is_outside).count() as u64;
            let found = covered(&windows);
            prop_assert_eq!(found.outside(window(asked)), outside);
            prop_assert_eq!(found.contains(window(asked)), outside == 0);
            let reversed: Vec<(u64, u64)> = windows.iter().rev().copied().collect();
            prop_assert_eq!(&covered(&reversed), &found);
        }
    }
}

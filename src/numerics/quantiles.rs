//! The middle of some values, or any share of them: what a few wild ones do not move.

/// The median, of an even number the upper of the two in the middle; `None` of nothing. Sorts the values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile(values, 0.5)
}

/// The smallest of sorted values with more than `share` (0..1) of all at or below it, the largest for a share
/// of 1; `None` of nothing.
///
/// This is the value at place `⌊share · n⌋` from 0, one of the values themselves: where the inverse of the
/// empirical distribution steps, its upper end. (Its lower end is type 1 of R. J. Hyndman and Y. Fan, "Sample
/// quantiles in statistical packages", The American Statistician 50, 1996.)
pub fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied()
}

/// The same, but between the values by straight lines from the smallest (share 0) to the largest (share 1):
/// type 7 of Hyndman and Fan.
pub fn interpolated(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (*sorted.get(place.floor() as usize)?, *sorted.get(place.ceil() as usize)?);
    Some(below + (above - below) * place.fract())
}

/// The first of sorted values that together with those before it has at least `share` (0..1) of all weight;
/// `None` of nothing.
pub fn weighted<T>(sorted: &[T], weight: impl Fn(&T) -> f64, share: f64) -> Option<&T> {
    let mut left = share * sorted.iter().map(&weight).sum::<f64>();
    let first = sorted.iter().find(|value| {
        left -= weight(value);
        left <= 0.0
    });
    // Rounding can leave a little at the end.
    first.or(sorted.last())
}

/// The lowest and the highest value; of nothing the largest and the smallest number there is, in this order.
pub fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values.into_iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(3.0));
        assert_eq!(interpolated(&[1.0, 2.0, 4.0, 8.0], 0.5), Some(3.0));
        let sorted = [(1.0, 2.0), (5.0, 1.0), (9.0, 1.0)];
        assert_eq!(weighted(&sorted, |value| value.1, 0.5), Some(&(1.0, 2.0)));
        assert_eq!(weighted(&sorted, |value| value.1, 0.6), Some(&(5.0, 1.0)));
        assert_eq!(range([3.0, -1.0, 2.0]), (-1.0, 3.0));
    }

    #[test]
    fn nothing_has_no_middle() {
        assert_eq!(median(&mut []), None);
        assert_eq!(quantile::<u64>(&[], 0.9), None);
        assert_eq!(interpolated(&[], 0.5), None);
        assert_eq!(weighted(&[0.0; 0], |value| *value, 0.5), None);
        let (low, high) = range([]);
        assert!(low > high);
    }

    /// Shares of tenths, quarters and halves fall on the places that whole numbers give.
    #[test]
    fn places_are_those_of_whole_numbers() {
        for count in 1..3000usize {
            let sorted: Vec<usize> = (0..count).collect();
            for (share, [part, of]) in
                [(0.1, [1, 10]), (0.2, [1, 5]), (0.25, [1, 4]), (0.5, [1, 2]), (0.75, [3, 4]), (0.9, [9, 10])]
            {
                assert_eq!(quantile(&sorted, share), Some(count * part / of), "{share} of {count}");
            }
        }
    }

    proptest! {
        /// The definition: more than the share of all values lie at or below it, and no smaller value has this.
        #[test]
        fn a_quantile_is_the_smallest_value_above_a_share(
            mut values in prop::collection::vec(prop::sample::select(vec![-2.0, 0.0, 0.5, 1.0, 7.0, 9.5]), 1..40),
            share in 0.0..1.0f64,
        ) {
            values.sort_by(f64::total_cmp);
            let found = quantile(&values, share).expect("values");
            let at_or_below = |limit: f64| values.iter().filter(|value| **value <= limit).count() as f64;
            // Within one value: the share itself is not exact.
            prop_assert!(at_or_below(found) > share * values.len() as f64 - 1e-9);
            for smaller in values.iter().filter(|value| **value < found) {
                prop_assert!(at_or_below(*smaller) <= share * values.len() as f64 + 1e-9);
            }
        }

        #[test]
        fn interpolation_passes_through_the_values_and_never_falls(
            mut values in prop::collection::vec(-10.0..10.0f64, 2..30),
            shares in prop::array::uniform2(0.0..1.0f64),
        ) {
            values.sort_by(f64::total_cmp);
            let last = values.len() - 1;
            for (place, value) in values.iter().enumerate() {
                let found = interpolated(&values, place as f64 / last as f64).expect("values");
                prop_assert!((found - value).abs() < 1e-9);
            }
            let [low, high] = [shares[0].min(shares[1]), shares[0].max(shares[1])]
                .map(|share| interpolated(&values, share).expect("values"));
            prop_assert!(low <= high + 1e-12);
        }

        /// Whole weights say how often a value stands in the list.
        #[test]
        fn weights_count_values(values in prop::collection::vec((-10.0..10.0f64, 1usize..5), 1..20), share in 0.01..1.0f64) {
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut listed: Vec<f64> =
                values.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect();
            listed.sort_by(f64::total_cmp);
            let place = (share * listed.len() as f64).ceil() as usize - 1;
            // A share that falls between two values but for rounding may give either.
            let near = (share * listed.len() as f64).fract();
            prop_assume!(near > 1e-9 && near < 1.0 - 1e-9);
            let found = weighted(&sorted, |(_, count)| *count as f64, share).expect("values");
            prop_assert_eq!(found.0, listed[place]);
        }
    }
}

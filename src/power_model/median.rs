//! The middle of some values: what a few wild ones do not move.

/// The median, of an even number the upper of the two in the middle; `None` of nothing. Sorts the values.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

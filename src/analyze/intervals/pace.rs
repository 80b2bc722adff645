//! The usual gap between an event's samples, as an average that follows the latest ones.

/// How much the latest gap changes a pace, which is zero as long as there is none.
#[inline]
pub(crate) fn weight_of_latest(pace: f64) -> f64 {
    if pace > 0.0 { 0.25 } else { 1.0 }
}

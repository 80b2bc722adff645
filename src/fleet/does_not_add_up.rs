//! Why there is no answer that would add up.

/// Sums of one place that should be equal and are not. Windows may have come or gone in between: then they are when they are asked
/// again.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct DoesNotAddUp(pub String);

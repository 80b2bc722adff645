//! Which power model divides a recording's joules, and into buckets of what size.

pub(crate) mod bucket_size;
pub(crate) mod choice;
pub(crate) mod estimate;
pub(crate) mod plan;

//! Which power model divides a recording's joules, and into buckets of what size.

pub(crate) mod bucket_size;
pub(crate) mod choice;
mod domain_set;
mod drift;
pub(crate) mod estimate;
mod nested;
pub(crate) mod plan;

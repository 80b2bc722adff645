//! Stretches of time: over which a sample's events happened, which ones records were lost in, and equal ones that
//! joules and counts are summed over.

pub(crate) mod counted;
pub(crate) mod cpu_set;
pub(crate) mod grid;
pub(crate) mod late_readings;
pub(crate) mod late_samples;
pub(crate) mod losses;
pub(crate) mod missing;
pub(crate) mod mixture;
pub(crate) mod pace;
pub(crate) mod pieces;
pub(crate) mod spans;
pub(crate) mod survey;
pub(crate) mod unsampled_tasks;
pub(crate) mod unseen;

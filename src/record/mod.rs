//! Step 1: launch or attach to a program, sample it, drain the rings into a recording.

mod attr;
mod counters;
mod error;
mod events;
mod launch;
pub mod meter;
mod options;
mod ring;
mod support;

pub use error::RecordError;
pub use launch::LaunchError;
pub use options::{CallGraph, RecordOptions, SamplingRate, TargetOptions};

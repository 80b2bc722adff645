//! Step 1: launch or attach to a program, sample it, drain the rings into a recording.

mod attr;
mod census;
mod counters;
mod cpu_times;
mod drain;
mod error;
mod events;
mod host;
mod launch;
pub mod meter;
mod options;
mod output;
mod own_events;
mod readings;
mod ring;
mod session;
mod signals;
mod summary;
mod support;

pub use error::RecordError;
pub use launch::LaunchError;
pub use options::{CallGraph, RecordOptions, SamplingRate, TargetOptions};
pub use session::record;
pub use summary::{Outcome, Summary};

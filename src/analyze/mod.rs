//! Steps 2 to 6 in one: a recording becomes a [`Profile`](crate::profile::Profile).
//!
//! Two passes over the file. The *survey* sees which events and meters there are, how much they
//! counted and over which time; the *replay* puts all records in time order, follows tasks and
//! mappings, gathers samples into cells and hands quanta and readings to the [`crate::attribute`]
//! step. Memory holds one round of the recording and the distinct stacks, not the samples.
//!
//! Where there are two CPUs, one thread replays and gathers while another surveys and then finds cells and
//! attributes; the result is the same.

mod bucket_size;
mod call_paths;
mod cells;
mod collect;
mod cpu_set;
mod estimate;
mod events;
#[cfg(test)]
mod fixture;
mod gather;
mod gpu_activity;
mod gpu_threads;
mod intervals;
mod jit;
mod known;
mod launches;
mod losses;
mod model_choice;
mod options;
mod plan;
mod replay;
mod run;
mod samples;
mod shape;
mod spans;
mod steps;
mod survey;
mod unwind;

pub use collect::{Dimensions, Frame, frames_of};
pub use estimate::WattsRange;
pub use events::EventRoles;
pub use model_choice::ModelChoice;
pub use options::{Options, StaticEnergy};
pub use replay::{Replay, ReplayEnd};
pub use run::{analyze, analyze_samples};
pub use samples::SampleEnergy;
pub use survey::{Survey, survey};

//! Step 2: the recording, a perf.data file with what eprof adds: energy readings, CPU times, what GPUs did, and
//! metadata that explain them.
//!
//! The file itself is [`perf_data`]'s business. What eprof adds are payloads of events of its own, which
//! [`own_events`] makes and [`Recording`] and those who read its records find again by the events' names.

pub mod energy;
pub mod gpu_activity;
pub mod gpu_events;
pub mod metadata;
pub mod node_meters;
pub mod own_blocks;
pub mod own_events;

mod error;
mod lent_reading;
mod meter_curves;
mod open;

pub use error::RecordingError;
pub use lent_reading::LentReading;
pub use open::{Opened, Recording};

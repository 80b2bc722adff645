//! What is this machine? Topology, PMUs and event encodings, energy domains, permissions.

pub mod caches;
pub mod cpu_lines;
pub mod cpu_list;
pub mod cpuinfo;
pub mod gpus;
pub mod memory;
pub mod microarchitecture;
pub mod platform;
pub mod repair;
pub mod roots;
pub mod topology;

pub mod event_names;
pub mod event_spec;
mod event_syntax;
pub mod model_events;
pub mod model_table;
pub mod permissions;
pub mod pmu;
pub mod pmu_format;
pub mod resolve;
mod tracepoint;

#[cfg(test)]
pub(crate) mod fixture;

pub use event_spec::{EventError, EventSpec, Modifiers};
pub use model_events::{ModelEvent, ModelEvents, choose_model_events};
pub use resolve::{resolve_event, resolve_events};
pub use roots::Roots;

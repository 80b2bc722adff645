//! Measuring without a recording: repeated runs of a program with the energy of each ([`runs`]), runs under chosen
//! settings ([`tuning`]), and what GPUs take for work that eprof starts itself ([`gpu`]).

pub mod cpu_counters;
pub mod gpu;
mod run_meter;
mod run_observations;
pub mod runs;
mod subject;
pub mod tuning;

pub use run_meter::{RunMeter, RunMeterError};
pub use subject::Subject;

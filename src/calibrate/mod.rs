//! Fitting a power model to this machine: kernels of known character run on one core, then on more,
//! while meters and counters are read.
//!
//! ```text
//! plan ──► workers: kernels, pinned ──► bench: watts and rates ──► outcome: the model, and how good
//! ```
//!
//! The kernels follow Ono, Yamamoto and Nakashima (IPSJ SIG 2015): nothing at all, square roots, a full
//! pipeline, and streams through data that fit into the first, the second, the third cache or none of
//! them. Together they move cycles, instructions, stalls, and traffic of caches and memory
//! independently enough to tell what each of these costs.
//!
//! This module drives the meters of [`crate::record`]; nothing depends on it but the command line.

mod bench;
mod error;
mod kernels;
mod outcome;
mod plan;
mod workers;

pub use bench::{Bench, CalibrateOptions, Progress, Visits};
pub use error::CalibrateError;
pub use kernels::{Kernel, WorkingSets};
pub use outcome::{Calibration, Observed, fit};
pub use plan::{Plan, Step};

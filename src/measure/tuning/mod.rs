//! Running a program under chosen settings, for [`crate::tune`].
//!
//! The arithmetic of tuning lives in `tune` and touches nothing; all that touches the machine is here,
//! beside the meters it reads: it starts the program (`trial`), places its threads (`placement`),
//! sets CPU frequencies ([`cpu_frequency`]) and power caps ([`power_cap`]), and restores ([`undo`]) what it changed
//! ([`changes`]), even if it is killed ([`guard`]). [`ProgramBench`] joins these to what a search asks
//! for, and keeps each run in a journal.

mod bench;
pub mod changes;
mod command;
pub mod cpu_frequency;
mod error;
pub mod guard;
mod journal;
mod metric;
mod placement;
pub mod power_cap;
mod supervise;
mod trial;
pub mod undo;

pub use bench::{BenchOptions, Finished, ProgramBench, Watcher};
pub use command::{Template, ValueForm};
pub use error::TuningError;
pub use journal::JournalState;
pub use metric::Metric;
pub use placement::Placement;

//! How wrong eprof is on this machine: kernels of known energy, recorded and compared.
//!
//! ```text
//! alone: each kernel by itself, the meter beside it ──► joules of a unit of its work ──┐
//!                                                                                      ├──► comparison ──► verification
//! arrangements: the same kernels in turns, side by side ──► eprof record ──► report ───┘
//! ```
//!
//! **What is taken for true.** Alone on a core, what the meter counts above the idle machine is the kernel's, and
//! divided by the units of work done in that time it is the energy of a unit ([`alone`](Alone)). In an arrangement, a
//! kernel's true energy is the energy of a unit times the units that it did there. Units are robust where CPU time is
//! not: an interrupt, a wait for memory or a cache that another kernel has emptied make time longer and leave
//! the work what it is; and they are counted by the kernels themselves, so that neither the kernel's clocks nor eprof's
//! samples take part in what eprof is judged by. Where kernels run at once, they share what alone each has for itself
//! (the uncore's wake-up, turbo, caches, the units of a core): their energies do not add up. There the meter's own
//! total is divided in proportion to the units' energies, and what it differs from their sum is part of the truth's
//! error, see [`Comparison::new`].
//!
//! **How a kernel is found in a report.** Each kernel is a function of its own that is never inlined and calls
//! nothing. A report names functions by the symbol table, or without one by the unwind tables; the name that
//! the function's own address has there is the name of its row, in a stripped program too. Kernels that take turns do
//! so by calls within one thread: it is samples that must tell them apart, not the scheduler.
//!
//! These are not the kernels that [`crate::calibrate`] fits its model to: a model is not judged by what it was made of.

mod alone;
mod arrangement;
mod bench;
mod comparison;
mod error;
mod folder;
mod kernels;
mod recorded;
mod schedule;
mod task;
mod verification;
mod worker;

pub use alone::{Alone, UnitEnergy, Visit};
pub use arrangement::{Arrangement, Layout};
pub use bench::{Bench, Commands, Progress, Stage, VerifyOptions};
pub use comparison::{Comparison, Part, Row, Verdict};
pub use error::VerifyError;
pub use folder::{find, load, save};
pub use kernels::{Kernel, WorkingSizes};
pub use schedule::Schedule;
pub use task::{Done, Lane, Task, Turn};
pub use verification::{KernelTruth, VERIFICATION_FORMAT, Verification, date};
pub use worker::work;

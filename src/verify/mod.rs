//! How wrong eprof is on this machine: kernels of known energy, recorded and compared.
//!
//! ```text
//! alone: each kernel by itself, the meter beside it ──► watts of its CPU time ─────────┐
//!                                                                                      ├──► comparison ──► verification
//! arrangements: the same kernels in turns, side by side ──► eprof record ──► report ───┘
//! ```
//!
//! **What is taken for true.** Alone on a core, what the meter counts above the idle machine is the kernel's: so many
//! watts of its CPU time ([`Alone`]). In an arrangement, a kernel's true energy is these watts times the CPU time that it
//! took there, which its thread's own clock tells at the begin and end of each turn. CPU time and not work: what
//! is recorded takes longer for the same work, by the interrupts of its samples, caches that another kernel emptied, a core
//! that is shared; that energy is spent within the kernel, the meter counts it, and a report that gives it to the kernel
//! is right. Kernels also count units of their work, which tell how much that is: what the same work takes alone stands
//! beside what it took ([`Comparison::work_joules`]). Where kernels run at once, they share what alone each has for
//! itself (the uncore's wake-up, turbo, caches, the units of a core): their powers do not add up. There the meter's own
//! total is divided in proportion, and what it differs from their sum is part of the truth's error, see
//! [`Comparison::new`].
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

pub use alone::{Alone, KernelPower, Visit};
pub use arrangement::{Arrangement, Layout};
pub use bench::{Bench, Commands, Progress, Stage, VerifyOptions};
pub use comparison::{Comparison, Part, Row, Verdict};
pub use error::VerifyError;
pub use folder::{find, load, save};
pub use kernels::{Kernel, WorkingSizes};
pub use schedule::Schedule;
pub use task::{Amount, Done, Lane, Task, Turn};
pub use verification::{KernelTruth, VERIFICATION_FORMAT, Verification};
pub use worker::work;

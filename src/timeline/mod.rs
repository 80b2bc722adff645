//! Step 3: one stream in time order; tasks and mappings replayed.
//!
//! A recording holds its records in the order in which the rings were drained. [`RoundSorter`] puts
//! them into the order of time with bounded memory; [`Tasks`] replays who ran and what was mapped
//! where; [`CodeInterner`] and [`StackInterner`] give each distinct code address and call stack one
//! number, so that everything after this step handles small integers.

mod intern;
mod modules;
mod order;
mod space;
mod tasks;

pub use intern::{CodeInterner, StackInterner};
pub use order::RoundSorter;
pub use space::{AddressSpace, Located, Mapping, SpaceId};
pub use tasks::{TaskId, Tasks};

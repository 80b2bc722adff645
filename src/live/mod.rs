//! A recording is read while it is made: windows of it come out, each analyzed as a recording of its own.
//!
//! ```text
//!   record ──► file without a name ──► follow ──► windows ──► window: a small recording ──► analyze ──► profile
//!              that the reader empties            cut at one     with the tasks and code             │
//!                                                 instant        known when it begins                ▼
//!                                                                                          symbols, kept from
//!                                                                                          window to window
//! ```
//!
//! There is one attribution, that of [`crate::analyze`]: a window is a recording, of which it makes a profile as of any
//! other. Windows are cut at one instant for all meters. What a meter had counted by then is interpolated between the
//! readings before and after, as attribution does at the ends of its buckets. So windows have the meters' joules between
//! them, no more and no less, and each one's balance is that of its own joules. Samples whose stretch of time goes over a
//! cut are in both windows, and in each get joules and CPU time for the part that lies in it; they count as samples where they
//! were taken ([`crate::analyze::CountedTime`]).
//!
//! Memory does not grow with time: records are given up with the window that they lie in, and of tasks only those that
//! still live are known ([`Windows`]).

mod alive;
mod engine;
mod error;
mod follow;
mod footprint;
mod join;
mod known_tasks;
mod meter_curves;
mod totals;
mod windows;

pub use engine::{Engine, EngineOptions, Window};
pub use error::LiveError;
pub use follow::Follower;
pub use footprint::Footprint;
pub use join::join;
pub use totals::{RowKey, RowTotals, RunningTotals};
pub use windows::{Cut, CutOptions, Windows};

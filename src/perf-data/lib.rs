//! Reads and writes perf.data, the files of Linux's `perf record`.

pub mod time;

pub use time::{Nanoseconds, Timestamp};

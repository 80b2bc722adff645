//! What eprof makes of simulated recordings, of which the truth is known.
//!
//! `cargo test --release --test library simulated -- --nocapture --test-threads 1` prints the tables. Without
//! `--release` the simulated runs are shorter, and the limits wider accordingly.

mod alternating;
mod buckets;
mod coverage;
mod deep;
mod files;
mod folded;
mod hostile;
mod losses;
mod memory;
mod merged;
mod repeated;
mod scale;
pub mod support;

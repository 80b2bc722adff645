//! What eprof makes of simulated recordings, of which the truth is known.
//!
//! `cargo test --release --test simulated -- --nocapture --test-threads 1` prints the tables. Without
//! `--release` the simulated runs are shorter, and the limits wider accordingly.

mod alternating;
mod buckets;
mod coverage;
mod deep;
mod files;
mod memory;
mod repeated;
mod scale;
mod support;

// Written for the benches, which can have no tests of their own.
#[path = "../../benches/versus_perf/growth.rs"]
mod growth;
#[path = "../../benches/versus_perf/repeat.rs"]
mod repeat;

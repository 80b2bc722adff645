//! `eprof record` on real programs, signals, limits and crashes.
//!
//! The programs that are recorded are mostly this test binary itself: see [`workload`].

pub mod harness;
mod hidden_callers;
pub mod workload;

pub mod attach;
mod cgroups;
mod killed;
mod launch;
mod limits;
mod overlapping;
mod own_blocks;
mod processes;
mod progress;
mod ranks;
mod readers;
mod rights;
mod shares;
mod sharing;
mod signals;
mod slurm;

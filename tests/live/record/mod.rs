//! `eprof record` on real programs, signals, limits and crashes.
//!
//! The programs that are recorded are mostly this test binary itself: see [`workload`].

mod harness;
mod hidden_callers;
mod workload;

mod attach;
mod cgroups;
mod killed;
mod launch;
mod limits;
mod processes;
mod progress;
mod ranks;
mod readers;
mod rights;
mod shares;
mod sharing;
mod signals;
mod slurm;

//! `eprof record` on a real kernel whose PMU and energy counters are simulated, with the truth known.

mod arm64;
mod energy;
mod events;
mod overhead;
mod repairs;
mod rights;
mod short_processes;
mod summary;

//! `eprof record` on a real kernel whose PMU and energy counters are simulated, with the truth known.
//!
//! A guest is booted by a script of the test bench (`EPROF_GUEST`, or `../shared/guest/guest.sh`) under
//! QEMU. Its module `simpmu` counts by rates that each thread chooses in `/proc/simhw`, and tells there
//! what every thread really did. Without the bench or QEMU these tests skip.

#[path = "../guest/aarch64.rs"]
mod aarch64;
mod arm64;
mod bench;
mod energy;
mod events;
#[path = "../guest/bench.rs"]
mod guest;
mod overhead;
mod repairs;
mod rights;

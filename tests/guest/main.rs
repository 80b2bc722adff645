//! eprof in an emulated machine: a real kernel whose PMU and energy counters are simulated, with the truth known.
//!
//! A guest is booted by a script of the test bench (`EPROF_GUEST`, or `../shared/guest/guest.sh`) under
//! QEMU. Its module `simpmu` counts by rates that each thread chooses in `/proc/simhw`, and tells there
//! what every thread really did. Without the bench or QEMU these tests skip.

mod aarch64;
mod bench;
mod six_functions;
mod this_program;

mod accuracy;
mod accuracy_table;
mod calibrate;
mod meters;
mod record;
mod stat;
mod tune;

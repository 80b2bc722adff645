//! eprof in an emulated machine: a real kernel whose PMU and energy counters are simulated, with the truth known.
//!
//! A guest is booted by `machine/guest.sh` (or `EPROF_GUEST`) under QEMU. Its module `simpmu` counts by rates that each
//! thread chooses in `/proc/simhw`, and tells there what every thread really did. Where QEMU or the guest's packages
//! cannot be had these tests skip.

#[macro_use(println, test)]
extern crate eprof_testbed;

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
mod verify;

eprof_testbed::harness!();

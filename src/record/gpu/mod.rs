//! Launches of GPU kernels, seen by probes while a program is recorded.

pub(super) mod activity;
pub(super) mod gpu_order;
pub(super) mod gpu_records;
pub(super) mod kernel_names;
pub(super) mod probes;

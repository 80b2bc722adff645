//! Samples in the order of time are gathered by what they share: stack, thread, CPU and event.

mod address_hashes;
pub(crate) mod call_paths;
pub(crate) mod cell_counts;
pub(crate) mod cells;
pub(crate) mod collect;
mod found_keys;
pub(crate) mod frames;
pub(crate) mod function_sets;
pub(crate) mod functions;
pub(crate) mod gather;
pub(crate) mod jit;
pub(crate) mod key_table;
mod key_workers;
mod late_ticks;
mod lost_in_all;
pub(crate) mod missed_counts;
pub(crate) mod missing_samples;
pub(crate) mod not_sampled;
pub(crate) mod one_mode;
pub(crate) mod replay;
pub(crate) mod samples;
mod short_tasks;
pub(crate) mod unsampled;
pub(crate) mod unwind;
mod whose;

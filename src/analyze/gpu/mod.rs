//! What GPUs did: launches, kernels and the threads that launch them.

pub(crate) mod activity;
mod in_time;
pub(crate) mod launches;
pub(crate) mod threads;

//! GPUs without a GPU: simulated power sensors, recordings of them, and a program that launches kernels.

pub mod launcher;
pub mod recording;
pub mod sensor;

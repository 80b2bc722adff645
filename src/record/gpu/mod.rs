//! GPUs while they work: launches of kernels seen by probes, and work that eprof starts itself, through
//! CUDA's driver and NVML, both loaded at run time.

pub(super) mod activity;
mod cuda;
pub(super) mod gpu_order;
mod instructions;
pub(super) mod kernel_names;
mod load;
mod monitor;
pub(super) mod probes;

pub use cuda::{Cuda, CudaError, Kernel};
pub use instructions::{MeasureError, MeasureOptions, Measured, Method, Occupancy, measure};
pub use load::{LoadOptions, LoadTrace, switched_load};
pub use monitor::{Monitor, MonitorError, Recorded};

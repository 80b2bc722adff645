//! GPUs under work that eprof starts itself, through CUDA's driver and NVML, both loaded at run time.

mod cuda;
mod instructions;
mod load;
mod monitor;

pub use cuda::{Cuda, CudaError, Kernel};
pub use instructions::{MeasureError, MeasureOptions, Measured, Method, Occupancy, measure};
pub use load::{LoadOptions, LoadTrace, switched_load};
pub use monitor::{Monitor, MonitorError, Recorded};

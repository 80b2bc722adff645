//! Work on a GPU that eprof starts itself, measured while it runs: CUDA's driver and NVML, both loaded
//! at run time.

mod cuda;
mod instructions;
mod monitor;

pub use cuda::{Cuda, CudaError, Kernel};
pub use instructions::{MeasureError, MeasureOptions, Measured, Method, Occupancy, measure};
pub use monitor::{Monitor, MonitorError, Recorded};

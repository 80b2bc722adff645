//! A load that is switched on and off at known times, to find out how a GPU's power sensor follows it.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::cuda::Cuda;
use super::instructions::{MeasureError, turns_for};
use super::monitor::Monitor;
use crate::gpu::instructions::catalogue::Instruction;
use crate::gpu::instructions::ptx;
use crate::gpu::trace::PowerTrace;
use crate::units::Timestamp;

/// The load's shape.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Time of one burst of load.
    pub on: Duration,
    /// Rest before, between and after bursts.
    pub off: Duration,
    /// Number of bursts. Each rests a little longer than the one before, so that the switching falls
    /// everywhere between two refreshes of the sensor.
    pub bursts: u32,
    /// Time between two readings.
    pub interval: Duration,
    /// NVML, if not the driver's.
    pub nvml_library: Option<PathBuf>,
}

/// What a sensor said of the load.
#[derive(Debug, Clone, Default)]
pub struct LoadTrace {
    /// The power as read.
    pub power: PowerTrace,
    /// When the load was switched on and off, in turn.
    pub switches: Vec<Timestamp>,
}

/// Loads every multiprocessor with an instruction in bursts and reads the power meanwhile.
///
/// # Errors
/// [`MeasureError`].
pub fn switched_load(
    cuda: &Cuda,
    instruction: &Instruction,
    options: &LoadOptions,
) -> Result<LoadTrace, MeasureError> {
    const LEVEL: u32 = 4;
    /// Parts of the rest by which the bursts' distances differ.
    const SHIFTS: u32 = 13;
    let program = ptx::program(instruction, true, cuda.capability);
    let kernel = cuda.kernel(&program, ptx::KERNEL, LEVEL)?;
    let (blocks, threads) = (2 * cuda.multiprocessors, 512);
    let turns = turns_for(&kernel, blocks, threads, options.on)?;
    let monitor = Monitor::start(options.nvml_library.as_deref(), &cuda.bus_id, options.interval)?;
    let mut switches = Vec::new();
    thread::sleep(options.off);
    for burst in 0..options.bursts {
        switches.push(monitor.now());
        kernel.launch(blocks, threads, turns, burst)?;
        kernel.wait()?;
        switches.push(monitor.now());
        thread::sleep(options.off + options.off * (burst % SHIFTS) / (8 * SHIFTS));
    }
    let recorded = monitor.stop()?;
    Ok(LoadTrace { power: PowerTrace::new(recorded.power), switches })
}

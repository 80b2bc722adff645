//! Measures the energy of GPU instructions: kernels of three lengths, with and without the instruction,
//! each with a monitor that knows exactly when it ran.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use thiserror::Error;

use super::cuda::{Cuda, CudaError, Kernel};
use super::monitor::{Monitor, MonitorError, Recorded};
use crate::gpu::instructions::catalogue::Instruction;
use crate::gpu::instructions::energy::{InstructionEnergy, Run, difference, offset};
use crate::gpu::instructions::ptx;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// How a kernel's energy is taken from the readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The area under the power readings around the kernel, less what idling took (MTSM).
    Area,
    /// The energy counter around the kernel, less what idling took.
    Counter,
    /// The last power reading of the kernel times its duration, as PAPI's component gives it.
    LastReading,
}

/// How much of the GPU is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupancy {
    /// One thread, as in the paper: latency, and the cost of keeping the GPU awake.
    OneThread,
    /// Every multiprocessor full.
    Full,
}

/// What to measure with.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// The shortest kernel runs about this long; the longest three times as long.
    pub duration: Duration,
    /// Repeats of each length.
    pub repeats: u32,
    /// Optimisation level of the driver's assembler, 0 to 4.
    pub level: u32,
    /// How much of the GPU.
    pub occupancy: Occupancy,
    /// Time between readings.
    pub interval: Duration,
    /// Idle time before and after a kernel that is read too: several refreshes of the sensor.
    pub margin: Duration,
    /// NVML, if not the driver's.
    pub nvml_library: Option<PathBuf>,
}

/// Why a measurement failed.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// CUDA.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// NVML.
    #[error(transparent)]
    Monitor(#[from] MonitorError),
    /// No readings fell into the kernel's time.
    #[error("the sensor gave no readings around the kernel; make kernels longer than {0}")]
    NoReadings(Nanoseconds),
    /// Too few runs.
    #[error("the runs do not differ in length; make kernels longer")]
    NoSlope,
}

/// What one instruction takes, by method.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Each method that the GPU allows.
    pub by_method: Vec<(Method, InstructionEnergy)>,
}

/// Measures one instruction.
///
/// # Errors
/// [`MeasureError`].
pub fn measure(
    cuda: &Cuda,
    instruction: &Instruction,
    options: &MeasureOptions,
) -> Result<Measured, MeasureError> {
    let with = runs(cuda, instruction, true, options)?;
    let without = runs(cuda, instruction, false, options)?;
    let by_method: Vec<(Method, InstructionEnergy)> = [Method::Counter, Method::Area, Method::LastReading]
        .into_iter()
        .filter_map(|method| {
            let own = |all: &[Timed]| all.iter().map(|run| run.by(method)).collect::<Option<Vec<Run>>>();
            Some((method, difference(&own(&with)?, &own(&without)?, ptx::COPIES)?))
        })
        .collect();
    if by_method.is_empty() { Err(MeasureError::NoSlope) } else { Ok(Measured { by_method }) }
}

/// One kernel with what was read around it.
struct Timed {
    turns: f64,
    lanes: f64,
    cycles: f64,
    energies: [(Method, Option<Joules>); 3],
}

impl Timed {
    fn by(&self, method: Method) -> Option<Run> {
        let energy = self.energies.iter().find(|(own, _)| *own == method)?.1?;
        Some(Run {
            turns: self.turns * self.lanes,
            joules: energy.as_joules(),
            cycles: self.cycles,
            thread_turns: self.turns,
        })
    }
}

fn runs(
    cuda: &Cuda,
    instruction: &Instruction,
    with_instruction: bool,
    options: &MeasureOptions,
) -> Result<Vec<Timed>, MeasureError> {
    let program = ptx::program(instruction, with_instruction, cuda.capability);
    let kernel = cuda.kernel(&program, ptx::KERNEL, options.level)?;
    // Eight warps of each of the four schedulers hide most latencies.
    let (blocks, threads) = match options.occupancy {
        Occupancy::OneThread => (1, 1),
        Occupancy::Full => (2 * cuda.multiprocessors, 512),
    };
    let turns = turns_for(&kernel, blocks, threads, options.duration)?;
    let mut runs = Vec::new();
    for _ in 0..options.repeats.max(1) {
        for length in 1..=3 {
            runs.push(run_once(cuda, &kernel, (blocks, threads), turns.saturating_mul(length), options)?);
        }
    }
    Ok(runs)
}

/// The number of turns that takes about the wanted time, from ever longer trials.
pub(super) fn turns_for(
    kernel: &Kernel<'_>,
    blocks: u32,
    threads: u32,
    wanted: Duration,
) -> Result<u32, CudaError> {
    const FIRST: u32 = 2000;
    const LONG_ENOUGH: Duration = Duration::from_millis(20);
    let mut turns = FIRST;
    loop {
        let start = std::time::Instant::now();
        kernel.launch(blocks, threads, turns, 1)?;
        kernel.wait()?;
        let took = start.elapsed();
        if took >= LONG_ENOUGH || turns >= u32::MAX / 8 {
            let scaled = f64::from(turns) * wanted.as_secs_f64() / took.as_secs_f64().max(1e-9);
            return Ok(scaled.clamp(f64::from(FIRST), f64::from(u32::MAX / 4)) as u32);
        }
        turns *= 4;
    }
}

fn run_once(
    cuda: &Cuda,
    kernel: &Kernel<'_>,
    (blocks, threads): (u32, u32),
    turns: u32,
    options: &MeasureOptions,
) -> Result<Timed, MeasureError> {
    let monitor = Monitor::start(options.nvml_library.as_deref(), &cuda.bus_id, options.interval)?;
    // Idle before and after: the level that is subtracted, and room for the sensor's lag.
    thread::sleep(3 * options.margin);
    let start = monitor.now();
    kernel.launch(blocks, threads, turns, turns ^ 0x2545)?;
    kernel.wait()?;
    let end = monitor.now();
    thread::sleep(4 * options.margin);
    let recorded = monitor.stop()?;
    let cycles = kernel.results()?[0] as f64;
    let margin = Nanoseconds::from_secs_f64(options.margin.as_secs_f64());
    let spent: Vec<(Timestamp, Joules)> = {
        let curve = recorded.power_curve();
        let first = curve.span().map_or(start, |span| span.0);
        recorded.power.iter().map(|reading| (reading.time, curve.energy(first, reading.time))).collect()
    };
    let seconds = |(time, energy): &(Timestamp, Joules)| (time.as_nanos() as f64 * 1e-9, energy.as_joules());
    let above_idle = |readings: &[(Timestamp, Joules)]| {
        let before: Vec<_> = readings.iter().filter(|r| r.0 < start).map(seconds).collect();
        let after: Vec<_> = readings.iter().filter(|r| r.0 > end + margin).map(seconds).collect();
        offset(&before, &after).map(Joules::from_joules)
    };
    let energies = [
        (Method::Counter, above_idle(&recorded.energy)),
        (Method::Area, above_idle(&spent)),
        (Method::LastReading, last_reading(&recorded, start, end)),
    ];
    if energies.iter().all(|(_, energy)| energy.is_none()) {
        return Err(MeasureError::NoReadings(margin));
    }
    Ok(Timed { turns: f64::from(turns), lanes: f64::from(blocks) * f64::from(threads), cycles, energies })
}

fn last_reading(recorded: &Recorded, start: Timestamp, end: Timestamp) -> Option<Joules> {
    let last = recorded.power.iter().rfind(|reading| reading.time <= end && reading.time > start)?;
    Some(last.power * end.since(start))
}

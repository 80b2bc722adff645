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

/// Kernels of different length.
const LENGTHS: u32 = 3;
/// Margins of idling before the first kernel.
const FIRST_IDLE: u32 = 3;
/// Margins of idling after each kernel: one in which the sensor may be late, and as many as before the first. They are the
/// idling before the next one, too.
const IDLE: u32 = FIRST_IDLE + 1;

impl MeasureOptions {
    /// Kernels that [`measure`] runs.
    pub fn kernels(&self) -> u32 {
        2 * LENGTHS * self.repeats.max(1)
    }

    /// About how long that takes.
    pub fn expected(&self) -> Duration {
        let of_lengths = 2 * self.repeats.max(1) * (1..=LENGTHS).sum::<u32>();
        of_lengths * self.duration + (FIRST_IDLE + IDLE * self.kernels()) * self.margin
    }
}

/// Measures one instruction; `ran` is called after each kernel.
///
/// Kernels with and without the instruction take turns, so that a GPU that warms up is the same to both, and one idling is
/// what lies before and what lies after a kernel.
///
/// # Errors
/// [`MeasureError`].
pub fn measure(
    cuda: &Cuda,
    instruction: &Instruction,
    options: &MeasureOptions,
    ran: &mut dyn FnMut(),
) -> Result<Measured, MeasureError> {
    let kernel = |with_instruction: bool| {
        let program = ptx::program(instruction, with_instruction, cuda.capability);
        cuda.kernel(&program, ptx::KERNEL, options.level)
    };
    // Eight warps of each of the four schedulers hide most latencies.
    let shape = match options.occupancy {
        Occupancy::OneThread => (1, 1),
        Occupancy::Full => (2 * cuda.multiprocessors, 512),
    };
    let kernels = [kernel(true)?, kernel(false)?];
    let mut turns = [0; 2];
    for (turns, kernel) in turns.iter_mut().zip(&kernels) {
        *turns = turns_for(kernel, shape.0, shape.1, options.duration)?;
    }
    let order = (0..options.repeats.max(1))
        .flat_map(|_| 1..=LENGTHS)
        .flat_map(|length| [0, 1].map(|which| Planned { which, turns: turns[which].saturating_mul(length) }));
    let all = session(cuda, &kernels, shape, &order.collect::<Vec<_>>(), options, ran)?;
    let by_method: Vec<(Method, InstructionEnergy)> = [Method::Counter, Method::Area, Method::LastReading]
        .into_iter()
        .filter_map(|method| {
            let own = |which: usize| {
                let of_kernel = all.iter().filter(|run| run.which == which);
                of_kernel.map(|run| run.by(method)).collect::<Option<Vec<Run>>>()
            };
            Some((method, difference(&own(0)?, &own(1)?, ptx::COPIES)?))
        })
        .collect();
    if by_method.is_empty() { Err(MeasureError::NoSlope) } else { Ok(Measured { by_method }) }
}

/// A kernel that is to run.
struct Planned {
    /// With the instruction (0), or without.
    which: usize,
    turns: u32,
}

/// One kernel with what was read around it.
struct Timed {
    which: usize,
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

/// Runs kernels one after another, idling between them, and reads the GPU all the while.
fn session(
    cuda: &Cuda,
    kernels: &[Kernel<'_>; 2],
    (blocks, threads): (u32, u32),
    order: &[Planned],
    options: &MeasureOptions,
    ran: &mut dyn FnMut(),
) -> Result<Vec<Timed>, MeasureError> {
    let monitor = Monitor::start(options.nvml_library.as_deref(), &cuda.bus_id, options.interval)?;
    thread::sleep(FIRST_IDLE * options.margin);
    let mut spans = Vec::new();
    for Planned { which, turns } in order {
        let (kernel, start) = (&kernels[*which], monitor.now());
        kernel.launch(blocks, threads, *turns, turns ^ 0x2545)?;
        kernel.wait()?;
        let end = monitor.now();
        thread::sleep(IDLE * options.margin);
        spans.push((start, end, kernel.results()?[0] as f64));
        ran();
    }
    let recorded = monitor.stop()?;
    let margin = Nanoseconds::from_secs_f64(options.margin.as_secs_f64());
    let spent: Vec<(Timestamp, Joules)> = {
        let curve = recorded.power_curve();
        let first = curve.span().map_or(Timestamp::from_nanos(0), |span| span.0);
        recorded.power.iter().map(|reading| (reading.time, curve.energy(first, reading.time))).collect()
    };
    let timed = |(place, Planned { which, turns }): (usize, &Planned)| {
        let (start, end, cycles) = spans[place];
        let idle_from = place.checked_sub(1).map(|before| spans[before].1 + margin);
        let idle_until = spans.get(place + 1).map(|next| next.0);
        let above_idle = |readings: &[(Timestamp, Joules)]| {
            let between = |from: Option<Timestamp>, until: Option<Timestamp>| -> Vec<(f64, f64)> {
                let is_in =
                    |at: Timestamp| from.is_none_or(|from| at > from) && until.is_none_or(|until| at < until);
                readings.iter().filter(|reading| is_in(reading.0)).map(seconds_and_joules).collect()
            };
            let (before, after) = (between(idle_from, Some(start)), between(Some(end + margin), idle_until));
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
        let lanes = f64::from(blocks) * f64::from(threads);
        Ok(Timed { which: *which, turns: f64::from(*turns), lanes, cycles, energies })
    };
    order.iter().enumerate().map(timed).collect()
}

fn seconds_and_joules((time, energy): &(Timestamp, Joules)) -> (f64, f64) {
    (time.as_nanos() as f64 * 1e-9, energy.as_joules())
}

fn last_reading(recorded: &Recorded, start: Timestamp, end: Timestamp) -> Option<Joules> {
    let last = recorded.power.iter().rfind(|reading| reading.time <= end && reading.time > start)?;
    Some(last.power * end.since(start))
}

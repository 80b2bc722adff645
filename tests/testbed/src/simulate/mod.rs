//! A machine of which everything is known, recorded as a real one would be.
//!
//! A [`Scenario`] says which functions run on which cores, how many events each causes and how many watts
//! it adds. [`simulate`] plays it and writes what the recorder would have written, so that the reader, the
//! timeline and the attribution all take part, and keeps the [`Truth`] to compare with:
//!
//! ```text
//!   schedule ──► segments ──┬─► pmu: overflows, skid, throttling, loss ──► emit ──► perf.data
//!                           ├─► meter: RAPL's steps and jitter, readings ───┘
//!                           └─► truth: joules by function, static, others
//! ```
//!
//! Everything random follows from the scenario's seed.

pub mod alternating;
pub mod effects;
mod emit;
mod meter;
pub mod paper;
mod pmu;
pub mod scenario;
mod schedule;
pub mod truth;

use std::io::{self, Cursor, Seek, Write};

use thiserror::Error;

use emit::Emitter;
pub use emit::{PROGRAM_PATH, at, function_at};
use eprof::numerics::random::Random;
use meter::Meters;
use pmu::CpuCounters;
pub use scenario::Scenario;
use schedule::Schedule;
pub use truth::Truth;

/// Why a scenario was not simulated.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// Its parts do not fit together.
    #[error("this cannot be simulated: {0}")]
    Scenario(String),
    /// The recording cannot be written.
    #[error("the simulated recording cannot be written: {0}")]
    Recording(#[from] io::Error),
}

/// A recording and what it should say.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// perf.data, as the recorder writes it.
    pub recording: Vec<u8>,
    /// What really happened.
    pub truth: Truth,
}

/// Rings are read this often.
const ROUND: u64 = 50_000_000;

/// Plays a scenario and keeps the recording in memory.
///
/// # Errors
/// [`SimulationError::Scenario`] if it does not fit together.
pub fn simulate(scenario: &Scenario) -> Result<Simulation, SimulationError> {
    let (file, truth) = simulate_to(scenario, Cursor::new(Vec::new()))?;
    Ok(Simulation { recording: file.into_inner(), truth })
}

/// Plays a scenario and writes the recording from the start of `file`. Memory does not grow with the
/// recording, but for the curves of the truth.
///
/// # Errors
/// [`SimulationError::Scenario`] if it does not fit together, [`SimulationError::Recording`] if the file
/// cannot be written.
pub fn simulate_to<W: Write + Seek>(scenario: &Scenario, file: W) -> Result<(W, Truth), SimulationError> {
    scenario.check().map_err(SimulationError::Scenario)?;
    let random = Random::seeded(scenario.seed);
    let recorded: Vec<bool> = scenario.tasks().map(|task| task.recorded).collect();
    let mut schedule = Schedule::new(scenario, &random.part(1));
    let mut meters = Meters::new(scenario, random.part(2));
    let counters = |cpu: u32| CpuCounters::new(scenario, &recorded, random.part(1000 + u64::from(cpu)));
    let mut counters: Vec<CpuCounters<'_>> = (0..scenario.cpus()).map(counters).collect();
    let mut truth = Truth::new(scenario);
    let mut emitter = Emitter::new(scenario, &recorded, file)?;
    emitter.busy(0, &[], &[])?;
    let end = scenario.duration.as_nanos();
    let mut from = 0;
    while from < end {
        let to = (from + ROUND).min(end);
        let by_cpu = scenario.effects.apply(scenario, schedule.advance(from, to));
        let (mut busy, mut own) = (vec![0; by_cpu.len()], vec![0; by_cpu.len()]);
        for (cpu, segments) in by_cpu.iter().enumerate() {
            emitter.ring(cpu, &counters[cpu].advance(segments, to))?;
            for segment in segments {
                truth.add(scenario, cpu, recorded[segment.task], segment);
                let span = segment.end - segment.start;
                busy[cpu] += span;
                own[cpu] += if recorded[segment.task] { span } else { 0 };
            }
        }
        emitter.readings(&meters.advance(&by_cpu, from, to))?;
        emitter.busy(to, &busy, &own)?;
        emitter.end_round()?;
        from = to;
    }
    (truth.energy, truth.static_energy) = meters.into_true_energy();
    Ok((emitter.finish()?, truth))
}

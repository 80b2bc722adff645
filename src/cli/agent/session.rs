//! One recording of the agent: from its start until it ends or has to begin anew.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use eprof::analyze::{Dimensions, ModelChoice};
use eprof::live::{CutOptions, Engine, EngineOptions, Follower};
use eprof::process::{Outcome, Streams};
use eprof::record::{
    self, ControlGroups, EnergyOptions, GpuLaunches, GpuOptions, LaunchOptions, MeterSharing, OtherProcesses,
    OutputOptions, RecordOptions, SamplingOptions, SamplingRate, StopRequest, TargetOptions, TargetTasks,
};
use nix::sys::signal::Signal;

use super::pipeline::Pipeline;
use super::rights;
use super::settings::Sampled;
use super::shared::Shared;
use crate::cli::input::cache_folder;
use crate::cli::record::{command_line, model};

/// How often the recording is looked at.
const TICK: Duration = Duration::from_millis(200);
/// Between two readings of a meter.
const READINGS: Duration = Duration::from_millis(100);
/// A window is cut before its time when it holds so many bytes: half a MiB for each CPU, and no less than this. Some machines
/// start a thousand processes a second.
const LEAST_BYTES: usize = 12 << 20;
const BYTES_OF_CPU: usize = 1 << 19;
/// While windows cannot be analyzed as fast as they come, so much of the recording waits for it in memory; what comes beyond
/// that is lost, and counted.
const MOST_UNREAD: u64 = 32 << 20;
/// What asks a recording to begin anew, which no signal from outside does.
pub const ANEW: Signal = Signal::SIGUSR1;

/// How a recording ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// By a signal.
    Stopped,
    /// It is to begin anew.
    Anew,
}

/// Records until a signal comes or something has changed. `opened` is called when all is open.
///
/// # Errors
/// What keeps the recording from starting, or ended it.
pub fn run(
    sampled: &Sampled,
    shared: &Arc<Mutex<Shared>>,
    opened: &mut dyn FnMut(&StopRequest) -> anyhow::Result<Pipeline>,
) -> anyhow::Result<End> {
    let options = options(sampled)?;
    let (file, follower) = Follower::create().context("no file in memory can be made")?;
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let engine_options = EngineOptions {
        cut: CutOptions { period: sampled.period(), most_bytes: LEAST_BYTES.max(cpus * BYTES_OF_CPU) },
        dimensions: Dimensions { cpus: false, ..Dimensions::ALL },
        model: ModelChoice::Auto,
        stored_model: options.sampling.model.clone(),
        kernel_cache: cache_folder(),
        lines: false,
        keeps_files: false,
    };
    let mut engine = Some(Engine::new(follower, engine_options));
    let request = StopRequest::that_takes_hang_ups();
    let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mut worker: Option<JoinHandle<anyhow::Result<Pipeline>>> = None;
    let mut failed = None;
    let recorded = {
        let mut started = |_| {
            let Some(engine) = engine.take() else { return };
            let (asks, ended) = (request.clone(), Arc::clone(&ended));
            let begun = opened(&request).and_then(|pipeline| {
                let run = move || follow(engine, pipeline, &ended, &asks);
                Ok(thread::Builder::new().name("eprof-agent".into()).spawn(run)?)
            });
            match begun {
                Ok(thread) => worker = Some(thread),
                Err(error) => {
                    failed = Some(error);
                    request.stop(Signal::SIGTERM);
                }
            }
        };
        let mut progress = |so_far: &record::SoFar| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.lost(so_far.lost);
        };
        record::record_to(&options, file, MOST_UNREAD, &request, &mut started, &mut progress)
    };
    ended.store(true, std::sync::atomic::Ordering::SeqCst);
    let followed = worker.map(JoinHandle::join);
    let summary = recorded.map_err(anyhow::Error::from)?;
    if let Some(error) = failed {
        return Err(error);
    }
    {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.lost(summary.lost);
        shared.recording_ended();
    }
    match followed {
        Some(Ok(pipeline)) => pipeline?.leave(),
        Some(Err(_)) => anyhow::bail!("the windows broke off; this is a bug of eprof"),
        None => {}
    }
    if let Some(failure) = summary.failure {
        anyhow::bail!("the recording ended early: {failure}");
    }
    Ok(if summary.outcome == Outcome::Stopped(ANEW) { End::Anew } else { End::Stopped })
}

/// Takes windows as they come, until the recorder has ended and the last one is taken.
fn follow(
    mut engine: Engine,
    mut pipeline: Pipeline,
    ended: &std::sync::atomic::AtomicBool,
    request: &StopRequest,
) -> anyhow::Result<Pipeline> {
    let mut taken = || -> anyhow::Result<()> {
        loop {
            // Asked first: what was written until then is seen below.
            let is_last = ended.load(std::sync::atomic::Ordering::SeqCst);
            let looked = Instant::now();
            while let Some(window) = engine.next_window(is_last)? {
                if pipeline.take(&window, engine.is_full()) && !is_last {
                    request.stop(ANEW);
                }
            }
            if is_last {
                return Ok(());
            }
            if request.take_hang_up() && pipeline.reload() {
                request.stop(ANEW);
            }
            thread::sleep(TICK.saturating_sub(looked.elapsed()));
        }
    };
    let taken = taken();
    if taken.is_err() {
        // Nobody follows the recording any more.
        request.stop(Signal::SIGTERM);
    }
    taken.map(|()| pipeline)
}

fn options(sampled: &Sampled) -> anyhow::Result<RecordOptions> {
    Ok(RecordOptions {
        target: TargetOptions {
            tasks: TargetTasks::System(None),
            until: None,
            others: OtherProcesses::Automatic,
            run_as: None,
            streams: Streams::default(),
        },
        sampling: SamplingOptions {
            events: sampled.event.clone(),
            rate: SamplingRate::Frequency(sampled.frequency),
            model: model(&sampled.model)?,
            call_graph: sampled.call_graph,
            user_only: false,
            cgroups: ControlGroups::IfPossible,
            duty: sampled.duty,
        },
        // Probes in drivers cost what they tell of, on a machine that nobody looks at.
        gpu: GpuOptions {
            launches: LaunchOptions { when: GpuLaunches::Never, ..LaunchOptions::default() },
            ..GpuOptions::default()
        },
        energy: EnergyOptions {
            meters: sampled.meters.clone(),
            interval: READINGS,
            rest: Duration::ZERO,
            sharing: MeterSharing::Own,
        },
        output: OutputOptions {
            path: PathBuf::from("(memory)"),
            compression_level: None,
            command_line: command_line(),
            labels: sampled.labels.clone(),
        },
        duration: None,
        kept_rights: rights::KEPT,
    })
}

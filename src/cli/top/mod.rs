//! `eprof top`: who takes the watts now, as a view of the terminal or as lines.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use eprof::analyze::{Dimensions, ModelChoice};
use eprof::live::{CutOptions, Engine, EngineOptions, Follower};
use eprof::machine::Roots;
use eprof::machine::permissions::Permissions;
use eprof::pattern::pattern;
use eprof::process::{Outcome as HowItEnded, Streams};
use eprof::record::{
    self, CallGraph, ControlGroups, EnergyOptions, GpuOptions, OtherProcesses, OutputOptions, RecordError,
    RecordOptions, SamplingOptions, SamplingRate, TargetOptions, TargetTasks,
};
use eprof::units::Nanoseconds;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use regex::Regex;

use super::Outcome;
use super::input::cache_folder;
use super::meters::MeterArgs;
use super::output::{is_dumb_terminal, say, warn};
use super::record::{call_graph, command_line, hertz, model, task};
use history::History;
use program_output::ProgramOutput;
use rows::By;
use shared::Shared;

mod closed_terminal;
mod columns;
mod history;
mod keys;
mod last_line;
mod lines;
mod program_output;
mod rate;
mod rows;
mod screen;
mod shared;
mod so_far;
mod terminal;
mod terminal_size;
mod view;
mod zoom;

/// As much of the recording as waits in memory to be looked at.
const MOST_UNREAD: u64 = 256 << 20;

const EXAMPLES: &str = "\
Examples:
  eprof top                       everything on this machine, as far as you may see it
  eprof top -p 1234               a process that runs
  eprof top ./app input           a program, from its start to its end
  eprof top --by process          processes instead of functions
  eprof top --lines -d 5 -p 1234  as lines, every five seconds
  eprof top --iterations 3        three times, and no more";

/// Show where the watts go, while they do.
///
/// In the view, ? tells the keys. What COMMAND writes to the terminal is kept while the view is there, its last line below
/// the rows, and comes out when the view ends. The keys are the view's: COMMAND reads nothing from the terminal, but what
/// standard input is where that is a file or a pipe. Where standard output is no terminal, or a dumb one, lines are written
/// instead, and what COMMAND reads and writes is what it always is; so it is with --lines.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TopArgs {
    /// Watch running processes, with all their threads, until they end, or until COMMAND ends if there is one: that is not
    /// watched then.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = task)]
    pid: Vec<u32>,

    /// Watch everything on every CPU: the default without COMMAND and -p. With COMMAND, until it ends.
    #[arg(short, long, conflicts_with = "pid")]
    all_cpus: bool,

    /// What a row stands for.
    #[arg(long, value_enum, default_value_t = By::Function)]
    by: By,

    /// Seconds between two pictures: what is shown is the energy of this time.
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = delay, allow_negative_numbers = true)]
    delay: Duration,

    /// Rows [default: as many as fit; 10 as lines].
    #[arg(short = 'n', long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    rows: Option<u32>,

    /// Samples per second of each event; `max` is the highest rate that the kernel allows [default: as `eprof record`; of the
    /// whole machine 400 of all CPUs together, 50 of each at least].
    #[arg(short = 'F', long, value_name = "HERTZ", value_parser = hertz, allow_negative_numbers = true)]
    freq: Option<u64>,

    /// Events to sample, as perf names them.
    #[arg(short, long, value_name = "EVENT")]
    event: Vec<String>,

    /// How to follow call paths, as for `eprof record`. Without copies of stacks (fp) the direct callers of functions that
    /// set up no frame are missing; the list of callers says then in how many samples.
    #[arg(long, value_name = "HOW", default_value = "fp+leaf", value_parser = call_graph)]
    call_graph: CallGraph,

    /// Show only rows whose name or module matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    filter: Option<Regex>,

    /// Write lines instead of a view.
    #[arg(long)]
    lines: bool,

    /// End after so many pictures; as lines.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,

    #[command(flatten)]
    meters: MeterArgs,

    /// The power model, as for `eprof record`: a file, `stored`, or `none`.
    #[arg(long, value_name = "MODEL", default_value = "stored")]
    model: PathBuf,

    /// Run COMMAND as this user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Program to run, with its arguments.
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Runs the verb. The exit status is the program's own, or 0 where the user ended the view.
pub fn run(args: TopArgs) -> Outcome {
    // A dumb one cannot place a cursor.
    let has_view = io::stdout().is_terminal() && !is_dumb_terminal();
    let as_lines = args.lines || args.iterations.is_some() || !has_view;
    let (by, filter, delay) = (args.by, args.filter.clone(), args.delay);
    let (rows, iterations) = (args.rows.map(|rows| rows as usize), args.iterations);
    let mut options = options(args)?;
    let engine_options = EngineOptions {
        cut: CutOptions { period: nanoseconds(delay), ..CutOptions::default() },
        dimensions: Dimensions::ALL,
        model: ModelChoice::Auto,
        stored_model: options.sampling.model.clone(),
        kernel_cache: cache_folder(),
        lines: by.tells_lines(),
        keeps_files: true,
    };
    let nameless_kernel = nameless_kernel(&Permissions::read(&Roots::default()));
    let not_watched = not_watched(&options.target);
    if let Some(note) = not_watched.as_ref().filter(|_| as_lines) {
        say(note);
    }
    let mut output = None;
    if !as_lines && options.target.program().is_some() {
        let (kept, streams) = ProgramOutput::keep().context("what the program writes cannot be kept")?;
        (output, options.target.streams) = (Some(kept), streams);
    }
    let (file, follower) = Follower::create().context("no file in memory can be made")?;
    let shared = Shared::default();
    let mut engine = Some(Engine::new(follower, engine_options));
    let mut picture: Option<JoinHandle<anyhow::Result<()>>> = None;
    let recorded = {
        let mut started = |_: Option<Pid>| {
            let Some(engine) = engine.take() else { return };
            let shared = shared.clone();
            // Lines are of one kind to the end.
            let also: &[By] = if as_lines { &[] } else { &By::ALL };
            let (history, not_watched) = (History::new(by, also, filter.clone()), not_watched.clone());
            let mut output: Option<ProgramOutput> = output.take();
            if let Some(Err(error)) = output.as_mut().map(ProgramOutput::start) {
                say(format_args!("error: what the program writes cannot be kept: {error}"));
            }
            let spawned = thread::Builder::new().name("eprof-top".into()).spawn(move || {
                let shown = if as_lines {
                    lines::run(engine, history, rows.unwrap_or(lines::ROWS), iterations, &shared)
                } else {
                    terminal::run(engine, history, rows, output, not_watched, &shared)
                };
                // Whatever ended the picture, nobody looks at the recording any more.
                if !shared.is_recorded() {
                    shared.leave(Signal::SIGTERM);
                }
                shown
            });
            picture =
                spawned.map_err(|error| say(format_args!("error: no thread can be made: {error}"))).ok();
        };
        record::record_to(&options, file, MOST_UNREAD, shared.request(), &mut started, &mut |_| ())
    };
    shared.end();
    // What the terminal's end has caught reading keys ends with the process.
    let is_caught =
        |picture: &JoinHandle<_>| !as_lines && !picture.is_finished() && closed_terminal::is_closed();
    let shown = picture.filter(|picture| !is_caught(picture)).map(JoinHandle::join);
    let summary = match recorded {
        Ok(summary) => summary,
        Err(RecordError::Launch(error)) => {
            say(&error);
            return Ok(ExitCode::from(error.exit_status()));
        }
        Err(error) => return Err(error.into()),
    };
    match shown {
        Some(Ok(shown)) => shown?,
        Some(Err(_)) => anyhow::bail!("the view broke off; this is a bug of eprof"),
        None => {}
    }
    if let Some(failure) = summary.failure {
        anyhow::bail!("the recording ended early: {failure}");
    }
    warn(&summary.warnings);
    warn(nameless_kernel);
    // Who leaves the view has not failed.
    let left = shared.request().signal() == Some(Signal::SIGTERM)
        && matches!(
            summary.outcome,
            HowItEnded::Stopped(Signal::SIGTERM) | HowItEnded::Killed(Signal::SIGTERM)
        );
    Ok(ExitCode::from(if left { 0 } else { summary.outcome.exit_status() }))
}

/// What is said where a command is given beside the processes to watch: it only tells how long.
fn not_watched(target: &TargetOptions) -> Option<String> {
    let (TargetTasks::Processes(pids), Some(until)) = (&target.tasks, &target.until) else { return None };
    let command = until.first()?.to_string_lossy().into_owned();
    let numbers = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Some(format!("only process {numbers} is watched, until {command} ends; without -p {command} is"))
}

/// Why functions of the kernel have no names, where it is sampled.
fn nameless_kernel(rights: &Permissions) -> Option<String> {
    (rights.own_kernel_events() && !rights.kernel_symbols()).then(|| {
        let repair = rights.kernel_symbols_repairs().one_line();
        format!("functions of the kernel have no names: it hides its addresses from this user; to see them: {repair}")
    })
}

fn options(args: TopArgs) -> anyhow::Result<RecordOptions> {
    let command_line = command_line();
    let command = (!args.command.is_empty()).then_some(args.command);
    let is_everything = args.all_cpus || (command.is_none() && args.pid.is_empty());
    if is_everything && !args.all_cpus && !Permissions::read(&Roots::default()).cpu_wide_events() {
        anyhow::bail!(
            "everything on this machine may be watched by root alone here, or with the right to sample it: `eprof doctor` \
             says how to get that. A program of your own: eprof top -p PID, or eprof top ./app"
        );
    }
    let (tasks, until) = match (command, is_everything) {
        (command, true) => (TargetTasks::System(command), None),
        (until, false) if !args.pid.is_empty() => (TargetTasks::Processes(args.pid), until),
        (Some(command), false) => (TargetTasks::Command(command), None),
        (None, false) => anyhow::bail!("nothing to watch: give a command, -p PID or -a"),
    };
    let cgroups = match tasks {
        TargetTasks::System(_) => ControlGroups::IfPossible,
        _ => ControlGroups::Never,
    };
    let usual = match tasks {
        TargetTasks::System(_) => rate::of_machine(&Roots::default()),
        _ => SamplingRate::Default,
    };
    Ok(RecordOptions {
        target: TargetOptions {
            tasks,
            until,
            others: OtherProcesses::Automatic,
            run_as: args.user,
            streams: Streams::default(),
        },
        sampling: SamplingOptions {
            events: args.event,
            rate: args.freq.map_or(usual, SamplingRate::Frequency),
            model: model(&args.model)?,
            call_graph: args.call_graph,
            user_only: false,
            cgroups,
            duty: None,
        },
        gpu: GpuOptions::default(),
        energy: EnergyOptions {
            meters: args.meters.options(),
            interval: Duration::from_millis(10),
            rest: Duration::from_millis(200),
            // A view says nothing of the meters to recorders of jobs.
            sharing: eprof::record::MeterSharing::Own,
        },
        output: OutputOptions {
            path: PathBuf::from("(memory)"),
            compression_level: None,
            command_line,
            labels: eprof::identity::Labels::default(),
        },
        duration: None,
        kept_rights: 0,
    })
}

/// Shorter times say nothing: meters and the kernel's CPU times move in steps.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

fn delay(text: &str) -> Result<Duration, String> {
    let delay = super::record::seconds(text)?;
    if (SHORTEST..=LONGEST).contains(&delay) {
        return Ok(delay);
    }
    Err("a picture is of 0.1 to 3600 seconds".to_owned())
}

fn nanoseconds(duration: Duration) -> Nanoseconds {
    Nanoseconds::from_nanos(duration.as_nanos() as u64)
}

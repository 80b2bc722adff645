//! `eprof record`: run a program or watch a running one, and write what it did to a file.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use eprof::identity::Labels;
use eprof::label::visible_lines;
use eprof::machine::Roots;
use eprof::machine::cpuinfo::CpuIdentity;
use eprof::power_model::folder;
use eprof::power_model::stored::StoredModel;
use eprof::process::{Outcome as EndOf, Streams, privileges};
use eprof::record::{
    self, CallGraph, ControlGroups, CuptiOptions, EnergyOptions, GpuLaunches, GpuOptions, LaunchOptions,
    OtherProcesses, OutputOptions, RecordError, RecordOptions, SamplingOptions, SamplingRate, TargetOptions,
    TargetTasks,
};

use nix::sys::signal::Signal;

use super::Outcome;
use super::meters::MeterArgs;
use super::model::folders;
use super::new_file::keep_inputs;
use super::output::{say, warn};
use super::progress_line::ProgressLine;

pub(super) mod environment;
mod output_name;
mod sharing;
mod unrecorded;

use output_name::{make_folder_of_job, output};
use sharing::{Meters, who_read};

const EXAMPLES: &str = "\
Examples:
  eprof record ./app input                    what ./app does, into eprof.data
  eprof record --call-graph dwarf ./app       whole call paths of programs without frame pointers
  eprof record -F 999 -o quick.data ./app     999 samples a second of each event
  eprof record --view ./app                   and shows it in a browser: energy.html
  eprof record -p 1234 -- sleep 5             five seconds of a process that runs
  eprof record -a -- sleep 10                 ten seconds of the whole machine
  srun eprof record -o run/%j-%r.data ./app   every rank; the meters are read once on each node
  eprof record --label version=1.2 ./app      told apart by `eprof report DIR/ --by label:version`
  eprof record --meter powercap ./app         this meter, or nothing
  sudo eprof record --user \"$USER\" ./app      with root's rights for eprof, but not for ./app

The exit status is the program's own. If the recording ends before the program does, as on a full disk, the program runs
on, and a status of 0 becomes 1; not in one of several ranks, whose job must not fail for its profiler.";

/// Record a program's samples and the energy that the machine used meanwhile.
///
/// COMMAND and its own options come last; `--` before it is only needed where it begins with a hyphen.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct RecordArgs {
    /// Record running processes, with all their threads, until they end, or until COMMAND ends if there is one.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = task)]
    pid: Vec<u32>,

    /// Record single running threads, until they end, or until COMMAND ends if there is one.
    #[arg(short, long, value_name = "TID", value_delimiter = ',', conflicts_with = "pid", value_parser = task)]
    tid: Vec<u32>,

    /// Record everything on every CPU, until COMMAND ends if there is one.
    #[arg(short, long, conflicts_with_all = ["pid", "tid"])]
    all_cpus: bool,

    /// Record the whole machine beside a job, which is -a until the job step ends or a signal comes (SIGTERM, SIGINT):
    /// srun --overlap --ntasks-per-node=1 eprof record --node &
    #[arg(long, conflicts_with_all = ["pid", "tid", "cgroup", "command"])]
    node: bool,

    /// Record a control group, given by its name (such as /system.slice/nginx.service) or by its folder.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "tid", "all_cpus"])]
    cgroup: Option<PathBuf>,

    /// Let samples tell the control groups of their tasks, for `eprof report --by cgroup`: the default with -a and
    /// --cgroup, where there is more than one.
    #[arg(long)]
    all_cgroups: bool,

    /// End the recording after this many seconds; COMMAND may go on and is waited for.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    duration: Option<Duration>,

    /// File to write; one that is there already is kept as FILE.old. In its name %h is the host, %j the job, %s the
    /// job step, %r (or %t) the rank, %p the process id of eprof, and %% a percent sign; what is not known is `none`. In
    /// a job the folder that it names is made [default: eprof.data; of each of several ranks eprof-%j.%s-%r.data, without what its launcher does not tell].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Events to sample, as perf names them.
    #[arg(short, long, value_name = "EVENT")]
    event: Vec<String>,

    /// Samples per second of each event; the kernel adapts the period to reach that. Without -F and -c, eprof chooses
    /// a fixed period for each event by its power model, so that every sample stands for about the same joules. `max`
    /// is the highest rate that the kernel allows.
    #[arg(short = 'F', long, value_name = "HERTZ", conflicts_with = "count", value_parser = hertz, allow_negative_numbers = true)]
    freq: Option<u64>,

    /// Events per sample (nanoseconds for clocks).
    #[arg(short, long, value_name = "PERIOD", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Record call paths, which is the default; --call-graph says how.
    #[arg(short)]
    g: bool,

    /// How to record call paths: fp+leaf[,BYTES], fp, dwarf[,BYTES], lbr or none. Frame pointers alone (fp) miss the
    /// direct caller of each function that sets up no frame, as most functions that call no other do. fp+leaf also copies
    /// the top of the stack (192 bytes, or BYTES), in which that caller is found. dwarf copies so much of the stack that
    /// programs without frame pointers have call paths, too.
    #[arg(long, value_name = "HOW", default_value = "fp+leaf", value_parser = call_graph)]
    call_graph: CallGraph,

    /// Compress the file (zstd level 1 to 22; 1 if none is given).
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
          default_missing_value = "1", value_parser = clap::value_parser!(i32).range(1..=22))]
    compress: Option<i32>,

    /// Sample other processes too, so that their share of the energy is known by event and not by CPU
    /// time alone (needs the right to sample everything): always, never, or auto, which is where COMMAND
    /// runs on CPUs with a meter and hardware events.
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto",
          default_missing_value = "always", value_parser = neighbours)]
    neighbours: OtherProcesses,

    /// Sample user code only, and not the kernel.
    #[arg(long)]
    user_only: bool,

    /// Run COMMAND as this user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Record launches of GPU kernels, by probes on CUDA's functions: `auto` does so where a GPU's energy
    /// is measured and the kernel permits probes.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Gpu::Auto, num_args = 0..=1,
          require_equals = true, default_missing_value = "always")]
    gpu: Gpu,

    /// CUDA's driver library, if not the system's own libcuda.so.1.
    #[arg(long, value_name = "FILE")]
    cuda_lib: Option<PathBuf>,

    /// Let CUDA load a library into COMMAND that asks CUPTI when each kernel really ran, instead of taking
    /// the time from launch to wait for it. Slows down programs of many short kernels.
    #[arg(long)]
    cupti: bool,

    /// CUPTI's library, if it is not where CUDA's toolkit puts it.
    #[arg(long, value_name = "FILE", requires = "cupti")]
    cupti_lib: Option<PathBuf>,

    /// Stop asking CUPTI when the program launches more kernels a second than this (0: never).
    #[arg(long, value_name = "LAUNCHES", requires = "cupti", default_value_t = record::CUPTI_MAX_RATE)]
    cupti_max_rate: u32,

    /// The library that CUDA is to load, if it is not installed with eprof.
    #[arg(long, value_name = "FILE", requires = "cupti", hide = true)]
    cupti_injection: Option<PathBuf>,

    /// Who reads the machine's meters where several recorders run on it: `own` is this one; `node` is one of those of the
    /// job step (or of the user, without a job), which also samples other processes, while the rest sample their own
    /// programs alone; `none` is not this one. `auto` is node in a job and own elsewhere.
    #[arg(long, value_enum, value_name = "WHO", default_value_t = Meters::Auto)]
    meters: Meters,

    #[command(flatten)]
    meter: MeterArgs,

    /// Milliseconds between two readings of a fast meter.
    #[arg(long, value_name = "MS", default_value_t = 10, hide = true)]
    meter_interval: u64,

    /// Read the meters for so many milliseconds before the program starts, to learn what the machine draws at rest; again, up to
    /// three times, where anything else ran meanwhile. 0 leaves this out; after `eprof calibrate` it is not needed.
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(..=60_000))]
    rest: u64,

    /// The power model that tells how often to sample each event: a file, `stored` for what `eprof
    /// calibrate` kept of this machine, or `none`.
    #[arg(long, value_name = "MODEL", default_value = "stored")]
    model: PathBuf,

    /// Call the recording by this, such as version=1.2, so that reports of several recordings can be by it
    /// (`eprof report --by label:version`). May be given more than once.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Labels::parse)]
    label: Vec<(String, String)>,

    /// Show what was recorded in a browser when the recording ends, as `eprof view` does.
    #[arg(long)]
    view: bool,

    /// Show no progress, warnings or summary; errors are shown all the same.
    #[arg(short, long)]
    quiet: bool,

    /// Also say what seldom matters: who reads the meters of a machine with several recorders.
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,

    /// Program to run, with its arguments. With -a, -p, -t or --cgroup, the recording ends when it does.
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// When launches of GPU kernels are recorded.
#[derive(Clone, Copy, ValueEnum)]
enum Gpu {
    Auto,
    Always,
    Never,
}

/// Runs the verb. The exit status is the program's own; 1 if that is 0 and the recording is not whole, but in ranks.
pub fn run(args: RecordArgs) -> Outcome {
    let (quiet, verbose, shows, of_node) = (args.quiet, args.verbose, args.view, args.node);
    let options = options(args)?;
    if options.gpu.cupti.is_some() && !quiet {
        say(record::CUPTI_COST);
    }
    let line = ProgressLine::new(quiet, options.target.program().is_some());
    let recorded = record::record(&options, &mut |so_far| line.show(so_far));
    line.clear();
    let summary = match recorded {
        Ok(summary) => summary,
        Err(RecordError::Launch(error)) => {
            say(&error);
            return Ok(ExitCode::from(error.exit_status()));
        }
        Err(error @ RecordError::BrokeOff { outcome, .. }) => {
            say(format_args!("error: {error}"));
            return Ok(unrecorded::status(&options, outcome.exit_status()));
        }
        Err(error) => {
            return match unrecorded::program(&options, &error) {
                Some(program) => Ok(unrecorded::run(program, &error)),
                None => Err(error.into()),
            };
        }
    };
    if verbose {
        say(who_read(summary.meters));
    }
    if !quiet {
        warn(&summary.warnings);
        if summary.samples == 0 && summary.lost == 0 && summary.failure.is_none() {
            say(format_args!(
                "warning: nothing was sampled: what was recorded ran for less time than lies between two samples, if at \
                 all. The joules are the whole machine's"
            ));
        }
        // Not to be lost with stderr: the program's own exit status.
        let _ = writeln!(io::stderr(), "{}", visible_lines(&summary.to_string()));
    }
    let status = match summary.outcome {
        // How a job's companion ends that has nothing else to end it.
        EndOf::Stopped(Signal::SIGTERM) if of_node => 0,
        outcome => outcome.exit_status(),
    };
    if let Some(failure) = &summary.failure {
        let path = summary.output.display();
        if failure.kind() == io::ErrorKind::NotFound {
            say(format_args!("error: {path} was removed while it was written; there is no recording"));
        } else {
            say(format_args!("error: recording stopped early, {path} ends there: {failure}"));
        }
        return Ok(unrecorded::status(&options, status));
    }
    if shows && let Err(error) = view(&summary.output) {
        say(format_args!("error: {} is not shown: {error:#}", summary.output.display()));
    }
    Ok(ExitCode::from(status))
}

/// Shows a recording. Another process does it: the program's exit status is this one's, whatever becomes of the page.
fn view(recording: &Path) -> anyhow::Result<()> {
    let eprof = std::env::current_exe().context("cannot find the path of this program")?;
    let status = Command::new(eprof).arg("view").arg("-i").arg(recording).status();
    let status = status.context("cannot run eprof")?;
    anyhow::ensure!(status.success(), "`eprof view` failed ({status})");
    Ok(())
}

/// Options whose value is optional and hangs at an equals sign: a word after a blank is the program to run.
fn value_taken_for_program(arguments: &[String]) -> Option<String> {
    let is_apart = |pair: &&[String]| {
        matches!(&*pair[0], "--neighbours" | "--gpu") && matches!(&*pair[1], "auto" | "always" | "never")
    };
    arguments.windows(2).find(is_apart).map(|pair| format!("{}={}", pair[0], pair[1]))
}

/// What this process was started with, as recordings tell it.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

fn options(args: RecordArgs) -> anyhow::Result<RecordOptions> {
    let command_line = command_line();
    // Behind the program's name stand its own options.
    let own = command_line.len() - args.command.len().saturating_sub(1).min(command_line.len());
    if let Some(meant) = value_taken_for_program(&command_line[..own]) {
        anyhow::bail!("write {meant}: without the equals sign the word is taken for the program to run");
    }
    let output = output(args.output.as_deref(), args.node, args.quiet)?;
    keep_inputs(Some(&output), &[&args.model])?;
    make_folder_of_job(&output);
    let command = (!args.command.is_empty()).then_some(args.command);
    let of_one_kind =
        args.neighbours == OtherProcesses::Always && (!args.tid.is_empty() || args.cgroup.is_some());
    anyhow::ensure!(!of_one_kind, "--neighbours goes with a command or -p, not with -t or --cgroup");
    let (tasks, until) =
        match (command, args.all_cpus || args.node, args.pid.is_empty(), args.tid.is_empty(), args.cgroup) {
            (command, true, ..) => (TargetTasks::System(command), None),
            (until, _, false, ..) => (TargetTasks::Processes(args.pid), until),
            (until, _, _, false, _) => (TargetTasks::Threads(args.tid), until),
            (until, .., Some(group)) => (TargetTasks::ControlGroup(group), until),
            (Some(command), ..) => (TargetTasks::Command(command), None),
            (None, ..) => anyhow::bail!(
                "nothing to record: give a command, -p PID, -t TID, --cgroup NAME, -a or --node"
            ),
        };
    let contradicts = args.cupti && matches!(args.gpu, Gpu::Never);
    anyhow::ensure!(
        !contradicts,
        "--cupti tells when launched kernels ran; with --gpu=never there are no launches"
    );
    let labels = Labels::new(args.label)?;
    let cgroups = match (args.all_cgroups, &tasks) {
        (true, _) => ControlGroups::Asked,
        (false, TargetTasks::System(_) | TargetTasks::ControlGroup(_)) => ControlGroups::IfPossible,
        (false, _) => ControlGroups::Never,
    };
    let rate = match (args.freq, args.count) {
        (Some(frequency), _) => SamplingRate::Frequency(frequency),
        (_, Some(period)) => SamplingRate::Period(period),
        _ => SamplingRate::Default,
    };
    Ok(RecordOptions {
        target: TargetOptions {
            tasks,
            until,
            others: args.neighbours,
            run_as: args.user,
            streams: Streams::default(),
        },
        sampling: SamplingOptions {
            events: args.event,
            rate,
            model: model(&args.model)?,
            call_graph: args.call_graph,
            user_only: args.user_only,
            cgroups,
            duty: None,
        },
        gpu: GpuOptions {
            launches: LaunchOptions {
                when: match args.gpu {
                    Gpu::Auto if args.cupti => GpuLaunches::Always,
                    Gpu::Auto => GpuLaunches::Automatic,
                    Gpu::Always => GpuLaunches::Always,
                    Gpu::Never => GpuLaunches::Never,
                },
                cuda_library: args.cuda_lib,
            },
            cupti: args.cupti.then_some(CuptiOptions {
                library: args.cupti_lib,
                injection: args.cupti_injection,
                max_rate: Some(args.cupti_max_rate),
            }),
        },
        energy: EnergyOptions {
            meters: args.meter.options(),
            interval: Duration::from_millis(args.meter_interval.max(1)),
            rest: Duration::from_millis(args.rest),
            sharing: args.meters.sharing(args.node),
        },
        output: OutputOptions { path: output, compression_level: args.compress, command_line, labels },
        duration: args.duration,
        kept_rights: 0,
    })
}

/// Samples a second, or as many as the kernel allows.
pub fn hertz(text: &str) -> Result<u64, String> {
    match text {
        "max" => Ok(record::highest_frequency(&Roots::default())),
        _ => match text.parse() {
            Ok(0) => Err("without samples there is nothing to record; give 1 or more, or max".to_owned()),
            Ok(hertz) => Ok(hertz),
            Err(_) => Err("a number of samples a second, or max".to_owned()),
        },
    }
}

fn neighbours(text: &str) -> Result<OtherProcesses, String> {
    match text {
        "auto" => Ok(OtherProcesses::Automatic),
        "always" => Ok(OtherProcesses::Always),
        "never" => Ok(OtherProcesses::Never),
        _ => Err("one of auto, always, never".to_owned()),
    }
}

/// The model of this name. A stored one that cannot be read is no reason to record nothing.
pub fn model(name: &Path) -> anyhow::Result<Option<StoredModel>> {
    if name == Path::new("none") {
        return Ok(None);
    }
    if name != Path::new("stored") {
        return Ok(Some(folder::parse(name, privileges::read_text_of_user(name))?));
    }
    let identity = CpuIdentity::read(&Roots::default()).identity;
    folders().find(&identity).or_else(|error| {
        say(format_args!("warning: the stored power model is not used: {error}"));
        Ok(None)
    })
}

/// The number of a process or thread.
pub fn task(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("a number is wanted; `pgrep {text}` tells those of a program by its name"))
}

/// A span of time in seconds, as options give it.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if seconds < 0.0 {
        return Err("a time of less than nothing; give seconds above 0".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub fn call_graph(text: &str) -> Result<CallGraph, String> {
    const DEFAULT_STACK: u32 = 8192;
    match text.split_once(',').map_or((text, None), |(how, bytes)| (how, Some(bytes))) {
        ("fp+leaf", None) => Ok(CallGraph::WITH_HIDDEN_CALLERS),
        ("fp+leaf", Some(bytes)) => stack(bytes).map(|stack_bytes| CallGraph::FramePointers { stack_bytes }),
        ("fp", None) => Ok(CallGraph::FramePointers { stack_bytes: 0 }),
        ("lbr", None) => Ok(CallGraph::LastBranches),
        ("none" | "no", None) => Ok(CallGraph::None),
        ("dwarf", None) => Ok(CallGraph::Dwarf { stack_bytes: DEFAULT_STACK }),
        ("dwarf", Some(bytes)) => stack(bytes).map(|stack_bytes| CallGraph::Dwarf { stack_bytes }),
        _ => Err("one of fp+leaf, fp+leaf,BYTES, fp, dwarf, dwarf,BYTES, lbr, none".to_owned()),
    }
}

/// Bytes of stack to copy, as the kernel takes them.
fn stack(bytes: &str) -> Result<u32, String> {
    const MOST: u32 = 65528;
    match bytes.parse::<u32>() {
        Ok(bytes @ 8..=MOST) => Ok(bytes.next_multiple_of(8).min(MOST)),
        _ => Err(format!("the stack to copy is 8 to {MOST} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_without_its_equals_sign_is_noticed() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let noticed = |line: &str| value_taken_for_program(&words(line));
        assert_eq!(noticed("eprof record --neighbours auto"), Some("--neighbours=auto".to_owned()));
        assert_eq!(noticed("eprof record --neighbours=auto never"), None);
        assert_eq!(noticed("eprof record --neighbours ./app"), None);
    }

    #[test]
    fn a_name_in_place_of_a_number_is_answered_with_the_way_to_the_number() {
        assert_eq!(task("17"), Ok(17));
        assert!(task("nginx").is_err_and(|why| why.contains("`pgrep nginx`")));
    }
}

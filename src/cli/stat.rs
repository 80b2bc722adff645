//! `eprof stat`: the joules of a program, like perf stat; of two programs, in turns.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use eprof::identity::Job;
use eprof::measure::Subject;
use eprof::measure::runs::{self, BeginningRun, Finished, RunError, RunOptions};
use eprof::stat::{self, MeasuredDomain, Slice};

use super::Outcome;
use super::meters::MeterArgs;
use super::output::{on_stderr, say, warn, write_to};
use super::progress_line::ProgressLine;
use super::record::environment::variable;
use super::record::seconds;

const EXAMPLES: &str = "Examples:
  eprof stat ./app input                        joules, watts and seconds of one run
  eprof stat -r 10 --warmup 1 ./app             mean and 95 % interval of ten runs
  eprof stat -r 10 --vs './app --new' ./app     is the new way cheaper, and by how much?
  eprof stat -r 5 --json -o energy.json ./app   for scripts
  eprof stat -I 1000 ./app                      each second's joules, while it runs
  eprof stat -a -- sleep 10                     the whole machine for ten seconds
  eprof stat -p 1234 -- sleep 10                a process that runs, for ten seconds

The figures go to stderr or to the file of -o; the program's own output is left alone, and its exit
status is eprof's.";

/// Measure the energy of a program: joules, watts, seconds and energy x time by domain.
///
/// With several runs, the mean and the 95 % interval that Student's distribution gives. With --vs, the
/// two programs run in turns (A B A B) and the ratio's interval is that of the pairs' logarithms, so
/// that what drifts from pair to pair does not count.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct StatArgs {
    /// Measure the whole machine, until COMMAND ends, or until Ctrl-C.
    #[arg(short, long)]
    all_cpus: bool,

    /// Measure processes that run already, with what they start, until they end, or until COMMAND ends.
    /// An estimate is of their CPU time; what meters count is the machine's in any case.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with = "all_cpus", value_parser = super::record::task)]
    pid: Vec<u32>,

    /// Print the energy of each interval of so many milliseconds while the program runs, instead of the sums at the end.
    #[arg(short = 'I', long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..),
          conflicts_with_all = ["repeat", "warmup", "vs"])]
    interval_print: Option<u64>,

    /// How many runs to measure.
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,

    /// How many runs to make before those, without counting them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    warmup: u32,

    /// Compare with this command line; what needs a shell (quotes, pipes, variables) is given to sh.
    #[arg(long, value_name = "COMMAND")]
    vs: Option<String>,

    /// First measure the idle machine for so many seconds (5 if none are given), and subtract its power.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true,
          default_missing_value = "5", value_parser = seconds)]
    subtract_idle: Option<Duration>,

    /// Domains to add up to the total [default: all that no other one contains].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    domain: Vec<String>,

    /// Go on with the next run when one fails.
    #[arg(short, long)]
    ignore_failure: bool,

    /// Write JSON, with every run.
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Write CSV, one line for each figure.
    #[arg(long)]
    csv: bool,

    /// File to write to instead of stderr (- for stdout).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    meters: MeterArgs,

    /// Program to run, with its arguments.
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Runs the verb. The exit status is the program's own.
pub fn run(args: StatArgs) -> Outcome {
    let subject = match (args.all_cpus, args.pid.is_empty()) {
        (true, _) => Subject::Machine,
        (_, false) => Subject::Processes(args.pid),
        _ => Subject::Programs,
    };
    let mut commands = if args.command.is_empty() { Vec::new() } else { vec![args.command] };
    if commands.is_empty() {
        anyhow::ensure!(subject != Subject::Programs, "nothing to measure: give a command, -p PID or -a");
        anyhow::ensure!(
            args.repeat == 1 && args.warmup == 0 && args.vs.is_none(),
            "-r, --warmup and --vs need a command to run"
        );
    }
    commands.extend(args.vs.as_deref().map(command_line).transpose()?);
    if subject == Subject::Programs && Job::has_ranks(variable) {
        let rank =
            Job::of_environment(variable).rank.map_or_else(|| "a rank".into(), |rank| format!("rank {rank}"));
        warn(&[format!(
            "{rank} of a job: meters count the whole machine, its other ranks and its idle power too, so that joules of several ranks \
             are not to be added; `eprof record` tells ranks apart, and `eprof report --by rank` adds them up"
        )]);
    }
    let options = RunOptions {
        subject,
        commands,
        repeats: args.repeat as usize,
        warmups: args.warmup as usize,
        meters: args.meters.options(),
        domains: args.domain,
        idle: args.subtract_idle,
        ignore_failure: args.ignore_failure,
        interval: args.interval_print.map(Duration::from_millis),
    };
    let mut slices =
        Slices { json: args.json, csv: args.csv, output: args.output.as_deref(), text: String::new() };
    let Finished { measurements, exit_status } = match measure(&options, &mut slices) {
        Ok(finished) => finished,
        Err(RunError::Launch(error)) => {
            say(&error);
            return Ok(ExitCode::from(error.exit_status()));
        }
        Err(error) => return Err(error.into()),
    };
    let text = match (args.json, args.csv) {
        _ if options.interval.is_some() => slices.text,
        (true, _) => stat::json(&measurements)?,
        (_, true) => stat::csv(&measurements)?,
        _ => stat::text(&measurements),
    };
    match args.output {
        Some(path) => write_to(Some(&path), |out| out.write_all(text.as_bytes()))?,
        // If nobody listens any more, the program's exit status still counts.
        None => drop(io::stderr().write_all(on_stderr(&text).as_bytes())),
    }
    // JSON has them already.
    if !args.json || options.interval.is_some() {
        warn(&measurements.warnings);
    }
    Ok(ExitCode::from(exit_status))
}

/// Makes the runs; of several, a terminal shows which it is.
fn measure(options: &RunOptions, slices: &mut Slices<'_>) -> Result<Finished, RunError> {
    let line = ProgressLine::new(options.interval.is_some(), !options.commands.is_empty());
    let start = Instant::now();
    let finished = runs::measure(
        options,
        &mut |domains, slice| slices.show(domains, slice),
        &mut |BeginningRun { number, of }| {
            if of > 1 {
                line.show(format_args!(
                    "run {number} of {of}, {:.1} s so far",
                    start.elapsed().as_secs_f64()
                ));
            }
        },
    );
    line.clear();
    finished
}

/// Figures that are shown while they are measured.
struct Slices<'a> {
    json: bool,
    csv: bool,
    output: Option<&'a Path>,
    /// What is to be written at the end: into a file, which is there whole or not at all.
    text: String,
}

impl Slices<'_> {
    fn show(&mut self, domains: &[MeasuredDomain], slice: &Slice) {
        let is_first = slice.begins_the_run();
        let heading = match (self.json, self.csv) {
            _ if !is_first => String::new(),
            (true, _) => String::new(),
            (_, true) => Slice::csv_heading(),
            _ => Slice::text_heading(),
        };
        let lines = match (self.json, self.csv) {
            (true, _) => slice.json(domains),
            (_, true) => slice.csv(domains),
            _ => slice.text(domains),
        };
        let text = heading + &lines;
        // Should nobody listen any more, the program still ends as it likes.
        match self.output {
            None => drop(io::stderr().write_all(on_stderr(&text).as_bytes())),
            Some(path) if path == Path::new("-") => drop(io::stdout().write_all(text.as_bytes())),
            Some(_) => self.text += &text,
        }
    }
}

/// The words of a command line, or a shell with it if it has more than words.
fn command_line(text: &str) -> anyhow::Result<Vec<OsString>> {
    const PLAIN: &str = "+-_./:,=@%";
    anyhow::ensure!(!text.trim().is_empty(), "--vs: the command line is empty");
    if text.chars().all(|c| c.is_alphanumeric() || c == ' ' || PLAIN.contains(c)) {
        return Ok(text.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect());
    }
    Ok(vec!["sh".into(), "-c".into(), text.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_only_where_it_is_needed() {
        assert_eq!(command_line("./app  --new=1").expect("words"), ["./app", "--new=1"]);
        assert_eq!(command_line("a | b").expect("a pipe"), ["sh", "-c", "a | b"]);
        assert_eq!(command_line("echo 'a b'").expect("quotes"), ["sh", "-c", "echo 'a b'"]);
        assert!(command_line("  ").is_err());
    }
}

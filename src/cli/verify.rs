//! `eprof verify`: how wrong is eprof on this machine?

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use eprof::power_model::folder::ModelFolder;
use eprof::process::privileges;
use eprof::verify::{self, Bench, Commands, Progress, Stage, Task, VerifyOptions};

mod show;

use super::Outcome;
use super::letters;
use super::meters::MeterArgs;
use super::model::{folder_for_new, folders};
use super::output::{say, write_text_to, write_to};
use super::record::seconds;
use super::stage_bar::StageBar;
use super::tune::GUARD_VERB;

const EXAMPLES: &str = "Examples:
  eprof verify --dry-run           what would be run, and what is missing
  sudo eprof verify                two minutes: run, record, compare, and keep the result for reports
  eprof verify --time 600          the same with less noise
  eprof verify --format csv        a line for each kernel and arrangement
  eprof verify --recordings kept   keep the recordings, to look at them with `eprof report`

Let nothing else run meanwhile. What is true of a kernel is its watts alone, above the idle machine, times the CPU time
that it takes among others. After `eprof calibrate`, verify again.";

/// How wrong is eprof on this machine? Run kernels alone, so that the meter says what each takes; then in turns and
/// side by side, recorded, and compare.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Print what would be run, and run nothing.
    #[arg(long)]
    dry_run: bool,

    /// About how long it may take.
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    time: Duration,

    /// How the result is written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not keep the result for reports to quote.
    #[arg(long)]
    no_keep: bool,

    /// Folder in which the recordings are left.
    #[arg(long, value_name = "FOLDER")]
    recordings: Option<PathBuf>,

    /// Each worker writes the name of its kernel's like in `eprof calibrate` into this file first, and `default` at its end.
    #[arg(long, value_name = "FILE")]
    announce: Option<PathBuf>,

    #[command(flatten)]
    meters: MeterArgs,

    /// No progress.
    #[arg(short, long)]
    quiet: bool,

    /// Do this task and nothing else: this is the process that is measured.
    #[arg(long, value_name = "JSON", hide = true)]
    work: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
}

impl VerifyArgs {
    /// Whether this is the process that is measured, which opens nothing.
    pub fn is_worker(&self) -> bool {
        self.work.is_some()
    }
}

/// Runs the verb.
pub fn run(args: VerifyArgs) -> Outcome {
    if let Some(task) = &args.work {
        let task: Task = serde_json::from_str(task).context("not a task of eprof verify")?;
        verify::work(&task)?;
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(args.time >= Duration::from_secs(5), "--time must be 5 seconds or more");
    let record = [vec![OsString::from("record"), "--quiet".into()], args.meters.arguments()].concat();
    let identity = eprof::machine::cpuinfo::CpuIdentity::read(&eprof::machine::Roots::default()).identity;
    let stored_model = folders().find(&identity).unwrap_or_else(|error| {
        say(format_args!("warning: the stored power model is not used: {error}"));
        None
    });
    let mut bench = Bench::new(VerifyOptions {
        meters: args.meters.options(),
        time: args.time,
        announce: args.announce,
        recordings: args.recordings,
        stored_model,
        commands: Commands {
            program: std::env::current_exe().context("cannot find the path of this program")?,
            record,
            work: vec!["verify".into(), "--work".into()],
            guard: &[GUARD_VERB],
        },
    })?;
    // All that needs them is open; what is run of eprof itself has its own.
    privileges::drop_unless_root()?;
    if args.dry_run {
        show::plan(&mut letters::stdout(), &bench)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Two minutes later it would be too late to say that there is no place for it.
    let folder: Option<ModelFolder> = if args.no_keep { None } else { Some(folder_for_new()?) };
    let mut bar = StageBar::new(args.quiet);
    let found = bench.run(&mut bar)?;
    drop(bar);
    let kept = folder.map(|folder| verify::save(&folder, &found)).transpose()?;
    let path = args.output.as_deref();
    match args.format {
        Format::Table => write_text_to(path, |out| show::table(out, &found)),
        Format::Csv => write_to(path, |out| show::csv(out, &found)),
        Format::Json => write_to(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &found).map_err(io::Error::from)?;
            writeln!(out)
        }),
    }?;
    if let Some(kept) = kept.filter(|_| !args.quiet) {
        say(format_args!("kept for reports in {}", kept.display()));
    }
    Ok(ExitCode::SUCCESS)
}

impl Progress for StageBar {
    fn begins(&mut self, stage: Stage, done: usize, expected: usize) {
        let text = match stage {
            Stage::Idle => "nothing runs".to_owned(),
            Stage::Alone(kernel) => format!("{kernel} alone: {}", kernel.description()),
            Stage::Recorded(arrangement) => format!("recorded: {arrangement}"),
        };
        self.show(done, expected, text);
    }
}

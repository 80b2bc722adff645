//! `eprof doctor`: what this machine offers to an energy profiler, what is used, and what is missing.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use eprof::machine::Roots;
use eprof::meter::{MeterOptions, discover};

use super::Outcome;
use super::letters;

mod diagnosis;
mod event_probe;
mod text;
mod watch;

use diagnosis::Verdict;

const EXAMPLES: &str = "\
Examples:
  eprof doctor                        what is there, what is used, what is missing
  eprof doctor --watch 5              read the meters for five seconds
  eprof doctor --json | jq .gaps      for programs
  eprof doctor --root ./other         a machine of which ./other/sys and ./other/proc are copies

Exit status: 0 if energy can be measured and programs can be sampled, 1 if energy can only be
estimated, 2 if programs cannot be sampled at all.";

/// Say what this machine offers: events, energy meters, rights, and how to get what is missing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,

    /// Also read the chosen meters for so many seconds, and print joules and watts.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    watch: Option<Duration>,

    /// Describe the machine whose sys, proc and dev are copied to this folder; nothing is opened.
    #[arg(long, value_name = "FOLDER", conflicts_with = "watch")]
    root: Option<PathBuf>,
}

/// How long counters are watched here: ten times as long as before a recording, to tell apart sources
/// that disagree.
const WATCH: Duration = Duration::from_millis(250);

pub fn run(args: DoctorArgs) -> Outcome {
    let roots = args.root.as_deref().map_or_else(Roots::default, Roots::under);
    let mut energy = discover(&roots, &MeterOptions { watch: WATCH, ..MeterOptions::default() })?;
    let mut diagnosis = diagnosis::diagnose(&roots, &energy)?;
    if let Some(duration) = args.watch {
        diagnosis.watched = Some(watch::watch(&mut energy.meters, duration)?);
    }
    let mut out = letters::stdout_for(!args.json);
    if args.json {
        serde_json::to_writer_pretty(&mut out, &diagnosis)?;
        writeln!(out)?;
    } else {
        text::write(&mut out, &diagnosis)?;
    }
    Ok(match diagnosis.verdict {
        Verdict::Measured => ExitCode::SUCCESS,
        Verdict::Estimated => ExitCode::from(1),
        Verdict::Nothing => ExitCode::from(2),
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("'{text}' is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

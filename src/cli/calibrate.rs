//! `eprof calibrate`: fit a power model to this machine and keep it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use clap::Args;
use eprof::calibrate::{self, Bench, CalibrateOptions, Calibration, Progress, Step, Visits};
use eprof::hardware::MachineInfo;
use eprof::power_model::model::ModelEvent;
use eprof::power_model::stored::{STORED_FORMAT, StoredModel};
use eprof::units::Joules;

use super::Outcome;
use super::letters;
use super::meters::MeterArgs;
use super::model::{folder_for_new, print_model};
use super::output::write_file;
use super::record::seconds;
use super::stage_bar::StageBar;

const EXAMPLES: &str = "Examples:
  eprof calibrate --dry-run     what would be run, and what is missing
  sudo eprof calibrate          measure, print and keep the model of this machine
  eprof model show stored       look at it again

Let nothing else run meanwhile. Recordings take the kept model from then on: root's, in /var/lib/eprof/models, those of all
users; another user's, in ~/.config/eprof/models, that user's.";

/// Learn what events cost on this machine: run kernels of known character, read meters and counters, fit
/// a power model and keep it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CalibrateArgs {
    /// Print what would be run, and run nothing.
    #[arg(long)]
    dry_run: bool,

    /// Stop after about this time, however well the powers are known.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    time_limit: Duration,

    /// How long each kernel is measured at a time.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    visit: Duration,

    /// Standard error of the mean powers, in percent, at which to stop.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.2)]
    precision: f64,

    /// Most events in the model [default: as many as are counted at once].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    max_events: Option<u8>,

    /// Each worker writes its kernel's name into this file first.
    #[arg(long, value_name = "FILE")]
    announce: Option<PathBuf>,

    /// Write the model to this file instead of keeping it for recordings.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    meters: MeterArgs,

    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the verb.
pub fn run(args: CalibrateArgs) -> Outcome {
    ensure!(args.precision > 0.0, "--precision must be more than 0 %");
    let mut bench = Bench::new(CalibrateOptions {
        meters: args.meters.options(),
        announce: args.announce,
        visit: args.visit.max(Duration::from_millis(50)),
        precision: args.precision / 100.0,
        limit: args.time_limit,
    })?;
    if args.dry_run {
        print_plan(&mut letters::stdout(), &bench)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Half an hour later it would be too late to say that there is no place for it.
    if args.output.is_none() {
        folder_for_new()?;
    }
    let mut bar = StageBar::new(args.quiet);
    let visits = bench.run(&mut bar)?;
    drop(bar);
    let events: Vec<ModelEvent> = bench.events.iter().map(model_event).collect();
    let most = args.max_events.map_or(events.len(), usize::from);
    let calibration = calibrate::fit(&events, most, &visits.observed)?;
    let mut out = letters::stdout();
    print_outcome(&mut out, &calibration, &visits, args.precision)?;
    let stored = stored(&bench.machine, calibration);
    let path = match args.output {
        Some(path) => {
            let text = stored.to_json()?;
            write_file(&path, text)?;
            path
        }
        None => folder_for_new()?.save(&stored)?,
    };
    writeln!(out, "\nmodel of {} written to {}", stored.cpu_identity, path.display())?;
    Ok(ExitCode::SUCCESS)
}

fn model_event(event: &eprof::machine::ModelEvent) -> ModelEvent {
    ModelEvent {
        role: Some(event.role),
        name: event.spec.name.clone(),
        encoding: event.spec.encoding(),
        core_kind: event.core_kind(),
    }
}

fn stored(machine: &MachineInfo, calibration: Calibration) -> StoredModel {
    StoredModel {
        format: STORED_FORMAT,
        eprof_version: env!("CARGO_PKG_VERSION").to_owned(),
        cpu_identity: machine.cpu_identity.clone(),
        cpu_model: machine.cpu_model.clone(),
        created_unix: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        model: calibration.model,
    }
}

fn print_plan(out: &mut impl Write, bench: &Bench) -> io::Result<()> {
    writeln!(out, "{} ({})", bench.machine.cpu_identity, bench.machine.cpu_model)?;
    writeln!(out, "\nevents")?;
    for event in &bench.events {
        writeln!(out, "  {:<9} {} ({})", event.role, event.spec.name, event.spec.encoding())?;
    }
    bench.notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))?;
    writeln!(out, "\nenergy domains")?;
    if bench.domains().next().is_none() {
        writeln!(out, "  none is measured")?;
    }
    for domain in bench.domains() {
        writeln!(out, "  {} ({})", domain.name, domain.source)?;
    }
    let plan = &bench.plan;
    writeln!(
        out,
        "\n{} steps, {:.1} s each; a round takes {:.0} s, and at least three are made",
        plan.steps.len(),
        (plan.warm_up + plan.visit).as_secs_f64(),
        plan.round().as_secs_f64()
    )?;
    for step in &plan.steps {
        writeln!(out, "  {}", describe(step))?;
    }
    if !bench.obstacles.is_empty() {
        writeln!(out, "\nthis machine cannot be calibrated")?;
        bench.obstacles.iter().try_for_each(|obstacle| writeln!(out, "  {obstacle}"))?;
    }
    Ok(())
}

/// `l2      a stream in the second cache, 128 kB each, on CPUs 0-3`
fn describe(step: &Step) -> String {
    let mut text = format!("{:<7} {}", step.kernel, step.kernel.description());
    if let Some(bytes) = step.kernel.working_set(&step.sets) {
        text += &format!(", {} kB each", bytes / 1024);
    }
    if !step.cpus.is_empty() {
        let word = if step.cpus.len() == 1 { "CPU" } else { "CPUs" };
        text += &format!(", on {word} {}", eprof::machine::cpu_list::format(&step.cpus));
    }
    text
}

fn print_outcome(
    out: &mut impl Write,
    calibration: &Calibration,
    visits: &Visits,
    wanted: f64,
) -> io::Result<()> {
    // A sample a hundredth of a joule, as recordings take them.
    print_model(out, &calibration.model, Joules::from_joules(0.01))?;
    for event in &calibration.left_out {
        writeln!(out, "{} ({}) adds nothing to these events", event.name, event.role_name())?;
    }
    let reached = 100.0 * visits.precision;
    writeln!(out, "\n{} rounds; mean powers are known to {reached:.2} % (standard error)", visits.rounds)?;
    if visits.disturbed > 0 {
        writeln!(
            out,
            "{} visits are left out: their power was far from that of the others of the same kernel",
            visits.disturbed
        )?;
    }
    if reached > wanted {
        writeln!(
            out,
            "that is more than the {wanted} % wanted: something else ran, or the clock changed; --time-limit \
             allows more rounds"
        )?;
    }
    Ok(())
}

impl Progress for StageBar {
    fn begins(&mut self, step: &Step, done: usize, expected: usize) {
        self.show(done, expected, describe(step));
    }
}

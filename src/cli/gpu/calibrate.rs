//! `eprof gpu calibrate`: what kind of sensor wrote this trace?

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use eprof::gpu::infer::{self, Calibration, ReferenceFit, ShapeFit};
use eprof::gpu::refresh::{self, RefreshPeriod};
use eprof::gpu::sensor::SensorModel;

use super::inputs::{Inputs, TraceArgs, describe};
use crate::cli::Outcome;

/// Find out a power sensor's refresh period, kind, time constant or window, and the active idle level.
///
/// Needs a trace in which a load is switched on or off. A meter's log beside it (--meter) also gives
/// the board's gain and offset; the switching times (--steps) tell windows shorter than a refresh.
#[derive(Args)]
#[command(after_help = "Examples:
  nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 5 >trace.csv
  eprof gpu calibrate trace.csv --save sensor.json
  eprof gpu correct trace.csv --sensor sensor.json")]
pub struct CalibrateArgs {
    #[command(flatten)]
    input: TraceArgs,
    /// Write the sensor's description for `eprof gpu correct --sensor`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &CalibrateArgs) -> Outcome {
    let inputs = args.input.read()?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}: {} readings", inputs.title, inputs.trace.readings().len())?;
    if inputs.skipped > 0 {
        writeln!(out, "{} rows without a reading were skipped", inputs.skipped)?;
    }
    if let Some(period) = refresh::infer_period(&inputs.trace) {
        writeln!(out, "{}", period_line(&period))?;
    }
    for note in &inputs.notes {
        writeln!(out, "note: {note}")?;
    }
    let model = if inputs.meter.is_some() || !inputs.switches.is_empty() {
        from_reference(&inputs, &mut out)?
    } else {
        let found = infer::calibrate(&inputs.trace).context("the trace does not tell the sensor's kind")?;
        print(&found, &mut out)?;
        found.model
    };
    if let Some(path) = &args.save {
        let json = serde_json::to_string_pretty(&model)?;
        std::fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn period_line(period: &RefreshPeriod) -> String {
    let bound = if period.resolved { "" } else { "at most " };
    format!(
        "refresh period   {bound}{} (from {} changes, polled every {})",
        period.period, period.changes, period.poll_interval
    )
}

fn print(found: &Calibration, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "sensor           {}", describe(&found.model))?;
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let line = |name: &str, fit: &ShapeFit| {
        let each: Vec<String> = fit.by_step.iter().take(6).map(ToString::to_string).collect();
        format!(
            "  as {name:<12} {:>9}  residual {:>8} of the step  (by step: {})",
            fit.length.to_string(),
            percent(fit.residual),
            each.join(", ")
        )
    };
    writeln!(out, "load steps       {}", found.steps)?;
    writeln!(out, "{}", line("exponential", &found.rc))?;
    writeln!(out, "{}", line("window", &found.boxcar))?;
    if let Some(idle) = found.model.active_idle {
        writeln!(out, "active idle      {idle}")?;
    }
    found.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

fn from_reference(inputs: &Inputs, out: &mut impl Write) -> anyhow::Result<SensorModel> {
    let fit = match &inputs.meter {
        Some(meter) => infer::fit_to_reference(&inputs.trace, meter, true).context("with the meter's log")?,
        None => {
            let span = inputs.trace.span().context("an empty trace")?;
            let load = infer::load_curve(&inputs.switches, span);
            infer::fit_to_reference(&inputs.trace, &load, false).context("with the switching times")?
        }
    };
    let ReferenceFit { mut model, plausible, delay, residual, residual_share, .. } = fit;
    // The kind and active idle may show in the trace itself.
    if let Ok(own) = infer::calibrate(&inputs.trace) {
        model.active_idle = own.model.active_idle.map(|level| model.scaled(level));
    }
    writeln!(out, "sensor           {}", describe(&model))?;
    writeln!(out, "  {} to {} fit as well", plausible.0, plausible.1)?;
    writeln!(out, "residual         {residual} ({:.2} % of the range)", residual_share * 100.0)?;
    writeln!(out, "delay of answers {:.1} ms (differences of the clocks included)", delay * 1e3)?;
    if let Some(idle) = model.active_idle {
        writeln!(out, "active idle      {idle}")?;
    }
    Ok(model)
}

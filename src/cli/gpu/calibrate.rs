//! `eprof gpu calibrate`: what kind of sensor wrote this trace?

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use eprof::gpu::correct::correct;
use eprof::gpu::infer::{self, Calibration, Exponential, ReferenceFit, ShapeFit, Shapes};
use eprof::gpu::instructions::catalogue::INSTRUCTIONS;
use eprof::gpu::known_steps::KnownSteps;
use eprof::gpu::phases::IdleLevel;
use eprof::gpu::refresh::{self, RefreshPeriod};
use eprof::gpu::sensor::{Delay, SensorKind, SensorModel};
use eprof::measure::gpu::{Cuda, LoadOptions, switched_load};
use eprof::units::Nanoseconds;

use super::super::letters;
use super::inputs::{Inputs, TraceArgs, describe};
use super::outlier;
use crate::cli::Outcome;
use crate::cli::new_file::keep_inputs_from;
use crate::cli::output::write_file;

/// Find out a power sensor's refresh period, kind, time constant or window, and the active idle level.
///
/// Needs a trace in which a load is switched on or off, or makes one itself (--load) through NVIDIA's driver. A meter's log beside it (--meter) also gives
/// the board's gain and offset; the switching times (--steps) tell windows shorter than a refresh.
#[derive(Args)]
#[command(after_help = "Examples:
  nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 5 >trace.csv
  eprof gpu calibrate trace.csv --save sensor.json
  eprof gpu calibrate --load --save sensor.json
  eprof gpu correct trace.csv --sensor sensor.json")]
pub struct CalibrateArgs {
    #[command(flatten)]
    input: TraceArgs,
    /// Load a GPU in bursts and read its power, instead of reading a trace.
    #[arg(long, conflicts_with_all = ["trace", "meter", "steps", "target"])]
    load: bool,
    /// Seconds of each burst of --load; the rest between bursts is as long.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    burst: f64,
    /// Number of bursts of --load: readings near their ends tell the length of a window.
    #[arg(long, value_name = "COUNT", default_value_t = 24, value_parser = clap::value_parser!(u32).range(2..=1000))]
    bursts: u32,
    /// CUDA's driver library, if not libcuda.so.1.
    #[arg(long, value_name = "FILE")]
    cuda_lib: Option<PathBuf>,
    /// NVIDIA's management library, if not libnvidia-ml.so.1.
    #[arg(long, value_name = "FILE")]
    nvml_lib: Option<PathBuf>,
    /// Write the sensor's description for `eprof gpu correct --sensor`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: &CalibrateArgs) -> Outcome {
    keep_inputs_from("--save", args.save.as_deref(), &args.input.files())?;
    let inputs = if args.load { args.loaded()? } else { args.input.read()? };
    if inputs.is_counter {
        bail!("{}: an energy counter has no lag, so there is nothing to calibrate", inputs.title);
    }
    let mut text = Vec::new();
    let found = args.find(&inputs, &mut text);
    // Before anything is printed: whoever reads that may leave (`| head`), and the file is to be there all the same.
    let saved = match (&found, &args.save) {
        (Ok(model), Some(path)) => {
            writeln!(text, "written to {}", path.display())?;
            write_file(path, serde_json::to_string_pretty(model)? + "\n")
        }
        _ => Ok(()),
    };
    if saved.is_ok() {
        letters::stdout().write_all(&text)?;
    }
    saved.and(found).map(|_| ExitCode::SUCCESS)
}

impl CalibrateArgs {
    /// The sensor, and what is to be said of it.
    fn find(&self, inputs: &Inputs, out: &mut impl Write) -> anyhow::Result<SensorModel> {
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
        let by_shape = infer::calibrate(&inputs.trace)
            .map_err(|error| outlier::with_far_above(error.into(), &inputs.trace))
            .context("the trace does not tell the sensor's kind");
        // A capacitor shows in the steps themselves; of windows the switching times tell more.
        let is_rc = |found: &Calibration| matches!(found.model.kind, SensorKind::Rc { .. });
        let has_reference = inputs.meter.is_some() || !inputs.switches.is_empty();
        let found = match by_shape {
            Ok(found) if self.load && is_rc(&found) => found,
            _ if has_reference => return inputs.unless_apart(from_reference(inputs, out)),
            found => found?,
        };
        print(&found, out)?;
        Ok(found.model)
    }

    /// The trace of a load of eprof's own.
    fn loaded(&self) -> anyhow::Result<Inputs> {
        /// Keeps all parts of a multiprocessor busy, and every GPU has it.
        const LOAD: &str = "fma.rn.f32";
        if !(0.1..=60.0).contains(&self.burst) {
            bail!("--burst must lie between 0.1 and 60 seconds");
        }
        let number = match self.input.gpu.as_deref() {
            None => 0,
            Some(gpu) => gpu
                .strip_prefix("gpu-")
                .unwrap_or(gpu)
                .parse()
                .with_context(|| format!("--gpu {gpu}: --load takes a number"))?,
        };
        let instruction = INSTRUCTIONS.iter().find(|instruction| instruction.name == LOAD);
        let cuda = Cuda::open(self.cuda_lib.as_deref(), number)?;
        let burst = Duration::from_secs_f64(self.burst);
        let options = LoadOptions {
            on: burst,
            off: burst,
            bursts: self.bursts,
            interval: Duration::from_millis(2),
            nvml_library: self.nvml_lib.clone(),
        };
        let found = switched_load(&cuda, instruction.context("no such instruction")?, &options)?;
        let title = format!("{}, {} bursts of {LOAD}", cuda.name, self.bursts);
        Ok(Inputs { title, trace: found.power, switches: found.switches, ..Inputs::default() })
    }
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
    if let Some(Exponential { plausible, residual, stretches, .. }) = found.exponential {
        let range = plausible.map(Nanoseconds::from_secs_f64);
        writeln!(out, "  {} to {} fit as well", range[0], range[1])?;
        writeln!(
            out,
            "levels of power  {stretches}, which charge such a capacitor to all readings but for {} of the range",
            percent(residual)
        )?;
    }
    // Steps around which the sensor never settled only mislead.
    if let (Some(Shapes { rc, boxcar, steps, .. }), None) = (&found.shapes, found.exponential) {
        writeln!(out, "load steps       {steps} with steady readings on both sides")?;
        writeln!(out, "{}", line("exponential", rc))?;
        writeln!(out, "{}", line("window", boxcar))?;
    }
    print_idle(&found.model, out)?;
    found.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

fn from_reference(inputs: &Inputs, out: &mut impl Write) -> anyhow::Result<SensorModel> {
    let fit = match &inputs.meter {
        Some(meter) => infer::fit_to_reference(&inputs.trace, meter, true).context("with the meter's log")?,
        None => {
            let span = inputs.trace.span().context("an empty trace")?;
            let load = infer::known_load_curve(&inputs.switches, span);
            infer::fit_to_reference(&inputs.trace, &load, false).context("with the switching times")?
        }
    };
    let ReferenceFit { mut model, plausible, delay, residual, residual_share, .. } = fit;
    // Active idle may show in the trace itself, and shows best between known switches.
    if let Ok(own) = infer::calibrate(&inputs.trace) {
        let error = own.model.active_idle_error * model.gain.abs();
        let level = |level| IdleLevel { power: model.scaled(level), std_error: error };
        model = model.with_active_idle(own.model.active_idle.map(level));
    }
    if let Some(known) = by_switches(inputs, &model) {
        if known.idle.is_some() {
            model = model.with_active_idle(known.idle);
        }
        // A meter's clock is another than that of later switching times.
        model.delay = inputs.meter.is_none().then(|| {
            // Of a window that is longer or shorter than thought the middle is known, and the end elsewhere by half of that.
            let length = match model.kind {
                SensorKind::Boxcar { window } => window.as_secs_f64(),
                SensorKind::Rc { .. } | SensorKind::Counter => 0.0,
            };
            let Delay { seconds, std_error } = known.delay();
            Delay { seconds, std_error: std_error.hypot(model.length_error * length / 2.0) }
        });
    }
    writeln!(out, "sensor           {}", describe(&model))?;
    writeln!(out, "  {} to {} fit as well", plausible.0, plausible.1)?;
    writeln!(out, "residual         {residual} ({:.2} % of the range)", residual_share * 100.0)?;
    print_delay(&model, delay, out)?;
    print_idle(&model, out)?;
    Ok(model)
}

/// The delay that is stored, where one is. With the window it was fitted to two levels of power; by itself it is then fitted to
/// three, as rests between loads may draw more than before them, and loads in step with the sensor have several that fit.
fn print_delay(model: &SensorModel, with_window: f64, out: &mut impl Write) -> io::Result<()> {
    const SAME: f64 = 1e-3;
    const CLOCKS: &str = "(differences of the clocks included)";
    let Some(Delay { seconds, std_error }) = model.delay else {
        return writeln!(out, "delay of answers {:.1} ms {CLOCKS}", with_window * 1e3);
    };
    writeln!(out, "delay of answers {:.1} ± {:.1} ms {CLOCKS}", seconds * 1e3, std_error * 1e3)?;
    if (with_window - seconds).abs() > SAME.max(3.0 * std_error) {
        writeln!(
            out,
            "note: the window was found with a delay of {:.1} ms, and the levels of load and rest with the one above, which is \
             stored: several fit these switching times, and bursts by them are the less certain. Loads of other lengths would \
             tell them apart",
            with_window * 1e3
        )?;
    }
    Ok(())
}

fn print_idle(model: &SensorModel, out: &mut impl Write) -> io::Result<()> {
    match model.active_idle {
        Some(idle) => writeln!(out, "active idle      {idle} ± {}", model.active_idle_error),
        None => Ok(()),
    }
}

fn by_switches(inputs: &Inputs, model: &SensorModel) -> Option<KnownSteps> {
    let is_window = !matches!(model.kind, SensorKind::Rc { .. });
    let corrected =
        correct(&inputs.trace, model).ok().filter(|_| is_window && !inputs.switches.is_empty())?;
    KnownSteps::of(&inputs.trace, &corrected, &inputs.switches, model).ok()
}

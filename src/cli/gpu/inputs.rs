//! Traces, sensors, meters and switching times as given on the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use eprof::gpu::curve::PowerCurve;
use eprof::gpu::infer;
use eprof::gpu::named_trace::NamedTrace;
use eprof::gpu::sensor::{SensorKind, SensorModel};
use eprof::gpu::trace::PowerTrace;
use eprof::gpu::trace_csv;
use eprof::units::{Nanoseconds, Timestamp};

use super::outlier;
use super::recorded::{self, RecordedGpu, is_recording};
use super::time_range::TimeRange;
use crate::cli::table_file;

/// A trace and what was recorded beside it.
#[derive(Args)]
pub struct TraceArgs {
    /// Power trace: CSV of `nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 10`, or any
    /// table with a time and a power column (`-` is standard input); or a recording of `eprof record`.
    pub trace: Option<PathBuf>,
    /// Power column to use, or NAME:UNIT; without it INSTANT is preferred to plain and average power.
    #[arg(long, value_name = "COLUMN", aliases = ["column", "power"])]
    pub target: Option<String>,
    /// GPU to use, as the trace names it (index, uuid or bus id; gpu-0 in a recording).
    #[arg(long)]
    pub gpu: Option<String>,
    /// Log of a power meter on the same card; its power columns are added up.
    #[arg(long, value_name = "CSV")]
    pub meter: Option<PathBuf>,
    /// Times at which the load was switched on and off in turn, one a line.
    #[arg(long, value_name = "FILE")]
    pub steps: Option<PathBuf>,
}

/// What [`TraceArgs`] name, read.
#[derive(Default)]
pub struct Inputs {
    /// Column and GPU that were chosen.
    pub title: String,
    /// The trace, on the meter's clock if there is one.
    pub trace: PowerTrace,
    /// Rows without a reading.
    pub skipped: usize,
    /// The meter.
    pub meter: Option<PowerCurve>,
    /// The switching times.
    pub switches: Vec<Timestamp>,
    /// The power is that of an energy counter: there is no lag to correct.
    pub is_counter: bool,
    /// What was done to make them fit.
    pub notes: Vec<String>,
    /// No switching time lies within the trace as it is: what to say if they do not fit for all that was done.
    pub apart: Option<String>,
}

impl TraceArgs {
    /// The files that are read.
    pub fn files(&self) -> Vec<&Path> {
        [&self.trace, &self.meter, &self.steps].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Reads all files.
    pub fn read(&self) -> anyhow::Result<Inputs> {
        let path = self.trace.as_ref().context("name a power trace or a recording")?;
        let mut inputs = if is_recording(path) { self.recorded(path)? } else { self.table(path)? };
        if let Some(path) = &self.meter {
            let meter = trace_csv::parse_sum(&table_file::read(path)?)
                .with_context(|| format!("{} is no meter's log", path.display()))?;
            inputs.meter = Some(meter.as_polled());
        }
        if let Some(path) = &self.steps {
            inputs.switches = trace_csv::parse_times(&table_file::read(path)?);
            if inputs.switches.len() < 2 {
                bail!("{} holds fewer than two times", path.display());
            }
        }
        inputs.align()?;
        Ok(inputs)
    }

    fn table(&self, path: &Path) -> anyhow::Result<Inputs> {
        let text = table_file::read(path)?;
        let traces = match &self.target {
            Some(column) => trace_csv::parse_column(&text, column),
            None => trace_csv::parse(&text),
        };
        let traces = traces.with_context(|| format!("{} is no power trace", path.display()))?;
        let (NamedTrace { column, gpu, trace, skipped, mut notes, .. }, others) = self.choose(traces)?;
        if !others.is_empty() {
            notes.push(format!(
                "power is read from `{column}`, and the table has {} besides: --target chooses another column",
                others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", ")
            ));
        }
        let title = gpu.map_or_else(|| column.clone(), |gpu| format!("GPU {gpu} {column}"));
        Ok(Inputs { title, trace, skipped, notes, ..Inputs::default() })
    }

    fn recorded(&self, path: &Path) -> anyhow::Result<Inputs> {
        let mut gpus = recorded::gpus(path)?;
        let names: Vec<String> = gpus.iter().map(|gpu| gpu.name.clone()).collect();
        match &self.gpu {
            Some(wanted) => {
                gpus.retain(|gpu| gpu.name == *wanted || gpu.name.strip_prefix("gpu-") == Some(wanted));
                if gpus.is_empty() {
                    bail!("no GPU `{wanted}` in the recording; it has: {}", names.join(", "));
                }
            }
            None if gpus.len() > 1 => {
                bail!("the recording holds several GPUs: choose one with --gpu ({})", names.join(", "));
            }
            None => {}
        }
        let RecordedGpu { name, source, trace, is_counter } = gpus.swap_remove(0);
        Ok(Inputs { title: format!("{name}, {source}"), trace, is_counter, ..Inputs::default() })
    }

    /// One column of one GPU, and the names of the other columns of its power.
    fn choose(&self, mut traces: Vec<NamedTrace>) -> anyhow::Result<(NamedTrace, Vec<String>)> {
        if let Some(gpu) = &self.gpu {
            let known = gpus_of(&traces);
            if known.is_empty() {
                bail!(
                    "the trace has no column that names GPUs (index, uuid or bus id), so --gpu {gpu} chooses none: leave it out if \
                     all rows are of one GPU, or record with --query-gpu=timestamp,index,power.draw"
                );
            }
            traces.retain(|trace| trace.gpu.as_ref() == Some(gpu) || trace.other_names.contains(gpu));
            if traces.is_empty() {
                bail!("no GPU `{gpu}` in the trace; it has: {}", known.join(", "));
            }
        } else if traces.iter().any(|trace| trace.gpu != traces[0].gpu) {
            bail!("the trace holds several GPUs: choose one with --gpu ({})", gpus_of(&traces).join(", "));
        }
        let preferred = |trace: &NamedTrace| match trace.column.as_str() {
            column if column.contains("instant") => 0,
            column if column.contains("average") => 2,
            _ => 1,
        };
        let chosen = (0..traces.len()).min_by_key(|at| preferred(&traces[*at]));
        let chosen = traces.remove(chosen.context("the trace holds no power column")?);
        Ok((chosen, traces.into_iter().map(|trace| trace.column).collect()))
    }
}

/// Each GPU once, which may have several columns, by all its names.
fn gpus_of(traces: &[NamedTrace]) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for trace in traces {
        let Some(gpu) = &trace.gpu else { continue };
        let others = trace.other_names.join(", ");
        let gpu = if others.is_empty() { gpu.clone() } else { format!("{gpu} ({others})") };
        if !known.contains(&gpu) {
            known.push(gpu);
        }
    }
    known
}

impl Inputs {
    /// What kind of sensor wrote the trace, by the trace itself, and by the switching times where they are known.
    pub fn sensor(&mut self) -> anyhow::Result<SensorModel> {
        let found = infer::calibrate(&self.trace);
        let is_rc = |model: &SensorModel| matches!(model.kind, SensorKind::Rc { .. });
        let by_switches = || {
            let load = infer::known_load_curve(&self.switches, self.trace.span()?);
            let fit = infer::fit_to_reference(&self.trace, &load, false).ok()?;
            Some(within_a_refresh(fit.model, fit.refresh.period))
        };
        if !self.switches.is_empty()
            && !found.as_ref().is_ok_and(|found| is_rc(&found.model))
            && let Some(model) = by_switches().filter(|model| !is_rc(model))
        {
            self.notes.push(format!(
                "the switching times tell the sensor: {}. A log of slower loads would tell it better (eprof gpu calibrate \
                 --steps)",
                describe(&model)
            ));
            return Ok(model);
        }
        let found =
            found.map_err(|error| outlier::with_far_above(error.into(), &self.trace)).with_context(|| {
                let or_steps = if self.switches.is_empty() {
                    ", or give the times at which the load was switched (--steps)"
                } else {
                    ""
                };
                format!("the trace does not tell the sensor's kind; name it with --sensor{or_steps}")
            })?;
        self.notes.extend(found.notes);
        Ok(found.model)
    }

    /// Moves the trace onto the clock of the meter or of the switching times.
    fn align(&mut self) -> anyhow::Result<()> {
        let steps = || Some((*self.switches.first()?, *self.switches.last()?));
        let of_meter = self.meter.as_ref().and_then(PowerCurve::span);
        let Some(span) = of_meter.or_else(steps) else { return Ok(()) };
        let Some(own) = self.trace.span() else { return Ok(()) };
        let what = if of_meter.is_some() { "time of the meter's log" } else { "time of --steps" };
        let are_apart = span.1 < own.0 || own.1 < span.0;
        let apart = are_apart.then(|| {
            format!(
                "no {what} lies within the trace, which is of {}: they are of {}",
                TimeRange(own),
                TimeRange(span)
            )
        });
        let aligned = infer::aligned(&self.trace, span);
        let (trace, alignment) = match apart.clone() {
            Some(apart) => aligned.context(apart)?,
            None => aligned?,
        };
        self.trace = trace;
        if alignment.quarters != 0 {
            let hours = format!("{:+.2} h", alignment.quarters as f64 / 4.0);
            self.apart = apart.map(|apart| {
                format!("{apart}. Its times were moved by {hours}: if that is no time zone, those are of another run")
            });
            self.notes.push(format!(
                "the trace's time stamps were moved by {hours} to meet the reference: a time zone"
            ));
        }
        Ok(())
    }

    /// Why nothing can be said of the trace by the switching times: where it had to be moved onto them, that comes first.
    pub fn unless_apart<T>(&self, found: anyhow::Result<T>) -> anyhow::Result<T> {
        match &self.apart {
            Some(apart) if !self.switches.is_empty() => found.with_context(|| apart.clone()),
            _ => found,
        }
    }
}

/// What the very trace that is corrected tells of a window: fast loads are explained by several, and any that is shorter than
/// a refresh is as good as another then.
fn within_a_refresh(model: SensorModel, refresh: Nanoseconds) -> SensorModel {
    /// Standard errors of the logarithm: from an eighth of a refresh to two.
    const SHORT: f64 = 0.7;
    const LONG: f64 = 0.5;
    match model.kind {
        SensorKind::Boxcar { window } if window <= refresh => {
            let half = Nanoseconds::from_nanos(refresh.as_nanos() / 2);
            SensorModel { kind: SensorKind::Boxcar { window: half }, length_error: SHORT, ..model }
        }
        _ => SensorModel { length_error: model.length_error.max(LONG), ..model },
    }
}

/// A sensor, and the file that describes it, if one does.
#[derive(Debug, Clone)]
pub struct NamedSensor {
    pub model: SensorModel,
    pub file: Option<PathBuf>,
}

impl From<SensorModel> for NamedSensor {
    fn from(model: SensorModel) -> Self {
        Self { model, file: None }
    }
}

/// A sensor as `k20`, `rc:53ms`, `boxcar:1s`, `counter`, or the file that `calibrate --save` wrote.
pub fn parse_sensor(text: &str) -> Result<NamedSensor, String> {
    let length =
        |text: &str| parse_span(text).ok_or_else(|| format!("`{text}` is no time such as 53ms or 0.8333s"));
    match text.split_once(':') {
        _ if text == "k20" => Ok(SensorModel::k20().into()),
        _ if text == "counter" => Ok(SensorModel::new(SensorKind::Counter).into()),
        Some(("rc", constant)) => {
            Ok(SensorModel::new(SensorKind::Rc { time_constant: length(constant)? }).into())
        }
        Some(("boxcar", window)) => {
            Ok(SensorModel::new(SensorKind::Boxcar { window: length(window)? }).into())
        }
        _ => {
            let json = std::fs::read_to_string(text)
                .map_err(|error| format!("{error}; expected k20, rc:TIME, boxcar:TIME, counter or a file"))?;
            let model: SensorModel =
                serde_json::from_str(&json).map_err(|error| format!("no sensor in the file: {error}"))?;
            check(&model)?;
            Ok(NamedSensor { model, file: Some(text.into()) })
        }
    }
}

/// Figures by which nothing can be corrected: files may be written by hand.
fn check(model: &SensorModel) -> Result<(), String> {
    let length = match model.kind {
        SensorKind::Rc { time_constant: length } | SensorKind::Boxcar { window: length } => Some(length),
        SensorKind::Counter => None,
    };
    if [length, model.refresh].contains(&Some(Nanoseconds::ZERO)) {
        return Err("no sensor in the file: its window, time constant or refresh is 0".to_owned());
    }
    if model.gain <= 0.0 {
        return Err(format!("no sensor in the file: its gain is {}, and must be above 0", model.gain));
    }
    let errors = [model.length_error, model.gain_error, model.offset_error.as_watts()];
    let errors = errors.into_iter().chain(model.delay.map(|delay| delay.std_error));
    if errors.into_iter().any(|error| error < 0.0) {
        return Err("no sensor in the file: one of its errors is less than 0".to_owned());
    }
    Ok(())
}

/// A number of watts.
pub fn parse_watts(text: &str) -> Result<f64, String> {
    let watts = text.parse().ok().filter(|watts: &f64| watts.is_finite());
    watts.ok_or_else(|| format!("`{text}` is no number of watts, as 80 or 62.5"))
}

fn parse_span(text: &str) -> Option<Nanoseconds> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    let (number, unit) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))?;
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (seconds > 0.0 && seconds < 3600.0).then(|| Nanoseconds::from_secs_f64(seconds))
}

/// One line about a sensor.
pub fn describe(model: &SensorModel) -> String {
    let kind = match model.kind {
        SensorKind::Rc { time_constant } => format!("rc, time constant {time_constant}"),
        SensorKind::Boxcar { window } => format!("boxcar, window {window}"),
        SensorKind::Counter => "counter".to_owned(),
    };
    if model.gain == 1.0 && model.offset.as_watts() == 0.0 {
        kind
    } else {
        format!("{kind}; true power = {:.4} x reported {:+.2} W", model.gain, model.offset.as_watts())
    }
}

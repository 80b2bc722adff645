//! `eprof gpu correct`: what the GPU really drew.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use eprof::gpu::correct::{Corrected, correct, correct_as_published};
use eprof::gpu::curve::PowerCurve;
use eprof::gpu::known_steps::{KnownSteps, Shown};
use eprof::gpu::phases::{self, IdleLevel, Phase};
use eprof::gpu::sensor::{SensorKind, SensorModel, UNMEASURED_GAIN};
use eprof::gpu::trace::PowerReading;
use eprof::gpu::wrong_readings::WrongReadings;
use eprof::numerics::quantiles;
use eprof::units::{Joules, Nanoseconds, Timestamp, Watts};
use serde::Serialize;

use super::super::letters;
use super::super::new_file::keep_inputs_from;
use super::super::output;
use super::doubt::{AboveIdle, Doubt, Knowing};
use super::inputs::{Inputs, NamedSensor, TraceArgs, describe, parse_sensor, parse_watts};
use super::rest_level;
use super::switch_notes;
use crate::cli::Outcome;

/// Correct the power trace of a lagging GPU sensor and print the energy of each burst of load.
///
/// Without --sensor its kind is inferred from the trace, as `eprof gpu calibrate` does. Of a recording
/// the readings are taken as the sensor gave them; where it has an energy counter, that is right as it is.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof gpu correct trace.csv
  eprof gpu correct eprof.data --gpu gpu-0
  eprof gpu correct k20.csv --sensor k20
  eprof gpu correct trace.csv --sensor sensor.json --steps switched.csv --meter meter.csv --output corrected.csv")]
pub struct CorrectArgs {
    #[command(flatten)]
    input: TraceArgs,
    /// The sensor: k20, rc:TIME, boxcar:TIME, counter, or a file written by `eprof gpu calibrate --save`.
    #[arg(long, value_parser = parse_sensor)]
    sensor: Option<NamedSensor>,
    /// Use the published formula (central difference, straight lines) for an rc sensor.
    #[arg(long)]
    as_published: bool,
    /// Power above which the GPU counts as working, in watts; found from the active idle level otherwise.
    #[arg(long, value_name = "WATTS", value_parser = parse_watts)]
    threshold: Option<f64>,
    /// Write the corrected power over time as CSV.
    #[arg(long, value_name = "CSV")]
    output: Option<PathBuf>,
    /// How to print the bursts.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Runs the verb.
pub fn run(args: &CorrectArgs) -> Outcome {
    let sensor = args.sensor.as_ref().and_then(|sensor| sensor.file.as_deref());
    let files: Vec<&Path> = args.input.files().into_iter().chain(sensor).collect();
    keep_inputs_from("--output", args.output.as_deref(), &files)?;
    let mut inputs = args.input.read()?;
    let model = match &args.sensor {
        Some(sensor) => sensor.model,
        None if inputs.is_counter => SensorModel::new(SensorKind::Counter),
        None => {
            let found = inputs.sensor();
            inputs.unless_apart(found)?
        }
    };
    let corrected = correct(&inputs.trace, &model)?;
    let curve = match (model.kind, args.as_published) {
        (SensorKind::Rc { time_constant }, true) => correct_as_published(&inputs.trace, time_constant)?,
        _ => corrected.curve(),
    };
    let (report, curve) = Report::new(args, &inputs, &model, &corrected, curve)?;
    // Before anything is printed: whoever reads that may leave (`| head`), and the file is to be there all the same.
    if let Some(path) = &args.output {
        write_curve(path, &curve)?;
    }
    let mut out = letters::stdout_for(args.format == Format::Table);
    match args.format {
        Format::Table => report.print(&mut out)?,
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What a GPU's power at rest differs by from one day to another, as a share of it: with its warmth.
const WARMTH: f64 = 0.015;

impl CorrectArgs {
    /// By the times of switching, but for bursts that show in a capacitor's own course.
    fn known(
        &self,
        inputs: &Inputs,
        model: &SensorModel,
        corrected: &Corrected,
    ) -> anyhow::Result<Option<KnownSteps>> {
        let switches = &inputs.switches;
        let is_slow = |pair: &&[Timestamp]| pair[1].since(pair[0]) >= corrected.resolution;
        let slow = switches.chunks_exact(2).filter(is_slow).count();
        let shows_itself = matches!(model.kind, SensorKind::Rc { .. }) && slow * 2 >= switches.len() / 2;
        if shows_itself && let Some(unexplained) = corrected.unexplained.filter(|_| !switches.is_empty()) {
            bail!("correcting as {}: {unexplained}. {ANOTHER_SENSOR}", describe(model));
        }
        if switches.is_empty() || self.as_published || shows_itself {
            return Ok(None);
        }
        let known = KnownSteps::of(&inputs.trace, corrected, switches, model);
        let as_named = self.sensor.as_ref().map(|_| format!(" as {}", describe(model)));
        let how = format!("correcting by the switching times{}", as_named.unwrap_or_default());
        known.map(Some).context(how)
    }
}

/// What repairs a correction by a sensor that does not follow the readings.
const ANOTHER_SENSOR: &str =
    "Leave --sensor out, or name the sensor of this card, which `eprof gpu calibrate` finds";

/// Standard errors by which joules above idle must lie below nothing.
const BELOW_NOTHING: f64 = 2.0;

#[derive(Serialize)]
struct Report {
    trace: String,
    sensor: String,
    refresh_s: f64,
    noise_w: f64,
    gain_error: f64,
    active_idle_w: Option<f64>,
    threshold_w: Option<f64>,
    bursts: Vec<Burst>,
    total: Burst,
    notes: Vec<String>,
}

/// One line of the table; seconds from the trace's start.
#[derive(Serialize)]
struct Burst {
    start_s: f64,
    end_s: f64,
    raw_j: f64,
    corrected_j: f64,
    /// One standard error, of the readings, of the sensor's lag, of what it does not see, of the board's gain.
    stderr_j: f64,
    above_idle_j: Option<f64>,
    /// One standard error of that, with the idle level's own.
    above_idle_stderr_j: Option<f64>,
    mean_w: f64,
    meter_j: Option<f64>,
}

impl Report {
    fn new(
        args: &CorrectArgs,
        inputs: &Inputs,
        model: &SensorModel,
        corrected: &Corrected,
        curve: PowerCurve,
    ) -> anyhow::Result<(Self, PowerCurve)> {
        let (first, last) = curve.span().context("nothing is left of the trace")?;
        let (levels, noise) = (&corrected.levels, corrected.level_noise);
        let known = inputs.unless_apart(args.known(inputs, model, corrected))?;
        let found_idle = match &known {
            Some(known) => known.idle,
            None => phases::idle_level(levels, noise, corrected.settling()),
        };
        // Another trace's level is that of another day; of a trace whose switching is known its own is better.
        let of_model = model.active_idle.map(|power| {
            let now = noise.as_watts().hypot(WARMTH * power.as_watts());
            IdleLevel { power, std_error: Watts::from_watts(now.hypot(model.active_idle_error.as_watts())) }
        });
        let (idle, contradiction) = match &known {
            Some(_) => (found_idle.or(of_model), None),
            None => rest_level::chosen(of_model, found_idle, corrected),
        };
        let threshold = args
            .threshold
            .map(Watts::from_watts)
            .or_else(|| idle.map(|idle| phases::work_threshold(levels, idle.power, noise)))
            .or_else(|| phases::middle_level(levels, noise));
        let mut notes = inputs.notes.clone();
        notes.extend(contradiction);
        let spans: Vec<(Timestamp, Timestamp)> = if inputs.switches.is_empty() {
            let found = threshold.map_or_else(Vec::new, |level| phases::above(levels, level));
            found.iter().map(|Phase { start, end, .. }| (*start, *end)).collect()
        } else {
            inputs.switches.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        };
        let knowing = match &known {
            Some(known) => Knowing::Steps(known),
            None if inputs.switches.is_empty() => Knowing::Nothing,
            None => Knowing::WhenItSwitches,
        };
        let curve = known.as_ref().map_or(curve, |known| known.curve.clone());
        notes.extend(switch_notes::of(&curve, &inputs.switches));
        notes.extend(corrected.wrong.iter().flat_map(|wrong| wrong_notes(wrong, inputs)));
        notes.extend(corrected.unexplained.map(|unexplained| format!("{unexplained}. {ANOTHER_SENSOR}")));
        let doubt = Doubt { corrected, curve: &curve, idle, gain_error: model.gain_error, knowing };
        let raw = inputs.trace.as_polled();
        let of = |start: Timestamp, end: Timestamp| {
            let energy = curve.energy(start, end);
            let duration = end.since(start);
            let above = doubt.above_idle(start, end);
            let burst = Burst {
                start_s: start.since(first).as_secs_f64(),
                end_s: end.since(first).as_secs_f64(),
                raw_j: raw.energy(start, end).as_joules(),
                corrected_j: energy.as_joules(),
                stderr_j: doubt.of_energy(start, end),
                above_idle_j: idle.map(|idle| (energy - idle.power * duration).as_joules()),
                above_idle_stderr_j: above.map(AboveIdle::std_error),
                mean_w: (energy / duration).as_watts(),
                meter_j: inputs.meter.as_ref().map(|meter| meter.energy(start, end).as_joules()),
            };
            (burst, above)
        };
        let shown = known.as_ref().map(|known| known.shown);
        notes.extend(shown.and_then(|shown| shown_note(shown, spans.len(), corrected.resolution)));
        let (bursts, total) = if matches!(shown, Some(Shown::Together | Shown::Mixed { .. })) {
            let (from, to) = (inputs.switches[0], inputs.switches[inputs.switches.len() - 1]);
            (Vec::new(), of(from, to).0)
        } else {
            let is_short =
                |(start, end): &&(Timestamp, Timestamp)| !knowing.resolves(corrected, end.since(*start));
            let short = spans.iter().filter(is_short).count();
            if short > 0 {
                notes.push(short_bursts(short, spans.len(), knowing, corrected.resolution));
            }
            // Beside a meter, only the time that both cover can be compared.
            let (from, to) = inputs.meter.as_ref().and_then(PowerCurve::span).unwrap_or((first, last));
            let (mut whole, _) = of(first.max(from), last.min(to));
            let (bursts, above): (Vec<Burst>, Vec<Option<AboveIdle>>) =
                spans.into_iter().map(|(start, end)| of(start, end)).unzip();
            // What all loads drew above idle: a GPU that nobody uses is below it, and that is no load's gain.
            let above: Option<Vec<AboveIdle>> = above.into_iter().collect();
            if let Some(above) = above.filter(|above| !above.is_empty()) {
                whole.above_idle_j = bursts.iter().map(|burst| burst.above_idle_j).sum();
                whole.above_idle_stderr_j = Some(AboveIdle::sum(&above).std_error());
            }
            (bursts, whole)
        };
        if idle.is_none() && corrected.settling() > Nanoseconds::ZERO {
            notes.push(format!(
                "nothing is told above idle: no load is followed by a rest of more than {}, in which this sensor would \
                 settle at the idle level",
                corrected.settling()
            ));
        }
        let below = bursts.iter().filter(|burst| burst.is_below_idle()).count();
        if below > 0 || total.is_below_idle() {
            let what = if below > 0 {
                format!("{below} of {} bursts", bursts.len())
            } else {
                "all bursts together".to_owned()
            };
            notes.push(format!(
                "{what} drew less than the idle level, by more than twice their ±, which no load does: the sensor is another one, the \
                 times of --steps are of another run, or the idle level is not of this card. `eprof gpu calibrate` finds \
                 sensor and level"
            ));
        }
        notes.extend(unseen_notes(corrected, &curve, &total, knowing, (first, last)));
        if model.gain_error >= UNMEASURED_GAIN {
            notes.push(format!(
                "±: one standard error, with what no trace tells: this board's gain, {:.0} % more or less of all rows \
                 alike; a meter's log (eprof gpu calibrate --meter) tells it",
                model.gain_error * 100.0
            ));
        }
        let report = Self {
            trace: inputs.title.clone(),
            sensor: describe(model),
            refresh_s: corrected.refresh.period.as_secs_f64(),
            noise_w: corrected.noise.as_watts(),
            gain_error: model.gain_error,
            active_idle_w: idle.map(|idle| idle.power.as_watts()),
            threshold_w: threshold.map(Watts::as_watts),
            bursts,
            total,
            notes,
        };
        Ok((report, curve))
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}: {}, refresh every {:.1} ms", self.trace, self.sensor, self.refresh_s * 1e3)?;
        if let (Some(idle), Some(threshold)) = (self.active_idle_w, self.threshold_w) {
            writeln!(out, "active idle {idle:.1} W; work is what lies above {threshold:.1} W")?;
        }
        let meter = self.total.meter_j.is_some();
        write!(
            out,
            "\n{:>9} {:>9} {:>9} {:>11} {:>11} {:>8} {:>11} {:>8}",
            "start s", "length s", "mean W", "raw J", "corrected J", "±", "above idle", "±"
        )?;
        writeln!(
            out,
            "{}",
            if meter { format!(" {:>11} {:>8} {:>8}", "meter J", "raw", "corr.") } else { String::new() }
        )?;
        for burst in &self.bursts {
            burst.print(out, &format!("{:>9.3}", burst.start_s))?;
        }
        self.total.print(out, &format!("{:>9}", "all"))?;
        self.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
    }
}

impl Burst {
    /// Whether it drew less than the GPU at rest, beyond chance.
    fn is_below_idle(&self) -> bool {
        let known = self.above_idle_j.zip(self.above_idle_stderr_j);
        known.is_some_and(|(joules, error)| joules < -BELOW_NOTHING * error)
    }

    fn print(&self, out: &mut impl Write, first: &str) -> io::Result<()> {
        let number =
            |joules: Option<f64>| joules.map_or_else(|| "-".to_owned(), |joules| format!("{joules:.2}"));
        let (above, error) = (number(self.above_idle_j), number(self.above_idle_stderr_j));
        write!(
            out,
            "{first} {:>9.3} {:>9.1} {:>11.2} {:>11.2} {:>8.2} {above:>11} {error:>8}",
            self.end_s - self.start_s,
            self.mean_w,
            self.raw_j,
            self.corrected_j,
            self.stderr_j
        )?;
        if let Some(meter) = self.meter_j {
            let error = |joules: f64| (joules / meter - 1.0) * 100.0;
            write!(out, " {meter:>11.2} {:>+6.1} % {:>+6.1} %", error(self.raw_j), error(self.corrected_j))?;
        }
        writeln!(out)
    }
}

/// Readings that the sensor cannot have shown.
fn wrong_notes(wrong: &WrongReadings, inputs: &Inputs) -> Vec<String> {
    let out = named(&wrong.left_out, inputs).map(|what| {
        format!(
            "left out: {what}: a sensor with this lag cannot show that between its other readings, whatever the GPU draws"
        )
    });
    let kept = named(&wrong.kept, inputs).map(|what| {
        format!(
            "{what} cannot be of a sensor with this lag, whatever the GPU drew, nor can what lies around them. {ANOTHER_SENSOR}"
        )
    });
    out.into_iter().chain(kept).collect()
}

/// How many readings, what they showed, and where the first is; `None` of none.
fn named(readings: &[PowerReading], inputs: &Inputs) -> Option<String> {
    let start = inputs.trace.span()?.0;
    let at = readings.first()?.time.since(start).as_secs_f64();
    let (low, high) = quantiles::range(readings.iter().map(|reading| reading.power.as_watts()));
    Some(match readings.len() {
        1 => format!("one reading ({low:.1} W, {at:.3} s after the first)"),
        count => {
            format!(
                "{count} readings ({low:.1} to {high:.1} W, the first of them {at:.3} s after the trace's first)"
            )
        }
    })
}

/// How bursts between known switches were told apart, or were not.
fn shown_note(shown: Shown, bursts: usize, resolution: Nanoseconds) -> Option<String> {
    Some(match shown {
        Shown::OneByOne { without: 0 } => return None,
        Shown::OneByOne { without } => format!(
            "{without} of {bursts} bursts have no reading of their own: what the others drew stands in for them, and ± has what \
             those differ by"
        ),
        Shown::Together => format!(
            "the load switches faster than the sensor resolves ({resolution}): two levels of power were fitted to all \
             readings together, and single bursts are their means"
        ),
        Shown::Mixed { is_as_read: false } => {
            format!("{MIXED}. Load and rests have their mean power in what is written")
        }
        Shown::Mixed { is_as_read: true } => format!(
            "{MIXED}, and what would be corrected is less than what is not known of it: nothing is corrected between the \
             first switch and the last, where load and rests have the mean of what was read"
        ),
    })
}

const MIXED: &str = "levels cannot be told apart: every reading stands for nearly the same share of the load, or it is not \
                     known for which";

/// What is wrong with bursts shorter than the sensor resolves.
fn short_bursts(short: usize, all: usize, knowing: Knowing<'_>, resolution: Nanoseconds) -> String {
    let what = match knowing {
        Knowing::Nothing => {
            "what they drew above idle is right; their length is not, and with it their power and the idle power in \
             their energy, which ± has"
        }
        Knowing::WhenItSwitches | Knowing::Steps(_) => {
            "part of their energy is smeared over the time around them, and ± has about as much"
        }
    };
    format!(
        "{short} of {all} bursts are shorter than {resolution}, which this sensor does not resolve: {what}"
    )
}

/// What the sensor or its reader missed.
fn unseen_notes(
    corrected: &Corrected,
    curve: &PowerCurve,
    total: &Burst,
    knowing: Knowing<'_>,
    (first, last): (Timestamp, Timestamp),
) -> Vec<String> {
    let mut notes = Vec::new();
    let unseen = &corrected.unseen;
    let gaps = unseen.gaps(first, last);
    if let Some(longest) = gaps.iter().map(|gap| gap.duration()).max() {
        let (count, all): (usize, Nanoseconds) = (gaps.len(), gaps.iter().map(|gap| gap.duration()).sum());
        notes.push(format!(
            "{count} gaps without readings, {all} in all, the longest {longest}: what the GPU drew in them is not known. The \
             power before and after stands in for it, and ± has {:.0} J for anything else",
            unseen.error_of_gaps(curve, first, last).as_joules()
        ));
    }
    let between = unseen.error_between_windows(first, last).as_joules();
    // Half of the time and more, whatever was seen in the rest.
    const MOSTLY: f64 = 0.5;
    /// Shares of the time that differ by less are one.
    const SAME: f64 = 0.02;
    let (covered, least) = (corrected.observed, 1.0 - unseen.share());
    let covers = match covered - least < SAME {
        true => format!("covers {:.0}", 100.0 * covered),
        false => format!("may cover as little as {:.0}", 100.0 * least),
    };
    if matches!(knowing, Knowing::Nothing) && (unseen.share() > MOSTLY || between > 0.01 * total.corrected_j)
    {
        notes.push(format!(
            "the sensor's window {covers} % of the time, and ± has {between:.0} J for the rest: a load that \
             repeats in step with the refresh is seen wrongly and looks as one that holds still. Switching times \
             (--steps), a meter's log or the GPU's energy counter would tell"
        ));
    }
    notes
}

fn write_curve(path: &Path, curve: &PowerCurve) -> anyhow::Result<()> {
    output::write_to(Some(path), |file| curve_csv(file, curve))
}

fn curve_csv(file: &mut dyn Write, curve: &PowerCurve) -> io::Result<()> {
    writeln!(file, "time_ns,power_w,energy_j")?;
    let Some((first, _)) = curve.span() else { return Ok(()) };
    for (time, power) in curve.knots() {
        let energy: Joules = curve.energy(first, *time);
        writeln!(file, "{},{:.4},{:.6}", time.as_nanos(), power.as_watts(), energy.as_joules())?;
    }
    Ok(())
}

//! `eprof model predict`: watts of rows whose power nobody measured, with intervals.

mod args;
mod rows;
mod stored;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::ensure;
use eprof::power_model::dataset::Dataset;
use eprof::power_model::error::ModelError;
use eprof::power_model::estimator::{Estimated, Estimator, EstimatorOptions};
use eprof::power_model::fit::{Fit, FitOptions};
use eprof::power_model::prediction::{LeftOutErrors, LeftOutKind};
use eprof::power_model::select::best_events;
use serde_json::json;

use super::super::Outcome;
use super::super::letters;
use super::super::output::say;
use super::observe::describe;
use args::{Format, Kind};
use rows::{Predicted, print_csv, print_rows};

pub use args::PredictArgs;

/// Either kind of model.
enum Model {
    Estimator(Estimator),
    Lines(Fit, Vec<usize>),
}

impl Model {
    fn train(data: &Dataset, args: &PredictArgs) -> Result<Self, ModelError> {
        match args.kind {
            Kind::Estimator => Estimator::train(data, &EstimatorOptions::default()).map(Self::Estimator),
            Kind::Lines => {
                let options = FitOptions::default();
                let columns = best_events(data, args.max_events, &options)?;
                Ok(Self::Lines(Fit::new(&data.select(&columns), &options)?, columns))
            }
        }
    }

    fn estimate(&self, rates: &[f64]) -> Estimated {
        match self {
            Self::Estimator(estimator) => estimator.estimate(rates),
            Self::Lines(fit, columns) => {
                let rates: Vec<f64> = columns.iter().map(|&column| rates[column]).collect();
                Estimated { watts: fit.watts(&rates), is_limited: false }
            }
        }
    }

    fn watts(&self, rates: &[f64]) -> f64 {
        self.estimate(rates).watts
    }

    /// What was put in the place of what the model says of these rows; `None` where that is nothing.
    fn note_limited(&self, rows: &[Predicted]) -> Option<String> {
        let Self::Estimator(estimator) = self else { return None };
        let limited: Vec<&Predicted> = rows.iter().filter(|row| row.is_limited).collect();
        let first = limited.first()?;
        let (low, high) = estimator.limits();
        Some(format!(
            "{} of {} rows are limited, the first of workload `{}`: the model says less than {low:.4} W, a twentieth of the least \
             power measured, or more than {high:.4} W, twice the most. No estimate lies beyond, and these are not to be relied on: \
             measure such a workload, or look at its rates",
            limited.len(),
            rows.len(),
            first.of.workload
        ))
    }

    fn describe(&self) -> String {
        match self {
            Self::Estimator(estimator) => estimator
                .recipes()
                .map(|recipe| recipe.to_string())
                .collect::<Vec<_>>()
                .join(", averaged with "),
            Self::Lines(fit, _) => format!("straight lines of {}", fit.columns.join(", ")),
        }
    }
}

/// Runs the verb.
pub fn run(args: &PredictArgs) -> Outcome {
    ensure!(
        !args.observe.is_by_frequency(),
        "--frequency makes a model for each clock; pick one with --where, of which all rows then are"
    );
    if let Some(name) = &args.model {
        return stored::run(args, name);
    }
    let (observed, rates) = args.observe.observe_with_rates(&args.rates)?;
    let data = &observed.data;
    let model = Model::train(data, args)?;
    let errors = LeftOutErrors::new(data, |data| Model::train(data, args), Model::watts)?;
    let limits: Vec<(f64, f64)> = (0..data.columns().len())
        .map(|column| eprof::numerics::quantiles::range(data.column(column)))
        .collect();
    let predicted: Vec<Predicted> = rates
        .rows
        .iter()
        .map(|row| {
            let Estimated { watts, is_limited } = model.estimate(&row.rates);
            let is_beyond = row.rates.iter().zip(&limits).any(|(rate, (low, high))| {
                let reach = 0.05 * (high - low);
                *rate < low - reach || *rate > high + reach
            });
            let interval = errors.interval(watts, args.level / 100.0);
            let interval = interval.filter(|_| !is_of_another(&row.workload, data, &errors, args));
            Predicted { of: row, watts, interval, is_beyond: Some(is_beyond), is_limited }
        })
        .collect();
    let mut out = letters::stdout_for(args.format == Format::Text);
    let limited = model.note_limited(&predicted);
    let notes: Vec<&String> = observed.notes.iter().chain(&rates.notes).chain(&limited).collect();
    match args.format {
        Format::Text => {
            for note in &notes {
                writeln!(out, "note: {note}")?;
            }
            writeln!(out, "{}", describe(data))?;
            writeln!(out, "model: {}", model.describe())?;
            print_text(&mut out, &predicted, data, &errors, args.level)?;
        }
        Format::Csv => {
            for note in of_one_workload(data, &errors).iter().chain(&limited) {
                say(format_args!("note: {note}"));
            }
            print_csv(&mut out, &predicted)?;
        }
        Format::Json => {
            let notes: Vec<String> =
                notes.into_iter().cloned().chain(of_one_workload(data, &errors)).collect();
            let of_row = |row: &Predicted| {
                let mut whole = rows::json(row);
                whole["beyond_the_data"] = row.is_beyond.into();
                whole
            };
            let rows: Vec<_> = predicted.iter().map(of_row).collect();
            let whole = json!({
                "data": describe(data), "notes": notes, "model": model.describe(),
                "level": args.level / 100.0, "left_out": errors.groups(),
                "left_out_are_workloads": errors.kind() == LeftOutKind::Workloads,
                "mean_error_left_out": errors.mean_error(), "rows": rows,
            });
            serde_json::to_writer_pretty(&mut out, &whole)?;
            writeln!(out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What intervals are worth that follow from parts of one workload.
fn of_one_workload(data: &Dataset, errors: &LeftOutErrors) -> Option<String> {
    let name = data.workloads().first()?;
    (errors.kind() == LeftOutKind::Spans).then(|| {
        format!(
            "all measurements are of one workload, `{name}`: intervals hold for more of the same and for nothing else. How \
             far off other programs are, only measurements of several tell (--group names the column that tells them apart)"
        )
    })
}

/// Nothing tells how far off this row is: its table says that it is of a workload of which nothing was measured, and
/// what was measured is of one only.
fn is_of_another(workload: &str, data: &Dataset, errors: &LeftOutErrors, args: &PredictArgs) -> bool {
    errors.kind() == LeftOutKind::Spans
        && args.observe.tells_workloads()
        && !data.workloads().iter().any(|known| known == workload)
}

fn print_text(
    out: &mut impl Write,
    predicted: &[Predicted],
    data: &Dataset,
    errors: &LeftOutErrors,
    level: f64,
) -> io::Result<()> {
    let what = match errors.kind() {
        LeftOutKind::Workloads => "workloads",
        LeftOutKind::Spans => "spans of the rows of the only workload",
    };
    writeln!(
        out,
        "mean error {:.2} % of {} {what} left out in turn; intervals of {level} % follow from these",
        100.0 * errors.mean_error(),
        errors.groups()
    )?;
    if let Some(note) = of_one_workload(data, errors) {
        writeln!(out, "note: {note}")?;
    }
    print_rows(out, predicted)
}

//! `eprof model predict`: watts of rows whose power nobody measured, with intervals.

mod stored;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use eprof::hardware::{DomainKind, Role};
use eprof::power_model::dataset::Dataset;
use eprof::power_model::error::ModelError;
use eprof::power_model::estimator::{Estimator, EstimatorOptions};
use eprof::power_model::fit::{Fit, FitOptions};
use eprof::power_model::prediction::{LeftOutErrors, LeftOutKind};
use eprof::power_model::select::best_events;
use serde_json::json;

use super::super::Outcome;
use super::super::table_options::level;
use super::fit::{domain, role};
use super::observe::{ObserveArgs, describe};

/// Estimate the power of rows that were not measured, with an interval around each.
///
/// The model learns from the measurements named first, as in `eprof model fit`, and is applied to the rows of
/// --rates, which have the same columns of events and need no power. Or it is one that was made before (--model), by
/// `eprof calibrate` or `eprof model fit`. How wide the intervals are follows from what the model says of workloads that
/// are left out when it learns.
#[derive(Args)]
#[command(after_help = "Examples:
  eprof model predict --target watts --group job runs.csv --rates new.csv
  eprof model predict --target watts --group job runs.csv --rates new.csv --format csv > watts.csv
  eprof model predict hpl.perf sleep.perf stream.perf --rates app.perf     # perf stat -a -I 100 -x,
  eprof model predict --model stored --rates app.perf     # by what `eprof calibrate` kept of this machine")]
pub struct PredictArgs {
    #[command(flatten)]
    observe: ObserveArgs,

    /// Table or log of perf stat with the rows to estimate; may be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    rates: Vec<PathBuf>,

    /// Estimate by this model instead of measurements: `stored` for this machine's, a preset's name, or a model file.
    /// Columns are found by the names and encodings of the model's events, or by what their names say.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["files", "kind", "max_events"])]
    model: Option<String>,

    /// With --model: what the power is of, package, cores or dram.
    #[arg(long, value_name = "KIND", default_value = "package", value_parser = domain, requires = "model")]
    domain: DomainKind,

    /// With --model: packages whose events the rates are sums of; each has the model's static power.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "model")]
    packages: u32,

    /// With --model: columns of events that their names do not tell: clk=COL,inst=COL,resource=COL,l2=COL,llc-miss=COL.
    #[arg(long, value_name = "ROLE=COL,...", value_delimiter = ',', value_parser = role, requires = "model")]
    roles: Vec<(Role, String)>,

    /// The model: what fits workloads left out best, or straight lines of at most --max-events events, as
    /// `eprof model fit` makes it.
    #[arg(long, value_enum, default_value = "estimator")]
    kind: Kind,

    /// Largest number of events of the straight-line model.
    #[arg(long, value_name = "N", default_value_t = 4)]
    max_events: usize,

    /// Probability, in percent, with which a measurement is to lie in its interval.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, value_parser = level)]
    level: f64,

    /// How the result is written.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Estimator,
    Lines,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Csv,
    Json,
}

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

    fn watts(&self, rates: &[f64]) -> f64 {
        match self {
            Self::Estimator(estimator) => estimator.watts(rates),
            Self::Lines(fit, columns) => {
                fit.watts(&columns.iter().map(|&column| rates[column]).collect::<Vec<_>>())
            }
        }
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

/// What is said of one row.
struct Predicted<'a> {
    workload: &'a str,
    watts: f64,
    interval: Option<(f64, f64)>,
    /// A rate lies beyond all that the model learnt from.
    is_beyond: bool,
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
            let watts = model.watts(&row.rates);
            let is_beyond = row.rates.iter().zip(&limits).any(|(rate, (low, high))| {
                let reach = 0.05 * (high - low);
                *rate < low - reach || *rate > high + reach
            });
            Predicted {
                workload: &row.workload,
                watts,
                interval: errors.interval(watts, args.level / 100.0),
                is_beyond,
            }
        })
        .collect();
    let mut out = io::stdout().lock();
    let notes: Vec<&String> = observed.notes.iter().chain(&rates.notes).collect();
    match args.format {
        Format::Text => {
            for note in &notes {
                writeln!(out, "note: {note}")?;
            }
            writeln!(out, "{}", describe(data))?;
            writeln!(out, "model: {}", model.describe())?;
            print_text(&mut out, &predicted, &errors, args.level)?;
        }
        Format::Csv => print_csv(&mut out, &predicted)?,
        Format::Json => {
            let rows: Vec<_> = predicted
                .iter()
                .map(|row| {
                    json!({
                        "workload": row.workload, "watts": row.watts,
                        "low": row.interval.map(|(low, _)| low), "high": row.interval.map(|(_, high)| high),
                        "beyond_the_data": row.is_beyond,
                    })
                })
                .collect();
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

fn print_text(
    out: &mut impl Write,
    predicted: &[Predicted],
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
    print_rows(out, predicted)
}

fn print_rows(out: &mut impl Write, predicted: &[Predicted]) -> io::Result<()> {
    writeln!(out, "\n{:>10} {:>10} {:>10}  workload", "watts", "low", "high")?;
    for row in predicted {
        let (low, high) = match row.interval {
            Some((low, high)) => (format!("{low:.2}"), format!("{high:.2}")),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let beyond = if row.is_beyond { "  (beyond the data)" } else { "" };
        writeln!(out, "{:>10.2} {low:>10} {high:>10}  {}{beyond}", row.watts, row.workload)?;
    }
    if predicted.iter().any(|row| row.is_beyond) {
        writeln!(
            out,
            "\nbeyond the data: an event is rarer or more frequent than in all that was measured, and no interval \
             follows from measurements for that"
        )?;
    }
    Ok(())
}

fn print_csv(out: &mut impl Write, predicted: &[Predicted]) -> io::Result<()> {
    writeln!(out, "workload,watts,low,high,beyond_the_data")?;
    for row in predicted {
        let (low, high) = match row.interval {
            Some((low, high)) => (format!("{low:.4}"), format!("{high:.4}")),
            None => (String::new(), String::new()),
        };
        let workload = row.workload.replace('"', "\"\"");
        writeln!(out, "\"{workload}\",{:.4},{low},{high},{}", row.watts, row.is_beyond)?;
    }
    Ok(())
}

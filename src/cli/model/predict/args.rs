//! The options of `eprof model predict`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use eprof::hardware::{DomainKind, Role};

use crate::cli::model::fit::{domain, most_events, role};
use crate::cli::model::observe::ObserveArgs;
use crate::cli::table_options::level;

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
    pub observe: ObserveArgs,

    /// Table or log of perf stat with the rows to estimate; may be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    pub rates: Vec<PathBuf>,

    /// Estimate by this model instead of measurements: `stored` for this machine's, a preset's name, or a model file.
    /// Columns are found by the names and encodings of the model's events, or by what their names say.
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["files", "kind", "max_events"])]
    pub model: Option<String>,

    /// With --model: what the power is of, package, cores or dram.
    #[arg(long, value_name = "KIND", default_value = "package", value_parser = domain, requires = "model")]
    pub domain: DomainKind,

    /// With --model: packages whose events the rates are sums of; each has the model's static power.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), requires = "model")]
    pub packages: u32,

    /// With --model: columns of events that their names do not tell: clk=COL,inst=COL,resource=COL,l2=COL,llc-miss=COL.
    #[arg(long, value_name = "ROLE=COL,...", value_delimiter = ',', value_parser = role, requires = "model")]
    pub roles: Vec<(Role, String)>,

    /// The model: what fits workloads left out best, or straight lines of at most --max-events events, as
    /// `eprof model fit` makes it.
    #[arg(long, value_enum, default_value = "estimator")]
    pub kind: Kind,

    /// Largest number of events of the straight-line model.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = most_events())]
    pub max_events: usize,

    /// Probability, in percent, with which a measurement is to lie in its interval.
    #[arg(long, value_name = "PERCENT", default_value_t = 95.0, value_parser = level)]
    pub level: f64,

    /// How the result is written.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// Which kind of model learns.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Estimator,
    Lines,
}

/// How the result is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Csv,
    Json,
}

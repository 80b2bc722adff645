//! What may be asked for.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};

use crate::dimension::Dimension;
use crate::filter::Filter;
use crate::when::When;

const EXAMPLES: &str = "\
Examples:
  eprof export ranks/ --format parquet -o energy      the tables, of all recordings of ranks/
  eprof fleet report energy                           joules by function, of all machines
  eprof fleet top energy --by node,rank               joules by node and rank
  eprof fleet report energy --since 2h --where 'job = 4711 and comm ~ ^worker'
  eprof fleet flamegraph energy -o fleet.svg --by node
  eprof fleet diff energy --old 'label:version = 1' --new 'label:version = 2'";

/// Asks the energy profiles of many machines.
#[derive(Parser)]
#[command(
    name = "eprof-fleet",
    bin_name = "eprof fleet",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = EXAMPLES
)]
pub struct Args {
    #[command(subcommand)]
    pub question: Question,
}

/// The questions.
#[derive(Subcommand)]
pub enum Question {
    /// Joules by function.
    Report(ReportArgs),
    /// Joules by node, job, rank, pod and so on.
    Top(TopArgs),
    /// What functions took before and after.
    Diff(DiffArgs),
    /// A picture of joules by call path.
    Flamegraph(FlamegraphArgs),
}

/// What is counted.
#[derive(Group)]
pub struct Selected {
    /// Only windows that start at this time or later: 2026-11-23, 2026-11-23T10:00:00Z, or 2h, 30m, 7d ago.
    #[arg(long, value_name = "TIME")]
    pub since: Option<When>,

    /// Only windows that start before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,

    /// Only samples of which this holds: COLUMN = VALUE, !=, ~ REGEX, !~, <, <=, >, >=, joined by `and`, `or` and parentheses.
    /// Columns are node, boot, job, step, rank, pod, cgroup, process, comm, event, method and label:KEY.
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<Filter>,

    /// Only joules of this energy domain [default: those of all domains that are not part of another].
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,

    /// Print the SQL that is asked, for other engines, and ask nothing.
    #[arg(long)]
    pub sql: bool,
}

/// How many rows, and how they are written.
#[derive(Clone, Copy, Group)]
pub struct Rows {
    /// Most rows; 0 for all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// How rows are written.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// All figures and the balance.
    Json,
    /// The rows.
    Csv,
}

/// `report`.
#[derive(Group)]
pub struct ReportArgs {
    /// The folder that recordings were exported to.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub selected: Selected,
    /// What tells rows apart beside the function.
    #[arg(long, value_name = "BY", value_delimiter = ',')]
    pub by: Vec<Dimension>,
    /// Sort by joules with all that a function called.
    #[arg(long)]
    pub total: bool,
    #[command(flatten)]
    pub rows: Rows,
}

/// `top`.
#[derive(Group)]
pub struct TopArgs {
    /// The folder that recordings were exported to.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub selected: Selected,
    /// What tells rows apart.
    #[arg(long, value_name = "BY", value_delimiter = ',', default_value = "node")]
    pub by: Vec<Dimension>,
    #[command(flatten)]
    pub rows: Rows,
}

/// `diff`.
#[derive(Group)]
pub struct DiffArgs {
    /// The folder that recordings were exported to.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Another folder, with the newer recordings.
    #[arg(value_name = "NEW_DIR")]
    pub newer: Option<PathBuf>,
    #[command(flatten)]
    pub selected: Selected,
    /// The older samples: a condition as of --where.
    #[arg(long, value_name = "CONDITION")]
    pub old: Option<Filter>,
    /// The newer samples.
    #[arg(long, value_name = "CONDITION")]
    pub new: Option<Filter>,
    /// Scale the older joules to the newer ones' sum: compare shares, not amounts.
    #[arg(long)]
    pub normalize: bool,
    #[command(flatten)]
    pub rows: Rows,
}

/// `flamegraph`.
#[derive(Group)]
pub struct FlamegraphArgs {
    /// The folder that recordings were exported to.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub selected: Selected,
    /// What stands before the outermost functions.
    #[arg(long, value_name = "BY", value_delimiter = ',')]
    pub by: Vec<Dimension>,
    /// File to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "fleet.svg")]
    pub output: PathBuf,
    /// A picture, or lines of stacks and microjoules.
    #[arg(long, value_enum, default_value_t = Picture::Svg)]
    pub format: Picture,
}

/// How call paths are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// A picture.
    Svg,
    /// Collapsed stacks in microjoules.
    Collapsed,
}

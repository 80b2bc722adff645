//! What may be asked for.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use eprof::analyze::MemoryLimit;

use crate::dimension::Dimension;
use crate::filter::Filter;
use crate::memory;
use crate::place::Place;
use crate::sources::Sources;
use crate::when::When;

const EXAMPLES: &str = "\
Examples:
  eprof export ranks/ --format parquet -o energy      the tables, of all recordings of ranks/
  eprof fleet report energy                           joules by function, of all machines
  eprof fleet top energy --by node,rank               joules by node and rank
  eprof fleet report energy --since 2h --where 'job = 4711 and comm ~ ^worker'
  eprof fleet flamegraph energy -o fleet.svg --by node
  eprof fleet diff energy --old 'label:version = 1' --new 'label:version = 2'
  eprof fleet report clickhouses://reader@db.example/energy --password-file ~/.eprof-password
  eprof fleet top sail://127.0.0.1:32010/srv/energy

Tables are in a folder (`eprof export --format parquet`, `eprof agent`), in ClickHouse
(`eprof push`), or in a lake that a server of Sail reads. Each answer is held against the balance of
what the meters counted, which is printed with it; what does not add up is an error.";

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

    /// Answers are never paged: taken as the other verbs take it.
    #[arg(long, global = true, hide = true)]
    pub no_pager: bool,
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
    /// Only windows that start at this time or later: 2026-11-23, 2026-11-23T10:00:00Z, or so long ago (7d, 2h, 30m).
    #[arg(long, value_name = "TIME")]
    pub since: Option<When>,

    /// Only windows that start before this time.
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,

    /// Only samples of which this holds: COLUMN = VALUE, !=, ~ REGEX, !~, <, <=, >, >=, joined by `and`, `or` and parentheses.
    /// Columns are node, boot, job, step, rank, pod, cgroup, process, comm, event, method and label:KEY. Values with spaces or
    /// signs stand in quotes, within which the same quote is doubled. Conditions on node, boot, job, step, rank, method and labels
    /// choose windows, and the balance is of these; those on the other columns choose samples in them, and leave it as it is.
    #[arg(long = "where", value_name = "CONDITION")]
    pub condition: Option<Filter>,

    /// Only joules of this energy domain [default: those of all domains that are not part of another].
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,

    /// Print the SQL that is asked, for other engines, and ask nothing.
    #[arg(long)]
    pub sql: bool,
}

impl Selected {
    /// What of a place is selected; `condition` is asked beside the selection's own.
    pub fn sources(&self, place: &Place, condition: Option<&Filter>) -> Sources {
        let mut sources = Sources::of(place);
        (sources.since, sources.until) = (self.since, self.until);
        sources.domain.clone_from(&self.domain);
        sources.filter = Filter::and(self.condition.clone(), condition.cloned());
        sources
    }
}

/// How a place is reached, and what asking it may take.
#[derive(Group)]
#[command(next_help_heading = "Engines")]
pub struct Reached {
    /// Memory that the embedded engine may take for its tables before it takes the disk, such as 512M or 2G [default: a
    /// quarter of what is free].
    #[arg(long, value_name = "SIZE", value_parser = memory::parse)]
    pub memory: Option<MemoryLimit>,

    /// File with the password for ClickHouse [default: the variable EPROF_FLEET_PASSWORD].
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// File with certificates of authorities to believe, as PEM [default: those of this machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Send the password without TLS to another machine.
    #[arg(long)]
    pub allow_plain_http: bool,
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
    /// The tables: a folder, clickhouse://HOST/DATABASE, or sail://HOST/FOLDER.
    #[arg(value_name = "TABLES")]
    pub place: OsString,
    #[command(flatten)]
    pub selected: Selected,
    #[command(flatten)]
    pub reached: Reached,
    /// What tells rows apart beside the function: columns as of --where, joined by commas.
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
    /// The tables: a folder, clickhouse://HOST/DATABASE, or sail://HOST/FOLDER.
    #[arg(value_name = "TABLES")]
    pub place: OsString,
    #[command(flatten)]
    pub selected: Selected,
    #[command(flatten)]
    pub reached: Reached,
    /// What tells rows apart: columns as of --where, joined by commas. By node, boot and method alone, a column `measured` is
    /// first: all that meters counted, or that was estimated, not only what functions took.
    #[arg(long, value_name = "BY", value_delimiter = ',', default_value = "node")]
    pub by: Vec<Dimension>,
    #[command(flatten)]
    pub rows: Rows,
}

/// `diff`.
#[derive(Group)]
pub struct DiffArgs {
    /// The tables: a folder, clickhouse://HOST/DATABASE, or sail://HOST/FOLDER.
    #[arg(value_name = "TABLES")]
    pub place: OsString,
    /// Other tables, of the newer recordings.
    #[arg(value_name = "NEWER")]
    pub newer: Option<OsString>,
    #[command(flatten)]
    pub selected: Selected,
    #[command(flatten)]
    pub reached: Reached,
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
    /// The tables: a folder, clickhouse://HOST/DATABASE, or sail://HOST/FOLDER.
    #[arg(value_name = "TABLES")]
    pub place: OsString,
    #[command(flatten)]
    pub selected: Selected,
    #[command(flatten)]
    pub reached: Reached,
    /// What stands before the outermost functions: columns as of --where, joined by commas.
    #[arg(long, value_name = "BY", value_delimiter = ',')]
    pub by: Vec<Dimension>,
    /// File to write; `-` is standard output [default: fleet.svg; standard output for collapsed stacks].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A picture, or lines of stacks and microjoules [default: by the ending of the file; a picture].
    #[arg(long, value_enum)]
    pub format: Option<Picture>,
}

/// How call paths are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// A picture.
    Svg,
    /// Collapsed stacks in microjoules.
    Collapsed,
}

//! `eprof report`: where the joules of a recording went, as a table or for programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use eprof::analyze::{Dimensions, FunctionsOfStacks};
use eprof::hardware::DomainKind;
use eprof::identity::Dimension;
use eprof::pattern::pattern;
use eprof::profile::{GPU_LAUNCH_EVENT, Profile};
use eprof::report::Style;
use eprof::report::buckets::BucketReport;
use eprof::report::html::Extras;
use eprof::report::tree::{CallTree, TreeOptions};
use eprof::report::{
    FunctionChoice, Grouping, Neighbours, Options, Report, ReportError, Side, SortKey, csv, folded,
    histogram, html, json, table,
};
use regex::Regex;

use super::Outcome;
use super::by::{ByParser, ByWord, tell_what_is_missing};
use super::ending::{self, Named};
use super::input::InputArgs;
use super::loading::Loaded;
use super::needed::Needed;
use super::new_file::keep_inputs;
use super::output::{self, Color};
use super::pager::Paging;
use super::select_args::{SelectArgs, given};
use super::work_progress::WorkProgress;

const EXAMPLES: &str = "\
Examples:
  eprof report                                functions by their own joules
  eprof report --children --limit 20          with what they called
  eprof report --by line --filter 'lz_'       lines of matching files and functions
  eprof report --callers memcpy               who spends in memcpy
  eprof report --by thread --domain dram-0    memory's joules by thread
  eprof report --by bucket --svg buckets.svg  joule by joule
  eprof report --by kernel                    joules of GPU kernels, and of the GPU's idling
  eprof report ranks/ --by rank,function      functions of each rank, of all recordings in a folder
  eprof report perf.data --watts 10:65        joules of a perf recording, estimated
  eprof report --format json | jq '.rows[0]'";

/// Rows of a table if nothing else is said.
const DEFAULT_LIMIT: usize = 40;

/// Show where the joules of a recording went.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    #[command(flatten)]
    input: InputArgs,

    /// What a row stands for. Of several recordings, also what tells them apart: alone (`rank`), or before the kind of
    /// row (`rank,function`).
    #[arg(long, value_name = "BY", value_delimiter = ',', default_value = "function", value_parser = ByParser::<By>::new())]
    by: Vec<ByWord<By>>,

    /// Add each row's total, in which all that it called is included, and its share.
    #[arg(long)]
    children: bool,

    /// Show who called this function (its name, or a regular expression).
    #[arg(long, value_name = "FUNCTION", conflicts_with = "callees")]
    callers: Option<String>,

    /// Show what this function called.
    #[arg(long, value_name = "FUNCTION")]
    callees: Option<String>,

    /// What rows are sorted by [default: self; with --children, which total implies: total].
    #[arg(long, value_enum)]
    sort: Option<Sort>,

    /// Show at most so many rows; 0 shows all [default: 40 in a table, all in other formats].
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,

    /// Show only rows whose name or module matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    filter: Option<Regex>,

    /// Shares of everything measured, with rows for what was not charged to the program.
    #[arg(long)]
    whole: bool,

    /// How the report is written [default: as the output's name ends: .txt, .json, .csv, .folded, .html; else table].
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// With --by bucket: draw how the energies of buckets lie around their target.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Columns of a table; 0: as many as the longest name takes [default: COLUMNS, or the terminal's, else 120 for names].
    ///
    /// Where there is too little room, names lose the types in brackets first. Those that look the same then have a
    /// number behind them (~2). JSON and CSV have all names whole.
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,

    /// When to use color.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,

    #[command(flatten)]
    select: SelectArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Function,
    Line,
    Module,
    Thread,
    Process,
    Command,
    Core,
    Event,
    /// Kernels of GPUs, of recordings with their launches.
    Kernel,
    Domain,
    /// Stretches of time with the same measured energy each.
    Bucket,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Weight of the row itself.
    #[value(name = "self")]
    Own,
    /// Weight with all that it called.
    Total,
    Joules,
    Samples,
    Time,
    Watts,
    Name,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
    /// Folded stacks in microjoules, one line per call path.
    Collapsed,
    /// One page with power over time, flamegraph and table, as `eprof view` shows it; needs -o.
    Html,
}

impl Named for Format {
    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Table => &["txt"],
            Self::Json => &["json"],
            Self::Csv => &["csv"],
            Self::Collapsed => &["folded", "collapsed"],
            Self::Html => &["html", "htm"],
        }
    }
}

/// Runs the verb.
pub fn run(mut args: ReportArgs, paging: Paging) -> Outcome {
    args.format = ending::format(args.format, args.output.as_deref())?;
    // Nobody sees that rows are sorted by what has no column.
    args.children |= args.sort == Some(Sort::Total);
    let error = match run_once(&args, paging) {
        Err(error) if args.may_be_inlined(&error)? => error,
        outcome => return outcome,
    };
    // Names of inlined functions take long to find, and are not looked for where nobody asks for them.
    args.input.tell_inlined();
    let outcome =
        run_once(&args, paging).map_err(|again| if is_no_such_function(&again) { error } else { again })?;
    let function = args.callers.as_ref().or(args.callees.as_ref()).map_or("", String::as_str);
    output::say(format_args!(
        "note: {function:?} is nowhere but inlined into its callers: inlined functions are told apart here, as by --inline"
    ));
    Ok(outcome)
}

fn is_no_such_function(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ReportError::NoSuchFunction(_)))
}

fn run_once(args: &ReportArgs, paging: Paging) -> Outcome {
    if args.format() == Format::Html && args.output.is_none() {
        bail!("a page is read in a browser: name a file with -o, such as -o energy.html");
    }
    if args.format() == Format::Html {
        output::check_page(args.output.as_deref())?;
    }
    if args.svg.is_some() && args.rows() != Some(By::Bucket) {
        bail!("--svg draws buckets: add --by bucket; pictures of functions are made by `eprof flamegraph`");
    }
    if args.svg.as_deref() == Some(Path::new("-")) && output::is_stdout(args.output.as_deref()) {
        bail!("the table and the picture would both go to standard output: name a file for one of them");
    }
    let paths = args.input.paths()?;
    args.check_by(&paths)?;
    args.check_buckets()?;
    for output in [&args.output, &args.svg] {
        keep_inputs(output.as_deref(), &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    }
    let loaded = args.input.load_all(&paths, args.needed(), args.input.memory())?;
    if args.rows() == Some(By::Bucket) {
        return args.run_buckets(&loaded, paging);
    }
    let Loaded { analysis, symbols, subject, .. } = &loaded;
    let analysis = analysis.as_ref();
    let profile = loaded.profile();
    tell_what_is_missing(&args.dimensions(), profile);
    let mut options = args.options(subject.clone());
    options.verified = loaded.verified.clone();
    if args.rows() == Some(By::Kernel) {
        only_launches(&mut options, profile)?;
    }
    let report = || Report::new(analysis, symbols, &options)?.of_something();
    let tree = |whole| {
        let options = TreeOptions {
            subject: subject.clone(),
            selection: args.select.selection(),
            no_inline: !args.inline(),
            whole,
            dimensions: args.dimensions(),
            ..TreeOptions::default()
        };
        CallTree::new(analysis, symbols, &options)
    };
    let has_rows = matches!(args.format(), Format::Table | Format::Json | Format::Csv);
    let progress = WorkProgress::of("adding up");
    let rows = has_rows.then(report).transpose()?;
    drop(progress);
    let path = args.output.as_deref();
    if let Some(report) = rows.as_ref().filter(|_| args.format() == Format::Table) {
        paging.write_text_to(path, |out| table::write(report, &args.style(), out))?;
        return Ok(ExitCode::SUCCESS);
    }
    paging.write_to(path, |out| match (&rows, args.format()) {
        (Some(report), Format::Csv) => csv::write(report, out),
        (Some(report), _) => json::write(report, out),
        (None, Format::Html) => {
            let extras = Extras { symbols: Some(symbols), ..Extras::default() };
            html::write_with(&tree(false)?, &report()?, extras, out)
        }
        (None, _) => {
            let tree = tree(args.whole)?;
            output::warn(tree.warning());
            output::warn(tree.warning_of_paths());
            folded::write(&tree, out)
        }
    })?;
    // The other formats have a place for them.
    if matches!(args.format(), Format::Csv | Format::Collapsed) {
        output::warn(&profile.warnings);
    }
    Ok(ExitCode::SUCCESS)
}

/// Rows of kernels are those of launches alone. Where there is one GPU, all of its joules are shown, with
/// a row for its idling.
fn only_launches(options: &mut Options, profile: &Profile) -> anyhow::Result<()> {
    if !profile.events.iter().any(|event| event.name == GPU_LAUNCH_EVENT) {
        bail!(
            "this recording has no launches of GPU kernels: record with `eprof record --gpu COMMAND`, as root or \
             with the right to probe programs"
        );
    }
    options.own_only = true;
    options.selection.event.get_or_insert_with(|| GPU_LAUNCH_EVENT.to_owned());
    let mut gpus = profile.domains.iter().filter(|domain| domain.info.kind == DomainKind::Gpu);
    if let (Some(gpu), None, None) = (gpus.next(), gpus.next(), &options.selection.domain) {
        options.selection.domain = Some(gpu.info.name.clone());
        options.whole = true;
    }
    Ok(())
}

impl ReportArgs {
    /// Whether the function whose callers or callees were asked for may be one that was inlined everywhere, and the recording can
    /// be read again to find out.
    fn may_be_inlined(&self, error: &anyhow::Error) -> anyhow::Result<bool> {
        let is_read_once = |path: &PathBuf| !path.is_file();
        Ok(is_no_such_function(error)
            && !self.input.is_without_inlined()
            && !self.inline()
            && !self.input.paths()?.iter().any(is_read_once))
    }

    fn run_buckets(&self, loaded: &Loaded, paging: Paging) -> Outcome {
        let report = BucketReport::new(loaded.analysis.as_ref(), &loaded.symbols)?;
        if let Some(path) = &self.svg {
            output::write_to(Some(path), |out| out.write_all(histogram::draw(&report).as_bytes()))?;
        }
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let limit = if limit == 0 { usize::MAX } else { limit };
        let width = self.style().width;
        match self.format() {
            Format::Table => {
                paging.write_text_to(self.output.as_deref(), |out| report.write_table(limit, width, out))?
            }
            Format::Json => paging.write_to(self.output.as_deref(), |out| report.write_json(out))?,
            Format::Csv => paging.write_to(self.output.as_deref(), |out| report.write_csv(out))?,
            Format::Collapsed | Format::Html => {
                bail!("buckets are a table, JSON or CSV, and a picture with --svg")
            }
        }
        output::warn(&loaded.profile().warnings);
        Ok(ExitCode::SUCCESS)
    }

    fn options(&self, subject: Option<String>) -> Options {
        let is_table = matches!(self.format(), Format::Table | Format::Html);
        let limit = self.limit.or(is_table.then_some(DEFAULT_LIMIT)).filter(|&limit| limit > 0);
        let of = |side, function: &Option<String>| {
            function
                .as_ref()
                .map(|function| Neighbours { side, function: FunctionChoice::Named(function.clone()) })
        };
        Options {
            subject,
            by: self.grouping(),
            dimensions: self.dimensions(),
            selection: self.select.selection(),
            neighbours: of(Side::Callers, &self.callers).or_else(|| of(Side::Callees, &self.callees)),
            rows: self.filter.clone(),
            inline: self.inline(),
            sort: self.sort_key(),
            limit,
            own_only: is_table && !self.children,
            whole: self.whole,
            verified: None,
        }
    }

    /// Tables have a row per function of the machine code, as other profilers' have.
    fn inline(&self) -> bool {
        self.input.inline(
            self.rows() == Some(By::Line) || matches!(self.format(), Format::Collapsed | Format::Html),
        )
    }

    /// What a row stands for; `None` if for recordings.
    fn rows(&self) -> Option<By> {
        self.by.iter().find_map(|word| match word {
            ByWord::Rows(rows) => Some(*rows),
            ByWord::Recordings(_) => None,
        })
    }

    /// What tells recordings apart.
    fn dimensions(&self) -> Vec<Dimension> {
        let dimensions = self.by.iter().filter_map(|word| match word {
            ByWord::Rows(_) => None,
            ByWord::Recordings(dimension) => Some(dimension.clone()),
        });
        dimensions.collect()
    }

    fn check_by(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
        let kinds = self.by.len() - self.dimensions().len();
        if kinds > 1 {
            bail!("--by takes one kind of row, such as function, and what tells recordings apart before it");
        }
        match self.rows() {
            Some(By::Bucket) if paths.len() > 1 => {
                bail!("buckets are stretches of one recording: name one file")
            }
            Some(by @ (By::Bucket | By::Domain)) if self.by.len() > 1 => {
                let name = if by == By::Bucket { "buckets" } else { "domains" };
                bail!("{name} are not told apart by recordings: leave out the rest of --by")
            }
            _ => Ok(()),
        }
    }

    /// Buckets are of all that ran, and in the order of time: other options would be as if they were not there.
    fn check_buckets(&self) -> anyhow::Result<()> {
        let of_rows = given(&[
            ("--children", self.children),
            ("--callers", self.callers.is_some()),
            ("--callees", self.callees.is_some()),
            ("--sort", self.sort.is_some()),
            ("--filter", self.filter.is_some()),
            ("--whole", self.whole),
        ]);
        let options = [self.select.given(), of_rows].concat();
        if self.rows() != Some(By::Bucket) || options.is_empty() {
            return Ok(());
        }
        bail!(
            "buckets are stretches of time in which all that ran took the same joules: leave out {}; `eprof view` shows over time \
             what --thread, --process, --through, --event and --domain select",
            options.join(" and ")
        )
    }

    fn grouping(&self) -> Grouping {
        let Some(by) = self.rows() else { return Grouping::Recording };
        match by {
            By::Function => Grouping::Function,
            By::Line => Grouping::Line,
            By::Module => Grouping::Module,
            By::Thread => Grouping::Thread,
            By::Process => Grouping::Process,
            By::Command => Grouping::Command,
            By::Core => Grouping::Core,
            By::Event => Grouping::Event,
            By::Kernel => Grouping::Kernel,
            // Buckets are no rows of a report; see `run_buckets`.
            By::Domain | By::Bucket => Grouping::Domain,
        }
    }

    fn sort_key(&self) -> SortKey {
        match self.sort {
            None if self.children => SortKey::Total,
            None | Some(Sort::Own) => SortKey::Own,
            Some(Sort::Total) => SortKey::Total,
            Some(Sort::Joules) => SortKey::Joules,
            Some(Sort::Samples) => SortKey::Samples,
            Some(Sort::Time) => SortKey::Time,
            Some(Sort::Watts) => SortKey::Watts,
            Some(Sort::Name) => SortKey::Name,
        }
    }

    /// What this report needs of the recording.
    fn needed(&self) -> Needed {
        let own_only = self.format() == Format::Table && !self.children;
        let neighbours = self.callers.is_some() || self.callees.is_some();
        let is_tree = matches!(self.format(), Format::Collapsed | Format::Html);
        let dimensions = Dimensions {
            stacks: !own_only || neighbours || self.select.needs_stacks(),
            threads: is_tree
                || self.by.len() > 1
                || matches!(self.rows(), None | Some(By::Thread | By::Process | By::Command))
                || self.select.needs_threads(),
            cpus: self.rows() == Some(By::Core) || self.format() == Format::Html,
        };
        Needed {
            dimensions,
            inline: self.inline(),
            lines: self.rows() == Some(By::Line) || self.format() == Format::Html,
            slices: self.format() == Format::Html || self.rows() == Some(By::Bucket),
            functions: (self.format() != Format::Html
                && !matches!(self.rows(), Some(By::Line | By::Bucket | By::Kernel)))
            .then_some(match is_tree || neighbours {
                true => FunctionsOfStacks::Paths,
                false => FunctionsOfStacks::Sets,
            }),
        }
    }

    fn format(&self) -> Format {
        self.format.unwrap_or(Format::Table)
    }

    fn style(&self) -> Style {
        let to_stdout = output::is_stdout(self.output.as_deref());
        let style = Style {
            width: output::table_width(to_stdout),
            color: to_stdout && self.color.on_stdout(),
            children: self.children || self.rows() == Some(By::Domain),
            ..Style::default()
        };
        style.as_wide_as(self.width)
    }
}

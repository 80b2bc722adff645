//! `eprof export`: a recording's energy for other tools.

use std::io::{self, BufWriter, IntoInnerError, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use eprof::analyze::{FunctionsOfStacks, SampleEnergies};
use eprof::identity::Dimension;
use eprof::profile::{ProfileMethod, top_level};
use eprof::report::export::{EXPORTERS, Exported, Exporter};
use eprof::report::tree::TreeOptions;
use eprof::report::{MissingJoules, ReportError, Selection, perf_data};
use eprof::units::Joules;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Outcome;
use super::by::{self, tell_what_is_missing};
use super::flamegraph::RootArg;
use super::input::InputArgs;
use super::needed::Needed;
use super::new_file::{NewFile, Readers, keep_inputs};
use super::opening;
use super::output;
use super::select_args::{SelectArgs, given};
use super::work_progress::WorkProgress;

mod tables;

const EXAMPLES: &str = "\
Examples:
  eprof export --format perf-data -o energy.data && perf report -i energy.data
  eprof export x.data --format collapsed -o energy.folded
  eprof export --format speedscope -o energy.speedscope.json
  eprof export --format pprof -o energy.pb.gz && pprof -http : energy.pb.gz
  eprof export --format firefox -o energy.json.gz   # or .json, not packed; open it in https://profiler.firefox.com
  eprof export --format otlp | curl --data-binary @- -H 'Content-Type: application/x-protobuf' \
      http://localhost:4318/v1development/profiles
  eprof export ranks/ --format parquet -o energy   # tables of all recordings, for SQL and `eprof fleet`";

/// Write a recording's energy in the format of another tool.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,

    /// The format.
    #[arg(long, value_parser = formats())]
    format: Format,

    /// File to write [default: energy.data for perf-data, else standard output]; for parquet the folder that the tables
    /// are in or are added to.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace what the same recordings were exported to before (parquet).
    #[arg(long)]
    force: bool,

    /// What stands before the outermost functions (collapsed, speedscope).
    #[arg(long, value_enum, default_value_t = RootArg::Auto)]
    root: RootArg,

    /// Of several recordings: what tells them apart, before all other frames (collapsed, speedscope) or behind names of
    /// processes (firefox: else node and rank).
    #[arg(long, value_name = "BY", value_delimiter = ',', value_parser = by::dimension())]
    by: Vec<Dimension>,

    /// Also what was measured but not charged to the program (collapsed, speedscope).
    #[arg(long)]
    whole: bool,

    #[command(flatten)]
    select: SelectArgs,
}

#[derive(Clone, Copy)]
enum Format {
    /// A recording whose samples weigh their nanojoules.
    PerfData,
    /// Tables for many machines: several files.
    Parquet,
    /// One of the formats that are written from a profile.
    Of(&'static dyn Exporter),
}

const PERF_DATA: &str = "perf-data";
const PARQUET: &str = "parquet";

/// The formats by their names.
fn formats() -> impl TypedValueParser<Value = Format> {
    let perf_data = PossibleValue::new(PERF_DATA)
        .help(
        "A recording whose samples' periods are nanojoules: for perf, hotspot and others that weigh by period; samply counts \
         samples instead",
    );
    let others = EXPORTERS.iter().map(|exporter| PossibleValue::new(exporter.name()).help(exporter.about()));
    let parquet = PossibleValue::new(PARQUET).help(
        "Tables for many machines, for `eprof fleet` and whatever speaks SQL: files in the folder that -o names",
    );
    PossibleValuesParser::new([perf_data].into_iter().chain(others).chain([parquet])).try_map(|name| {
        let of_name = || EXPORTERS.into_iter().find(|exporter| exporter.name() == name).map(Format::Of);
        let format = match name.as_str() {
            PERF_DATA => Some(Format::PerfData),
            PARQUET => Some(Format::Parquet),
            _ => of_name(),
        };
        format.ok_or_else(|| format!("no format {name}"))
    })
}

/// Runs the verb.
pub fn run(args: ExportArgs) -> Outcome {
    let paths = args.input.paths()?;
    keep_inputs(args.output.as_deref(), &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let exporter = match args.format {
        Format::PerfData => return export_perf_data(&args, &paths),
        Format::Parquet => return export_tables(&args, &paths),
        Format::Of(exporter) => exporter,
    };
    let packs = exporter.may_be_packed() && !is_of_plain_json(args.output.as_deref());
    if (exporter.is_binary() || packs)
        && output::is_stdout(args.output.as_deref())
        && io::stdout().is_terminal()
    {
        bail!(
            "{} is no text, and standard output is a terminal: name a file with -o, or pipe it on",
            exporter.name()
        );
    }
    let slices = exporter.needs_slices();
    let lines = exporter.needs_lines();
    let functions = exporter.is_of_functions().then_some(FunctionsOfStacks::Paths);
    let needed = Needed { lines, slices, functions, ..Needed::STACKS };
    let loaded = args.input.load_all(&paths, needed, args.input.memory())?;
    tell_what_is_missing(&args.by, loaded.profile());
    let options = TreeOptions {
        subject: loaded.subject.clone(),
        selection: args.select.selection(),
        no_inline: !args.input.inline(true),
        root: args.root.root(),
        dimensions: args.by.clone(),
        whole: args.whole,
        ..TreeOptions::default()
    };
    let exported = Exported {
        profile: loaded.analysis.as_ref(),
        symbols: &loaded.symbols,
        started: loaded.started,
        options: &options,
        warn: &|warning| output::warn([warning]),
    };
    output::write_to(args.output.as_deref(), |out| {
        if !packs {
            return exporter.write(&exported, out);
        }
        // A compressor that is handed a word at a time clears its buffer for each.
        let mut packed = BufWriter::with_capacity(1 << 16, GzEncoder::new(out, Compression::fast()));
        if let Err(error) = exporter.write(&exported, &mut packed) {
            // It would write its end, and so a file of nothing.
            std::mem::forget(packed.into_parts().0);
            return Err(error);
        }
        packed.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
        Ok(())
    })?;
    output::warn(&loaded.profile().warnings);
    Ok(ExitCode::SUCCESS)
}

/// Whether the name is one of plain JSON: what reads `.json` takes no gzip, and samply's names tell the two apart likewise.
fn is_of_plain_json(path: Option<&Path>) -> bool {
    let ending = path.and_then(Path::extension).and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

/// The options that were given by which an export has a part of the recording, or its stacks otherwise than they are.
fn options_of_a_part(args: &ExportArgs) -> Vec<&'static str> {
    let of_stacks = given(&[
        ("--by", !args.by.is_empty()),
        ("--whole", args.whole),
        ("--root", !matches!(args.root, RootArg::Auto)),
    ]);
    [args.select.given(), of_stacks].concat()
}

fn export_tables(args: &ExportArgs, paths: &[PathBuf]) -> Outcome {
    let Some(folder) = args.output.as_deref().filter(|path| *path != Path::new("-")) else {
        bail!("parquet is several files: name their folder with -o");
    };
    if !options_of_a_part(args).is_empty() {
        bail!(
            "the tables have all of a recording, or their sums would not hold: select and group when asking them (`eprof \
             fleet report {} --where ... --by ...`)",
            folder.display()
        );
    }
    tables::export(&args.input, folder, args.force, paths)
}

fn export_perf_data(args: &ExportArgs, paths: &[PathBuf]) -> Outcome {
    let [input] = paths else {
        bail!("perf-data is one recording with its samples' periods changed: export one file at a time");
    };
    let mut options = options_of_a_part(args);
    // Samples have the joules of those domains that are chosen.
    options.retain(|&option| option != "--domain");
    if !options.is_empty() {
        bail!(
            "perf-data has all samples of the recording, whatever {} says: select when reading it (`perf report --comms NAME`, \
             `--tid`), or export another format, such as pprof or collapsed",
            options.join(" and ")
        );
    }
    let recording = opening::open(input)?;
    let options = args.input.analyze_options(&recording, input, Needed::STACKS)?;
    let progress = WorkProgress::of(format!("dividing the joules of {}", input.display()));
    let mut energies = SampleEnergies::new(&recording, &options, args.input.memory());
    drop(progress);
    let columns = columns(&energies, &args.select.selection())?;
    if energies.samples() == 0 {
        bail!("nothing to export: the recording has no samples; what it has else `eprof report` says");
    }
    let method = ProfileMethod::of(columns.iter().map(|&column| energies.domains()[column].info.method));
    let path = args.output.as_deref().unwrap_or(Path::new("energy.data"));
    if path == Path::new("-") {
        bail!("perf-data needs a file: its header is written last");
    }
    keep_inputs(Some(path), &[input])?;
    let cannot = || format!("cannot write {}", path.display());
    let mut file = NewFile::create(path, Readers::Owner).with_context(cannot)?;
    let joules = |position| {
        let row: &[Joules] = energies.at(position)?;
        Some(columns.iter().map(|&column| row[column]).sum())
    };
    let progress = WorkProgress::of(format!("writing {}", path.display()));
    let exported = perf_data::write(&recording, method, joules, &mut file).with_context(cannot)?;
    drop(progress);
    file.keep().with_context(cannot)?;
    output::warn(energies.warnings());
    let (joules, samples) = (exported.joules, exported.samples);
    let how = match method {
        ProfileMethod::Measured | ProfileMethod::None => "",
        ProfileMethod::Estimated => " (estimated)",
        ProfileMethod::Mixed => " (partly estimated)",
    };
    output::say(format_args!("{0}: {joules}{how} in {samples} samples; perf report -i {0}", path.display()));
    let of_functions: Joules =
        columns.iter().map(|&column| energies.domains()[column].balance.attributed).sum();
    let left_out = of_functions - joules;
    if left_out > of_functions * SEEN_BY_NOBODY {
        output::say(format_args!(
            "warning: {left_out} of the functions' {of_functions} are not in it: no sample has them, as of processes too short to be \
             sampled; `eprof report` and the other formats have them"
        ));
    }
    if exported.too_long > 0 {
        let left_out = exported.too_long;
        output::say(format_args!("warning: {left_out} samples were left out: no room for a period"));
    }
    Ok(ExitCode::SUCCESS)
}

/// What rounding leaves of joules that are added up in another order, as a share.
const SEEN_BY_NOBODY: f64 = 1e-6;

/// The domains whose joules are summed.
fn columns(energies: &SampleEnergies<'_>, selection: &Selection) -> Result<Vec<usize>, ReportError> {
    let domains = energies.domains();
    let known = || domains.iter().map(|domain| domain.info.name.as_str()).collect::<Vec<_>>().join(", ");
    let columns: Vec<usize> = match &selection.domain {
        None => top_level(domains).map(|(index, _)| index).collect(),
        Some(name) => {
            let found = domains.iter().position(|domain| domain.info.name == *name);
            vec![found.ok_or_else(|| ReportError::NoSuchDomain { name: name.clone(), known: known() })?]
        }
    };
    let measured: Joules = columns.iter().map(|&column| domains[column].balance.measured).sum();
    if measured > Joules::ZERO {
        return Ok(columns);
    }
    let method = ProfileMethod::of(domains.iter().map(|domain| domain.info.method));
    let why = MissingJoules::of(method, energies.samples());
    Err(ReportError::NothingWithoutJoules { what: "periods of perf-data are", why })
}

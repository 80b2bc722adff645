//! What all verbs that read a recording have in common: options, and the way from the file to a
//! profile with symbols.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use eprof::analyze::{
    self, Analysis, Dimensions, FunctionsAlone, FunctionsOfStacks, MemoryLimit, ModelChoice, StaticEnergy,
    WattsRange,
};
use eprof::pattern::pattern;
use eprof::power_model::folder;
use eprof::power_model::model::PowerModel;
use eprof::power_model::presets::Preset;
use eprof::power_model::stored::StoredModel;
use eprof::profile::{Profile, ProfileParts};
use eprof::recording::metadata::{Metadata, MetersRead, Target};
use eprof::recording::node_meters::{Lending, NodeMeters};
use eprof::recording::{Opened, Recording, RecordingError};
use eprof::report::{Selection, Verified, Weight};
use eprof::symbolize::{Debuginfod, KernelListAhead, SymbolizeOptions, Symbolizer, Symbols, UnwindFiles};
use eprof::text_profile::{self, TextOptions, TextProfile};
use eprof::units::{Joules, Nanoseconds, Watts};
use eprof::verify;
use perf_data::attr::{EventAttr, flag};
use perf_data::format::sample_type;
use perf_data::{ReadError, input_name};
use regex::Regex;

use super::denied;
use super::memory;
use super::model::folders;
use super::output::say;
use super::recorded_kernel;
use super::recordings;
use super::work_progress::WorkProgress;

/// The recording that verbs read if they are told no other.
pub const DEFAULT_RECORDING: &str = eprof::record::DEFAULT_OUTPUT;

/// What is to be said of a recording that was meant to be reported together with others.
const LEFT_TO_ANOTHER: &str = "another recorder of this machine read its meters closely, and this one at its ends and now and then, if at all: joules \
     are coarsely divided in time. Give the recordings of all ranks, or their folder, and that one's readings are used";

/// The same of one that was meant to be reported with whoever read the meters, and its recorder was told to read none.
const WITHOUT_METERS: &str = "its recorder was told to read no meters (--meters none), and nothing that was given with it has those of its machine. Give the recordings of all ranks, or their folder, and what others read is used";

/// Which recording is read, and how its addresses get names.
#[derive(Args)]
pub struct InputArgs {
    /// Recording to read, of eprof or perf, or a profile as text: what `perf script` or `simpleperf report-sample`
    /// print, or collapsed stacks; `-` is standard input. A folder means the recordings in it. Several are added up:
    /// what a machine's meters counted in one time counts once.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_RECORDING)]
    input: Vec<PathBuf>,

    /// The recordings, as with -i.
    #[arg(value_name = "FILE", conflicts_with = "input")]
    recording: Vec<PathBuf>,

    /// Estimate joules from CPU time by the machine's watts when idle and when all CPUs are busy, if
    /// the recording has no joules.
    #[arg(long, value_name = "IDLE:BUSY", value_parser = watts_range)]
    watts: Option<WattsRange>,

    /// Power model that divides joules among samples: auto (the stored one or a preset, corrected by the
    /// recording), stored or preset (as they are), self (from the recording alone), time (as if all code
    /// drew the same power), or a model file.
    #[arg(long, value_name = "MODEL", default_value = "auto")]
    model: ModelArg,

    /// Energy of a bucket, such as 1J or 200mJ: joules are divided among the samples of the stretch of time that took
    /// as much [default: 1J, less for short recordings].
    #[arg(long, value_name = "JOULES", value_parser = joules)]
    bucket: Option<Joules>,

    /// Where the energy goes that the machine takes whatever runs: into a row of its own, or spread over what ran.
    #[arg(long = "static", value_enum, default_value_t = StaticArg::Row)]
    static_energy: StaticArg,

    /// Memory to take at most, such as 512M or 2G; at least 64M. A recording with more call stacks is read several
    /// times. What each function took itself stays exact; the lightest branches of call trees, and callers beyond
    /// what there is room for, are folded into `[folded]` [default: a quarter of what is free, at least 256M].
    #[arg(long, value_name = "SIZE", value_parser = memory::parse)]
    memory: Option<MemoryLimit>,

    /// Tell inlined functions apart. The default for call trees, lines and exports.
    #[arg(long, overrides_with = "no_inline")]
    inline: bool,

    /// Count inlined functions as part of the function they were put into. The default for tables of
    /// functions.
    #[arg(long)]
    no_inline: bool,

    /// Show C++ and Rust names as the linker knows them.
    #[arg(long)]
    no_demangle: bool,

    /// Folder in which the recorded machine's files are found by their paths.
    #[arg(long, value_name = "FOLDER")]
    symfs: Option<PathBuf>,

    /// Another folder of separate debug files, beside /usr/lib/debug.
    #[arg(long, value_name = "FOLDER")]
    debug_dir: Vec<PathBuf>,

    /// Fetch debug files that are not here from the servers in DEBUGINFOD_URLS, by elfutils' debuginfod-find and into
    /// its cache.
    #[arg(long)]
    debuginfod: bool,
}

/// What is given as `--model`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ModelArg {
    Auto,
    Stored,
    Preset,
    OfRecording,
    Time,
    File(PathBuf),
}

impl From<&OsStr> for ModelArg {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some("auto") => Self::Auto,
            Some("stored") => Self::Stored,
            Some("preset") => Self::Preset,
            Some("self") => Self::OfRecording,
            Some("time") => Self::Time,
            _ => Self::File(PathBuf::from(text)),
        }
    }
}

impl From<std::ffi::OsString> for ModelArg {
    fn from(text: std::ffi::OsString) -> Self {
        Self::from(text.as_os_str())
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StaticArg {
    Row,
    Spread,
}

/// Which samples count, and what weighs.
#[derive(Args)]
pub struct SelectArgs {
    /// What rows and frames are measured in [default: joules if the recording has any, else samples].
    #[arg(long, value_enum)]
    weight: Option<WeightArg>,

    /// Only joules of this energy domain [default: those of all domains that are not part of another].
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// Only samples of this event.
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Only samples of threads whose name matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    thread: Option<Regex>,

    /// Only samples of processes whose name matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    process: Option<Regex>,

    /// Only samples with a function whose name matches anywhere on their stack.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    through: Option<Regex>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WeightArg {
    Joules,
    Samples,
    Count,
}

impl SelectArgs {
    /// As the library takes it.
    pub fn selection(&self) -> Selection {
        Selection {
            weight: self.weight.map(|weight| match weight {
                WeightArg::Joules => Weight::Joules,
                WeightArg::Samples => Weight::Samples,
                WeightArg::Count => Weight::Count,
            }),
            domain: self.domain.clone(),
            event: self.event.clone(),
            thread: self.thread.clone(),
            process: self.process.clone(),
            task: None,
            through: self.through.clone(),
        }
    }

    /// Whether anything is left out or weighed otherwise than usual.
    pub fn selects(&self) -> bool {
        let Self { weight, domain, event, thread, process, through } = self;
        let of_names = domain.is_some() || event.is_some();
        of_names || weight.is_some() || thread.is_some() || process.is_some() || through.is_some()
    }

    /// Whether threads must be told apart.
    pub fn needs_threads(&self) -> bool {
        self.thread.is_some() || self.process.is_some()
    }

    /// Whether whole stacks are needed.
    pub fn needs_stacks(&self) -> bool {
        self.through.is_some()
    }
}

/// What a verb needs of a recording; less is faster.
#[derive(Clone, Copy)]
pub struct Needed {
    /// What must be told apart.
    pub dimensions: Dimensions,
    /// Inlined functions, if the user does not say.
    pub inline: bool,
    /// Lines of the source.
    pub lines: bool,
    /// Pieces of time.
    pub slices: bool,
    /// Of code, no more than its functions, and what of them: neither addresses nor, unless the user says so, what is
    /// inlined.
    pub functions: Option<FunctionsOfStacks>,
}

impl Needed {
    /// Whole stacks by thread.
    pub const STACKS: Self = Self {
        dimensions: Dimensions { stacks: true, threads: true, cpus: false },
        inline: true,
        lines: false,
        slices: false,
        functions: None,
    };
}

/// A recording's profile, with names.
pub struct Loaded<A = Box<dyn ProfileParts>> {
    pub analysis: A,
    pub symbols: Symbols,
    /// The recorded command, if it is known.
    pub subject: Option<String>,
    /// What `eprof verify` found on the recorded machine, if joules are divided as it tried.
    pub verified: Option<Verified>,
    /// When the recording began, on the wall clock.
    pub started: Option<SystemTime>,
    /// The sampled events by their names.
    pub events: Vec<(String, EventAttr)>,
    /// What found the symbols, to find more.
    pub symbolizer: Symbolizer,
}

/// What a recording was made to.
pub(super) enum Found {
    Recording(Box<Analysis>),
    /// What another tool printed.
    Text(Box<Profile>),
}

impl Loaded {
    /// All that is known once of the recording.
    pub fn profile(&self) -> &Profile {
        self.analysis.profile()
    }
}

impl InputArgs {
    /// The recordings' files; those of folders by name.
    ///
    /// # Errors
    /// A folder without recordings.
    pub fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        recordings::expand(if self.recording.is_empty() { &self.input } else { &self.recording })
    }

    /// Whether the user names no recording.
    pub fn is_default(&self) -> bool {
        self.recording.is_empty() && *self.input == [Path::new(DEFAULT_RECORDING)]
    }

    /// Reads any recording with the same options, within so much memory.
    pub fn load_file(&self, path: &Path, needed: Needed, memory: MemoryLimit) -> anyhow::Result<Loaded> {
        let Loaded { analysis, symbols, subject, verified, started, events, symbolizer } =
            self.read(path, needed, memory, &NodeMeters::default())?;
        let name = (path != Path::new("-")).then(|| path.display().to_string());
        let analysis: Box<dyn ProfileParts> = match analysis {
            Found::Recording(mut analysis) => {
                analysis.profile_mut().recordings.iter_mut().for_each(|origin| origin.name.clone_from(&name));
                analysis
            }
            Found::Text(profile) => profile,
        };
        Ok(Loaded { analysis, symbols, subject, verified, started, events, symbolizer })
    }

    /// Reads a recording, or what another tool printed. `meters` were read by recorders of the same machine.
    pub(super) fn read(
        &self,
        path: &Path,
        needed: Needed,
        memory: MemoryLimit,
        meters: &NodeMeters,
    ) -> anyhow::Result<Loaded<Found>> {
        let mut recording = match open_any(path)? {
            Opened::Recording(recording) => recording,
            Opened::Other(text) => return self.read_text(path, text, needed),
        };
        let lending = meters.lend_to(&mut recording);
        let recording: Arc<Recording> = Arc::from(recording);
        let mut options = self.analyze_options(&recording, path, needed)?;
        let mut symbolize = self.symbolize_options(&recording, needed);
        options.functions = self.functions(&recording, path, needed, &symbolize);
        let has_kernel_code =
            |attr: &EventAttr| attr.samples(sample_type::IP) && !attr.has(flag::EXCLUDE_KERNEL);
        let has_kernel_code = recording.events().iter().any(|event| has_kernel_code(&event.attr));
        let kernel_list = has_kernel_code.then(|| KernelListAhead::begin(&symbolize)).flatten();
        let progress = WorkProgress::reading(&recording);
        let mut analysis = Analysis::new(&recording, &options, memory);
        drop(progress);
        let profile = analysis.profile_mut();
        let metadata = recording.metadata();
        symbolize.recorded_at =
            metadata.and_then(|metadata| end(metadata, profile)).or_else(|| modified(path));
        // Meters that were read once have told nothing, and are in no profile.
        let is_of_meter = |name: &str| {
            metadata.is_some_and(|metadata| metadata.domains.iter().any(|domain| domain.name == name))
        };
        let has_meter = profile.domains.iter().any(|domain| is_of_meter(&domain.info.name));
        // Of meters that were read once the profile says what is missing.
        let is_said = !has_meter && metadata.is_some_and(|metadata| !metadata.domains.is_empty());
        if lending == Lending::NobodyHasThem && !is_said {
            let was_told = metadata.is_some_and(|metadata| metadata.meters == MetersRead::Not);
            profile.warnings.push(if was_told { WITHOUT_METERS } else { LEFT_TO_ANOTHER }.to_owned());
        }
        let subject = subject(&recording);
        let verified = self.verified(metadata);
        let started = started(&recording, profile)
            .or_else(|| modified(path)?.checked_sub(Duration::from_nanos(profile.duration.as_nanos())));
        let events = recording.events().iter().map(|event| (event.name.clone(), event.attr)).collect();
        // Beside what follows: a large file takes the kernel a while to unmap.
        let _ = thread::Builder::new().spawn(move || drop(recording));
        let mut symbolizer = Symbolizer::new(symbolize).with_kernel_list(kernel_list);
        let progress =
            WorkProgress::of(format!("finding the names of {} addresses", profile.addresses.len()));
        let symbols = symbolizer.symbolize(&profile.modules, &profile.addresses);
        drop(progress);
        profile.warnings.extend(symbols.warnings.iter().map(ToString::to_string));
        if self.watts.is_some() && has_meter {
            profile.warnings.push("--watts was not used: the recording has joules of its own".to_owned());
        }
        let analysis = Found::Recording(Box::new(analysis));
        Ok(Loaded { analysis, symbols, subject, verified, started, events, symbolizer })
    }

    /// What was found of a machine says nothing of joules that other models and options divide.
    fn verified(&self, metadata: Option<&Metadata>) -> Option<Verified> {
        let is_usual = self.model == ModelArg::Auto && self.bucket.is_none();
        let identity = &metadata.filter(|_| is_usual)?.machine.cpu_identity;
        let found = verify::find(&folders(), identity)?;
        let (mean_error, worst_error) = (found.verdict.mean_error, found.verdict.worst_error);
        Some(Verified { mean_error, worst_error, date: found.date() })
    }

    /// Reads what another tool printed.
    fn read_text(&self, path: &Path, text: impl io::Read, needed: Needed) -> anyhow::Result<Loaded<Found>> {
        let options = TextOptions { cpus: needed.dimensions.cpus };
        let _progress = WorkProgress::of(format!("reading {}", input_name(path)));
        let TextProfile { mut profile, symbols, cpus, .. } =
            text_profile::read(text, options).with_context(|| format!("cannot read {}", input_name(path)))?;
        if let Some(watts) = self.watts {
            if profile.cells.iter().any(|cell| cell.time > Nanoseconds::ZERO) {
                analyze::estimate(&mut profile, cpus, watts);
            } else {
                let why = "--watts was not used: the text tells no CPU time, which is the periods of cpu-clock or \
                           task-clock (`perf script -F +period`)";
                profile.warnings.push(why.to_owned());
            }
        }
        Ok(Loaded {
            analysis: Found::Text(Box::new(profile)),
            symbols,
            subject: None,
            verified: None,
            started: None,
            events: Vec::new(),
            symbolizer: Symbolizer::new(SymbolizeOptions::default()),
        })
    }

    /// How much memory may be taken.
    pub fn memory(&self) -> MemoryLimit {
        self.memory.unwrap_or_else(memory::usual)
    }

    /// Whether inlined functions are told apart.
    pub fn inline(&self, default: bool) -> bool {
        self.inline || (default && !self.no_inline)
    }

    /// Whether the user wants inlined functions counted as part of others.
    pub fn is_without_inlined(&self) -> bool {
        self.no_inline
    }

    /// Tells inlined functions apart from now on.
    pub fn tell_inlined(&mut self) {
        self.inline = true;
    }

    /// How the recording is to be analyzed.
    pub fn analyze_options(
        &self,
        recording: &Recording,
        path: &Path,
        needed: Needed,
    ) -> anyhow::Result<analyze::Options> {
        let machine = recording.metadata().map(|metadata| &metadata.machine);
        let stored = || -> anyhow::Result<Option<StoredModel>> {
            let Some(machine) = machine else { return Ok(None) };
            Ok(folders().find(&machine.cpu_identity)?)
        };
        // A stored model that cannot be read is no reason to report nothing.
        let found = || {
            let found = folders().find(&machine?.cpu_identity);
            found.unwrap_or_else(|error| {
                say(format_args!("warning: the stored power model is not used: {error}"));
                None
            })
        };
        let (model, stored_model) = match &self.model {
            ModelArg::Auto => (ModelChoice::Auto, found()),
            ModelArg::OfRecording => (ModelChoice::SelfCalibrated, None),
            ModelArg::Time => (ModelChoice::Time, None),
            ModelArg::Preset => {
                let name = machine.and_then(|machine| machine.microarchitecture.as_deref());
                (ModelChoice::Exactly(Preset::for_microarchitecture(name).model()), None)
            }
            ModelArg::Stored => {
                let stored = stored()?.with_context(|| {
                    let cpu = machine.map_or("this recording's CPU", |machine| &machine.cpu_model);
                    format!("no model is stored for {cpu}: make one there with `eprof calibrate`")
                })?;
                (ModelChoice::Exactly(checked(stored, recording)?), None)
            }
            ModelArg::File(path) => (ModelChoice::Exactly(checked(folder::read(path)?, recording)?), None),
        };
        Ok(analyze::Options {
            dimensions: needed.dimensions,
            watts: self.watts,
            // Only stacks are unwound with these; the file was closed when the recording ended.
            symbolize: SymbolizeOptions {
                sysroot: self.symfs.clone(),
                recorded_at: modified(path),
                ..SymbolizeOptions::default()
            },
            unwind_files: UnwindFiles::default(),
            bucket: self.bucket,
            keep_buckets: needed.slices,
            model,
            earlier: None,
            stored_model,
            static_energy: match self.static_energy {
                StaticArg::Row => StaticEnergy::Row,
                StaticArg::Spread => StaticEnergy::Spread,
            },
            functions: None,
            threads: None,
            counted: None,
        })
    }

    /// Where functions are found while the recording is read, if nothing else is asked for: just where their names are
    /// found in the end. What a server may have is not known before that; and a file must not be younger than the recording's
    /// beginning, for its end is not known yet.
    fn functions(
        &self,
        recording: &Recording,
        path: &Path,
        needed: Needed,
        symbolize: &SymbolizeOptions,
    ) -> Option<FunctionsAlone> {
        let of_stacks = needed.functions.filter(|_| !symbolize.inlines && !symbolize.lines)?;
        let started = || {
            let started = Duration::from_nanos(recording.metadata()?.started_unix_ns);
            SystemTime::UNIX_EPOCH.checked_add(started)
        };
        symbolize.debuginfod.is_none().then(|| FunctionsAlone {
            symbols: SymbolizeOptions {
                recorded_at: started().or_else(|| modified(path)),
                ..symbolize.clone()
            },
            of_stacks,
        })
    }

    /// How addresses are to be symbolized, but for when the recording ended.
    fn symbolize_options(&self, recording: &Recording, needed: Needed) -> SymbolizeOptions {
        let defaults = SymbolizeOptions::default();
        let mut debug_dirs = defaults.debug_dirs.clone();
        debug_dirs.extend(self.debug_dir.iter().cloned());
        SymbolizeOptions {
            inlines: self.inline(needed.inline),
            lines: needed.lines,
            demangle: !self.no_demangle,
            debug_dirs,
            debuginfod: self.debuginfod.then(Debuginfod::default),
            sysroot: self.symfs.clone(),
            kernel_cache: cache_folder(),
            ..recorded_kernel::options(recording)
        }
    }
}

/// Where the user's programs keep what they can make again: `$XDG_CACHE_HOME/eprof`, or `.cache/eprof` in the home
/// folder.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("eprof"))
}

/// Opens a recording; says how to make one where the usual one is not there.
pub fn open(path: &Path) -> anyhow::Result<Recording> {
    or_say_how_to_record(path, Recording::open(path))
}

/// Opens a recording, or begins to read what may be the text of another tool.
fn open_any(path: &Path) -> anyhow::Result<Opened> {
    or_say_how_to_record(path, Recording::open_or_other(path))
}

fn or_say_how_to_record<T>(path: &Path, opened: Result<T, RecordingError>) -> anyhow::Result<T> {
    if path == Path::new(DEFAULT_RECORDING) && !path.exists() {
        let others = recordings::count_in(Path::new("."));
        let way = match others {
            0 => "make one with `eprof record COMMAND`, or name a file with -i".to_owned(),
            1 => "there is another recording, which `-i .` reads".to_owned(),
            _ => format!(
                "there are {others} other recordings, such as of the ranks of a job: `-i .` reads them all, as one"
            ),
        };
        return opened.with_context(|| format!("no {DEFAULT_RECORDING} here: {way}"));
    }
    if path.is_dir() && recordings::count_in(path) > 0 {
        bail!("{} is a folder of recordings, and this is of one: name one of its files", path.display());
    }
    opened.map_err(|error| match repair(&error, path) {
        Some(repair) => anyhow::anyhow!("{:#}; {repair}", anyhow::Error::from(error)),
        None => error.into(),
    })
}

/// What helps where a file cannot be read at all.
fn repair(error: &RecordingError, path: &Path) -> Option<String> {
    let RecordingError::PerfData(error) = error else { return None };
    let name = input_name(path);
    match error {
        ReadError::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            denied::repair(path).map(|repair| format!("recordings are their owner's alone: {repair}"))
        }
        ReadError::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Some(format!("`eprof record -o {name} COMMAND` would make it"))
        }
        ReadError::Empty { .. } => Some(format!("`eprof record -o {name} COMMAND` records anew")),
        _ => None,
    }
}

/// When the recording began: by an instant that was taken on its clock and on the wall clock, or by what its recorder
/// wrote down.
fn started(recording: &Recording, profile: &Profile) -> Option<SystemTime> {
    let by_clocks = recording.features().clock.map(|pair| {
        let wall_clock = i128::from(pair.wall_clock_ns) - i128::from(pair.clock_ns);
        wall_clock + i128::from(profile.start.as_nanos())
    });
    let written = || recording.metadata().map(|metadata| i128::from(metadata.started_unix_ns));
    let nanos = u64::try_from(by_clocks.or_else(written)?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))
}

fn end(metadata: &Metadata, profile: &Profile) -> Option<SystemTime> {
    let start = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(metadata.started_unix_ns))?;
    start.checked_add(Duration::from_nanos(profile.duration.as_nanos()))
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// What was recorded, in a line.
fn subject(recording: &Recording) -> Option<String> {
    let numbers = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match recording.metadata() {
        Some(metadata) => Some(match &metadata.target {
            Target::Command { argv, .. } => argv.join(" "),
            Target::Processes(pids) => format!("process {}", numbers(pids)),
            Target::Threads(tids) => format!("thread {}", numbers(tids)),
            Target::System => {
                let group = metadata.identity.as_ref().and_then(|identity| identity.cgroup.as_deref());
                group.map_or_else(|| "the whole system".to_owned(), |group| format!("control group {group}"))
            }
        }),
        None => {
            let command = &recording.features().command_line;
            let program = Path::new(command.first()?).file_name().and_then(OsStr::to_str)?;
            let arguments = command.iter().skip(1).map(String::as_str);
            Some([program].into_iter().chain(arguments).collect::<Vec<_>>().join(" "))
        }
    }
}

/// A stored model, if it fits the recorded machine and its events.
fn checked(stored: StoredModel, recording: &Recording) -> anyhow::Result<PowerModel> {
    if let Some(metadata) = recording.metadata() {
        let events = metadata.events.iter().filter_map(|event| Some((event.role?, event.encoding.as_str())));
        stored.check(&metadata.machine.cpu_identity, events)?;
    }
    Ok(stored.model)
}

fn joules(text: &str) -> Result<Joules, String> {
    const EXPECTED: &str = "expected joules, such as 1J, 0.5 or 200mJ";
    let (number, factor) = match text.strip_suffix("mJ") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('J').unwrap_or(text), 1.0),
    };
    let joules: f64 = number.trim().parse().map_err(|_| EXPECTED)?;
    let joules = joules * factor;
    if joules.is_finite() && joules > 0.0 {
        Ok(Joules::from_joules(joules))
    } else {
        Err(EXPECTED.to_owned())
    }
}

fn watts_range(text: &str) -> Result<WattsRange, String> {
    const EXPECTED: &str = "expected two numbers of watts, such as 10:65";
    let (idle, busy) = text.split_once(':').ok_or(EXPECTED)?;
    let watts =
        |text: &str| text.trim().parse::<f64>().ok().filter(|watts| watts.is_finite() && *watts >= 0.0);
    match (watts(idle), watts(busy)) {
        (Some(idle), Some(busy)) if busy >= idle => {
            Ok(WattsRange { idle: Watts::from_watts(idle), busy: Watts::from_watts(busy) })
        }
        (Some(_), Some(_)) => Err("a busy machine needs no less than an idle one".to_owned()),
        _ => Err(EXPECTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joules_with_or_without_their_unit() {
        for (text, expected) in [("1J", 1.0), ("200mJ", 0.2), ("0.5", 0.5)] {
            assert!((joules(text).expect(text).as_joules() - expected).abs() < 1e-12);
        }
        for wrong in ["0", "-1J", "J", "nanJ", "1 kWh"] {
            assert!(joules(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn files_that_cannot_be_read_have_a_repair() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.data");
        std::fs::write(&file, "").expect("written");
        let denied = ReadError::Open { path: file.clone(), source: io::ErrorKind::PermissionDenied.into() };
        let denied = or_say_how_to_record::<()>(&file, Err(denied.into())).expect_err("denied").to_string();
        assert!(denied.contains("a.data is your own") && denied.contains("chmod u+rwX "), "{denied}");
        let path = Path::new("run/a.data");
        let said = |error: ReadError| {
            or_say_how_to_record::<()>(path, Err(error.into())).expect_err("an error").to_string()
        };
        let open = |kind: io::ErrorKind| said(ReadError::Open { path: path.to_owned(), source: kind.into() });
        assert!(
            open(io::ErrorKind::NotFound).ends_with("`eprof record -o run/a.data COMMAND` would make it")
        );
        let empty = said(ReadError::Empty { path: path.to_owned() });
        assert!(empty.ends_with("; `eprof record -o run/a.data COMMAND` records anew"), "{empty}");
    }

    #[test]
    fn watts_are_two_numbers() {
        let range = watts_range("10:65.5").expect("valid");
        assert_eq!((range.idle.as_watts(), range.busy.as_watts()), (10.0, 65.5));
        for wrong in ["10", "65:10", "a:b", "-1:5", "1:inf", ""] {
            assert!(watts_range(wrong).is_err(), "{wrong:?}");
        }
    }
}

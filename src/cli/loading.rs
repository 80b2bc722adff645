//! The way from a recording's file to a profile with symbols.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use eprof::analyze::{self, Analysis, MemoryLimit};
use eprof::profile::{Profile, ProfileParts};
use eprof::recording::metadata::{Metadata, MetersRead, Target};
use eprof::recording::node_meters::{Lending, NodeMeters};
use eprof::recording::{Opened, Recording};
use eprof::report::Verified;
use eprof::symbolize::{KernelListAhead, SymbolizeOptions, Symbolizer, Symbols};
use eprof::text_profile::{self, TextOptions, TextProfile};
use eprof::units::Nanoseconds;
use eprof::verify;
use perf_data::attr::{EventAttr, flag};
use perf_data::format::sample_type;
use perf_data::input_name;

use super::input::{InputArgs, modified};
use super::model::folders;
use super::needed::Needed;
use super::opening::open_any;
use super::work_progress::WorkProgress;

/// What is to be said of a recording that was meant to be reported together with others.
const LEFT_TO_ANOTHER: &str = "another recorder of this machine read its meters closely, and this one at its ends and now and then, if at all: joules \
     are coarsely divided in time. Give the recordings of all ranks, or their folder, and that one's readings are used";

/// The same of one that was meant to be reported with whoever read the meters, and its recorder was told to read none.
const WITHOUT_METERS: &str = "its recorder was told to read no meters (--meters none), and nothing that was given with it has those of its machine. Give the recordings of all ranks, or their folder, and what others read is used";

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

/// How a recording is read.
pub(super) struct Reading<'m> {
    pub memory: MemoryLimit,
    /// They were read by recorders of the same machine.
    pub meters: &'m NodeMeters,
    /// Others are read at the same time: this one has so many threads, and shows nothing of how far it is.
    pub beside_others: Option<usize>,
}

impl Reading<'_> {
    fn shows(&self, progress: impl FnOnce() -> WorkProgress) -> Option<WorkProgress> {
        self.beside_others.is_none().then(progress)
    }
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
    /// Reads any recording with the same options, within so much memory.
    pub fn load_file(&self, path: &Path, needed: Needed, memory: MemoryLimit) -> anyhow::Result<Loaded> {
        let Loaded { analysis, symbols, subject, verified, started, events, symbolizer } = self.read(
            path,
            needed,
            &Reading { memory, meters: &NodeMeters::default(), beside_others: None },
        )?;
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

    /// Reads a recording, or what another tool printed.
    pub(super) fn read(
        &self,
        path: &Path,
        needed: Needed,
        reading: &Reading<'_>,
    ) -> anyhow::Result<Loaded<Found>> {
        let mut recording = match open_any(path)? {
            Opened::Recording(recording) => recording,
            Opened::Other(text) => return self.read_text(path, text, needed, reading),
        };
        let lending = reading.meters.lend_to(&mut recording);
        let recording: Arc<Recording> = Arc::from(recording);
        let mut options = self.analyze_options(&recording, path, needed)?;
        let mut symbolize = self.symbolize_options(&recording, needed);
        (options.threads, symbolize.threads) = (reading.beside_others, reading.beside_others);
        options.functions = self.functions(&recording, path, needed, &symbolize);
        let has_kernel_code =
            |attr: &EventAttr| attr.samples(sample_type::IP) && !attr.has(flag::EXCLUDE_KERNEL);
        let has_kernel_code = recording.events().iter().any(|event| has_kernel_code(&event.attr));
        let kernel_list = has_kernel_code.then(|| KernelListAhead::begin(&symbolize)).flatten();
        let progress = reading.shows(|| WorkProgress::reading(&recording));
        let mut analysis = Analysis::new(&recording, &options, reading.memory);
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
        if let Lending::LentForAPart { metered, of } = lending {
            profile.warnings.push(format!(
                "nobody who is reported with it read its machine's meters in {:.1} of its {:.1} s: samples of that time have no joules",
                of.as_secs_f64() - metered.as_secs_f64(),
                of.as_secs_f64()
            ));
        }
        let subject = subject(&recording);
        let verified = self.verified(metadata);
        let started = started(&recording, profile)
            .or_else(|| modified(path)?.checked_sub(Duration::from_nanos(profile.duration.as_nanos())));
        let events = recording.events().iter().map(|event| (event.name.clone(), event.attr)).collect();
        // Beside what follows: a large file takes the kernel a while to unmap.
        let _ = thread::Builder::new().spawn(move || drop(recording));
        let mut symbolizer = Symbolizer::new(symbolize).with_kernel_list(kernel_list);
        let progress = reading.shows(|| {
            WorkProgress::of(format!("finding the names of {} addresses", profile.addresses.len()))
        });
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
        let identity = &metadata.filter(|_| self.divides_as_usual())?.machine.cpu_identity;
        let found = verify::find(&folders(), identity)?;
        let (mean_error, worst_error) = (found.verdict.mean_error, found.verdict.worst_error);
        Some(Verified { mean_error, worst_error, date: found.date() })
    }

    /// Reads what another tool printed.
    fn read_text(
        &self,
        path: &Path,
        text: impl io::Read,
        needed: Needed,
        reading: &Reading<'_>,
    ) -> anyhow::Result<Loaded<Found>> {
        let options = TextOptions { cpus: needed.dimensions.cpus };
        let _progress = reading.shows(|| WorkProgress::of(format!("reading {}", input_name(path))));
        let TextProfile { mut profile, symbols, cpus, cpus_are_told, .. } =
            text_profile::read(text, options).with_context(|| format!("cannot read {}", input_name(path)))?;
        if let Some(watts) = self.watts {
            if profile.cells.iter().any(|cell| cell.time > Nanoseconds::ZERO) {
                analyze::estimate(&mut profile, cpus, watts);
                if !cpus_are_told {
                    profile.warnings.push(format!(
                        "the text does not say how many CPUs the machine has, and {cpus} are taken, as samples name no \
                         higher number: joules are too many by as much as there are more. `perf script --header` says it"
                    ));
                }
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

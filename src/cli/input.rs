//! Options of all verbs that read a recording: which one, how its joules are divided, and where names are looked for.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::{Args, ValueEnum};
use eprof::analyze::{self, FunctionsAlone, MemoryLimit, ModelChoice, StaticEnergy, WattsRange};
use eprof::power_model::folder;
use eprof::power_model::model::PowerModel;
use eprof::power_model::presets::Preset;
use eprof::power_model::stored::StoredModel;
use eprof::recording::Recording;
use eprof::symbolize::{Debuginfod, SymbolizeOptions, UnwindFiles};
use eprof::units::{Joules, Watts};

use super::model::folders;
use super::needed::Needed;
use super::opening::DEFAULT_RECORDING;
use super::output::say;
use super::{memory, recorded_kernel, recordings};

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
    pub(super) watts: Option<WattsRange>,

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

    /// Whether joules are divided as they are if nothing is said.
    pub fn divides_as_usual(&self) -> bool {
        self.model == ModelArg::Auto && self.bucket.is_none()
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
    pub(super) fn functions(
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
    pub(super) fn symbolize_options(&self, recording: &Recording, needed: Needed) -> SymbolizeOptions {
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

pub(super) fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
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
    fn watts_are_two_numbers() {
        let range = watts_range("10:65.5").expect("valid");
        assert_eq!((range.idle.as_watts(), range.busy.as_watts()), (10.0, 65.5));
        for wrong in ["10", "65:10", "a:b", "-1:5", "1:inf", ""] {
            assert!(watts_range(wrong).is_err(), "{wrong:?}");
        }
    }
}

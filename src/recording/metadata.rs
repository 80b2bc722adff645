//! What a recording says about itself beyond what perf.data has a place for.
//!
//! It travels as JSON in the payload of the first samples of the event [`METADATA_EVENT`], so that a
//! file cut off anywhere still explains what it holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::{Joules, Nanoseconds, Watts};

/// Name of the event whose samples carry the [`Metadata`] in pieces.
pub const METADATA_EVENT: &str = "eprof/metadata/";
/// Name of the event whose samples carry [`super::energy::CpuTimes`].
pub const CPU_TIMES_EVENT: &str = "eprof/cpu-times/";
/// The version of [`Metadata`] written by this version of eprof.
pub const METADATA_FORMAT: u32 = 1;

/// Everything a reader must know to turn the recording into joules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Version of this structure; a reader refuses a higher one than it knows.
    pub format: u32,
    /// Version of the eprof that recorded.
    pub eprof_version: String,
    /// eprof's own command line.
    pub command_line: Vec<String>,
    /// What was recorded.
    pub target: Target,
    /// Name of the clock that stamps samples and readings.
    pub clock: String,
    /// Wall-clock time of the start, nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: u64,
    /// Process id of the recorder, so that its own work can be told from the program's.
    pub recorder_pid: u32,
    /// Samples cover every process on every CPU, not only the target.
    pub system_wide_samples: bool,
    /// The machine that was recorded.
    pub machine: MachineInfo,
    /// Energy domains, in the order of their events in the file.
    pub domains: Vec<DomainInfo>,
    /// Sampled events and what a power model says of each.
    pub events: Vec<EventInfo>,
    /// What the recorder had to do without, in sentences for the reader of a report.
    pub warnings: Vec<String>,
}

/// What a recording was pointed at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A program started by the recorder.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Its process id.
        pid: u32,
    },
    /// Running processes, with all their threads and children to come.
    Processes(Vec<u32>),
    /// Single running threads.
    Threads(Vec<u32>),
    /// Everything that ran.
    System,
}

/// The recorded machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineInfo {
    /// Host name.
    pub hostname: String,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: String,
    /// Architecture, as `uname -m` prints it.
    pub arch: String,
    /// The CPU's name for people.
    pub cpu_model: String,
    /// The CPU's name for model files: `GenuineIntel-6-2D-7`, `AuthenticAMD-25-1-1`, `arm-0x41-0xd0c-r3p1`.
    pub cpu_identity: String,
    /// Microarchitecture in short, if known: `sandybridge`, `zen4`, `neoverse-n1`.
    pub microarchitecture: Option<String>,
    /// One entry per online CPU.
    pub cpus: Vec<CpuInfo>,
}

/// Where one logical CPU sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuInfo {
    /// Number of the logical CPU.
    pub cpu: u32,
    /// Core within its package; SMT siblings share it.
    pub core: u32,
    /// Die within its package.
    pub die: u32,
    /// Package (socket).
    pub package: u32,
    /// Kind of core on hybrid machines.
    pub kind: CoreKind,
}

/// The kinds of core of hybrid machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreKind {
    /// The only kind, or the large kind.
    #[default]
    Performance,
    /// The small kind (Intel `cpu_atom`, Arm LITTLE).
    Efficiency,
}

/// One energy domain: a part of the machine whose joules are counted together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DomainInfo {
    /// Unique name, also in the event's name: `package-0`, `package-0-cores`, `dram-0`, `gpu-0`.
    pub name: String,
    /// What is counted.
    pub kind: DomainKind,
    /// The domain that contains this one: a sum over domains must never take both.
    pub parent: Option<String>,
    /// Where the readings come from: `power PMU`, `powercap`, `estimate`, ...
    pub source: String,
    /// Measured by hardware, or estimated.
    pub method: Method,
    /// Package whose CPUs this domain feeds; `None` when it is the whole machine or no CPU.
    pub package: Option<u32>,
    /// CPUs fed by this domain where that is narrower than a package (a die, one core).
    pub cpus: Vec<u32>,
    /// Smallest step of the counter.
    pub resolution: Option<Joules>,
    /// How often the counter moves, as measured at the start.
    pub refresh: Option<Nanoseconds>,
    /// Constant part of the power that no program causes, where known: an estimate's idle watts.
    pub static_power: Option<Watts>,
    /// Address on the PCI bus, of a graphics card.
    #[serde(default)]
    pub bus_id: Option<String>,
    /// The number that the recorded program knows a graphics card by, where that is certain.
    #[serde(default)]
    pub cuda_ordinal: Option<u32>,
}

impl DomainInfo {
    /// A domain that feeds the whole machine and lies in no other; nothing more is known of it.
    pub fn new(name: impl Into<String>, kind: DomainKind, source: impl Into<String>, method: Method) -> Self {
        Self {
            name: name.into(),
            kind,
            parent: None,
            source: source.into(),
            method,
            package: None,
            cpus: Vec::new(),
            resolution: None,
            refresh: None,
            static_power: None,
            bus_id: None,
            cuda_ordinal: None,
        }
    }
}

/// What a domain counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DomainKind {
    /// The whole machine or board.
    Platform,
    /// A CPU package (socket or die).
    Package,
    /// All cores of a package.
    Cores,
    /// One core.
    Core,
    /// The integrated graphics or other uncore part.
    Uncore,
    /// Memory.
    Dram,
    /// A graphics card.
    Gpu,
    /// The battery's discharge.
    Battery,
}

/// Whether a number of joules was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Counted by a meter.
    Measured,
    /// Computed from time and assumed watts.
    Estimated,
}

/// A sampled event and its place in the power model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventInfo {
    /// Name as in the file's event descriptions.
    pub name: String,
    /// Role in the model (`clk`, `inst`, `resource`, `l2`, `llc-miss`), if it has one.
    pub role: Option<String>,
    /// Encoding as sysfs or perf would write it, for those who compare models.
    pub encoding: String,
    /// Model joules per event, by domain kind (key: `package`, `cores`, `dram`). Relative weights only
    /// where the recording has no calibrated model.
    pub joules_per_event: BTreeMap<String, f64>,
    /// Kind of core this event counts on.
    pub core_kind: CoreKind,
}

//! What a recording says about itself beyond what perf.data has a place for.
//!
//! It travels as JSON in the payload of the first samples of the event [`METADATA_EVENT`], so that a
//! file cut off anywhere still explains what it holds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hardware::{CoreKind, DomainInfo, DomainKind, MachineInfo, Role};
use crate::identity::Identity;

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
    /// Where the recording comes from; `None` of recorders that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Who read the machine's meters.
    #[serde(default, skip_serializing_if = "MetersRead::is_by_itself")]
    pub meters: MetersRead,
}

/// Who read a machine's meters while a recording was made, where several recorders may have run on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetersRead {
    /// Its recorder, whoever else did.
    #[default]
    ByItself,
    /// Its recorder, closely, and on behalf of the others.
    ForAll,
    /// Another recorder closely. Its own read them at its beginning and end and now and then, and closely from when the
    /// former had ended.
    ByAnother,
    /// Not its recorder.
    Not,
}

impl MetersRead {
    /// As where nobody else records.
    pub fn is_by_itself(&self) -> bool {
        *self == Self::ByItself
    }
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

/// A sampled event and its place in the power model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventInfo {
    /// Name as in the file's event descriptions.
    pub name: String,
    /// Role in the model, if it has one.
    #[serde(default, deserialize_with = "Role::known")]
    pub role: Option<Role>,
    /// Encoding as sysfs or perf would write it, for those who compare models.
    pub encoding: String,
    /// Model joules per event, by kind of domain. Relative weights only where the recording has no calibrated
    /// model.
    pub joules_per_event: BTreeMap<DomainKind, f64>,
    /// Kind of core this event counts on.
    pub core_kind: CoreKind,
}

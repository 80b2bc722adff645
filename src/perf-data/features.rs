//! The feature sections: what a recorder writes down about the machine and itself, behind the records or, in a
//! pipe, among them.

use crate::attr::EventAttr;
use crate::record::CpuMode;
use crate::time::{Nanoseconds, Timestamp};

mod read;
mod write;

pub(crate) use read::build_id;

/// What the feature sections say.
///
/// Of a file that is read, what it does not have, or has damaged, is `None` or empty. Of one that is
/// [written](crate::writer::PerfDataWriter::finish), what is `None` or empty is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Features {
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Release of the kernel.
    pub os_release: Option<String>,
    /// Version of the recorder.
    pub version: Option<String>,
    /// Machine architecture as `uname -m` prints it.
    pub arch: Option<String>,
    /// CPUs that were online, and that there were in all.
    pub cpus: Option<CpuCount>,
    /// The CPU's name for people.
    pub cpu_description: Option<String>,
    /// The CPU's name for programs: `GenuineIntel,6,42,7`.
    pub cpu_id: Option<String>,
    /// Memory in kB.
    pub total_memory_kb: Option<u64>,
    /// The recorder's command line.
    pub command_line: Vec<String>,
    /// Attributes, ids and names of the events. A file that is written describes the events it was created with,
    /// whatever is here.
    pub event_descriptions: Vec<EventDescription>,
    /// Memory nodes.
    pub numa_nodes: Vec<NumaNode>,
    /// Numbers (`perf_event_attr::type`) and names of the PMUs.
    pub pmu_names: Vec<(u32, String)>,
    /// Groups of events.
    pub groups: Vec<EventGroup>,
    /// Build-ids of files that samples lie in.
    pub build_ids: Vec<BuildId>,
    /// Times of the first and the last sample.
    pub sample_times: Option<(Timestamp, Timestamp)>,
    /// Resolution of the clock that was chosen.
    pub clock_resolution: Option<Nanoseconds>,
    /// One instant on the recording's clock and on the wall clock.
    pub clock: Option<ClockPair>,
    /// How records are compressed.
    pub compression: Option<Compression>,
    /// Do not write that samples have branch stacks, though they have: of such files `perf report` counts branches and
    /// shows no periods, unless it is told `--no-branch-stack`.
    pub hides_branch_stacks: bool,
    /// Tracepoint formats, as the recorder read them from tracefs.
    pub tracing_data: Vec<u8>,
}

/// Numbers of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuCount {
    /// CPUs that were online.
    pub online: u32,
    /// CPUs that there were in all.
    pub available: u32,
}

/// An event as the recorder described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDescription {
    /// Its attribute.
    pub attr: EventAttr,
    /// Its name.
    pub name: String,
    /// Its ids.
    pub ids: Vec<u64>,
}

/// A memory node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its memory in kB.
    pub total_kb: u64,
    /// What of it was free.
    pub free_kb: u64,
    /// Its CPUs, as a list: `0-3,8`.
    pub cpus: String,
}

/// Events that were scheduled together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventGroup {
    /// Its name, if it was given one.
    pub name: String,
    /// Index of the leader in the list of events.
    pub leader: u32,
    /// Number of events, the leader included.
    pub members: u32,
}

/// The build-id of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildId {
    /// Whether it is a program's file, the kernel or a module.
    pub mode: CpuMode,
    /// Process, for guests; [`BuildId::HOST`] otherwise.
    pub pid: i32,
    /// The id, without padding where its length is known; at most 20 bytes.
    pub id: Vec<u8>,
    /// Path of the file as its mappings name it, or `[kernel.kallsyms]` and the like.
    pub path: Vec<u8>,
}

impl BuildId {
    /// The process of files that are no guest's.
    pub const HOST: i32 = -1;

    /// Of a file that programs map.
    pub fn of_file(id: Vec<u8>, path: Vec<u8>) -> Self {
        Self { mode: CpuMode::User, pid: Self::HOST, id, path }
    }

    /// Of the kernel or one of its modules.
    pub fn of_kernel(id: Vec<u8>, path: Vec<u8>) -> Self {
        Self { mode: CpuMode::Kernel, pid: Self::HOST, id, path }
    }
}

/// One instant on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// The recording's clock (`CLOCK_*`).
    pub clockid: u32,
    /// Nanoseconds since 1970-01-01 UTC.
    pub wall_clock_ns: u64,
    /// Nanoseconds on the recording's clock.
    pub clock_ns: u64,
}

/// How records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// The method: [`Compression::ZSTD`], the only one there is.
    pub kind: u32,
    /// Its level.
    pub level: u32,
    /// Size before over size after, rounded.
    pub ratio: u32,
    /// Bytes of the recorder's largest ring, or whatever else bounds what one compressed record expands to.
    pub ring_size: u32,
}

impl Compression {
    /// Compressed with zstd.
    pub const ZSTD: u32 = 1;
}

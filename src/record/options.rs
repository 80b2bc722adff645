//! What a recording is asked to be, in the parts that its phases take.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::identity::Labels;
use crate::meter::MeterOptions;
use crate::power_model::stored::StoredModel;
use crate::process::Streams;

/// Everything that can be chosen about a recording.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Whose samples to take.
    pub target: TargetOptions,
    /// What to sample of them, and how.
    pub sampling: SamplingOptions,
    /// What to learn of their GPU kernels.
    pub gpu: GpuOptions,
    /// How to read the energy.
    pub energy: EnergyOptions,
    /// Where it all goes.
    pub output: OutputOptions,
    /// End after this time, whatever still runs.
    pub duration: Option<Duration>,
    /// Capabilities that a recorder other than root's keeps when all is open, as a set: 0 for none.
    pub kept_rights: u64,
}

/// Whose samples to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetOptions {
    /// The tasks to record.
    pub tasks: TargetTasks,
    /// Whether to sample other processes beside them.
    pub others: OtherProcesses,
    /// A program to start whose end ends the recording of tasks that run already; it is not recorded itself.
    pub until: Option<Vec<OsString>>,
    /// The user to run the program as; `None` for the one who runs eprof.
    pub run_as: Option<String>,
    /// Where the program writes to, where that is not where the recorder does.
    pub streams: Streams,
}

/// The tasks to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetTasks {
    /// A program to start, with its arguments, and all that it starts.
    Command(Vec<OsString>),
    /// Running processes, all their threads and what they start.
    Processes(Vec<u32>),
    /// Running threads and what they start.
    Threads(Vec<u32>),
    /// All tasks of a control group: its path as the kernel tells it (`/system.slice/x.service`), or its
    /// folder.
    ControlGroup(PathBuf),
    /// Everything on every CPU, until the command ends if there is one.
    System(Option<Vec<OsString>>),
}

impl TargetOptions {
    /// The program to start, whether it is recorded or only ends the recording.
    pub fn program(&self) -> Option<&[OsString]> {
        self.tasks.command().or(self.until.as_deref())
    }
}

impl TargetTasks {
    /// The program to start, if there is one.
    pub fn command(&self) -> Option<&[OsString]> {
        match self {
            Self::Command(argv) | Self::System(Some(argv)) => Some(argv),
            Self::Processes(_) | Self::Threads(_) | Self::ControlGroup(_) | Self::System(None) => None,
        }
    }
}

/// Whether other processes are sampled beside the target, so that their share of the energy is known by
/// event and not by CPU time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OtherProcesses {
    /// Where that tells more and is permitted: a program started here, on CPUs whose energy is measured and
    /// whose events the model chose.
    #[default]
    Automatic,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to sample, and how.
#[derive(Debug, Clone)]
pub struct SamplingOptions {
    /// Events by name; empty for those that eprof chooses.
    pub events: Vec<String>,
    /// How often to sample.
    pub rate: SamplingRate,
    /// The model that was calibrated on this machine: it tells how often to sample each of its events, and
    /// what they cost.
    pub model: Option<StoredModel>,
    /// What to know of the call path of each sample.
    pub call_graph: CallGraph,
    /// Leave the kernel's work out of the samples.
    pub user_only: bool,
    /// Whether samples tell the control groups of their tasks.
    pub cgroups: ControlGroups,
    /// Samples are taken in a part of the time only; `None`: always.
    pub duty: Option<DutyCycle>,
}

/// Samples are taken for a while at some moment of each cycle. The meters are read all the time; what was spent between is said to be
/// lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DutyCycle {
    /// How long samples are taken.
    pub on: Duration,
    /// From one cycle's start to the next.
    pub cycle: Duration,
}

/// Whether samples tell the control groups of their tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ControlGroups {
    /// Not at all: what is recorded is usually in one.
    #[default]
    Never,
    /// If the kernel can.
    IfPossible,
    /// It was asked for; where the kernel cannot, that is said.
    Asked,
}

/// How often to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SamplingRate {
    /// As eprof chooses for each event.
    #[default]
    Default,
    /// The same, but so many times as rarely. Samples stand for equal joules as before, which a frequency would not keep.
    Thinned(NonZeroU32),
    /// About this many samples a second of each event on each CPU.
    Frequency(u64),
    /// One sample each time the event happened this often (nanoseconds for clocks).
    Period(u64),
}

/// What to know of the call path of each sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraph {
    /// Nothing but the instruction itself.
    None,
    /// Return addresses found by following frame pointers.
    FramePointers {
        /// Bytes of the top of the stack to copy beside, a multiple of eight, in which the callers of functions without
        /// a frame are found later; 0 for none. On Arm these callers are in a register.
        stack_bytes: u32,
    },
    /// A copy of the top of the stack, unwound later by the program's unwind tables.
    Dwarf {
        /// Bytes of stack to copy, a multiple of eight below 65528.
        stack_bytes: u32,
    },
    /// The CPU's record of the last branches.
    LastBranches,
}

impl CallGraph {
    /// Frame pointers, and as much of the stack as the callers of most functions without a frame need: a function that
    /// calls none has 128 bytes below the stack pointer for itself, and moves that for more; then there are six
    /// saved registers and the return address.
    pub const WITH_HIDDEN_CALLERS: Self = Self::FramePointers { stack_bytes: 192 };
}

/// What to learn of a program's GPU kernels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// Where they are launched.
    pub launches: LaunchOptions,
    /// When they ran, by CUPTI in the program.
    pub cupti: Option<CuptiOptions>,
}

/// Whether and how launches of GPU kernels are recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchOptions {
    /// When.
    pub when: GpuLaunches,
    /// CUDA's driver library, if it is not to be looked for.
    pub cuda_library: Option<PathBuf>,
}

/// When launches of GPU kernels are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GpuLaunches {
    /// If a GPU's energy is measured, its driver is found and the kernel permits probes.
    #[default]
    Automatic,
    /// Or else there is no recording.
    Always,
    /// Not at all.
    Never,
}

/// How CUPTI gets into a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CuptiOptions {
    /// CUPTI's own library, if it is none of the usual.
    pub library: Option<PathBuf>,
    /// The library that CUDA is to load, if it is not beside the program.
    pub injection: Option<PathBuf>,
    /// So many launches a second end the watching; 0 for never.
    pub max_rate: Option<u32>,
}

/// How to read the energy.
#[derive(Debug, Clone)]
pub struct EnergyOptions {
    /// Which meters to read, and what to assume without any.
    pub meters: MeterOptions,
    /// Time between two readings of a meter, if its own pace permits.
    pub interval: Duration,
    /// How long the meters are watched before a program is started, to learn what the machine draws at rest. Zero:
    /// not at all.
    pub rest: Duration,
    /// With whom the reading is shared.
    pub sharing: MeterSharing,
}

/// Which of the recorders of one machine reads its meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MeterSharing {
    /// This one, whoever else does.
    #[default]
    Own,
    /// One of those of the job step reads them closely, and the others only at their ends and now and then: so that whatever
    /// happens to that one, no joules are missing. When it has ended, the next one takes over.
    Node,
    /// This one, for all of the job: it records the whole machine.
    Companion,
    /// This one does not.
    Nobody,
}

/// Where a recording goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// File to write.
    pub path: PathBuf,
    /// Compress the records by zstd of this level.
    pub compression_level: Option<i32>,
    /// eprof's own command line, for the file.
    pub command_line: Vec<String>,
    /// What the user calls the recording by.
    pub labels: Labels,
}

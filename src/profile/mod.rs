//! Step 6: the result of attribution, a plain value that every report is made from.
//!
//! Nothing in it is symbolized: code is known by module and address. See [`crate::symbolize`].

use std::sync::Arc;

use crate::hardware::{CpuInfo, DomainInfo, Method};
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

mod balance;
mod error_terms;
mod ids;
mod lost_stretches;
mod meter_curve;
mod origin;
mod parts;
mod stacks;
mod standard_errors;
mod transitions;
mod unexplained_code;
mod variance_sums;

pub use balance::{BALANCE_TOLERANCE, Balance};
pub use error_terms::{ErrorTerms, InSequence, NO_CELL, SampleSequence, TrailFollower};
pub use ids::{AddressId, ModuleId, RecordingId, ThreadIndex};
pub use lost_stretches::{LostStretch, LostStretches};
pub use meter_curve::MeterCurve;
pub use origin::Origin;
pub use parts::ProfileParts;
pub use stacks::{ByCallers, CallersId, StackId, StackTable};
pub use standard_errors::{EQUAL_WATTS_ERROR, Summed, USUAL_REFRESH, meter_error};
pub use variance_sums::{Variance, VarianceSums, standard_errors, variances};

/// How the warning of a recording begins whose file is cut off.
pub const CUT_OFF: &str = "the recording is cut off";

/// How the warning of a recording begins of which nothing can be read behind some place.
pub const DAMAGED: &str = "the recording is damaged";

/// What stands where a function would of processes that ended before their first sample; the name of a module of
/// [`ModuleKind::NotSampled`].
pub const SHORT_PROCESSES: &str = "short processes, not sampled";

/// What processes are called together that ended before their first sample. They are no program's: nobody knows whose each was.
pub const SHORT_PROCESSES_NAME: &str = "[short processes]";

/// Stands in their [`Thread`] for the numbers of a process and a thread, which none of them has alone. The kernel gives out no
/// number as large, and writes -1 for those of tasks that are ending.
pub const SHORT_PROCESSES_ID: u32 = u32::MAX - 1;

/// What tasks are called together that the kernel gives no numbers of any more: it samples what a task does to end, too.
pub const ENDED_TASKS_NAME: &str = "[ended processes]";

/// The numbers that samples of these have: -1 of 32 bits.
pub const ENDED_TASKS_ID: u32 = u32::MAX;

/// Name of the event in [`Profile::events`] that stands for launches of GPU kernels. Its cells' stacks
/// end in kernels, and their time is time of the GPU.
pub const GPU_LAUNCH_EVENT: &str = "gpu-launch";

/// Call paths of so many frames are taken to go on where the kernel followed them no further. It does so for 127 frames by
/// default; of some of those eprof makes one.
pub const DEEPEST_CHAIN: u16 = 120;

/// Where the joules went.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Time of the first sample or reading.
    pub start: Timestamp,
    /// From the first to the last sample or reading.
    pub duration: Nanoseconds,
    /// Energy by domain, with the balance of each.
    pub domains: Vec<DomainEnergy>,
    /// Sampled events.
    pub events: Vec<EventTotals>,
    /// Files and other places that code came from.
    pub modules: Vec<Module>,
    /// Unique code addresses.
    pub addresses: Vec<CodeAddress>,
    /// Unique call stacks.
    pub stacks: StackTable,
    /// Threads that were sampled.
    pub threads: Vec<Thread>,
    /// CPUs of the machine, where known.
    pub cpus: Vec<CpuInfo>,
    /// What was spent: one cell per stack, thread, CPU and event.
    pub cells: Vec<Cell>,
    /// Joules of the cells: `cells.len()` rows of `domains.len()` columns.
    pub cell_joules: Vec<Joules>,
    /// Variances of `cell_joules` in square joules, of the same shape, beside what [`Profile::errors`] tells
    /// of sampling and of the model: of what GPUs spent. Empty where there is none.
    pub cell_variances: Vec<f64>,
    /// The recording in pieces of time, in order, without gaps. Only kept on request.
    pub slices: Vec<TimeSlice>,
    /// When each of the samples was taken, in the order of time; empty where slices are not kept, where there are more than
    /// [`MOST_SAMPLE_TIMES`], and of profiles in parts or merged.
    pub sample_times: Vec<SampleTime>,
    /// Of a merged profile, the gaps in which nobody recorded. Slices leave them out; none lies on both sides of one.
    pub gaps: Vec<Gap>,
    /// How joules were divided among samples; `None` where there are none.
    pub division: Option<Division>,
    /// What the errors of sums of cells follow from; `None` where it is not known.
    pub errors: Option<ErrorTerms>,
    /// Stacks have all callers that samples told, of a recording that asked for them: a stack of one frame had none.
    pub has_call_paths: bool,
    /// Call paths were found in copies of stacks, and not by frame pointers.
    pub copies_stacks: bool,
    /// The recording's end is missing: its recorder was killed, the file cut off, or damaged so that the rest cannot be read.
    pub is_partial: bool,
    /// How often chains of frame pointers lacked callers.
    pub hidden_callers: HiddenCallers,
    /// What the reader of a report must know.
    pub warnings: Vec<String>,
    /// The recordings that it was made from: one, unless profiles were [merged](crate::merge).
    pub recordings: Vec<Origin>,
    /// Of a merged profile, the profiles that it was merged from, in the order of `recordings`.
    pub merged: Vec<MergedPart>,
    /// Of a merged profile, the energy of each machine.
    pub machines: Vec<MachineEnergy>,
}

/// A profile that was merged into another one. Its cells stand in the other's table one after the other.
#[derive(Debug, Clone)]
pub struct MergedPart {
    /// The profile, as it was added.
    pub profile: Arc<Profile>,
    /// The place of its first cell among the merged profile's.
    pub first_cell: usize,
    /// Of each of its domains, the merged profile's column.
    pub columns: Vec<usize>,
}

/// The energy of one machine, in a profile of several recordings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineEnergy {
    /// What the machine is called.
    pub name: String,
    /// Its boot, where that is known.
    pub boot: Option<String>,
    /// Where the joules of each domain of the profile went on this machine; `None` if it has no such domain.
    pub balances: Vec<Option<Balance>>,
    /// What it measured in each of the profile's slices, by domain; empty of domains that it does not have, or of slices that
    /// were not kept.
    pub in_slices: Vec<Vec<Joules>>,
}

/// How often a chain of frame pointers lacked the caller of a function that had set up no frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HiddenCallers {
    /// Samples whose chain was looked at.
    pub samples: u64,
    /// Those whose chain now has what it lacked.
    pub found: u64,
    /// Those whose chain still lacks it: it lay deeper in the stack than was copied, or none of the stack was.
    pub out_of_reach: u64,
    /// Those of which nothing is known, since the unwind tables of their code are not here.
    pub unknown: u64,
}

impl HiddenCallers {
    /// These and those of other samples.
    pub fn and(self, other: Self) -> Self {
        Self {
            samples: self.samples + other.samples,
            found: self.found + other.found,
            out_of_reach: self.out_of_reach + other.out_of_reach,
            unknown: self.unknown + other.unknown,
        }
    }
}

/// How measured joules were divided among samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    /// The power model's name; `time` if there was none.
    pub model: String,
    /// Where its numbers come from.
    pub source: String,
    /// The model is used as it is; the recording was not asked to correct it.
    pub is_exact: bool,
    /// For each event of the profile, why its samples were given no joules; `None` if they were.
    pub left_out: Vec<Option<String>>,
    /// The model of each domain of the profile; `None` for those divided by time.
    pub domains: Vec<Option<DomainDivision>>,
    /// Energy of a bucket.
    pub bucket: Joules,
    /// Why so much.
    pub bucket_reason: BucketReason,
    /// Joules were asked to follow time alone, over the whole recording.
    pub is_by_time: bool,
    /// Static energy was shared out to what ran meanwhile instead of being told apart.
    pub static_is_spread: bool,
    /// The event that joules follow in place of time, of a recording none of whose events tells time: how often it happened says
    /// nothing of energy.
    pub in_place_of_time: Option<String>,
}

impl Division {
    /// Whether an event, by its index in the profile, tells nothing of joules.
    pub fn tells_nothing(&self, event: usize, name: &str) -> bool {
        self.in_place_of_time.as_deref() == Some(name)
            || self.left_out.get(event).is_some_and(Option::is_some)
    }
}

/// The power model of one domain, as used.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainDivision {
    /// Joules of each event of the profile.
    pub joules_per_event: Vec<f64>,
    /// Their standard errors.
    pub std_errors: Vec<f64>,
    /// Constant power, if it is known.
    pub static_power: Option<Watts>,
    /// Its standard error.
    pub static_std_error: Watts,
    /// How it changed while the program ran, if that was seen and is known to be static power.
    pub static_rise: Option<StaticRise>,
    /// The recording itself told the coefficients, not only the model.
    pub is_calibrated: bool,
    /// Share of the variance of measured power, from interval to interval, that the model explains;
    /// `None` where it hardly varied.
    pub explained: Option<f64>,
    /// Mean difference of estimated and measured joules of an interval, as a share of the mean.
    pub mean_error: f64,
    /// What the model leaves unexplained of the power of code; `None` where that is lost in noise.
    pub unexplained: Option<UnexplainedPower>,
    /// What code is believed to draw more or less than the model says where the recording does not tell, as a share.
    pub believed_unexplained: f64,
    /// Number of these intervals.
    pub intervals: usize,
}

/// Static power that changed while a program ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StaticRise {
    /// Watts at the beginning.
    pub from: Watts,
    /// Watts at the end.
    pub to: Watts,
    /// Standard error of the mean difference from what is believed of static power.
    pub std_error: Watts,
}

/// What a model leaves unexplained of the power of code, as the intervals of a recording show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnexplainedPower {
    /// Its standard deviation as a share of that of all by which code differs in power.
    pub of_difference: f64,
    /// Its standard deviation in intervals, as a share of the joules beyond static power.
    pub of_joules: f64,
    /// Length of these intervals in seconds.
    pub seconds: f64,
}

/// Why buckets are as large as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketReason {
    /// One joule, as always.
    Usual,
    /// The user said so.
    Asked,
    /// Smaller, since the recording has few joules.
    ShortRecording,
    /// Larger than wanted: the meters tell no less than this apart.
    MeterResolution,
}

/// What happened between two points in time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSlice {
    /// Its start.
    pub start: Timestamp,
    /// Its end; the next one's start.
    pub end: Timestamp,
    /// Energy that was measured, by domain.
    pub measured: Vec<Joules>,
    /// What the power model says was spent, in all top-level domains together.
    pub modelled: Joules,
    /// Where the joules of all top-level domains together went.
    pub balance: Balance,
    /// What cells had of it; those without anything are left out.
    pub by_cell: Vec<InSlice>,
}

/// So many samples are told one by one at most: what shows more in a picture, or reads a file of more, gains nothing by it.
pub const MOST_SAMPLE_TIMES: usize = 500_000;

/// When a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleTime {
    /// Since when it stands for what ran.
    pub start: Timestamp,
    /// When it was taken.
    pub end: Timestamp,
    /// Its cell, by its place in the profile's table.
    pub cell: u32,
}

/// Time in which nobody recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// How long the slices before it are together.
    pub after: Nanoseconds,
    /// How long it is.
    pub length: Nanoseconds,
}

/// What a cell had of a stretch of time. There are as many as cells and stretches together have, hence small numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InSlice {
    /// The cell, by its place in the profile's table.
    pub cell: u32,
    /// Its joules, of all top-level domains together.
    pub joules: f32,
    /// CPU seconds that its samples stand for there; zero of events that do not tell time.
    pub seconds: f32,
}

/// The energy of one domain: measured, and where it went.
#[derive(Debug, Clone)]
pub struct DomainEnergy {
    /// The domain.
    pub info: DomainInfo,
    /// Where its joules went.
    pub balance: Balance,
}

/// Totals of one sampled event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventTotals {
    /// Its name.
    pub name: String,
    /// Number of samples.
    pub samples: u64,
    /// Sum of the samples' periods: the event's count.
    pub count: u64,
    /// Samples known to be lost, of this event or, for the first event, of a ring that all share.
    pub lost: u64,
    /// Of the samples, those of the recorder and of processes that were not to be recorded: no cell has them.
    pub of_others: u64,
    /// Times the kernel throttled it.
    pub throttled: u64,
}

/// Where code came from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Module {
    /// What it is.
    pub kind: ModuleKind,
    /// Path, or the kernel's name for it (`[vdso]`, `[kernel.kallsyms]`, `//anon`).
    pub path: String,
    /// Build-id, where the recording tells it.
    pub build_id: Option<Vec<u8>>,
    /// Device (major, minor) and inode, where the recording tells it.
    pub inode: Option<(u32, u32, u64)>,
    /// Process that it belongs to, for code that only that process has (JIT, anonymous memory).
    pub pid: Option<u32>,
}

/// Kinds of module; they decide what an address in it means and how it is symbolized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleKind {
    /// An ELF file. Addresses are offsets in the file.
    File,
    /// The vdso. Addresses are offsets from its start.
    Vdso,
    /// The kernel's own text. Addresses are the kernel's.
    Kernel,
    /// A kernel module. Addresses are the kernel's.
    KernelModule,
    /// Memory of a process without a file: JIT code. Addresses are the process's.
    Anonymous,
    /// A function that a just-in-time compiler or the kernel (BPF) announced with its name, which is
    /// `path`. Addresses are offsets in the function.
    Jit,
    /// A kernel of a GPU, of which only the name is known: `path`. Its address is 0.
    GpuKernel,
    /// No code: time of the program that no sample tells of. `path` says of what it is.
    NotSampled,
    /// Code that there was no memory to tell apart.
    Folded,
    /// No mapping was known. Addresses are the process's.
    Unknown,
}

/// One code address, by module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeAddress {
    /// Where it lies.
    pub module: ModuleId,
    /// The address as the module's kind says. For a return address this is already the address
    /// minus one, which lies inside the call.
    pub address: u64,
    /// A frame of the kernel.
    pub kernel: bool,
}

/// A thread that was sampled, or all [short processes](SHORT_PROCESSES_NAME) together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// Name of its process.
    pub process_name: String,
    /// The recording that sampled it.
    pub recording: RecordingId,
    /// Path of the control group that it was in, where samples tell. A thread that moved is there once for each.
    pub cgroup: Option<Arc<str>>,
}

impl Thread {
    /// Its numbers, process and thread; `None` of [short](SHORT_PROCESSES_NAME) and [ended](ENDED_TASKS_NAME) processes, which
    /// have none together.
    pub fn ids(&self) -> Option<(u32, u32)> {
        (!matches!(self.pid, SHORT_PROCESSES_ID | ENDED_TASKS_ID)).then_some((self.pid, self.tid))
    }

    /// Its name, and its numbers where it has some.
    pub fn title(&self) -> String {
        match self.ids() {
            Some((pid, tid)) => format!("{} ({pid}/{tid})", self.name),
            None => self.name.clone(),
        }
    }

    /// The name of its process, and the process's number where it has one.
    pub fn process_title(&self) -> String {
        match self.ids() {
            Some((pid, _)) => format!("{} ({pid})", self.process_name),
            None => self.process_name.clone(),
        }
    }
}

/// What one stack of one thread on one CPU did to one event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The stack.
    pub stack: StackId,
    /// The thread.
    pub thread: ThreadIndex,
    /// The CPU; `None` where the recording does not tell.
    pub cpu: Option<u32>,
    /// Index of the event in [`Profile::events`].
    pub event: u32,
    /// Number of samples.
    pub samples: u64,
    /// Sum of periods.
    pub count: u64,
    /// Time these samples stand for; only of the event that tells time, else zero.
    pub time: Nanoseconds,
}

/// How a profile's joules were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileMethod {
    /// All measured.
    Measured,
    /// All estimated.
    Estimated,
    /// Some domains measured, some estimated.
    Mixed,
    /// There are no joules in this recording.
    None,
}

impl ProfileMethod {
    /// What stands where a reader could take joules for measured: in pictures, names, and call paths of exports.
    pub fn estimate_mark(self) -> Option<&'static str> {
        match self {
            Self::Measured | Self::None => None,
            Self::Estimated => Some("estimated"),
            Self::Mixed => Some("partly estimated"),
        }
    }

    /// Of domains together.
    pub fn of(domains: impl Iterator<Item = Method>) -> Self {
        domains.fold(Self::None, |all, method| match (all, method) {
            (Self::None | Self::Measured, Method::Measured) => Self::Measured,
            (Self::None | Self::Estimated, Method::Estimated) => Self::Estimated,
            _ => Self::Mixed,
        })
    }
}

impl Profile {
    /// How the joules of this profile were found.
    pub fn method(&self) -> ProfileMethod {
        ProfileMethod::of(self.domains.iter().map(|domain| domain.info.method))
    }

    /// Joules of a cell, by domain.
    pub fn joules(&self, cell: usize) -> &[Joules] {
        let columns = self.domains.len();
        &self.cell_joules[cell * columns..(cell + 1) * columns]
    }

    /// Domains that no other domain of this profile contains: the ones that add up to the whole.
    pub fn top_domains(&self) -> impl Iterator<Item = (usize, &DomainEnergy)> {
        top_level(&self.domains)
    }
}

/// Domains, with their index, that no other of them contains: the ones that add up to the whole.
pub fn top_level(domains: &[DomainEnergy]) -> impl Iterator<Item = (usize, &DomainEnergy)> {
    domains.iter().enumerate().filter(|(_, domain)| {
        let parent = domain.info.parent.as_deref();
        !domains.iter().any(|other| Some(other.info.name.as_str()) == parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_were_left_out_or_stand_in_for_time_tell_nothing() {
        let division = |in_place_of_time: Option<&str>| Division {
            model: String::new(),
            source: String::new(),
            is_exact: false,
            left_out: vec![None, Some("it says what cycles say".to_owned())],
            domains: Vec::new(),
            bucket: Joules::from_joules(1.0),
            bucket_reason: BucketReason::Usual,
            is_by_time: false,
            static_is_spread: false,
            in_place_of_time: in_place_of_time.map(str::to_owned),
        };
        let tells_nothing = |in_place_of_time: Option<&str>| {
            let division = division(in_place_of_time);
            [(0, "cycles"), (1, "instructions"), (2, "misses")]
                .map(|(event, name)| division.tells_nothing(event, name))
        };
        assert_eq!(tells_nothing(None), [false, true, false]);
        assert_eq!(tells_nothing(Some("cycles")), [true, true, false]);
    }
}

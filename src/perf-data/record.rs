//! One record of a recording, decoded: what the kernel said, borrowed from the file's bytes.

use crate::format::misc;
use crate::time::Timestamp;

/// Index of an event (an attribute) in [`super::PerfData`]'s list of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventIndex(pub u32);

/// Fields that most records carry: from the sample itself, or from the `sample_id` trailer of others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordContext {
    /// When; `None` if the recording has no times.
    pub time: Option<Timestamp>,
    /// Process; `None` if not recorded.
    pub pid: Option<u32>,
    /// Thread; `None` if not recorded.
    pub tid: Option<u32>,
    /// CPU; `None` if not recorded.
    pub cpu: Option<u32>,
    /// Which event; `None` if it cannot be told.
    pub event: Option<EventIndex>,
}

/// In which mode the CPU ran when a sample was taken (`PERF_RECORD_MISC_CPUMODE`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CpuMode {
    /// Not said.
    #[default]
    Unknown,
    /// In the kernel.
    Kernel,
    /// In a program.
    User,
    /// In a hypervisor.
    Hypervisor,
    /// In a guest's kernel.
    GuestKernel,
    /// In a guest's program.
    GuestUser,
}

impl CpuMode {
    /// The mode that a record's [`misc`] bits tell.
    #[inline]
    pub fn of_bits(bits: u16) -> Self {
        match bits & misc::CPUMODE_MASK {
            misc::KERNEL => Self::Kernel,
            misc::USER => Self::User,
            misc::HYPERVISOR => Self::Hypervisor,
            misc::GUEST_KERNEL => Self::GuestKernel,
            misc::GUEST_USER => Self::GuestUser,
            _ => Self::Unknown,
        }
    }

    /// The [`misc`] bits that tell this mode.
    pub fn bits(self) -> u16 {
        match self {
            Self::Unknown => 0,
            Self::Kernel => misc::KERNEL,
            Self::User => misc::USER,
            Self::Hypervisor => misc::HYPERVISOR,
            Self::GuestKernel => misc::GUEST_KERNEL,
            Self::GuestUser => misc::GUEST_USER,
        }
    }
}

/// A record of the recording.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// An event overflowed, or a program wrote a payload of its own.
    Sample(Sample<'a>),
    /// Code or data was mapped into a process (MMAP and MMAP2).
    Mmap(Mmap<'a>),
    /// A task got a name, by `exec` or by itself.
    Comm {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The name, without the terminating zero.
        name: &'a [u8],
        /// The name changed because of `exec`: all mappings are gone.
        exec: bool,
    },
    /// A task was made.
    Fork(TaskChange),
    /// A task ended.
    Exit(TaskChange),
    /// The ring was full and this many records were dropped (LOST), or hardware dropped samples (LOST_SAMPLES).
    Lost {
        /// How many.
        count: u64,
    },
    /// So many records of one event found no room in all of the recording, as its counter said at the end (LOST_SAMPLES that
    /// a recorder wrote, which have no time): those that [`Record::Lost`] told of, once more, and what it did not come to
    /// tell.
    LostInAll {
        /// How many.
        count: u64,
    },
    /// The kernel stopped (`true`) or resumed (`false`) an event that came too often.
    Throttle(bool),
    /// A counter's value at a task's end (PERF_RECORD_READ).
    Read {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Value and, where recorded, the times it was enabled and running in nanoseconds.
        value: ReadValue,
    },
    /// A task was switched in or out.
    Switch {
        /// Switched out, not in.
        out: bool,
    },
    /// A kernel function appeared or went (BPF programs, trampolines).
    Ksymbol {
        /// Start address.
        address: u64,
        /// Length in bytes.
        length: u32,
        /// It went away.
        unregistered: bool,
        /// Its name.
        name: &'a [u8],
    },
    /// A control group was made, or was there before: samples tell their group by this number.
    Cgroup {
        /// Its number.
        id: u64,
        /// Its path from the root of its hierarchy, without the terminating zero.
        path: &'a [u8],
    },
    /// All records before this one that are older than the newest before the previous such mark are
    /// complete: time order can be made round by round.
    FinishedRound,
    /// A record that a profile does not need; its type.
    Other(u32),
}

/// A sample: the state of a CPU when an event overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample<'a> {
    /// Instruction address; `None` if not recorded.
    pub ip: Option<u64>,
    /// Data address, where recorded.
    pub address: Option<u64>,
    /// Mode of the CPU.
    pub mode: CpuMode,
    /// Events that this sample stands for; `None` if neither recorded nor fixed by the attribute.
    pub period: Option<u64>,
    /// Return addresses, innermost first, with the kernel's context markers.
    pub callchain: Callchain<'a>,
    /// Last branches (LBR), newest first.
    pub branch_stack: BranchStack<'a>,
    /// Counter values (PERF_SAMPLE_READ) as raw bytes in the event's read format.
    pub read: &'a [u8],
    /// Raw data: tracepoint fields, or a program's payload.
    pub raw: &'a [u8],
    /// User registers, where recorded.
    pub user_registers: Option<UserRegisters<'a>>,
    /// Copy of the top of the user stack, where recorded.
    pub user_stack: &'a [u8],
    /// Number of the task's control group, where recorded.
    pub cgroup: Option<u64>,
}

/// Addresses of a callchain as they lie in the file: unaligned little-endian `u64`s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Callchain<'a>(pub &'a [u8]);

impl<'a> Callchain<'a> {
    /// Entries, context markers included, innermost first.
    #[inline]
    pub fn entries(self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator + Clone + 'a {
        self.0.chunks_exact(8).map(|entry| {
            // chunks_exact gives exactly 8 bytes.
            u64::from_le_bytes(entry.try_into().unwrap_or_default())
        })
    }

    /// Number of entries, context markers included.
    #[inline]
    pub fn len(self) -> usize {
        self.0.len() / 8
    }

    /// No callchain, or an empty one.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.len() < 8
    }
}

/// The last branches that the CPU took, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchStack<'a> {
    /// As they lie in the file, 24 bytes each: from, to, flags.
    pub bytes: &'a [u8],
    /// They are the calls that did not return yet, as the event asked for (`PERF_SAMPLE_BRANCH_CALL_STACK`): a call
    /// stack. Others are branches of any kind, and tell nothing of callers.
    pub are_calls: bool,
}

/// A branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Address of the instruction that branched.
    pub from: u64,
    /// Address that it branched to.
    pub to: u64,
}

impl<'a> BranchStack<'a> {
    /// The branches, newest first.
    #[inline]
    pub fn entries(self) -> impl ExactSizeIterator<Item = Branch> + Clone + 'a {
        self.bytes.chunks_exact(24).map(|branch| {
            // chunks_exact gives exactly 24 bytes.
            let word = |at: usize| u64::from_le_bytes(branch[at..at + 8].try_into().unwrap_or_default());
            Branch { from: word(0), to: word(8) }
        })
    }

    /// The calls that did not return yet, newest first; none where branches are of any kind.
    #[inline]
    pub fn calls(self) -> impl ExactSizeIterator<Item = Branch> + Clone + 'a {
        Self { bytes: if self.are_calls { self.bytes } else { &[] }, ..self }.entries()
    }
}

/// Registers of the program at the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserRegisters<'a> {
    /// The program runs in 64-bit mode.
    pub is_64bit: bool,
    /// Which registers were recorded (`sample_regs_user`).
    pub mask: u64,
    /// Their values in the mask's order: unaligned little-endian `u64`s.
    pub values: &'a [u8],
}

impl UserRegisters<'_> {
    /// The value of register number `register` in the kernel's numbering, if it was recorded.
    #[inline]
    pub fn get(&self, register: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(register)?;
        if self.mask & bit == 0 {
            return None;
        }
        let index = (self.mask & (bit - 1)).count_ones() as usize;
        let bytes = self.values.get(index * 8..index * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// A mapping of a file (or of anonymous memory) into a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mmap<'a> {
    /// Process; `u32::MAX` is the kernel itself.
    pub pid: u32,
    /// Thread that mapped.
    pub tid: u32,
    /// Start address.
    pub address: u64,
    /// Length in bytes.
    pub length: u64,
    /// Offset in the file.
    pub file_offset: u64,
    /// Path of the file, or a name in brackets or with `//anon`.
    pub path: &'a [u8],
    /// Mapped by the kernel, not a program.
    pub mode: CpuMode,
    /// Data, not code (PERF_RECORD_MISC_MMAP_DATA).
    pub is_data: bool,
    /// PROT_* bits where recorded (MMAP2); `None` for MMAP.
    pub protection: Option<u32>,
    /// What tells this file from another of the same name.
    pub identity: FileIdentity<'a>,
}

/// What tells a mapped file from another of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FileIdentity<'a> {
    /// Nothing was recorded (MMAP).
    #[default]
    Unknown,
    /// Device and inode (MMAP2).
    Inode {
        /// Major device number.
        major: u32,
        /// Minor device number.
        minor: u32,
        /// Inode number.
        inode: u64,
        /// Inode generation.
        generation: u64,
    },
    /// The build-id (MMAP2 with PERF_RECORD_MISC_MMAP_BUILD_ID).
    BuildId(&'a [u8]),
}

/// A task's birth or death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskChange {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Process of the parent.
    pub parent_pid: u32,
    /// Thread of the parent.
    pub parent_tid: u32,
}

/// A counter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadValue {
    /// The count.
    pub value: u64,
    /// Nanoseconds the event was enabled.
    pub time_enabled: Option<u64>,
    /// Nanoseconds the event was on a counter.
    pub time_running: Option<u64>,
    /// The event's id.
    pub id: Option<u64>,
    /// Records dropped for this event (PERF_FORMAT_LOST).
    pub lost: Option<u64>,
}

//! Numbers of the perf.data format that the reader and the writer share.
//!
//! Everything here is written in the byte order of the machine that recorded.

/// First eight bytes of a file of a little-endian machine: `PERFILE2`. A big-endian machine's file
/// begins with the same letters turned round.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PERFILE2");
/// First eight bytes of the first version of the format (2009), which nothing writes any more.
pub const MAGIC_VERSION_1: u64 = u64::from_le_bytes(*b"PERFFILE");
/// Bytes of a file's header.
pub const FILE_HEADER_SIZE: u64 = 104;
/// Bytes of the header of a recording that went through a pipe: magic and this size.
pub const PIPE_HEADER_SIZE: u64 = 16;
/// Bytes of a section's place: offset and size, both `u64`.
pub const SECTION_SIZE: usize = 16;
/// Bytes of every record's header: type `u32`, misc `u16`, size `u16`.
pub const RECORD_HEADER_SIZE: usize = 8;
/// Bytes of a build-id's field; ids may be shorter.
pub const BUILD_ID_SIZE: usize = 20;

/// Where a section lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Section {
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
}

/// The header of a file, 104 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileHeader {
    /// Bytes of one entry of `attrs`: an attribute and the [`Section`] of its ids.
    pub attr_size: u64,
    /// The attributes.
    pub attrs: Section,
    /// The records. A size of 0 means that the recorder was killed before it could say.
    pub data: Section,
    /// Names of events, up to 2010.
    pub event_types: Section,
    /// Which feature sections follow the data; bit numbers are those of [`feature`].
    pub features: [u64; 4],
}

impl FileHeader {
    /// Whether the section of this feature (see [`feature`]) is in the file.
    pub fn has_feature(&self, bit: u32) -> bool {
        self.features.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

/// Types of record (`perf_event_header::type`).
pub mod record_type {
    /// A mapping (pid, tid, address, length, offset, path).
    pub const MMAP: u32 = 1;
    /// The ring was full (event id, count).
    pub const LOST: u32 = 2;
    /// A task's name.
    pub const COMM: u32 = 3;
    /// A task ended.
    pub const EXIT: u32 = 4;
    /// An event came too often and was stopped.
    pub const THROTTLE: u32 = 5;
    /// A stopped event goes on.
    pub const UNTHROTTLE: u32 = 6;
    /// A task was made.
    pub const FORK: u32 = 7;
    /// A counter's value at a task's end.
    pub const READ: u32 = 8;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// A mapping with inode or build-id, protection and flags (Linux 3.12).
    pub const MMAP2: u32 = 10;
    /// Hardware trace was written to the AUX area.
    pub const AUX: u32 = 11;
    /// A hardware trace began for a task.
    pub const ITRACE_START: u32 = 12;
    /// Samples were dropped by the hardware or its driver (Linux 4.2).
    pub const LOST_SAMPLES: u32 = 13;
    /// A context switch, of an event that follows a task.
    pub const SWITCH: u32 = 14;
    /// A context switch, of an event that follows a CPU: with the other task's ids.
    pub const SWITCH_CPU_WIDE: u32 = 15;
    /// A task's namespaces.
    pub const NAMESPACES: u32 = 16;
    /// A kernel function appeared or went (Linux 5.1).
    pub const KSYMBOL: u32 = 17;
    /// A BPF program was loaded or unloaded.
    pub const BPF_EVENT: u32 = 18;
    /// A control group was made.
    pub const CGROUP: u32 = 19;
    /// The kernel changed its own code.
    pub const TEXT_POKE: u32 = 20;
    /// An AUX area's output is tied to a hardware id.
    pub const AUX_OUTPUT_HW_ID: u32 = 21;
    /// The user part of a callchain, delivered when the task left the kernel.
    pub const CALLCHAIN_DEFERRED: u32 = 22;

    /// Types from here on are written by the recorder, not the kernel; they have no `sample_id`.
    pub const USER_START: u32 = 64;
    /// An attribute and its ids (pipes).
    pub const HEADER_ATTR: u32 = 64;
    /// An event's name (pipes, up to 2010).
    pub const HEADER_EVENT_TYPE: u32 = 65;
    /// Tracepoint formats; as many bytes as it says follow the record (pipes).
    pub const HEADER_TRACING_DATA: u32 = 66;
    /// A build-id (pipes).
    pub const HEADER_BUILD_ID: u32 = 67;
    /// Every ring was read once since the last such record.
    pub const FINISHED_ROUND: u32 = 68;
    /// Ids by event, CPU and thread.
    pub const ID_INDEX: u32 = 69;
    /// What kind of hardware trace there is.
    pub const AUXTRACE_INFO: u32 = 70;
    /// Hardware trace; as many bytes as it says follow the record.
    pub const AUXTRACE: u32 = 71;
    /// A decoder's error.
    pub const AUXTRACE_ERROR: u32 = 72;
    /// Threads of `perf stat record`.
    pub const THREAD_MAP: u32 = 73;
    /// CPUs of `perf stat record`.
    pub const CPU_MAP: u32 = 74;
    /// Settings of `perf stat record`.
    pub const STAT_CONFIG: u32 = 75;
    /// A count of `perf stat record`.
    pub const STAT: u32 = 76;
    /// The end of an interval of `perf stat record`.
    pub const STAT_ROUND: u32 = 77;
    /// An event's unit, scale, name or CPUs.
    pub const EVENT_UPDATE: u32 = 78;
    /// How the hardware clock converts to the recording's.
    pub const TIME_CONV: u32 = 79;
    /// A feature section (pipes).
    pub const HEADER_FEATURE: u32 = 80;
    /// Records compressed with zstd.
    pub const COMPRESSED: u32 = 81;
    /// What follows was recorded, not synthesised at the start.
    pub const FINISHED_INIT: u32 = 82;
    /// Records compressed with zstd, their length given apart so that the record can be padded to a
    /// multiple of 8 (perf 6.16).
    pub const COMPRESSED2: u32 = 83;
    /// What BPF programs say of themselves (perf 6.17).
    pub const BPF_METADATA: u32 = 84;
    /// A CPU's scheduling counters (`perf sched stats`).
    pub const SCHEDSTAT_CPU: u32 = 85;
    /// A scheduling domain's counters (`perf sched stats`).
    pub const SCHEDSTAT_DOMAIN: u32 = 86;

    /// Whether the type is one of these: others come of a newer kernel or recorder, or of damage.
    #[must_use]
    pub const fn is_known(kind: u32) -> bool {
        matches!(kind, MMAP..=CALLCHAIN_DEFERRED | USER_START..=SCHEDSTAT_DOMAIN)
    }
}

/// Kinds of [`record_type::EVENT_UPDATE`].
pub mod event_update {
    /// The unit of its counts.
    pub const UNIT: u64 = 0;
    /// What to multiply its counts with.
    pub const SCALE: u64 = 1;
    /// Its name.
    pub const NAME: u64 = 2;
    /// Its CPUs.
    pub const CPUS: u64 = 3;
}

/// Bits of `perf_event_header::misc`.
pub mod misc {
    /// The mode of the CPU: 1 kernel, 2 user, 3 hypervisor, 4 guest kernel, 5 guest user.
    pub const CPUMODE_MASK: u16 = 7;
    /// In the kernel.
    pub const KERNEL: u16 = 1;
    /// In a program.
    pub const USER: u16 = 2;
    /// In a hypervisor.
    pub const HYPERVISOR: u16 = 3;
    /// In a guest's kernel.
    pub const GUEST_KERNEL: u16 = 4;
    /// In a guest's program.
    pub const GUEST_USER: u16 = 5;
    /// Mappings: data, not code.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// Names: because of exec.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// Switches: out, not in.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// Mappings: a build-id stands where the inode would.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// LOST_SAMPLES: samples that a BPF program passed over, as it was told to.
    pub const LOST_SAMPLES_BPF: u16 = 1 << 15;
    /// Build-id sections: the length of the id is given.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Bits of `perf_event_attr::sample_type`: what a sample holds, in this order except for IDENTIFIER,
/// which comes first.
pub mod sample_type {
    /// Instruction address.
    pub const IP: u64 = 1 << 0;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Time.
    pub const TIME: u64 = 1 << 2;
    /// Data address.
    pub const ADDR: u64 = 1 << 3;
    /// Counter values.
    pub const READ: u64 = 1 << 4;
    /// Return addresses.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// Id of the event (of the group's leader's counter for inherited events).
    pub const ID: u64 = 1 << 6;
    /// CPU.
    pub const CPU: u64 = 1 << 7;
    /// Events since the last sample.
    pub const PERIOD: u64 = 1 << 8;
    /// Id of the counter itself.
    pub const STREAM_ID: u64 = 1 << 9;
    /// Raw data.
    pub const RAW: u64 = 1 << 10;
    /// Last branches.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// User registers.
    pub const REGS_USER: u64 = 1 << 12;
    /// Copy of the user stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// Cost of the sampled access.
    pub const WEIGHT: u64 = 1 << 14;
    /// Where the data came from.
    pub const DATA_SRC: u64 = 1 << 15;
    /// Id of the event, at a place that does not depend on the other bits.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// Why a transaction ended.
    pub const TRANSACTION: u64 = 1 << 17;
    /// Registers at the interrupt.
    pub const REGS_INTR: u64 = 1 << 18;
    /// Physical data address.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// Hardware trace before the sample.
    pub const AUX: u64 = 1 << 20;
    /// Control group.
    pub const CGROUP: u64 = 1 << 21;
    /// Size of the data's page.
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    /// Size of the code's page.
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    /// Costs of the sampled access, in parts; of the same size as WEIGHT.
    pub const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// Bits of `perf_event_attr::read_format`.
pub mod read_format {
    /// With the time the event was enabled.
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    /// With the time the event was on a counter.
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    /// With the event's id.
    pub const ID: u64 = 1 << 2;
    /// All events of the group at once.
    pub const GROUP: u64 = 1 << 3;
    /// With the number of lost samples (Linux 6.0).
    pub const LOST: u64 = 1 << 4;
}

/// Bits of `perf_event_attr::branch_sample_type` that change the layout of a sample, or what it means.
pub mod branch_sample_type {
    /// The CPU keeps the calls that did not return yet: the branches are a call stack.
    pub const CALL_STACK: u64 = 1 << 11;
    /// An index word precedes the entries.
    pub const HW_INDEX: u64 = 1 << 17;
    /// A word of counters for every entry follows the entries (Linux 6.8).
    pub const COUNTERS: u64 = 1 << 19;
}

/// Values of `perf_event_attr::type`.
pub mod event_type {
    /// Generic hardware events.
    pub const HARDWARE: u32 = 0;
    /// Software events.
    pub const SOFTWARE: u32 = 1;
    /// Tracepoints; `config` is the tracepoint's number.
    pub const TRACEPOINT: u32 = 2;
    /// Generic cache events.
    pub const HW_CACHE: u32 = 3;
    /// Events in the CPU's own encoding.
    pub const RAW: u32 = 4;
    /// Breakpoints.
    pub const BREAKPOINT: u32 = 5;
    /// `config` of the software event whose samples only a program writes.
    pub const SOFTWARE_BPF_OUTPUT: u64 = 10;
}

/// Bits that name the feature sections; sections lie in the order of their bits.
pub mod feature {
    /// Tracepoint formats.
    pub const TRACING_DATA: u32 = 1;
    /// Build-ids of the files that samples lie in.
    pub const BUILD_ID: u32 = 2;
    /// Name of the machine.
    pub const HOSTNAME: u32 = 3;
    /// Release of the kernel.
    pub const OSRELEASE: u32 = 4;
    /// Version of the recorder.
    pub const VERSION: u32 = 5;
    /// Machine architecture.
    pub const ARCH: u32 = 6;
    /// CPUs available and online.
    pub const NRCPUS: u32 = 7;
    /// The CPU's name for people.
    pub const CPUDESC: u32 = 8;
    /// The CPU's name for programs.
    pub const CPUID: u32 = 9;
    /// Memory in kB.
    pub const TOTAL_MEM: u32 = 10;
    /// The recorder's command line.
    pub const CMDLINE: u32 = 11;
    /// Attributes, ids and names of the events.
    pub const EVENT_DESC: u32 = 12;
    /// Siblings of cores and threads.
    pub const CPU_TOPOLOGY: u32 = 13;
    /// Memory and CPUs of the nodes.
    pub const NUMA_TOPOLOGY: u32 = 14;
    /// Samples have branch stacks.
    pub const BRANCH_STACK: u32 = 15;
    /// Names of the PMUs by event type.
    pub const PMU_MAPPINGS: u32 = 16;
    /// Groups of events.
    pub const GROUP_DESC: u32 = 17;
    /// Where hardware trace lies.
    pub const AUXTRACE: u32 = 18;
    /// The file is of `perf stat record`.
    pub const STAT: u32 = 19;
    /// Caches.
    pub const CACHE: u32 = 20;
    /// Times of the first and last sample.
    pub const SAMPLE_TIME: u32 = 21;
    /// Memory blocks of the nodes.
    pub const MEM_TOPOLOGY: u32 = 22;
    /// Resolution of the clock.
    pub const CLOCKID: u32 = 23;
    /// The recording is a folder.
    pub const DIR_FORMAT: u32 = 24;
    /// BPF programs.
    pub const BPF_PROG_INFO: u32 = 25;
    /// BPF types.
    pub const BPF_BTF: u32 = 26;
    /// How records are compressed.
    pub const COMPRESSED: u32 = 27;
    /// What the CPU's PMU can do.
    pub const CPU_PMU_CAPS: u32 = 28;
    /// The same instant on the recording's and the wall clock.
    pub const CLOCK_DATA: u32 = 29;
    /// CPUs of the core kinds.
    pub const HYBRID_TOPOLOGY: u32 = 30;
    /// What the PMUs can do.
    pub const PMU_CAPS: u32 = 31;
}

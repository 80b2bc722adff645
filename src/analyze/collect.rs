//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::{FixedState, FoldHasher};
use rustc_hash::FxHashSet;

use super::known::{KeyHash, KnownAddresses, KnownKeys, Spaces};
use crate::profile::{AddressId, CallersId, Cell, CodeAddress, ModuleKind, StackId, StackTable, ThreadIndex};
use crate::recording::record::{Callchain, CpuMode, Sample};
use crate::timeline::{CodeInterner, StackInterner, TaskId, Tasks};
use crate::units::Nanoseconds;

/// Which differences between samples a profile keeps. What is not asked for is merged, which saves
/// time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    /// Whole call stacks; else only the innermost frame.
    pub stacks: bool,
    /// Threads.
    pub threads: bool,
    /// CPUs.
    pub cpus: bool,
}

impl Dimensions {
    /// Everything.
    pub const ALL: Self = Self { stacks: true, threads: true, cpus: true };
}

/// Most call stacks that are told apart, and most frames of their callers. A stack takes about 20 bytes and a
/// cell of it 100, a frame 4: a program of which nearly every sample has a stack of its own would fill any
/// memory.
const MOST_STACKS: usize = 1 << 20;
const MOST_CALLER_FRAMES: usize = 1 << 24;

/// Gathers samples into cells.
///
/// Nearly every sample finds its callers and then its cell by one look into a table each; only what is
/// new is looked at frame by frame.
#[derive(Debug)]
pub struct Collector {
    dimensions: Dimensions,
    most_stacks: usize,
    most_caller_frames: usize,
    /// The callers of samples, by a hash of all that matters to them.
    known_callers: KnownKeys,
    /// Cells, by a hash of what they are: code may lie at several addresses.
    known_cells: KnownKeys,
    hashers: [FixedState; 2],
    located: KnownAddresses,
    cells: Vec<CellKey>,
    code: CodeInterner,
    stacks: StackInterner,
    addresses: Vec<AddressId>,
    without_callers: u64,
    /// Cells whose samples all are without their callers.
    cut_cells: FxHashSet<u32>,
}

/// What was collected.
#[derive(Debug)]
pub struct Collected {
    /// The cells, by their numbers.
    pub cells: Vec<CellKey>,
    /// Their stacks.
    pub stacks: StackTable,
    /// The addresses of these.
    pub addresses: Vec<CodeAddress>,
    /// Samples that have lost their callers, since there were too many stacks; beside those of `cut_cells`.
    pub without_callers: u64,
    /// Cells whose samples all are without their callers.
    pub cut_cells: FxHashSet<u32>,
}

/// What tells a cell from others.
#[derive(Debug, Clone, Copy)]
pub struct CellKey {
    /// The stack.
    pub stack: StackId,
    /// The thread.
    pub thread: ThreadIndex,
    /// The CPU, or [`NO_CPU`].
    cpu: u32,
    /// Index of the event.
    pub event: u32,
}

impl CellKey {
    /// The cell, of so many samples, events and time.
    pub fn counted(self, (samples, count, time): (u64, u64, Nanoseconds)) -> Cell {
        let Self { stack, thread, cpu, event } = self;
        Cell { stack, thread, cpu: (cpu != NO_CPU).then_some(cpu), event, samples, count, time }
    }
}

/// No CPU, as a number in keys.
const NO_CPU: u32 = u32::MAX;

impl Collector {
    /// An empty collection.
    pub fn new(dimensions: Dimensions) -> Self {
        Self {
            dimensions,
            most_stacks: MOST_STACKS,
            most_caller_frames: MOST_CALLER_FRAMES,
            known_callers: KnownKeys::default(),
            known_cells: KnownKeys::default(),
            hashers: [FixedState::with_seed(1), FixedState::with_seed(2)],
            located: KnownAddresses::default(),
            cells: Vec::new(),
            code: CodeInterner::default(),
            stacks: StackInterner::default(),
            addresses: Vec::new(),
            without_callers: 0,
            cut_cells: FxHashSet::default(),
        }
    }

    /// The cell of a sample, made if need be. `unwound` is the user part of the call stack as found by
    /// unwinding the copied stack, innermost first; it stands for that part of the callchain.
    pub fn cell(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        cpu: Option<u32>,
        event: u32,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> u32 {
        let (thread, cpu, spaces) = self.told_apart(tasks, task, cpu);
        let callers = match self.dimensions.stacks {
            true => self.callers(tasks, task, spaces, sample, unwound),
            false => CallersId::NONE,
        };
        let own = sample.ip.map(|address| Frame { mode: sample.mode, address, is_return: false });
        let own = own.map(|frame| self.located(tasks, task, spaces, frame));
        self.cell_of(callers, own, thread, cpu, event)
    }

    /// The cell of a launch: the sample's stack with `kernel` as its innermost frame. Launches are few
    /// beside samples, and are interned each time.
    #[expect(clippy::too_many_arguments, reason = "the parts of one key")]
    pub fn launch_cell(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        cpu: Option<u32>,
        event: u32,
        sample: &Sample<'_>,
        unwound: &[u64],
        kernel: CodeAddress,
    ) -> u32 {
        let (thread, cpu, spaces) = self.told_apart(tasks, task, cpu);
        // Without call paths the kernel is all there is to know.
        let callers = match self.dimensions.stacks {
            true => self.callers_of(tasks, task, spaces, frames_of(sample, sample.callchain, unwound)),
            false => CallersId::NONE,
        };
        let kernel = self.code.intern(kernel);
        self.cell_of(callers, Some(kernel), thread, cpu, event)
    }

    /// The thread and the CPU as far as they are told apart, and what addresses mean.
    fn told_apart(&self, tasks: &mut Tasks, task: TaskId, cpu: Option<u32>) -> (ThreadIndex, u32, Spaces) {
        let thread = if self.dimensions.threads { tasks.thread(task) } else { ThreadIndex(0) };
        let cpu = cpu.filter(|_| self.dimensions.cpus).unwrap_or(NO_CPU);
        (thread, cpu, (tasks.space_id(task), tasks.kernel_space_id()))
    }

    /// All that was collected.
    pub fn finish(self) -> Collected {
        Collected {
            cells: self.cells,
            stacks: self.stacks.into_stacks(),
            addresses: self.code.into_addresses(),
            without_callers: self.without_callers,
            cut_cells: self.cut_cells,
        }
    }

    /// The cell of a stack, which loses its callers if there are too many stacks.
    fn cell_of(
        &mut self,
        callers: CallersId,
        own: Option<AddressId>,
        thread: ThreadIndex,
        cpu: u32,
        event: u32,
    ) -> u32 {
        let hash_with = |callers: CallersId| {
            self.hash(|hasher| {
                hasher.write_u64(u64::from(callers.0) << 32 | u64::from(thread.0));
                hasher.write_u64(u64::from(cpu) << 32 | u64::from(event));
                // One more than the address's number, so that none is 0.
                hasher.write_u64(own.map_or(0, |own| u64::from(own.0) + 1));
            })
        };
        let hash = hash_with(callers);
        if let Some(cell) = self.known_cells.find(hash) {
            return cell;
        }
        let is_full =
            self.stacks.stacks().len() >= self.most_stacks || self.cells.len() >= 2 * self.most_stacks;
        if is_full && callers != CallersId::NONE {
            let hash_without = hash_with(CallersId::NONE);
            let known = self.known_cells.find(hash_without);
            let cell = known
                .unwrap_or_else(|| self.new_cell(hash_without, CallersId::NONE, own, thread, cpu, event));
            self.known_cells.insert(hash, cell);
            self.cut_cells.insert(cell);
            return cell;
        }
        self.new_cell(hash, callers, own, thread, cpu, event)
    }

    fn new_cell(
        &mut self,
        hash: KeyHash,
        callers: CallersId,
        own: Option<AddressId>,
        thread: ThreadIndex,
        cpu: u32,
        event: u32,
    ) -> u32 {
        let stack = self.stacks.stack(callers, own);
        let cell = self.cells.len() as u32;
        self.cells.push(CellKey { stack, thread, cpu, event });
        self.known_cells.insert(hash, cell);
        cell
    }

    fn hash(&self, write: impl Fn(&mut FoldHasher<'_>)) -> KeyHash {
        let [first, second] = self.hashers.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            write(&mut hasher);
            hasher.finish()
        });
        KeyHash { first, second: second as u32 }
    }

    /// All frames of a sample but its own address.
    fn callers(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> CallersId {
        let has_own = sample.ip.is_some();
        let (before_own, behind_own) = around_own(sample.callchain, has_own);
        let is_first_own = has_own && sample.mode == CpuMode::User;
        let hash = self.hash(|hasher| {
            hasher.write_u64(u64::from(spaces.0.0) << 32 | u64::from(spaces.1.0));
            hasher.write_u64((unwound.len() as u64) << 16 | u64::from(has_own) << 8 | sample.mode as u64);
            hasher.write(before_own);
            hasher.write(behind_own);
            for address in unwound.iter().skip(usize::from(is_first_own)) {
                hasher.write_u64(*address);
            }
        });
        if let Some(callers) = self.known_callers.find(hash) {
            return CallersId(callers);
        }
        if self.stacks.stacks().caller_frames().len() >= self.most_caller_frames {
            self.without_callers += 1;
            return CallersId::NONE;
        }
        let frames = frames_of(sample, sample.callchain, unwound).skip(usize::from(has_own));
        let callers = self.callers_of(tasks, task, spaces, frames);
        self.known_callers.insert(hash, callers.0);
        callers
    }

    /// Callers by their frames, innermost first.
    fn callers_of(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        frames: impl Iterator<Item = Frame>,
    ) -> CallersId {
        let mut addresses = std::mem::take(&mut self.addresses);
        addresses.clear();
        frames.for_each(|frame| addresses.push(self.located(tasks, task, spaces, frame)));
        addresses.reverse();
        let callers = self.stacks.callers(&addresses);
        self.addresses = addresses;
        callers
    }

    fn located(&mut self, tasks: &mut Tasks, task: TaskId, spaces: Spaces, frame: Frame) -> AddressId {
        let Frame { mode, address, is_return } = frame;
        let key = KnownAddresses::key(self.located.number_of(spaces), mode, is_return, address);
        if let Some(known) = self.located.find(key) {
            return known;
        }
        let place = tasks.locate(task, mode, address);
        let found = self.code.intern(in_the_call(tasks, place, is_return));
        self.located.insert(key, found);
        found
    }
}

/// The bytes of a callchain before and behind the entry that is the sampled instruction itself: the first
/// that is no marker.
fn around_own(chain: Callchain<'_>, has_own: bool) -> (&[u8], &[u8]) {
    let own = chain.entries().position(|entry| entry < FIRST_MARKER).filter(|_| has_own);
    match own {
        Some(own) => (&chain.0[..8 * own], &chain.0[8 * (own + 1)..]),
        None => (chain.0, &[]),
    }
}

/// A return address is the instruction after the call, which may belong to another line or function.
/// The byte before it lies in the call.
fn in_the_call(tasks: &Tasks, mut code: CodeAddress, is_return: bool) -> CodeAddress {
    // Where nothing is known of the code, the address as recorded is worth more.
    if is_return && tasks.modules()[code.module.0 as usize].kind != ModuleKind::Unknown {
        code.address = code.address.saturating_sub(1);
    }
    code
}

/// A frame of a call stack before it is located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Where it runs.
    pub mode: CpuMode,
    /// Its address as recorded.
    pub address: u64,
    /// The address is that of the instruction behind the call.
    pub is_return: bool,
}

/// Callchain entries from here on are markers of a change of mode (`PERF_CONTEXT_MAX`).
const FIRST_MARKER: u64 = -4095i64 as u64;

/// The frames of a sample, innermost first: its own address, then the callchain without it, then
/// what was unwound.
pub fn frames_of<'a>(
    sample: &'a Sample<'a>,
    chain: Callchain<'a>,
    unwound: &'a [u64],
) -> impl Iterator<Item = Frame> + 'a {
    let mut mode = sample.mode;
    let mut first_in_mode = true;
    let mut before_first = true;
    let is_unwound = !unwound.is_empty();
    let own = sample.ip.map(|address| Frame { mode, address, is_return: false });
    let callers = chain.entries().filter_map(move |entry| {
        if entry >= FIRST_MARKER {
            mode = mode_of_marker(entry).unwrap_or(mode);
            first_in_mode = true;
            return None;
        }
        let is_return = !std::mem::take(&mut first_in_mode);
        if is_unwound && mode == CpuMode::User {
            return None;
        }
        // The chain begins with the sampled instruction itself.
        if std::mem::take(&mut before_first) && own.is_some() {
            return None;
        }
        Some(Frame { mode, address: entry, is_return })
    });
    // The innermost unwound frame is where the program is: the sampled instruction itself, or where it
    // entered the kernel.
    let in_user_mode = sample.mode == CpuMode::User && sample.ip.is_some();
    let unwound = unwound.iter().enumerate().skip(usize::from(in_user_mode)).map(|(depth, address)| Frame {
        mode: CpuMode::User,
        address: *address,
        is_return: depth > 0,
    });
    own.into_iter().chain(callers).chain(unwound)
}

fn mode_of_marker(marker: u64) -> Option<CpuMode> {
    match marker as i64 {
        -32 => Some(CpuMode::Hypervisor),
        -128 => Some(CpuMode::Kernel),
        -512 => Some(CpuMode::User),
        -2048 => Some(CpuMode::GuestKernel),
        -2176 => Some(CpuMode::GuestKernel),
        -2560 => Some(CpuMode::GuestUser),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = -128i64 as u64;
    const USER: u64 = -512i64 as u64;

    fn chain(entries: &[u64]) -> Vec<u8> {
        entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
    }

    #[test]
    fn markers_change_the_mode_and_only_callers_are_return_addresses() {
        let bytes = chain(&[KERNEL, 0xf001, 0xf002, USER, 0x11, 0x12]);
        let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, ..Sample::default() };
        let frames: Vec<_> = frames_of(&sample, Callchain(&bytes), &[])
            .map(|frame| (frame.address, frame.mode, frame.is_return))
            .collect();
        assert_eq!(
            frames,
            [
                (0xf001, CpuMode::Kernel, false),
                (0xf002, CpuMode::Kernel, true),
                (0x11, CpuMode::User, false),
                (0x12, CpuMode::User, true),
            ]
        );
    }

    #[test]
    fn an_unwound_stack_stands_for_the_user_part_of_the_callchain() {
        let bytes = chain(&[KERNEL, 0xf001, USER, 0x11, 0x99]);
        let in_kernel = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, ..Sample::default() };
        let frames = |sample: &Sample<'_>, bytes: &[u8]| -> Vec<_> {
            frames_of(sample, Callchain(bytes), &[0x11, 0x12])
                .map(|frame| (frame.address, frame.is_return))
                .collect()
        };
        assert_eq!(frames(&in_kernel, &bytes), [(0xf001, false), (0x11, false), (0x12, true)]);
        let in_user = Sample { ip: Some(0x11), mode: CpuMode::User, ..Sample::default() };
        assert_eq!(frames(&in_user, &[]), [(0x11, false), (0x12, true)]);
    }

    #[test]
    fn equal_samples_share_a_cell_and_different_threads_do_not() {
        let mut tasks = Tasks::default();
        let (one, two) = (tasks.task(1, 1), tasks.task(2, 2));
        let bytes = chain(&[USER, 0x10, 0x20]);
        let sample =
            Sample { ip: Some(0x10), mode: CpuMode::User, callchain: Callchain(&bytes), ..Sample::default() };
        let mut collector = Collector::new(Dimensions::ALL);
        let first = collector.cell(&mut tasks, one, Some(0), 0, &sample, &[]);
        assert_eq!(collector.cell(&mut tasks, one, Some(0), 0, &sample, &[]), first);
        assert_ne!(collector.cell(&mut tasks, two, Some(0), 0, &sample, &[]), first);
        assert_ne!(collector.cell(&mut tasks, one, Some(1), 0, &sample, &[]), first);
        assert_ne!(collector.cell(&mut tasks, one, Some(0), 1, &sample, &[]), first);
        let collected = collector.finish();
        assert_eq!(collected.stacks.len(), 1);
    }

    #[test]
    fn merged_dimensions_share_a_cell() {
        let mut tasks = Tasks::default();
        let (one, two) = (tasks.task(1, 1), tasks.task(2, 2));
        let (a, b) = (chain(&[USER, 0x10, 0x20]), chain(&[USER, 0x10, 0x30]));
        let mut sample =
            Sample { ip: Some(0x10), mode: CpuMode::User, callchain: Callchain(&a), ..Sample::default() };
        let only_leaf = Dimensions { stacks: false, threads: false, cpus: false };
        let mut collector = Collector::new(only_leaf);
        let first = collector.cell(&mut tasks, one, Some(0), 0, &sample, &[]);
        sample.callchain = Callchain(&b);
        assert_eq!(collector.cell(&mut tasks, two, Some(1), 0, &sample, &[]), first);
    }
}

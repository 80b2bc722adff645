//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

use crate::profile::{AddressId, Cell, CodeAddress, ModuleKind, StackId, ThreadIndex};
use crate::recording::record::{Callchain, CpuMode, Sample};
use crate::timeline::{CodeInterner, SpaceId, StackInterner, TaskId, Tasks};
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

/// Gathers samples into cells.
#[derive(Debug)]
pub struct Collector {
    dimensions: Dimensions,
    /// The way of nearly every sample: a hash of all that matters to its cell.
    known: HashTable<(u64, u64, u32)>,
    hashers: [FixedState; 2],
    cell_ids: FxHashMap<(StackId, ThreadIndex, u32, u32), u32>,
    cells: Vec<Cell>,
    code: CodeInterner,
    stacks: StackInterner,
    frames: Vec<AddressId>,
}

/// No CPU, as a number in keys.
const NO_CPU: u32 = u32::MAX;

impl Collector {
    /// An empty collection.
    pub fn new(dimensions: Dimensions) -> Self {
        Self {
            dimensions,
            known: HashTable::new(),
            hashers: [FixedState::with_seed(1), FixedState::with_seed(2)],
            cell_ids: FxHashMap::default(),
            cells: Vec::new(),
            code: CodeInterner::default(),
            stacks: StackInterner::default(),
            frames: Vec::new(),
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
        let thread = if self.dimensions.threads { tasks.thread(task) } else { ThreadIndex(0) };
        let cpu = cpu.filter(|_| self.dimensions.cpus).unwrap_or(NO_CPU);
        let spaces = (tasks.space_id(task), tasks.kernel_space_id());
        let chain = if self.dimensions.stacks { sample.callchain } else { Callchain::default() };
        let unwound = if self.dimensions.stacks { unwound } else { &[] };
        let [first, second] = self.hash(thread, cpu, event, spaces, sample, chain, unwound);
        // 128 bits of hash stand for the key: with ten million stacks, the chance that two share them
        // is below 10^-24, and the table needs no copy of the stacks.
        if let Some((_, _, cell)) = self.known.find(first, |(_, check, _)| *check == second) {
            return *cell;
        }
        let stack = self.intern(tasks, task, sample, chain, unwound, None);
        let cell = self.cell_of(stack, thread, cpu, event);
        self.known.insert_unique(first, (first, second, cell), |(first, ..)| *first);
        cell
    }

    fn cell_of(&mut self, stack: StackId, thread: ThreadIndex, cpu: u32, event: u32) -> u32 {
        let cells = &mut self.cells;
        *self.cell_ids.entry((stack, thread, cpu, event)).or_insert_with(|| {
            cells.push(Cell {
                stack,
                thread,
                cpu: (cpu != NO_CPU).then_some(cpu),
                event,
                samples: 0,
                count: 0,
                time: Nanoseconds::ZERO,
            });
            cells.len() as u32 - 1
        })
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
        let thread = if self.dimensions.threads { tasks.thread(task) } else { ThreadIndex(0) };
        let cpu = cpu.filter(|_| self.dimensions.cpus);
        // Without call paths the kernel is all there is to know.
        let stack = match self.dimensions.stacks {
            true => self.intern(tasks, task, sample, sample.callchain, unwound, Some(kernel)),
            false => {
                let kernel = self.code.intern(kernel);
                self.stacks.intern(&[kernel])
            }
        };
        self.cell_of(stack, thread, cpu.unwrap_or(NO_CPU), event)
    }

    /// Counts a sample of a cell.
    pub fn count(&mut self, cell: u32, count: u64, time: Nanoseconds) {
        let cell = &mut self.cells[cell as usize];
        cell.samples += 1;
        cell.count = cell.count.saturating_add(count);
        cell.time += time;
    }

    /// The cells, their stacks and the addresses of these.
    pub fn into_parts(self) -> (Vec<Cell>, StackInterner, CodeInterner) {
        (self.cells, self.stacks, self.code)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one key")]
    fn hash(
        &self,
        thread: ThreadIndex,
        cpu: u32,
        event: u32,
        spaces: (SpaceId, SpaceId),
        sample: &Sample<'_>,
        chain: Callchain<'_>,
        unwound: &[u64],
    ) -> [u64; 2] {
        self.hashers.each_ref().map(|hasher| {
            let mut hasher = hasher.build_hasher();
            hasher.write_u64(u64::from(thread.0) << 32 | u64::from(cpu));
            hasher.write_u64(u64::from(event) << 8 | sample.mode as u64);
            hasher.write_u64(u64::from(spaces.0.0) << 32 | u64::from(spaces.1.0));
            hasher.write_u64(sample.ip.unwrap_or(0));
            hasher.write(chain.0);
            for address in unwound {
                hasher.write_u64(*address);
            }
            hasher.finish()
        })
    }

    fn intern(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        sample: &Sample<'_>,
        chain: Callchain<'_>,
        unwound: &[u64],
        innermost: Option<CodeAddress>,
    ) -> StackId {
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        frames.extend(innermost.map(|code| self.code.intern(code)));
        for frame in frames_of(sample, chain, unwound) {
            let code = tasks.locate(task, frame.mode, frame.address);
            let code = in_the_call(tasks, code, frame.is_return);
            frames.push(self.code.intern(code));
        }
        frames.reverse();
        let stack = self.stacks.intern(&frames);
        self.frames = frames;
        stack
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
        assert_eq!(collector.into_parts().1.len(), 1);
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

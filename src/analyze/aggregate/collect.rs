//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::Hasher;

use foldhash::fast::FixedState;
use perf_data::record::{BranchStack, CpuMode, Sample};
use rustc_hash::FxHashSet;

use crate::analyze::aggregate::call_paths::CallPaths;
use crate::analyze::aggregate::function_sets::{FunctionSets, Part};
use crate::analyze::aggregate::functions::Functions;
use crate::analyze::aggregate::key_table::{AddressTable, KeyHash, KeyTable, Spaces, hash};
use crate::analyze::aggregate::unwind::code_mapping;
use crate::analyze::memory::BYTES_PER_ADDRESS;
use crate::analyze::options::{Dimensions, FunctionsOfStacks};
use crate::analyze::sample_key::SampleKey;
use crate::profile::{AddressId, CallersId, CodeAddress, DEEPEST_CHAIN, ModuleKind, StackTable, ThreadIndex};
use crate::symbolize::ReturnAddressFinder;
use crate::timeline::{CodeInterner, TaskId, Tasks};

/// Numbers of callers that are left free, so that the longest path still has one.
const SPARE_NUMBERS: usize = 1 << 20;

/// Finds what of a sample decides its cell.
///
/// Nearly every sample finds its callers by one look into a table; only what is new is looked at frame by
/// frame.
#[derive(Debug)]
pub struct Collector {
    dimensions: Dimensions,
    /// Bytes that call paths may take.
    most_bytes: usize,
    /// They take more.
    is_full: bool,
    /// So many addresses are told apart.
    most_addresses: usize,
    /// Stands for all callers beyond.
    folded: Option<AddressId>,
    keeping: Keeping,
    /// The callers of samples, by a hash of all that matters to them.
    known_callers: KeyTable,
    hashers: [FixedState; 2],
    located: AddressTable,
    code: CodeInterner,
    paths: CallPaths,
    path: Vec<AddressId>,
    /// Tells return addresses from what chains of frame pointers take for some; `None` where there are no such chains.
    return_addresses: Option<ReturnAddressFinder>,
    /// What certainly is none.
    no_return_addresses: FxHashSet<AddressId>,
    /// Functions whose addresses are not told apart.
    functions: Functions,
    /// Stacks are told apart by their functions alone.
    sets: Option<Box<FunctionSets>>,
}

/// What is kept of call stacks.
#[derive(Debug)]
enum Keeping {
    /// All of them.
    All,
    /// All since the last part ended. Launches, of which there are few, become known only in the end: their paths stay.
    Part { launches: CallPaths },
    /// Only what addresses they have.
    Addresses,
}

/// What was collected.
#[derive(Debug)]
pub struct Collected {
    /// The tree of callers; none where only addresses were kept.
    pub callers: StackTable,
    /// The callers of launches, where parts were kept.
    pub callers_of_launches: StackTable,
    /// All addresses.
    pub addresses: Vec<CodeAddress>,
}

impl Collector {
    /// An empty collection, the paths of which may take so many bytes.
    pub fn new(dimensions: Dimensions, most_bytes: usize) -> Self {
        Self::keeping(dimensions, most_bytes, Keeping::All)
    }

    /// One that is emptied of its paths whenever it is full.
    pub fn of_parts(dimensions: Dimensions, most_bytes: usize) -> Self {
        Self::keeping(dimensions, most_bytes, Keeping::Part { launches: CallPaths::default() })
    }

    fn keeping(dimensions: Dimensions, most_bytes: usize, keeping: Keeping) -> Self {
        Self {
            dimensions,
            most_bytes,
            is_full: false,
            most_addresses: usize::MAX,
            folded: None,
            keeping,
            known_callers: KeyTable::default(),
            hashers: [FixedState::with_seed(1), FixedState::with_seed(2)],
            located: AddressTable::default(),
            code: CodeInterner::default(),
            paths: CallPaths::default(),
            path: Vec::new(),
            return_addresses: None,
            no_return_addresses: FxHashSet::default(),
            functions: Functions::default(),
            sets: None,
        }
    }

    /// With so many bytes for addresses of callers and what is made of them. What samples are in themselves is always
    /// told apart: of that there is one address for each.
    pub fn with_room_for_addresses(self, bytes: usize) -> Self {
        Self { most_addresses: bytes / BYTES_PER_ADDRESS, ..self }
    }

    /// What the reader must know of addresses that were not told apart.
    pub fn warning(&self) -> Option<String> {
        self.folded.map(|_| {
            format!(
                "there was no memory to tell more than {} addresses of callers apart: the others are one function, \
                 [folded]. No function's own share depends on it; more memory (--memory) shows more of them",
                self.most_addresses
            )
        })
    }

    /// With what tells where a chain of frame pointers goes on beyond the first function of its program.
    pub fn with_return_addresses(self, return_addresses: Option<ReturnAddressFinder>) -> Self {
        Self { return_addresses, ..self }
    }

    /// All addresses so far.
    pub fn addresses(&self) -> &[CodeAddress] {
        self.code.addresses()
    }

    /// Whether one address may stand for others: what is known to be no return address may not.
    pub fn may_stand(&self, address: AddressId) -> bool {
        !self.no_return_addresses.contains(&address)
    }

    /// From now on the addresses of these functions are not told apart, and of stacks no more than is asked for.
    pub fn merge_functions(&mut self, functions: Functions, asked: FunctionsOfStacks) {
        self.functions = functions;
        self.sets = (asked == FunctionsOfStacks::Sets).then(Box::default);
        self.located = AddressTable::default();
        self.known_callers = KeyTable::default();
    }

    /// The paths take more than they may: the last sample's were the first too many.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// From now on only addresses are kept.
    pub fn give_up_paths(&mut self) {
        self.keeping = Keeping::Addresses;
        self.take_paths();
    }

    /// Takes all paths out, for the next ones to be numbered anew.
    pub fn take_paths(&mut self) -> StackTable {
        self.is_full = false;
        self.known_callers = KeyTable::default();
        std::mem::take(&mut self.paths).into_table()
    }

    /// What decides the cell of a sample. `unwound` is the user part of the call stack as found by
    /// unwinding the copied stack, innermost first; it stands for that part of the callchain.
    pub fn key(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> SampleKey {
        let (thread, spaces) = self.told_apart(tasks, task);
        let number_of_spaces = self.located.number_of(spaces);
        let own = own_frame(sample).map(|frame| self.located(tasks, task, number_of_spaces, frame));
        let callers = match self.dimensions.stacks {
            true => self.callers(tasks, task, spaces, sample, unwound, own),
            false => CallersId::NONE,
        };
        SampleKey { callers, own: own.into(), thread }
    }

    /// What decides the cell of a launch: the sample's stack with `kernel` as its innermost frame. Launches are few
    /// beside samples, and are interned each time.
    pub fn launch_key(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        sample: &Sample<'_>,
        unwound: &[u64],
        kernel: CodeAddress,
    ) -> SampleKey {
        let (thread, spaces) = self.told_apart(tasks, task);
        // Without call paths the kernel is all there is to know.
        let callers = match self.dimensions.stacks {
            true => {
                self.find_path(tasks, task, spaces, own_frame(sample), sample, unwound);
                match &mut self.keeping {
                    Keeping::All => self.paths.callers(&self.path),
                    Keeping::Part { launches } => launches.callers(&self.path),
                    Keeping::Addresses => CallersId::NONE,
                }
            }
            false => CallersId::NONE,
        };
        let own = Some(self.code.intern(kernel)).into();
        SampleKey { callers, own, thread }
    }

    /// What decides the cell of code without callers.
    pub fn bare_key(&mut self, tasks: &mut Tasks, task: TaskId, code: CodeAddress) -> SampleKey {
        let (thread, _) = self.told_apart(tasks, task);
        SampleKey { callers: CallersId::NONE, own: Some(self.code.intern(code)).into(), thread }
    }

    /// The thread, if threads are told apart, and what addresses mean.
    fn told_apart(&self, tasks: &mut Tasks, task: TaskId) -> (ThreadIndex, Spaces) {
        let thread = if self.dimensions.threads { tasks.thread(task) } else { ThreadIndex(0) };
        (thread, (tasks.space_id(task), tasks.kernel_space_id()))
    }

    /// All that was collected.
    pub fn finish(self) -> Collected {
        let callers_of_launches = match self.keeping {
            Keeping::Part { launches } => launches.into_table(),
            Keeping::All | Keeping::Addresses => StackTable::default(),
        };
        let (callers, addresses) = (self.paths.into_table(), self.code.into_addresses());
        Collected { callers, callers_of_launches, addresses }
    }

    /// All frames of a sample but its own address, which is `own`.
    fn callers(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        sample: &Sample<'_>,
        unwound: &[u64],
        own: Option<AddressId>,
    ) -> CallersId {
        if let Some(callers) = self.callers_as_set(tasks, task, spaces, sample, unwound) {
            return callers;
        }
        let has_own = sample.ip.is_some();
        let nowhere = own.and_then(|own| self.nowhere(tasks, own));
        let (before_own, behind_own) = around_own(sample);
        let is_first_own = has_own && sample.mode == CpuMode::User;
        let hash = hash(&self.hashers, |hasher| {
            hasher.write_u64(u64::from(spaces.0.0) << 32 | u64::from(spaces.1.0));
            let before = u64::from(nowhere.is_some()) << 9 | u64::from(has_own) << 8 | sample.mode as u64;
            hasher.write_u64((unwound.len() as u64) << 16 | before);
            hasher.write(before_own);
            hasher.write(behind_own);
            for address in unwound.iter().skip(usize::from(is_first_own)) {
                hasher.write_u64(*address);
            }
            let calls = sample.branch_stack.calls();
            hasher.write_u64(calls.clone().next().map_or(0, |call| call.to));
            calls.for_each(|call| hasher.write_u64(call.from));
        });
        if let Some(callers) = self.known_callers.find(hash) {
            return CallersId(callers);
        }
        self.find_path(tasks, task, spaces, None, sample, unwound);
        if nowhere.is_some() {
            // What is called from nowhere is one frame with it.
            while let Some(&last) = self.path.last()
                && self.nowhere(tasks, last) == nowhere
            {
                self.path.pop();
            }
        }
        self.number_path(hash)
    }

    /// The callers of a sample by their functions alone; `None` where there is more to know.
    #[inline]
    fn callers_as_set(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> Option<CallersId> {
        let mut sets = self.sets.take()?;
        let is_set = self.add_callers(&mut sets, tasks, task, spaces, sample, unwound);
        let callers = is_set.then(|| {
            let hash = sets.key(u64::from(spaces.0.0) << 32 | u64::from(spaces.1.0));
            match self.known_callers.find(hash) {
                Some(callers) => CallersId(callers),
                None => {
                    sets.path(&mut self.path);
                    self.number_path(hash)
                }
            }
        });
        self.sets = Some(sets);
        callers
    }

    /// Makes the set of a sample's callers; `false` where there is more to know of them.
    fn add_callers(
        &mut self,
        sets: &mut FunctionSets,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) -> bool {
        let spaces = self.located.number_of(spaces);
        sets.begin();
        let (mut depth, mut is_set) = (1, true);
        for_each_caller(sample, unwound, |frame| {
            let Frame { mode, address, is_return } = frame;
            let key = AddressTable::key(spaces, mode, is_return, address);
            depth += 1;
            let part = self.located.find(key).map_or(Part::Unmet, |address| sets.add(address));
            if matches!(part, Part::Unmet | Part::Unclear) && is_set {
                is_set = part == Part::Unmet && self.meet(sets, tasks, task, spaces, frame);
            }
        });
        // Of a path as deep as the kernel follows any, reports say so.
        is_set && depth < usize::from(DEEPEST_CHAIN)
    }

    /// Adds to a set a frame whose address was not met in one yet; `false` where more than functions is to be known of it.
    #[cold]
    fn meet(
        &mut self,
        sets: &mut FunctionSets,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: u32,
        frame: Frame,
    ) -> bool {
        let address = self.located(tasks, task, spaces, frame);
        sets.meet(address, self.part(tasks, address));
        sets.add(address) != Part::Unclear
    }

    /// What an address is to the functions of a stack.
    fn part(&self, tasks: &Tasks, address: AddressId) -> Part {
        if self.no_return_addresses.contains(&address) || self.nowhere(tasks, address).is_some() {
            Part::Unclear
        } else if self.functions.is_standing(address) {
            Part::Function
        } else {
            Part::Frame
        }
    }

    /// The number of the path at hand, by which samples of this hash find it again.
    fn number_path(&mut self, hash: KeyHash) -> CallersId {
        let keeps_paths = !matches!(self.keeping, Keeping::Addresses);
        let callers = if keeps_paths { self.paths.callers(&self.path) } else { CallersId::NONE };
        self.known_callers.insert(hash, callers.0);
        self.is_full = self.paths.bytes(self.known_callers.len()) > self.most_bytes
            || self.paths.len() > u32::MAX as usize - SPARE_NUMBERS;
        if self.is_full && !keeps_paths {
            // All that is known of these is that their addresses were seen.
            self.take_paths();
        }
        callers
    }

    /// Finds a sample's callers, the outermost first, and its own frame behind them if that is given.
    fn find_path(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: Spaces,
        own: Option<Frame>,
        sample: &Sample<'_>,
        unwound: &[u64],
    ) {
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        path.reserve(1 + sample.callchain.len() + unwound.len());
        let spaces = self.located.number_of(spaces);
        path.extend(own.map(|frame| self.located(tasks, task, spaces, frame)));
        let mut nowhere = None;
        for_each_caller(sample, unwound, |frame| {
            let address = self.located(tasks, task, spaces, frame);
            // Where a chain of frame pointers goes astray, a hundred frames can be nowhere: they are one.
            let last = std::mem::replace(&mut nowhere, self.nowhere(tasks, address));
            if nowhere.is_none() || nowhere != last {
                path.push(address);
            }
        });
        if !self.no_return_addresses.is_empty() {
            self.end_where_nothing_returns(tasks, &mut path);
        }
        path.reverse();
        self.path = path;
    }

    /// Ends a path, innermost first, before the first of its outermost frames that are no return addresses or lie
    /// nowhere. Such ones between others stay: signal handlers return to where nothing called them.
    fn end_where_nothing_returns(&self, tasks: &Tasks, path: &mut Vec<AddressId>) {
        let is_none = |address: &AddressId| self.no_return_addresses.contains(address);
        let is_of_tail = |address: &&AddressId| is_none(address) || self.nowhere(tasks, **address).is_some();
        let tail = path.len() - path.iter().rev().take_while(is_of_tail).count();
        if let Some(first) = path[tail..].iter().position(is_none) {
            path.truncate(tail + first);
        }
    }

    /// The number of a frame's address; `spaces` is what [`AddressTable::number_of`] says of the memory maps.
    #[inline]
    fn located(&mut self, tasks: &mut Tasks, task: TaskId, spaces: u32, frame: Frame) -> AddressId {
        let Frame { mode, address, is_return } = frame;
        let key = AddressTable::key(spaces, mode, is_return, address);
        match self.located.find(key) {
            Some(known) => known,
            None => self.locate(tasks, task, frame, key),
        }
    }

    /// Whether an address that lies in no known code, or is not told apart, is the kernel's; `None` of all others.
    #[inline]
    fn nowhere(&self, tasks: &Tasks, address: AddressId) -> Option<bool> {
        let code = self.code.addresses()[address.0 as usize];
        let kind = tasks.modules()[code.module.0 as usize].kind;
        matches!(kind, ModuleKind::Unknown | ModuleKind::Folded).then_some(code.kernel)
    }

    #[cold]
    fn locate(&mut self, tasks: &mut Tasks, task: TaskId, frame: Frame, key: KeyHash) -> AddressId {
        if frame.is_return && self.code.len() >= self.most_addresses {
            return *self.folded.get_or_insert_with(|| self.code.intern(tasks.folded()));
        }
        let place = tasks.locate(task, frame.mode, frame.address);
        let code = in_the_call(tasks, place, frame.is_return);
        let found = if self.is_no_return_address(tasks, task, frame) {
            let found = self.code.intern(code);
            // What stands for others is not what this is.
            let found = if self.functions.is_standing(found) { self.code.number_apart(code) } else { found };
            self.no_return_addresses.insert(found);
            if let Some(sets) = &mut self.sets {
                sets.meet(found, Part::Unclear);
            }
            found
        } else {
            self.functions.find(code).unwrap_or_else(|| self.code.intern(code))
        };
        self.located.insert(key, found);
        found
    }

    fn is_no_return_address(&mut self, tasks: &Tasks, task: TaskId, frame: Frame) -> bool {
        let is_candidate = frame.is_return && frame.mode == CpuMode::User;
        let Some(return_addresses) = self.return_addresses.as_mut().filter(|_| is_candidate) else {
            return false;
        };
        let mapping = tasks.space(task).mapping_at(frame.address);
        mapping.is_some_and(|mapping| {
            return_addresses.is_no_return_address(&code_mapping(tasks, mapping), frame.address)
        })
    }
}

/// The bytes of a callchain before and behind the entry that is the sampled instruction itself.
fn around_own<'a>(sample: &Sample<'a>) -> (&'a [u8], &'a [u8]) {
    let chain = sample.callchain;
    match own_entry(sample) {
        Some(own) => (&chain.0[..8 * own], &chain.0[8 * (own + 1)..]),
        None => (chain.0, &[]),
    }
}

/// Which entry of a sample's callchain is the sampled instruction itself: the first that is no marker.
///
/// None is if that entry is of another mode. An event that counts in user mode alone may interrupt the program only when
/// it is in the kernel already; the callchain then begins with the program's frames, since it has no others.
#[inline]
fn own_entry(sample: &Sample<'_>) -> Option<usize> {
    sample.ip?;
    let mut mode = sample.mode;
    for (at, entry) in sample.callchain.entries().enumerate() {
        if entry < FIRST_MARKER {
            let is_other = matches!(
                (sample.mode, mode),
                (CpuMode::Kernel, CpuMode::User) | (CpuMode::User, CpuMode::Kernel)
            );
            return (!is_other).then_some(at);
        }
        mode = mode_of_marker(entry).unwrap_or(mode);
    }
    None
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

/// The frames of a sample, innermost first.
pub fn frames_of(sample: &Sample<'_>, unwound: &[u64]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for_each_frame(sample, unwound, |frame| frames.push(frame));
    frames
}

/// Calls `visit` with the frames of a sample, innermost first: its own address, then the callchain without it, then what
/// was unwound.
pub fn for_each_frame(sample: &Sample<'_>, unwound: &[u64], mut visit: impl FnMut(Frame)) {
    own_frame(sample).into_iter().for_each(&mut visit);
    for_each_caller(sample, unwound, visit);
}

fn own_frame(sample: &Sample<'_>) -> Option<Frame> {
    sample.ip.map(|address| Frame { mode: sample.mode, address, is_return: false })
}

/// Calls `visit` with the frames of a sample but its own address, innermost first.
#[inline]
fn for_each_caller(sample: &Sample<'_>, unwound: &[u64], mut visit: impl FnMut(Frame)) {
    let mut mode = sample.mode;
    let mut is_return = false;
    let own = own_entry(sample);
    let calls = if unwound.is_empty() { sample.branch_stack.calls() } else { BranchStack::default().calls() };
    let mut is_in_program = false;
    for (at, address) in sample.callchain.entries().enumerate() {
        if address >= FIRST_MARKER {
            mode = mode_of_marker(address).unwrap_or(mode);
            is_in_program |= mode == CpuMode::User;
            is_return = false;
            continue;
        }
        // Of the program itself branches tell more than frame pointers, but for where it was.
        let is_unwound = mode == CpuMode::User && (!unwound.is_empty() || (is_return && calls.len() > 0));
        if !is_unwound && own != Some(at) {
            visit(Frame { mode, address, is_return });
        }
        is_return = true;
    }
    // Kernel threads have no callers in a program, whatever the CPU still holds.
    if is_in_program {
        let is_placed = is_return || (sample.mode == CpuMode::User && sample.ip.is_some());
        let entered = calls.clone().next().map(|call| call.to).filter(|_| !is_placed);
        let calls = entered.into_iter().chain(calls.map(|call| call.from));
        calls.for_each(|address| visit(Frame { mode: CpuMode::User, address, is_return: false }));
    }
    // The innermost unwound frame is where the program is: the sampled instruction itself, or where it
    // entered the kernel.
    let in_user_mode = sample.mode == CpuMode::User && sample.ip.is_some();
    for (depth, &address) in unwound.iter().enumerate().skip(usize::from(in_user_mode)) {
        visit(Frame { mode: CpuMode::User, address, is_return: depth > 0 });
    }
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
    use perf_data::record::Callchain;
    use proptest::prelude::*;

    use super::*;

    const KERNEL: u64 = -128i64 as u64;
    const USER: u64 = -512i64 as u64;

    fn chain(entries: &[u64]) -> Vec<u8> {
        entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()
    }

    /// What is told of a sample's frames.
    fn told(sample: &Sample<'_>) -> Vec<(u64, CpuMode, bool)> {
        frames_of(sample, &[]).iter().map(|frame| (frame.address, frame.mode, frame.is_return)).collect()
    }

    /// `enum perf_callchain_context` of the kernel's perf_event.h.
    #[test]
    fn every_marker_is_known() {
        let modes = [
            (-32, CpuMode::Hypervisor),
            (-128, CpuMode::Kernel),
            (-512, CpuMode::User),
            (-2048, CpuMode::GuestKernel),
            (-2176, CpuMode::GuestKernel),
            (-2560, CpuMode::GuestUser),
        ];
        for (marker, mode) in modes {
            assert_eq!(mode_of_marker(i64::cast_unsigned(marker)), Some(mode), "{marker}");
        }
        assert_eq!([0, 32, 4095, u64::MAX].map(mode_of_marker), [None; 4]);
    }

    #[test]
    fn markers_change_the_mode_and_only_callers_are_return_addresses() {
        let bytes = chain(&[KERNEL, 0xf001, 0xf002, USER, 0x11, 0x12]);
        let callchain = Callchain(&bytes);
        let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
        assert_eq!(
            told(&sample),
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
        let callchain = Callchain(&bytes);
        let in_kernel = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
        let frames = |sample: &Sample<'_>| -> Vec<_> {
            frames_of(sample, &[0x11, 0x12]).iter().map(|frame| (frame.address, frame.is_return)).collect()
        };
        assert_eq!(frames(&in_kernel), [(0xf001, false), (0x11, false), (0x12, true)]);
        let in_user = Sample { ip: Some(0x11), mode: CpuMode::User, ..Sample::default() };
        assert_eq!(frames(&in_user), [(0x11, false), (0x12, true)]);
    }

    #[test]
    fn a_users_event_that_is_late_keeps_the_programs_frames() {
        let bytes = chain(&[USER, 0x11, 0x12]);
        let callchain = Callchain(&bytes);
        let sample = Sample { ip: Some(0xf001), mode: CpuMode::Kernel, callchain, ..Sample::default() };
        assert_eq!(
            told(&sample),
            [(0xf001, CpuMode::Kernel, false), (0x11, CpuMode::User, false), (0x12, CpuMode::User, true),]
        );
    }

    fn branches(entries: &[(u64, u64)]) -> Vec<u8> {
        entries.iter().flat_map(|&(from, to)| [from, to, 0]).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn calls_that_the_cpu_kept_are_the_callers_in_the_program() {
        let calls = branches(&[(0x21, 0x10), (0x31, 0x20)]);
        let frames = |are_calls, mode, entries: &[u64]| -> Vec<_> {
            let bytes = chain(entries);
            let branch_stack = BranchStack { bytes: &calls, are_calls };
            let ip = entries.iter().copied().find(|entry| *entry < FIRST_MARKER);
            let callchain = Callchain(&bytes);
            let sample = Sample { ip, mode, callchain, branch_stack, ..Sample::default() };
            told(&sample).into_iter().map(|(address, _, is_return)| (address, is_return)).collect()
        };
        let (user, kernel) = (CpuMode::User, CpuMode::Kernel);
        assert_eq!(frames(true, user, &[USER, 0x15, 0x99]), [(0x15, false), (0x21, false), (0x31, false)]);
        let in_kernel = [(0xf001, false), (0xf002, true), (0x15, false), (0x21, false), (0x31, false)];
        assert_eq!(frames(true, kernel, &[KERNEL, 0xf001, 0xf002, USER, 0x15, 0x99]), in_kernel);
        // Without the place in the program: where the last call led to.
        let entered = [(0xf001, false), (0x10, false), (0x21, false), (0x31, false)];
        assert_eq!(frames(true, kernel, &[KERNEL, 0xf001, USER]), entered);
        // Of a kernel thread the CPU's branches are another task's.
        assert_eq!(frames(true, kernel, &[KERNEL, 0xf001, 0xf002]), [(0xf001, false), (0xf002, true)]);
        assert_eq!(frames(false, user, &[USER, 0x15, 0x99]), [(0x15, false), (0x99, true)], "any branches");
    }

    #[test]
    fn what_is_not_told_apart_is_alike() {
        let mut tasks = Tasks::default();
        let (one, two) = (tasks.task(1, 1), tasks.task(2, 2));
        for pid in [1, 2] {
            tasks.map_jit_function(pid, 0x10, 0x30, "code");
        }
        let (a, b) = (chain(&[USER, 0x10, 0x20]), chain(&[USER, 0x10, 0x30]));
        let of = |bytes| Sample {
            ip: Some(0x10),
            mode: CpuMode::User,
            callchain: Callchain(bytes),
            ..Sample::default()
        };
        let parts = |key: SampleKey| (key.callers, key.own, key.thread);
        for (dimensions, alike) in
            [(Dimensions::ALL, false), (Dimensions { stacks: false, threads: false, cpus: false }, true)]
        {
            let mut collector = Collector::new(dimensions, usize::MAX);
            let first = collector.key(&mut tasks, one, &of(&a), &[]);
            let again = collector.key(&mut tasks, one, &of(&a), &[]);
            assert_eq!(parts(first), parts(again));
            let other = collector.key(&mut tasks, two, &of(&b), &[]);
            assert_eq!(first.callers == other.callers, alike);
            assert_eq!(first.thread == other.thread, alike);
        }
    }

    /// The same addresses are other code in another process.
    #[test]
    fn callers_of_two_processes_are_never_the_same() {
        let mut tasks = Tasks::default();
        let (one, two) = (tasks.task(1, 1), tasks.task(2, 2));
        for pid in [1, 2] {
            tasks.map_jit_function(pid, 0x1000, 0x500, "code");
        }
        let bytes = chain(&[USER, 0x1010, 0x1120, 0x1230]);
        let callchain = Callchain(&bytes);
        let sample = Sample { ip: Some(0x1010), mode: CpuMode::User, callchain, ..Sample::default() };
        for asked in [None, Some(FunctionsOfStacks::Paths), Some(FunctionsOfStacks::Sets)] {
            let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
            let first = collector.key(&mut tasks, one, &sample, &[]);
            if let Some(asked) = asked {
                let module = collector.addresses()[0].module;
                let start = collector.addresses()[0].address & !0xff;
                let extents =
                    [0, 1, 2].map(|at| (start + 0x100 * at, start + 0x100 * (at + 1), AddressId(at as u32)));
                collector.merge_functions(Functions::of_extents(module, &extents), asked);
            }
            let keys = [one, two, one, two].map(|task| collector.key(&mut tasks, task, &sample, &[]));
            assert_eq!((keys[0].callers, keys[1].callers), (keys[2].callers, keys[3].callers));
            assert_ne!(keys[0].callers, keys[1].callers, "{asked:?}");
            assert_ne!(keys[0].own.get(), keys[1].own.get(), "{asked:?}");
            assert_eq!(keys[0].thread, first.thread);
        }
    }

    /// Innermost first: `A` and `C` are code that something returns to, `B` is code that nothing returns to, `N` lies nowhere.
    #[test]
    fn paths_end_before_what_nothing_returns_to() {
        let mut tasks = Tasks::default();
        let task = tasks.task(1, 1);
        tasks.map_jit_function(1, 0x1000, 0x500, "code");
        let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
        let spaces = collector.located.number_of((tasks.space_id(task), tasks.kernel_space_id()));
        let mut located = |address| {
            let frame = Frame { mode: CpuMode::User, address, is_return: true };
            collector.located(&mut tasks, task, spaces, frame)
        };
        let [a, b, c, n] = [0x1010, 0x1120, 0x1230, 0xdead_0000].map(&mut located);
        collector.no_return_addresses.insert(b);
        assert!(!collector.may_stand(b) && collector.may_stand(a));
        for (path, expected) in [
            (vec![a, c, b], vec![a, c]),
            (vec![a, b, c], vec![a, b, c]),
            (vec![a, b, n], vec![a]),
            (vec![a, n, b], vec![a, n]),
            (vec![a, b, b, n, b], vec![a]),
            (vec![a, n, n], vec![a, n, n]),
            (vec![b], vec![]),
            (vec![], vec![]),
        ] {
            let mut ended = path.clone();
            collector.end_where_nothing_returns(&tasks, &mut ended);
            assert_eq!(ended, expected, "{path:?}");
        }
    }

    #[test]
    fn frames_in_a_row_that_lie_nowhere_are_one() {
        let mut tasks = Tasks::default();
        let task = tasks.task(1, 1);
        tasks.map_jit_function(1, 0x1000, 0x1000, "code");
        let garbage: Vec<u64> = (0..127).map(|at| 0xdead_0000 + 8 * at).collect();
        let mut depth = |ip: u64, callers: &[u64]| {
            let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
            let bytes = chain(&[&[USER, ip], callers].concat());
            let sample = Sample {
                ip: Some(ip),
                mode: CpuMode::User,
                callchain: Callchain(&bytes),
                ..Sample::default()
            };
            let key = collector.key(&mut tasks, task, &sample, &[]);
            // The same callers again, and below code that is known.
            assert_eq!(collector.key(&mut tasks, task, &sample, &[]).callers, key.callers);
            let known = Sample { ip: Some(0x1800), ..sample };
            let below = collector.key(&mut tasks, task, &known, &[]).callers;
            let table = collector.finish().callers;
            [key.callers, below].map(|callers| table.frames_of_callers(callers).count())
        };
        assert_eq!(depth(0x1010, &garbage), [1, 1]);
        assert_eq!(depth(0xdead_9000, &garbage), [0, 1], "a frame that lies nowhere is one with its callers");
        let around = [&garbage[..50], &[0x1020], &garbage[50..], &[0x1030]].concat();
        assert_eq!(depth(0x1010, &around), [4, 4]);
        assert_eq!(depth(0xdead_9000, &around), [3, 4]);
    }

    proptest! {
        /// As a set of functions a stack has the functions that it has as a path, each once but for those of the sampled
        /// instruction, and all frames that are of no known function; where some lie nowhere, it is the path itself.
        #[test]
        fn sets_have_the_functions_of_paths(
            stacks in prop::collection::vec(prop::collection::vec(0u64..0x600, 1..12), 1..40),
            deep in 0usize..3,
        ) {
            let mut tasks = Tasks::default();
            let task = tasks.task(1, 1);
            tasks.map_jit_function(1, 0x1000, 0x500, "code");
            let paths = |asked: FunctionsOfStacks, tasks: &mut Tasks| {
                let mut collector = Collector::new(Dimensions::ALL, usize::MAX);
                let mut key = |collector: &mut Collector, stack: &[u64]| {
                    let entries: Vec<u64> =
                        [USER].into_iter().chain(stack.iter().map(|at| 0x1000 + at)).collect();
                    let bytes = chain(&entries);
                    let ip = Some(entries[1]);
                    let callchain = Callchain(&bytes);
                    let sample = Sample { ip, mode: CpuMode::User, callchain, ..Sample::default() };
                    collector.key(tasks, task, &sample, &[])
                };
                // One that stands for each of four functions; what lies behind them is no function's.
                for function in 0..4 {
                    key(&mut collector, &[0x100 * function]);
                }
                let [first, ..] = collector.addresses() else { panic!("there are addresses") };
                let (module, start) = (first.module, first.address);
                let extent = |function: u32| {
                    let start = start + 0x100 * u64::from(function);
                    (start, start + 0x100, AddressId(function))
                };
                let functions = Functions::of_extents(module, &[0, 1, 2, 3].map(extent));
                collector.merge_functions(functions, asked);
                let keys: Vec<SampleKey> = stacks
                    .iter()
                    .map(|stack| key(&mut collector, &stack.repeat(if deep == 0 { 20 } else { 1 })))
                    .collect();
                let table = collector.finish().callers;
                let path = |key: &SampleKey| -> Vec<u32> {
                    table.frames_of_callers(key.callers).map(|frame| frame.0).collect()
                };
                let found: Vec<_> = keys.iter().map(|key| (key.own.get(), path(key))).collect();
                (found, table.callers_len())
            };
            let (whole, places) = paths(FunctionsOfStacks::Paths, &mut tasks);
            let (sets, places_of_sets) = paths(FunctionsOfStacks::Sets, &mut tasks);
            prop_assert!(places_of_sets <= places.max(32));
            for ((stack, (own, whole)), (own_of_set, set)) in stacks.iter().zip(&whole).zip(&sets) {
                prop_assert_eq!(own, own_of_set);
                let depth = stack.len() * if deep == 0 { 20 } else { 1 };
                let is_clear = stack.iter().all(|at| (1..0x500).contains(at));
                if depth >= usize::from(DEEPEST_CHAIN) || !is_clear && set == whole {
                    prop_assert_eq!(set, whole);
                    continue;
                }
                let are = |is_function: bool, path: &[u32]| -> Vec<u32> {
                    path.iter().copied().filter(|at| (*at < 4) == is_function).collect()
                };
                let (mut functions, mut of_set) = (are(true, whole), are(true, set));
                functions.sort_unstable();
                functions.dedup();
                of_set.sort_unstable();
                prop_assert_eq!(functions, of_set);
                prop_assert_eq!(are(false, whole), are(false, set));
            }
        }
    }

    /// A recorder that took anything for return addresses: 200 stacks of 8,100 addresses, none of them twice.
    #[test]
    fn callers_beyond_the_room_for_addresses_are_one_function() {
        const STACKS: u64 = 200;
        const DEPTH: u64 = 8_100;
        const ROOM: usize = 1_000;
        let mut tasks = Tasks::default();
        let task = tasks.task(1, 1);
        tasks.map_jit_function(1, 0x1000, 1 << 31, "code");
        let collect = |room: usize, tasks: &mut Tasks| {
            let mut collector =
                Collector::new(Dimensions::ALL, usize::MAX).with_room_for_addresses(room * BYTES_PER_ADDRESS);
            let mut depth = Vec::new();
            for stack in 0..STACKS {
                let addresses = (0..DEPTH).map(|at| 0x1_0000 + 8 * (stack * DEPTH + at));
                let entries: Vec<u64> = [USER].into_iter().chain(addresses).collect();
                let bytes = chain(&entries);
                let callchain = Callchain(&bytes);
                let ip = Some(entries[1]);
                let sample = Sample { ip, mode: CpuMode::User, callchain, ..Sample::default() };
                depth.push(collector.key(tasks, task, &sample, &[]).callers);
            }
            let warning = collector.warning();
            let Collected { callers, addresses, .. } = collector.finish();
            let depth: Vec<usize> =
                depth.iter().map(|path| callers.frames_of_callers(*path).count()).collect();
            (addresses.len(), depth, warning)
        };
        let (addresses, depth, warning) = collect(ROOM, &mut tasks);
        assert_eq!(
            addresses,
            ROOM + STACKS as usize,
            "each sample's own is kept, and one stands for the others"
        );
        assert_eq!((depth[0], &depth[1..]), (ROOM, &vec![1; STACKS as usize - 1][..]));
        assert!(warning.is_some_and(|text| text.contains("more than 1000 addresses")));
        let (addresses, _, warning) = collect((STACKS * DEPTH) as usize, &mut tasks);
        assert_eq!((addresses as u64, warning), (STACKS * DEPTH, None));
    }
}

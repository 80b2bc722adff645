//! Samples to cells: each distinct stack, thread, CPU and event is counted once.

use std::hash::Hasher;

use foldhash::fast::FixedState;
use perf_data::record::{CpuMode, Sample};
use rustc_hash::FxHashSet;

use crate::analyze::aggregate::address_hashes::AddressHashes;
use crate::analyze::aggregate::call_paths::CallPaths;
use crate::analyze::aggregate::frames::{ChainCallers, Frame, around_own, for_each_caller, own_frame};
use crate::analyze::aggregate::function_sets::{FunctionSets, Part};
use crate::analyze::aggregate::functions::Functions;
use crate::analyze::aggregate::key_table::{AddressTable, KeyHash, KeyTable, OwnCaller, Spaces, hash};
use crate::analyze::aggregate::unwind::code_mapping;
use crate::analyze::memory::{BYTES_PER_ADDRESS, BYTES_PER_KEY};
use crate::analyze::options::{Dimensions, FunctionsOfStacks};
use crate::analyze::sample_key::SampleKey;
use crate::profile::{AddressId, CallersId, CodeAddress, HiddenCallers, ModuleKind, StackTable, ThreadIndex};
use crate::symbolize::ReturnAddressFinder;
use crate::timeline::{CodeInterner, TaskId, Tasks};

mod as_set;
mod hidden_callers;
mod of_workers;

/// Numbers of callers that are left free, so that the longest path still has one.
const SPARE_NUMBERS: usize = 1 << 20;

/// So many samples are known again where they have fewer paths.
const SPARE_KEYS: usize = 1 << 15;

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
    /// By address: whether it lies in no known code, or is not told apart.
    are_nowhere: Vec<bool>,
    hashes: AddressHashes,
    paths: CallPaths,
    path: Vec<AddressId>,
    /// Tells return addresses from what chains of frame pointers take for some; `None` where there are no such chains.
    return_addresses: Option<ReturnAddressFinder>,
    /// How often chains lacked the caller of the function that a sample was in, where that is counted.
    hidden_callers: Option<HiddenCallers>,
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
            are_nowhere: Vec::new(),
            hashes: AddressHashes::default(),
            paths: CallPaths::default(),
            path: Vec::new(),
            return_addresses: None,
            hidden_callers: None,
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
        self.paths.take_table()
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
        let found = own_frame(sample).map(|frame| self.located(tasks, task, number_of_spaces, frame));
        let own = found.map(|(own, _)| own);
        let callers = match self.dimensions.stacks {
            true => self.callers(tasks, task, spaces, sample, unwound, own),
            false => CallersId::NONE,
        };
        if self.hidden_callers.is_some() {
            self.count_hidden_caller(tasks, task, number_of_spaces, sample, found.map(|(_, caller)| caller));
        }
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
                    Keeping::All => self.paths.callers(&self.path, self.hashes.all()),
                    Keeping::Part { launches } => launches.callers(&self.path, self.hashes.all()),
                    Keeping::Addresses => CallersId::NONE,
                }
            }
            false => CallersId::NONE,
        };
        if self.hidden_callers.is_some() {
            let spaces = self.located.number_of(spaces);
            self.count_hidden_caller(tasks, task, spaces, sample, None);
        }
        let own = Some(self.code.intern(kernel)).into();
        SampleKey { callers, own, thread }
    }

    /// The key here of a sample of a part that has ended, by its callers, the outermost first.
    pub fn key_of_path(&mut self, path: &[AddressId], key: SampleKey) -> SampleKey {
        let callers = self.paths.callers(path, self.hashes.all());
        self.is_full = self.are_too_many();
        SampleKey { callers, ..key }
    }

    /// What decides the cell of code without callers.
    pub fn bare_key(&mut self, tasks: &mut Tasks, task: TaskId, code: CodeAddress) -> SampleKey {
        let (thread, _) = self.told_apart(tasks, task);
        SampleKey { callers: CallersId::NONE, own: Some(self.code.intern(code)).into(), thread }
    }

    /// The thread, if threads are told apart, and what addresses mean.
    fn told_apart(&self, tasks: &mut Tasks, task: TaskId) -> (ThreadIndex, Spaces) {
        (self.thread(tasks, task), (tasks.space_id(task), tasks.kernel_space_id()))
    }

    /// The thread, if threads are told apart.
    pub fn thread(&self, tasks: &Tasks, task: TaskId) -> ThreadIndex {
        if self.dimensions.threads { tasks.thread(task) } else { ThreadIndex(0) }
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

    /// The number of the path at hand, by which samples of this hash find it again.
    fn number_path(&mut self, hash: KeyHash) -> CallersId {
        let keeps_paths = !matches!(self.keeping, Keeping::Addresses);
        let callers = match keeps_paths {
            true => self.paths.callers(&self.path, self.hashes.all()),
            false => CallersId::NONE,
        };
        let most_keys = match keeps_paths {
            true => self.paths.parts() + SPARE_KEYS,
            // All that is known of these is that their addresses were seen.
            false => self.most_bytes / BYTES_PER_KEY,
        };
        if self.known_callers.len() >= most_keys {
            self.known_callers = KeyTable::default();
        }
        self.known_callers.insert(hash, callers.0);
        self.is_full = keeps_paths && self.are_too_many();
        callers
    }

    /// Paths take more than they may, or more numbers than there are. By paths alone, which are the same however many threads find
    /// them: of samples no more are known again than there are parts of paths, and some beside.
    fn are_too_many(&self) -> bool {
        self.paths.bytes(self.paths.parts()) > self.most_bytes
            || self.paths.len() > u32::MAX as usize - SPARE_NUMBERS
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
        path.extend(own.map(|frame| self.located(tasks, task, spaces, frame).0));
        let with_own = path.len();
        if !self.add_located(spaces, sample, unwound, &mut path) {
            path.truncate(with_own);
            let mut nowhere = None;
            for_each_caller(sample, unwound, |frame| {
                let (address, _) = self.located(tasks, task, spaces, frame);
                // Where a chain of frame pointers goes astray, a hundred frames can be nowhere: they are one.
                let last = std::mem::replace(&mut nowhere, self.nowhere(tasks, address));
                if nowhere.is_none() || nowhere != last {
                    path.push(address);
                }
            });
        }
        if !self.no_return_addresses.is_empty() {
            self.end_where_nothing_returns(tasks, &mut path);
        }
        path.reverse();
        self.path = path;
    }

    /// Adds a sample's callers to a path, innermost first, if its callchain is all there is, and all of it was located before and
    /// lies in known code; `false` if not.
    fn add_located(
        &self,
        spaces: u32,
        sample: &Sample<'_>,
        unwound: &[u64],
        path: &mut Vec<AddressId>,
    ) -> bool {
        let (known, are_nowhere) = (self.located.known(), &self.are_nowhere[..]);
        let Some(callers) = ChainCallers::of(sample, unwound) else { return false };
        for Frame { mode, address, is_return } in callers {
            match known.find(AddressTable::key(spaces, mode, is_return, address)) {
                Some(found) if are_nowhere.get(found.0 as usize) == Some(&false) => path.push(found),
                _ => return false,
            }
        }
        true
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

    /// The number of a frame's address, and what is known of its caller if it has called nothing itself; `spaces` is what
    /// [`AddressTable::number_of`] says of the memory maps.
    #[inline]
    fn located(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        spaces: u32,
        frame: Frame,
    ) -> (AddressId, OwnCaller) {
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
    fn locate(
        &mut self,
        tasks: &mut Tasks,
        task: TaskId,
        frame: Frame,
        key: KeyHash,
    ) -> (AddressId, OwnCaller) {
        let place = tasks.locate(task, frame.mode, frame.address);
        let code = in_the_call(tasks, place, frame.is_return);
        // What was told apart before still is, whichever thread met it.
        let is_too_many =
            |code| frame.is_return && self.code.len() >= self.most_addresses && !self.code.has(code);
        let found = if is_too_many(code) && self.functions.find(code).is_none() {
            *self.folded.get_or_insert_with(|| self.code.intern(tasks.folded()))
        } else if self.is_no_return_address(tasks, task, frame) {
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
        let caller = self.caller_of(tasks, task, frame);
        // What is folded is told by where it lies alone, and takes no memory.
        if Some(found) != self.folded {
            self.located.insert(key, found, caller);
        }
        for known in (self.are_nowhere.len() as u32..self.code.len() as u32).map(AddressId) {
            self.are_nowhere.push(self.nowhere(tasks, known).is_some());
        }
        self.hashes.extend(&self.code, tasks.modules());
        (found, caller)
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

/// A return address is the instruction after the call, which may belong to another line or function.
/// The byte before it lies in the call.
fn in_the_call(tasks: &Tasks, mut code: CodeAddress, is_return: bool) -> CodeAddress {
    // Where nothing is known of the code, the address as recorded is worth more.
    if is_return && tasks.modules()[code.module.0 as usize].kind != ModuleKind::Unknown {
        code.address = code.address.saturating_sub(1);
    }
    code
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;

//! Where the frames of a recording's samples lie, and their names: found in a first pass, printed in a second.

use eprof::analyze::{Frame, SampleUnwinder, add_build_ids, for_each_frame};
use eprof::profile::{AddressId, CodeAddress, Module, ModuleKind};
use eprof::recording::Recording;
use eprof::symbolize::SymbolizeOptions;
use eprof::timeline::{CodeInterner, SpaceId, TaskId, Tasks};
use perf_data::record::{CpuMode, Record, Sample};
use rustc_hash::FxHashMap;

/// Follows tasks and their mappings, and unwinds stacks that were copied.
pub struct Follower {
    pub tasks: Tasks,
    unwinder: Option<SampleUnwinder>,
}

impl Follower {
    pub fn new(recording: &Recording, options: &SymbolizeOptions) -> Self {
        Self { tasks: Tasks::default(), unwinder: SampleUnwinder::for_recording(recording, options) }
    }

    /// What the reader must know of stacks that could not be followed to their ends.
    pub fn warnings(&self) -> Vec<String> {
        self.unwinder.as_ref().map(SampleUnwinder::warnings).unwrap_or_default()
    }

    /// Takes up what a record says of tasks and mappings.
    pub fn follow(&mut self, record: &Record<'_>) {
        match record {
            Record::Mmap(map) => self.tasks.map(map),
            Record::Comm { pid, tid, name, exec } => self.tasks.rename(*pid, *tid, name, *exec),
            Record::Fork(change) => self.tasks.fork(change),
            Record::Ksymbol { address, length, unregistered: false, name } => {
                self.tasks.kernel_symbol(*address, *length, name);
            }
            _ => {}
        }
    }

    /// Puts the frames of a sample, innermost first, into `frames`.
    pub fn frames(&mut self, task: TaskId, sample: &Sample<'_>, frames: &mut Vec<Frame>) {
        let unwound = match &mut self.unwinder {
            Some(unwinder) => unwinder.unwind(&self.tasks, task, sample),
            None => &[],
        };
        frames.clear();
        for_each_frame(sample, unwound, |frame| frames.push(frame));
    }
}

/// For places that were not there in the first pass: the file is being changed.
static NOWHERE: Module =
    Module { kind: ModuleKind::Unknown, path: String::new(), build_id: None, inode: None, pid: None };

/// The code addresses of all frames, each known by a number.
#[derive(Default)]
pub struct Places {
    /// Of this pass alone: looking a place up tells [`Tasks`] that somebody asked for it, by which it numbers the
    /// states of memory. A pass that found its places here without asking would number them otherwise.
    known: FxHashMap<Key, Known>,
    /// Those that were looked up last, each at a place that its address decides: nearly all frames are of few places.
    latest: Vec<Latest>,
    code: CodeInterner,
    modules: Vec<Module>,
}

/// What decides where a frame lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    address: u64,
    /// State of memory, mode, and whether it is an address behind a call.
    context: u64,
}

/// The states of memory that decide where the frames of a sample lie.
#[derive(Debug, Clone, Copy)]
pub struct SampleSpaces {
    user: SpaceId,
    kernel: SpaceId,
}

impl SampleSpaces {
    /// Those of a task, until more of its memory is known.
    pub fn of(tasks: &Tasks, task: TaskId) -> Self {
        Self { user: tasks.space_id(task), kernel: tasks.kernel_space_id() }
    }
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    key: Key,
    found: Known,
}

/// Places of [`Places::latest`].
const LATEST: usize = 1 << 13;
/// Stands where none was looked up: contexts have fewer bits.
const NONE: Latest =
    Latest { key: Key { address: 0, context: u64::MAX }, found: Known { number: 0, place: AddressId(0) } };

/// Fibonacci hashing: the high bits depend on all of the address.
fn place_among_latest(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - LATEST.trailing_zeros())) as usize
}

/// A frame as this pass has seen it before: everything that is printed of it is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Counts from 0 in each pass.
    pub number: u32,
    /// Where it lies.
    pub place: AddressId,
}

impl Places {
    /// A frame's place: of the call itself, where the frame's address is that behind the call. `spaces` are the sample's.
    #[inline]
    pub fn of(&mut self, tasks: &mut Tasks, task: TaskId, spaces: SampleSpaces, frame: Frame) -> Known {
        let Frame { mode, address, is_return } = frame;
        let space = if mode == CpuMode::Kernel { spaces.kernel } else { spaces.user };
        // There are fewer modes than 8.
        let context = u64::from(space.0) << 4 | (mode as u64) << 1 | u64::from(is_return);
        let key = Key { address, context };
        match self.latest.get(place_among_latest(address)) {
            Some(latest) if latest.key == key => latest.found,
            _ => self.look_up(tasks, task, frame, key),
        }
    }

    #[cold]
    fn look_up(&mut self, tasks: &mut Tasks, task: TaskId, frame: Frame, key: Key) -> Known {
        let Frame { mode, address, is_return } = frame;
        let Self { known, code, latest, .. } = self;
        let number = known.len() as u32;
        let found = *known.entry(key).or_insert_with(|| {
            let code_address = tasks.locate(task, mode, address.wrapping_sub(u64::from(is_return)));
            Known { number, place: code.intern(code_address) }
        });
        latest.resize(LATEST, NONE);
        latest[place_among_latest(address)] = Latest { key, found };
        found
    }

    /// Ends the first pass: takes over the modules that the places lie in.
    pub fn finish(&mut self, tasks: Tasks, recording: &Recording) {
        self.end_pass(tasks);
        add_build_ids(&mut self.modules, recording);
    }

    fn end_pass(&mut self, tasks: Tasks) {
        (self.modules, _) = tasks.into_parts();
        self.known.clear();
        self.latest.clear();
    }

    /// All places, by their numbers.
    pub fn addresses(&self) -> &[CodeAddress] {
        self.code.addresses()
    }

    /// What the places lie in.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// A place, and what it lies in.
    pub fn place(&self, id: AddressId) -> (CodeAddress, &Module) {
        let code = self.code.addresses()[id.0 as usize];
        (code, self.modules.get(code.module.0 as usize).unwrap_or(&NOWHERE))
    }
}

#[cfg(test)]
mod tests {
    use perf_data::record::{FileIdentity, Mmap};

    use super::*;

    /// What a pass prints of a program that is interrupted on its way into memory: before its first file is mapped,
    /// between the first and the second, and behind both.
    fn pass(places: &mut Places, tasks: &mut Tasks) -> Vec<Known> {
        let map = |address, path: &'static [u8]| Mmap {
            pid: 7,
            tid: 7,
            address,
            length: 0x1000,
            file_offset: 0x2000,
            identity: FileIdentity::Unknown,
            is_data: false,
            protection: None,
            path,
            mode: CpuMode::User,
        };
        let task = tasks.task(7, 7);
        let mut all = Vec::new();
        let mut sample = |tasks: &mut Tasks, addresses: &[u64]| {
            let frame = |&address| Frame { mode: CpuMode::User, address, is_return: false };
            let spaces = SampleSpaces::of(tasks, task);
            all.extend(addresses.iter().map(frame).map(|frame| places.of(tasks, task, spaces, frame)));
        };
        sample(tasks, &[0x11_010]);
        tasks.map(&map(0x10_000, b"/bin/app"));
        sample(tasks, &[0x11_010, 0x10_010]);
        tasks.map(&map(0x11_000, b"/lib/ld.so"));
        sample(tasks, &[0x11_010, 0x10_010]);
        all
    }

    #[test]
    fn the_second_pass_finds_what_the_first_one_found() {
        let mut places = Places::default();
        let mut tasks = Tasks::default();
        let first = pass(&mut places, &mut tasks);
        places.end_pass(tasks);
        let second = pass(&mut places, &mut Tasks::default());
        assert_eq!(first, second);
        let path = |known: Known| places.place(known.place).1.path.as_str();
        let paths: Vec<&str> = second.into_iter().map(path).collect();
        assert_eq!(paths, ["[unknown]", "[unknown]", "/bin/app", "/lib/ld.so", "/bin/app"]);
    }
}

//! Where the frames of a recording's samples lie, and their names: found in a first pass, printed in a second.

use eprof::analyze::{Frame, SampleUnwinder, add_build_ids, frames_of};
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

    /// The frames of a sample, innermost first.
    pub fn frames(&mut self, task: TaskId, sample: &Sample<'_>) -> Vec<Frame> {
        let unwound = match &mut self.unwinder {
            Some(unwinder) => unwinder.unwind(&self.tasks, task, sample),
            None => &[],
        };
        frames_of(sample, unwound)
    }
}

/// For places that were not there in the first pass: the file is being changed.
static NOWHERE: Module =
    Module { kind: ModuleKind::Unknown, path: String::new(), build_id: None, inode: None, pid: None };

/// The code addresses of all frames, each known by a number.
#[derive(Default)]
pub struct Places {
    known: FxHashMap<(SpaceId, CpuMode, bool, u64), AddressId>,
    code: CodeInterner,
    modules: Vec<Module>,
}

impl Places {
    /// The number of a frame's place: of the call itself, where the frame's address is that behind the call.
    pub fn of(&mut self, tasks: &mut Tasks, task: TaskId, frame: Frame) -> AddressId {
        let Frame { mode, address, is_return } = frame;
        let space = match mode {
            CpuMode::Kernel => tasks.kernel_space_id(),
            _ => tasks.space_id(task),
        };
        let Self { known, code, .. } = self;
        *known.entry((space, mode, is_return, address)).or_insert_with(|| {
            code.intern(tasks.locate(task, mode, address.wrapping_sub(u64::from(is_return))))
        })
    }

    /// Takes over the modules that the places lie in, when all places are known.
    pub fn finish(&mut self, tasks: Tasks, recording: &Recording) {
        (self.modules, _) = tasks.into_parts();
        add_build_ids(&mut self.modules, recording);
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

//! Who runs, under which name, and what is mapped where: replayed from the records.

use std::sync::Arc;

use perf_data::record::{CpuMode, FileIdentity, Mmap, TaskChange};
use rustc_hash::FxHashMap;

use super::modules::{Modules, kind_of_path};
use super::space::{AddressSpace, Effect, Located, Mapping, SpaceId};
use crate::profile::{
    CodeAddress, ENDED_TASKS_ID, ENDED_TASKS_NAME, Module, ModuleId, ModuleKind, RecordingId,
    SHORT_PROCESSES_ID, SHORT_PROCESSES_NAME, Thread, ThreadIndex,
};

/// A live thread in [`Tasks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId(u32);

/// So many answers are at hand: threads that run at the same time mostly have numbers that follow each other.
const LATEST: usize = 8;

/// The pid of the kernel's own mappings.
const KERNEL_PID: u32 = u32::MAX;

/// All tasks of a recording at one point in time.
///
/// Feed it the records in time order; ask it where an address lies now.
#[derive(Debug, Clone)]
pub struct Tasks {
    tasks: Vec<Task>,
    task_ids: FxHashMap<(u32, u32), TaskId>,
    /// The latest answers of [`Tasks::task`], each at the place of its thread's number: on each CPU samples come in bursts from
    /// one thread.
    latest: [Option<((u32, u32), TaskId)>; LATEST],
    processes: Vec<Process>,
    process_ids: FxHashMap<u32, usize>,
    kernel: AddressSpace,
    kernel_space: SpaceId,
    next_space: u32,
    modules: Modules,
    /// Their control groups are known by numbers until all is known; see `into_parts`.
    threads: Vec<Thread>,
    /// The control group of each thread in `threads`, where samples told one.
    cgroup_of: Vec<Option<u64>>,
    /// A thread that moves from one control group to another one is listed once for each.
    in_cgroup: FxHashMap<(TaskId, u64), ThreadIndex>,
    cgroup_paths: FxHashMap<u64, Arc<str>>,
}

#[derive(Debug, Clone)]
struct Task {
    process: usize,
    thread: ThreadIndex,
}

#[derive(Debug, Clone)]
struct Process {
    pid: u32,
    parent: Option<u32>,
    space: AddressSpace,
    space_id: SpaceId,
    /// Changes with every mapping, also those that change no known address's meaning.
    layout_id: SpaceId,
    /// An address of this state was found to lie nowhere: a mapping added later changes its meaning.
    has_unresolved: bool,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            tasks: Vec::new(),
            task_ids: FxHashMap::default(),
            latest: [None; LATEST],
            processes: Vec::new(),
            process_ids: FxHashMap::default(),
            kernel: AddressSpace::default(),
            kernel_space: SpaceId(0),
            next_space: 1,
            modules: Modules::default(),
            threads: Vec::new(),
            cgroup_of: Vec::new(),
            in_cgroup: FxHashMap::default(),
            cgroup_paths: FxHashMap::default(),
        }
    }
}

impl Tasks {
    /// The task of a thread, made up with perf's name for a stranger (`:1234`) if no record told of it.
    #[inline]
    pub fn task(&mut self, pid: u32, tid: u32) -> TaskId {
        let place = tid as usize % LATEST;
        if let Some((key, id)) = self.latest[place]
            && key == (pid, tid)
        {
            return id;
        }
        let id = match self.task_ids.get(&(pid, tid)) {
            Some(id) => *id,
            None => {
                let name = match tid {
                    0 => "swapper".to_owned(),
                    ENDED_TASKS_ID => ENDED_TASKS_NAME.to_owned(),
                    _ => self.process_name(pid).unwrap_or_else(|| format!(":{tid}")),
                };
                self.new_task(pid, tid, name, None)
            }
        };
        self.latest[place] = Some(((pid, tid), id));
        id
    }

    /// What stands for processes that a program started and that ended before their first sample. They are in its control group,
    /// as what is started is.
    pub fn short_processes(&mut self, program: u32) -> TaskId {
        let program = self.task(program, program);
        let of_program = self.cgroup(program);
        let id = SHORT_PROCESSES_ID;
        let known = self.task_ids.get(&(id, id)).copied();
        let task = known.unwrap_or_else(|| self.new_task(id, id, SHORT_PROCESSES_NAME.to_owned(), None));
        if let Some(cgroup) = of_program {
            self.in_cgroup(task, cgroup);
        }
        task
    }

    /// The entry in the profile's list of threads; it changes when the thread changes its name or its control group.
    pub fn thread(&self, task: TaskId) -> ThreadIndex {
        self.tasks[task.0 as usize].thread
    }

    /// A sample says which control group the task is in.
    #[inline]
    pub fn in_cgroup(&mut self, task: TaskId, cgroup: u64) {
        let thread = self.thread(task);
        if self.cgroup_of[thread.0 as usize] != Some(cgroup) {
            self.enter_cgroup(task, thread, cgroup);
        }
    }

    #[cold]
    fn enter_cgroup(&mut self, task: TaskId, thread: ThreadIndex, cgroup: u64) {
        let of_group = match self.in_cgroup.get(&(task, cgroup)) {
            Some(known) => *known,
            // The first that is told of a thread holds for what it did before.
            None if self.cgroup_of[thread.0 as usize].is_none() => {
                self.cgroup_of[thread.0 as usize] = Some(cgroup);
                thread
            }
            None => self.new_thread(self.threads[thread.0 as usize].clone(), Some(cgroup)),
        };
        self.in_cgroup.insert((task, cgroup), of_group);
        self.tasks[task.0 as usize].thread = of_group;
    }

    /// The path of a control group. It may be told after samples of it.
    pub fn name_cgroup(&mut self, cgroup: u64, path: &[u8]) {
        self.cgroup_paths.insert(cgroup, String::from_utf8_lossy(path).into());
    }

    /// The state of the memory map that a task sees in user mode.
    pub fn space_id(&self, task: TaskId) -> SpaceId {
        self.process_of(task).space_id
    }

    /// A number that changes whenever the mappings that a task sees do.
    pub fn layout_id(&self, task: TaskId) -> SpaceId {
        self.process_of(task).layout_id
    }

    /// The state of the kernel's memory map.
    pub fn kernel_space_id(&self) -> SpaceId {
        self.kernel_space
    }

    /// The mappings that a task sees in user mode.
    pub fn space(&self, task: TaskId) -> &AddressSpace {
        &self.process_of(task).space
    }

    /// Where an address lies now. What lies nowhere is in a module of kind [`ModuleKind::Unknown`].
    pub fn locate(&mut self, task: TaskId, mode: CpuMode, address: u64) -> CodeAddress {
        match mode {
            CpuMode::Kernel => self.locate_in_kernel(address),
            CpuMode::User | CpuMode::Unknown => self.locate_in_process(task, address),
            CpuMode::Hypervisor => self.elsewhere("[hypervisor]", address),
            CpuMode::GuestKernel => self.elsewhere("[guest.kernel]", address),
            CpuMode::GuestUser => self.elsewhere("[guest]", address),
        }
    }

    /// Is `pid` the process `ancestor` or one of its descendants?
    pub fn descends_from(&self, pid: u32, ancestor: u32) -> bool {
        let mut current = Some(pid);
        // Pids are reused, so a chain of parents could in theory loop; no real tree is this deep.
        for _ in 0..1000 {
            match current {
                Some(pid) if pid == ancestor => return true,
                Some(pid) => {
                    current = self.process_ids.get(&pid).and_then(|process| self.processes[*process].parent);
                }
                None => return false,
            }
        }
        false
    }

    /// A process or the kernel mapped something.
    pub fn map(&mut self, record: &Mmap<'_>) {
        if record.pid == KERNEL_PID || matches!(record.mode, CpuMode::Kernel | CpuMode::GuestKernel) {
            self.map_in_kernel(record);
            return;
        }
        let path = String::from_utf8_lossy(record.path).into_owned();
        let (kind, module_address, pid) = match kind_of_path(&path) {
            ModuleKind::Vdso => (ModuleKind::Vdso, 0, None),
            ModuleKind::Anonymous => (ModuleKind::Anonymous, record.address, Some(record.pid)),
            kind => (kind, record.file_offset, None),
        };
        let (inode, build_id) = match record.identity {
            FileIdentity::Inode { major, minor, inode, .. } if kind == ModuleKind::File => {
                (Some((major, minor, inode)), None)
            }
            FileIdentity::BuildId(id) => (None, Some(id.to_vec())),
            _ => (None, None),
        };
        let module = self.modules.id(Module { kind, path, build_id, inode, pid });
        self.map_range(record.pid, record.address, record.length, module_address, module);
    }

    /// A just-in-time compiler placed a function of this name at an address.
    pub fn map_jit_function(&mut self, pid: u32, address: u64, length: u64, name: &str) {
        let module = self.modules.jit(name, Some(pid));
        self.map_range(pid, address, length, 0, module);
    }

    /// A kernel of a GPU, known by name.
    pub fn gpu_kernel(&mut self, name: &str) -> CodeAddress {
        let module = self.modules.nameless(ModuleKind::GpuKernel, name);
        CodeAddress { module, address: 0, kernel: false }
    }

    /// What ran without being sampled, by what it is called.
    pub fn not_sampled(&mut self, name: &str) -> CodeAddress {
        let module = self.modules.nameless(ModuleKind::NotSampled, name);
        CodeAddress { module, address: 0, kernel: false }
    }

    /// All code that is not to be told apart.
    pub fn folded(&mut self) -> CodeAddress {
        let module = self.modules.nameless(ModuleKind::Folded, "[folded]");
        CodeAddress { module, address: 0, kernel: false }
    }

    /// The kernel gained or lost a function: a BPF program or a trampoline.
    pub fn kernel_symbol(&mut self, address: u64, length: u32, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let module = self.modules.jit(&name, None);
        let end = address.saturating_add(u64::from(length));
        let mapping = Mapping { start: address, end, module_address: 0, module };
        self.kernel.map(mapping);
        self.kernel_space = self.new_space_id();
    }

    /// A task got a name. After `exec`, nothing of the old program is mapped any more.
    pub fn rename(&mut self, pid: u32, tid: u32, name: &[u8], exec: bool) {
        let name = String::from_utf8_lossy(name).into_owned();
        if exec {
            let space_id = self.new_space_id();
            let process = self.process(pid);
            let process = &mut self.processes[process];
            process.space = AddressSpace::default();
            process.space_id = space_id;
            process.layout_id = space_id;
            process.has_unresolved = false;
        }
        // It stays where it was.
        let cgroup = self.task_ids.get(&(pid, tid)).and_then(|task| self.cgroup(*task));
        self.new_task(pid, tid, name, cgroup);
    }

    /// A task was made: a thread shares its process's memory, a process begins with a copy.
    pub fn fork(&mut self, change: &TaskChange) {
        let parent = self.task(change.parent_pid, change.parent_tid);
        let name = self.threads[self.thread(parent).0 as usize].name.clone();
        if change.pid != change.parent_pid {
            let space = self.process_of(parent).space.clone();
            let space_id = self.new_space_id();
            let process = self.process(change.pid);
            let process = &mut self.processes[process];
            process.space = space;
            process.space_id = space_id;
            process.layout_id = space_id;
            process.has_unresolved = false;
            process.parent = Some(change.parent_pid);
        }
        self.new_task(change.pid, change.tid, name, self.cgroup(parent));
    }

    /// The modules and threads seen so far, these with their control groups.
    pub fn into_parts(self) -> (Vec<Module>, Vec<Thread>) {
        let Self { modules, mut threads, cgroup_of, mut cgroup_paths, .. } = self;
        for (thread, number) in threads.iter_mut().zip(cgroup_of) {
            let path = number.map(|number| {
                // Made after the recording began, where nobody told of it, and gone before its end.
                cgroup_paths.entry(number).or_insert_with(|| format!("[control group {number}]").into())
            });
            thread.cgroup = path.map(|path| Arc::clone(path));
        }
        (modules.into_list(), threads)
    }

    /// The number of a module that another replay of the same records met.
    pub fn module_of_other(&mut self, module: &Module) -> ModuleId {
        self.modules.id(module.clone())
    }

    /// Modules seen so far, by their numbers.
    pub fn modules(&self) -> &[Module] {
        self.modules.list()
    }

    /// Threads seen so far, by their numbers.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn locate_in_kernel(&mut self, address: u64) -> CodeAddress {
        let located = match self.kernel.locate(address) {
            Some(located) => located,
            None => {
                let module = self.modules.nameless(ModuleKind::Kernel, "[kernel.kallsyms]");
                Located { module, address }
            }
        };
        CodeAddress { module: located.module, address: located.address, kernel: true }
    }

    fn locate_in_process(&mut self, task: TaskId, address: u64) -> CodeAddress {
        let process = self.tasks[task.0 as usize].process;
        match self.processes[process].space.locate(address) {
            Some(Located { module, address }) => CodeAddress { module, address, kernel: false },
            None => {
                self.processes[process].has_unresolved = true;
                self.elsewhere("[unknown]", address)
            }
        }
    }

    fn elsewhere(&mut self, name: &str, address: u64) -> CodeAddress {
        let module = self.modules.nameless(ModuleKind::Unknown, name);
        CodeAddress { module, address, kernel: false }
    }

    fn map_in_kernel(&mut self, record: &Mmap<'_>) {
        let path = String::from_utf8_lossy(record.path);
        // perf appends the name of the symbol that tells how far the kernel was moved.
        let (kind, path) = match path.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, _)) if name.starts_with("kernel") || name.starts_with("guest.kernel") => {
                (ModuleKind::Kernel, format!("[{name}]"))
            }
            _ => (ModuleKind::KernelModule, path.into_owned()),
        };
        let build_id = match record.identity {
            FileIdentity::BuildId(id) => Some(id.to_vec()),
            _ => None,
        };
        let module = self.modules.id(Module { kind, path, build_id, inode: None, pid: None });
        let end = record.address.saturating_add(record.length);
        let mapping = Mapping { start: record.address, end, module_address: record.address, module };
        if self.kernel.map(mapping) != Effect::Unchanged {
            self.kernel_space = self.new_space_id();
        }
    }

    fn map_range(&mut self, pid: u32, address: u64, length: u64, module_address: u64, module: ModuleId) {
        let end = address.saturating_add(length);
        let process = self.process(pid);
        let effect =
            self.processes[process].space.map(Mapping { start: address, end, module_address, module });
        if effect != Effect::Unchanged {
            self.processes[process].layout_id = self.new_space_id();
        }
        let new_meaning = match effect {
            Effect::Replaced => true,
            Effect::Added => self.processes[process].has_unresolved,
            Effect::Unchanged => false,
        };
        if new_meaning {
            let space_id = self.new_space_id();
            let process = &mut self.processes[process];
            process.space_id = space_id;
            process.has_unresolved = false;
        }
    }

    fn process_of(&self, task: TaskId) -> &Process {
        &self.processes[self.tasks[task.0 as usize].process]
    }

    fn process(&mut self, pid: u32) -> usize {
        if let Some(index) = self.process_ids.get(&pid) {
            return *index;
        }
        let space_id = self.new_space_id();
        let space = AddressSpace::default();
        self.processes.push(Process {
            pid,
            parent: None,
            space,
            space_id,
            layout_id: space_id,
            has_unresolved: false,
        });
        let index = self.processes.len() - 1;
        self.process_ids.insert(pid, index);
        index
    }

    fn process_name(&self, pid: u32) -> Option<String> {
        let leader = self.task_ids.get(&(pid, pid))?;
        Some(self.threads[self.thread(*leader).0 as usize].name.clone())
    }

    fn cgroup(&self, task: TaskId) -> Option<u64> {
        self.cgroup_of[self.thread(task).0 as usize]
    }

    fn new_thread(&mut self, thread: Thread, cgroup: Option<u64>) -> ThreadIndex {
        self.threads.push(thread);
        self.cgroup_of.push(cgroup);
        ThreadIndex(self.threads.len() as u32 - 1)
    }

    fn new_task(&mut self, pid: u32, tid: u32, name: String, cgroup: Option<u64>) -> TaskId {
        let process = self.process(pid);
        debug_assert_eq!(self.processes[process].pid, pid);
        let process_name = match pid == tid {
            true => name.clone(),
            false => self.process_name(pid).unwrap_or_else(|| name.clone()),
        };
        let thread = Thread { pid, tid, name, process_name, recording: RecordingId(0), cgroup: None };
        if let Some(id) = self.task_ids.get(&(pid, tid))
            && self.threads[self.thread(*id).0 as usize] == thread
        {
            return *id;
        }
        let thread = self.new_thread(thread, cgroup);
        let id = TaskId(self.tasks.len() as u32);
        if let Some(cgroup) = cgroup {
            self.in_cgroup.insert((id, cgroup), thread);
        }
        self.tasks.push(Task { process, thread });
        self.task_ids.insert((pid, tid), id);
        self.latest = [None; LATEST];
        id
    }

    fn new_space_id(&mut self) -> SpaceId {
        self.next_space += 1;
        SpaceId(self.next_space - 1)
    }
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;

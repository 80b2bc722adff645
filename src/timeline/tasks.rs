//! Who runs, under which name, and what is mapped where: replayed from the records.

use std::sync::Arc;

use perf_data::record::{CpuMode, FileIdentity, Mmap, TaskChange};
use rustc_hash::FxHashMap;

use super::space::{AddressSpace, Effect, Located, Mapping, SpaceId};
use crate::profile::{
    CodeAddress, ENDED_TASKS_ID, ENDED_TASKS_NAME, Module, ModuleId, ModuleKind, RecordingId,
    SHORT_PROCESSES_ID, SHORT_PROCESSES_NAME, Thread, ThreadIndex,
};

/// A live thread in [`Tasks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskId(u32);

/// The pid of the kernel's own mappings.
const KERNEL_PID: u32 = u32::MAX;

/// All tasks of a recording at one point in time.
///
/// Feed it the records in time order; ask it where an address lies now.
#[derive(Debug)]
pub struct Tasks {
    tasks: Vec<Task>,
    task_ids: FxHashMap<(u32, u32), TaskId>,
    /// The last answer of [`Tasks::task`]: samples come in bursts from one thread.
    last: Option<((u32, u32), TaskId)>,
    processes: Vec<Process>,
    process_ids: FxHashMap<u32, usize>,
    kernel: AddressSpace,
    kernel_space: SpaceId,
    next_space: u32,
    modules: Vec<Module>,
    module_ids: FxHashMap<Module, ModuleId>,
    /// Their control groups are known by numbers until all is known; see `into_parts`.
    threads: Vec<Thread>,
    /// The control group of each thread in `threads`, where samples told one.
    cgroup_of: Vec<Option<u64>>,
    /// A thread that moves from one control group to another one is listed once for each.
    in_cgroup: FxHashMap<(TaskId, u64), ThreadIndex>,
    cgroup_paths: FxHashMap<u64, Arc<str>>,
}

#[derive(Debug)]
struct Task {
    process: usize,
    thread: ThreadIndex,
}

#[derive(Debug)]
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
            last: None,
            processes: Vec::new(),
            process_ids: FxHashMap::default(),
            kernel: AddressSpace::default(),
            kernel_space: SpaceId(0),
            next_space: 1,
            modules: Vec::new(),
            module_ids: FxHashMap::default(),
            threads: Vec::new(),
            cgroup_of: Vec::new(),
            in_cgroup: FxHashMap::default(),
            cgroup_paths: FxHashMap::default(),
        }
    }
}

impl Tasks {
    /// The task of a thread, made up with perf's name for a stranger (`:1234`) if no record told of it.
    pub fn task(&mut self, pid: u32, tid: u32) -> TaskId {
        if let Some((key, id)) = self.last
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
        self.last = Some(((pid, tid), id));
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
        let module = self.module(Module { kind, path, build_id, inode, pid });
        self.map_range(record.pid, record.address, record.length, module_address, module);
    }

    /// A just-in-time compiler placed a function of this name at an address.
    pub fn map_jit_function(&mut self, pid: u32, address: u64, length: u64, name: &str) {
        let module = self.jit_module(name, Some(pid));
        self.map_range(pid, address, length, 0, module);
    }

    /// A kernel of a GPU, known by name.
    pub fn gpu_kernel(&mut self, name: &str) -> CodeAddress {
        let module = self.nameless_module(ModuleKind::GpuKernel, name);
        CodeAddress { module, address: 0, kernel: false }
    }

    /// What ran without being sampled, by what it is called.
    pub fn not_sampled(&mut self, name: &str) -> CodeAddress {
        let module = self.nameless_module(ModuleKind::NotSampled, name);
        CodeAddress { module, address: 0, kernel: false }
    }

    /// All code that is not to be told apart.
    pub fn folded(&mut self) -> CodeAddress {
        let module = self.nameless_module(ModuleKind::Folded, "[folded]");
        CodeAddress { module, address: 0, kernel: false }
    }

    /// The kernel gained or lost a function: a BPF program or a trampoline.
    pub fn kernel_symbol(&mut self, address: u64, length: u32, name: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let module = self.jit_module(&name, None);
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
        (modules, threads)
    }

    /// Modules seen so far, by their numbers.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Threads seen so far, by their numbers.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    fn locate_in_kernel(&mut self, address: u64) -> CodeAddress {
        let located = match self.kernel.locate(address) {
            Some(located) => located,
            None => {
                let module = self.nameless_module(ModuleKind::Kernel, "[kernel.kallsyms]");
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
        let module = self.nameless_module(ModuleKind::Unknown, name);
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
        let module = self.module(Module { kind, path, build_id, inode: None, pid: None });
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

    fn jit_module(&mut self, name: &str, pid: Option<u32>) -> ModuleId {
        self.module(Module { kind: ModuleKind::Jit, path: name.to_owned(), build_id: None, inode: None, pid })
    }

    fn nameless_module(&mut self, kind: ModuleKind, name: &str) -> ModuleId {
        self.module(Module { kind, path: name.to_owned(), build_id: None, inode: None, pid: None })
    }

    fn module(&mut self, module: Module) -> ModuleId {
        if let Some(id) = self.module_ids.get(&module) {
            return *id;
        }
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(module.clone());
        self.module_ids.insert(module, id);
        id
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
        self.last = None;
        id
    }

    fn new_space_id(&mut self) -> SpaceId {
        self.next_space += 1;
        SpaceId(self.next_space - 1)
    }
}

/// What the kernel's name for a mapping means.
fn kind_of_path(path: &str) -> ModuleKind {
    const MEMORY: [&str; 7] =
        ["//anon", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:", "[heap]", "[stack"];
    match path {
        "[vdso]" | "[vdso32]" | "[vdsox32]" => ModuleKind::Vdso,
        "" => ModuleKind::Anonymous,
        _ if MEMORY.iter().any(|prefix| path.starts_with(prefix)) => ModuleKind::Anonymous,
        _ if path.starts_with("[anon") => ModuleKind::Anonymous,
        _ if path.starts_with('[') => ModuleKind::Unknown,
        _ => ModuleKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mmap(pid: u32, address: u64, path: &'static str) -> Mmap<'static> {
        Mmap {
            pid,
            tid: pid,
            address,
            length: 0x1000,
            file_offset: 0x2000,
            path: path.as_bytes(),
            mode: CpuMode::User,
            is_data: false,
            protection: None,
            identity: FileIdentity::Unknown,
        }
    }

    fn path_at(tasks: &mut Tasks, pid: u32, address: u64) -> (String, u64) {
        let task = tasks.task(pid, pid);
        let code = tasks.locate(task, CpuMode::User, address);
        (tasks.modules()[code.module.0 as usize].path.clone(), code.address)
    }

    #[test]
    fn a_child_sees_its_parents_mappings_until_it_execs() {
        let mut tasks = Tasks::default();
        tasks.map(&mmap(10, 0x5000, "/bin/sh"));
        tasks.fork(&TaskChange { pid: 11, tid: 11, parent_pid: 10, parent_tid: 10 });
        assert_eq!(path_at(&mut tasks, 11, 0x5010), ("/bin/sh".into(), 0x2010));
        tasks.rename(11, 11, b"ls", true);
        assert_eq!(path_at(&mut tasks, 11, 0x5010), ("[unknown]".into(), 0x5010));
        assert_eq!(path_at(&mut tasks, 10, 0x5010), ("/bin/sh".into(), 0x2010));
        assert!(tasks.descends_from(11, 10));
        assert!(!tasks.descends_from(10, 11));
    }

    #[test]
    fn a_state_of_memory_ends_when_an_address_changes_its_meaning() {
        let mut tasks = Tasks::default();
        tasks.map(&mmap(10, 0x5000, "/lib/a.so"));
        let task = tasks.task(10, 10);
        let first = tasks.space_id(task);
        tasks.map(&mmap(10, 0x9000, "/lib/b.so"));
        assert_eq!(tasks.space_id(task), first, "nothing known changed");
        tasks.map(&mmap(10, 0x5000, "/lib/c.so"));
        assert_ne!(tasks.space_id(task), first, "a.so was replaced");
        let second = tasks.space_id(task);
        tasks.locate(task, CpuMode::User, 0xf000);
        tasks.map(&mmap(10, 0xf000, "/lib/d.so"));
        assert_ne!(tasks.space_id(task), second, "an unknown address became known");
    }

    #[test]
    fn tasks_that_have_no_number_any_more_are_one_without_numbers() {
        let mut tasks = Tasks::default();
        let ended = tasks.task(u32::MAX, u32::MAX);
        assert_eq!(tasks.task(u32::MAX, u32::MAX), ended);
        let thread = &tasks.threads()[tasks.thread(ended).0 as usize];
        assert_eq!(
            (thread.title(), thread.process_title()),
            (ENDED_TASKS_NAME.into(), ENDED_TASKS_NAME.into())
        );
    }

    #[test]
    fn threads_share_memory_but_not_names() {
        let mut tasks = Tasks::default();
        tasks.rename(10, 10, b"server", true);
        tasks.fork(&TaskChange { pid: 10, tid: 12, parent_pid: 10, parent_tid: 10 });
        tasks.rename(10, 12, b"worker", false);
        tasks.map(&mmap(10, 0x5000, "/bin/server"));
        let worker = tasks.task(10, 12);
        assert_eq!(tasks.space(worker).locate(0x5000).map(|located| located.address), Some(0x2000));
        let thread = &tasks.threads()[tasks.thread(worker).0 as usize];
        assert_eq!((thread.name.as_str(), thread.process_name.as_str()), ("worker", "server"));
    }

    #[test]
    fn kernel_addresses_are_kept_as_they_are() {
        let mut tasks = Tasks::default();
        let kernel = Mmap {
            mode: CpuMode::Kernel,
            length: 0x10000,
            ..mmap(KERNEL_PID, 0xffff_0000, "[kernel.kallsyms]_text")
        };
        tasks.map(&kernel);
        let task = tasks.task(1, 1);
        let code = tasks.locate(task, CpuMode::Kernel, 0xffff_1234);
        assert_eq!(code.address, 0xffff_1234);
        assert!(code.kernel);
        assert_eq!(tasks.modules()[code.module.0 as usize].path, "[kernel.kallsyms]");
    }

    #[test]
    fn a_thread_is_listed_once_for_each_control_group_that_it_is_in() {
        let mut tasks = Tasks::default();
        tasks.rename(10, 10, b"sh", false);
        let shell = tasks.task(10, 10);
        let first = tasks.thread(shell);
        tasks.in_cgroup(shell, 1);
        assert_eq!(tasks.thread(shell), first, "what it did before was in this group, too");
        tasks.in_cgroup(shell, 2);
        let second = tasks.thread(shell);
        tasks.in_cgroup(shell, 1);
        assert_eq!(tasks.thread(shell), first);
        tasks.in_cgroup(shell, 2);
        assert_eq!(tasks.thread(shell), second);
        // A child begins where its parent is; a new name changes no group.
        tasks.fork(&TaskChange { pid: 11, tid: 11, parent_pid: 10, parent_tid: 10 });
        tasks.rename(11, 11, b"app", true);
        tasks.task(12, 12);
        // The name may come last.
        tasks.name_cgroup(1, b"/system.slice/a.service");
        let (_, threads) = tasks.into_parts();
        let groups = threads.iter().map(|thread| (thread.name.as_str(), thread.cgroup.as_deref()));
        let named = Some("/system.slice/a.service");
        let other = Some("[control group 2]");
        let expected = [("sh", named), ("sh", other), ("sh", other), ("app", other), (":12", None)];
        assert_eq!(groups.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mappings_are_what_the_kernel_calls_them() {
        for (path, kind) in [
            ("[vdso]", ModuleKind::Vdso),
            ("[vdso32]", ModuleKind::Vdso),
            ("//anon", ModuleKind::Anonymous),
            ("[anon]", ModuleKind::Anonymous),
            ("[anon:v8/code]", ModuleKind::Anonymous),
            ("/anon_hugepage (deleted)", ModuleKind::Anonymous),
            ("/memfd:jit (deleted)", ModuleKind::Anonymous),
            ("[heap]", ModuleKind::Anonymous),
            ("", ModuleKind::Anonymous),
            ("[vsyscall]", ModuleKind::Unknown),
            ("[uprobes]", ModuleKind::Unknown),
            ("/opt/app (deleted)", ModuleKind::File),
            ("/usr/lib/libc.so.6", ModuleKind::File),
        ] {
            assert_eq!(kind_of_path(path), kind, "{path}");
        }
        // Of a file the place is where it lies in the file, of others where it lies in memory.
        let mut tasks = Tasks::default();
        tasks.map(&mmap(10, 0x5000, "/opt/app (deleted)"));
        tasks.map(&mmap(10, 0x7000, "[anon:v8/code]"));
        assert_eq!(path_at(&mut tasks, 10, 0x5010), ("/opt/app (deleted)".into(), 0x2010));
        assert_eq!(path_at(&mut tasks, 10, 0x7010), ("[anon:v8/code]".into(), 0x7010));
    }

    #[test]
    fn jit_functions_replace_each_other_over_time() {
        let mut tasks = Tasks::default();
        tasks.map(&mmap(10, 0x5000, "//anon"));
        assert_eq!(path_at(&mut tasks, 10, 0x5010), ("//anon".into(), 0x5010));
        tasks.map_jit_function(10, 0x5000, 0x100, "first");
        assert_eq!(path_at(&mut tasks, 10, 0x5010), ("first".into(), 0x10));
        tasks.map_jit_function(10, 0x5000, 0x100, "second");
        assert_eq!(path_at(&mut tasks, 10, 0x5010), ("second".into(), 0x10));
    }
}

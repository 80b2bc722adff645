//! The modules that code of a recording lies in, each once.

use rustc_hash::FxHashMap;

use crate::profile::{Module, ModuleId, ModuleKind};

/// Modules by the order in which they were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Modules {
    list: Vec<Module>,
    ids: FxHashMap<Module, ModuleId>,
}

impl Modules {
    /// The number of a module, a new one if it was not seen before.
    pub fn id(&mut self, module: Module) -> ModuleId {
        if let Some(id) = self.ids.get(&module) {
            return *id;
        }
        let id = ModuleId(self.list.len() as u32);
        self.list.push(module.clone());
        self.ids.insert(module, id);
        id
    }

    /// A function of a just-in-time compiler: of a process, or of the kernel.
    pub fn jit(&mut self, name: &str, pid: Option<u32>) -> ModuleId {
        self.id(Module { kind: ModuleKind::Jit, path: name.to_owned(), build_id: None, inode: None, pid })
    }

    /// What is in no file.
    pub fn nameless(&mut self, kind: ModuleKind, name: &str) -> ModuleId {
        self.id(Module { kind, path: name.to_owned(), build_id: None, inode: None, pid: None })
    }

    /// All so far.
    pub fn list(&self) -> &[Module] {
        &self.list
    }

    /// All.
    pub fn into_list(self) -> Vec<Module> {
        self.list
    }
}

/// What the kernel's name for a mapping means.
pub(super) fn kind_of_path(path: &str) -> ModuleKind {
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

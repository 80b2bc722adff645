//! Where the symbols of a module come from, opened and made ready.

use rustc_hash::FxHashMap;

use super::code_map::CodeMap;
use super::elf_module::ElfFiles;
use super::error::SymbolizeError;
use super::kernel::KernelFiles;
use super::options::SymbolizeOptions;
use super::perf_map;
use super::read_ahead::KernelListAhead;
use super::split_dwarf::DwoArena;
use super::symbol_name::SymbolName;
use super::symbol_table::{Binding, GapRule, Symbol, SymbolTable};
use crate::profile::{Module, ModuleKind};

/// Where symbols come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Origin<'a> {
    Elf(&'a Module),
    /// The kernel and all its modules.
    Kernel,
    /// The map that a just-in-time compiler wrote for a process.
    PerfMap(u32),
    /// The module is one function, whose name is the module's path.
    Named(&'a str),
    Nowhere,
}

/// Files and texts that symbol tables refer to.
pub(crate) enum Source<'a> {
    Elf(ElfFiles),
    Kernel(KernelFiles),
    PerfMap(Vec<u8>),
    Named(&'a str),
    Nowhere,
}

/// Origins without repetition.
#[derive(Default)]
pub(crate) struct Origins<'a> {
    pub(crate) list: Vec<Origin<'a>>,
    indices: FxHashMap<Origin<'a>, usize>,
}

impl<'a> Origins<'a> {
    pub(crate) fn index_of(&mut self, module: &'a Module) -> usize {
        let origin = match (module.kind, module.pid) {
            (ModuleKind::File | ModuleKind::Vdso, _) => Origin::Elf(module),
            (ModuleKind::Kernel | ModuleKind::KernelModule, _) => Origin::Kernel,
            (ModuleKind::Jit | ModuleKind::GpuKernel | ModuleKind::NotSampled | ModuleKind::Folded, _) => {
                Origin::Named(&module.path)
            }
            (ModuleKind::Anonymous, Some(pid)) => Origin::PerfMap(pid),
            _ => Origin::Nowhere,
        };
        *self.indices.entry(origin).or_insert_with(|| {
            self.list.push(origin);
            self.list.len() - 1
        })
    }
}

impl<'o> Source<'o> {
    pub(crate) fn open(
        options: &SymbolizeOptions,
        origin: Origin<'o>,
        kernel_build_id: Option<&[u8]>,
        kernel_ahead: impl FnOnce() -> Option<KernelListAhead>,
        addresses: impl Iterator<Item = u64>,
    ) -> Result<Self, SymbolizeError> {
        match origin {
            Origin::Elf(module) => ElfFiles::open(options, module).map(Self::Elf),
            Origin::Kernel => {
                KernelFiles::open(options, kernel_build_id, kernel_ahead(), addresses).map(Self::Kernel)
            }
            Origin::PerfMap(pid) => perf_map::read(&options.perf_map_dir, pid).map(Self::PerfMap),
            Origin::Named(name) => Ok(Self::Named(name)),
            Origin::Nowhere => Ok(Self::Nowhere),
        }
    }

    /// With all symbols, or at least those by which these offsets, ascending, get their names.
    pub(crate) fn code_map<'a>(
        &'a self,
        dwos: &'a DwoArena,
        of: Option<&[u64]>,
    ) -> Result<CodeMap<'a>, SymbolizeError> {
        let table_of = |symbols| {
            let table = SymbolTable::new(symbols, Vec::new(), GapRule::NextSymbol);
            CodeMap { table, ..CodeMap::default() }
        };
        match self {
            Self::Elf(files) => files.code_map(dwos, of),
            Self::Kernel(files) => files.code_map(dwos),
            Self::PerfMap(text) => Ok(table_of(perf_map::parse(text))),
            Self::Named(name) => {
                let name = SymbolName::new(name.as_bytes());
                let whole = Symbol { start: 0, end: u64::MAX, binding: Binding::Global, plt: false, name };
                Ok(table_of(vec![whole]))
            }
            Self::Nowhere => Ok(CodeMap::default()),
        }
    }
}

//! All addresses of a profile at once: grouped by module, spread over threads.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustc_hash::FxHashMap;

use super::code_map::{CodeMap, Wanted};
use super::demangle::Demangler;
use super::dwarf::DebugLookup;
use super::elf_module::ElfFiles;
use super::error::SymbolizeError;
use super::kernel::KernelFiles;
use super::options::SymbolizeOptions;
use super::perf_map;
use super::split_dwarf::DwoArena;
use super::symbol_table::{Binding, GapRule, Symbol, SymbolTable};
use super::symbols::{FoundFrames, Item, Symbols, SymbolsBuilder};
use crate::profile::{CodeAddress, Module, ModuleId, ModuleKind};

/// Turns addresses into functions, inlined frames and lines.
#[derive(Debug)]
pub struct Symbolizer {
    options: SymbolizeOptions,
}

/// The addresses of one module, ascending.
struct Group<'a> {
    id: ModuleId,
    module: &'a Module,
    items: &'a [Item],
    /// Index of where its symbols come from; several modules can share it.
    origin: usize,
}

/// Where symbols come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin<'a> {
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
enum Source<'a> {
    Elf(ElfFiles),
    Kernel(KernelFiles),
    PerfMap(Vec<u8>),
    Named(&'a str),
    Nowhere,
}

impl Symbolizer {
    /// With these options.
    pub fn new(options: SymbolizeOptions) -> Self {
        Self { options }
    }

    /// Symbolizes addresses; the result's frames are by index into `addresses`. Modules without symbols
    /// and what was wrong with them are told in the result's warnings.
    pub fn symbolize(&mut self, modules: &[Module], addresses: &[CodeAddress]) -> Symbols {
        let mut items: Vec<(ModuleId, Item)> = addresses
            .iter()
            .zip(0..)
            .map(|(code, index)| (code.module, Item { address: code.address, index }))
            .collect();
        items.sort_unstable();
        let ids: Vec<ModuleId> = items.iter().map(|(module, _)| *module).collect();
        let items: Vec<Item> = items.into_iter().map(|(_, item)| item).collect();
        let unknown =
            Module { kind: ModuleKind::Unknown, path: String::new(), build_id: None, inode: None, pid: None };
        let (mut start, mut origins) = (0, Origins::default());
        let groups: Vec<Group<'_>> = ids
            .chunk_by(|a, b| a == b)
            .map(|same| {
                let (id, end) = (same[0], start + same.len());
                let module = modules.get(id.0 as usize).unwrap_or(&unknown);
                let group = Group { id, module, items: &items[start..end], origin: origins.index_of(module) };
                start = end;
                group
            })
            .collect();
        let origins = origins.list;

        let kernel_build_id = modules
            .iter()
            .filter(|module| module.kind == ModuleKind::Kernel)
            .find_map(|module| module.build_id.as_deref());
        let opened = self
            .in_parallel(origins.len(), |index| Source::open(&self.options, origins[index], kernel_build_id));
        let dwos = DwoArena::default();
        let maps = self.in_parallel(origins.len(), |index| match &opened[index] {
            Ok(source) => source.code_map(&dwos),
            Err(_) => Ok(CodeMap::default()),
        });
        let mut warnings: Vec<String> =
            opened.iter().filter_map(|opened| opened.as_ref().err()).map(ToString::to_string).collect();
        let maps: Vec<CodeMap<'_>> = maps
            .into_iter()
            .map(|map| {
                map.unwrap_or_else(|damaged| {
                    warnings.push(damaged.to_string());
                    CodeMap::default()
                })
            })
            .collect();

        let runs =
            self.in_parallel(groups.len(), |index| maps[groups[index].origin].runs(groups[index].items));
        let runs: Vec<(usize, Vec<Item>)> =
            (0..).zip(runs).flat_map(|(group, runs)| runs.into_iter().map(move |run| (group, run))).collect();
        let found = self.find(&groups, &maps, &runs);

        let mut builder = SymbolsBuilder::new(addresses.len());
        let runs: Vec<_> = runs.iter().zip(&found).collect();
        for runs in runs.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let ((group, _), _) = runs[0];
            let runs: Vec<_> = runs.iter().map(|((_, items), found)| (&items[..], *found)).collect();
            builder.merge(groups[*group].id, &runs);
        }
        builder.finish(warnings)
    }

    fn wanted(&self) -> Wanted {
        let SymbolizeOptions { inlines, lines, demangle, cpp_parameters, .. } = self.options;
        Wanted { inlines, lines, demangler: Demangler { enabled: demangle, cpp_parameters } }
    }

    fn threads(&self) -> usize {
        let available = || thread::available_parallelism().map_or(1, usize::from);
        self.options.threads.unwrap_or_else(available).max(1)
    }

    /// Looks up all runs. A thread keeps the units that it parsed until it comes to another module.
    fn find(
        &self,
        groups: &[Group<'_>],
        maps: &[CodeMap<'_>],
        runs: &[(usize, Vec<Item>)],
    ) -> Vec<FoundFrames> {
        let labels: Vec<String> = groups.iter().map(|group| label(group.module)).collect();
        let wanted = self.wanted();
        self.in_threads(runs.len(), |indices| {
            let mut current = None;
            let mut found = Vec::new();
            for index in indices {
                let (group, items) = &runs[index];
                let origin = groups[*group].origin;
                if current.as_ref().is_none_or(|(before, _)| *before != origin) {
                    let map = maps[origin].debug.as_ref();
                    current = Some((origin, map.and_then(DebugLookup::new)));
                }
                let lookup = current.as_ref().and_then(|(_, lookup)| lookup.as_ref());
                found.push((index, maps[origin].find(lookup, items, &labels[*group], wanted)));
            }
            found
        })
    }

    /// Results of `work` for 0..count, in order, from all threads.
    fn in_parallel<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        self.in_threads(count, |indices| indices.map(|index| (index, work(index))).collect())
    }

    /// Runs `work` in each thread; it takes indices of 0..count until there are no more, and returns results by
    /// index, which come back in order.
    fn in_threads<T: Send>(
        &self,
        count: usize,
        work: impl Fn(&mut dyn Iterator<Item = usize>) -> Vec<(usize, T)> + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < count);
        let threads = self.threads().min(count);
        let mut results = if threads <= 1 {
            work(&mut std::iter::from_fn(take))
        } else {
            thread::scope(|scope| {
                let workers: Vec<_> =
                    (0..threads).map(|_| scope.spawn(|| work(&mut std::iter::from_fn(take)))).collect();
                workers
                    .into_iter()
                    .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            })
        };
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

/// Origins without repetition.
#[derive(Default)]
struct Origins<'a> {
    list: Vec<Origin<'a>>,
    indices: FxHashMap<Origin<'a>, usize>,
}

impl<'a> Origins<'a> {
    fn index_of(&mut self, module: &'a Module) -> usize {
        let origin = match (module.kind, module.pid) {
            (ModuleKind::File | ModuleKind::Vdso, _) => Origin::Elf(module),
            (ModuleKind::Kernel | ModuleKind::KernelModule, _) => Origin::Kernel,
            (ModuleKind::Jit, _) => Origin::Named(&module.path),
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
    fn open(
        options: &SymbolizeOptions,
        origin: Origin<'o>,
        kernel_build_id: Option<&[u8]>,
    ) -> Result<Self, SymbolizeError> {
        match origin {
            Origin::Elf(module) => ElfFiles::open(options, module).map(Self::Elf),
            Origin::Kernel => KernelFiles::open(options, kernel_build_id).map(Self::Kernel),
            Origin::PerfMap(pid) => perf_map::read(&options.perf_map_dir, pid).map(Self::PerfMap),
            Origin::Named(name) => Ok(Self::Named(name)),
            Origin::Nowhere => Ok(Self::Nowhere),
        }
    }

    fn code_map<'a>(&'a self, dwos: &'a DwoArena) -> Result<CodeMap<'a>, SymbolizeError> {
        let table_of = |symbols| {
            let table = SymbolTable::new(symbols, Vec::new(), GapRule::NextSymbol);
            CodeMap { table, ..CodeMap::default() }
        };
        match self {
            Self::Elf(files) => files.code_map(dwos),
            Self::Kernel(files) => files.code_map(dwos),
            Self::PerfMap(text) => Ok(table_of(perf_map::parse(text))),
            Self::Named(name) => {
                let name = name.as_bytes();
                let whole = Symbol { start: 0, end: u64::MAX, binding: Binding::Global, plt: false, name };
                Ok(table_of(vec![whole]))
            }
            Self::Nowhere => Ok(CodeMap::default()),
        }
    }
}

/// What stands before the offset of code without a symbol.
fn label(module: &Module) -> String {
    let name = match module.kind {
        ModuleKind::File => {
            Path::new(&module.path).file_name().map(|name| name.to_string_lossy().into_owned())
        }
        _ => None,
    };
    name.unwrap_or_else(
        || if module.path.is_empty() { String::from("[unknown]") } else { module.path.clone() },
    )
}

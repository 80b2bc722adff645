//! All addresses of a profile at once: grouped by module, spread over threads.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::code_map::{CodeMap, Wanted};
use super::demangle::Demangler;
use super::dwarf::DebugLookup;
use super::elf_module::ElfFiles;
use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
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
}

/// Files and texts that symbol tables refer to.
enum Source {
    Elf(ElfFiles),
    /// The module is one function, whose name is the module's path.
    Named,
    None,
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
        let mut start = 0;
        let groups: Vec<Group<'_>> = ids
            .chunk_by(|a, b| a == b)
            .map(|same| {
                let (id, end) = (same[0], start + same.len());
                let items = &items[start..end];
                start = end;
                Group { id, module: modules.get(id.0 as usize).unwrap_or(&unknown), items }
            })
            .collect();

        let dwos = DwoArena::default();
        let opened = self.in_parallel(groups.len(), |index| self.open(groups[index].module));
        let maps = self.in_parallel(groups.len(), |index| match &opened[index] {
            Ok(source) => source.code_map(groups[index].module, &dwos),
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

        let runs = self.in_parallel(groups.len(), |index| maps[index].runs(groups[index].items));
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

    fn open(&self, module: &Module) -> Result<Source, SymbolizeError> {
        match module.kind {
            ModuleKind::File => ElfFiles::open(&self.options, module).map(Source::Elf),
            ModuleKind::Jit => Ok(Source::Named),
            _ => Ok(Source::None),
        }
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
                if current.as_ref().is_none_or(|(before, _)| before != group) {
                    let map = maps[*group].debug.as_ref();
                    current = Some((*group, map.and_then(DebugLookup::new)));
                }
                let lookup = current.as_ref().and_then(|(_, lookup)| lookup.as_ref());
                found.push((index, maps[*group].find(lookup, items, &labels[*group], wanted)));
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

impl Source {
    fn code_map<'a>(&'a self, module: &'a Module, dwos: &'a DwoArena) -> Result<CodeMap<'a>, SymbolizeError> {
        match self {
            Self::Elf(files) => files.code_map(dwos),
            Self::Named => {
                let name = module.path.as_bytes();
                let whole = Symbol { start: 0, end: u64::MAX, binding: Binding::Global, plt: false, name };
                let table = SymbolTable::new(vec![whole], Vec::new(), GapRule::NextSymbol);
                Ok(CodeMap { table, ..CodeMap::default() })
            }
            Self::None => Ok(CodeMap::default()),
        }
    }
}

/// What stands before the offset of code without a symbol.
fn label(module: &Module) -> String {
    if module.path.is_empty() {
        return String::from("[unknown]");
    }
    let name = Path::new(&module.path).file_name();
    name.map_or_else(|| module.path.clone(), |name| name.to_string_lossy().into_owned())
}

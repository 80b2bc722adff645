//! All addresses of a profile at once: grouped by module, spread over threads.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::code_map::{CodeMap, Wanted};
use super::demangle::Demangler;
use super::elf_module::ElfFiles;
use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
use super::symbol_table::{Binding, GapRule, Symbol, SymbolTable};
use super::symbols::{Item, Symbols, SymbolsBuilder};
use crate::profile::{CodeAddress, Module, ModuleId, ModuleKind};

/// Fewer addresses than this are not worth a second thread: it would parse the same units again.
const FEWEST_PER_RUN: usize = 2_000;
/// Parts per thread that a module's addresses are cut into, so that threads end at about the same time.
const RUNS_PER_THREAD: usize = 4;

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

        let opened = self.in_parallel(groups.len(), |index| self.open(groups[index].module));
        let maps = self.in_parallel(groups.len(), |index| match &opened[index] {
            Ok(source) => source.code_map(groups[index].module),
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

        let runs = self.runs(&groups);
        let found = self.in_parallel(runs.len(), |index| {
            let (group, items) = runs[index];
            let label = label(groups[group].module);
            maps[group].find(items, &label, self.wanted())
        });

        let mut builder = SymbolsBuilder::new(addresses.len());
        let runs: Vec<_> = runs.into_iter().zip(found).collect();
        for runs in runs.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            let ((group, _), _) = &runs[0];
            let runs: Vec<_> = runs.iter().map(|((_, items), found)| (*items, found)).collect();
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

    /// Cuts the addresses of each module into runs that threads can take.
    fn runs<'a>(&self, groups: &[Group<'a>]) -> Vec<(usize, &'a [Item])> {
        let threads = self.threads();
        let mut runs = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let parts = if threads == 1 { 1 } else { threads * RUNS_PER_THREAD };
            let length = group.items.len().div_ceil(parts).max(FEWEST_PER_RUN);
            let mut rest = group.items;
            while !rest.is_empty() {
                // Equal addresses stay together.
                let mut end = length.min(rest.len());
                while end < rest.len() && rest[end].address == rest[end - 1].address {
                    end += 1;
                }
                let (run, behind) = rest.split_at(end);
                runs.push((index, run));
                rest = behind;
            }
        }
        runs
    }

    /// Results of `work` for 0..count, in order, from all threads.
    fn in_parallel<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let threads = self.threads().min(count);
        if threads <= 1 {
            return (0..count).map(work).collect();
        }
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        let result = work(index);
                        results.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((index, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl Source {
    fn code_map<'a>(&'a self, module: &'a Module) -> Result<CodeMap<'a>, SymbolizeError> {
        match self {
            Self::Elf(files) => files.code_map(),
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

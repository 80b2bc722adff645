//! All addresses of a profile at once: grouped by module, spread over threads.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::code_map::{CodeMap, Wanted};
use super::demangle::Demangler;
use super::dwarf::DebugLookup;
use super::error::SymbolizeError;
use super::kept_tables::{Extent, KeptTables};
use super::machine_code::MachineCode;
use super::named_files;
use super::options::SymbolizeOptions;
use super::read_ahead::KernelListAhead;
use super::source::{Origin, Origins, Source};
use super::split_dwarf::DwoArena;
use super::symbols::{FoundFrames, Item, SymbolWarning, Symbols, SymbolsBuilder};
use crate::profile::{CodeAddress, Module, ModuleId, ModuleKind};
use crate::threads::Threads;

/// Turns addresses into functions, inlined frames and lines.
#[derive(Debug)]
pub struct Symbolizer {
    options: SymbolizeOptions,
    kernel_ahead: Mutex<Option<KernelListAhead>>,
    kept: Option<KeptTables>,
}

/// The addresses of one module, ascending.
struct Group<'a> {
    id: ModuleId,
    /// What stands before the offset of code without a symbol.
    label: String,
    items: &'a [Item],
    /// Index of where its symbols come from; several modules can share it.
    origin: usize,
}

/// Addresses that one thread looks up.
struct Run {
    group: usize,
    items: Vec<Item>,
}

impl Symbolizer {
    /// With these options.
    pub fn new(options: SymbolizeOptions) -> Self {
        Self { options, kernel_ahead: Mutex::new(None), kept: None }
    }

    /// For who looks up a few names at a time, again and again, and no lines.
    pub(crate) fn keeping_tables(self) -> Self {
        Self { kept: Some(KeptTables::default()), ..self }
    }

    /// With the kernel's list of symbols as it is being read.
    pub fn with_kernel_list(self, ahead: Option<KernelListAhead>) -> Self {
        Self { kernel_ahead: Mutex::new(ahead), ..self }
    }

    /// Symbolizes addresses; the result's frames are by index into `addresses`. Modules without symbols
    /// and what was wrong with them are told in the result's warnings.
    pub fn symbolize(&mut self, modules: &[Module], addresses: &[CodeAddress]) -> Symbols {
        let items = addresses.iter().zip(0..);
        let mut items: Vec<(ModuleId, Item)> =
            items.map(|(code, index)| (code.module, Item { address: code.address, index })).collect();
        items.sort_unstable();
        let (ids, items): (Vec<ModuleId>, Vec<Item>) = items.into_iter().unzip();
        let unknown =
            Module { kind: ModuleKind::Unknown, path: String::new(), build_id: None, inode: None, pid: None };
        let (mut start, mut origins) = (0, Origins::default());
        let same_module = ids.chunk_by(|a, b| a == b);
        let groups = same_module.map(|same| {
            let module = modules.get(same[0].0 as usize).unwrap_or(&unknown);
            let items = &items[start..start + same.len()];
            start += same.len();
            Group { id: same[0], label: label(module), items, origin: origins.index_of(module) }
        });
        let groups: Vec<Group<'_>> = groups.collect();

        let kernel = modules.iter().filter(|module| module.kind == ModuleKind::Kernel);
        let kernel_build_id = kernel.into_iter().find_map(|module| module.build_id.as_deref());
        let (threads, dwos) = (Threads::new(self.options.threads), DwoArena::default());
        let sources = threads.map(origins.list.len(), |index| {
            // At most one of the origins is the kernel.
            let ahead = || self.kernel_ahead.lock().ok()?.take();
            let its = groups.iter().filter(|group| group.origin == index);
            let mut addresses: Vec<u64> =
                its.flat_map(|group| group.items).map(|item| item.address).collect();
            addresses.sort_unstable();
            Source::open(&self.options, origins.list[index], kernel_build_id, ahead, addresses.into_iter())
        });
        let maps = threads.map(sources.len(), |index| match &sources[index] {
            Ok(source) => {
                let offsets = || {
                    let its = groups.iter().filter(|group| group.origin == index);
                    its.flat_map(|group| group.items).map(|item| item.address)
                };
                let asked: Vec<u64> = offsets().collect();
                let read = |extent: Extent| {
                    let of = (extent == Extent::Asked).then_some(&asked[..]);
                    source.code_map(&dwos, of).unwrap_or_else(CodeMap::unusable)
                };
                let (Some(kept), Source::Elf(files), Origin::Elf(module)) =
                    (&self.kept, source, origins.list[index])
                else {
                    return read(Extent::Asked);
                };
                kept.code_map(module, files, asked.iter().copied(), read)
            }
            Err(_) => CodeMap::default(),
        });
        let runs = threads.map(groups.len(), |group| {
            let runs = maps[groups[group].origin].runs(groups[group].items);
            runs.into_iter().map(|items| Run { group, items }).collect::<Vec<_>>()
        });
        let runs: Vec<Run> = runs.into_iter().flatten().collect();
        let found = self.find(threads, &groups, &maps, &runs);

        let opened =
            groups.iter().filter_map(|group| match (origins.list[group.origin], &sources[group.origin]) {
                (Origin::Elf(module), Ok(_)) => {
                    Some((module, maps[group.origin].segments.as_ref(), group.items))
                }
                _ => None,
            });
        let of_named = named_files::warnings(&self.options, opened);
        let mut builder = SymbolsBuilder::new(addresses.len());
        let runs: Vec<(&Run, FoundFrames)> = runs.iter().zip(found).collect();
        for runs in runs.chunk_by(|(a, _), (b, _)| a.group == b.group) {
            let id = groups[runs[0].0.group].id;
            let runs: Vec<_> = runs.iter().map(|(run, found)| (&run.items[..], found)).collect();
            builder.merge(id, &runs);
        }
        drop(runs);
        let modules_of: Vec<Vec<ModuleId>> = (0..sources.len())
            .map(|origin| {
                groups.iter().filter(|group| group.origin == origin).map(|group| group.id).collect()
            })
            .collect();
        let of_maps = maps.into_iter().map(|map| map.warnings).collect();
        let mut symbols = builder.finish(warnings(sources, of_maps, &modules_of, of_named));
        symbols.asked_servers = self.options.debuginfod.is_some();
        symbols
    }

    /// The machine code of the functions at addresses of a module's own: see [`Function::address`](super::Function). Of
    /// each that its file does not have, why.
    ///
    /// # Errors
    /// If the module's file is not here or not the recorded one.
    pub fn machine_code(
        &self,
        module: &Module,
        addresses: &[u64],
    ) -> Result<Vec<Result<MachineCode, SymbolizeError>>, SymbolizeError> {
        MachineCode::read_all(&self.options, module, addresses)
    }

    /// Looks up all runs. A thread keeps the units that it parsed until it comes to another module.
    fn find(
        &self,
        threads: Threads,
        groups: &[Group<'_>],
        maps: &[CodeMap<'_>],
        runs: &[Run],
    ) -> Vec<FoundFrames> {
        let SymbolizeOptions { inlines, lines, demangle, cpp_parameters, .. } = self.options;
        let wanted = Wanted { inlines, lines, demangler: Demangler { enabled: demangle, cpp_parameters } };
        threads.run(runs.len(), |indices| {
            let mut current = None;
            let mut found = Vec::new();
            for index in indices {
                let Group { label, origin, .. } = &groups[runs[index].group];
                if current.as_ref().is_none_or(|(before, _)| before != origin) {
                    let map = maps[*origin].debug.as_ref();
                    current = Some((*origin, map.and_then(DebugLookup::new)));
                }
                let lookup = current.as_ref().and_then(|(_, lookup)| lookup.as_ref());
                found.push((index, maps[*origin].find(lookup, &runs[index].items, label, wanted)));
            }
            found
        })
    }
}

/// What was wrong with the files of modules. What is missing for several of them is said once.
fn warnings(
    sources: Vec<Result<Source, SymbolizeError>>,
    of_maps: Vec<Vec<SymbolizeError>>,
    modules_of: &[Vec<ModuleId>],
    of_named: Vec<SymbolizeError>,
) -> Vec<SymbolWarning> {
    let mut warnings: Vec<SymbolWarning> = Vec::new();
    let mut said: FxHashMap<String, usize> = FxHashMap::default();
    let of_sources = modules_of.iter().zip(sources).filter_map(|(of, source)| Some((of, source.err()?)));
    let of_maps =
        modules_of.iter().zip(of_maps).flat_map(|(of, errors)| errors.into_iter().map(move |why| (of, why)));
    let nobody = Vec::new();
    let of_named = of_named.into_iter().map(|why| (&nobody, why));
    for (modules, why) in of_sources.chain(of_maps).chain(of_named) {
        let at = *said.entry(why.to_string()).or_insert_with(|| {
            warnings.push(SymbolWarning { modules: Vec::new(), why: Arc::new(why) });
            warnings.len() - 1
        });
        warnings[at].modules.extend(modules);
    }
    warnings
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

//! Symbols of many profiles of the same programs, one after the other: what was looked up once is not looked up again.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::options::SymbolizeOptions;
use super::symbolizer::Symbolizer;
use super::symbols::{
    FileId, FoundFrames, FoundFunction, FunctionId, Item, SourceFrame, SymbolWarning, Symbols, SymbolsBuilder,
};
use crate::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};

/// Functions and single addresses that are kept of all modules together; with more, those of modules that were not asked
/// for lately go. A module itself takes as much as some entries do: programs that are built, run once and gone are many.
const MOST_ENTRIES: usize = 500_000;
const ENTRIES_OF_MODULE: usize = 4;

/// Keeps what is known of functions. Without inlined functions and lines, all addresses of a function have the same name,
/// so that one lookup tells it for all of them; and a module's file is only opened for functions that are new. Where lines
/// are asked for, it is opened for addresses that are new.
#[derive(Debug)]
pub struct SymbolCache {
    symbolizer: Symbolizer,
    tells_lines: bool,
    /// Where each module is among `known`.
    modules: FxHashMap<Module, usize>,
    known: Vec<Known>,
    entries: usize,
    asked: u64,
}

/// What is known of a module.
#[derive(Debug, Default)]
struct Known {
    /// By start: end and function; empty where lines are told.
    functions: BTreeMap<u64, (u64, Place)>,
    /// Code that no symbol names, or of which the line is told, by address.
    addresses: FxHashMap<u64, Place>,
    last_asked: u64,
}

/// Where code is, as far as it is told.
#[derive(Debug, Clone)]
struct Place {
    function: Arc<Named>,
    file: Option<Arc<str>>,
    line: Option<u32>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Named {
    name: Arc<str>,
    raw_name: Arc<str>,
    address: Option<u64>,
    known: bool,
}

impl Known {
    fn find(&self, address: u64) -> Option<&Place> {
        let (_, (end, place)) = self.functions.range(..=address).next_back()?;
        if address < *end { Some(place) } else { None }
    }

    fn of(&self, address: u64) -> Option<&Place> {
        self.find(address).or_else(|| self.addresses.get(&address))
    }

    fn len(&self) -> usize {
        self.functions.len() + self.addresses.len()
    }
}

impl SymbolCache {
    /// Nothing known yet. Inlined functions are not looked for, whatever `options` say.
    pub fn new(options: SymbolizeOptions) -> Self {
        let options = SymbolizeOptions { inlines: false, ..options };
        let tells_lines = options.lines;
        let symbolizer = Symbolizer::new(options);
        Self {
            symbolizer,
            tells_lines,
            modules: FxHashMap::default(),
            known: Vec::new(),
            entries: 0,
            asked: 0,
        }
    }

    /// Keeps tables of symbols, too, where no lines are told: these are of debug information, which is not kept.
    pub fn keeping_tables(self) -> Self {
        let symbolizer = if self.tells_lines { self.symbolizer } else { self.symbolizer.keeping_tables() };
        Self { symbolizer, ..self }
    }

    /// How much is kept: functions, single addresses, and modules.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether nothing is kept")]
    pub fn len(&self) -> usize {
        self.entries + self.modules.len()
    }

    /// As [`Symbolizer::symbolize`]. Warnings are those of what was looked up now.
    pub fn symbolize(&mut self, modules: &[Module], addresses: &[CodeAddress]) -> Symbols {
        self.asked += 1;
        let places = self.places(modules, addresses);
        // To look for a place in what is kept of a large program takes longer than to remember it.
        let known: Vec<Option<Place>> = addresses
            .iter()
            .map(|code| self.known_of(&places, code.module)?.of(code.address).cloned())
            .collect();
        let is_unknown = |(code, known): &(&CodeAddress, &Option<Place>)| {
            known.is_none() && (code.module.0 as usize) < modules.len()
        };
        let unknown = addresses.iter().zip(&known).filter(is_unknown);
        let mut unknown: Vec<CodeAddress> = unknown.map(|(code, _)| *code).collect();
        // Names of code that may have another one the next time are for this time only.
        let mut now: FxHashMap<CodeAddress, Place> = FxHashMap::default();
        let mut warnings: Vec<SymbolWarning> = Vec::new();
        // One file after the other: who watches a machine has not the memory for all of its programs at once. What is not in
        // files of its own, as the kernel's modules are not, is looked up together.
        let file = |code: &CodeAddress| {
            let module = modules.get(code.module.0 as usize);
            module.filter(|module| module.kind == ModuleKind::File).map(|_| code.module)
        };
        unknown.sort_by_key(file);
        for of_file in unknown.chunk_by(|a, b| file(a) == file(b)) {
            let found = self.symbolizer.symbolize(modules, of_file);
            self.learn(&places, of_file, &found, &mut now);
            warnings.extend(found.warnings);
        }
        let symbols = self.build(&places, addresses, known, &now, warnings);
        self.forget();
        symbols
    }

    /// What is kept of a module.
    fn known_of(&self, places: &[Option<usize>], module: ModuleId) -> Option<&Known> {
        place_of(places, module).map(|place| &self.known[place])
    }

    /// Where each module is among those that are known: none that nothing is kept of, or nothing asked of now.
    fn places(&mut self, modules: &[Module], addresses: &[CodeAddress]) -> Vec<Option<usize>> {
        let mut is_asked = vec![false; modules.len()];
        for code in addresses {
            if let Some(is_asked) = is_asked.get_mut(code.module.0 as usize) {
                *is_asked = true;
            }
        }
        let asked = modules.iter().zip(is_asked);
        let place = |(module, is_asked): (&Module, bool)| {
            if !is_asked || !is_kept(module) {
                return None;
            }
            let place = self.modules.get(module).copied().unwrap_or_else(|| {
                self.known.push(Known::default());
                self.modules.insert(module.clone(), self.known.len() - 1);
                self.known.len() - 1
            });
            self.known[place].last_asked = self.asked;
            Some(place)
        };
        asked.map(place).collect()
    }

    /// Keeps what was found of these addresses, or puts it into `now` if it may be otherwise the next time.
    fn learn(
        &mut self,
        places: &[Option<usize>],
        unknown: &[CodeAddress],
        found: &Symbols,
        now: &mut FxHashMap<CodeAddress, Place>,
    ) {
        let mut named: FxHashMap<FunctionId, Arc<Named>> = FxHashMap::default();
        for (index, code) in (0..).zip(unknown) {
            let Some(frame) = found.frames(AddressId(index)).first() else { continue };
            let function = named.entry(frame.function).or_insert_with(|| {
                let function = found.function(frame.function);
                Arc::new(Named {
                    name: Arc::clone(&function.name),
                    raw_name: Arc::clone(&function.raw_name),
                    address: function.address,
                    known: function.known,
                })
            });
            let file = frame.file.and_then(|file| found.files().get(file.0 as usize));
            let place = Place { function: Arc::clone(function), file: file.cloned(), line: frame.line };
            let Some(known) = place_of(places, code.module).and_then(|place| self.known.get_mut(place))
            else {
                now.insert(*code, place);
                continue;
            };
            let before = known.len();
            match found.extent(AddressId(index)).filter(|_| !self.tells_lines) {
                Some(extent) => {
                    known.functions.insert(extent.start, (extent.end, place));
                }
                None => {
                    known.addresses.insert(code.address, place);
                }
            }
            self.entries += known.len() - before;
        }
    }

    /// Of each module's addresses, in ascending order, the places that are known now; `before` are those of addresses that were
    /// known before.
    fn build(
        &self,
        places: &[Option<usize>],
        addresses: &[CodeAddress],
        before: Vec<Option<Place>>,
        now: &FxHashMap<CodeAddress, Place>,
        warnings: Vec<SymbolWarning>,
    ) -> Symbols {
        let items = (0..).zip(addresses);
        let mut items: Vec<(ModuleId, Item, bool)> = items
            .map(|(index, code)| (code.module, Item { address: code.address, index }, code.kernel))
            .collect();
        items.sort_unstable_by_key(|(module, item, _)| (*module, *item));
        let mut builder = SymbolsBuilder::new(addresses.len());
        for of_module in items.chunk_by(|a, b| a.0 == b.0) {
            let id = of_module[0].0;
            let known = self.known_of(places, id);
            let mut found = FoundFrames::default();
            let mut functions: FxHashMap<*const Named, FunctionId> = FxHashMap::default();
            let mut files: FxHashMap<Arc<str>, FileId> = FxHashMap::default();
            for same in of_module.chunk_by(|a, b| a.1.address == b.1.address) {
                let (_, Item { address, index }, kernel) = same[0];
                let code = CodeAddress { module: id, address, kernel };
                let learned = || known.and_then(|known| known.of(address)).or_else(|| now.get(&code));
                let place = before[index as usize].as_ref().or_else(learned);
                if let Some(Place { function: named, file, line }) = place {
                    let function = *functions.entry(Arc::as_ptr(named)).or_insert_with(|| {
                        let is_other = named.name != named.raw_name;
                        found.add_function(FoundFunction {
                            raw_name: Arc::clone(&named.raw_name),
                            name: is_other.then(|| Arc::clone(&named.name)),
                            address: named.address,
                            known: named.known,
                            declaration: None,
                        })
                    });
                    let file = file.as_ref().map(|path| {
                        *files.entry(Arc::clone(path)).or_insert_with(|| found.add_file(Box::from(&**path)))
                    });
                    found.add_frame(SourceFrame { function, file, line: *line, inlined: false });
                }
                found.end_address(None, None);
            }
            let items: Vec<Item> = of_module.iter().map(|(_, item, _)| *item).collect();
            builder.merge(id, &[(&items, &found)]);
        }
        builder.finish(warnings)
    }

    /// Makes room.
    fn forget(&mut self) {
        let is_too_much =
            |cache: &Self| cache.entries + cache.modules.len() * ENTRIES_OF_MODULE > MOST_ENTRIES;
        if !is_too_much(self) {
            return;
        }
        let asked = self.asked;
        let mut before = std::mem::take(&mut self.known);
        self.modules.retain(|_, place| {
            let known = std::mem::take(&mut before[*place]);
            let is_kept = known.last_asked == asked;
            if is_kept {
                *place = self.known.len();
                self.known.push(known);
            }
            is_kept
        });
        self.entries = self.known.iter().map(Known::len).sum();
        if is_too_much(self) {
            self.modules.clear();
            self.known.clear();
            self.entries = 0;
        }
    }
}

fn place_of(places: &[Option<usize>], module: ModuleId) -> Option<usize> {
    places.get(module.0 as usize).copied().flatten()
}

/// The code of a file stays what it is; a just-in-time compiler's does not.
fn is_kept(module: &Module) -> bool {
    matches!(module.kind, ModuleKind::File | ModuleKind::Vdso | ModuleKind::Kernel | ModuleKind::KernelModule)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own file, and offsets of its code from end to end.
    fn addresses() -> (Vec<Module>, Vec<CodeAddress>) {
        let path = std::env::current_exe().expect("a path").display().to_string();
        let file = |path| Module { kind: ModuleKind::File, path, build_id: None, inode: None, pid: None };
        let nowhere = file("/nowhere/at/all".to_owned());
        let size = std::fs::metadata(&path).expect("a file").len();
        let of = |module, address| CodeAddress { module: ModuleId(module), address, kernel: false };
        let mut all: Vec<CodeAddress> = (0..3_000).map(|step| of(0, step * (size / 3_000))).collect();
        all.extend((0..10).map(|address| of(1, address)));
        (vec![file(path), nowhere], all)
    }

    #[test]
    fn what_is_kept_is_what_is_looked_up() {
        let functions = kept_is_looked_up(false);
        assert!(functions > 100, "functions of this program are known by their extent: {functions}");
    }

    #[test]
    fn lines_are_kept_by_address() {
        assert_eq!(kept_is_looked_up(true), 0);
    }

    /// How many functions are kept by their extent.
    fn kept_is_looked_up(lines: bool) -> usize {
        let (modules, all) = addresses();
        let options = SymbolizeOptions { inlines: false, lines, ..SymbolizeOptions::default() };
        let expected = Symbolizer::new(options.clone()).symbolize(&modules, &all);
        let mut cache = SymbolCache::new(options).keeping_tables();
        // Half of them first, then all: the others are partly in functions that are known then.
        let half: Vec<CodeAddress> = all.iter().copied().step_by(2).collect();
        cache.symbolize(&modules, &half);
        let mut with_lines = 0;
        for round in 0..2 {
            // Tables are kept, and asked of functions that are new, as single addresses are after these.
            let some: Vec<CodeAddress> = all.iter().copied().skip(1 + round).step_by(5).collect();
            cache.symbolize(&modules, &some);
            let found = cache.symbolize(&modules, &all);
            for index in 0..all.len() as u32 {
                let name = |symbols: &Symbols| {
                    let frames = symbols.frames(AddressId(index));
                    assert_eq!(frames.len(), 1);
                    let function = symbols.function(frames[0].function);
                    let place = (frames[0].file.map(|file| symbols.file(file).to_owned()), frames[0].line);
                    (
                        function.name.clone(),
                        function.raw_name.clone(),
                        function.address,
                        function.known,
                        place,
                    )
                };
                let said = name(&found);
                assert_eq!(said, name(&expected), "round {round}, {:?}", all[index as usize]);
                with_lines += usize::from(said.4.1.is_some());
            }
        }
        assert_eq!(with_lines > 100, lines, "{with_lines}");
        cache.known[cache.modules[&modules[0]]].functions.len()
    }
}

//! Symbol tables that are kept from one lookup to the next: to sort those of a compiler takes longer than a second's samples do.

use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::code_map::CodeMap;
use super::elf::{FileState, MappedFile, Segments};
use super::elf_module::ElfFiles;
use super::function_starts::FunctionStarts;
use super::symbol_name::SymbolName;
use super::symbol_table::{Binding, Symbol, SymbolTable};
use crate::profile::Module;

/// Symbols and starts of functions that are kept of all files together, of 24 and 16 bytes; with more, the files that were not
/// asked for longest go.
/// A compiler, the library that it is made of and a program of tests that it built have 900,000 together.
const MOST_KEPT: usize = 1_500_000;
/// But those that one of so many questions before was of stay, and what is new is not kept: where more files are asked for in
/// turns than there is room for, each would go just before it is asked for again.
const STILL_ASKED: u64 = 400;

/// Tables of files that were asked for more than once: most programs that a compiler builds run once.
#[derive(Debug, Default)]
pub(crate) struct KeptTables(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    files: FxHashMap<Module, File>,
    asked: u64,
}

#[derive(Debug)]
struct File {
    table: Option<Arc<KeptTable>>,
    last_asked: u64,
}

/// The symbols of a file in the order of [`SymbolTable`]. Their names stay in the file.
#[derive(Debug)]
struct KeptTable {
    symbols: Vec<KeptSymbol>,
    starts: Arc<FunctionStarts>,
    segments: Segments,
    /// What the image and the file of its symbols were when they were read.
    of: [OpenedFile; 2],
}

/// How much of a file's table is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What names the code that is asked for.
    Asked,
    /// All.
    Whole,
}

type OpenedFile = (PathBuf, Option<FileState>);

#[derive(Debug, Clone, Copy)]
struct KeptSymbol {
    start: u64,
    /// How far behind its start it ends, and the highest end up to it.
    end: u32,
    reach: u32,
    name_at: u32,
    /// What it is.
    kind: u32,
}

/// Bits of [`KeptSymbol::kind`]: whether it has no name, whether its name is in the debug file, whether it is a linkage stub,
/// the binding.
const NAMELESS: u32 = 1 << 27;
const IN_DEBUG_FILE: u32 = 1 << 28;
const PLT: u32 = 1 << 29;
const BINDING_AT: u32 = 30;
const BINDINGS: [Binding; 3] = [Binding::Local, Binding::Weak, Binding::Global];

impl KeptSymbol {
    /// `None` of one that is larger than it can be told.
    fn new(symbol: &Symbol<'_>, reach: u64, name_at: u32, in_debug_file: bool) -> Option<Self> {
        let Symbol { start, end, binding, plt, name } = symbol;
        let behind = |at: u64| u32::try_from(at.checked_sub(*start)?).ok();
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let binding = BINDINGS.iter().position(|known| known == binding)? as u32;
        let kind =
            flag(name.unread().is_empty(), NAMELESS) | flag(in_debug_file, IN_DEBUG_FILE) | flag(*plt, PLT);
        let kind = kind | binding << BINDING_AT;
        Some(Self { start: *start, end: behind(*end)?, reach: behind(reach)?, name_at, kind })
    }

    fn reach(&self) -> u64 {
        self.start.saturating_add(self.reach.into())
    }

    /// With its name out of the debug file or the image.
    fn symbol<'a>(&self, debug_file: &'a [u8], image: &'a [u8]) -> Symbol<'a> {
        let file = if self.kind & IN_DEBUG_FILE != 0 { debug_file } else { image };
        let name = (self.kind & NAMELESS == 0).then(|| file.get(self.name_at as usize..)).flatten();
        Symbol {
            start: self.start,
            end: self.start.saturating_add(self.end.into()),
            binding: BINDINGS.get((self.kind >> BINDING_AT) as usize).copied().unwrap_or(Binding::Local),
            plt: self.kind & PLT != 0,
            name: name.map(SymbolName::new).unwrap_or_default(),
        }
    }
}

impl KeptTables {
    /// What is known of the code at these places of a file.
    pub(crate) fn code_map<'a>(
        &self,
        module: &Module,
        files: &'a ElfFiles,
        offsets: impl Iterator<Item = u64>,
        read: impl FnOnce(Extent) -> CodeMap<'a>,
    ) -> CodeMap<'a> {
        let (kept, is_first) = self.ask(module);
        if let Some(kept) = kept.filter(|kept| kept.of == state(files)) {
            return kept.code_map(files, offsets);
        }
        if is_first {
            return read(Extent::Asked);
        }
        let map = read(Extent::Whole);
        self.keep(module, KeptTable::of(files, &map));
        map
    }

    /// The table of a file, and whether it is the first time that it is asked for.
    fn ask(&self, module: &Module) -> (Option<Arc<KeptTable>>, bool) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.asked += 1;
        let now = tables.asked;
        match tables.files.entry(module.clone()) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().last_asked = now;
                (entry.get().table.clone(), false)
            }
            Entry::Vacant(entry) => {
                entry.insert(File { table: None, last_asked: now });
                (None, true)
            }
        }
    }

    fn keep(&self, module: &Module, table: Option<KeptTable>) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = tables.files.get_mut(module) {
            file.table = table.map(Arc::new);
        }
        // A file without a table takes as much as a few symbols do.
        let len = |file: &File| 8 + file.table.as_ref().map_or(0, |table| table.len());
        let mut all: usize = tables.files.values().map(len).sum();
        let asked = tables.asked;
        while all > MOST_KEPT
            && let Some((oldest, file)) = tables.files.iter().min_by_key(|(_, file)| file.last_asked)
        {
            if file.table.is_some() && asked - file.last_asked < STILL_ASKED && oldest != module {
                if let Some(new) = tables.files.get_mut(module) {
                    new.table = None;
                }
                return;
            }
            let oldest = oldest.clone();
            all -= tables.files.remove(&oldest).as_ref().map_or(0, len);
        }
    }
}

impl KeptTable {
    /// `None` where more is to be told of the file than names.
    fn of(files: &ElfFiles, map: &CodeMap<'_>) -> Option<Self> {
        if map.debug.is_some() || !map.warnings.is_empty() {
            return None;
        }
        let place = |name: &[u8]| {
            let in_file = |file: &MappedFile| {
                let at = (name.as_ptr() as usize).checked_sub(file.data().as_ptr() as usize)?;
                let is_whole = file.data().get(at..)?.len() >= name.len();
                if is_whole { u32::try_from(at).ok() } else { None }
            };
            match in_file(files.symbol_file()) {
                Some(at) => Some((at, true)),
                // Stubs of functions without a symbol have none.
                None if name.is_empty() => Some((0, true)),
                None => in_file(files.image()).map(|at| (at, false)),
            }
        };
        let symbols = map.table.with_reach().map(|(symbol, reach)| {
            let (name_at, in_debug_file) = place(symbol.name.unread())?;
            KeptSymbol::new(&symbol, reach, name_at, in_debug_file)
        });
        Some(Self {
            symbols: symbols.collect::<Option<_>>()?,
            starts: map.starts.clone(),
            segments: map.segments.clone()?,
            of: state(files),
        })
    }

    fn len(&self) -> usize {
        self.symbols.len() + self.starts.len()
    }

    fn code_map<'a>(&self, files: &'a ElfFiles, offsets: impl Iterator<Item = u64>) -> CodeMap<'a> {
        let addresses: Vec<u64> = offsets.filter_map(|offset| self.segments.address_of(offset)).collect();
        // Where functions without a name begin, there may be a symbol.
        let starts = addresses.iter().filter_map(|address| self.starts.start_of(*address));
        let near = self.near(addresses.iter().copied().chain(starts));
        let symbols = near.into_iter().flatten().map(|index| {
            let kept = self.symbols[index];
            (kept.symbol(files.symbol_file().data(), files.image().data()), kept.reach())
        });
        CodeMap {
            table: SymbolTable::of_sorted(symbols),
            starts: self.starts.clone(),
            segments: Some(self.segments.clone()),
            ..CodeMap::default()
        }
    }

    /// The symbols by which a table has the same to say of these addresses as one of all symbols, ascending.
    fn near(&self, addresses: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
        let symbols = &self.symbols;
        let around = |address: u64| {
            let behind = symbols.partition_point(|symbol| symbol.start <= address);
            // All that may reach here, the last one that does not, and the next.
            let reaching =
                symbols[..behind].iter().rev().take_while(|symbol| symbol.reach() > address).count();
            // Those that start where one of these does have a say in its name, though they may end before.
            let first = match symbols[..behind].get(behind - reaching) {
                Some(outermost) => symbols.partition_point(|symbol| symbol.start < outermost.start),
                None => behind,
            };
            first.saturating_sub(1)..(behind + 1).min(symbols.len())
        };
        let mut ranges: Vec<Range<usize>> = addresses.map(around).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }
}

fn state(files: &ElfFiles) -> [OpenedFile; 2] {
    [files.image(), files.symbol_file()].map(|file| (file.path.clone(), file.state()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::symbol_table::GapRule;
    use super::*;

    /// Symbols of these starts and sizes, named by their places.
    fn symbols<'a>(places: &[(u64, u64)], names: &'a [String]) -> Vec<Symbol<'a>> {
        let symbol = |((start, size), name): (&(u64, u64), &'a String)| Symbol {
            start: *start,
            end: start + size,
            binding: Binding::Global,
            plt: false,
            name: SymbolName::new(name.as_bytes()),
        };
        places.iter().zip(names).map(symbol).collect()
    }

    fn kept(all: &SymbolTable<'_>) -> KeptTable {
        let of = |(symbol, reach): (Symbol<'_>, u64)| {
            let kept = KeptSymbol::new(&symbol, reach, 0, false).expect("small");
            let nameless = kept.symbol(&[], &[]);
            assert_eq!((nameless.start, nameless.end, nameless.plt), (symbol.start, symbol.end, symbol.plt));
            assert_eq!((kept.reach(), nameless.binding), (reach, symbol.binding));
            kept
        };
        KeptTable {
            symbols: all.with_reach().map(of).collect(),
            starts: Arc::default(),
            segments: Segments::default(),
            of: Default::default(),
        }
    }

    /// The first of three names of one address is the best, and ends before the last: behind its end nothing is known by
    /// name, also where only what reaches there was looked for.
    #[test]
    fn a_shorter_alias_has_a_say_behind_its_end() {
        let names = ["f0", "f1", "f2"].map(str::to_owned);
        let symbols = symbols(&[(35, 20), (35, 0), (35, 35)], &names);
        let all = SymbolTable::new(symbols, Vec::new(), GapRule::NextSymbol);
        for (address, near) in [(55, 0..3), (70, 2..3)] {
            assert_eq!(kept(&all).near([address].into_iter()).as_slice(), std::slice::from_ref(&near));
        }
    }

    proptest! {
        /// Of any addresses, in any table: nested symbols, aliases, gaps.
        #[test]
        fn symbols_near_addresses_tell_what_all_of_them_do(
            places in prop::collection::vec((0u64..200, 0u64..40), 0..30),
            asked in prop::collection::vec(0u64..250, 1..6),
        ) {
            let names: Vec<String> = (0..places.len()).map(|index| format!("f{index}")).collect();
            let all = SymbolTable::new(symbols(&places, &names), Vec::new(), GapRule::NextSymbol);
            let kept = kept(&all);
            let whole: Vec<(Symbol<'_>, u64)> = all.with_reach().collect();
            let near = kept.near(asked.iter().copied());
            let some = SymbolTable::of_sorted(near.into_iter().flatten().map(|index| whole[index]));
            let readable = |symbol: &Symbol<'_>| symbol.raw_name().into_owned();
            for address in asked {
                prop_assert_eq!(some.find(address, readable), all.find(address, readable));
                prop_assert_eq!(some.extent(address), all.extent(address));
                prop_assert_eq!(some.gap(address), all.gap(address));
            }
        }
    }

    #[test]
    fn what_a_symbol_is_is_told_beside_its_name() {
        for binding in BINDINGS {
            for (plt, in_debug_file) in [(false, true), (true, false), (true, true)] {
                let files: [&[u8]; 2] = [b"..name\0..", b"..othe\0."];
                let name = SymbolName::new(if in_debug_file { b"name" } else { b"othe" });
                let symbol = Symbol { start: 1 << 40, end: (1 << 40) + 16, binding, plt, name };
                let kept = KeptSymbol::new(&symbol, (1 << 40) + 64, 2, in_debug_file).expect("small");
                assert_eq!(kept.symbol(files[0], files[1]), symbol);
                assert_eq!(kept.reach(), (1 << 40) + 64);
            }
        }
        let endless = Symbol {
            start: 0,
            end: 1 << 33,
            binding: Binding::Local,
            plt: false,
            name: SymbolName::default(),
        };
        assert!(KeptSymbol::new(&endless, 1 << 33, 0, true).is_none());
        let nameless = Symbol { end: 16, plt: true, ..endless };
        let kept = KeptSymbol::new(&nameless, 16, 0, true).expect("small");
        assert_eq!(kept.symbol(b"\x7fELF", b"\x7fELF"), nameless);
        assert_eq!(size_of::<KeptSymbol>(), 24);
    }

    /// Of three files of which two have room, asked for in turns, two are found.
    #[test]
    fn files_asked_for_in_turns_do_not_push_each_other_out() {
        let tables = KeptTables::default();
        let module = |number: u32| Module {
            kind: crate::profile::ModuleKind::File,
            path: format!("/lib/{number}"),
            build_id: None,
            inode: None,
            pid: None,
        };
        let symbol = KeptSymbol { start: 0, end: 1, reach: 1, name_at: 0, kind: 0 };
        let table = || KeptTable {
            symbols: vec![symbol; MOST_KEPT * 2 / 5],
            starts: Arc::default(),
            segments: Segments::default(),
            of: Default::default(),
        };
        let (mut found, rounds) = (0, 5);
        for _ in 0..rounds {
            for number in 0..3 {
                match tables.ask(&module(number)) {
                    (Some(_), _) => found += 1,
                    (None, true) => {}
                    (None, false) => tables.keep(&module(number), Some(table())),
                }
            }
        }
        assert_eq!(found, 2 * (rounds - 2));
        // Those that nobody asks for any more make room.
        for _ in 0..STILL_ASKED {
            tables.ask(&module(2));
        }
        tables.keep(&module(2), Some(table()));
        assert!(tables.ask(&module(2)).0.is_some());
    }
}

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
use super::symbol_table::{Binding, Symbol, SymbolTable};
use crate::profile::Module;

/// Symbols and starts of functions that are kept of all files together, of 40 and 16 bytes; with more, the files that were not
/// asked for longest go.
const MOST_KEPT: usize = 600_000;

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

type OpenedFile = (PathBuf, Option<FileState>);

#[derive(Debug, Clone, Copy)]
struct KeptSymbol {
    start: u64,
    end: u64,
    /// The highest end up to it.
    reach: u64,
    name_at: u32,
    name_len: u32,
    in_debug_file: bool,
    binding: Binding,
    plt: bool,
}

impl KeptTables {
    /// What is known of the code at these places of a file.
    pub(crate) fn code_map<'a>(
        &self,
        module: &Module,
        files: &'a ElfFiles,
        offsets: impl Iterator<Item = u64>,
        read: impl FnOnce() -> CodeMap<'a>,
    ) -> CodeMap<'a> {
        let (kept, is_first) = self.ask(module);
        if let Some(kept) = kept.filter(|kept| kept.of == state(files)) {
            return kept.code_map(files, offsets);
        }
        let map = read();
        if !is_first {
            self.keep(module, KeptTable::of(files, &map));
        }
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
        while all > MOST_KEPT
            && let Some(oldest) =
                tables.files.iter().min_by_key(|(_, file)| file.last_asked).map(|(module, _)| module.clone())
        {
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
                is_whole.then(|| Some((u32::try_from(at).ok()?, u32::try_from(name.len()).ok()?)))?
            };
            match in_file(files.symbol_file()) {
                Some((at, len)) => Some((at, len, true)),
                // Stubs of functions without a symbol have none.
                None if name.is_empty() => Some((0, 0, true)),
                None => in_file(files.image()).map(|(at, len)| (at, len, false)),
            }
        };
        let symbols = map.table.with_reach().map(|(symbol, reach)| {
            let Symbol { start, end, binding, plt, name } = symbol;
            let (name_at, name_len, in_debug_file) = place(name)?;
            Some(KeptSymbol { start, end, reach, name_at, name_len, in_debug_file, binding, plt })
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
            let file = if kept.in_debug_file { files.symbol_file() } else { files.image() };
            let name = kept.name_at as usize..kept.name_at as usize + kept.name_len as usize;
            let name = file.data().get(name).unwrap_or_default();
            let KeptSymbol { start, end, reach, binding, plt, .. } = kept;
            (Symbol { start, end, binding, plt, name }, reach)
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
            let reaching = symbols[..behind].iter().rev().take_while(|symbol| symbol.reach > address).count();
            (behind - reaching).saturating_sub(1)..(behind + 1).min(symbols.len())
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

    proptest! {
        /// Of any addresses, in any table: nested symbols, aliases, gaps.
        #[test]
        fn symbols_near_addresses_tell_what_all_of_them_do(
            symbols in prop::collection::vec((0u64..200, 0u64..40), 0..30),
            asked in prop::collection::vec(0u64..250, 1..6),
        ) {
            let names: Vec<String> = (0..symbols.len()).map(|index| format!("f{index}")).collect();
            let symbols = symbols.iter().zip(&names).map(|((start, size), name)| Symbol {
                start: *start,
                end: start + size,
                binding: Binding::Global,
                plt: false,
                name: name.as_bytes(),
            });
            let all = SymbolTable::new(symbols.collect(), Vec::new(), GapRule::NextSymbol);
            let of = |(symbol, reach): (Symbol<'_>, u64)| KeptSymbol {
                start: symbol.start,
                end: symbol.end,
                reach,
                name_at: 0,
                name_len: 0,
                in_debug_file: false,
                binding: symbol.binding,
                plt: false,
            };
            let kept = KeptTable {
                symbols: all.with_reach().map(of).collect(),
                starts: Arc::default(),
                segments: Segments::default(),
                of: Default::default(),
            };
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
}

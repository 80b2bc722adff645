//! A module made ready for lookups, and the lookup of its addresses.

use rustc_hash::FxHashMap;

use super::demangle::Demangler;
use super::dwarf::{DebugInfo, DebugLookup};
use super::elf::Segments;
use super::split_dwarf::DwoArena;
use super::symbol_table::{Symbol, SymbolTable};
use super::symbols::{FileId, FoundFrames, FoundFunction, FunctionId, Item, SourceFrame};

/// What is known of a module's code.
#[derive(Debug, Default)]
pub(crate) struct CodeMap<'a> {
    pub(crate) table: SymbolTable<'a>,
    /// The way from file offsets to the table's addresses; without it they are the same.
    pub(crate) segments: Option<Segments>,
    pub(crate) info: Option<&'a DebugInfo>,
}

/// What a lookup is to find.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) inlines: bool,
    pub(crate) lines: bool,
    pub(crate) demangler: Demangler,
}

impl CodeMap<'_> {
    /// Looks up addresses in ascending order. `label` names code without a symbol, together with its address.
    pub(crate) fn find(&self, items: &[Item], label: &str, wanted: Wanted) -> FoundFrames {
        let dwos = DwoArena::default();
        let lookup = self.info.and_then(|info| DebugLookup::new(info, &dwos));
        let mut search = Search { wanted, label, found: FoundFrames::default(), ids: Ids::default() };
        for same_address in items.chunk_by(|a, b| a.address == b.address) {
            let offset = same_address[0].address;
            match &self.segments {
                None => search.add(offset, offset, self.symbol(offset, wanted), None),
                Some(segments) => match segments.address_of(offset) {
                    None => search.add(offset, offset, None, None),
                    Some(address) => {
                        let symbol = self.symbol(address, wanted);
                        search.add(offset, address, symbol, lookup.as_ref());
                    }
                },
            }
        }
        search.found
    }

    fn symbol(&self, address: u64, wanted: Wanted) -> Option<Symbol<'_>> {
        self.table.find(address, |symbol| {
            let raw_name = symbol.raw_name();
            wanted.demangler.demangle(&raw_name).unwrap_or_else(|| raw_name.into_owned())
        })
    }
}

/// Ids already given out, by what is cheapest to compare.
#[derive(Debug, Default)]
struct Ids {
    symbols: FxHashMap<u64, FunctionId>,
    /// Names in debug information, by where they lie in memory.
    names: FxHashMap<(usize, usize), FunctionId>,
    /// File names that a unit keeps, by where they lie in memory: the lookup keeps them in place.
    places: FxHashMap<(usize, usize), FileId>,
    files: FxHashMap<Box<str>, FileId>,
}

struct Search<'s> {
    wanted: Wanted,
    label: &'s str,
    found: FoundFrames,
    ids: Ids,
}

impl Search<'_> {
    /// Adds the frames of one address.
    fn add(
        &mut self,
        offset: u64,
        address: u64,
        symbol: Option<Symbol<'_>>,
        lookup: Option<&DebugLookup<'_>>,
    ) {
        let first = self.found.frames.len();
        let symbol = symbol.map(|symbol| self.symbol_function(&symbol));
        match lookup {
            Some(lookup) if self.wanted.inlines => lookup.frames(address, |frame| {
                let function = frame.function.map(|name| self.named_function(name));
                let file = frame.file.filter(|_| self.wanted.lines).map(|path| self.file(path));
                let line = frame.line.filter(|_| self.wanted.lines);
                self.found.frames.push(SourceFrame {
                    // Without a name of its own, inlined code counts as part of what it is inlined into.
                    function: function.unwrap_or(FunctionId(u32::MAX)),
                    file,
                    line,
                    inlined: true,
                });
            }),
            Some(lookup) => {
                if let Some((file, line)) = lookup.location(address) {
                    let file = file.map(|path| self.file(path));
                    let function = FunctionId(u32::MAX);
                    self.found.frames.push(SourceFrame { function, file, line, inlined: true });
                }
            }
            None => {}
        }
        self.found.frames[first..].reverse();
        if self.found.frames.len() == first {
            let function = FunctionId(u32::MAX);
            self.found.frames.push(SourceFrame { function, file: None, line: None, inlined: false });
        }
        self.name_frames(first, symbol, offset);
        self.found.ends.push(self.found.frames.len() as u32);
    }

    /// The outermost frame is the symbol's; frames without a name merge into the one before.
    fn name_frames(&mut self, first: usize, symbol: Option<FunctionId>, offset: u64) {
        const NAMELESS: FunctionId = FunctionId(u32::MAX);
        let outermost = self.found.frames[first].function;
        let mut function = match symbol {
            Some(function) => function,
            None if outermost != NAMELESS => outermost,
            None => self.unknown_function(offset),
        };
        let mut kept = first;
        for index in first..self.found.frames.len() {
            let frame = self.found.frames[index];
            if index > first && frame.function != NAMELESS {
                function = frame.function;
                kept += 1;
            }
            self.found.frames[kept] = SourceFrame { function, inlined: kept > first, ..frame };
        }
        self.found.frames.truncate(kept + 1);
    }

    fn symbol_function(&mut self, symbol: &Symbol<'_>) -> FunctionId {
        if let Some(&id) = self.ids.symbols.get(&symbol.start) {
            return id;
        }
        let raw_name = symbol.raw_name();
        let name = self.wanted.demangler.demangle(&raw_name).map(String::into_boxed_str);
        let id = self.found.add_function(FoundFunction {
            raw_name: Box::from(raw_name),
            name,
            address: Some(symbol.start),
            known: true,
        });
        self.ids.symbols.insert(symbol.start, id);
        id
    }

    fn named_function(&mut self, name: &[u8]) -> FunctionId {
        let place = (name.as_ptr() as usize, name.len());
        if let Some(&id) = self.ids.names.get(&place) {
            return id;
        }
        let raw_name = String::from_utf8_lossy(name);
        let readable = self.wanted.demangler.demangle(&raw_name).map(String::into_boxed_str);
        let id = self.found.add_function(FoundFunction {
            raw_name: Box::from(raw_name),
            name: readable,
            address: None,
            known: true,
        });
        self.ids.names.insert(place, id);
        id
    }

    fn unknown_function(&mut self, offset: u64) -> FunctionId {
        let raw_name = format!("{}+{offset:#x}", self.label).into_boxed_str();
        self.found.add_function(FoundFunction { raw_name, name: None, address: None, known: false })
    }

    fn file(&mut self, path: &str) -> FileId {
        let place = (path.as_ptr() as usize, path.len());
        if let Some(&id) = self.ids.places.get(&place) {
            return id;
        }
        let id = match self.ids.files.get(path) {
            Some(&id) => id,
            None => {
                let id = FileId(self.found.files.len() as u32);
                self.found.files.push(Box::from(path));
                self.ids.files.insert(Box::from(path), id);
                id
            }
        };
        self.ids.places.insert(place, id);
        id
    }
}

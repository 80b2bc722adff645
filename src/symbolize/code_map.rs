//! A module made ready for lookups, and the lookup of its addresses.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::declaration::Declaration;
use super::demangle::Demangler;
use super::dwarf::{CopyId, DebugFrame, DebugLookup, DebugMap, OriginId};
use super::elf::Segments;
use super::error::SymbolizeError;
use super::function_starts::FunctionStarts;
use super::symbol_table::{Symbol, SymbolTable};
use super::symbols::{FileId, FoundFrames, FoundFunction, FunctionId, Item, SourceFrame};

/// Addresses that one thread looks up at a time: enough to be worth the trouble, few enough that all threads
/// end at about the same time. Larger units are looked into by several threads.
const RUN: usize = 1_024;
const LONGEST_RUN: usize = 8_192;

/// What is known of a module's code.
#[derive(Debug, Default)]
pub(crate) struct CodeMap<'a> {
    pub(crate) table: SymbolTable<'a>,
    /// Where functions begin that have no symbol.
    pub(crate) starts: Arc<FunctionStarts>,
    /// The way from file offsets to the table's addresses; without it they are the same.
    pub(crate) segments: Option<Segments>,
    pub(crate) debug: Option<DebugMap<'a>>,
    /// How far the table's addresses lie above those in debug information: the kernel is moved at boot.
    pub(crate) debug_shift: u64,
    /// What of it cannot be used.
    pub(crate) warnings: Vec<SymbolizeError>,
}

/// What a lookup is to find.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) inlines: bool,
    pub(crate) lines: bool,
    pub(crate) demangler: Demangler,
}

impl<'a> CodeMap<'a> {
    /// Of a module that cannot be symbolized.
    pub(crate) fn unusable(why: SymbolizeError) -> Self {
        Self { warnings: vec![why], ..Self::default() }
    }

    /// Cuts addresses, given in ascending order, into runs that threads can take, such that the addresses of
    /// a unit of debug information stay together. Equal addresses stay together too.
    pub(crate) fn runs(&self, items: &[Item]) -> Vec<Vec<Item>> {
        let unit_of = |item: &Item| {
            let address = self.address(item.address)?;
            self.debug.as_ref()?.units.unit_of(address.wrapping_sub(self.debug_shift))
        };
        let mut by_unit: Vec<(Option<u32>, Item)> = items.iter().map(|item| (unit_of(item), *item)).collect();
        by_unit.sort_by_key(|(unit, _)| *unit);
        let mut runs: Vec<Vec<Item>> = Vec::new();
        let mut last = None;
        for (unit, item) in by_unit {
            let fits = runs.last().is_some_and(|run| {
                let limit = if last == Some(unit) { LONGEST_RUN } else { RUN };
                run.len() < limit || run.last().is_some_and(|before| before.address == item.address)
            });
            match runs.last_mut() {
                Some(run) if fits => run.push(item),
                _ => runs.push(vec![item]),
            }
            last = Some(unit);
        }
        runs
    }

    /// Looks up one run. `label` names code without a symbol, together with its address.
    pub(crate) fn find(
        &self,
        lookup: Option<&DebugLookup<'_, 'a>>,
        items: &[Item],
        label: &str,
        wanted: Wanted,
    ) -> FoundFrames {
        let (found, ids, frames) = (FoundFrames::default(), Ids::default(), Vec::new());
        let mut search = Search { map: self, lookup, wanted, label, found, ids, frames };
        for same_address in items.chunk_by(|a, b| a.address == b.address) {
            search.add(same_address[0].address);
        }
        search.found
    }

    /// The address in the symbol table that an address of the profile means.
    fn address(&self, address: u64) -> Option<u64> {
        self.segments.as_ref().map_or(Some(address), |segments| segments.address_of(address))
    }
}

/// Ids already given out, by what is cheapest to compare.
#[derive(Debug, Default)]
struct Ids {
    symbols: FxHashMap<u64, FunctionId>,
    /// Names in debug information, by where they lie in memory.
    names: FxHashMap<(usize, usize), FunctionId>,
    /// Copies of functions without a name for the linker, and what they are copies of.
    copies: FxHashMap<CopyId, FunctionId>,
    origins: FxHashMap<OriginId, FunctionId>,
    /// File names that a unit keeps, by where they lie in memory: the lookup keeps them in place.
    places: FxHashMap<(usize, usize), FileId>,
    files: FxHashMap<Box<str>, FileId>,
}

struct Search<'s, 'a> {
    map: &'s CodeMap<'a>,
    lookup: Option<&'s DebugLookup<'s, 'a>>,
    wanted: Wanted,
    label: &'s str,
    found: FoundFrames,
    ids: Ids,
    /// Frames of the address at hand.
    frames: Vec<NamedFrame>,
}

/// A frame of debug information; its function may have no name.
type NamedFrame = (Option<FunctionId>, Option<FileId>, Option<u32>);

impl<'a> Search<'_, 'a> {
    /// Adds the frames of one address.
    fn add(&mut self, offset: u64) {
        let mut frames = std::mem::take(&mut self.frames);
        let (mut symbol, mut within, mut unnamed, mut extent) = (None, None, None, None);
        if let Some(address) = self.map.address(offset) {
            unnamed = self.map.starts.start_of(address);
            let found = self.symbol(address);
            within = found.as_ref().map(|symbol| address.wrapping_sub(symbol.start));
            extent = match (&found, unnamed) {
                (Some(_), _) => self.extent(offset, address, self.map.table.extent(address)),
                (None, Some(_)) => self.extent(offset, address, self.unnamed_extent(address)),
                (None, None) => None,
            };
            self.debug_frames(address.wrapping_sub(self.map.debug_shift), &mut frames);
            let declared = frames.last().and_then(|(function, ..)| *function);
            symbol = found.map(|symbol| self.symbol_function(&symbol, declared));
        }
        // Innermost first. The outermost is the symbol's function, whatever debug information calls it.
        let (outermost, file, line) = frames.pop().unwrap_or_default();
        let unnamed = unnamed.filter(|_| symbol.or(outermost).is_none());
        let unnamed = unnamed.and_then(|start| self.unnamed_function(start));
        if symbol.is_none() && unnamed.is_none() {
            extent = None;
        }
        let function = symbol.or(outermost).or(unnamed);
        let function = function.unwrap_or_else(|| self.unknown_function(offset));
        self.found.add_frame(SourceFrame { function, file, line, inlined: false });
        while let Some((function, file, line)) = frames.pop() {
            match (function, self.found.frames.last_mut()) {
                (Some(function), _) => {
                    self.found.add_frame(SourceFrame { function, file, line, inlined: true })
                }
                // Code without a name of its own is part of what it is inlined into.
                (None, Some(outer)) => (outer.file, outer.line) = (file, line),
                (None, None) => {}
            }
        }
        self.found.end_address(within, extent);
        self.frames = frames;
    }

    /// The addresses around `address` of the same function without a symbol.
    fn unnamed_extent(&self, address: u64) -> Option<Range<u64>> {
        let ((start, end), gap) = (self.map.starts.extent_of(address)?, self.map.table.gap(address)?);
        Some(start.max(gap.start)..end.min(gap.end))
    }

    /// The profile's addresses around `offset` that have the same name as this `address` of the table, given those of the
    /// table. They are as far from each other where they lie in one segment.
    fn extent(&self, offset: u64, address: u64, in_table: Option<Range<u64>>) -> Option<Range<u64>> {
        let in_table = in_table?;
        let start = offset.checked_sub(address - in_table.start)?;
        let end = offset.checked_add(in_table.end - address)?;
        let is_straight = self.map.address(start) == Some(in_table.start)
            && self.map.address(end.checked_sub(1)?) == in_table.end.checked_sub(1);
        is_straight.then_some(start..end)
    }

    fn debug_frames(&mut self, address: u64, frames: &mut Vec<NamedFrame>) {
        let Some(lookup) = self.lookup else { return };
        if !self.wanted.inlines {
            if let Some((file, line)) = lookup.location(address) {
                frames.push((None, file.map(|path| self.file(path)), line));
            }
            return;
        }
        let lines = self.wanted.lines;
        lookup.frames(address, |frame| {
            let function = frame.function.map(|name| self.debug_function(lookup, address, &frame, name));
            let file = frame.file.filter(|_| lines).map(|path| self.file(path));
            frames.push((function, file, frame.line.filter(|_| lines)));
        });
    }

    fn symbol(&self, address: u64) -> Option<Symbol<'a>> {
        self.map.table.find(address, |symbol| {
            let raw_name = symbol.raw_name();
            self.wanted.demangler.demangle(&raw_name).unwrap_or_else(|| raw_name.into_owned())
        })
    }

    /// The function of a symbol, which debug information calls `declared`.
    fn symbol_function(&mut self, symbol: &Symbol<'_>, declared: Option<FunctionId>) -> FunctionId {
        if let Some(&id) = self.ids.symbols.get(&symbol.start) {
            return id;
        }
        let raw_name = symbol.raw_name();
        // Its inlined copies are the same function. A part of it (`.cold`) or another name for it is not.
        let declaration = declared.and_then(|id| self.found.functions[id.0 as usize].declaration.clone());
        let declaration = declaration.filter(|declaration| {
            let plain = Demangler { enabled: true, cpp_parameters: false };
            *declaration.name == *raw_name
                || plain.demangle(&raw_name).is_some_and(|name| *name == *declaration.name)
        });
        let name = self.wanted.demangler.demangle(&raw_name).map(Arc::from);
        let id = self.found.add_function(FoundFunction {
            raw_name: Arc::from(raw_name),
            name,
            address: Some(symbol.start),
            known: true,
            declaration,
        });
        self.ids.symbols.insert(symbol.start, id);
        id
    }

    /// A function as debug information knows it: by its name for the linker, or else by its declaration.
    fn debug_function(
        &mut self,
        lookup: &DebugLookup<'_, 'a>,
        address: u64,
        frame: &DebugFrame<'_, '_>,
        name: &[u8],
    ) -> FunctionId {
        let of_linker = name.starts_with(b"_Z") || name.starts_with(b"_R");
        let copy = frame.copy.filter(|_| !of_linker);
        let Some(copy) = copy else { return self.named_function(name) };
        if let Some(&id) = self.ids.copies.get(&copy) {
            return id;
        }
        let id = match lookup.origin(address, copy) {
            Some(origin) => match self.ids.origins.get(&origin.id) {
                Some(&id) => id,
                None => {
                    let id = match lookup.declaration(&origin) {
                        Some(declaration) => self.declared_function(name, declaration),
                        None => self.named_function(name),
                    };
                    self.ids.origins.insert(origin.id, id);
                    id
                }
            },
            None => self.named_function(name),
        };
        self.ids.copies.insert(copy, id);
        id
    }

    fn declared_function(&mut self, name: &[u8], declaration: Declaration) -> FunctionId {
        let raw_name = Arc::<str>::from(String::from_utf8_lossy(name));
        let whole = (self.wanted.demangler.enabled && *declaration.name != *raw_name)
            .then(|| Arc::from(&*declaration.name));
        self.found.add_function(FoundFunction {
            raw_name,
            name: whole,
            address: None,
            known: true,
            declaration: Some(declaration),
        })
    }

    fn named_function(&mut self, name: &[u8]) -> FunctionId {
        let place = (name.as_ptr() as usize, name.len());
        if let Some(&id) = self.ids.names.get(&place) {
            return id;
        }
        let raw_name = String::from_utf8_lossy(name);
        let readable = self.wanted.demangler.demangle(&raw_name).map(Arc::from);
        let id = self.found.add_function(FoundFunction {
            raw_name: Arc::from(raw_name),
            name: readable,
            address: None,
            known: true,
            declaration: None,
        });
        self.ids.names.insert(place, id);
        id
    }

    /// A function of which only the start is known. Where a symbol begins there and ends before it, the rest is no
    /// other function, and perf does not give it the name.
    fn unnamed_function(&mut self, start: u64) -> Option<FunctionId> {
        if self.symbol(start).is_some_and(|symbol| symbol.start == start) {
            return None;
        }
        if let Some(&id) = self.ids.symbols.get(&start) {
            return Some(id);
        }
        let raw_name = Arc::from(format!("{}+fn_{start:x}", self.label));
        let function =
            FoundFunction { raw_name, name: None, address: Some(start), known: false, declaration: None };
        let id = self.found.add_function(function);
        self.ids.symbols.insert(start, id);
        Some(id)
    }

    fn unknown_function(&mut self, offset: u64) -> FunctionId {
        let raw_name = Arc::from(format!("{}+{offset:#x}", self.label));
        self.found.add_function(FoundFunction {
            raw_name,
            name: None,
            address: None,
            known: false,
            declaration: None,
        })
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

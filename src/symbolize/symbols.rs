//! The result of symbolizing: tables of functions and files, and for each address its frames.

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::declaration::Declaration;
use super::error::SymbolizeError;
use crate::profile::{AddressId, ModuleId};

/// Index of a function in [`Symbols::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// Index of a source file in [`Symbols::files`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A function of a module.
///
/// Two static functions of one name are two functions; the inlined copies of a function are that function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Name for people: demangled if asked for. `libfoo.so+fn_1200` where no symbol is known but, from the unwind
    /// tables, the function's start; `libfoo.so+0x1234` where nothing is known.
    pub name: Arc<str>,
    /// Name as in the symbol table or debug information.
    pub raw_name: Arc<str>,
    /// Where it lies.
    pub module: ModuleId,
    /// Start of its symbol, or of the function without a symbol, in the module's own virtual addresses; `None` if it is
    /// only known inlined, or not at all.
    pub address: Option<u64>,
    /// Named by a symbol. If not, the name is made of module and offset.
    pub known: bool,
    /// File and line of the declaration, `/src/a.c:12`, of a function without a name for the linker: of such, several
    /// may have one name.
    pub declared: Option<Arc<str>>,
}

/// One function at one address: the one that the symbol table names, or one inlined into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceFrame {
    /// The function.
    pub function: FunctionId,
    /// Source file: of the code itself in the innermost frame, of the inlined call in the others.
    pub file: Option<FileId>,
    /// Line in that file, from 1.
    pub line: Option<u32>,
    /// Inlined into the frame before.
    pub inlined: bool,
}

/// The offset of code without a symbol.
const NO_OFFSET: u64 = u64::MAX;

/// What was not found or not used.
#[derive(Debug, Clone)]
pub struct SymbolWarning {
    /// The modules that it is of; none where it is of all.
    pub modules: Vec<ModuleId>,
    /// What, and why.
    pub why: Arc<SymbolizeError>,
}

impl fmt::Display for SymbolWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

/// Functions, files and the frames of each address.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    functions: Vec<Function>,
    files: Vec<Arc<str>>,
    frames: Vec<SourceFrame>,
    /// Of each address, the range of its frames.
    spans: Vec<(u32, u32)>,
    /// Of each address, how far it lies behind the start of its symbol; [`NO_OFFSET`] without one.
    offsets: Vec<u64>,
    /// Of each address, the addresses around it that have the same frames, as far as that is known; empty where it is not.
    extents: Vec<Range<u64>>,
    /// What was not found or not used, and why.
    pub warnings: Vec<SymbolWarning>,
    /// What was not found here was asked for elsewhere ([`Debuginfod`](super::Debuginfod)).
    pub asked_servers: bool,
}

impl Symbols {
    /// The frames of an address, outermost (the symbol's own) first, the innermost inlined last.
    /// Never empty for an address that was asked for; empty for any other.
    pub fn frames(&self, address: AddressId) -> &[SourceFrame] {
        match self.spans.get(address.0 as usize) {
            Some(&(start, end)) => &self.frames[start as usize..end as usize],
            None => &[],
        }
    }

    /// Adds the symbols of other addresses, which are to follow after the first `addresses`, in modules after the
    /// first `modules`.
    pub fn append(&mut self, other: Self, modules: u32, addresses: usize) {
        let functions = self.functions.len() as u32;
        let moved =
            |function: Function| Function { module: ModuleId(function.module.0 + modules), ..function };
        self.functions.extend(other.functions.into_iter().map(moved));
        // A line of one file is one line, whoever ran it.
        let mut known: FxHashMap<Arc<str>, FileId> =
            (0..).map(FileId).zip(&self.files).map(|(id, path)| (path.clone(), id)).collect();
        let files: Vec<FileId> = other
            .files
            .into_iter()
            .map(|path| {
                *known.entry(path).or_insert_with_key(|path| {
                    self.files.push(path.clone());
                    FileId(self.files.len() as u32 - 1)
                })
            })
            .collect();
        let frames = self.frames.len() as u32;
        self.frames.extend(other.frames.into_iter().map(|frame| SourceFrame {
            function: FunctionId(frame.function.0 + functions),
            file: frame.file.and_then(|file| files.get(file.0 as usize).copied()),
            ..frame
        }));
        self.spans.resize(addresses, (0, 0));
        self.spans.extend(other.spans.into_iter().map(|(start, end)| (start + frames, end + frames)));
        self.offsets.resize(addresses, NO_OFFSET);
        self.offsets.extend(other.offsets);
        self.extents.resize(addresses, 0..0);
        self.extents.extend(other.extents);
        self.warnings.extend(other.warnings.into_iter().map(|SymbolWarning { modules: its, why }| {
            let its = its.into_iter().map(|module| ModuleId(module.0 + modules)).collect();
            SymbolWarning { modules: its, why }
        }));
        self.asked_servers |= other.asked_servers;
    }

    /// How far an address lies behind the start of the symbol that names its outermost frame, in bytes; `None` where
    /// no symbol does.
    pub fn offset(&self, address: AddressId) -> Option<u64> {
        self.offsets.get(address.0 as usize).copied().filter(|offset| *offset != NO_OFFSET)
    }

    /// The addresses around one that the same symbol names, as far as that is certain; `None` where no symbol does.
    pub(crate) fn extent(&self, address: AddressId) -> Option<Range<u64>> {
        self.extents.get(address.0 as usize).cloned().filter(|extent| !extent.is_empty())
    }

    /// All functions; a [`FunctionId`] is an index into them.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function of an id that this value gave out.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Paths of all source files; a [`FileId`] is an index into them.
    pub fn files(&self) -> &[Arc<str>] {
        &self.files
    }

    /// The path of a source file.
    pub fn file(&self, id: FileId) -> &str {
        &self.files[id.0 as usize]
    }
}

/// One address to be symbolized, by its index in the caller's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    pub(crate) address: u64,
    pub(crate) index: u32,
}

/// A function as one worker found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFunction {
    pub(crate) raw_name: Arc<str>,
    /// `None` if it is the raw name.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) address: Option<u64>,
    pub(crate) known: bool,
    /// Of a function whose name is not its own.
    pub(crate) declaration: Option<Declaration>,
}

/// The frames of a run of addresses of one module, with tables of its own. Ids are indices into these.
#[derive(Debug, Default)]
pub(crate) struct FoundFrames {
    pub(crate) functions: Vec<FoundFunction>,
    pub(crate) files: Vec<Box<str>>,
    pub(crate) frames: Vec<SourceFrame>,
    /// One per different address, in order: where its frames end.
    pub(crate) ends: Vec<u32>,
    /// One per different address, in order: how far it lies behind the start of its symbol.
    pub(crate) offsets: Vec<u64>,
    /// One per different address, in order: see [`Symbols::extent`].
    pub(crate) extents: Vec<Range<u64>>,
}

impl FoundFrames {
    pub(crate) fn add_function(&mut self, function: FoundFunction) -> FunctionId {
        self.functions.push(function);
        FunctionId(self.functions.len() as u32 - 1)
    }

    pub(crate) fn add_file(&mut self, path: Box<str>) -> FileId {
        self.files.push(path);
        FileId(self.files.len() as u32 - 1)
    }

    pub(crate) fn add_frame(&mut self, frame: SourceFrame) {
        self.frames.push(frame);
    }

    pub(crate) fn end_address(&mut self, offset: Option<u64>, extent: Option<Range<u64>>) {
        self.ends.push(self.frames.len() as u32);
        self.offsets.push(offset.unwrap_or(NO_OFFSET));
        self.extents.push(extent.unwrap_or(0..0));
    }
}

/// Functions of one module, by what tells that one is the same.
#[derive(Default)]
struct KnownFunctions {
    /// Some are known by their names alone.
    finds_by_name: bool,
    by_address: FxHashMap<u64, FunctionId>,
    by_declaration: FxHashMap<Declaration, FunctionId>,
    by_name: FxHashMap<Arc<str>, FunctionId>,
}

/// Merges what workers found. The order of merging decides all ids, whatever the number of workers.
pub(crate) struct SymbolsBuilder {
    symbols: Symbols,
    strings: FxHashSet<Arc<str>>,
    files: FxHashMap<Arc<str>, FileId>,
}

impl SymbolsBuilder {
    pub(crate) fn new(addresses: usize) -> Self {
        let symbols = Symbols {
            spans: vec![(0, 0); addresses],
            offsets: vec![NO_OFFSET; addresses],
            extents: vec![0..0; addresses],
            ..Symbols::default()
        };
        Self { symbols, strings: FxHashSet::default(), files: FxHashMap::default() }
    }

    /// Adds all that was found of one module: runs of addresses in ascending order, each with the
    /// items that it answers.
    pub(crate) fn merge(&mut self, module: ModuleId, runs: &[(&[Item], &FoundFrames)]) {
        let mut ids: Vec<Vec<FunctionId>> =
            runs.iter().map(|(_, found)| vec![FunctionId(0); found.functions.len()]).collect();
        let has_address = |function: &FoundFunction| function.address.is_some();
        let finds_by_name = !runs.iter().all(|(_, found)| found.functions.iter().all(has_address));
        let mut known = KnownFunctions { finds_by_name, ..KnownFunctions::default() };
        // Those with an address first: an inlined copy then finds the function that it is a copy of.
        for with_address in [true, false] {
            for ((_, found), ids) in runs.iter().zip(&mut ids) {
                for (function, id) in found.functions.iter().zip(ids) {
                    if function.address.is_some() == with_address {
                        *id = self.function(module, function, &mut known);
                    }
                }
            }
        }
        for ((items, found), ids) in runs.iter().zip(&ids) {
            let files: Vec<FileId> = found.files.iter().map(|path| self.file(path)).collect();
            let base = self.symbols.frames.len() as u32;
            self.symbols.frames.extend(found.frames.iter().map(|frame| SourceFrame {
                function: ids[frame.function.0 as usize],
                file: frame.file.map(|file| files[file.0 as usize]),
                ..*frame
            }));
            let mut start = 0;
            let offsets = found.offsets.iter().copied().chain(iter::repeat(NO_OFFSET));
            let extents = found.extents.iter().cloned().chain(iter::repeat(0..0));
            let ends = found.ends.iter().zip(offsets.zip(extents));
            for (same_address, (&end, (offset, extent))) in
                items.chunk_by(|a, b| a.address == b.address).zip(ends)
            {
                for item in same_address {
                    self.symbols.offsets[item.index as usize] = offset;
                    self.symbols.extents[item.index as usize] = extent.clone();
                    self.symbols.spans[item.index as usize] = (base + start, base + end);
                }
                start = end;
            }
        }
    }

    pub(crate) fn finish(mut self, warnings: Vec<SymbolWarning>) -> Symbols {
        self.symbols.warnings = warnings;
        self.symbols
    }

    fn function(
        &mut self,
        module: ModuleId,
        found: &FoundFunction,
        known: &mut KnownFunctions,
    ) -> FunctionId {
        let raw_name = self.share(&found.raw_name);
        let same = match (found.address, &found.declaration) {
            (Some(address), _) => known.by_address.get(&address),
            (None, Some(declaration)) => known.by_declaration.get(declaration),
            (None, None) => known.by_name.get(&raw_name),
        };
        if let Some(&id) = same {
            return id;
        }
        let name = match &found.name {
            Some(name) => self.share(name),
            None => raw_name.clone(),
        };
        let id = FunctionId(self.symbols.functions.len() as u32);
        if let Some(address) = found.address {
            known.by_address.insert(address, id);
        }
        if let Some(declaration) = &found.declaration {
            known.by_declaration.entry(declaration.clone()).or_insert(id);
        }
        if known.finds_by_name && (found.address.is_some() || found.declaration.is_none()) {
            known.by_name.entry(raw_name.clone()).or_insert(id);
        }
        let (address, known) = (found.address, found.known);
        let place = found.declaration.as_ref().and_then(|declaration| declaration.place.as_deref());
        let declared = place.map(|place| self.intern(place));
        self.symbols.functions.push(Function { name, raw_name, module, address, known, declared });
        id
    }

    fn file(&mut self, path: &str) -> FileId {
        if let Some(&id) = self.files.get(path) {
            return id;
        }
        let id = FileId(self.symbols.files.len() as u32);
        let path = self.intern(path);
        self.symbols.files.push(path.clone());
        self.files.insert(path, id);
        id
    }

    fn share(&mut self, text: &Arc<str>) -> Arc<str> {
        // Somebody keeps it anyway.
        if Arc::strong_count(text) > 1 {
            return text.clone();
        }
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        self.strings.insert(text.clone());
        text.clone()
    }

    fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.strings.get(text) {
            return known.clone();
        }
        let new: Arc<str> = Arc::from(text);
        self.strings.insert(new.clone());
        new
    }
}

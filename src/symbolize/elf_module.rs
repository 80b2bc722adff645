//! An ELF module: the files with its code, its symbols and its debug information.

use std::path::PathBuf;
use std::sync::Arc;

use object::{Object, ObjectSection};

use super::code_map::CodeMap;
use super::debug_file::{
    by_build_id, fetch, find_debug_file, find_supplement, open_image, open_with_build_id, same_build_id,
};
use super::debug_sections::{DebugInfo, DebugSections, SectionNames};
use super::debuginfod::Wanted;
use super::dwarf::{DebugMap, package_path};
use super::elf::{MappedFile, Segments, build_id};
use super::elf_symbols::{FoundSymbols, dynamic_symbols, linkage_stubs, static_symbols};
use super::error::SymbolizeError;
use super::function_starts::FunctionStarts;
use super::options::SymbolizeOptions;
use super::running_kernel::check_running;
use super::split_dwarf::DwoArena;
use super::symbol_table::{GapRule, SymbolTable};
use super::vdso;
use crate::profile::{Module, ModuleKind};

/// The files of a module, opened.
#[derive(Debug)]
pub(crate) struct ElfFiles {
    image: Arc<MappedFile>,
    /// The file whose symbol table and debug information are used; often the image itself.
    debug: Arc<MappedFile>,
    info: Option<DebugInfo>,
    /// What was to be fetched and did not come.
    not_fetched: Option<SymbolizeError>,
}

impl ElfFiles {
    pub(crate) fn open(options: &SymbolizeOptions, module: &Module) -> Result<Self, SymbolizeError> {
        let image = Arc::new(open_file(options, module)?);
        let (debug, not_fetched) = {
            let parsed = parse(&image)?;
            let complete = parsed.section_by_name(".debug_info").is_some_and(|section| section.size() > 0);
            let found = if complete { None } else { find_debug_file(options, &image, &parsed) };
            match (&options.debuginfod, build_id(&parsed)) {
                (Some(debuginfod), Some(id)) if !complete && found.is_none() => {
                    match fetch(debuginfod, Wanted::DebugInfo, &image.path, id) {
                        Ok(fetched) => (Some(fetched), None),
                        Err(why) => (None, Some(why)),
                    }
                }
                _ => (found, None),
            }
        };
        let debug = debug.map_or_else(|| image.clone(), Arc::new);
        let wanted = options.inlines || options.lines;
        let info = if wanted { Self::debug_info(options, &image, &debug) } else { None };
        Ok(Self { image, debug, info, not_fetched })
    }

    fn debug_info(
        options: &SymbolizeOptions,
        image: &Arc<MappedFile>,
        debug: &Arc<MappedFile>,
    ) -> Option<DebugInfo> {
        let main = DebugSections::load(debug.clone(), SectionNames::Plain)?;
        let parsed = object::File::parse(debug.data()).ok()?;
        let supplement = find_supplement(options, debug, &parsed)
            .and_then(|file| DebugSections::load(Arc::new(file), SectionNames::Plain));
        let package = [image, debug]
            .iter()
            .filter_map(|file| MappedFile::open(&package_path(&file.path)).ok())
            .find_map(|file| DebugSections::load(Arc::new(file), SectionNames::Split));
        Some(DebugInfo { main, supplement, package, sysroot: options.sysroot.clone() })
    }

    /// The file with the code.
    pub(crate) fn image(&self) -> &MappedFile {
        &self.image
    }

    /// The file with the symbols.
    pub(crate) fn symbol_file(&self) -> &MappedFile {
        &self.debug
    }

    /// Builds the symbol table: of all symbols, or of those by which the code at these offsets, ascending, gets its names.
    pub(crate) fn code_map<'a>(
        &'a self,
        dwos: &'a DwoArena,
        of: Option<&[u64]>,
    ) -> Result<CodeMap<'a>, SymbolizeError> {
        let image = parse(&self.image)?;
        let mut warnings = Vec::new();
        match &self.not_fetched {
            Some(SymbolizeError::NotFetched { path, build_id, why }) => {
                let (path, build_id, why) = (path.clone(), build_id.clone(), why.clone());
                warnings.push(SymbolizeError::NotFetched { path, build_id, why });
            }
            Some(SymbolizeError::NothingFetched { why }) => {
                warnings.push(SymbolizeError::NothingFetched { why: why.clone() });
            }
            _ => {}
        }
        let segments = Segments::of(&image);
        let addresses = of.and_then(|offsets| addresses(&segments, offsets));
        let of = addresses.as_deref();
        let mut found = static_symbols(&parse(&self.debug)?, of, &|| self.debug.release());
        if found.symbols.is_empty() {
            found = static_symbols(&image, of, &|| self.image.release());
        }
        let mut starts = FunctionStarts::default();
        if found.symbols.is_empty() {
            starts = FunctionStarts::of(&image, of, &|| self.image.release());
            // Where a function without a name begins, there may be a symbol.
            let with_starts = of.map(|addresses| {
                let starts = addresses.iter().filter_map(|address| starts.start_of(*address));
                ascending(addresses.iter().copied().chain(starts))
            });
            found = dynamic_symbols(&image, with_starts.as_deref(), &|| self.image.release());
            if image.section_by_name(".gnu_debugdata").is_some() {
                warnings.push(SymbolizeError::PackedSymbols { path: self.image.path.clone() });
            }
        }
        let FoundSymbols { symbols, chosen } = found;
        let table = SymbolTable::new(symbols, linkage_stubs(&image), GapRule::NextSymbol);
        let table = table.of_chosen(chosen.unwrap_or_default());
        let debug = self.info.as_ref().and_then(|info| DebugMap::new(info, dwos));
        if self.info.is_some() && debug.is_none() {
            warnings.push(SymbolizeError::DebugInfo { path: self.debug.path.clone() });
        }
        Ok(CodeMap {
            table,
            starts: Arc::new(starts),
            segments: Some(segments),
            debug,
            debug_shift: 0,
            warnings,
        })
    }
}

/// Opens what a module was loaded from, if it is still what was recorded.
pub(crate) fn open_file(options: &SymbolizeOptions, module: &Module) -> Result<MappedFile, SymbolizeError> {
    match module.kind {
        ModuleKind::Vdso => open_vdso(options, module),
        _ => open_image(options, module),
    }
}

/// This process's own vdso, if it is the recorded one; or a copy of the recorded one in perf's cache.
fn open_vdso(options: &SymbolizeOptions, module: &Module) -> Result<MappedFile, SymbolizeError> {
    let own = vdso::read_own(&options.procfs).map(|bytes| MappedFile::in_memory(&module.path, bytes));
    let own = own.map_err(|source| SymbolizeError::Open { path: PathBuf::from(&module.path), source });
    let Some(recorded) = &module.build_id else {
        check_running(options, options.kernel_build_id.as_deref())
            .map_err(|_| SymbolizeError::VdsoDiffers)?;
        return own;
    };
    let is_recorded = |file: &MappedFile| {
        let parsed = object::File::parse(file.data()).ok();
        parsed.as_ref().and_then(build_id).is_some_and(|id| same_build_id(id, recorded))
    };
    if let Ok(own) = own
        && is_recorded(&own)
    {
        return Ok(own);
    }
    let cached = by_build_id(&options.build_id_caches, recorded, "/vdso");
    let found = cached.iter().find_map(|path| open_with_build_id(path, recorded));
    found.ok_or(SymbolizeError::VdsoDiffers)
}

/// Choosing symbols for more addresses than this takes longer than to take all.
const FEW: usize = 4_096;

/// The addresses of some offsets, ascending, if these are few and any of them is of code.
fn addresses(segments: &Segments, offsets: &[u64]) -> Option<Vec<u64>> {
    if offsets.len() > FEW {
        return None;
    }
    let addresses = ascending(offsets.iter().filter_map(|offset| segments.address_of(*offset)));
    (!addresses.is_empty()).then_some(addresses)
}

fn ascending(addresses: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut addresses: Vec<u64> = addresses.collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn parse(file: &MappedFile) -> Result<object::File<'_>, SymbolizeError> {
    object::File::parse(file.data())
        .map_err(|source| SymbolizeError::Format { path: file.path.clone(), source })
}

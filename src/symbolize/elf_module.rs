//! An ELF module: the files with its code, its symbols and its debug information.

use std::sync::Arc;

use object::{Object, ObjectSection};

use super::code_map::CodeMap;
use super::debug_file::{find_debug_file, find_supplement, open_image};
use super::dwarf::{DebugInfo, DebugMap, DebugSections, SectionNames, package_path};
use super::elf::{MappedFile, Segments};
use super::elf_symbols::{dynamic_symbols, linkage_stubs, static_symbols};
use super::error::SymbolizeError;
use super::options::SymbolizeOptions;
use super::split_dwarf::DwoArena;
use super::symbol_table::{GapRule, SymbolTable};
use crate::profile::Module;

/// The files of a module, opened.
#[derive(Debug)]
pub(crate) struct ElfFiles {
    image: Arc<MappedFile>,
    /// The file whose symbol table and debug information are used; often the image itself.
    debug: Arc<MappedFile>,
    info: Option<DebugInfo>,
}

impl ElfFiles {
    pub(crate) fn open(options: &SymbolizeOptions, module: &Module) -> Result<Self, SymbolizeError> {
        let image = Arc::new(open_image(options, module)?);
        let debug = {
            let parsed = parse(&image)?;
            let complete = parsed.section_by_name(".debug_info").is_some_and(|section| section.size() > 0);
            if complete { None } else { find_debug_file(options, &image, &parsed) }
        };
        let debug = debug.map_or_else(|| image.clone(), Arc::new);
        let wanted = options.inlines || options.lines;
        let info = if wanted { Self::debug_info(options, &image, &debug) } else { None };
        Ok(Self { image, debug, info })
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

    /// Builds the symbol table.
    pub(crate) fn code_map<'a>(&'a self, dwos: &'a DwoArena) -> Result<CodeMap<'a>, SymbolizeError> {
        let image = parse(&self.image)?;
        let mut symbols = static_symbols(&parse(&self.debug)?);
        if symbols.is_empty() {
            symbols = static_symbols(&image);
        }
        if symbols.is_empty() {
            symbols = dynamic_symbols(&image);
        }
        let table = SymbolTable::new(symbols, linkage_stubs(&image), GapRule::NextSymbol);
        let debug = self.info.as_ref().and_then(|info| DebugMap::new(info, dwos));
        Ok(CodeMap { table, segments: Some(Segments::of(&image)), debug })
    }
}

fn parse(file: &MappedFile) -> Result<object::File<'_>, SymbolizeError> {
    object::File::parse(file.data())
        .map_err(|source| SymbolizeError::Format { path: file.path.clone(), source })
}

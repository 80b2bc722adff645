//! Symbols of the recorded kernel, if it is the running one or its image is at hand.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use object::{Object, ObjectSymbol};

use super::code_map::CodeMap;
use super::debug_file::{by_build_id, open_with_build_id};
use super::debug_sections::{DebugInfo, DebugSections, SectionNames};
use super::dwarf::DebugMap;
use super::elf::MappedFile;
use super::elf_symbols::static_symbols;
use super::error::SymbolizeError;
use super::kallsyms::Kallsyms;
use super::kernel_cache::{self, KernelCache};
use super::options::{KernelReference, SymbolizeOptions};
use super::read_ahead::KernelListAhead;
use super::running_kernel::check_running;
use super::split_dwarf::DwoArena;
use super::symbol_table::{GapRule, Symbol, SymbolTable};

/// Where a symbol of the image and its address tell how far the kernel was moved at boot.
const START_OF_TEXT: &str = "_text";

/// The files that tell the kernel's symbols.
#[derive(Debug)]
pub(crate) struct KernelFiles {
    /// Text of kallsyms.
    kallsyms: Vec<u8>,
    /// Where a symbol was when the recording was made, if that is known.
    reference: Option<KernelReference>,
    image: Option<Arc<MappedFile>>,
    info: Option<DebugInfo>,
    /// `kptr_restrict` and `perf_event_paranoid`, as they are now.
    restrictions: [Option<i32>; 2],
}

impl KernelFiles {
    /// Finds the files of the recorded kernel; `build_id` is what the recording says of its image.
    /// `ahead` may have its list of symbols already; `addresses`, ascending, are those that will be looked up.
    pub(crate) fn open(
        options: &SymbolizeOptions,
        build_id: Option<&[u8]>,
        ahead: Option<KernelListAhead>,
        addresses: impl Iterator<Item = u64>,
    ) -> Result<Self, SymbolizeError> {
        let recorded = options.kernel_build_id.as_deref().or(build_id);
        let image = recorded.and_then(|id| find_image(options, id)).map(Arc::new);
        let kallsyms = match check_running(options, recorded) {
            Ok(()) => {
                // With an image, symbols are looked for by name, too; so they are where the kernel has moved.
                running_symbols(options, ahead, image.is_none().then_some(addresses))
            }
            // An address of another boot means nothing without a symbol whose place is known in both.
            Err(refused) => match (recorded, &options.kernel_reference) {
                (Some(id), Some(_)) => by_build_id(&options.build_id_caches, id, "/kallsyms")
                    .iter()
                    .find_map(|path| fs::read(path).ok())
                    .ok_or(refused),
                _ => Err(refused),
            },
        };
        let wanted = (options.inlines || options.lines).then_some(image.as_ref()).flatten();
        let info = wanted.and_then(|image| {
            let main = DebugSections::load(image.clone(), SectionNames::Plain)?;
            Some(DebugInfo { main, supplement: None, package: None, sysroot: None })
        });
        let kallsyms = match kallsyms {
            Err(refused) if image.is_none() => return Err(refused),
            kallsyms => kallsyms.unwrap_or_default(),
        };
        let restrictions = ["kptr_restrict", "perf_event_paranoid"].map(|name| {
            let level = fs::read_to_string(options.procfs.join("sys/kernel").join(name));
            level.ok()?.trim().parse().ok()
        });
        Ok(Self { kallsyms, reference: options.kernel_reference.clone(), image, info, restrictions })
    }

    pub(crate) fn code_map<'a>(&'a self, dwos: &'a DwoArena) -> Result<CodeMap<'a>, SymbolizeError> {
        let image = self.image.as_deref().and_then(|image| object::File::parse(image.data()).ok());
        let symbols = match Kallsyms::parse(&self.kallsyms) {
            Kallsyms::Symbols(symbols) => symbols,
            Kallsyms::Hidden if image.is_some() => Vec::new(),
            Kallsyms::Hidden => {
                let [kptr_restrict, paranoid] = self.restrictions;
                return Err(SymbolizeError::KernelHidden { kptr_restrict, paranoid });
            }
        };
        let in_image = |name: &str| image.as_ref()?.symbol_by_name(name).map(|symbol| symbol.address());
        if symbols.is_empty() {
            // Only the image: its addresses are those of before the kernel was moved.
            let Some(image) = &image else { return Ok(CodeMap::default()) };
            let reference = self.reference.as_ref();
            let shift = reference.and_then(|at| Some(at.address.wrapping_sub(in_image(&at.symbol)?)));
            let Some(shift) = shift else { return Err(SymbolizeError::KernelMoved) };
            let symbols = moved(static_symbols(image, None, &|| ()).symbols, shift);
            let table = SymbolTable::new(symbols, Vec::new(), GapRule::NextSymbol);
            let debug = self.info.as_ref().and_then(|info| DebugMap::new(info, dwos));
            return Ok(CodeMap { table, debug, debug_shift: shift, ..CodeMap::default() });
        }
        let now = |name: &str| {
            let is_it = |symbol: &&Symbol<'_>| symbol.name.bytes() == name.as_bytes();
            symbols.iter().find(is_it).map(|symbol| symbol.start)
        };
        let shift = match &self.reference {
            Some(at) => at.address.wrapping_sub(now(&at.symbol).unwrap_or(at.address)),
            None => 0,
        };
        let text = now(START_OF_TEXT).map(|text| text.wrapping_add(shift));
        let debug_shift = text.zip(in_image(START_OF_TEXT)).map(|(text, image)| text.wrapping_sub(image));
        let debug = self.info.as_ref().filter(|_| debug_shift.is_some());
        let debug = debug.and_then(|info| DebugMap::new(info, dwos));
        let table = SymbolTable::new(moved(symbols, shift), Vec::new(), GapRule::Kallsyms);
        Ok(CodeMap { table, debug, debug_shift: debug_shift.unwrap_or(0), ..CodeMap::default() })
    }
}

/// The running kernel's list of symbols. If only certain addresses are wanted, it may be a part of it.
fn running_symbols(
    options: &SymbolizeOptions,
    ahead: Option<KernelListAhead>,
    only_for: Option<impl Iterator<Item = u64>>,
) -> Result<Vec<u8>, SymbolizeError> {
    let procfs = &options.procfs;
    let cache = options.kernel_cache.as_ref();
    let kept = cache.and_then(|folder| KernelCache::open(folder, procfs));
    if let (Some(kept), Some(addresses)) = (&kept, only_for)
        && options.kernel_reference.as_ref().is_none_or(|reference| is_in_place(kept, reference))
        && let Some(lines) = kept.lines_for(addresses)
    {
        return Ok(lines);
    }
    let path = procfs.join("kallsyms");
    let text = ahead.and_then(|ahead| ahead.finish(&path)).unwrap_or_else(|| fs::read(&path));
    let text = text.map_err(|source| SymbolizeError::Open { path, source })?;
    if let Some(folder) = cache.filter(|_| kept.is_none()) {
        // Without a copy the kernel is asked again: slower, and nothing else.
        let _ = kernel_cache::keep(folder, procfs, &text);
    }
    Ok(text)
}

/// Whether the kernel lies where it lay when it was recorded.
fn is_in_place(kept: &KernelCache, reference: &KernelReference) -> bool {
    let lines = kept.lines_for([reference.address]).unwrap_or_default();
    let Kallsyms::Symbols(symbols) = Kallsyms::parse(&lines) else { return false };
    let is_it = |symbol: &Symbol<'_>| {
        symbol.start == reference.address && symbol.name.bytes() == reference.symbol.as_bytes()
    };
    symbols.iter().any(is_it)
}

/// An image of the kernel with this build-id, in the places where distributions put it.
fn find_image(options: &SymbolizeOptions, id: &[u8]) -> Option<MappedFile> {
    let mut paths = by_build_id(&options.debug_dirs, id, ".debug");
    paths.extend(by_build_id(&options.build_id_caches, id, "/vmlinux"));
    let running = fs::read_to_string(options.procfs.join("sys/kernel/osrelease")).unwrap_or_default();
    let release = options.kernel_release.as_deref().unwrap_or(running.trim_end());
    let is_plain_name = !release.is_empty() && !release.contains('/');
    if is_plain_name {
        let root = options.sysroot.clone().unwrap_or_else(|| PathBuf::from("/"));
        for folder in &options.debug_dirs {
            paths.push(folder.join(format!("lib/modules/{release}/vmlinux")));
            paths.push(folder.join(format!("boot/vmlinux-{release}")));
        }
        paths.push(root.join(format!("boot/vmlinux-{release}")));
        paths.push(root.join(format!("lib/modules/{release}/build/vmlinux")));
    }
    paths.iter().find_map(|path| open_with_build_id(path, id))
}

/// Symbols of the kernel's own text where they were when it lay elsewhere. Modules do not move with it.
fn moved(mut symbols: Vec<Symbol<'_>>, shift: u64) -> Vec<Symbol<'_>> {
    if shift != 0 {
        symbols.retain(|symbol| !symbol.name.bytes().contains(&b'\t'));
        for symbol in &mut symbols {
            symbol.start = symbol.start.wrapping_add(shift);
            symbol.end = symbol.end.wrapping_add(shift);
        }
    }
    symbols
}

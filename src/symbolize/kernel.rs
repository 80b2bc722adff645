//! Symbols of the recorded kernel, if it is the running one or its image is at hand.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use object::{Object, ObjectSymbol};

use super::code_map::CodeMap;
use super::debug_file::{by_build_id, open_with_build_id, same_build_id};
use super::dwarf::{DebugInfo, DebugMap, DebugSections, SectionNames};
use super::elf::{MappedFile, hex};
use super::elf_symbols::static_symbols;
use super::error::SymbolizeError;
use super::kallsyms::Kallsyms;
use super::kernel_cache::{self, KernelCache};
use super::options::{KernelReference, SymbolizeOptions};
use super::read_ahead::KernelListAhead;
use super::split_dwarf::DwoArena;
use super::symbol_table::{GapRule, Symbol, SymbolTable};

/// Note type and owner of a build-id.
const NT_GNU_BUILD_ID: u32 = 3;
const NOTE_OWNER: &[u8] = b"GNU\0";
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
                // With an image or a reference, symbols are looked for by name, too.
                let is_plain = image.is_none() && options.kernel_reference.is_none();
                running_symbols(options, ahead, is_plain.then_some(addresses))
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
        Ok(Self { kallsyms, reference: options.kernel_reference.clone(), image, info })
    }

    pub(crate) fn code_map<'a>(&'a self, dwos: &'a DwoArena) -> Result<CodeMap<'a>, SymbolizeError> {
        let image = self.image.as_deref().and_then(|image| object::File::parse(image.data()).ok());
        let symbols = match Kallsyms::parse(&self.kallsyms) {
            Kallsyms::Symbols(symbols) => symbols,
            Kallsyms::Hidden if image.is_some() => Vec::new(),
            Kallsyms::Hidden => return Err(SymbolizeError::KernelHidden),
        };
        let in_image = |name: &str| image.as_ref()?.symbol_by_name(name).map(|symbol| symbol.address());
        if symbols.is_empty() {
            // Only the image: its addresses are those of before the kernel was moved.
            let Some(image) = &image else { return Ok(CodeMap::default()) };
            let reference = self.reference.as_ref();
            let shift = reference.and_then(|at| Some(at.address.wrapping_sub(in_image(&at.symbol)?)));
            let Some(shift) = shift else { return Err(SymbolizeError::KernelMoved) };
            let symbols = moved(static_symbols(image), shift);
            let table = SymbolTable::new(symbols, Vec::new(), GapRule::NextSymbol);
            let debug = self.info.as_ref().and_then(|info| DebugMap::new(info, dwos));
            return Ok(CodeMap { table, debug, debug_shift: shift, ..CodeMap::default() });
        }
        let now = |name: &str| {
            let is_it = |symbol: &&Symbol<'_>| symbol.name == name.as_bytes();
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

/// Is the running kernel the recorded one?
pub(crate) fn check_running(
    options: &SymbolizeOptions,
    recorded: Option<&[u8]>,
) -> Result<(), SymbolizeError> {
    if let Some(recorded) = recorded {
        let running = fs::read(options.sysfs.join("kernel/notes")).ok().and_then(|notes| build_id_of(&notes));
        return match running {
            Some(running) if same_build_id(&running, recorded) => Ok(()),
            running => Err(SymbolizeError::KernelDiffers {
                running: running.map_or_else(|| String::from("without build-id"), |id| hex(&id)),
                recorded: hex(recorded),
            }),
        };
    }
    let Some(recorded) = &options.kernel_release else { return Err(SymbolizeError::KernelUnknown) };
    let running = fs::read_to_string(options.procfs.join("sys/kernel/osrelease")).unwrap_or_default();
    if running.trim_end() == recorded {
        return Ok(());
    }
    Err(SymbolizeError::KernelDiffers { running: running.trim_end().to_owned(), recorded: recorded.clone() })
}

/// The build-id in the notes of a kernel: `/sys/kernel/notes`.
pub(crate) fn build_id_of(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let (header, behind) = rest.split_at_checked(12)?;
        let word = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let (name_size, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let (name, behind) = behind.split_at_checked(name_size.checked_next_multiple_of(4)?)?;
        let id = behind.get(..size)?;
        if kind == NT_GNU_BUILD_ID && name == NOTE_OWNER {
            return Some(id.to_vec());
        }
        rest = behind.get(size.checked_next_multiple_of(4)?..)?;
    }
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
        symbols.retain(|symbol| !symbol.name.contains(&b'\t'));
        for symbol in &mut symbols {
            symbol.start = symbol.start.wrapping_add(shift);
            symbol.end = symbol.end.wrapping_add(shift);
        }
    }
    symbols
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note(owner: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [owner.len() as u32, content.len() as u32, kind] {
            note.extend(word.to_ne_bytes());
        }
        for part in [owner, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let notes = [note(b"Linux\0", 257, b"\0\0\0\0"), note(b"GNU\0", 3, &[1, 2, 3, 4, 5])].concat();
        assert_eq!(build_id_of(&notes), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(build_id_of(&note(b"GNU\0", 1, b"abi!")), None);
    }

    proptest! {
        #[test]
        fn any_notes_are_parsed(notes in proptest::collection::vec(any::<u8>(), 0..100)) {
            build_id_of(&notes);
        }
    }
}

//! Split DWARF: debug information that stayed in `.dwo` files beside the object files, or was collected in a
//! `.dwp` package.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use addr2line::SplitDwarfLoad;
use gimli::{Dwarf, DwarfPackage, EndianSlice, Reader as _, UnitRef};

use super::debug_sections::{DebugInfo, DebugSections, Reader, SectionNames};
use super::elf::MappedFile;
use super::unit_limits::{abbreviations_are_bounded, functions_are_bounded};

/// Keeps opened `.dwo` files in place while lookups refer to them: elements never move, as each bucket,
/// twice as large as the one before, is allocated once.
#[derive(Debug, Default)]
pub(crate) struct DwoArena {
    used: AtomicUsize,
    buckets: [OnceLock<Box<[OnceLock<DebugSections>]>>; 32],
}

impl DwoArena {
    fn add(&self, sections: DebugSections) -> Option<&DebugSections> {
        let number = self.used.fetch_add(1, Ordering::Relaxed) + 1;
        let bucket = number.ilog2();
        let slots = self.buckets.get(bucket as usize)?;
        let slots = slots.get_or_init(|| (0..1usize << bucket).map(|_| OnceLock::new()).collect());
        Some(slots.get(number - (1 << bucket))?.get_or_init(|| sections))
    }
}

/// Loads the parts of a module's debug information that lie in other files.
pub(crate) struct SplitFiles<'a> {
    arena: &'a DwoArena,
    package: Option<DwarfPackage<Reader<'a>>>,
    sysroot: Option<&'a Path>,
}

impl<'a> SplitFiles<'a> {
    pub(crate) fn new(info: &'a DebugInfo, arena: &'a DwoArena) -> Self {
        let package = info.package.as_ref().and_then(|package| {
            let empty = EndianSlice::new(&[], package.reader(gimli::SectionId::DebugInfo).endian());
            DwarfPackage::load(|id| Ok::<_, gimli::Error>(package.reader(id)), empty).ok()
        });
        Self { arena, package, sysroot: info.sysroot.as_deref() }
    }

    /// The part that a lookup asks for, from the package or from its own file.
    pub(crate) fn load(&self, wanted: &SplitDwarfLoad<Reader<'a>>) -> Option<Dwarf<Reader<'a>>> {
        if let Some(package) = &self.package
            && let Ok(Some(found)) = package.find_cu(wanted.dwo_id, &wanted.parent)
        {
            return is_bounded(&found).then_some(found);
        }
        let path = self.path(wanted)?;
        let file = Arc::new(MappedFile::open(&path).ok()?);
        let sections = self.arena.add(DebugSections::load(file, SectionNames::Split)?)?;
        let mut dwarf = sections.dwarf();
        dwarf.make_dwo(&wanted.parent);
        // The object file may have been compiled again since the program was linked.
        let first = dwarf.units().next().ok()??;
        let unit = dwarf.unit(first).ok()?;
        (unit.dwo_id == Some(wanted.dwo_id) && is_bounded(&dwarf)).then_some(dwarf)
    }

    fn path(&self, wanted: &SplitDwarfLoad<Reader<'a>>) -> Option<PathBuf> {
        let name = Path::new(OsStr::from_bytes(wanted.path.as_ref()?.slice()));
        let folder = wanted.comp_dir.as_ref().map(|folder| Path::new(OsStr::from_bytes(folder.slice())));
        let path = folder.map_or_else(|| name.to_owned(), |folder| folder.join(name));
        Some(match self.sysroot {
            Some(sysroot) => sysroot.join(path.strip_prefix("/").unwrap_or(&path)),
            None => path,
        })
    }
}

fn is_bounded(dwarf: &Dwarf<Reader<'_>>) -> bool {
    let mut units = dwarf.units();
    abbreviations_are_bounded(dwarf).is_some()
        && std::iter::from_fn(|| units.next().ok().flatten()).all(|header| {
            dwarf.unit(header).is_ok_and(|unit| functions_are_bounded(UnitRef::new(dwarf, &unit)))
        })
}

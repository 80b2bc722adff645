//! Inlined frames and source lines from DWARF debug information.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{UnitOffset, UnitRef};

use super::debug_sections::{DebugInfo, Reader};
use super::declaration::{Declaration, Declarations};
use super::scopes::Scopes;
use super::split_dwarf::{DwoArena, SplitFiles};
use super::units::UnitIndex;

/// The debug information of a module made ready for lookups by several threads.
#[derive(Debug)]
pub(crate) struct DebugMap<'a> {
    info: &'a DebugInfo,
    dwos: &'a DwoArena,
    dwarf: Arc<gimli::Dwarf<Reader<'a>>>,
    pub(crate) units: UnitIndex<'a>,
}

impl<'a> DebugMap<'a> {
    /// `None` if the debug information is damaged. Split files that lookups need are kept in `dwos`.
    pub(crate) fn new(info: &'a DebugInfo, dwos: &'a DwoArena) -> Option<Self> {
        let mut dwarf = info.main.dwarf();
        let units = UnitIndex::new(&mut dwarf)?;
        if let Some(supplement) = &info.supplement {
            let mut supplement = supplement.dwarf();
            UnitIndex::new(&mut supplement)?;
            dwarf.set_sup(supplement);
        }
        Some(Self { info, dwos, dwarf: Arc::new(dwarf), units })
    }
}

/// A frame as debug information tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DebugFrame<'n, 'f> {
    pub(crate) function: Option<&'n [u8]>,
    /// Which copy of it; `None` where that is not certain.
    pub(crate) copy: Option<CopyId>,
    pub(crate) file: Option<&'f str>,
    pub(crate) line: Option<u32>,
}

/// One inlined copy of a function, or the function's own code: a unit, and an entry in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CopyId(u32, usize);

/// What copies are of: a unit's place, in a file of its own should it have one, and an entry in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OriginId(Option<u64>, usize, usize);

/// The function that copies are of.
pub(crate) struct Origin<'l, 'a> {
    pub(crate) id: OriginId,
    unit: UnitRef<'l, Reader<'a>>,
    entry: UnitOffset,
    /// The unit that an address lies in, by its number.
    number: u32,
}

/// Looks addresses up. Units are parsed when first needed and kept; one lookup serves one thread.
pub(crate) struct DebugLookup<'m, 'a> {
    map: &'m DebugMap<'a>,
    context: Context<Reader<'a>>,
    split: SplitFiles<'a>,
    scopes: RefCell<Scopes>,
}

impl<'m, 'a> DebugLookup<'m, 'a> {
    /// `None` if the debug information is damaged.
    pub(crate) fn new(map: &'m DebugMap<'a>) -> Option<Self> {
        let context = Context::from_arc_dwarf(map.dwarf.clone()).ok()?;
        Some(Self { map, context, split: SplitFiles::new(map.info, map.dwos), scopes: RefCell::default() })
    }

    /// Calls `each` for the frames at an address, innermost first. Damaged parts give no frames.
    pub(crate) fn frames(&self, address: u64, mut each: impl FnMut(DebugFrame<'a, '_>)) {
        if address == u64::MAX || !self.map.units.is_safe(&self.map.dwarf, address) {
            return;
        }
        let Ok(mut frames) = self.complete(self.context.find_frames(address)) else { return };
        let unit = self.map.units.only_unit_of(address);
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            each(DebugFrame {
                function: frame.function.map(|function| function.name.slice()),
                copy: unit.zip(frame.dw_die_offset).map(|(unit, entry)| CopyId(unit, entry.0)),
                file: location.and_then(|location| location.file),
                line: location.and_then(|location| location.line),
            });
        }
    }

    /// What a frame's function at an address is a copy of.
    pub(crate) fn origin(&self, address: u64, copy: CopyId) -> Option<Origin<'_, 'a>> {
        let CopyId(number, entry) = copy;
        let unit = self.complete(self.context.find_dwarf_and_unit(address))?;
        let mut scopes = self.scopes.borrow_mut();
        let (unit, entry) = self.declarations(number, &mut scopes).origin(unit, UnitOffset(entry)).ok()?;
        let id = OriginId(unit.dwo_id.map(|id| id.0), unit.header.offset().0, entry.0);
        Some(Origin { id, unit, entry, number })
    }

    /// What tells a function without a name for the linker from others.
    pub(crate) fn declaration(&self, origin: &Origin<'_, 'a>) -> Option<Declaration> {
        let mut scopes = self.scopes.borrow_mut();
        self.declarations(origin.number, &mut scopes).find(origin.unit, origin.entry)
    }

    /// Of code of the unit with this number.
    fn declarations<'f, 'l>(&'l self, number: u32, scopes: &'f mut Scopes) -> Declarations<'f, 'l, 'a> {
        let DebugMap { units, dwarf, .. } = self.map;
        let skeleton = units.unit(number).map(|unit| UnitRef::new(dwarf, unit));
        Declarations { units, dwarf, skeleton, scopes }
    }

    /// File and line of the code at an address.
    pub(crate) fn location(&self, address: u64) -> Option<(Option<&str>, Option<u32>)> {
        if address == u64::MAX {
            return None;
        }
        let location = self.context.find_location(address).ok()??;
        Some((location.file, location.line))
    }

    fn complete<L: LookupContinuation<Buf = Reader<'a>>>(&self, mut result: LookupResult<L>) -> L::Output {
        loop {
            match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    result = continuation.resume(self.split.load(&load).map(Arc::new));
                }
            }
        }
    }
}

/// The path of a `.dwp` file that belongs to an image.
pub(crate) fn package_path(image: &Path) -> PathBuf {
    let mut name = image.as_os_str().to_owned();
    name.push(".dwp");
    PathBuf::from(name)
}

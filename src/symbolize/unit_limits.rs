//! Is a unit of debug information safe to parse?
//!
//! The parser keeps what it reads, and follows nesting by recursion. A damaged or hostile file can nest inlined
//! functions so deeply that this overflows the stack; and it can let many functions or units share one large
//! list, so that a small file becomes terabytes. So the size of what will be parsed is bounded before.

use gimli::{AttributeValue, DebugAbbrevOffset, Dwarf, Reader as _, Section as _, UnitRef};
use rustc_hash::FxHashSet;

use super::debug_sections::Reader;

/// Deepest nesting of inlined functions that is followed. Compilers stay below a hundred.
const DEEPEST_INLINING: usize = 1_000;
/// Most address ranges in all functions of a unit together.
const MOST_RANGES: usize = 8 << 20;
/// A section whose parts are shared may be read this many times over, and this many bytes more.
const MOST_SHARING: u64 = 16;
const FREE_SHARING: u64 = 16 << 20;

/// Bytes that may be read of a section in which parts are shared.
#[derive(Debug)]
pub(super) struct Budget(u64);

impl Budget {
    pub(super) fn of(section: &Reader<'_>) -> Self {
        Self((section.len() as u64).saturating_mul(MOST_SHARING).saturating_add(FREE_SHARING))
    }

    /// Takes bytes from the budget; `None` if there are not as many left.
    pub(super) fn take(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// Are the tables of abbreviations, each parsed once, together not much larger than their section?
pub(super) fn abbreviations_are_bounded(dwarf: &Dwarf<Reader<'_>>) -> Option<()> {
    let section = dwarf.debug_abbrev.reader();
    let mut budget = Budget::of(section);
    let mut seen = FxHashSet::<DebugAbbrevOffset>::default();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().ok()? {
        if seen.insert(header.debug_abbrev_offset()) {
            budget.take(table_length(*section, header.debug_abbrev_offset().0)?)?;
        }
    }
    Some(())
}

/// Length of a table of abbreviations.
fn table_length(section: Reader<'_>, offset: usize) -> Option<u64> {
    const IMPLICIT_CONST: u64 = gimli::DW_FORM_implicit_const.0 as u64;
    let mut table = section;
    table.skip(offset).ok()?;
    let before = table.len();
    while table.read_uleb128().ok()? != 0 {
        table.read_uleb128().ok()?; // The tag.
        table.read_u8().ok()?; // Has it children?
        loop {
            let (name, form) = (table.read_uleb128().ok()?, table.read_uleb128().ok()?);
            if form == IMPLICIT_CONST {
                table.read_sleb128().ok()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Some((before - table.len()) as u64)
}

/// Is the inlining in a unit nested no deeper, and are its functions' ranges no more, than can be followed?
pub(super) fn functions_are_bounded(unit: UnitRef<'_, Reader<'_>>) -> bool {
    walk_functions(unit).is_ok_and(|bounded| bounded)
}

fn walk_functions(unit: UnitRef<'_, Reader<'_>>) -> gimli::Result<bool> {
    // Depths of the inlined functions that the walk is in.
    let mut inlined: Vec<isize> = Vec::new();
    let mut ranges = 0;
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        let is_inlined = abbreviation.tag() == gimli::DW_TAG_inlined_subroutine;
        if !is_inlined && abbreviation.tag() != gimli::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        while inlined.last().is_some_and(|&outer| outer >= depth) {
            inlined.pop();
        }
        if is_inlined {
            inlined.push(depth);
            if inlined.len() > DEEPEST_INLINING {
                return Ok(false);
            }
        }
        for &attribute in abbreviation.attributes() {
            if attribute.name() != gimli::DW_AT_ranges {
                entries.skip_attributes(&[attribute])?;
                continue;
            }
            let value: AttributeValue<_> = entries.read_attribute(attribute)?.value();
            let Some(offset) = unit.attr_ranges_offset(value)? else { continue };
            let mut list = unit.raw_ranges(offset)?;
            while list.next()?.is_some() {
                ranges += 1;
                if ranges > MOST_RANGES {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

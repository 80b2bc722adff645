//! In which namespace, class or function of its source each function and class lies.

use gimli::{UnitOffset, UnitRef};
use rustc_hash::FxHashMap;

use super::debug_sections::Reader;

/// Of units that were asked for; each is walked once.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    units: FxHashMap<(Option<u64>, usize), Parents>,
}

/// Pairs of entry and the scope that it lies in, in the order of entries. What lies in no scope is left out.
type Parents = Vec<(u32, u32)>;

impl Scopes {
    /// The scope that an entry lies in.
    pub(crate) fn parent(&mut self, unit: UnitRef<'_, Reader<'_>>, at: UnitOffset) -> Option<UnitOffset> {
        let section = unit.header.offset().0;
        // A unit in a file of its own begins at the same place as all of these; a damaged one lies in nothing.
        let of_file = unit.dwo_id.map(|id| id.0);
        let parents = self.units.entry((of_file, section)).or_insert_with(|| walk(unit).unwrap_or_default());
        let at = u32::try_from(at.0).ok()?;
        let found = parents.binary_search_by_key(&at, |(entry, _)| *entry).ok()?;
        Some(UnitOffset(parents[found].1 as usize))
    }
}

fn walk(unit: UnitRef<'_, Reader<'_>>) -> gimli::Result<Parents> {
    let mut parents = Parents::new();
    let mut open: Vec<(isize, u32)> = Vec::new();
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let (at, depth) = (entries.next_offset().0, entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        entries.skip_attributes(abbreviation.attributes())?;
        let is_scope = matches!(
            abbreviation.tag(),
            gimli::DW_TAG_namespace
                | gimli::DW_TAG_module
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_interface_type
                | gimli::DW_TAG_subprogram
        );
        // Units of 4 GB have places that do not fit: nothing is known of these.
        let Ok(at) = u32::try_from(at) else { break };
        if !is_scope {
            continue;
        }
        while open.last().is_some_and(|(outer, _)| *outer >= depth) {
            open.pop();
        }
        if let Some((_, parent)) = open.last() {
            parents.push((at, *parent));
        }
        if abbreviation.has_children() {
            open.push((depth, at));
        }
    }
    Ok(parents)
}

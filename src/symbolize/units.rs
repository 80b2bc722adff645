//! Which units of debug information hold which addresses.
//!
//! Lookups go unit by unit, so that each unit is parsed by one thread, and into no unit that is not safe to parse.

use std::sync::OnceLock;

use gimli::{DebugInfoOffset, Dwarf, Section as _, Unit, UnitOffset, UnitRef, UnitType};
use rustc_hash::FxHashMap;

use super::debug_sections::Reader;
use super::unit_limits::{Budget, abbreviations_are_bounded, functions_are_bounded};

/// Most ranges that may begin inside a range, as each of them is looked at for each address there. They should be
/// apart.
const MOST_OVERLAPS: usize = 1 << 15;
/// Most units that hold one address. There should be one; linkers that drop a function leave more at zero.
const MOST_AT_ONCE: usize = 64;

/// The units with code, by address.
#[derive(Debug)]
pub(crate) struct UnitIndex<'a> {
    ranges: Vec<UnitRange>,
    units: Vec<IndexedUnit<'a>>,
    /// Units that declare no ranges; a lookup may find them by their line tables.
    undeclared: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UnitRange {
    begin: u64,
    end: u64,
    unit: u32,
    /// Highest end of the ranges up to this one.
    reach: u64,
}

#[derive(Debug)]
struct IndexedUnit<'a> {
    unit: Unit<Reader<'a>>,
    bounded: OnceLock<bool>,
}

impl<'a> UnitIndex<'a> {
    /// Prepares the sections for lookups and indexes their units; `None` if they are damaged, or made such that
    /// looking into them would take very long.
    pub(crate) fn new(dwarf: &mut Dwarf<Reader<'a>>) -> Option<Self> {
        abbreviations_are_bounded(dwarf)?;
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::All);
        let listed = listed_ranges(dwarf);
        let mut line_tables = Budget::of(dwarf.debug_line.reader());
        let (mut ranges, mut units, mut undeclared) = (Vec::new(), Vec::new(), Vec::new());
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().ok()? {
            if !matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_) | UnitType::Partial) {
                continue;
            }
            let listed = header.debug_info_offset().and_then(|offset| listed.get(&offset));
            let Ok(unit) = dwarf.unit(header) else { continue };
            let (number, declared) = (units.len() as u32, ranges.len());
            let mut add = |range: gimli::Range| {
                if range.begin < range.end {
                    let unit = number;
                    ranges.push(UnitRange { begin: range.begin, end: range.end, unit, reach: 0 });
                }
            };
            listed.into_iter().flatten().copied().for_each(&mut add);
            let mut own = dwarf.unit_ranges(&unit).ok()?;
            while let Ok(Some(range)) = own.next() {
                add(range);
            }
            if ranges.len() == declared {
                undeclared.push(number);
            }
            if let Some(program) = &unit.line_program {
                line_tables.take(program.header().unit_length() as u64)?;
            }
            units.push(IndexedUnit { unit, bounded: OnceLock::new() });
        }
        forget_dropped_functions(&mut ranges);
        ranges.sort_unstable();
        let mut reach = 0;
        for range in &mut ranges {
            reach = reach.max(range.end);
            range.reach = reach;
        }
        for (index, range) in ranges.iter().enumerate() {
            let first = ranges.partition_point(|before| before.reach <= range.begin);
            if index.saturating_sub(first) > MOST_OVERLAPS {
                return None;
            }
        }
        Some(Self { ranges, units, undeclared })
    }

    /// The unit whose lookups an address belongs to.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u32> {
        self.containing(address).next().map(|range| range.unit)
    }

    /// A unit by its number.
    pub(crate) fn unit(&self, number: u32) -> Option<&Unit<Reader<'a>>> {
        self.units.get(number as usize).map(|indexed| &indexed.unit)
    }

    /// The only unit that declares this address to be its own, by its number.
    pub(crate) fn only_unit_of(&self, address: u64) -> Option<u32> {
        let mut units = self.containing(address).map(|range| range.unit);
        let first = units.next()?;
        units.all(|other| other == first).then_some(first)
    }

    /// The unit that holds an entry, and where in it that is.
    pub(crate) fn unit_with(&self, entry: DebugInfoOffset) -> Option<(&Unit<Reader<'a>>, UnitOffset)> {
        let behind = self.units.partition_point(|IndexedUnit { unit, .. }| unit.header.offset().0 <= entry.0);
        let unit = &self.units.get(behind.checked_sub(1)?)?.unit;
        Some((unit, entry.to_unit_offset(&unit.header)?))
    }

    /// May functions be looked up at this address?
    pub(crate) fn is_safe(&self, dwarf: &Dwarf<Reader<'a>>, address: u64) -> bool {
        let mut ranges = self.containing(address);
        let declared = ranges.by_ref().take(MOST_AT_ONCE).map(|range| range.unit);
        let mut units = declared.chain(self.undeclared.iter().copied());
        units.all(|unit| self.is_bounded(dwarf, unit)) && ranges.next().is_none()
    }

    fn is_bounded(&self, dwarf: &Dwarf<Reader<'a>>, unit: u32) -> bool {
        let Some(IndexedUnit { unit, bounded }) = self.units.get(unit as usize) else { return false };
        *bounded.get_or_init(|| functions_are_bounded(UnitRef::new(dwarf, unit)))
    }

    fn containing(&self, address: u64) -> impl Iterator<Item = &UnitRange> {
        let behind = self.ranges.partition_point(|range| range.begin <= address);
        let reaching = self.ranges[..behind].iter().rev().take_while(move |range| range.reach > address);
        reaching.filter(move |range| range.end > address)
    }
}

/// Linkers that drop unused functions leave their ranges at address zero, tens of thousands of them in a large
/// program. No lookup is for them, and together they would count as overlapping.
fn forget_dropped_functions(ranges: &mut Vec<UnitRange>) {
    if ranges.iter().filter(|range| range.begin == 0).count() > MOST_AT_ONCE {
        ranges.retain(|range| range.begin != 0);
    }
}

/// Ranges of units as `.debug_aranges` lists them.
fn listed_ranges(dwarf: &Dwarf<Reader<'_>>) -> FxHashMap<gimli::DebugInfoOffset, Vec<gimli::Range>> {
    let mut listed = FxHashMap::<_, Vec<_>>::default();
    let mut sets = dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let ranges = listed.entry(set.debug_info_offset()).or_default();
        let mut entries = set.entries();
        while let Some(entry) = entries.next().transpose() {
            ranges.extend(entry.ok().map(|entry| entry.range()));
        }
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::{MOST_AT_ONCE, UnitRange, forget_dropped_functions};

    #[test]
    fn many_dropped_functions_are_forgotten_and_few_are_code() {
        let range = |begin| UnitRange { begin, end: begin + 16, unit: 0, reach: 0 };
        let mut ranges: Vec<_> = (0..MOST_AT_ONCE as u64).map(|_| range(0)).chain([range(64)]).collect();
        forget_dropped_functions(&mut ranges);
        assert_eq!(ranges.len(), MOST_AT_ONCE + 1);
        ranges.push(range(0));
        forget_dropped_functions(&mut ranges);
        assert_eq!(ranges, [range(64)]);
    }
}

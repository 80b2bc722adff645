//! Where functions begin in a module without symbols: its unwind tables, which exceptions need and `strip` leaves, have
//! an entry for each.

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameOffset, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use super::elf::READ_AT_ONCE;

/// The functions of a module by their addresses, without names.
#[derive(Debug, Default)]
pub(crate) struct FunctionStarts {
    /// Start and first address behind, sorted.
    functions: Vec<(u64, u64)>,
}

type Reader<'a> = gimli::EndianSlice<'a, RunTimeEndian>;
type Cie<'a> = gimli::CommonInformationEntry<Reader<'a>>;

impl FunctionStarts {
    /// Of a file, as far as its tables can be read. `release` gives back what was read of the file: a browser has fifty megabytes
    /// of these.
    /// Of some addresses alone, which ascend, it has only what they need.
    pub(crate) fn of(file: &object::File<'_>, of: Option<&[u64]>, release: &dyn Fn()) -> Self {
        let Some(section) = file.section_by_name(".eh_frame") else { return Self::default() };
        let Ok(bytes) = section.data() else { return Self::default() };
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let address = |name| file.section_by_name(name).map_or(0, |section| section.address());
        let bases = BaseAddresses::default()
            .set_eh_frame(section.address())
            .set_eh_frame_hdr(address(".eh_frame_hdr"))
            .set_text(address(".text"))
            .set_got(address(".got"));
        let mut table = EhFrame::new(bytes, endian);
        table.set_address_size(if file.is_64() { 8 } else { 4 });
        // All functions of a file have a handful of these in common.
        let mut cies: FxHashMap<usize, Cie<'_>> = FxHashMap::default();
        let (mut functions, mut most) = (Vec::new(), MANY);
        let mut read = 0;
        let mut entries = table.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let parsed = partial.parse(|section, bases, offset: EhFrameOffset<usize>| {
                if let Some(known) = cies.get(&offset.0) {
                    return Ok(known.clone());
                }
                let cie = section.cie_from_offset(bases, offset)?;
                cies.insert(offset.0, cie.clone());
                Ok(cie)
            });
            let Ok(function) = parsed else { continue };
            read += function.entry_len();
            if read > READ_AT_ONCE {
                release();
                read = 0;
            }
            if let Some(end) = function.initial_address().checked_add(function.len())
                && function.len() > 0
            {
                functions.push((function.initial_address(), end));
                if let Some(addresses) = of
                    && functions.len() > most
                {
                    keep_near(&mut functions, addresses);
                    most = functions.len() * 2 + MANY;
                }
            }
        }
        release();
        of.into_iter().for_each(|addresses| keep_near(&mut functions, addresses));
        functions.sort_unstable();
        functions.dedup_by_key(|(start, _)| *start);
        Self { functions }
    }

    /// How many functions.
    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    /// The start of the function that an address lies in.
    pub(crate) fn start_of(&self, address: u64) -> Option<u64> {
        self.extent_of(address).map(|(start, _)| start)
    }

    /// The start of the function that an address lies in, and the first address behind it.
    pub(crate) fn extent_of(&self, address: u64) -> Option<(u64, u64)> {
        let behind = self.functions.partition_point(|(start, _)| *start <= address);
        let &(start, end) = self.functions.get(behind.checked_sub(1)?)?;
        let next = self.functions.get(behind).map_or(u64::MAX, |(next, _)| *next);
        (address < end).then_some((start, end.min(next)))
    }
}

/// So many functions are held before those are left out that no address needs.
const MANY: usize = 1 << 14;

/// Keeps the last functions that do not begin behind an address, and the first ones behind it.
fn keep_near(functions: &mut Vec<(u64, u64)>, addresses: &[u64]) {
    functions.sort_unstable();
    let mut needed = vec![false; functions.len()];
    for address in addresses {
        let behind = functions.partition_point(|(start, _)| start <= address);
        for at in [behind.checked_sub(1), Some(behind)].into_iter().flatten() {
            let Some((start, _)) = functions.get(at) else { continue };
            // Of those that begin at one place, the first counts.
            let first = functions.partition_point(|(other, _)| other < start);
            needed[first] = true;
        }
    }
    let mut needed = needed.into_iter();
    functions.retain(|_| needed.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_function_that_it_lies_in() {
        let starts = FunctionStarts { functions: vec![(0x100, 0x140), (0x150, 0x160)] };
        let found = [0xff, 0x100, 0x13f, 0x140, 0x150, 0x15f, 0x160].map(|address| starts.start_of(address));
        let nested = FunctionStarts { functions: vec![(0x100, 0x140), (0x120, 0x130)] };
        let found_nested = [0x110, 0x124, 0x138].map(|address| nested.extent_of(address));
        assert_eq!(found_nested, [Some((0x100, 0x120)), Some((0x120, 0x130)), None]);
        assert_eq!(found, [None, Some(0x100), Some(0x100), None, Some(0x150), Some(0x150), None]);
        assert_eq!(FunctionStarts::default().start_of(0), None);
    }
}

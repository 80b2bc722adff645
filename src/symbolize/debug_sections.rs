//! The DWARF sections of a module's files, located and unpacked.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use gimli::{EndianSlice, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object, ObjectSection};

use super::elf::MappedFile;

pub(crate) type Reader<'a> = EndianSlice<'a, RunTimeEndian>;

/// The DWARF sections that lookups read.
const SECTIONS: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

/// What a package of split DWARF has beyond these. Its index tells the place of a unit in all of its sections,
/// and is refused where one is missing.
const PACKAGE_SECTIONS: [SectionId; 6] = [
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
];

/// A compressed section may unfold to this many times its size, and this many bytes more. Real debug
/// sections stay below 20 times; a decompression bomb does not.
const MOST_EXPANSION: u64 = 64;
const FREE_EXPANSION: u64 = 16 << 20;

/// Where the bytes of a section are.
#[derive(Debug)]
pub(super) enum Located {
    Mapped(Range<usize>),
    Unpacked(Vec<u8>),
}

/// A file with its DWARF sections located, and unpacked where they are compressed.
#[derive(Debug)]
pub(crate) struct DebugSections {
    file: Arc<MappedFile>,
    endian: RunTimeEndian,
    sections: Vec<(SectionId, Located)>,
}

/// Which names the sections of a file have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionNames {
    /// `.debug_info`
    Plain,
    /// `.debug_info.dwo`, in split DWARF
    Split,
}

impl DebugSections {
    /// Locates the sections; `None` if there is no debug information in the file.
    pub(crate) fn load(file: Arc<MappedFile>, names: SectionNames) -> Option<Self> {
        let mut sections = Vec::new();
        let endian;
        {
            let data = file.data();
            let parsed = object::File::parse(data).ok()?;
            endian = if parsed.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
            let more = if names == SectionNames::Split { &PACKAGE_SECTIONS[..] } else { &[] };
            for id in SECTIONS.iter().chain(more).copied() {
                let name = match names {
                    SectionNames::Plain => Some(id.name()),
                    SectionNames::Split => id.dwo_name(),
                };
                let Some(section) = name.and_then(|name| parsed.section_by_name(name)) else {
                    continue;
                };
                if let Some(bytes) = locate(data, &section) {
                    sections.push((id, bytes));
                }
            }
        }
        let found = Self { file, endian, sections };
        (!found.bytes(SectionId::DebugInfo).is_empty()).then_some(found)
    }

    /// The bytes of a section; none if the file does not have it.
    fn bytes(&self, id: SectionId) -> &[u8] {
        match self.sections.iter().find(|(other, _)| *other == id) {
            Some((_, Located::Mapped(range))) => self.file.data().get(range.clone()).unwrap_or_default(),
            Some((_, Located::Unpacked(bytes))) => bytes,
            None => &[],
        }
    }

    pub(crate) fn reader(&self, id: SectionId) -> Reader<'_> {
        EndianSlice::new(self.bytes(id), self.endian)
    }

    pub(crate) fn dwarf(&self) -> gimli::Dwarf<Reader<'_>> {
        gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(self.reader(id))).unwrap_or_default()
    }
}

/// Finds the bytes of a section in those of its file, and unpacks them if they are compressed.
pub(super) fn locate<'a>(data: &'a [u8], section: &impl ObjectSection<'a>) -> Option<Located> {
    let place = section.compressed_file_range().ok()?;
    let start = usize::try_from(place.offset).ok()?;
    let end = start.checked_add(usize::try_from(place.compressed_size).ok()?)?;
    let packed = data.get(start..end)?;
    let limit = place.compressed_size.saturating_mul(MOST_EXPANSION).saturating_add(FREE_EXPANSION);
    if place.format != CompressionFormat::None && place.uncompressed_size > limit {
        return None;
    }
    match place.format {
        CompressionFormat::None => Some(Located::Mapped(start..end)),
        CompressionFormat::Zstandard => {
            let size = usize::try_from(place.uncompressed_size).ok()?;
            Some(Located::Unpacked(zstd::bulk::decompress(packed, size).ok()?))
        }
        _ => {
            let unpacked = section.compressed_data().ok()?.decompress().ok()?;
            Some(Located::Unpacked(unpacked.into_owned()))
        }
    }
}

/// The debug information of one module: its file, and the files that it refers to.
#[derive(Debug)]
pub(crate) struct DebugInfo {
    pub(crate) main: DebugSections,
    /// Parts that dwz moved to a file shared by several.
    pub(crate) supplement: Option<DebugSections>,
    /// Split DWARF collected in one file (`.dwp`).
    pub(crate) package: Option<DebugSections>,
    /// Prefix for the paths of split DWARF files.
    pub(crate) sysroot: Option<PathBuf>,
}

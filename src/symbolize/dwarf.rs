//! Inlined frames and source lines from DWARF debug information.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{EndianSlice, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object, ObjectSection};

use super::elf::MappedFile;
use super::split_dwarf::{DwoArena, SplitFiles};
use super::units::UnitIndex;

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
enum SectionBytes {
    Mapped(Range<usize>),
    Unpacked(Vec<u8>),
}

/// A file with its DWARF sections located, and unpacked where they are compressed.
#[derive(Debug)]
pub(crate) struct DebugSections {
    file: Arc<MappedFile>,
    endian: RunTimeEndian,
    sections: Vec<(SectionId, SectionBytes)>,
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
            Some((_, SectionBytes::Mapped(range))) => self.file.data().get(range.clone()).unwrap_or_default(),
            Some((_, SectionBytes::Unpacked(bytes))) => bytes,
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

fn locate<'a>(data: &'a [u8], section: &impl ObjectSection<'a>) -> Option<SectionBytes> {
    let place = section.compressed_file_range().ok()?;
    let start = usize::try_from(place.offset).ok()?;
    let end = start.checked_add(usize::try_from(place.compressed_size).ok()?)?;
    let packed = data.get(start..end)?;
    let limit = place.compressed_size.saturating_mul(MOST_EXPANSION).saturating_add(FREE_EXPANSION);
    if place.format != CompressionFormat::None && place.uncompressed_size > limit {
        return None;
    }
    match place.format {
        CompressionFormat::None => Some(SectionBytes::Mapped(start..end)),
        CompressionFormat::Zstandard => {
            let size = usize::try_from(place.uncompressed_size).ok()?;
            Some(SectionBytes::Unpacked(zstd::bulk::decompress(packed, size).ok()?))
        }
        _ => {
            let unpacked = section.compressed_data().ok()?.decompress().ok()?;
            Some(SectionBytes::Unpacked(unpacked.into_owned()))
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
    pub(crate) file: Option<&'f str>,
    pub(crate) line: Option<u32>,
}

/// Looks addresses up. Units are parsed when first needed and kept; one lookup serves one thread.
pub(crate) struct DebugLookup<'m, 'a> {
    map: &'m DebugMap<'a>,
    context: Context<Reader<'a>>,
    split: SplitFiles<'a>,
}

impl<'m, 'a> DebugLookup<'m, 'a> {
    /// `None` if the debug information is damaged.
    pub(crate) fn new(map: &'m DebugMap<'a>) -> Option<Self> {
        let context = Context::from_arc_dwarf(map.dwarf.clone()).ok()?;
        Some(Self { map, context, split: SplitFiles::new(map.info, map.dwos) })
    }

    /// Calls `each` for the frames at an address, innermost first. Damaged parts give no frames.
    pub(crate) fn frames(&self, address: u64, mut each: impl FnMut(DebugFrame<'a, '_>)) {
        if address == u64::MAX || !self.map.units.is_safe(&self.map.dwarf, address) {
            return;
        }
        let Ok(mut frames) = self.complete(self.context.find_frames(address)) else { return };
        while let Ok(Some(frame)) = frames.next() {
            let location = frame.location.as_ref();
            each(DebugFrame {
                function: frame.function.map(|function| function.name.slice()),
                file: location.and_then(|location| location.file),
                line: location.and_then(|location| location.line),
            });
        }
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

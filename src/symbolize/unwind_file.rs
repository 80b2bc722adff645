//! The unwind tables of a module's file: sections that tell of each instruction how to leave its function.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use framehop::ExplicitModuleSectionInfo;
use object::{Object, ObjectSection};

use super::debug_sections::{Located, locate};
use super::elf::{MappedFile, Segments};
use super::elf_module::open_file;
use super::error::SymbolizeError;
use super::known_returns::KnownReturns;
use super::options::SymbolizeOptions;
use crate::profile::Module;

/// A part of a module mapped into a process.
#[derive(Debug, Clone, Copy)]
pub struct CodeMapping<'a> {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// What `start` is in the module, as its kind says: for files an offset in the file.
    pub module_address: u64,
    /// What is mapped.
    pub module: &'a Module,
}

/// What unwinders of whole stacks call a module.
pub(crate) type MappedModule = framehop::Module<SectionBytes>;

/// Bytes of a section of an opened file.
#[derive(Debug, Clone)]
pub(crate) enum SectionBytes {
    Mapped(Arc<MappedFile>, Range<usize>),
    /// They are compressed in the file.
    Unpacked(Arc<Vec<u8>>),
}

impl Deref for SectionBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(file, range) => file.data().get(range.clone()).unwrap_or_default(),
            Self::Unpacked(bytes) => bytes,
        }
    }
}

/// The unwind tables of a file.
#[derive(Debug)]
pub(crate) struct UnwindFile {
    /// What its code is for: 32-bit programs run on 64-bit processors, too.
    pub(crate) architecture: object::Architecture,
    pub(crate) segments: Segments,
    pub(crate) sections: ExplicitModuleSectionInfo<SectionBytes>,
    /// Where functions keep their return addresses, as far as somebody asked.
    pub(super) returns: KnownReturns,
    file: Arc<MappedFile>,
    /// How often it was read, where its memory is to be given back now and then.
    reads: Option<AtomicU32>,
}

/// So often a file is read before its memory is given back: each time may be of other code, and the kernel maps the pages around it, too.
const READS_AT_ONCE: u32 = 32;

impl UnwindFile {
    /// Of a file or the vdso.
    pub(crate) fn open(options: &SymbolizeOptions, module: &Module) -> Result<Self, SymbolizeError> {
        let file = Arc::new(open_file(options, module)?);
        let parsed = object::File::parse(file.data())
            .map_err(|source| SymbolizeError::Format { path: file.path.clone(), source })?;
        let section = |name: &str| parsed.section_by_name(name);
        let addresses = |name: &str| {
            let section = section(name)?;
            Some(section.address()..section.address().checked_add(section.size())?)
        };
        let bytes = |name: &str| {
            Some(match locate(file.data(), &section(name)?)? {
                Located::Mapped(range) => SectionBytes::Mapped(file.clone(), range),
                Located::Unpacked(bytes) => SectionBytes::Unpacked(Arc::new(bytes)),
            })
        };
        let header = bytes(".eh_frame_hdr").filter(|header| {
            let bases = [addresses(".eh_frame_hdr"), addresses(".text"), addresses(".got")];
            index_is_sound(header, bases.map(|range| range.map_or(0, |range| range.start)))
        });
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: addresses(".text"),
            text: bytes(".text"),
            got_svma: addresses(".got"),
            eh_frame_svma: addresses(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: addresses(".eh_frame_hdr"),
            eh_frame_hdr: header,
            debug_frame: bytes(".debug_frame"),
            // Of other systems' formats.
            stubs_svma: None,
            stub_helper_svma: None,
            unwind_info: None,
            text_segment_svma: None,
            text_segment: None,
        };
        let architecture = parsed.architecture();
        let (segments, returns) = (Segments::of(&parsed), KnownReturns::default());
        Ok(Self { architecture, segments, sections, returns, file: file.clone(), reads: None })
    }

    /// One that keeps little of the file in memory.
    pub(super) fn frugal(self) -> Self {
        self.file.release();
        Self { reads: Some(AtomicU32::new(0)), ..self }
    }

    /// It was read at some place.
    pub(super) fn was_read(&self) {
        if let Some(reads) = &self.reads
            && reads.fetch_add(1, Ordering::Relaxed) % READS_AT_ONCE == READS_AT_ONCE - 1
        {
            self.file.release();
        }
    }

    /// Whether the file is as it was when it was opened; what is in no file does not change.
    pub(super) fn is_as_it_was(&self) -> bool {
        self.file.is_as_it_was()
    }

    /// As a part of a process, for the unwinder of whole stacks.
    pub(crate) fn mapped(&self, mapping: &CodeMapping<'_>) -> Option<MappedModule> {
        let length = mapping.end.checked_sub(mapping.start)?;
        let address = self.segments.address_of_mapping(mapping.module_address, length)?;
        let moved_by = mapping.start.wrapping_sub(address);
        let name = mapping.module.path.clone();
        Some(framehop::Module::new(name, mapping.start..mapping.end, moved_by, self.sections.clone()))
    }
}

/// Does every entry of the index (`.eh_frame_hdr`) point behind the start of the tables? The unwinder takes the
/// difference without asking; where it must do without the index, it makes one of its own.
fn index_is_sound(header: &[u8], [own, text, got]: [u64; 3]) -> bool {
    let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(own).set_text(text).set_got(got);
    let Ok(header) = gimli::EhFrameHdr::new(header, gimli::LittleEndian).parse(&bases, 8) else {
        return false;
    };
    let Ok(start) = header.eh_frame_ptr().direct() else { return false };
    let Some(table) = header.table() else { return false };
    let mut entries = table.iter(&bases);
    while let Ok(Some((_, entry))) = entries.next() {
        if entry.direct().is_ok_and(|entry| entry < start) {
            return false;
        }
    }
    true
}

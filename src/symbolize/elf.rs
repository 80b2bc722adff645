//! ELF files: mapping, build-ids, and the way from file offsets to virtual addresses.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, UncheckedAdvice};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Object, ReadRef, elf};

/// So many bytes of a table are read at a time, before their memory is given back: of a compiler's library, symbols are tens of
/// megabytes.
pub(crate) const READ_AT_ONCE: usize = 4 << 20;

/// A file mapped into memory, read-only.
#[derive(Debug)]
pub(crate) struct MappedFile {
    pub(crate) path: PathBuf,
    /// As of when it was opened; `None` if it is in no file.
    pub(crate) metadata: Option<Metadata>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Mapped(Mmap),
    Copied(Vec<u8>),
}

/// By what a file is known to be another one, or to have been written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl MappedFile {
    /// Maps a regular file. Other kinds are refused before they are opened: opening a pipe blocks, and
    /// opening a device can do anything.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !fs::metadata(path)?.is_file() {
            return Err(refused());
        }
        Self::of(path, &File::open(path)?)
    }

    /// Maps a regular file that is open.
    pub(crate) fn of(path: &Path, file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(refused());
        }
        // SAFETY: the map is private and read-only, and its bytes are only read as plain integers, so any
        // content is valid. Should another process shorten the file meanwhile, reading beyond its new end
        // raises SIGBUS, which ends the process: the `eprof` binary says then which file it was.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self { path: path.to_owned(), metadata: Some(metadata), content: Content::Mapped(map) })
    }

    /// An image that is in no file.
    pub(crate) fn in_memory(name: &str, bytes: Vec<u8>) -> Self {
        Self { path: PathBuf::from(name), metadata: None, content: Content::Copied(bytes) }
    }

    /// Whether what is at the path still is the file that was opened, neither shortened nor written to; what is in no file
    /// does not change.
    pub(crate) fn is_as_it_was(&self) -> bool {
        let now = || fs::metadata(&self.path).ok();
        self.state().is_none_or(|then| now().is_some_and(|now| FileState::of(&now) == then))
    }

    /// What the file was when it was opened; `None` of what is in no file.
    pub(crate) fn state(&self) -> Option<FileState> {
        self.metadata.as_ref().map(FileState::of)
    }

    /// Gives back the memory of all that was read so far. What is read again comes from the file again, or from the kernel's
    /// cache of it.
    pub(crate) fn release(&self) {
        if let Content::Mapped(map) = &self.content {
            // SAFETY: the map is a read-only one of a file: its pages have no content of their own that could be lost. Where
            // the kernel refuses, they stay.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }

    pub(crate) fn data(&self) -> &[u8] {
        match &self.content {
            Content::Mapped(map) => map,
            Content::Copied(bytes) => bytes,
        }
    }
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// A part of an ELF file that is loaded into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LoadSegment {
    offset: u64,
    file_size: u64,
    address: u64,
    executable: bool,
}

/// The segments of an ELF file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Segments(Vec<LoadSegment>);

impl Segments {
    pub(crate) fn of(file: &object::File<'_>) -> Self {
        match file {
            object::File::Elf32(file) => Self::of_class(file),
            object::File::Elf64(file) => Self::of_class(file),
            _ => Self::default(),
        }
    }

    fn of_class<'a, Header: FileHeader, Data: ReadRef<'a>>(file: &ElfFile<'a, Header, Data>) -> Self {
        let endian = file.endian();
        let load = |header: &&Header::ProgramHeader| header.p_type(endian) == elf::PT_LOAD;
        let segments = file.elf_program_headers().iter().filter(load).map(|header| LoadSegment {
            offset: header.p_offset(endian).into(),
            file_size: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
            executable: header.p_flags(endian) & elf::PF_X != 0,
        });
        Self(segments.collect())
    }

    /// The virtual address of a place in the file. Where segments share a page of the file, the
    /// executable one is meant.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let holds = |segment: &&LoadSegment| {
            offset.checked_sub(segment.offset).is_some_and(|inside| inside < segment.file_size)
        };
        let found = (self.0.iter().filter(holds).find(|segment| segment.executable))
            .or_else(|| self.0.iter().find(holds))?;
        found.address.checked_add(offset - found.offset)
    }

    /// The place in the file of an address, and how many bytes of its segment follow.
    pub(crate) fn offset_of(&self, address: u64) -> Option<(u64, u64)> {
        self.0.iter().filter(|segment| segment.executable).find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let rest = segment.file_size.checked_sub(inside).filter(|rest| *rest > 0)?;
            Some((segment.offset.checked_add(inside)?, rest))
        })
    }

    /// Is there code at this place in the file?
    pub(crate) fn is_code(&self, offset: u64) -> bool {
        let holds = |segment: &LoadSegment| {
            offset.checked_sub(segment.offset).is_some_and(|inside| inside < segment.file_size)
        };
        self.0.iter().any(|segment| segment.executable && holds(segment))
    }

    /// The virtual address of the first byte of a mapping of code. Mappings begin at a page, which may be before
    /// the segment that they are for.
    pub(crate) fn address_of_mapping(&self, offset: u64, length: u64) -> Option<u64> {
        let end = offset.checked_add(length)?;
        let is_mapped = |segment: &&LoadSegment| {
            segment.executable
                && segment.offset < end
                && segment.offset.saturating_add(segment.file_size) > offset
        };
        let segment = self.0.iter().find(is_mapped)?;
        Some(segment.address.wrapping_sub(segment.offset).wrapping_add(offset))
    }
}

/// The build-id of an ELF file, if it has one.
pub(crate) fn build_id<'a>(file: &object::File<'a>) -> Option<&'a [u8]> {
    file.build_id().ok().flatten().filter(|id| !id.is_empty())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, file_size: u64, address: u64, executable: bool) -> LoadSegment {
        LoadSegment { offset, file_size, address, executable }
    }

    #[test]
    fn offsets_become_addresses_by_segment() {
        let segments = Segments(vec![
            segment(0, 0x1000, 0x400000, false),
            segment(0xf00, 0x2000, 0x401f00, true),
            segment(u64::MAX - 0x10, 0x20, u64::MAX - 8, true),
        ]);
        assert_eq!(segments.address_of(0x10), Some(0x400010));
        assert_eq!(segments.address_of(0xf80), Some(0x401f80));
        assert_eq!(segments.address_of(0x2eff), Some(0x403eff));
        assert_eq!(segments.address_of(0x2f00), None);
        assert_eq!(segments.address_of(u64::MAX), None);
        assert!(segments.is_code(0xf80) && segments.is_code(0x2eff));
        assert!(!segments.is_code(0x10) && !segments.is_code(0x2f00));
        assert_eq!(segments.address_of_mapping(0, 0x3000), Some(0x401000), "one page before the segment");
        assert_eq!(segments.address_of_mapping(0x1000, 0x1000), Some(0x402000));
        assert_eq!(segments.address_of_mapping(0x3000, 0x1000), None);
        assert_eq!(segments.address_of_mapping(u64::MAX, 0x1000), None);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let refused = MappedFile::open(Path::new("/dev/null")).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        assert!(MappedFile::open(Path::new("/nonexistent")).is_err());
    }
}

//! Build-ids of mapped files, written into the mappings on their way to the file.
//!
//! The kernel would do that where it is asked to (`perf_event_attr.build_id`, Linux 5.12). But it makes one record for all
//! who listen, and marks it for those who asked: the others get a record with device and inode that says it has a
//! build-id. perf, recording beside such a one, fails an assertion when it reads its own file (kernel-notes/perf-event-open.md).
//! So eprof asks for nothing, reads the files itself, and takes the mark away where others than itself have left it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use object::{Object, ReadCache};
use perf_data::features::BuildId;
use perf_data::format::{BUILD_ID_SIZE, misc, record_type};

use crate::machine::Roots;
use crate::record::pieces;

/// More files than this are not remembered: a program that maps ever new ones must not fill the memory.
const MOST_FILES: usize = 1 << 16;
/// Where `perf_event_header` has `misc`.
const MISC_AT: usize = 4;
/// Where MMAP2 has the process, ...
const PID_AT: usize = 8;
/// ... device, inode and its generation, or a build-id with its size, ...
const FILE_AT: usize = 40;
/// ... what it may be used for, ...
const PROTECTION_AT: usize = 64;
/// ... and the path.
const PATH_AT: usize = 72;

/// A file as mappings tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileKey {
    major: u32,
    minor: u32,
    inode: u64,
    generation: u64,
}

/// Reads the build-ids of files that are mapped, each once, and notes where each was mapped from.
#[derive(Debug)]
pub struct MappedFiles {
    proc_root: PathBuf,
    known: HashMap<FileKey, Option<Vec<u8>>>,
    /// The last build-id of each path.
    by_path: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl MappedFiles {
    /// Files of the machine that `roots` stand for; none is read yet.
    pub fn new(roots: &Roots) -> Self {
        Self { proc_root: roots.procfs.clone(), known: HashMap::new(), by_path: BTreeMap::new() }
    }

    /// The records of a ring's two pieces with the build-ids of their files in the mappings; `None` where they stay as they
    /// are, which is so of most. The file of a process that has ended is read only if this process sees it at the same
    /// path; a mapping whose file cannot be read, or has no build-id, keeps its inode.
    pub fn sign(&mut self, pieces: [&[u8]; 2]) -> Option<Vec<u8>> {
        let mut signed: Option<Vec<u8>> = None;
        for mapping in pieces::records(pieces).filter(|record| record.kind == record_type::MMAP2) {
            let id = self.build_id(&pieces::copied(pieces, mapping));
            let told =
                mapping.misc & !misc::MMAP_BUILD_ID | if id.is_some() { misc::MMAP_BUILD_ID } else { 0 };
            if id.is_some() || told != mapping.misc {
                // The kernel lets nobody write into a ring.
                let signed = signed.get_or_insert_with(|| pieces.concat());
                let record = &mut signed[mapping.at..mapping.at + mapping.size];
                record[MISC_AT..MISC_AT + 2].copy_from_slice(&told.to_ne_bytes());
                if let Some(id) = id {
                    record[FILE_AT..PROTECTION_AT].copy_from_slice(&signature(id));
                }
            }
        }
        signed
    }

    /// The build-ids of all files that have one, for the recording's list of them.
    pub fn build_ids(&self) -> impl Iterator<Item = BuildId> {
        self.by_path.iter().map(|(path, id)| BuildId::of_file(id.clone(), path.clone()))
    }

    /// The build-id of a mapping's file.
    fn build_id(&mut self, record: &[u8]) -> Option<&[u8]> {
        let path = record.get(PATH_AT..)?.split(|&byte| byte == 0).next()?;
        // What is no file's path: `[vdso]`, `//anon`.
        if !path.starts_with(b"/") || path.starts_with(b"//") {
            return None;
        }
        let half = |at: usize| Some(u32::from_ne_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let word = |at: usize| Some(u64::from_ne_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let key = FileKey {
            major: half(FILE_AT)?,
            minor: half(FILE_AT + 4)?,
            inode: word(FILE_AT + 8)?,
            generation: word(FILE_AT + 16)?,
        };
        if !self.known.contains_key(&key) {
            // A file that cannot be had may be met in another process.
            let file = self.open(half(PID_AT)?, path, &key)?;
            if self.known.len() >= MOST_FILES {
                self.known.clear();
            }
            self.known.insert(key, build_id_in(file));
        }
        let id = self.known.get(&key)?.as_deref()?;
        if self.by_path.get(path).is_none_or(|known| known != id) && self.by_path.len() < MOST_FILES {
            self.by_path.insert(path.to_vec(), id.to_vec());
        }
        Some(id)
    }

    /// The file that a process mapped: where the process sees it, or else where this one does.
    fn open(&self, pid: u32, path: &[u8], key: &FileKey) -> Option<File> {
        let below_root = Path::new(OsStr::from_bytes(path.strip_prefix(b"/")?));
        let seen_by_it = self.proc_root.join(pid.to_string()).join("root").join(below_root);
        // Overlay file systems tell mappings another device than `stat`, so the inode has to do where the path is
        // the process's own.
        let same = |found: &Metadata| found.ino() == key.inode;
        let same_device = |found: &Metadata| {
            (major(found.dev()), minor(found.dev())) == (key.major.into(), key.minor.into())
        };
        open_file(&seen_by_it, same).or_else(|| {
            open_file(Path::new(OsStr::from_bytes(path)), |found| same(found) && same_device(found))
        })
    }
}

/// A build-id as MMAP2 has it: its size, three bytes of nothing, and room for the longest.
fn signature(id: &[u8]) -> [u8; 4 + BUILD_ID_SIZE] {
    let mut bytes = [0; 4 + BUILD_ID_SIZE];
    let size = id.len().min(BUILD_ID_SIZE);
    bytes[0] = size as u8;
    bytes[4..4 + size].copy_from_slice(&id[..size]);
    bytes
}

/// An ordinary file, if it is the one that is looked for.
fn open_file(path: &Path, is_wanted: impl FnOnce(&Metadata) -> bool) -> Option<File> {
    // The path comes from the recorded program, which could have put a pipe or a device there, and to open these alone may
    // wait or set something off. So it is looked at first.
    let there = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    let metadata = there.metadata().ok()?;
    if !metadata.is_file() || !is_wanted(&metadata) {
        return None;
    }
    File::open(format!("/proc/self/fd/{}", there.as_raw_fd())).ok()
}

/// The build-id in an ELF file; `None` for anything that is not an ELF file with one.
fn build_id_in(file: File) -> Option<Vec<u8>> {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    let id = elf.build_id().ok()??;
    // An id longer than the room for it would be another one.
    (!id.is_empty() && id.len() <= BUILD_ID_SIZE).then(|| id.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    use perf_data::encode::{self, MappingFields, SampleId};

    /// The mapping of a file by this very process, and the build-id that the file has.
    struct Mapped {
        record: Vec<u8>,
        id: Vec<u8>,
    }

    fn record_of(pid: u32, path: &[u8], inode: (u64, u64, u64)) -> Vec<u8> {
        let fields = MappingFields {
            pid,
            tid: pid,
            addresses: 0x1000..0x2000,
            file_offset: 0,
            inode: (inode.0 as u32, inode.1 as u32, inode.2),
            protection: 5,
            flags: 2,
            path,
        };
        let mut out = Vec::new();
        encode::mmap2(&fields, &SampleId::default(), &mut out).expect("short");
        out
    }

    /// An ELF file that has nothing but a build-id.
    fn elf_with(id: &[u8]) -> Vec<u8> {
        let mut note = [4, id.len() as u32, 3].map(u32::to_le_bytes).concat();
        note.extend(b"GNU\0");
        note.extend(id);
        note.resize(note.len().next_multiple_of(8), 0);
        let names = b"\0.note.gnu.build-id\0.shstrtab\0\0\0";
        let names_at = 64 + note.len() as u64;
        let sections_at = (names_at + names.len() as u64).next_multiple_of(8);
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(16, 0);
        elf.extend([3_u16, 62].map(u16::to_le_bytes).concat());
        elf.extend(1_u32.to_le_bytes());
        elf.extend([0, 0, sections_at].map(u64::to_le_bytes).concat());
        elf.extend(0_u32.to_le_bytes());
        elf.extend([64_u16, 0, 0, 64, 3, 2].map(u16::to_le_bytes).concat());
        elf.extend(&note);
        elf.extend(names);
        elf.resize(sections_at as usize, 0);
        let mut section = |name: u32, kind: u32, at: u64, size: u64, align: u64| {
            elf.extend([name, kind].map(u32::to_le_bytes).concat());
            elf.extend([0, 0, at, size, 0, align, 0].map(u64::to_le_bytes).concat());
        };
        section(0, 0, 0, 0, 0);
        section(1, 7, 64, note.len() as u64, 4);
        section(20, 3, names_at, names.len() as u64, 1);
        elf
    }

    /// A file with a build-id, made in this folder and mapped by the process `pid`.
    fn mapped(folder: &Path, pid: u32) -> Mapped {
        let (program, id) = (folder.join("program"), (1..=10).collect::<Vec<u8>>());
        std::fs::write(&program, elf_with(&id)).expect("written");
        let metadata = std::fs::metadata(&program).expect("made");
        let device = (major(metadata.dev()), minor(metadata.dev()), metadata.ino());
        Mapped { record: record_of(pid, program.as_os_str().as_bytes(), device), id }
    }

    fn path_of(record: &[u8]) -> &[u8] {
        record[PATH_AT..].split(|&byte| byte == 0).next().expect("a path")
    }

    fn signed(files: &mut MappedFiles, record: &[u8]) -> Vec<u8> {
        files.sign([record, &[]]).unwrap_or_else(|| record.to_vec())
    }

    fn with_leaked_bit(record: &[u8]) -> Vec<u8> {
        let mut bytes = record.to_vec();
        let bits = u16::from_ne_bytes([bytes[4], bytes[5]]) | misc::MMAP_BUILD_ID;
        bytes[4..6].copy_from_slice(&bits.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_mapping_gets_the_build_id_of_its_file() {
        let folder = tempfile::tempdir().expect("folder");
        let Mapped { record, id } = mapped(folder.path(), std::process::id());
        let mut files = MappedFiles::new(&Roots::default());
        let mut expected = with_leaked_bit(&record);
        expected[FILE_AT..FILE_AT + 24].copy_from_slice(&signature(&id));
        assert_eq!(signed(&mut files, &record), expected);
        // The same where another recorder has left its mark, or the ring's end lies within.
        assert_eq!(signed(&mut files, &with_leaked_bit(&record)), expected);
        let two = [&record[..], &record].concat();
        for split in (0..=two.len()).step_by(8) {
            let signed = files.sign([&two[..split], &two[split..]]).expect("signed");
            assert_eq!(signed, [&expected[..], &expected].concat(), "{split} bytes in the first piece");
        }
        // The list has it once; what has no build-id takes none away.
        let listed = [BuildId::of_file(id, path_of(&record).to_vec())];
        assert!(files.build_ids().eq(listed.clone()));
        // A file that is known needs no process and no path any more.
        std::fs::remove_file(folder.path().join("program")).expect("removed");
        assert_eq!(signed(&mut files, &record), expected);
        let mut others = MappedFiles::new(&Roots::default());
        assert_eq!(signed(&mut others, &record), record);
        assert_eq!(others.build_ids().count(), 0);
        let another = record_of(std::process::id(), path_of(&record), (0, 0, 1));
        assert_eq!(signed(&mut files, &another), another);
        assert!(files.build_ids().eq(listed));
    }

    #[test]
    fn another_file_at_the_same_path_is_not_taken_for_the_mapped_one() {
        let folder = tempfile::tempdir().expect("folder");
        let Mapped { record, .. } = mapped(folder.path(), std::process::id());
        let (program, old) = (folder.path().join("program"), folder.path().join("old"));
        std::fs::copy(&program, &old).expect("copied");
        std::fs::rename(&old, &program).expect("replaced");
        let mut files = MappedFiles::new(&Roots::default());
        assert_eq!(signed(&mut files, &record), record);
        assert_eq!(signed(&mut files, &with_leaked_bit(&record)), record, "the mark of others is removed");
    }

    #[test]
    fn what_is_no_elf_file_keeps_its_inode() {
        let folder = tempfile::tempdir().expect("folder");
        let text = folder.path().join("text");
        std::fs::write(&text, "no program").expect("file");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("pipe");
        let mut files = MappedFiles::new(&Roots::default());
        let others = [Path::new("/nonexistent"), Path::new("//anon"), Path::new("[vdso]")];
        for path in [text.as_path(), &pipe, folder.path()].into_iter().chain(others) {
            let inode = std::fs::metadata(path)
                .map_or((0, 0, 0), |found| (major(found.dev()), minor(found.dev()), found.ino()));
            let record = record_of(std::process::id(), path.as_os_str().as_bytes(), inode);
            assert_eq!(signed(&mut files, &record), record, "{}", path.display());
        }
        assert_eq!(files.sign([&[0xff; 64], &[]]), None);
        assert_eq!(files.build_ids().count(), 0);
    }
}

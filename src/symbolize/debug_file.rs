//! Finding the files that hold a module's code and its debug information; on this machine only, unless asked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use object::Object;

use super::debuginfod::{Debuginfod, Wanted};
use super::elf::{MappedFile, build_id, hex};
use super::error::SymbolizeError;
use super::named_files::path_of;
use super::options::SymbolizeOptions;
use crate::profile::Module;

/// Opens the file that a module was loaded from, and makes sure that it is still the recorded one.
pub(crate) fn open_image(options: &SymbolizeOptions, module: &Module) -> Result<MappedFile, SymbolizeError> {
    let refused = match open_recorded(options, module, path_of(options, module)) {
        Ok(image) => return Ok(image),
        Err(refused) => refused,
    };
    let recorded = module.build_id.as_deref().unwrap_or_default();
    let cached = by_build_id(&options.build_id_caches, recorded, "/elf");
    if let Some(found) = cached.into_iter().find_map(|path| open_with_build_id(&path, recorded)) {
        return Ok(found);
    }
    match &options.debuginfod {
        Some(debuginfod) if !recorded.is_empty() => {
            fetch(debuginfod, Wanted::Executable, Path::new(&module.path), recorded).map_err(|_| refused)
        }
        _ => Err(refused),
    }
}

fn open_recorded(
    options: &SymbolizeOptions,
    module: &Module,
    path: PathBuf,
) -> Result<MappedFile, SymbolizeError> {
    let file = match MappedFile::open(&path) {
        Ok(file) => file,
        Err(source) => return Err(SymbolizeError::Open { path, source }),
    };
    let parsed = match object::File::parse(file.data()) {
        Ok(parsed) => parsed,
        Err(source) => return Err(SymbolizeError::Format { path, source }),
    };
    if let Some(recorded) = &module.build_id {
        let found = build_id(&parsed);
        if found.is_none_or(|found| !same_build_id(found, recorded)) {
            let found = found.map_or_else(|| String::from("none"), hex);
            return Err(SymbolizeError::BuildIdDiffers { path, found, recorded: hex(recorded) });
        }
    } else if options.sysroot.is_none() {
        unchanged_by_inode(options, module, &file)?;
    }
    // Without a build-id the file of a folder that the user named is what the user says it is: a copy has another
    // inode than the recorded file, and was made later.
    Ok(file)
}

/// Without a build-id: is this still the inode that was mapped, with the same content?
///
/// Overlay filesystems report one inode to the kernel's records and another to `stat`, so a differing
/// inode alone is no proof; a change after the recording is.
fn unchanged_by_inode(
    options: &SymbolizeOptions,
    module: &Module,
    file: &MappedFile,
) -> Result<(), SymbolizeError> {
    let path = || file.path.clone();
    let Some(metadata) = &file.metadata else { return Ok(()) };
    let other_inode = module.inode.is_some_and(|(_, _, inode)| inode != 0 && inode != metadata.ino());
    let Some(recorded_at) = options.recorded_at else {
        return if other_inode { Err(SymbolizeError::InodeDiffers { path: path() }) } else { Ok(()) };
    };
    let since_epoch = |seconds: i64, nanoseconds: i64| {
        let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
    };
    let written = since_epoch(metadata.mtime(), metadata.mtime_nsec());
    let replaced = since_epoch(metadata.ctime(), metadata.ctime_nsec()).filter(|_| other_inode);
    if written.max(replaced).is_some_and(|changed| changed > recorded_at) {
        return Err(SymbolizeError::Younger { path: path() });
    }
    Ok(())
}

/// The folders of separate debug files: those of the recorded machine first, if its files are at hand.
fn debug_dirs(options: &SymbolizeOptions) -> Vec<PathBuf> {
    let recorded = options.sysroot.iter().map(|sysroot| sysroot.join("usr/lib/debug"));
    recorded.chain(options.debug_dirs.iter().cloned()).collect()
}

/// Finds the separate debug file of an image: by build-id, then by the name in its `.gnu_debuglink`.
pub(crate) fn find_debug_file(
    options: &SymbolizeOptions,
    image: &MappedFile,
    parsed: &object::File<'_>,
) -> Option<MappedFile> {
    let id = build_id(parsed);
    if let Some(id) = id {
        let paths = by_build_id(&debug_dirs(options), id, ".debug").into_iter().chain(by_build_id(
            &options.build_id_caches,
            id,
            "/debug",
        ));
        if let Some(found) = paths.filter_map(|path| open_with_build_id(&path, id)).next() {
            return Some(found);
        }
    }
    let (name, crc) = parsed.gnu_debuglink().ok()??;
    // A name with folders in it could lead anywhere.
    let name = Path::new(OsStr::from_bytes(name)).file_name()?;
    let folder = image.path.parent()?;
    let beneath = |root: &PathBuf| root.join(folder.strip_prefix("/").unwrap_or(folder)).join(name);
    let mut paths = vec![folder.join(name), folder.join(".debug").join(name)];
    paths.extend(debug_dirs(options).iter().map(beneath));
    paths.into_iter().filter(|path| *path != image.path).find_map(|path| {
        let file = MappedFile::open(&path).ok()?;
        let other = build_id(&object::File::parse(file.data()).ok()?).map(<[u8]>::to_vec);
        let same = match (id, other) {
            (Some(id), Some(other)) => id == other,
            _ => crc32(file.data()) == crc,
        };
        same.then_some(file)
    })
}

/// Fetches a file of a module, which is not believed but for its own build-id.
pub(crate) fn fetch(
    debuginfod: &Debuginfod,
    wanted: Wanted,
    module: &Path,
    id: &[u8],
) -> Result<MappedFile, SymbolizeError> {
    let fetched = debuginfod.fetch(wanted, module, id)?;
    let other = || {
        let why = format!("{} is not the file of this build-id", fetched.display());
        SymbolizeError::NotFetched { path: module.to_owned(), build_id: hex(id), why }
    };
    open_with_build_id(&fetched, id).ok_or_else(other)
}

/// Finds the file that several debug files share parts of (`.gnu_debugaltlink`, made by dwz).
pub(crate) fn find_supplement(
    options: &SymbolizeOptions,
    debug: &MappedFile,
    parsed: &object::File<'_>,
) -> Option<MappedFile> {
    let (name, id) = parsed.gnu_debugaltlink().ok()??;
    let folder = debug.path.canonicalize().ok()?;
    let named = folder.parent()?.join(OsStr::from_bytes(name));
    let mut paths = vec![named];
    paths.extend(by_build_id(&debug_dirs(options), id, ".debug"));
    paths.iter().find_map(|path| open_with_build_id(path, id))
}

/// Opens an ELF file if it has this very build-id.
pub(crate) fn open_with_build_id(path: &Path, id: &[u8]) -> Option<MappedFile> {
    let file = MappedFile::open(path).ok()?;
    let found = build_id(&object::File::parse(file.data()).ok()?)?.to_vec();
    same_build_id(&found, id).then_some(file)
}

/// `DIR/.build-id/xx/yyyy` with `suffix`, for each folder.
pub(crate) fn by_build_id(folders: &[PathBuf], id: &[u8], suffix: &str) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first() else { return Vec::new() };
    if rest.is_empty() {
        return Vec::new();
    }
    let below = format!(".build-id/{first:02x}/{}{suffix}", hex(rest));
    folders.iter().map(|folder| folder.join(&below)).collect()
}

/// perf stores build-ids padded with zeros to 20 bytes, in files of before it stored their length.
pub(crate) fn same_build_id(found: &[u8], recorded: &[u8]) -> bool {
    if found.is_empty() || found.len() > recorded.len() {
        return false;
    }
    let (start, padding) = recorded.split_at(found.len());
    start == found && padding.iter().all(|&byte| byte == 0)
}

/// The checksum of `.gnu_debuglink`: CRC-32 as of zlib, eight bytes at a time, since debug files are large.
pub(crate) fn crc32(data: &[u8]) -> u32 {
    const TABLES: [[u32; 256]; 8] = crc_tables();
    let mut crc = !0u32;
    let mut chunks = data.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default()) ^ u64::from(crc);
        crc = (0..8).fold(0, |crc, byte| crc ^ TABLES[7 - byte][(word >> (8 * byte)) as usize & 0xff]);
    }
    for &byte in chunks.remainder() {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ byte)];
    }
    !crc
}

const fn crc_tables() -> [[u32; 256]; 8] {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut tables = [[0; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][index] = crc;
        index += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut index = 0;
        while index < 256 {
            let before = tables[table - 1][index];
            tables[table][index] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            index += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_of_the_standard_check_string() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        let long: Vec<u8> = (0..=255).cycle().take(1003).collect();
        let bytewise = long.iter().fold(!0u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        });
        assert_eq!(crc32(&long), !bytewise);
    }

    #[test]
    fn build_ids_may_be_padded() {
        assert!(same_build_id(&[1, 2], &[1, 2]));
        assert!(same_build_id(&[1, 2], &[1, 2, 0, 0]));
        assert!(!same_build_id(&[1, 2], &[1, 2, 3]));
        assert!(!same_build_id(&[1, 2, 0], &[1, 2]));
        assert!(!same_build_id(&[], &[]));
    }

    #[test]
    fn folders_by_build_id() {
        let folders = [PathBuf::from("/usr/lib/debug")];
        let found = by_build_id(&folders, &[0xab, 0xcd, 0x01], ".debug");
        assert_eq!(found, [PathBuf::from("/usr/lib/debug/.build-id/ab/cd01.debug")]);
        assert!(by_build_id(&folders, &[0xab], ".debug").is_empty());
    }
}

//! The vdso: the small library that the kernel maps into every process. It is in no file, so this process's own
//! copy is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::kallsyms::hexadecimal;

/// A vdso is a few pages; more than this is none.
const LARGEST: u64 = 1 << 20;

/// The bytes of the vdso that is mapped into this process.
pub(crate) fn read_own(procfs: &Path) -> io::Result<Vec<u8>> {
    let process = procfs.join("self");
    let maps = std::fs::read_to_string(process.join("maps"))?;
    let missing = || io::Error::new(io::ErrorKind::NotFound, "this process has no vdso");
    let (start, end) = maps.lines().find_map(range_of_vdso).ok_or_else(missing)?;
    let size = end.checked_sub(start).filter(|&size| size <= LARGEST).ok_or_else(missing)?;
    let mut bytes = vec![0; size as usize];
    File::open(process.join("mem"))?.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

fn range_of_vdso(line: &str) -> Option<(u64, u64)> {
    let range = line.strip_suffix("[vdso]")?.split_ascii_whitespace().next()?;
    let (start, end) = range.split_once('-')?;
    Some((hexadecimal(start.as_bytes())?, hexadecimal(end.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_vdso_is_found() {
        let line = "7ffd3a5f2000-7ffd3a5f4000 r-xp 00000000 00:00 0                          [vdso]";
        assert_eq!(range_of_vdso(line), Some((0x7ffd_3a5f_2000, 0x7ffd_3a5f_4000)));
        assert_eq!(range_of_vdso("7ffd3a5ee000-7ffd3a5f2000 r--p 00000000 00:00 0 [vvar]"), None);
    }

    #[test]
    fn a_folder_without_processes_gives_an_error() {
        assert!(read_own(Path::new("/nonexistent")).is_err());
    }
}

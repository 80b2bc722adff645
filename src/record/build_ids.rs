//! Build-ids of the files that were mapped, so that a report can tell whether a file has changed since.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::{Object, ReadCache};
use perf_data::features::BuildId;

use crate::machine::Roots;
use crate::record::census::Census;
use crate::record::kernel_state;

/// Build-ids of the kernel, if it was sampled, and of all files of the census that have one.
pub fn collect(census: &Census, roots: &Roots, with_kernel: bool) -> Vec<BuildId> {
    let kernel = if with_kernel { kernel_state::build_ids(roots) } else { Vec::new() };
    let files = census.files.iter().filter_map(|(path, told)| {
        let id = told.clone().or_else(|| read_build_id(Path::new(OsStr::from_bytes(path))))?;
        Some(BuildId::of_file(id, path.clone()))
    });
    kernel.into_iter().chain(files).collect()
}

/// The build-id in an ELF file. `None` for anything that is not an ordinary ELF file with one.
fn read_build_id(path: &Path) -> Option<Vec<u8>> {
    // The path comes from the recorded program, which could have put a pipe there: never wait for it.
    let file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    Some(elf.build_id().ok()??.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_elf_file_has_no_build_id() {
        let folder = tempfile::tempdir().expect("folder");
        let text = folder.path().join("text");
        std::fs::write(&text, "no program").expect("file");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("pipe");
        for path in [text.as_path(), &pipe, folder.path(), Path::new("/nonexistent")] {
            assert_eq!(read_build_id(path), None, "{}", path.display());
        }
    }

    #[test]
    fn what_the_kernel_told_is_not_looked_up() {
        let mut census = Census::default();
        census.files.insert(b"/nonexistent".to_vec(), Some(vec![1, 2, 3]));
        census.files.insert(b"/nonexistent2".to_vec(), None);
        let found = collect(&census, &Roots::default(), false);
        assert_eq!(found, [BuildId::of_file(vec![1, 2, 3], b"/nonexistent".to_vec())]);
    }
}

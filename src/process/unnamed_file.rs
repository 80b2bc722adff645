//! Files that have no name while they are written: whatever ends their writer, nothing of them is left.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;

/// A file without a name in the folder of `path`, open for reading and writing; `None` where that cannot be had: the
/// file system has no such files, or there is no procfs to name them by.
///
/// `mode` are its permissions before the user's mask is taken off.
pub fn create_unnamed(path: &Path, mode: u32) -> Option<File> {
    let folder = folder_of(path);
    let open = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder).ok()
    };
    // Whether such a file can get a name is only known when it has one.
    let probe = hidden_beside(path)?;
    name_unnamed(&open()?, &probe).ok()?;
    fs::remove_file(&probe).ok()?;
    open()
}

/// A file that never has a name, for what is kept for a while: it is gone with its last descriptor.
///
/// # Errors
/// If no file can be made in the folder.
pub fn create_scratch(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE | libc::O_EXCL).open(folder) {
        return Ok(file);
    }
    // File systems without such files: the name is free, or this fails, and goes at once.
    let path = folder.join(format!(".eprof-{}", std::process::id()));
    let file = options.create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Gives a file of [`create_unnamed`] a name, once.
///
/// # Errors
/// If the name is taken, or what the system says.
pub fn name_unnamed(file: &File, path: &Path) -> io::Result<()> {
    let number = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(AT_FDCWD, number.as_str(), AT_FDCWD, path, AtFlags::AT_SYMLINK_FOLLOW)?)
}

/// That the folder in which a file is to be written is not there, and the command that makes it.
///
/// # Errors
/// If it is not there.
pub fn check_folder(path: &Path) -> io::Result<()> {
    let folder = folder_of(path);
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder.display();
            let why = format!("there is no folder {folder}: make it with `mkdir -p {folder}`");
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
        _ => Ok(()),
    }
}

/// The folder that a path's last name lies in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name beside `path` that nobody else takes.
pub fn hidden_beside(path: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}", std::process::id()));
    Some(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};

    use super::*;

    #[test]
    fn a_file_is_not_there_before_it_has_a_name() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("file");
        let count = || fs::read_dir(folder.path()).expect("folder").count();
        let Some(mut file) = create_unnamed(&path, 0o600) else {
            println!("skipped: this file system has no files without names");
            return;
        };
        file.write_all(b"text").expect("written");
        assert_eq!(count(), 0);
        name_unnamed(&file, &path).expect("named");
        assert_eq!((count(), fs::read(&path).expect("there")), (1, b"text".to_vec()));
        let other = create_unnamed(&path, 0o600).expect("as before");
        let taken = name_unnamed(&other, &path).expect_err("taken");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_scratch_file_has_no_name_and_keeps_what_is_written() {
        let folder = tempfile::tempdir().expect("folder");
        let mut file = create_scratch(folder.path()).expect("a file");
        file.write_all(b"text").expect("written");
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 0);
        let mut kept = String::new();
        file.seek(SeekFrom::Start(0)).expect("the start");
        file.read_to_string(&mut kept).expect("text");
        assert_eq!(kept, "text");
        assert!(create_scratch(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn where_there_is_no_folder_there_is_no_file() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(create_unnamed(&folder.path().join("missing/file"), 0o600).is_none());
        assert!(create_unnamed(Path::new("/"), 0o600).is_none());
    }
}

//! The file of a recording: made beside its final name, put in place when the program has started.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{self, Gid, Uid};

use crate::record::error::RecordError;

/// A new file that does not yet have its final name.
#[derive(Debug)]
pub struct PendingOutput {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
}

impl PendingOutput {
    /// Makes a file beside `path`, readable by its owner only, never through a symbolic link.
    ///
    /// # Errors
    /// `path` exists and is no ordinary file, or its folder cannot be written.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let failed = |cause| RecordError::Output { path: path.to_owned(), cause };
        match fs::symlink_metadata(path) {
            Ok(metadata) => refuse_special(path, &metadata.file_type())?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(failed(cause)),
        }
        let Some(name) = path.file_name() else {
            return Err(RecordError::NotAFile { path: path.to_owned(), what: "a folder" });
        };
        let mut temporary_name = OsString::from(".");
        temporary_name.push(name);
        temporary_name.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(temporary_name);
        let open = || {
            OpenOptions::new()
                .write(true)
                .read(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&temporary)
        };
        let file = match open() {
            // Left by a recorder of the same number that was killed in its first moments.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&temporary).and_then(|()| open())
            }
            other => other,
        }
        .map_err(failed)?;
        let pending = Self { path: path.to_owned(), temporary, file: Some(file) };
        pending.give_to_invoking_user().map_err(failed)?;
        Ok(pending)
    }

    /// That the file cannot be written.
    pub fn failed(&self, cause: io::Error) -> RecordError {
        RecordError::Output { path: self.path.clone(), cause }
    }

    /// The open file, to be taken once.
    pub fn take_file(&mut self) -> io::Result<File> {
        self.file.take().ok_or_else(|| io::Error::other("the file was taken before"))
    }

    /// Gives the file its name. A file that had it before is kept with `.old` behind it.
    pub fn put_in_place(self) -> Result<(), RecordError> {
        let mut old = self.path.clone().into_os_string();
        old.push(".old");
        match fs::rename(&self.path, &old) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(self.failed(cause)),
            _ => {}
        }
        fs::rename(&self.temporary, &self.path).map_err(|cause| self.failed(cause))?;
        std::mem::forget(self);
        Ok(())
    }

    /// Under sudo the file belongs to the one who called, not to root.
    fn give_to_invoking_user(&self) -> io::Result<()> {
        let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
        let (Some(file), true) = (&self.file, Uid::effective().is_root()) else { return Ok(()) };
        let Some(uid) = number("SUDO_UID").map(Uid::from_raw) else { return Ok(()) };
        Ok(unistd::fchown(file, Some(uid), number("SUDO_GID").map(Gid::from_raw))?)
    }
}

impl Drop for PendingOutput {
    /// A file that was not put in place is of no use to anybody.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

fn refuse_special(path: &Path, kind: &fs::FileType) -> Result<(), RecordError> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a device or socket"
    };
    Err(RecordError::NotAFile { path: path.to_owned(), what })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &[u8]) {
        let mut output = PendingOutput::create(path).expect("writable");
        output.take_file().expect("first time").write_all(text).expect("written");
        output.put_in_place().expect("renamed");
    }

    #[test]
    fn the_old_file_is_kept_and_the_new_one_private() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("eprof.data");
        write(&path, b"first");
        write(&path, b"second");
        assert_eq!(fs::read(&path).expect("there"), b"second");
        assert_eq!(fs::read(folder.path().join("eprof.data.old")).expect("there"), b"first");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 2);
    }

    #[test]
    fn a_file_that_was_never_put_in_place_leaves_no_trace() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("eprof.data");
        write(&path, b"kept");
        drop(PendingOutput::create(&path).expect("writable"));
        assert_eq!(fs::read(&path).expect("there"), b"kept");
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[test]
    fn links_folders_and_devices_are_refused() {
        let folder = tempfile::tempdir().expect("folder");
        let link = folder.path().join("link");
        symlink("/nonexistent", &link).expect("link");
        for (path, what) in
            [(link.as_path(), "link"), (folder.path(), "folder"), (Path::new("/dev/null"), "device")]
        {
            let error = PendingOutput::create(path).expect_err("refused").to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}

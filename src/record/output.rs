//! The file of a recording: made beside its final name, put in place when the program has started.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{self, Gid, Uid, geteuid};

use crate::process::{check_folder, create_unnamed, folder_of, hidden_beside, name_unnamed};
use crate::record::error::RecordError;

/// A new file that does not yet have its final name.
#[derive(Debug)]
pub struct PendingOutput {
    path: PathBuf,
    place: Place,
    file: Option<File>,
    is_in_place: bool,
}

/// Where a file is before it has its name.
#[derive(Debug)]
enum Place {
    /// Nowhere: it is gone when eprof is, however that ends.
    Unnamed(File),
    /// Beside its final place, on file systems without nameless files.
    Beside(PathBuf),
    /// Where it stays: another part of the program reads it as it grows.
    Elsewhere,
}

impl PendingOutput {
    /// Makes a file beside `path`, readable by its owner only, never through a symbolic link.
    ///
    /// # Errors
    /// `path` exists and is no ordinary file, or is another user's in a folder where everybody may write, or its folder
    /// cannot be written.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let failed = |cause| RecordError::Output { path: path.to_owned(), cause };
        match fs::symlink_metadata(path) {
            Ok(metadata) => refuse_special(path, &metadata.file_type())?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => check_folder(path).map_err(failed)?,
            Err(cause) => return Err(failed(cause)),
        }
        for taken in [path, &old_of(path)] {
            refuse_others(taken)?;
        }
        let Some(beside) = hidden_beside(path) else {
            return Err(RecordError::NotAFile { path: path.to_owned(), what: "a folder" });
        };
        let (place, file) = match create_unnamed(path, 0o600) {
            Some(file) => (Place::Unnamed(file.try_clone().map_err(failed)?), file),
            None => {
                let file = create_beside(&beside).map_err(failed)?;
                (Place::Beside(beside), file)
            }
        };
        let pending = Self { path: path.to_owned(), place, file: Some(file), is_in_place: false };
        pending.give_to_invoking_user().map_err(failed)?;
        Ok(pending)
    }

    /// A file that is open already and keeps the name that it has, if any. Errors call it `path`.
    pub fn of_open_file(file: File, path: &Path) -> Self {
        Self { path: path.to_owned(), place: Place::Elsewhere, file: Some(file), is_in_place: true }
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
    pub fn put_in_place(mut self) -> Result<(), RecordError> {
        if matches!(self.place, Place::Elsewhere) {
            return Ok(());
        }
        let old = old_of(&self.path);
        match fs::rename(&self.path, &old) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(self.failed(cause)),
            _ => {}
        }
        let named = match &self.place {
            Place::Unnamed(file) => name_unnamed(file, &self.path),
            Place::Beside(temporary) => fs::rename(temporary, &self.path),
            Place::Elsewhere => Ok(()),
        };
        named.map_err(|cause| self.failed(cause))?;
        self.is_in_place = true;
        Ok(())
    }

    /// Under sudo the file belongs to the one who called, not to root.
    fn give_to_invoking_user(&self) -> io::Result<()> {
        let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
        let (Some(file), Some(uid)) = (&self.file, invoking_user().map(Uid::from_raw)) else { return Ok(()) };
        Ok(unistd::fchown(file, Some(uid), number("SUDO_GID").map(Gid::from_raw))?)
    }
}

impl Drop for PendingOutput {
    /// A file that was not put in place is of no use to anybody.
    fn drop(&mut self) {
        if let (Place::Beside(temporary), false) = (&self.place, self.is_in_place) {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// The name that an older recording gets.
fn old_of(path: &Path) -> PathBuf {
    let mut old = path.to_owned().into_os_string();
    old.push(".old");
    old.into()
}

fn create_beside(temporary: &Path) -> io::Result<File> {
    let open = || {
        let mut options = OpenOptions::new();
        options.write(true).read(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        options.open(temporary)
    };
    match open() {
        // Left by a recorder of the same number that was killed in its first moments.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(temporary).and_then(|()| open())
        }
        other => other,
    }
}

/// Refuses to take a name from somebody else's file in a folder where everybody may write. The kernel refuses it to all
/// but root, whom others must not lead to lose a file either.
fn refuse_others(path: &Path) -> Result<(), RecordError> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let failed = |cause| RecordError::Output { path: path.to_owned(), cause };
    let folder = fs::metadata(folder_of(path)).map_err(failed)?;
    // Under sudo recordings are the invoking user's.
    let ours = [Some(geteuid().as_raw()), invoking_user(), Some(folder.uid())];
    if folder.mode() & libc::S_IWOTH == 0 || ours.contains(&Some(found.uid())) {
        return Ok(());
    }
    let why = "the file belongs to another user, in a folder where everybody may write; name another with -o";
    Err(failed(io::Error::new(io::ErrorKind::PermissionDenied, why)))
}

/// Who called sudo.
fn invoking_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok().filter(|_| geteuid().is_root())
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
    fn another_users_file_in_a_shared_folder_is_left_alone_by_root_too() {
        if !geteuid().is_root() {
            println!("skipped: only root can make another user's file");
            return;
        }
        let folder = tempfile::tempdir().expect("folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).expect("mode");
        let path = folder.path().join("eprof.data");
        for theirs in [path.clone(), old_of(&path)] {
            write(&path, b"ours");
            fs::write(&theirs, "theirs").expect("written");
            std::os::unix::fs::chown(&theirs, Some(65534), None).expect("given away");
            let error = PendingOutput::create(&path).expect_err("refused");
            let RecordError::Output { cause, .. } = error else { panic!("{error}") };
            assert!(cause.to_string().contains("belongs to another user"), "{cause}");
            assert_eq!(fs::read(&theirs).expect("there"), b"theirs");
            fs::remove_file(&theirs).expect("removed");
        }
        write(&path, b"first");
        write(&path, b"second");
        assert_eq!(fs::read(old_of(&path)).expect("there"), b"first", "one's own are replaced there");
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

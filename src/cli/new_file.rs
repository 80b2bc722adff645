//! Files that verbs write: a file is there whole, or as it was before.
//!
//! What is written goes to a file without a name (or, where there are none, a temporary one) beside the one that was asked
//! for, is synced, and takes its name when all of it is there. Whatever fails meanwhile, the old file is still the old file. Devices and pipes have no name to be
//! taken and are written to as they are.
//!
//! In a folder where others may write, whoever gets there first decides what a name leads to: there a symbolic link
//! is not followed, and a file of somebody else is left alone.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use eprof::process::{check_folder, create_unnamed, folder_of, hidden_beside, name_unnamed};
use nix::unistd::geteuid;

/// Who may read what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Whoever the user's mask lets.
    ByMask,
    /// The user alone: a recording tells addresses and command lines.
    Owner,
    /// The user and the group of the file, whatever the user's mask.
    Group,
}

/// A file that is being written.
pub struct NewFile {
    file: BufWriter<File>,
    /// Where it lies, and the name that it gets; `None` for a device or pipe.
    rename: Option<(Place, PathBuf)>,
}

/// Where a file is before it has its name.
enum Place {
    /// Nowhere: it is gone when eprof is, however that ends.
    Unnamed,
    /// Beside its final place, on file systems without nameless files.
    Beside(PathBuf),
}

impl NewFile {
    /// Begins to write a file.
    ///
    /// # Errors
    /// If the folder cannot be written, or if the name leads to what is not this user's in a folder where everybody
    /// may write.
    pub fn create(path: &Path, readers: Readers) -> io::Result<Self> {
        let target = match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => {
                if let Some(why) = not_ours(path, &metadata)? {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                // The link stays, and the file that it leads to is replaced.
                fs::canonicalize(path)?
            }
            _ => path.to_owned(),
        };
        let old = match fs::metadata(&target) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                check_folder(&target)?;
                None
            }
            Err(error) => return Err(error),
        };
        if let Some(old) = &old {
            if old.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if is_special(old) {
                let file = OpenOptions::new().write(true).open(&target)?;
                return Ok(Self { file: BufWriter::with_capacity(1 << 16, file), rename: None });
            }
            if let Some(why) = not_ours(&target, old)? {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
        }
        let mode = match readers {
            Readers::ByMask => 0o666,
            Readers::Owner => 0o600,
            Readers::Group => 0o640,
        };
        let (place, file) = match create_unnamed(&target, mode) {
            Some(file) => (Place::Unnamed, file),
            None => {
                let (temporary, file) = temporary_beside(&target, mode)?;
                (Place::Beside(temporary), file)
            }
        };
        let new = Self { file: BufWriter::with_capacity(1 << 16, file), rename: Some((place, target)) };
        let kept = match readers {
            Readers::ByMask => old.map(|old| old.mode() & 0o777),
            Readers::Owner => None,
            Readers::Group => Some(mode),
        };
        if let Some(mode) = kept {
            new.file.get_ref().set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(new)
    }

    /// Gives the file its name, now that all of it is written.
    ///
    /// # Errors
    /// If the disk does not take it; the old file is then still there.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((place, target)) = &mut self.rename {
            self.file.get_ref().sync_all()?;
            // A name that is taken cannot be given, only taken over from a file that has one.
            if let Place::Unnamed = place {
                let temporary = hidden_beside(target).ok_or(io::ErrorKind::IsADirectory)?;
                name_unnamed(self.file.get_ref(), &temporary)?;
                *place = Place::Beside(temporary);
            }
            if let Place::Beside(temporary) = place {
                fs::rename(temporary, target)?;
            }
        }
        self.rename = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for NewFile {
    /// A file that was not finished is of no use to anybody.
    fn drop(&mut self) {
        if let Some((Place::Beside(temporary), _)) = &self.rename {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Refuses to write to a file that is read: by its own name, by another one, or through a link.
///
/// # Errors
/// If `output` is one of `inputs`.
pub fn keep_inputs(output: Option<&Path>, inputs: &[&Path]) -> anyhow::Result<()> {
    keep_inputs_from("-o", output, inputs)
}

/// Refuses as [`keep_inputs`] does to write to a file that is read, where this option names it.
///
/// # Errors
/// If `output` is one of `inputs`.
pub fn keep_inputs_from(option: &str, output: Option<&Path>, inputs: &[&Path]) -> anyhow::Result<()> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let Some(output) = output.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    let Some(id) = fs::metadata(output).ok().filter(|metadata| !is_special(metadata)) else { return Ok(()) };
    let id = Some((id.dev(), id.ino()));
    if let Some(input) = inputs.iter().find(|input| identity(input) == id) {
        let what =
            if *input == output { "it is read" } else { "it is the same file as the one that is read" };
        anyhow::bail!(
            "cannot write {}: {what} ({}); name another file with {option}",
            output.display(),
            input.display()
        );
    }
    Ok(())
}

/// Why the folder that this name leads to is left alone: a symbolic link that somebody else has made, or may have. Whoever makes
/// a link decides where what is written into it goes.
pub fn link_of_others(path: &Path) -> io::Result<Option<String>> {
    // With a slash behind it a name means what the link leads to.
    let path: &Path = &path.components().collect::<PathBuf>();
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(None) };
    if !found.is_symlink() {
        return Ok(None);
    }
    let is_everybodys = fs::metadata(folder_of(path))?.mode() & libc::S_IWOTH != 0;
    let is_ours = found.uid() == geteuid().as_raw() || found.uid() == 0;
    let why = match (is_everybodys, is_ours) {
        (true, _) => "is a symbolic link in a folder where everybody may write, and is not followed",
        (false, false) => "is a symbolic link of another user, and is not followed",
        (false, true) => return Ok(None),
    };
    Ok(Some(format!("{} {why}: name the folder itself", path.display())))
}

fn is_special(metadata: &Metadata) -> bool {
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
}

/// Why a name in a folder where everybody may write is left alone.
fn not_ours(path: &Path, found: &Metadata) -> io::Result<Option<&'static str>> {
    let folder = fs::metadata(folder_of(path))?;
    if folder.mode() & libc::S_IWOTH == 0 {
        return Ok(None);
    }
    if found.is_symlink() {
        return Ok(Some("a symbolic link in a folder where everybody may write is not followed"));
    }
    let is_ours = found.uid() == geteuid().as_raw() || found.uid() == folder.uid();
    Ok((!is_ours).then_some("the file belongs to another user, in a folder where everybody may write"))
}

/// A new file beside `target`, under a name that nobody else has.
fn temporary_beside(target: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    const MOST_ATTEMPTS: u32 = 100;
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    for attempt in 0..MOST_ATTEMPTS {
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{attempt}", std::process::id()));
        let temporary = target.with_file_name(temporary);
        let mut options = OpenOptions::new();
        options.write(true).read(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
        match options.open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (temporary, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn written(path: &Path, text: &str) -> io::Result<()> {
        let mut file = NewFile::create(path, Readers::ByMask)?;
        file.write_all(text.as_bytes())?;
        file.keep()
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_the_old_one_and_no_other() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("energy.svg");
        written(&path, "old").expect("written");
        let mut unfinished = NewFile::create(&path, Readers::ByMask).expect("begun");
        unfinished.write_all(b"new").expect("written");
        drop(unfinished);
        assert_eq!(fs::read(&path).expect("there"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
        written(&path, "new").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"new");
    }

    #[test]
    fn who_may_read_stays_and_a_recording_is_private() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("energy");
        written(&path, "old").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("mode");
        written(&path, "new").expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o640);
        NewFile::create(&path, Readers::Owner).and_then(NewFile::keep).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        NewFile::create(&path, Readers::Group).and_then(NewFile::keep).expect("written");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o640);
    }

    #[test]
    fn in_a_shared_folder_links_and_files_of_others_are_left_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "kept").expect("written");
        symlink(&target, &link).expect("a link");
        let shared = |mode| fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("mode");
        shared(0o1777);
        let refused = written(&link, "new").expect_err("refused").to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        assert_eq!(fs::read(&target).expect("there"), b"kept");
        shared(0o755);
        written(&link, "new").expect("one's own folder, one's own link");
        assert_eq!(fs::read(&target).expect("there"), b"new");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink(), "the link stays");
        shared(0o1777);
        written(&target, "newer").expect("one's own file");
        if std::os::unix::fs::chown(&target, Some(65534), None).is_ok()
            && std::os::unix::fs::chown(folder.path(), Some(1), None).is_ok()
        {
            assert!(written(&target, "newest").is_err(), "another user's");
            assert_eq!(fs::read(&target).expect("there"), b"newer");
        }
    }

    #[test]
    fn devices_are_written_to_and_folders_are_not() {
        written(Path::new("/dev/null"), "gone").expect("a device");
        let folder = tempfile::tempdir().expect("folder");
        assert!(written(folder.path(), "text").is_err());
    }

    #[test]
    fn what_is_read_is_not_written_under_any_name() {
        let folder = tempfile::tempdir().expect("folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("input"), "data").expect("written");
        fs::hard_link(path("input"), path("hard")).expect("a link");
        symlink(path("input"), path("soft")).expect("a link");
        let input = path("input");
        for name in ["input", "hard", "soft", "../input"] {
            let name =
                name.replace("..", &format!("../{}", folder.path().file_name().expect("a name").display()));
            let error = keep_inputs(Some(&path(&name)), &[&input]).expect_err(&name).to_string();
            assert!(error.contains("name another file with -o"), "{error}");
        }
        keep_inputs(Some(&path("other")), &[&input]).expect("a new file");
        keep_inputs(Some(Path::new("-")), &[&input]).expect("standard output");
        keep_inputs(Some(Path::new("/dev/null")), &[Path::new("/dev/null")]).expect("nothing is lost");
    }
}

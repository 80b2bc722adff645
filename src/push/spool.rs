//! Messages that wait on disk for their receiver.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::error::PushError;

const ENDING: &str = ".otlp.gz";
/// A message is no longer.
const MOST_MESSAGE: u64 = 256 << 20;

/// A folder of messages, each in a file; their names sort by time.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: PathBuf,
    most_bytes: u64,
}

impl Spool {
    /// Opens a folder for this alone, or makes it, and clears what a killed agent was writing.
    ///
    /// # Errors
    /// A folder that cannot be made or read.
    pub fn open(folder: PathBuf, most_bytes: u64) -> Result<Self, PushError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&folder).map_err(PushError::file("make the folder", &folder))?;
        let spool = Self { folder, most_bytes };
        for entry in fs::read_dir(&spool.folder).map_err(PushError::file("read", &spool.folder))? {
            let path = entry.map_err(PushError::file("read", &spool.folder))?.path();
            if name(&path).is_some_and(|name| name.starts_with('.') && name.ends_with(ENDING)) {
                remove(&path)?;
            }
        }
        Ok(spool)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a message, whole or not at all, and removes the oldest if all take too much. Gives how many were removed; the new
    /// one is, if it is too large by itself.
    ///
    /// # Errors
    /// A disk that is full.
    pub fn add(&self, id: &str, message: &[u8]) -> Result<usize, PushError> {
        let path = self.folder.join(format!("{id}{ENDING}"));
        let temporary = self.folder.join(format!(".{id}{ENDING}"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
        let written = options.open(&temporary).and_then(|mut file| {
            file.write_all(message)?;
            file.sync_data()?;
            fs::rename(&temporary, &path)
        });
        if let Err(error) = written {
            // The first error says more.
            let _ = fs::remove_file(&temporary);
            return Err(PushError::file("write", &path)(error));
        }
        let waiting = self.waiting()?;
        let sizes = waiting.iter().map(|path| path.metadata().map_or(0, |metadata| metadata.len()));
        let sizes: Vec<u64> = sizes.collect();
        let mut bytes: u64 = sizes.iter().sum();
        let mut removed = 0;
        for (path, size) in waiting.iter().zip(&sizes) {
            if bytes <= self.most_bytes {
                break;
            }
            remove(path)?;
            bytes -= size;
            removed += 1;
        }
        Ok(removed)
    }

    /// The messages that wait, the oldest first.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn waiting(&self) -> Result<Vec<PathBuf>, PushError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(PushError::file("read", &self.folder))? {
            let path = entry.map_err(PushError::file("read", &self.folder))?.path();
            if name(&path).is_some_and(|name| !name.starts_with('.') && name.ends_with(ENDING)) {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// A message; nothing if it is gone.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, PushError> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
        let read = |file: File| {
            let mut bytes = Vec::new();
            file.take(MOST_MESSAGE).read_to_end(&mut bytes).map(|_| bytes)
        };
        match options.open(path).and_then(read) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(PushError::file("read", path)(error)),
        }
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), PushError> {
        remove(path)
    }
}

fn name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn remove(path: &Path) -> Result<(), PushError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(PushError::file("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_in_order_and_the_oldest_go_for_want_of_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path().join("otlp"), 25).expect("opened");
        assert_eq!(spool.add("0000000002-b", &[2; 10]).expect("written"), 0);
        assert_eq!(spool.add("0000000001-a", &[1; 10]).expect("written"), 0);
        assert_eq!(spool.add("0000000003-c", &[3; 10]).expect("written"), 1, "30 bytes where 25 may be");
        let waiting = spool.waiting().expect("read");
        let first: Vec<u8> =
            waiting.iter().map(|path| spool.read(path).expect("read").expect("there")[0]).collect();
        assert_eq!(first, [2, 3]);
        spool.remove(&waiting[0]).expect("removed");
        assert_eq!(spool.read(&waiting[0]).expect("gone"), None);
        assert_eq!(spool.add("0000000004-d", &[4; 30]).expect("written"), 2, "too large by itself");
        assert!(spool.waiting().expect("read").is_empty());
    }

    #[test]
    fn what_was_being_written_is_cleared_and_links_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").expect("written");
        let place = folder.path().join("otlp");
        let spool = Spool::open(place.clone(), 100).expect("opened");
        std::os::unix::fs::symlink(&victim, place.join(".0000000001-a.otlp.gz")).expect("linked");
        assert!(spool.add("0000000001-a", b"message").is_err());
        std::os::unix::fs::symlink(&victim, place.join(".0000000001-a.otlp.gz")).expect("linked");
        Spool::open(place.clone(), 100).expect("opened");
        assert!(fs::read_dir(&place).expect("read").next().is_none(), "cleared");
        assert_eq!(fs::read_to_string(&victim).expect("read"), "mine");
        assert_eq!(spool.add("0000000001-a", b"message").expect("written"), 0);
    }
}

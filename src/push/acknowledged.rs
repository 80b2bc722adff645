//! What a receiver has acknowledged of a folder, remembered beside the folder's tables.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};

use super::error::PushError;
use super::folder::Window;
use super::window_set::WindowSet;

/// The list of what one receiver has. Each line is a window's name, size and time; a line is there when the receiver has
/// acknowledged the window, and is on disk before anybody relies on it. A list that is lost costs a second push of all, which
/// counts once. A list of nothing is removed when it is closed, and those that killed ones left when the next one is opened.
#[derive(Debug)]
pub struct Acknowledged {
    path: PathBuf,
    /// Locked as long as it is open.
    file: File,
    known: WindowSet,
}

/// What the names of lists begin with.
const NAME: &str = ".eprof-pushed-";
/// A list of nothing is not longer: a line says whose it is.
const MOST_EMPTY: u64 = 4_096;
/// No list is longer: a line of some sixty bytes for each minute of twenty years.
const MOST_BYTES: u64 = 1 << 30;

impl Acknowledged {
    /// Opens the list of a receiver, or begins it. `receiver` is its address, without secrets.
    ///
    /// # Errors
    /// A folder that cannot be written, or into whose list another eprof writes.
    pub fn open(folder: &Path, receiver: &str) -> Result<Self, PushError> {
        let digest = Sha256::digest(receiver.as_bytes());
        let id: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = folder.join(format!("{NAME}{id}"));
        remove_empty(folder, &path);
        let mut file = lock(folder, &path, receiver)?;
        let failed = |action| PushError::file(action, path.clone());
        let mut bytes = Vec::new();
        (&mut file).take(MOST_BYTES).read_to_end(&mut bytes).map_err(failed("read"))?;
        let text = String::from_utf8_lossy(&bytes);
        // A last line without an end was being written when eprof was killed.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let known = whole.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        let mut list = Self { path, file, known };
        if bytes.is_empty() {
            list.add(&format!("# what {receiver} has\n"))?;
        } else if !bytes.ends_with(b"\n") {
            list.add("\n")?;
        }
        Ok(list)
    }

    /// Whether the receiver has it.
    pub fn has(&self, window: &Window) -> bool {
        self.known.has(window)
    }

    /// What the receiver has, which goes on changing.
    pub(super) fn known(&self) -> WindowSet {
        self.known.clone()
    }

    /// The receiver has these.
    ///
    /// # Errors
    /// A disk that is full; the receiver gets them again then, and counts them once.
    pub fn insert(&mut self, windows: &[Window]) -> Result<(), PushError> {
        let lines: String = windows.iter().map(|window| format!("{}\n", window.key())).collect();
        self.known.add(windows.iter().map(Window::key));
        self.add(&lines)
    }

    /// Forgets that the receiver has these.
    ///
    /// # Errors
    /// A disk that is full; the old list stays.
    pub(super) fn forget(&mut self, windows: &[Window]) -> Result<(), PushError> {
        if windows.is_empty() {
            return Ok(());
        }
        let gone: HashSet<String> = windows.iter().map(Window::key).collect();
        self.set(self.known.keys().filter(|key| !gone.contains(key)).collect())
    }

    /// Forgets all that the receiver has.
    ///
    /// # Errors
    /// A disk that is full; the old list stays.
    pub(super) fn forget_all(&mut self) -> Result<(), PushError> {
        self.set(HashSet::new())
    }

    /// Forgets what is not in the folder any more, when that is most of the list.
    ///
    /// # Errors
    /// A disk that is full; the old list stays.
    pub fn forget_all_but(&mut self, windows: &[Window]) -> Result<(), PushError> {
        const FEW: usize = 1_000;
        if self.known.len() <= 2 * windows.len() + FEW {
            return Ok(());
        }
        let kept: HashSet<String> =
            windows.iter().map(Window::key).filter(|key| self.known.has_key(key)).collect();
        self.set(kept)
    }

    /// These are known, and no others.
    fn set(&mut self, kept: HashSet<String>) -> Result<(), PushError> {
        let lines: String = kept.iter().map(|key| format!("{key}\n")).collect();
        // In place, since the lock is the file's: what is cut off in between is pushed once more.
        self.file.set_len(0).map_err(PushError::file("shorten", &self.path))?;
        self.known.set(kept);
        self.add(&lines)
    }

    /// Adds to the file.
    fn add(&mut self, text: &str) -> Result<(), PushError> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(PushError::file("remember what was pushed in", &self.path))
    }
}

impl Drop for Acknowledged {
    /// What a receiver has none of need not be remembered, as of one that was never reached.
    fn drop(&mut self) {
        if self.known.len() == 0 {
            // While it is locked, so that nobody else begins to use it. What cannot be removed is a line in a file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens a list or begins it, and locks it.
fn lock(folder: &Path, path: &Path, receiver: &str) -> Result<File, PushError> {
    loop {
        let opened = options().create(true).mode(0o600).open(path);
        let file = opened.map_err(PushError::file("remember what was pushed in", path))?;
        match file.try_lock() {
            // Whoever had it before may have removed it between both.
            Ok(()) if !is_there(path, &file) => {}
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                return Err(PushError::Table {
                    path: folder.to_owned(),
                    why: format!("another eprof pushes it to {receiver} already"),
                });
            }
            Err(TryLockError::Error(error)) => return Err(PushError::file("lock", path)(error)),
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits());
    options
}

/// Whether an open file is the one of this path.
fn is_there(path: &Path, file: &File) -> bool {
    let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
    fs::symlink_metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|open| id(open) == id(there)))
}

/// Removes the lists of nothing that eprofs left which were killed, all but this one. What cannot be looked at stays.
fn remove_empty(folder: &Path, but: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let is_list =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME.as_bytes()));
        if !is_list || path == but {
            continue;
        }
        let Ok(mut file) = options().open(&path) else { continue };
        let is_unused = || file.try_lock().is_ok() && is_there(&path, &file);
        let is_short = |metadata: Metadata| metadata.is_file() && metadata.len() <= MOST_EMPTY;
        if !file.metadata().is_ok_and(is_short) || !is_unused() {
            continue;
        }
        let mut text = String::new();
        let is_read = file.read_to_string(&mut text).is_ok();
        if is_read && text.lines().all(|line| line.is_empty() || line.starts_with('#')) {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::folder::windows;
    use crate::report::store::schema::TABLES;

    fn folder_with(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for table in TABLES {
            fs::create_dir(folder.path().join(table.name)).expect("a folder");
            for name in names {
                fs::write(folder.path().join(table.name).join(name), "x").expect("written");
            }
        }
        folder
    }

    #[test]
    fn what_was_acknowledged_is_known_later_and_what_is_written_anew_is_not() {
        let folder = folder_with(&["1.parquet", "2.parquet"]);
        let all = windows(folder.path()).expect("read");
        let mut list = Acknowledged::open(folder.path(), "host:8123/energy").expect("opened");
        list.insert(&all[..1]).expect("written");
        let other = Acknowledged::open(folder.path(), "other:8123/energy").expect("another receiver's");
        assert!(!other.has(&all[0]));
        let said = Acknowledged::open(folder.path(), "host:8123/energy").expect_err("locked").to_string();
        assert!(said.contains("another eprof"), "{said}");
        drop(list);
        let list = Acknowledged::open(folder.path(), "host:8123/energy").expect("opened");
        assert_eq!([list.has(&all[0]), list.has(&all[1])], [true, false]);
        fs::write(folder.path().join("balance/1.parquet"), "longer").expect("written");
        assert!(!list.has(&windows(folder.path()).expect("read")[0]));
    }

    /// The lists in a folder.
    fn lists(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
        entries.filter(|path| path.is_file()).collect()
    }

    #[test]
    fn a_list_of_nothing_is_not_left() {
        let folder = folder_with(&["1.parquet"]);
        let all = windows(folder.path()).expect("read");
        let list = Acknowledged::open(folder.path(), "away").expect("opened");
        assert_eq!(lists(folder.path()).len(), 1, "it is locked");
        drop(list);
        assert!(lists(folder.path()).is_empty());
        // Another one was killed, and one has something.
        let killed = Acknowledged::open(folder.path(), "killed").expect("opened");
        let left = fs::read(&killed.path).expect("read");
        let path = killed.path.clone();
        drop(killed);
        fs::write(&path, left).expect("written");
        let mut used = Acknowledged::open(folder.path(), "used").expect("opened");
        used.insert(&all).expect("written");
        assert!(!path.exists(), "cleared");
        // What somebody else has open stays.
        let open = Acknowledged::open(folder.path(), "open").expect("opened");
        drop(Acknowledged::open(folder.path(), "other").expect("opened"));
        assert!(open.path.exists());
        drop((open, used));
        assert_eq!(lists(folder.path()).len(), 1, "what it has is remembered");
        assert!(Acknowledged::open(folder.path(), "used").expect("opened").has(&all[0]));
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_believed() {
        let folder = folder_with(&["1.parquet"]);
        let all = windows(folder.path()).expect("read");
        let mut list = Acknowledged::open(folder.path(), "x").expect("opened");
        list.insert(&all).expect("written");
        let path = list.path.clone();
        drop(list);
        let text = fs::read_to_string(&path).expect("read");
        fs::write(&path, text.trim_end_matches('\n')).expect("cut");
        let mut list = Acknowledged::open(folder.path(), "x").expect("opened");
        assert!(!list.has(&all[0]));
        list.insert(&all).expect("written");
        drop(list);
        assert!(Acknowledged::open(folder.path(), "x").expect("opened").has(&all[0]));
    }

    #[test]
    fn a_long_list_forgets_what_is_gone() {
        let folder = folder_with(&["1.parquet"]);
        let all = windows(folder.path()).expect("read");
        let mut list = Acknowledged::open(folder.path(), "x").expect("opened");
        list.insert(&all).expect("written");
        let gone: Vec<Window> = (0..2_000)
            .map(|number| Window { name: format!("{number}-gone.parquet"), ..all[0].clone() })
            .collect();
        list.insert(&gone).expect("written");
        list.forget_all_but(&all).expect("written");
        assert!(list.has(&all[0]) && !list.has(&gone[7]));
        drop(list);
        let list = Acknowledged::open(folder.path(), "x").expect("opened");
        assert_eq!((list.known.len(), list.has(&all[0])), (1, true));
    }
}

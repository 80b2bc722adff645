//! What a receiver has acknowledged of a folder, remembered beside the folder's tables.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use sha2::{Digest, Sha256};

use super::error::PushError;
use super::folder::Window;
use super::window_set::WindowSet;

/// The list of what one receiver has. Each line is a window's name, size and time; a line is there when the receiver has
/// acknowledged the window, and is on disk before anybody relies on it. A list that is lost costs a second push of all, which
/// counts once.
#[derive(Debug)]
pub struct Acknowledged {
    path: PathBuf,
    /// Locked as long as it is open.
    file: File,
    known: WindowSet,
}

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
        let path = folder.join(format!(".eprof-pushed-{id}"));
        let failed = |action| PushError::file(action, path.clone());
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&path)
            .map_err(failed("remember what was pushed in"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(PushError::Table {
                    path: folder.to_owned(),
                    why: format!("another eprof pushes it to {receiver} already"),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
        }
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
        let lines: String = kept.iter().map(|key| format!("{key}\n")).collect();
        // In place, since the lock is the file's: what is cut off in between is pushed once more.
        self.file.set_len(0).map_err(PushError::file("shorten", &self.path))?;
        self.known.set(kept);
        self.add(&lines)
    }

    fn add(&mut self, text: &str) -> Result<(), PushError> {
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(PushError::file("remember what was pushed in", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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

//! The folder of the agent's windows: written whole, removed whole, the oldest first.
//!
//! A window is a file in each table's folder, all of one name: when it began, in seconds since 1970, and its id. What is named
//! otherwise is not the agent's and stays. The table `balance` gets its file last and loses it first: a window without
//! it is a piece that a killed agent left, and is cleared when the next one starts.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use eprof::report::ReportError;
use eprof::report::export::Exported;
use eprof::report::store::schema::{TABLES, Table};
use eprof::report::store::{recording_id, write};

use super::clocks::unix_seconds;
use crate::cli::denied;
use crate::cli::new_file::NewFile;
use crate::cli::tables_folder::{self, AGENTS_LOCK};

/// Digits of the time in a name, so that names sort by it.
const TIME_DIGITS: usize = 10;
const ID_DIGITS: usize = 16;

/// A window's name: when it began and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    started: u64,
    id: u64,
}

impl Name {
    fn file(&self) -> String {
        format!("{:0TIME_DIGITS$}-{:0ID_DIGITS$x}.parquet", self.started, self.id)
    }

    fn parse(file: &str) -> Option<Self> {
        let (started, id) = file.strip_suffix(".parquet")?.split_once('-')?;
        if started.len() < TIME_DIGITS || id.len() != ID_DIGITS {
            return None;
        }
        let name = Self { started: started.parse().ok()?, id: u64::from_str_radix(id, 16).ok()? };
        (name.file() == file).then_some(name)
    }

    /// Of a file that was being written: `.NAME.PID` or `.NAME.PID-ATTEMPT`.
    fn parse_temporary(file: &str) -> Option<Self> {
        let (name, by) = file.strip_prefix('.')?.rsplit_once('.')?;
        by.starts_with(|letter: char| letter.is_ascii_digit()).then(|| Self::parse(name)).flatten()
    }
}

/// The folder, and the windows that are in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    windows: BTreeMap<Name, u64>,
    bytes: u64,
    /// Open as long as the folder is this agent's.
    _lock: File,
}

impl Folder {
    /// Opens the folder, or makes it, and clears what a killed agent left.
    ///
    /// # Errors
    /// A folder that another agent writes into, or that cannot be written.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        for table in TABLES {
            let folder = path.join(table.name);
            tables_folder::make(&folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let at = path.join(AGENTS_LOCK);
        let mut options = OpenOptions::new();
        // It is written by nobody. Whoever owns the folder may have put a link to another file there.
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let opened = options.open(&at).map_err(|error| {
            let kind = error.kind();
            denied::or_whose(error, kind, &at)
        });
        let lock = opened.with_context(|| format!("cannot write {}", at.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "another `eprof agent` writes into {}: each needs a folder of its own (-o DIR)",
                path.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", at.display()));
            }
        }
        let mut folder = Self { path: path.to_owned(), windows: BTreeMap::new(), bytes: 0, _lock: lock };
        folder.find().with_context(|| format!("cannot read the tables in {}", path.display()))?;
        Ok(folder)
    }

    /// Finds the windows and removes pieces of such.
    fn find(&mut self) -> io::Result<()> {
        let mut found: BTreeMap<Name, (usize, u64)> = BTreeMap::new();
        for table in TABLES {
            for entry in fs::read_dir(self.path.join(table.name))? {
                let entry = entry?;
                let file = entry.file_name();
                let Some(file) = file.to_str() else { continue };
                if Name::parse_temporary(file).is_some() {
                    fs::remove_file(entry.path())?;
                } else if let Some(name) = Name::parse(file) {
                    let of_window = found.entry(name).or_default();
                    of_window.0 += 1;
                    of_window.1 += entry.metadata()?.blocks() * 512;
                }
            }
        }
        for (name, (files, bytes)) in found {
            if files == TABLES.len() {
                self.bytes += bytes;
                self.windows.insert(name, bytes);
            } else {
                self.remove_files(&name)?;
            }
        }
        Ok(())
    }

    /// Bytes that all windows take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn place(&self, table: &Table, name: &Name) -> PathBuf {
        self.path.join(table.name).join(name.file())
    }

    /// Whether somebody has removed the folder, or a part of it that each window needs.
    pub fn is_gone(&self) -> bool {
        let is_there = |path: PathBuf| path.exists();
        !is_there(self.path.join(AGENTS_LOCK))
            || TABLES.iter().any(|table| !is_there(self.path.join(table.name)))
    }

    /// Writes a window: all of its tables are there afterwards, or none.
    ///
    /// # Errors
    /// A disk that is full, or gone.
    pub fn write(&mut self, exported: &Exported<'_>) -> Result<(), ReportError> {
        let profile = exported.profile.profile();
        let started = unix_seconds(exported.started.unwrap_or(SystemTime::UNIX_EPOCH));
        let name = Name { started, id: recording_id(profile) as u64 };
        let open = |table: &Table| {
            let readers = tables_folder::readers(&self.path.join(table.name))?;
            Ok(NewFile::create(&self.place(table, &name), readers)?)
        };
        // Names of inlined functions are not looked up.
        let files = write(exported, true, open)?;
        let kept: io::Result<()> = files.into_iter().try_for_each(NewFile::keep);
        let size = kept.and_then(|()| {
            let of = |table: &Table| Ok(fs::metadata(self.place(table, &name))?.blocks() * 512);
            TABLES.into_iter().map(of).sum::<io::Result<u64>>()
        });
        match size {
            Ok(bytes) => {
                self.bytes += bytes;
                self.windows.insert(name, bytes);
                Ok(())
            }
            Err(error) => {
                // The first error says more.
                let _ = self.remove_files(&name);
                Err(error.into())
            }
        }
    }

    /// Removes the oldest windows until those that are left are young and small enough. The newest one stays. Gives how many
    /// were removed.
    ///
    /// # Errors
    /// What the system says of the first that cannot be removed.
    pub fn prune(&mut self, now: SystemTime, keep: Duration, most_bytes: u64) -> io::Result<u64> {
        let oldest_kept = unix_seconds(now).saturating_sub(keep.as_secs());
        let mut removed = 0;
        while self.windows.len() > 1
            && let Some((name, bytes)) = self.windows.first_key_value()
            && (name.started < oldest_kept || self.bytes > most_bytes)
        {
            let (name, bytes) = (name.clone(), *bytes);
            self.remove_files(&name)?;
            self.windows.remove(&name);
            self.bytes -= bytes;
            removed += 1;
        }
        Ok(removed)
    }

    /// Removes a window, that which says that it is whole first.
    fn remove_files(&self, name: &Name) -> io::Result<()> {
        for table in TABLES.into_iter().rev() {
            match fs::remove_file(self.place(table, name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Names of whole windows.
    fn names(path: &Path) -> BTreeSet<String> {
        let in_table = |table: &Table| -> BTreeSet<String> {
            let entries = fs::read_dir(path.join(table.name)).expect("a folder");
            entries.map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8")).collect()
        };
        let first = in_table(TABLES[0]);
        assert!(TABLES.iter().all(|table| in_table(table) == first), "windows are whole");
        first
    }

    fn put(path: &Path, name: &Name, size: usize) {
        for table in TABLES {
            fs::create_dir_all(path.join(table.name)).expect("a folder");
            fs::write(path.join(table.name).join(name.file()), vec![1; size]).expect("written");
        }
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_folder_has_one_agent_and_pieces_are_cleared() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let whole = Name { started: 1_795_000_000, id: 7 };
        put(path, &whole, 10);
        let piece = Name { started: 1_795_000_060, id: 8 };
        fs::write(path.join("samples").join(piece.file()), "x").expect("written");
        let temporary = format!(".{}.4711", Name { started: 1_795_000_120, id: 9 }.file());
        fs::write(path.join("functions").join(temporary), "x").expect("written");
        for table in TABLES {
            fs::write(path.join(table.name).join("00ff00ff00ff00ff.parquet"), "an export's")
                .expect("written");
        }
        let opened = Folder::open(path).expect("opened");
        let left = names(path);
        assert_eq!(left, BTreeSet::from([whole.file(), "00ff00ff00ff00ff.parquet".to_owned()]));
        let refused = Folder::open(path).expect_err("taken").to_string();
        assert!(refused.contains("another `eprof agent`"), "{refused}");
        drop(opened);
        Folder::open(path).expect("free again");
    }

    #[test]
    fn the_lock_is_no_link_to_a_file_of_somebody_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, victim) = (folder.path().join("tables"), folder.path().join("victim"));
        fs::create_dir(&path).expect("a folder");
        fs::write(&victim, "kept").expect("written");
        std::os::unix::fs::symlink(&victim, path.join(AGENTS_LOCK)).expect("linked");
        let refused = format!("{:#}", Folder::open(&path).expect_err("a link"));
        assert!(refused.contains(AGENTS_LOCK), "{refused}");
        assert_eq!(fs::read(&victim).expect("there"), b"kept");
    }

    #[test]
    fn names_are_read_as_they_are_written_and_no_others() {
        let name = Name { started: 5, id: u64::MAX };
        assert_eq!(Name::parse(&name.file()), Some(name));
        for other in ["x.parquet", "0000000005-1.parquet", "1795000000-zzzzzzzzzzzzzzzz.parquet", "-.parquet"]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn the_oldest_go_first_and_whole(
            windows in prop::collection::btree_map(0u64..2_000, 1usize..20_000, 1..12),
            keep in 1u64..2_000,
            most in 0u64..300_000,
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let name = |age: u64| Name { started: 1_795_000_000 - age, id: age };
            windows.iter().for_each(|(age, size)| put(folder.path(), &name(*age), *size));
            let mut opened = Folder::open(folder.path()).expect("opened");
            opened.prune(at(1_795_000_000), Duration::from_secs(keep), most).expect("removed");
            let left = names(folder.path());
            let kept: Vec<u64> =
                windows.keys().copied().filter(|age| left.contains(&name(*age).file())).collect();
            // The youngest of all, without a gap, and never none.
            prop_assert_eq!(&kept[..], &windows.keys().copied().collect::<Vec<_>>()[..kept.len()]);
            prop_assert!(!kept.is_empty());
            prop_assert!(kept.len() == 1 || (opened.bytes() <= most && kept[kept.len() - 1] <= keep));
            // No more than needed.
            if let Some(removed) = windows.keys().nth(kept.len()) {
                let reopened = opened.bytes() + 4 * (windows[removed] as u64).next_multiple_of(4096);
                prop_assert!(*removed > keep || reopened > most, "{} {}", removed, reopened);
            }
        }
    }
}

//! Folders of tables: which windows or recordings are whole in them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;

use super::error::PushError;
use crate::report::store::schema::{BALANCE, TABLES, Table};

/// What was exported together and has one name in all tables: a window of an agent, or a recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// The name of its files, without a folder.
    pub name: String,
    /// Bytes of its balance, and when that was written, in nanoseconds: a window that was written anew is another one.
    pub(super) bytes: u64,
    pub(super) written: i128,
}

impl Window {
    /// What tells it from others in a line of a text.
    pub(super) fn key(&self) -> String {
        format!("{} {} {}", self.name, self.bytes, self.written)
    }

    /// The recording that all its rows are of, as its name tells: an identity stands in it last.
    pub(super) fn recording(&self) -> Option<i64> {
        let id = self.name.strip_suffix(".parquet")?.rsplit('-').next()?;
        u64::from_str_radix(id, 16).ok().map(u64::cast_signed)
    }

    /// Whether its files of all tables are there: who copies folders may have copied its balance first.
    pub fn is_whole(&self, folder: &Path) -> bool {
        TABLES.iter().all(|table| self.path(folder, table).exists())
    }

    /// Its file of a table.
    pub(super) fn path(&self, folder: &Path, table: &Table) -> PathBuf {
        folder.join(table.name).join(&self.name)
    }

    /// Opens its file of a table: the file itself, and no link that somebody put in its place.
    pub(super) fn open(&self, folder: &Path, table: &Table) -> Result<File, PushError> {
        let path = self.path(folder, table);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits());
        let file = options.open(&path).map_err(PushError::file("read", &path))?;
        let metadata = file.metadata().map_err(PushError::file("read", &path))?;
        if !metadata.is_file() {
            return Err(PushError::Table { path, why: "it is no file".to_owned() });
        }
        Ok(file)
    }
}

/// The windows of a folder that have a balance, sorted by name: an agent's by time. eprof gives that its name last, so that these
/// are whole where eprof alone wrote.
///
/// # Errors
/// A folder that cannot be read, or is none of tables.
pub fn windows(folder: &Path) -> Result<Vec<Window>, PushError> {
    let balances = folder.join(BALANCE.name);
    let entries = match fs::read_dir(&balances) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(PushError::no_tables(folder)),
        Err(_) if folder.is_file() => return Err(PushError::no_tables(folder)),
        Err(error) => return Err(PushError::file("read", &balances)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(PushError::file("read", &balances))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || !name.ends_with(".parquet") || name.contains(char::is_control) {
            continue;
        }
        let metadata = match entry.metadata() {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => continue,
            // An agent has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(PushError::file("read", entry.path())(error)),
        };
        let written = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let window = Window { name, bytes: metadata.len(), written };
        found.push(window);
    }
    found.sort();
    Ok(found)
}

/// What lies among the tables of a folder and is no window.
#[derive(Debug, Default)]
pub struct Strays {
    /// Pieces of windows of which other pieces are missing, and what is missing.
    pub pieces: Vec<PushError>,
    /// What eprof did not write.
    pub foreign: Vec<PathBuf>,
}

/// Looks for what lies among the tables and cannot be pushed. What is so young that it may be about to become a window is passed
/// over: eprof gives the files of a window their names one after the other.
///
/// # Errors
/// A folder that cannot be read.
pub fn strays(folder: &Path) -> Result<Strays, PushError> {
    let mut strays = Strays::default();
    // The balance is looked at last, and has its name last: so no window seems to lack its own because it is new.
    for table in TABLES {
        let of_table = folder.join(table.name);
        let entries = match fs::read_dir(&of_table) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(PushError::file("read", &of_table)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(PushError::file("read", &of_table))?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            if !name.ends_with(".parquet") || !path.is_file() {
                strays.foreign.push(path);
                continue;
            }
            // Each window is told once, by the first of its pieces; what has a balance is told by that.
            let has = |table: &&Table| folder.join(table.name).join(&*name).exists();
            let Some(lacks) = TABLES.into_iter().find(|table| !has(table)) else { continue };
            let has_balance = has(&&BALANCE);
            let teller = if has_balance { Some(&BALANCE) } else { TABLES.into_iter().find(has) };
            if teller.is_none_or(|teller| teller.name != table.name) || (!has_balance && is_young(&path)) {
                continue;
            }
            let why = format!(
                "its window is not whole, {} is missing: copy all tables of it, or export the recording again with --force",
                folder.join(lacks.name).join(&*name).display()
            );
            strays.pieces.push(PushError::Table { path, why });
        }
    }
    strays.pieces.sort_by_cached_key(ToString::to_string);
    strays.foreign.sort();
    Ok(strays)
}

/// Whether eprof may be writing the rest of it just now.
fn is_young(path: &Path) -> bool {
    const YOUNG: Duration = Duration::from_secs(60);
    let written = path.metadata().and_then(|metadata| metadata.modified());
    // A time to come is one of a clock that was set since.
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age < YOUNG))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_window_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let said = windows(&path.join("nowhere")).expect_err("nothing").to_string();
        assert!(said.contains("no such folder"), "{said}");
        for name in ["1.parquet", "2.parquet", "3.parquet", "4.parquet"] {
            put(path, &TABLES, name);
        }
        assert!(strays(path).expect("read").pieces.is_empty());
        fs::remove_file(path.join("samples/2.parquet")).expect("removed");
        fs::remove_file(path.join("balance/3.parquet")).expect("removed");
        fs::remove_file(path.join("balance/4.parquet")).expect("removed");
        fs::write(path.join("balance/notes.txt"), "x").expect("written");
        fs::write(path.join("balance/.2.parquet.77"), "x").expect("written");
        let old = std::time::SystemTime::now() - Duration::from_secs(3_600);
        let file = OpenOptions::new().write(true).open(path.join("functions/3.parquet")).expect("there");
        file.set_modified(old).expect("touched");
        let Strays { pieces, foreign } = strays(path).expect("read");
        let pieces: Vec<String> = pieces.iter().map(ToString::to_string).collect();
        // 4 may be about to get its balance.
        assert_eq!(pieces.len(), 2, "{pieces:?}");
        assert!(
            pieces[0].contains("balance/2.parquet: ") && pieces[0].contains("samples/2.parquet is missing"),
            "{pieces:?}"
        );
        assert!(
            pieces[1].contains("functions/3.parquet: ") && pieces[1].contains("balance/3.parquet is missing"),
            "{pieces:?}"
        );
        assert_eq!(foreign, [path.join("balance/notes.txt")]);
    }

    fn put(folder: &Path, tables: &[&Table], name: &str) {
        for table in tables {
            fs::create_dir_all(folder.join(table.name)).expect("a folder");
            fs::write(folder.join(table.name).join(name), "x").expect("written");
        }
    }

    #[test]
    fn windows_are_whole_and_in_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let said = windows(path).expect_err("no tables").to_string();
        assert!(said.contains("eprof export"), "{said}");
        for name in ["2.parquet", "1.parquet", ".3.parquet.77", "4.txt", ".5.parquet"] {
            put(path, &TABLES, name);
        }
        put(path, &[&BALANCE], "6.parquet");
        let found = windows(path).expect("read");
        let names: Vec<(&str, bool)> =
            found.iter().map(|window| (&*window.name, window.is_whole(path))).collect();
        assert_eq!(names, [("1.parquet", true), ("2.parquet", true), ("6.parquet", false)]);
    }

    #[test]
    fn links_and_pipes_are_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        put(path, &TABLES, "1.parquet");
        let [window] = &windows(path).expect("read")[..] else { panic!("one") };
        let samples = window.path(path, TABLES[2]);
        fs::remove_file(&samples).expect("removed");
        std::os::unix::fs::symlink("/etc/passwd", &samples).expect("linked");
        assert!(window.open(path, TABLES[2]).is_err());
        fs::remove_file(&samples).expect("removed");
        nix::unistd::mkfifo(&samples, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let said = window.open(path, TABLES[2]).expect_err("a pipe").to_string();
        assert!(said.contains("no file"), "{said}");
    }
}

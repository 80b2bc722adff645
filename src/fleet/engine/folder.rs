//! What stands in a folder that a user names for one of tables.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use eprof::label::shell_word;
use eprof::report::store::schema::TABLES;

use crate::denied;

/// What an agent holds in its folder.
const AGENTS_LOCK: &str = ".eprof-agent.lock";
/// The table whose files get their names last.
const LAST: &str = "balance";
/// How recordings begin, of machines of either order of bytes.
const RECORDINGS: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Looks whether all tables are there.
///
/// # Errors
/// What is there in their place, and what makes tables of it.
pub fn check(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => bail!(
            "{shown} is a file, and tables are in a folder: `eprof report {shown}` reads a recording, `eprof export --format parquet -o \
             DIR {shown}` makes tables of it"
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("there is no folder {shown}"),
        Err(error) => return Err(cannot_read(folder, error)),
    }
    let missing = |table: &str| -> anyhow::Result<bool> {
        match fs::metadata(folder.join(table)) {
            Ok(_) => Ok(files(&folder.join(table))?.is_empty()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(cannot_read(&folder.join(table), error)),
        }
    };
    if missing(LAST)? && fs::symlink_metadata(folder.join(AGENTS_LOCK)).is_ok() {
        bail!(
            "{shown} is the folder of an `eprof agent` and has no window yet: the first is there when it ends, which takes a minute \
             where --window does not say otherwise. Is the agent running?"
        );
    }
    let word = shell_word(&folder.to_string_lossy());
    for table in TABLES {
        if !missing(table.name)? {
            continue;
        }
        ensure!(
            !has_recordings(folder)?,
            "{shown} has recordings, and no table {}: make tables of them in another folder, `eprof export {word} --format parquet -o \
             TABLES`, and ask that: `eprof fleet report TABLES`",
            table.name
        );
        bail!(
            "{shown} has no table {}: make the tables there with `eprof export RECORDINGS --format parquet -o {word}`",
            table.name
        );
    }
    Ok(())
}

/// The files of a table.
///
/// # Errors
/// A folder that cannot be read.
pub fn files(table: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(table).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let paths = entries.map_err(|error| cannot_read(table, error))?.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect())
}

/// Why something cannot be read; where the system denies it, whose it is.
pub fn cannot_read(path: &Path, error: io::Error) -> anyhow::Error {
    let kind = error.kind();
    denied::or_whose(error, kind, path).context(format!("cannot read {}", path.display()))
}

fn has_recordings(folder: &Path) -> anyhow::Result<bool> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).any(|entry| {
        let mut start = [0; 8];
        let opened = File::open(entry.path()).and_then(|mut file| file.read_exact(&mut start));
        opened.is_ok() && RECORDINGS.contains(&&start)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(folder: &Path) -> String {
        format!("{:#}", check(folder).expect_err("no tables"))
    }

    #[test]
    fn what_is_there_in_place_of_tables_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        assert!(said(&path.join("none")).starts_with("there is no folder"));
        assert!(said(path).contains("has no table") && said(path).contains("eprof export RECORDINGS"));
        let recording = path.join("a.data");
        fs::write(&recording, "PERFILE2 and more").expect("written");
        assert!(said(path).contains("has recordings") && said(path).contains("-o TABLES"), "{}", said(path));
        assert!(said(&recording).contains("is a file"));
        for table in TABLES {
            fs::create_dir(path.join(table.name)).expect("made");
        }
        fs::write(path.join(AGENTS_LOCK), "").expect("written");
        // What is being written of the first window.
        fs::write(path.join("functions/1.parquet"), "").expect("written");
        assert!(said(path).contains("has no window yet"), "{}", said(path));
        fs::write(path.join("balance/1.parquet"), "").expect("written");
        assert!(!said(path).contains("has no window yet"), "{}", said(path));
        for table in TABLES {
            fs::write(path.join(table.name).join("1.parquet"), "").expect("written");
        }
        check(path).expect("tables");
    }
}

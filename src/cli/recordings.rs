//! Which recordings a verb reads: files, and folders of them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use eprof::label::shell_word;
use eprof::report::store::schema::TABLES;
use perf_data::format::FILE_HEADER_SIZE;
use perf_data::{ReadError, check_header};

use super::denied;
use super::output::warn;

/// What tables begin with.
const MAGIC: &[u8; 4] = b"PAR1";
/// What recordings are called. A file of that name that is none was to become one.
const RECORDED: &str = "data";
/// What the recorder calls a recording that a new one took the place of.
const REPLACED: &str = "old";

/// The files that are meant: each once, those of a folder by name. A folder's recordings are the files right in it that
/// begin as recordings do, but for those that newer ones took the place of.
///
/// # Errors
/// A folder that cannot be read or has no recording.
pub fn expand(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in given {
        if path.is_dir() {
            paths.extend(recordings_in(path)?);
        } else {
            check_there(path)?;
            check_no_table(path)?;
            paths.push(path.clone());
        }
    }
    let mut seen = Vec::new();
    paths.retain(|path| {
        // What is not there is told when it is opened.
        let identity = fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let is_new = identity.is_none_or(|identity| !seen.contains(&identity));
        seen.extend(identity);
        is_new
    });
    Ok(paths)
}

/// A path that leads nowhere and is not called as recordings are was to be a folder, or is mistyped.
fn check_there(path: &Path) -> anyhow::Result<()> {
    let is_named_so = path.extension().is_some();
    let there = fs::symlink_metadata(path);
    if is_named_so || path == Path::new("-") || there.is_ok() {
        return Ok(());
    }
    if let Err(error) = there
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        return Err(or_whose(error, path)).with_context(|| format!("cannot read {}", path.display()));
    }
    bail!(
        "cannot read {}: there is no such folder or file: is it written right? `eprof record -o DIR/NAME.data` makes recordings",
        path.display()
    )
}

/// A table is no recording, and another verb reads it.
fn check_no_table(path: &Path) -> anyhow::Result<()> {
    let mut start = [0; MAGIC.len()];
    // A pipe would lose what is read of it.
    let is_table = path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == *MAGIC;
    if is_table {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let tables = tables_of(folder).unwrap_or_else(|| folder.to_owned());
        bail!("{} is no recording: {}", path.display(), by_fleet(&tables));
    }
    Ok(())
}

/// The folder of tables that this one is, or is a part of.
fn tables_of(folder: &Path) -> Option<PathBuf> {
    let has_tables = |folder: &Path| TABLES.iter().any(|table| folder.join(table.name).is_dir());
    let is_table = |name: &OsStr| TABLES.iter().any(|table| name == table.name);
    if has_tables(folder) {
        return Some(folder.to_owned());
    }
    // Its name may be of another folder, as `.` is.
    let whole = fs::canonicalize(folder).ok()?;
    let above = whole.parent().filter(|_| whole.file_name().is_some_and(is_table))?;
    let given = folder.parent().filter(|given| *given != Path::new("") && folder.file_name().is_some());
    has_tables(above).then(|| given.map_or_else(|| above.to_owned(), Path::to_owned))
}

fn by_fleet(tables: &Path) -> String {
    let folder = shell_word(&tables.to_string_lossy());
    format!(
        "there are tables in {}, as `eprof agent` and `eprof export --format parquet` write them: `eprof fleet report {folder}` \
         reads them",
        tables.display()
    )
}

/// What the system says, and where it denies something, whose that is.
fn or_whose(error: io::Error, path: &Path) -> anyhow::Error {
    let kind = error.kind();
    denied::or_whose(error, kind, path)
}

fn recordings_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    let (mut found, mut left_out, mut within) = (Vec::new(), Vec::new(), Vec::new());
    let entries = fs::read_dir(folder).map_err(|error| or_whose(error, folder)).with_context(cannot)?;
    for entry in entries {
        let path = entry.with_context(cannot)?.path();
        if path.is_dir() {
            within.push(path);
            continue;
        }
        if ends_in(&path, REPLACED) || !path.is_file() {
            continue;
        }
        let is_named_so = ends_in(&path, RECORDED);
        match fault(&path) {
            None => found.push(path),
            Some(why) if is_named_so => left_out.push(format!("{} was left out: {why}", path.display())),
            Some(_) => {}
        }
    }
    left_out.sort();
    warn(left_out);
    tell_of_folders_within(folder, &within);
    found.sort();
    if found.is_empty()
        && let Some(tables) = tables_of(folder)
    {
        bail!("no recording is in the folder {}: {}", folder.display(), by_fleet(&tables));
    }
    if found.is_empty() {
        let example = folder.join("a.data");
        bail!(
            "no recording is in the folder {}: make one there with `eprof record -o {} COMMAND`",
            folder.display(),
            example.display()
        );
    }
    Ok(found)
}

fn ends_in(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension == ending)
}

/// How many recordings a folder has; those that cannot be opened are taken for some.
pub fn count_in(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_recording = |path: &PathBuf| !ends_in(path, REPLACED) && path.is_file() && fault(path).is_none();
    entries.filter(is_recording).count()
}

/// Says where recordings lie deeper than is read.
fn tell_of_folders_within(folder: &Path, within: &[PathBuf]) {
    let has_recordings = |path: &&PathBuf| {
        fs::read_dir(path).into_iter().flatten().flatten().any(|entry| ends_in(&entry.path(), RECORDED))
    };
    let mut found: Vec<&PathBuf> = within.iter().filter(has_recordings).collect();
    found.sort();
    if let Some(first) = found.first() {
        warn([format!(
            "of {} only the recordings right in it are read: there are others in {} folder{} within ({})",
            folder.display(),
            found.len(),
            if found.len() == 1 { "" } else { "s" },
            first.display()
        )]);
    }
}

/// Why a file is no recording. One that cannot be opened is taken for one, as is one of another fault, so that opening it says
/// why.
pub fn fault(path: &Path) -> Option<&'static str> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(FILE_HEADER_SIZE).read_to_end(&mut start).ok()?;
    match check_header(path, &start) {
        Err(ReadError::Empty { .. }) => {
            Some("it is empty, as what a recorder leaves that was killed at once")
        }
        Err(ReadError::NotPerfData { .. } | ReadError::Version1 { .. }) => {
            Some("it does not begin as recordings do")
        }
        Err(error) if error.is_truncation() => {
            Some("it ends within its header, as what a recorder leaves that was killed at once")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_means_its_recordings() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("writable");
            path
        };
        let whole = [b"PERFILE2", &FILE_HEADER_SIZE.to_le_bytes()[..], &[0; 88]].concat();
        let [b, a] = ["b.data", "a.data"].map(|name| write(name, &whole));
        write("a.data.old", &whole);
        let cut = write("cut.data", &whole[..20]);
        let swapped = write("swapped", b"2ELIFREP\0\0\0\0\0\0\0\x10");
        assert!(fault(&cut).is_some_and(|why| why.contains("ends within its header")));
        write("notes.txt", b"PERFILE?");
        write("short", b"PERF");
        std::os::unix::fs::symlink(&a, folder.path().join("c.data")).expect("a link");
        let given = [b.clone(), folder.path().to_owned(), folder.path().join("missing.data")];
        let missing = given[2].clone();
        assert_eq!(expand(&given).expect("a folder"), [b, a, swapped, missing]);
        let mistyped = expand(&[folder.path().join("missing")]).expect_err("neither").to_string();
        assert!(mistyped.contains("missing: there is no such folder or file"), "{mistyped}");
        let empty = tempfile::tempdir().expect("a folder");
        let error = expand(&[empty.path().to_owned()]).expect_err("nothing is in it").to_string();
        let repair = format!("`eprof record -o {}/a.data COMMAND`", empty.path().display());
        assert!(error.contains("no recording") && error.ends_with(&repair), "{error}");
    }

    #[test]
    fn tables_are_said_to_be_read_by_another_verb() {
        let folder = tempfile::tempdir().expect("a folder");
        let tables = folder.path().join("tables");
        for table in TABLES {
            fs::create_dir_all(tables.join(table.name)).expect("a folder");
            fs::write(tables.join(table.name).join("1.parquet"), "PAR1...PAR1").expect("written");
        }
        let command = format!("`eprof fleet report {}`", tables.display());
        for given in ["tables", "tables/samples", "tables/balance/1.parquet"] {
            let said = expand(&[folder.path().join(given)]).expect_err(given).to_string();
            assert!(said.contains("no recording") && said.contains(&command), "{given}: {said}");
        }
        let alone = folder.path().join("alone.parquet");
        fs::write(&alone, "PAR1").expect("written");
        let said = expand(&[alone]).expect_err("a table").to_string();
        assert!(said.contains(&format!("`eprof fleet report {}`", folder.path().display())), "{said}");
    }
}

//! Which recordings a verb reads: files, and folders of them.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::output::warn;

/// What every perf.data file begins with, as a machine of either byte order writes it.
const MAGIC: [&[u8; 8]; 2] = [b"PERFILE2", b"2ELIFREP"];
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

fn recordings_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let is_replaced = path.extension().is_some_and(|extension| extension == REPLACED);
        if is_replaced || !path.is_file() {
            continue;
        }
        if is_recording(&path) {
            found.push(path);
        } else if path.extension().is_some_and(|extension| extension == RECORDED) {
            let is_empty = fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0);
            let why = if is_empty { "it is empty" } else { "it does not begin as recordings do" };
            left_out.push(format!(
                "{} was left out: {why}, as what a recorder leaves that was killed at once",
                path.display()
            ));
        }
    }
    left_out.sort();
    warn(left_out);
    found.sort();
    if found.is_empty() {
        bail!("no recording is in the folder {}: make one there with `eprof record -o`", folder.display());
    }
    Ok(found)
}

/// A file that cannot be opened is taken for one, so that opening it says why.
fn is_recording(path: &Path) -> bool {
    let Ok(mut file) = File::open(path) else { return true };
    let mut start = [0; 8];
    file.read_exact(&mut start).is_ok() && MAGIC.contains(&&start)
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
        let [b, a] = ["b.data", "a.data"].map(|name| write(name, b"PERFILE2rest"));
        write("a.data.old", b"PERFILE2rest");
        write("notes.txt", b"PERFILE?");
        write("short", b"PERF");
        std::os::unix::fs::symlink(&a, folder.path().join("c.data")).expect("a link");
        let given = [b.clone(), folder.path().to_owned(), folder.path().join("missing")];
        let missing = given[2].clone();
        assert_eq!(expand(&given).expect("a folder"), [b, a, missing]);
        let empty = tempfile::tempdir().expect("a folder");
        let error = expand(&[empty.path().to_owned()]).expect_err("nothing is in it").to_string();
        assert!(error.contains("no recording"), "{error}");
    }
}

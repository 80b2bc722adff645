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
        let is_named_so = path.extension().is_some_and(|extension| extension == RECORDED);
        match fault(&path) {
            None => found.push(path),
            Some(why) if is_named_so => left_out.push(format!("{} was left out: {why}", path.display())),
            Some(_) => {}
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

/// Why a file is no recording. One that cannot be opened is taken for one, so that opening it says why.
fn fault(path: &Path) -> Option<&'static str> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let (mut magic, mut size) = ([0; 8], [0; 8]);
    if length == 0 {
        return Some("it is empty, as what a recorder leaves that was killed at once");
    }
    if file.read_exact(&mut magic).is_err() || !MAGIC.contains(&&magic) {
        return Some("it does not begin as recordings do");
    }
    // The header begins with its own length.
    let of_header =
        |size| if magic == *MAGIC[0] { u64::from_le_bytes(size) } else { u64::from_be_bytes(size) };
    let is_whole = file.read_exact(&mut size).is_ok() && of_header(size) <= length;
    (!is_whole).then_some("it ends within its header, as what a recorder leaves that was killed at once")
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
        let whole = b"PERFILE2\x18\0\0\0\0\0\0\0header's";
        let [b, a] = ["b.data", "a.data"].map(|name| write(name, whole));
        write("a.data.old", whole);
        let cut = write("cut.data", &whole[..20]);
        let swapped = write("swapped", b"2ELIFREP\0\0\0\0\0\0\0\x10");
        assert!(fault(&cut).is_some_and(|why| why.contains("ends within its header")));
        write("notes.txt", b"PERFILE?");
        write("short", b"PERF");
        std::os::unix::fs::symlink(&a, folder.path().join("c.data")).expect("a link");
        let given = [b.clone(), folder.path().to_owned(), folder.path().join("missing")];
        let missing = given[2].clone();
        assert_eq!(expand(&given).expect("a folder"), [b, a, swapped, missing]);
        let empty = tempfile::tempdir().expect("a folder");
        let error = expand(&[empty.path().to_owned()]).expect_err("nothing is in it").to_string();
        assert!(error.contains("no recording"), "{error}");
    }
}

//! Measurements and recordings that others published.
//!
//! What its licence allows lies in `fixtures/published`, packed: it is unpacked once, into the folder that cargo builds in.
//! What may not be copied stands beside it where this machine has it, in `../shared/data`; tests of that skip elsewhere.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::environment::{project, skip};

const PACKED: &str = ".tar.xz";

/// A file or a folder of what was published, by its path below the source's name. `None`, with the reason said, if it is
/// not here.
#[track_caller]
pub fn published(path: &str) -> Option<PathBuf> {
    let found = published_data()?.join(path);
    if found.exists() {
        return Some(found);
    }
    skip(&format!("{path}: its licence does not let eprof bring it along, and it is not in ../shared/data"));
    None
}

/// The folder of all sources that are here. `None`, with the reason said, if they cannot be unpacked.
///
/// # Panics
/// If a folder in the place where cargo builds cannot be made.
#[track_caller]
pub fn published_data() -> Option<PathBuf> {
    let own = env::current_exe().expect("a test program has a file");
    let built = own.ancestors().nth(2).expect("a test program lies in a folder of a folder");
    let all = built.join("published-data");
    fs::create_dir_all(&all).expect("a folder beside the programs that cargo built");
    for archive in entries(&project().join("fixtures/published")) {
        let name = archive.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(source) = name.strip_suffix(PACKED) else { continue };
        if let Err(error) = unpack(&archive, source, &all) {
            skip(&format!("{} cannot be unpacked: {error}", archive.display()));
            return None;
        }
    }
    for source in entries(&project().join("../shared/data")) {
        let (Ok(source), Some(name)) = (source.canonicalize(), source.file_name().map(OsString::from)) else {
            continue;
        };
        match symlink(&source, all.join(&name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                panic!("{}: {error}", all.display())
            }
            _ => {}
        }
    }
    Some(all)
}

/// Several tests may do this at the same time: what is there is whole.
fn unpack(archive: &Path, source: &str, all: &Path) -> io::Result<()> {
    // Another archive of the same name is another version.
    let unpacked = format!(".{source}.{}", archive.metadata()?.len());
    let (folder, link) = (all.join(&unpacked), all.join(source));
    if !folder.exists() {
        let new = tempfile::tempdir_in(all)?;
        // Tests take each file of a folder of recordings for one.
        let output = Command::new("tar")
            .args(["--exclude", "LICENSE", "-xJf"])
            .arg(archive)
            .arg("-C")
            .arg(new.path())
            .output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
            return Err(io::Error::other(format!("{said} (needs tar and xz)")));
        }
        match fs::rename(new.path().join(source), &folder) {
            // Another test was faster.
            Err(_) if folder.exists() => {}
            result => result?,
        }
    }
    if fs::read_link(&link).is_ok_and(|target| target == Path::new(&unpacked)) {
        return Ok(());
    }
    // A link is replaced as a whole.
    let new = tempfile::tempdir_in(all)?;
    symlink(&unpacked, new.path().join("link"))?;
    fs::rename(new.path().join("link"), link)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// All files below a folder; none if there is no such folder.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    entries(folder)
        .into_iter()
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] })
        .collect()
}

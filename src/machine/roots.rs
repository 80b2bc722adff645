//! Where the kernel's file systems are: parameters, so that a tree of files can stand for a machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The roots of the file systems through which the kernel describes the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// sysfs, normally `/sys`.
    pub sysfs: PathBuf,
    /// procfs, normally `/proc`.
    pub procfs: PathBuf,
    /// Device nodes, normally `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self::under(Path::new("/"))
    }
}

impl Roots {
    /// The roots `sys`, `proc` and `dev` below one folder.
    pub fn under(folder: &Path) -> Self {
        Self { sysfs: folder.join("sys"), procfs: folder.join("proc"), dev: folder.join("dev") }
    }

    /// Whether these are the running kernel's own file systems. Only then do device nodes, system
    /// calls and the current process belong to the machine that the files describe.
    pub fn are_live(&self) -> bool {
        *self == Self::default()
    }

    /// The root folder `/` of the described machine, for the few marks outside these three.
    pub fn folder(&self) -> &Path {
        self.procfs.parent().unwrap_or(Path::new("/"))
    }
}

/// The content of a small file without white space around it and without NUL at its end (as
/// device-tree properties have it).
pub(crate) fn read_trimmed(path: &Path) -> io::Result<String> {
    let text = fs::read(path)?;
    Ok(String::from_utf8_lossy(&text).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
}

/// A file that holds one number; an error of kind `InvalidData` if it does not.
pub(crate) fn read_number<T: FromStr>(path: &Path) -> io::Result<T> {
    let text = read_trimmed(path)?;
    text.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("'{text}' is not a number")))
}

/// Names in a folder, sorted with numbers in their natural order (`hwmon2` before `hwmon10`); none if
/// the folder is missing or closed.
pub(crate) fn sorted_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_by_cached_key(|name| natural_key(name));
    names
}

/// Text and numbers of a name in turn, so that numbers compare by value.
fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits_at = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, numbered) = rest.split_at(digits_at);
        let text_at = numbered.find(|c: char| !c.is_ascii_digit()).unwrap_or(numbered.len());
        let (digits, tail) = numbered.split_at(text_at);
        key.push((text.to_owned(), digits.parse().unwrap_or(0)));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_natural_order() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["hwmon10", "hwmon2", "intel-rapl:1:0", "intel-rapl:0:10", "intel-rapl:0:9"] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        let names = sorted_names(folder.path());
        assert_eq!(names, ["hwmon2", "hwmon10", "intel-rapl:0:9", "intel-rapl:0:10", "intel-rapl:1:0"]);
        assert!(sorted_names(&folder.path().join("missing")).is_empty());
    }

    #[test]
    fn a_device_tree_string_loses_its_nul() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model");
        fs::write(&path, "Raspberry Pi 4 Model B\0").expect("a file");
        assert_eq!(read_trimmed(&path).expect("readable"), "Raspberry Pi 4 Model B");
        assert_eq!(read_number::<u32>(&path).expect_err("no number").kind(), io::ErrorKind::InvalidData);
    }
}

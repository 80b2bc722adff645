//! Machines for tests: a text that lists the files of `/sys`, `/proc` and `/dev`, and the folder that
//! it is unfolded into.
//!
//! ```text
//! # a comment
//! sys/devices/system/cpu/online: 0-3
//! sys/devices/system/cpu/cpu{0-3}/topology/core_id: {0,1,0,1}
//! sys/class/powercap/intel-rapl:0/energy_uj [0400]: 123456
//! dev/nvidia0:
//! sys/class/powercap/intel-rapl:0:0 -> intel-rapl:0/intel-rapl:0:0
//! proc/cpuinfo <<end
//! processor : 0
//! end
//! ```
//!
//! Lists in braces are unfolded together, one file per element of the longest; shorter ones start
//! again. A number in brackets is the file's mode. A path that ends in a slash is an empty folder.
//! `include NAME` takes in the text `parts/NAME` beside a text that was read from a file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A machine that is a folder of files, removed when dropped.
pub struct FixtureMachine {
    folder: tempfile::TempDir,
}

impl FixtureMachine {
    /// Unfolds the text.
    ///
    /// # Panics
    /// If the text is malformed: it is a test's own.
    pub fn new(manifest: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut lines = manifest.lines().enumerate();
        while let Some((at, line)) = lines.next() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some((path, end)) = line.split_once(" <<") {
                let text: Vec<&str> =
                    lines.by_ref().map(|(_, line)| line).take_while(|line| *line != end).collect();
                write(folder.path(), path, &(text.join("\n") + "\n"));
            } else if let Some((link, target)) = line.split_once(" -> ") {
                for (link, target) in unfold_pair(link, target) {
                    let link = folder.path().join(link);
                    fs::create_dir_all(link.parent().expect("a folder")).expect("folders");
                    symlink(target, link).expect("a link");
                }
            } else if let Some(path) = line.strip_suffix('/') {
                for (path, _) in unfold_pair(path, "") {
                    fs::create_dir_all(folder.path().join(path)).expect("folders");
                }
            } else {
                // Paths of powercap and PCI have colons; the separator has a blank behind it or ends the line.
                let (path, text) = line
                    .split_once(": ")
                    .or_else(|| line.strip_suffix(':').map(|path| (path, "")))
                    .unwrap_or_else(|| panic!("line {}: '{line}' has no ': '", at + 1));
                for (path, text) in unfold_pair(path, text) {
                    write(folder.path(), &path, &(text + "\n"));
                }
            }
        }
        Self { folder }
    }

    /// Unfolds the text of a file.
    ///
    /// # Panics
    /// As [`FixtureMachine::new`], and if the file or one that it includes cannot be read.
    #[allow(dead_code, reason = "this file is compiled into the library's tests and into others")]
    pub fn load(path: &Path) -> Self {
        let read = |path: &Path| {
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let parts = path.with_file_name("parts");
        let text = read(path);
        let lines = text.lines().map(|line| match line.strip_prefix("include ") {
            Some(part) => read(&parts.join(part)),
            None => format!("{line}\n"),
        });
        Self::new(&lines.collect::<String>())
    }

    /// Where its `sys`, `proc` and `dev` are.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Changes or adds a file.
    #[allow(dead_code, reason = "this file is compiled into the library's tests and into others")]
    pub fn write(&self, path: &str, text: &str) {
        write(self.path(), path, text);
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let (path, mode) = match path.trim_end().strip_suffix(']').and_then(|rest| rest.rsplit_once(" [")) {
        Some((path, mode)) => (path, u32::from_str_radix(mode, 8).ok()),
        None => (path, None),
    };
    let path: PathBuf = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, text).expect("a file");
    if let Some(mode) = mode {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("the mode can be set");
    }
}

fn unfold_pair(left: &str, right: &str) -> Vec<(String, String)> {
    let longest = lists(left).iter().chain(&lists(right)).map(|(_, list)| list.len()).max().unwrap_or(1);
    (0..longest).map(|at| (element(left, at), element(right, at))).collect()
}

/// The lists of a text, as written and as elements.
fn lists(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').expect("a closing brace");
        let elements = inside.split(',').flat_map(|part| match part.split_once('-') {
            Some((first, last)) => {
                let (first, last): (u32, u32) =
                    (first.parse().expect("a number"), last.parse().expect("a number"));
                (first..=last).map(|n| n.to_string()).collect()
            }
            None => vec![part.to_owned()],
        });
        found.push((format!("{{{inside}}}"), elements.collect()));
        rest = after;
    }
    found
}

fn element(text: &str, at: usize) -> String {
    lists(text).into_iter().fold(text.to_owned(), |text, (written, elements)| {
        text.replacen(&written, &elements[at % elements.len()], 1)
    })
}

#[test]
fn a_text_becomes_a_tree() {
    let machine = FixtureMachine::new(
        "# two CPUs\nsys/cpu{0-1}/core: {5,6} of {0-1}\nsys/class/rapl:0 [0400]: 7\nsys/empty/\n\
         sys/link -> class\nproc/cpuinfo <<end\na: 1\n\nb\nend\nsys/last:\n",
    );
    let read = |path: &str| fs::read_to_string(machine.path().join(path)).expect("a file");
    assert_eq!(read("sys/cpu0/core"), "5 of 0\n");
    assert_eq!(read("sys/cpu1/core"), "6 of 1\n");
    assert_eq!(read("proc/cpuinfo"), "a: 1\n\nb\n");
    assert_eq!(read("sys/link/rapl:0"), "7\n");
    assert_eq!(read("sys/last"), "\n");
    let mode = fs::metadata(machine.path().join("sys/class/rapl:0")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    assert!(machine.path().join("sys/empty").is_dir());
}

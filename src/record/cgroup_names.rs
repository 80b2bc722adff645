//! Paths of control groups, as records: samples tell groups by number only.
//!
//! The kernel tells the path of a group that is made while its maker is recorded. Those that were there before, and
//! those that others make while single tasks are recorded, are looked up here.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use perf_data::encode::{self, SampleId};

use crate::machine::Roots;
use crate::record::process_state::ProcessState;

/// Looks up the control groups that there are.
#[derive(Debug)]
pub struct CgroupNames {
    /// The top of their hierarchy.
    top: PathBuf,
    /// The event that records are made of.
    event: u64,
    /// Numbers of those told.
    told: BTreeSet<u64>,
}

impl CgroupNames {
    /// Of the hierarchy whose groups samples tell; `None` where it is mounted nowhere. Its records are of the event `event`.
    pub fn find(roots: &Roots, event: u64) -> Option<Self> {
        let top = ProcessState::new(roots).sampled_control_groups()?;
        Some(Self { top, event, told: BTreeSet::new() })
    }

    /// Records of the groups that were not told before. They carry time zero: a group has one name all its life.
    pub fn describe(&mut self) -> Vec<u8> {
        let mut records = Vec::new();
        let mut folders = vec![self.top.clone()];
        while let Some(folder) = folders.pop() {
            // A group may be removed while it is looked at.
            let Ok(about) = fs::metadata(&folder) else { continue };
            self.tell(&folder, about.ino(), &mut records);
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let groups = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.extend(groups.map(|entry| entry.path()));
        }
        records
    }

    /// On 64-bit kernels a group's number is the inode number of its folder.
    fn tell(&mut self, folder: &Path, number: u64, records: &mut Vec<u8>) {
        if !self.told.insert(number) {
            return;
        }
        let inner = folder.strip_prefix(&self.top).unwrap_or(folder).as_os_str().as_bytes();
        let id = SampleId { pid: u32::MAX, tid: u32::MAX, id: self.event, ..SampleId::default() };
        // A path that no record holds stays a number.
        let _ = encode::cgroup(number, &[b"/", inner].concat(), &id, records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_is_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().join("sys/fs/cgroup");
        let make = |path: &str| fs::create_dir_all(top.join(path)).expect("a folder");
        make("system.slice/a.service");
        fs::write(top.join("cgroup.procs"), "1").expect("a file");
        let procfs = folder.path().join("proc/self");
        fs::create_dir_all(&procfs).expect("a folder");
        let line = format!("cgroup2 {} cgroup2 ro,nsdelegate 0 0\n", top.display());
        fs::write(procfs.join("mounts"), line).expect("a file");
        let mut names = CgroupNames::find(&Roots::under(folder.path()), 7).expect("mounted");
        let paths = |records: &[u8]| -> Vec<(u64, String)> {
            let mut found = Vec::new();
            let mut rest = records;
            while let Some(size) = rest.get(6..8) {
                let (record, more) = rest.split_at(usize::from(u16::from_le_bytes([size[0], size[1]])));
                let path = record[16..].split(|byte| *byte == 0).next().unwrap_or_default();
                let number = u64::from_le_bytes(record[8..16].try_into().expect("8 bytes"));
                found.push((number, String::from_utf8_lossy(path).into_owned()));
                rest = more;
            }
            found
        };
        let first = paths(&names.describe());
        let told: Vec<&str> = first.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(told, ["/", "/system.slice", "/system.slice/a.service"]);
        assert_eq!(first[2].0, fs::metadata(top.join("system.slice/a.service")).expect("there").ino());
        make("system.slice/b.service");
        let then = paths(&names.describe());
        assert_eq!(then.len(), 1);
        assert_eq!(then[0].1, "/system.slice/b.service");
        assert!(names.describe().is_empty());
    }
}

//! What the kernel told before the recording began: names, threads and mappings of running processes,
//! read from `/proc` and written as the records that the kernel would have made.
//!
//! They carry time zero, so they come before everything else in time order. Processes that end while
//! they are looked at are passed over.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use perf_data::encode::{self, MappingFields, RecordTooLong, SampleId};

use crate::identity::ControlGroups;
use crate::machine::Roots;
use crate::units::Timestamp;

const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;
const MAP_PRIVATE: u32 = 2;

/// Reads processes below the root of a proc file system.
#[derive(Debug, Clone)]
pub struct ProcessState {
    proc_root: PathBuf,
}

impl ProcessState {
    /// Processes of the machine that `roots` stand for.
    pub fn new(roots: &Roots) -> Self {
        Self { proc_root: roots.procfs.clone() }
    }

    /// Where control groups for perf events are mounted: those of version 1, then those of version 2.
    pub fn control_group_roots(&self) -> Vec<PathBuf> {
        let mounts = fs::read_to_string(self.proc_root.join("self/mounts")).unwrap_or_default();
        control_group_mounts(&mounts)
    }

    /// The control groups of a process, or of this one; none if it cannot be looked at.
    pub fn control_groups(&self, pid: Option<u32>) -> ControlGroups {
        let process = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        let text = fs::read_to_string(self.proc_root.join(process).join("cgroup"));
        ControlGroups::of_file(&text.unwrap_or_default())
    }

    /// The top folder of the hierarchy whose groups samples tell; `None` where it is mounted nowhere.
    pub fn sampled_control_groups(&self) -> Option<PathBuf> {
        let mounts = fs::read_to_string(self.proc_root.join("self/mounts")).unwrap_or_default();
        let (kind, option) = match self.control_groups(None).samples_tell_version_1() {
            true => ("cgroup", Some("perf_event")),
            false => ("cgroup2", None),
        };
        mounts_of(&mounts, kind, option).next()
    }

    /// Numbers of all processes.
    pub fn processes(&self) -> Vec<u32> {
        numbers_in(&self.proc_root)
    }

    /// Numbers of a process's threads; none if there is no such process.
    pub fn threads(&self, pid: u32) -> Vec<u32> {
        numbers_in(&self.proc_root.join(format!("{pid}/task")))
    }

    /// The process that a thread belongs to.
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        let status = fs::read_to_string(self.proc_root.join(format!("{tid}/status"))).ok()?;
        status_field(&status, "Tgid:")
    }

    /// A variable of the environment that a process was started with.
    pub fn environment_variable(&self, pid: u32, name: &str) -> Option<String> {
        let environment = fs::read(self.proc_root.join(format!("{pid}/environ"))).ok()?;
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        String::from_utf8(value.to_vec()).ok()
    }

    /// Whether there is such a process or thread that has not ended.
    pub fn is_alive(&self, tid: u32) -> bool {
        let status = fs::read_to_string(self.proc_root.join(format!("{tid}/status"))).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
    }

    /// Whether the kernel keeps what code a process has from this user: without it, samples of it have no names.
    pub fn hides_code(&self, pid: u32) -> bool {
        let maps = fs::File::open(self.proc_root.join(format!("{pid}/maps")));
        maps.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    }

    /// Appends the state of a process, in records of the event `id`: birth, name and mappings, then
    /// birth and name of each thread.
    pub fn describe(&self, pid: u32, id: u64, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        let Ok(status) = fs::read_to_string(self.proc_root.join(format!("{pid}/status"))) else {
            return Ok(());
        };
        let parent = status_field(&status, "PPid:").unwrap_or(0);
        self.describe_thread(pid, pid, (parent, parent), id, out)?;
        if let Ok(maps) = fs::read(self.proc_root.join(format!("{pid}/maps"))) {
            for mapping in maps.split(|&byte| byte == b'\n').filter_map(|line| executable_mapping(pid, line))
            {
                encode::mmap2(&mapping, &sample_id(pid, pid, id), out)?;
            }
        }
        for tid in self.threads(pid).into_iter().filter(|&tid| tid != pid) {
            self.describe_thread(pid, tid, (pid, pid), id, out)?;
        }
        Ok(())
    }

    fn describe_thread(
        &self,
        pid: u32,
        tid: u32,
        parent: (u32, u32),
        id: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordTooLong> {
        let Ok(name) = fs::read(self.proc_root.join(format!("{pid}/task/{tid}/comm"))) else { return Ok(()) };
        let id = sample_id(pid, tid, id);
        encode::fork((pid, tid), parent, &id, out)?;
        encode::comm(pid, tid, name.strip_suffix(b"\n").unwrap_or(&name), false, &id, out)
    }
}

fn sample_id(pid: u32, tid: u32, id: u64) -> SampleId {
    SampleId { pid, tid, time: Timestamp::default(), cpu: 0, id }
}

fn numbers_in(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut numbers: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// From lines of `/proc/self/mounts`: `device place type options ...`.
fn control_group_mounts(mounts: &str) -> Vec<PathBuf> {
    mounts_of(mounts, "cgroup", Some("perf_event")).chain(mounts_of(mounts, "cgroup2", Some("rw"))).collect()
}

/// Where file systems of this kind are mounted, with this option if there is one.
fn mounts_of<'a>(
    mounts: &'a str,
    kind: &'a str,
    option: Option<&'a str>,
) -> impl Iterator<Item = PathBuf> + 'a {
    mounts.lines().filter_map(move |line| {
        let words: Vec<&str> = line.split(' ').collect();
        let has = |option| words.get(3).is_some_and(|options| options.split(',').any(|word| word == option));
        (words.get(2) == Some(&kind) && option.is_none_or(has)).then(|| PathBuf::from(words[1]))
    })
}

fn status_field(status: &str, name: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// A line of `/proc/PID/maps` (`start-end rwxp offset major:minor inode path`), if code can be in it.
fn executable_mapping(pid: u32, line: &[u8]) -> Option<MappingFields<'_>> {
    // The path may hold any byte but a line feed, so only the part before it is text.
    let mut at = 0;
    let mut word = || {
        let start = at + line[at..].iter().position(|&byte| byte != b' ')?;
        let end = start + line[start..].iter().position(|&byte| byte == b' ').unwrap_or(line.len() - start);
        at = end;
        std::str::from_utf8(&line[start..end]).ok()
    };
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let addresses: Range<u64> = hexadecimal(start)?..hexadecimal(end)?;
    let permissions = word()?.as_bytes();
    let file_offset = hexadecimal(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let device = (hexadecimal(major)? as u32, hexadecimal(minor)? as u32);
    let inode = word()?.parse().ok()?;
    let path = line[at..].trim_ascii_start();

    let has = |index: usize, letter, bit| if permissions.get(index) == Some(&letter) { bit } else { 0 };
    let protection = has(0, b'r', PROT_READ) | has(1, b'w', PROT_WRITE) | has(2, b'x', PROT_EXEC);
    (protection & PROT_EXEC != 0).then_some(MappingFields {
        pid,
        tid: pid,
        addresses,
        file_offset,
        inode: (device.0, device.1, inode),
        protection,
        flags: if permissions.get(3) == Some(&b's') { MAP_SHARED } else { MAP_PRIVATE },
        path: if path.is_empty() { b"//anon" } else { path },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_mapping_is_read_with_its_path_as_bytes() {
        let line = b"7f00-7f80 r-xp 00001000 08:1f 42                     /tmp/with space \xff";
        let mapping = executable_mapping(9, line).expect("executable");
        assert_eq!(mapping.addresses, 0x7f00..0x7f80);
        assert_eq!(mapping.file_offset, 0x1000);
        assert_eq!(mapping.inode, (8, 0x1f, 42));
        assert_eq!(mapping.protection, PROT_READ | PROT_EXEC);
        assert_eq!(mapping.path, b"/tmp/with space \xff");
    }

    #[test]
    fn memory_without_a_file_is_called_anonymous_and_data_are_left_out() {
        let line = b"7f00-7f80 rwxp 00000000 00:00 0 ";
        assert_eq!(executable_mapping(9, line).expect("executable").path, b"//anon");
        assert_eq!(executable_mapping(9, b"7f00-7f80 rw-p 00000000 00:00 0 "), None);
        assert_eq!(executable_mapping(9, b""), None);
        assert_eq!(executable_mapping(9, b"7f00 rw-p"), None);
    }

    #[test]
    fn control_groups_are_where_perf_events_are_grouped() {
        let mounts = "cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup2 /c/unified cgroup2 rw,relatime 0 0\n\
                      cgroup /c/perf cgroup rw,perf_event 0 0\n";
        assert_eq!(control_group_mounts(mounts), [Path::new("/c/perf"), Path::new("/c/unified")]);
    }

    /// What a recording of a process says of its group and what its samples say is of one hierarchy, where both versions are used.
    #[test]
    fn groups_of_processes_and_of_samples_are_of_one_hierarchy() {
        let root = tempfile::tempdir().expect("folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("folder");
            fs::write(path, text).expect("file");
        };
        write(
            "self/mounts",
            "cgroup2 /c/unified cgroup2 rw,relatime 0 0\ncgroup /c/perf cgroup rw,perf_event 0 0\n",
        );
        let state = ProcessState { proc_root: root.path().to_owned() };
        let found = |groups: &str| {
            write("self/cgroup", groups);
            write("12/cgroup", groups);
            let of_process = state.control_groups(Some(12)).sampled().map(str::to_owned);
            (state.sampled_control_groups(), of_process)
        };
        let expected = |top: &str, path: &str| (Some(PathBuf::from(top)), Some(path.to_owned()));
        let version_1 = "9:perf_event:/docker/x\n1:name=systemd:/docker/x\n0::/system.slice/docker.service\n";
        assert_eq!(found(version_1), expected("/c/perf", "/docker/x"));
        // The mount is of a hierarchy that the kernel has given up.
        assert_eq!(found("1:name=systemd:/a\n0::/b\n"), expected("/c/unified", "/b"));
        // Not mounted where the recorder looks: numbers are all that samples tell.
        write("self/mounts", "cgroup2 /c/unified cgroup2 rw 0 0\n");
        assert_eq!(found(version_1), (None, Some("/docker/x".to_owned())));
    }

    #[test]
    fn a_process_is_described_by_its_threads_and_mappings() {
        let root = tempfile::tempdir().expect("folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("folder");
            fs::write(path, text).expect("file");
        };
        write("12/status", "Name:\tx\nState:\tS (sleeping)\nTgid:\t12\nPPid:\t3\n");
        write("12/task/12/comm", "main\n");
        write("12/task/13/comm", "worker\n");
        write("12/maps", "1000-2000 r-xp 0 08:01 5 /bin/x\n3000-4000 rw-p 0 00:00 0\n");
        write("version", "");
        let state = ProcessState { proc_root: root.path().to_owned() };
        assert_eq!(state.processes(), [12]);
        assert_eq!(state.threads(12), [12, 13]);
        assert_eq!(state.process_of(12), Some(12));
        assert!(state.is_alive(12) && !state.is_alive(99));
        write("14/status", "Name:\tx\nState:\tZ (zombie)\n");
        assert!(!state.is_alive(14));
        let mut out = Vec::new();
        state.describe(12, 77, &mut out).expect("short");
        let mut types = Vec::new();
        let mut at = 0;
        while at < out.len() {
            types.push(out[at]);
            at += usize::from(u16::from_le_bytes([out[at + 6], out[at + 7]]));
        }
        // FORK, COMM, MMAP2, then FORK and COMM of the thread.
        assert_eq!(types, [7, 3, 10, 7, 3]);
        state.describe(99, 77, &mut out).expect("nothing to describe");
    }
}

//! Samples that tell the control groups of their tasks.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use eprof::recording::Recording;
use eprof_testbed::{Started, eprof, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use perf_data::record::Record;
use serde_json::Value;

use super::attach::start;
use super::harness::{Folder, can_record, stderr, wait_until};

/// A tree of control groups, removed in the end.
struct Groups {
    folders: Vec<PathBuf>,
}

impl Groups {
    /// `None` where none may be made; that is said.
    fn make(names: &[&str]) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let is_perf = |line: &&str| line.contains(" cgroup ") && line.contains("perf_event");
        let mount =
            mounts.lines().find(is_perf).or_else(|| mounts.lines().find(|line| line.contains(" cgroup2 ")));
        let Some(root) = mount.and_then(|line| line.split(' ').nth(1)) else {
            skip("no control groups are mounted");
            return None;
        };
        // Tests of one process run at the same time.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let top = Path::new(root).join(format!("eprof-groups-{}-{number}", std::process::id()));
        let mut made = Self { folders: Vec::new() };
        for folder in [top.clone()].into_iter().chain(names.iter().map(|name| top.join(name))) {
            if let Err(error) = std::fs::create_dir(&folder) {
                skip(&format!("this user may not make control groups: {error}"));
                return None;
            }
            made.folders.push(folder);
        }
        Some(made)
    }

    fn path(&self, number: usize) -> String {
        let top = self.folders[0].file_name().expect("a name").to_string_lossy();
        let inner = self.folders[number + 1].strip_prefix(&self.folders[0]).expect("below");
        format!("/{top}/{}", inner.display())
    }

    fn put(&self, number: usize, process: &Started) {
        let list = self.folders[number + 1].join("cgroup.procs");
        std::fs::write(list, process.id().to_string()).expect("moved");
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // The processes in them have just been ended: the kernel may need a moment.
        for folder in self.folders.iter().rev() {
            for _ in 0..200 {
                if std::fs::remove_dir(folder).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// Whether samples tell groups; says so where they do not.
fn tells_groups(folder: &Folder) -> bool {
    let output =
        folder.record(["--all-cgroups", "-o", "probe.data", "--", "true"]).output().expect("eprof runs");
    let said = stderr(&output);
    let is_refused = said.contains("PERF_SAMPLE_CGROUP");
    if is_refused {
        skip(&format!("this kernel tells no control groups: {said}"));
    }
    !is_refused
}

fn rows(folder: &Folder, arguments: &[&str]) -> (Value, Vec<(String, f64)>) {
    let output = eprof()
        .args(["report", "--format", "json"])
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = |row: &Value| {
        (row["name"].as_str().expect("a name").to_owned(), row["self_joules"].as_f64().expect("joules"))
    };
    let rows = report["rows"].as_array().expect("rows").iter().map(row).collect();
    (report, rows)
}

const POD: &str = "kubepods-pod2f1c9e3a_7b44_4b1e_9c7e_0d6d5f1f2a3b.slice";
const HOSTILE: &str = "b\u{1b}[31mred";

#[test]
fn joules_of_the_whole_machine_are_told_by_control_group() {
    let folder = Folder::new();
    if !can_record() || !tells_groups(&folder) {
        return;
    }
    let Some(groups) = Groups::make(&[POD, HOSTILE]) else { return };
    // Two threads for one, so that a CPU's load is not the other's.
    let [first, second] = [start("spin:60000"), start("spin:60000")];
    groups.put(0, &first);
    groups.put(1, &second);
    let arguments = ["-a", "--meter", "estimate", "--watts", "0:40", "--duration", "1"];
    let output = folder.record(arguments).output().expect("eprof runs");
    if !output.status.success() {
        return skip(&format!("the whole machine is not recorded here: {}", stderr(&output)));
    }
    let (_, by_group) = rows(&folder, &["--by", "cgroup"]);
    let of = |name: &str| by_group.iter().find(|(found, _)| found == name).map(|(_, joules)| *joules);
    let pod = of("pod 2f1c9e3a-7b44-4b1e-9c7e-0d6d5f1f2a3b").unwrap_or_else(|| panic!("{by_group:?}"));
    let shown = groups.path(1).replace('\u{1b}', "\\u{1b}");
    let other = of(&shown).unwrap_or_else(|| panic!("no {shown}: {by_group:?}"));
    assert!(pod > 0.0 && other > 0.0, "{by_group:?}");

    // Whatever else ran: the joules of a group are those of its process, and all parts are the whole.
    let (_, by_process) = rows(&folder, &["--by", "process"]);
    let sum = |rows: &[(String, f64)]| rows.iter().map(|(_, joules)| joules).sum::<f64>();
    let is_close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    assert!(is_close(sum(&by_group), sum(&by_process)), "{by_group:?} {by_process:?}");
    let (report, whole) = rows(&folder, &["--by", "cgroup", "--whole"]);
    let total = report["total_joules"].as_f64().expect("joules");
    assert!(is_close(sum(&whole), total), "{whole:?} {total}");
    let (_, with_functions) = rows(&folder, &["--by", "cgroup,function"]);
    assert!(is_close(sum(&with_functions), sum(&by_group)), "{with_functions:?}");

    // The groups of the samples are those of perf, which reads the file, too.
    let Ok(perf) = Command::new("perf")
        .args(["report", "--stdio", "--no-children", "-g", "none", "--sort", "cgroup", "-t", "@", "-i"])
        .arg(folder.data())
        .output()
    else {
        return skip("there is no perf");
    };
    let text = String::from_utf8_lossy(&perf.stdout).into_owned();
    for number in [0, 1] {
        let path = groups.path(number);
        assert!(text.lines().any(|line| line.ends_with(&path)), "no {path:?} in perf's: {text}");
    }
}

/// Where processes are in no group of the hierarchy that events follow, as with services of version 1, one row says nothing.
#[test]
fn that_all_is_one_root_group_is_said() {
    let folder = Folder::new();
    if !can_record() || !tells_groups(&folder) {
        return;
    }
    let programs = [start("spin:60000"), start("spin:60000")];
    let pids = programs.each_ref().map(|program| program.id().to_string()).join(",");
    let output =
        folder.record(["--all-cgroups", "-p", &pids, "--duration", "0.5"]).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, by_group) = rows(&folder, &["--by", "cgroup"]);
    let is_root = by_group.iter().all(|(name, _)| name == "/");
    let report = eprof().args(["report", "--by", "cgroup"]).current_dir(folder.path()).output();
    let said = stderr(&report.expect("eprof runs"));
    assert_eq!(said.contains("of the control group /: "), is_root, "{by_group:?}: {said}");
}

/// The groups that samples tell by number, and the names of groups, as far as a recording goes by now.
fn told(path: &Path) -> (BTreeSet<u64>, Vec<(u64, String)>) {
    let (mut numbers, mut named) = (BTreeSet::new(), Vec::new());
    // At first it is not there, and then it has no whole header.
    let Ok(recording) = Recording::open(path) else { return (numbers, named) };
    let mut records = recording.records();
    while let Ok(Some((_, _, record))) = records.next() {
        match record {
            Record::Sample(sample) => numbers.extend(sample.cgroup),
            Record::Cgroup { id, path } => named.push((id, String::from_utf8_lossy(path).into_owned())),
            _ => {}
        }
    }
    (numbers, named)
}

#[test]
fn a_group_that_is_made_meanwhile_has_its_name() {
    let folder = Folder::new();
    if !can_record() || !tells_groups(&folder) {
        return;
    }
    let running = start("spin:60000");
    let pid = running.id().to_string();
    let mut command = folder.record(["--all-cgroups", "-p", &pid]);
    let mut recorder = Started::new(command.stderr(Stdio::null()));
    // Each step waits for what the recording has by then: under load a recorder takes long to begin, and longer to go on.
    wait_until("samples of the group before", || !told(&folder.data()).0.is_empty());
    // Made by this process, which is not recorded: the kernel does not tell the recorder.
    let groups = Groups::make(&["late"]);
    if let Some(groups) = &groups {
        groups.put(0, &running);
        let number = std::fs::metadata(&groups.folders[1]).expect("there").ino();
        wait_until("samples of the group that was made", || told(&folder.data()).0.contains(&number));
    }
    kill(Pid::from_raw(recorder.id() as i32), Signal::SIGINT).expect("it runs");
    assert!(recorder.wait().expect("ends").success());
    // A group is removed when nobody is in it any more.
    drop(running);
    let Some(groups) = groups else { return };
    let (numbers, named) = told(&folder.data());
    let late = named.iter().find(|(_, path)| *path == groups.path(0)).unwrap_or_else(|| panic!("{named:?}"));
    assert_eq!(numbers.len(), 2, "before and after: {numbers:?}");
    assert!(numbers.contains(&late.0), "{numbers:?} {late:?}");
    assert!(numbers.iter().all(|number| named.iter().any(|(id, _)| id == number)), "{numbers:?} {named:?}");
}

//! Where a recording comes from, as the recorder sees it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::hardware::MachineInfo;
use crate::identity::{Container, ControlGroups, Identity, Job, Labels, MachineId, Pod, WallClock};
use crate::machine::Roots;
use crate::record::options::TargetTasks;
use crate::record::process_state::ProcessState;

/// Longest file of the downward API and of the kernel that is read for it.
const LONGEST_FILE: u64 = 64 * 1024;

/// The identity of a recording of these tasks. A program that is started is where the recorder is: it gets the recorder's
/// environment and control group. Of running processes it is the first one's.
pub fn of(
    roots: &Roots,
    machine: &MachineInfo,
    tasks: &TargetTasks,
    started: Option<WallClock>,
    labels: &Labels,
) -> Identity {
    let pid = match tasks {
        TargetTasks::Processes(pids) | TargetTasks::Threads(pids) => pids.first().copied(),
        _ => None,
    };
    let state = ProcessState::new(roots);
    let variable = |name: &str| match pid {
        Some(pid) => state.environment_variable(pid, name),
        None => std::env::var(name).ok(),
    };
    let file = |path: &str| {
        // What lies in the recorder's own file system is not another process's.
        let inner =
            pid.map_or_else(|| roots.folder().to_owned(), |pid| roots.procfs.join(format!("{pid}/root")));
        read(&inner.join(path.trim_start_matches('/')))
    };
    let groups = match tasks {
        TargetTasks::ControlGroup(group) => ControlGroups::of_path(group.to_string_lossy().into_owned()),
        // Everything is in no group of its own.
        TargetTasks::System(_) => ControlGroups::default(),
        _ => state.control_groups(pid),
    };
    let job = Job::of_environment(variable);
    let job = match tasks {
        // A job's companion is started as a rank of a step of its own, and what it records of the machine is no rank's.
        TargetTasks::System(_) => Job { rank: None, ..job },
        _ => job,
    };
    Identity {
        machine: read(&roots.folder().join("etc/machine-id")).and_then(|text| MachineId::of_file(&text)),
        boot: read(&roots.procfs.join("sys/kernel/random/boot_id")).map(|text| text.trim().to_owned()),
        pid_namespace: fs::metadata(roots.procfs.join("self/ns/pid")).ok().map(|namespace| namespace.ino()),
        started,
        job,
        container: Container::of_process(&groups),
        pod: Pod::find(&groups, &machine.hostname, variable, file),
        cgroup: groups.sampled().map(str::to_owned),
        labels: labels.clone(),
    }
}

fn read(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut text = String::new();
    fs::File::open(path).ok()?.take(LONGEST_FILE).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_a_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(path, text).expect("writable");
        };
        let raw = "0123456789abcdef0123456789abcdef";
        write("etc/machine-id", &format!("{raw}\n"));
        write("proc/sys/kernel/random/boot_id", "2f1c9e3a-7b44-4b1e-9c7e-0d6d5f1f2a3b\n");
        let container = "ab".repeat(32);
        write("proc/77/cgroup", &format!("0::/system.slice/docker-{container}.scope\n"));
        write("proc/77/environ", "A=1\0SLURM_JOB_ID=12\0PMI_RANK=3\0");
        let roots = Roots::under(folder.path());
        let labels = Labels::new([("version".to_owned(), "2".to_owned())]).expect("one");
        let tasks = TargetTasks::Processes(vec![77]);
        let found = of(&roots, &MachineInfo::default(), &tasks, None, &labels);
        assert_eq!(found.boot.as_deref(), Some("2f1c9e3a-7b44-4b1e-9c7e-0d6d5f1f2a3b"));
        assert_eq!((found.job.id.as_deref(), found.job.rank), (Some("12"), Some(3)));
        assert_eq!(found.container.as_ref().map(|container| container.id.as_str()), Some(container.as_str()));
        assert_eq!(found.labels.get("version"), Some("2"));
        let json = serde_json::to_string(&found).expect("JSON");
        assert!(found.machine.is_some() && !json.contains(raw), "the id itself is in no recording: {json}");
        assert_eq!(serde_json::from_str::<Identity>(&json).expect("JSON"), found);
    }
}

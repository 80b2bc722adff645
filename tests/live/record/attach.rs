//! Recording what runs already.

use std::process::{Command, Stdio};
use std::time::Duration;

use eprof_testbed::{Started, eprof, skip};

use super::harness::{Contents, Folder, can_record, stderr};
use super::workload;

pub fn start(name: &str) -> Started {
    let line = workload::command(name);
    let mut command = Command::new(&line[0]);
    let child = Started::new(command.args(&line[1..]).stdout(Stdio::null()).stderr(Stdio::null()));
    // Until it is the workload and no longer `env`.
    std::thread::sleep(Duration::from_millis(200));
    child
}

#[test]
fn a_running_process_is_recorded_until_it_ends() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut running = start("spin:1200");
    // It is waited for beside eprof, since a process that nobody waits for has not quite ended.
    let pid = running.id().to_string();
    let reaper = std::thread::spawn(move || running.wait().expect("ends"));
    let output = folder.record(["-p", &pid]).output().expect("eprof runs");
    reaper.join().expect("reaped");
    assert!(output.status.success(), "{}", stderr(&output));
    let contents = Contents::read(&folder.data());
    assert!(contents.samples > 100 && contents.is_complete, "{contents:?}");
    assert!(contents.comms.iter().any(|name| name.starts_with("live-")), "named: {:?}", contents.comms);
}

/// Its joules are none, and the machine's are not taken for its own.
#[test]
fn an_idle_process_has_none_of_the_machines_joules() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let idle = Started::new(Command::new("sleep").arg("600").stdout(Stdio::null()));
    let pid = idle.id().to_string();
    let output = folder.record(["-p", &pid, "--duration", "0.3"]).output().expect("eprof runs");
    let said = stderr(&output);
    assert!(said.contains("0 samples") && said.contains("nothing was sampled"), "{said}");
    let report = eprof().args(["report", "-i"]).arg(folder.data()).output().expect("eprof runs");
    let table = String::from_utf8_lossy(&report.stdout).replace("\n  ", " ");
    if table.contains("no joules") {
        return;
    }
    assert!(said.contains("the whole machine "), "{said}");
    assert!(table.contains("energy of the whole machine; what was recorded was never sampled"), "{table}");
}

#[test]
fn a_time_limit_ends_an_attached_recording() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut running = start("spin:60000");
    let pid = running.id().to_string();
    let output = folder.record(["-p", &pid, "--duration", "0.3"]).output().expect("eprof runs");
    assert!(running.try_wait().expect("known").is_none(), "the process goes on");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(Contents::read(&folder.data()).samples > 20);
}

#[test]
fn a_command_ends_the_recording_of_what_runs_already() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut running = start("spin:60000");
    let pid = running.id().to_string();
    let output = folder
        .record(["-g", "-p", &pid, "--", "sh", "-c", "sleep 0.3; exit 3"])
        .output()
        .expect("eprof runs");
    assert!(running.try_wait().expect("known").is_none(), "the process goes on");
    assert_eq!(output.status.code(), Some(3), "the command's own status: {}", stderr(&output));
    let contents = Contents::read(&folder.data());
    assert!(contents.samples > 20 && contents.is_complete, "{contents:?}");
    assert!(!contents.comms.contains("sleep"), "the command is not recorded: {contents:?}");
}

#[test]
fn a_command_is_ended_when_nothing_is_left_to_record() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut running = start("spin:600");
    let pid = running.id().to_string();
    let reaper = std::thread::spawn(move || running.wait().expect("ends"));
    let output = folder.record(["-p", &pid, "--", "sleep", "10000"]).output().expect("eprof runs");
    reaper.join().expect("reaped");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(Contents::read(&folder.data()).is_complete);
}

#[test]
fn one_thread_of_several_is_recorded_alone() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let running = start("threads:100000");
    let threads: Vec<u32> = std::fs::read_dir(format!("/proc/{}/task", running.id()))
        .expect("threads")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    assert!(threads.len() > 1);
    let tid = running.id().to_string();
    let output = folder.record(["-t", &tid, "--duration", "0.2"]).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let contents = Contents::read(&folder.data());
    assert!(contents.sampled_threads.iter().all(|&sampled| sampled == running.id()), "{contents:?}");
}

#[test]
fn a_control_group_is_recorded_alone() {
    if !can_record() {
        return;
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let Some(root) =
        mounts.lines().find(|line| line.contains(" cgroup2 ")).and_then(|line| line.split(' ').nth(1))
    else {
        return skip("no control groups of version 2 are mounted");
    };
    let name = format!("eprof-test-{}", std::process::id());
    let group = std::path::Path::new(root).join(&name);
    if std::fs::create_dir(&group).is_err() {
        return skip("this user may not make control groups");
    }
    let folder = Folder::new();
    let inside = start("spin:60000");
    let outside = start("spin:60000");
    let moved = std::fs::write(group.join("cgroup.procs"), inside.id().to_string());
    let output = folder.record(["--cgroup", &name, "--duration", "0.3"]).output().expect("eprof runs");
    let [inside, outside] = [inside, outside].map(|child| child.id());
    std::fs::remove_dir(&group).expect("removed");
    moved.expect("moved");
    if !output.status.success() {
        return skip(&format!("this kernel does not count by group: {}", stderr(&output)));
    }
    let contents = Contents::read(&folder.data());
    assert!(contents.samples > 20);
    // The workload works in a thread of its own.
    assert!(!contents.sampled_threads.contains(&outside));
    assert!(contents.sampled_threads.iter().all(|&tid| tid >= inside && tid < outside), "{contents:?}");
}

#[test]
fn nobody_to_attach_to_is_said() {
    let folder = Folder::new();
    for option in ["-p", "-t"] {
        let output = folder.record([option, "4194305"]).output().expect("eprof runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("4194305"), "{}", stderr(&output));
        assert!(!folder.data().exists());
    }
}

#[test]
fn the_neighbours_of_a_program_are_sampled_on_request() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let neighbour = start("spin:60000");
    let output = folder
        .record(["--neighbours", "--"])
        .args(workload::command("spin:300"))
        .output()
        .expect("eprof runs");
    drop(neighbour);
    if !output.status.success() {
        return skip("this user may not sample all processes");
    }
    let recording = eprof::recording::Recording::open(&folder.data()).expect("readable");
    let metadata = recording.metadata().expect("metadata");
    assert!(metadata.system_wide_samples);
    assert!(matches!(metadata.target, eprof::recording::metadata::Target::Command { .. }));
    assert!(Contents::read(&folder.data()).sampled_threads.len() > 1);
}

#[test]
fn everything_is_recorded_where_that_is_permitted() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let output =
        folder.record(["-a", "--"]).args(workload::command("spin:300")).output().expect("eprof runs");
    if !output.status.success() {
        let said = stderr(&output);
        assert!(said.contains("perf_event_paranoid"), "{said}");
        return skip("this user may not sample all processes");
    }
    let contents = Contents::read(&folder.data());
    assert!(contents.sampled_threads.len() > 1 && contents.samples > 100, "{contents:?}");
    assert!(!contents.sampled_threads.contains(&0), "the idle task is left out of a clock's samples");
}

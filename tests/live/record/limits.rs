//! Full disks, small limits: the recording ends with a clear error, the program goes on.

use std::path::Path;
use std::process::Output;

use eprof::units::Joules;
use eprof_testbed::{Started, eprof, has_program, skip};

use super::harness::{Contents, Folder, can_record, stderr, wait_until};
use super::workload;

/// Runs `eprof record OPTIONS -- WORKLOAD` in a shell that first does `setup`.
fn record_in_shell(folder: &Folder, setup: &str, options: &str, workload: &str) -> Output {
    let program: Vec<String> =
        workload::command(workload).iter().map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let eprof = env!("CARGO_BIN_EXE_eprof");
    let line = format!("{setup} && exec {eprof} record {options} -- {}", program.join(" "));
    std::process::Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().expect("a shell")
}

/// The recording fills the room that it had, but for less than a record and what a file system rounds, and
/// has the energy readings of its samples.
#[track_caller]
fn assert_filled(path: &Path, room: u64) {
    let size = std::fs::metadata(path).expect("a file").len();
    assert!(size <= room && size + 4096 >= room, "{size} bytes of {room}");
    let contents = Contents::read(path);
    assert!(contents.error.is_none() && !contents.readings.is_empty(), "{contents:?}");
    // With a callchain and what the recorder adds itself a sample takes some 150 bytes.
    assert!(contents.samples * 400 > size, "{contents:?}");
}

#[test]
fn a_limit_of_the_files_size_ends_the_recording_not_the_program() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // Blocks of 512 bytes: 64 KiB, some 300 samples.
    let output = record_in_shell(&folder, "ulimit -f 128", "-F 5000", "spin:600");
    assert_eq!(output.status.code(), Some(1), "the program succeeded, the recording did not");
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    assert_filled(&folder.data(), 64 << 10);
    // What is said at the end is what the file has, not what there was no room for.
    let contents = Contents::read(&folder.data());
    let energies = contents.readings.iter().map(|(_, reading)| reading.energy.as_joules());
    let (least, most) =
        energies.fold((f64::MAX, 0.0f64), |(least, most), joules| (least.min(joules), most.max(joules)));
    let said = stderr(&output);
    let domains: std::collections::BTreeSet<&String> =
        contents.readings.iter().map(|(name, _)| name).collect();
    if domains.len() == 1 {
        let joules = Joules::from_joules(most - least);
        assert!(
            said.contains(&format!("{joules} estimated")) || said.contains(&format!("{joules} measured")),
            "{said}"
        );
    }
}

#[test]
fn a_recording_that_somebody_removed_is_missed() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // The file has its name soon after the program was started; within ten seconds.
    let wait =
        "i=0; until [ -e eprof.data ] || [ $i = 1000 ]; do sleep 0.01; i=$((i+1)); done; rm eprof.data";
    let output = folder.record(["sh", "-c", &format!("{wait}; exit 3")]).output().expect("eprof runs");
    assert_eq!(output.status.code(), Some(3), "the program's own status");
    assert!(stderr(&output).contains("eprof.data was removed while it was written"), "{}", stderr(&output));
    let output = folder.record(["sh", "-c", wait]).output().expect("eprof runs");
    assert_eq!(output.status.code(), Some(1), "the program succeeded, the recording did not");
}

#[test]
fn the_programs_status_is_passed_on_though_nobody_listens() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    for verb in ["record", "stat"] {
        let mut eprof = eprof();
        eprof.args([verb, "--", "sh", "-c", "exit 3"]).current_dir(folder.path());
        let status =
            eprof.stderr(writer.try_clone().expect("a copy")).stdout(std::process::Stdio::null()).status();
        assert_eq!(status.expect("eprof runs").code(), Some(3), "{verb}");
    }
}

#[test]
fn a_full_disk_ends_the_recording_not_the_program() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).expect("folder");
    let mounted =
        has_program("mount", &["-t", "tmpfs", "-o", "size=128k", "none", small.to_str().expect("text")]);
    if !mounted {
        return skip("only root can mount a small disk");
    }
    let output = record_in_shell(&folder, "true", "-o small/eprof.data -F 5000", "spin:600");
    let filled = std::panic::catch_unwind(|| assert_filled(&small.join("eprof.data"), 128 << 10));
    assert!(has_program("umount", &[small.to_str().expect("text")]));
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
    if let Err(panic) = filled {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn too_few_open_files_are_explained() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // Root may raise even the hard limit, so root becomes somebody else, who may not.
    let unprivileged = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    if nix::unistd::geteuid().is_root() && !has_program("setpriv", &["--version"]) {
        return skip("no program `setpriv`");
    }
    let exec = if nix::unistd::geteuid().is_root() { unprivileged } else { "" };
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("mode");
    let eprof = super::rights::readable_eprof(&folder);
    let line = format!("ulimit -n 20 && exec {exec} {} record true", eprof.display());
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder.path())
        .output()
        .expect("a shell");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("ulimit -n"), "{}", stderr(&output));
}

/// The kernel says how many records found no room in front of the next one that finds some. Here there is no next one: the recorder
/// is stopped until the program has ended.
#[test]
fn what_was_lost_at_last_is_told() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let spin = "kill -STOP $PPID; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let mut record = folder.record(["-F", "20000", "-g", "--", "sh", "-c", spin]);
    let child = Started::new(record.stderr(std::process::Stdio::piped()));
    let state_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let has_ended = || {
        let children = std::fs::read_to_string(&children).unwrap_or_default();
        let mut children = children.split_whitespace().filter_map(|child| child.parse().ok());
        children.any(|child| state_of(child) == Some('Z'))
    };
    wait_until("the program to end", || state_of(child.id()) == Some('T') && has_ended());
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGCONT)
        .expect("eprof is there");
    let output = child.wait_with_output().expect("eprof ends");
    assert!(output.status.success(), "{}", stderr(&output));
    let contents = Contents::read(&folder.data());
    assert!(contents.lost > 0, "its ring was to overflow: {contents:?}");
    let said = stderr(&output);
    let told = said.rsplit_once(" lost, ").and_then(|(before, _)| before.rsplit(' ').next());
    assert_eq!(told.map(|number| number.replace(',', "")), Some(contents.lost.to_string()), "{said}");
    // Only counters of Linux 6.0 and later count what they lost.
    if !contents.lost_by_counters.is_empty() {
        let counted: u64 = contents.lost_by_counters.values().sum();
        assert_eq!(contents.lost, counted, "{contents:?}");
        assert!(said.contains(&format!("{counted} samples of event")), "{said}");
    }
}

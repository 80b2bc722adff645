//! What an ordinary user gets.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common;
use crate::harness::{Contents, Folder, can_record, stderr};

const NOBODY: u32 = 65534;

/// The binary where every user can execute it: the build folder may be closed to others.
pub fn readable_eprof(folder: &Folder) -> PathBuf {
    let copy = folder.path().join("eprof");
    fs::copy(env!("CARGO_BIN_EXE_eprof"), &copy).expect("copied");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("mode");
    copy
}

/// `eprof record` as an ordinary user, in a folder that this user may write to.
fn record_as_nobody(folder: &Folder, arguments: &[&str]) -> Option<Output> {
    if !nix::unistd::geteuid().is_root() || !common::has_program("setpriv", &["--version"]) {
        common::skip("only root can become another user, by `setpriv`");
        return None;
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let eprof = readable_eprof(folder);
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"])
        .arg(eprof)
        .arg("record")
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .expect("setpriv runs");
    Some(output)
}

fn paranoid() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    text.trim().parse().unwrap_or(4)
}

#[test]
fn an_ordinary_user_records_what_is_permitted_and_is_told_the_rest() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let Some(output) =
        record_as_nobody(&folder, &["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
    else {
        return;
    };
    let said = stderr(&output);
    if paranoid() > 2 {
        assert!(!output.status.success() && said.contains("sysctl"), "{said}");
        return;
    }
    assert!(output.status.success(), "{said}");
    let contents = Contents::read(&folder.data());
    assert!(contents.samples > 10, "{contents:?}");
    assert_eq!(fs::metadata(folder.data()).expect("there").uid(), NOBODY);
    if paranoid() == 2 {
        assert!(said.contains("only the programs' own code"), "{said}");
        assert_eq!(contents.kernel_mappings, 0);
    }
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let Some(output) = record_as_nobody(&folder, &["-a", "true"]) else { return };
    if paranoid() <= 0 {
        return common::skip("everybody may sample everything here");
    }
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("perf_event_paranoid is"), "{said}");
    // A container's rights come from whoever starts it.
    let repairs = ["sudo sysctl kernel.perf_event_paranoid=0", "docker run --cap-add PERFMON"];
    assert!(repairs.iter().any(|repair| said.contains(repair)), "{said}");
    assert!(!folder.data().exists());
}

#[test]
fn the_program_runs_as_the_user_that_was_named() {
    if !can_record() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return common::skip("only root can run a program as another user");
    }
    let folder = Folder::new();
    let output =
        folder.record(["--user", "nobody", "sh", "-c", "id -u; id -g; id -G"]).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, b"65534\n65534\n65534\n");
    let contents = Contents::read(&folder.data());
    assert!(contents.comms.contains("sh"), "{:?}", contents.comms);
}

#[test]
fn under_sudo_the_file_is_the_callers() {
    if !can_record() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return common::skip("only root is called by sudo");
    }
    let folder = Folder::new();
    let status = folder.record(["true"]).env("SUDO_UID", "65534").env("SUDO_GID", "65534").status();
    assert!(status.expect("eprof runs").success());
    let file = fs::metadata(folder.data()).expect("there");
    assert_eq!((file.uid(), file.gid()), (NOBODY, NOBODY));
}

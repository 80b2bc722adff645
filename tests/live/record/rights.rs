//! What an ordinary user gets.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output};

use eprof_testbed::{has_program, skip};

use super::harness::{Contents, Folder, can_record, stderr};

const NOBODY: u32 = 65534;

/// The binary where every user can execute it: the build folder may be closed to others.
pub fn readable_eprof(folder: &Folder) -> PathBuf {
    let copy = folder.path().join("eprof");
    eprof_testbed::programs::copy(env!("CARGO_BIN_EXE_eprof"), &copy);
    copy
}

/// `eprof record` as an ordinary user, in a folder that this user may write to.
fn record_as_nobody(folder: &Folder, arguments: &[&str]) -> Option<Output> {
    if !nix::unistd::geteuid().is_root() || !has_program("setpriv", &["--version"]) {
        skip("only root can become another user, by `setpriv`");
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
fn a_companion_of_an_ordinary_user_is_told_what_it_lacks() {
    let folder = Folder::new();
    let Some(output) = record_as_nobody(&folder, &["--node", "--duration", "1", "-o", "node.data"]) else {
        return;
    };
    let said = stderr(&output);
    if paranoid() < 1 {
        assert!(output.status.success(), "everybody may sample everything: {said}");
        return;
    }
    assert!(!output.status.success() && said.contains("perf_event_paranoid"), "{said}");
    assert!(said.contains("PERFMON") || said.contains("perfmon"), "the repair: {said}");
    assert!(!folder.path().join("node.data").exists(), "nothing is left");
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
fn the_home_folder_of_somebody_else_is_no_error() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join(".config/eprof/models")).expect("a home");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).expect("mode");
    if !nix::unistd::geteuid().is_root() || !has_program("setpriv", &["--version"]) || paranoid() > 2 {
        return skip("only root can become another user, who must be permitted to sample");
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let eprof = readable_eprof(&folder);
    let run = |arguments: &[&str]| {
        let mut command = as_nobody(&eprof, &folder);
        command.args(arguments).env("HOME", &home).env_remove("XDG_CONFIG_HOME").env_remove("XDG_CACHE_HOME");
        let output = command.output().expect("runs");
        let said = stderr(&output);
        assert!(output.status.success() && !said.contains("home"), "{arguments:?}: {said}");
    };
    run(&["record", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
    run(&["report"]);
    run(&["flamegraph"]);
    run(&["script"]);
    run(&["stat", "true"]);
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let Some(output) = record_as_nobody(&folder, &["-a", "true"]) else { return };
    if paranoid() <= 0 {
        return skip("everybody may sample everything here");
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
fn what_another_users_process_needs_is_said_with_whose_it_is() {
    if !can_record() || paranoid() > 2 {
        return;
    }
    let folder = Folder::new();
    let Some(output) = record_as_nobody(&folder, &["-p", "1"]) else { return };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("process 1 is of root"), "{said}");
    assert!(said.contains("setcap cap_perfmon=ep") || said.contains("--cap-add PERFMON"), "{said}");
}

#[test]
fn code_that_the_kernel_hides_is_said_by_recorder_and_report() {
    if !can_record() || paranoid() > 2 {
        return;
    }
    let folder = Folder::new();
    let Some(eprof) = eprof_with_capabilities(&folder, "cap_perfmon=ep") else { return };
    let hidden = |eprof: &std::path::Path, data: &str| {
        let output = as_nobody(eprof, &folder)
            .args(["record", "-a", "-o", data, "sleep", "0.3"])
            .output()
            .expect("runs");
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        said.contains("/proc/PID/maps") && said.contains("setcap cap_perfmon,cap_syslog,cap_sys_ptrace=ep")
    };
    assert!(hidden(&eprof, "hidden.data"), "root's processes run here");
    let report = as_nobody(&eprof, &folder).args(["report", "hidden.data"]).output().expect("runs");
    let shown = [&report.stdout[..], &report.stderr[..]].concat();
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("cap_sys_ptrace"), "{shown}");
    let Some(eprof) = eprof_with_capabilities(&folder, "cap_perfmon,cap_syslog,cap_sys_ptrace=ep") else {
        return;
    };
    assert!(!hidden(&eprof, "open.data"), "there is nothing to repair");
    let is_known =
        |data: &str| Contents::read(&folder.path().join(data)).described.contains(&std::process::id());
    let known = ["hidden.data", "open.data"].map(is_known);
    assert_eq!(known, [false, true], "what is said to repair it does: this process of root's is known");
}

#[test]
fn the_program_runs_as_the_user_that_was_named() {
    if !can_record() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can run a program as another user");
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
        return skip("only root is called by sudo");
    }
    let folder = Folder::new();
    let status = folder.record(["true"]).env("SUDO_UID", "65534").env("SUDO_GID", "65534").status();
    assert!(status.expect("eprof runs").success());
    let file = fs::metadata(folder.data()).expect("there");
    assert_eq!((file.uid(), file.gid()), (NOBODY, NOBODY));
}

/// The sets of a process, as its status shows them.
fn capability_sets(status: &str) -> Vec<(&str, u64)> {
    let sets = status.lines().filter_map(|line| line.strip_prefix("Cap")?.split_once(":\t"));
    sets.map(|(name, set)| (name, u64::from_str_radix(set.trim(), 16).expect("a set"))).collect()
}

/// The binary with capabilities, in a folder where everybody may write.
fn eprof_with_capabilities(folder: &Folder, capabilities: &str) -> Option<PathBuf> {
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let eprof = readable_eprof(folder);
    let given = has_program("setcap", &[capabilities, eprof.to_str().expect("text")]);
    if !given || !has_program("setpriv", &["--version"]) {
        skip("needs root, `setcap`, `setpriv` and a file system that keeps capabilities");
        return None;
    }
    Some(eprof)
}

fn as_nobody(eprof: &std::path::Path, folder: &Folder) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(eprof);
    command.current_dir(folder.path());
    command
}

#[test]
fn a_binary_with_capabilities_gives_the_program_none_and_keeps_none() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let Some(eprof) = eprof_with_capabilities(&folder, "cap_perfmon,cap_syslog,cap_sys_rawio=ep") else {
        return;
    };
    // The shell's own sets, then those of its parent, which is the recorder.
    let script = "id -u; cat /proc/self/status; echo; cat /proc/$PPID/status";
    let output =
        as_nobody(&eprof, &folder).args(["record", "-a", "--", "sh", "-c", script]).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("65534\n"), "{said}");
    let (program, recorder) = said.split_once("\n\n").expect("two processes");
    assert!(recorder.contains("Name:\teprof"), "{recorder}");
    for status in [program, recorder] {
        let sets = capability_sets(status);
        assert_eq!(sets.len(), 5, "{status}");
        assert!(sets.iter().all(|(name, set)| *name == "Bnd" || *set == 0), "{sets:?}");
    }
    // What an ordinary user may not: samples of everything.
    let contents = Contents::read(&folder.data());
    assert!(contents.sampled_threads.len() > 1 || paranoid() <= 0, "{contents:?}");
    assert_eq!(fs::metadata(folder.data()).expect("there").uid(), NOBODY);
}

#[test]
fn a_binary_with_capabilities_loads_no_library_that_its_user_names() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let Some(eprof) = eprof_with_capabilities(&folder, "cap_perfmon=ep") else { return };
    let (source, library, trace) =
        ["evil.c", "libevil.so", "ran"].map(|name| folder.path().join(name)).into();
    let code = format!(
        "#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fopen({trace:?}, \"w\"); }}\n"
    );
    fs::write(&source, code).expect("written");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    if !built.is_ok_and(|status| status.success()) {
        return skip("no C compiler");
    }
    let record = |eprof: &std::path::Path| {
        let mut command = as_nobody(eprof, &folder);
        let output = command.args(["record", "--nvml-lib"]).arg(&library).arg("true").output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
    };
    record(&eprof);
    assert!(!trace.exists(), "the library's code ran with capabilities");
    // It is the capabilities, and not the library.
    assert!(has_program("setcap", &["-r", eprof.to_str().expect("text")]));
    record(&eprof);
    assert!(trace.exists() || paranoid() > 2);
}

/// What is wrong with a file that is not what was asked for says what stands in it.
#[test]
fn a_binary_with_capabilities_reads_no_file_for_its_user_that_this_one_may_not() {
    let folder = Folder::new();
    let Some(eprof) = eprof_with_capabilities(&folder, "cap_perfmon,cap_dac_read_search=ep") else { return };
    let secret = folder.path().join("secret.json");
    fs::write(&secret, "\"hunter2\"").expect("written");
    let agent = ["agent", "-o", "tables", "--listen", "none"];
    for (verb, option) in [
        (&["record", "--model"][..], &["true"][..]),
        (&["top", "--model"], &["true"]),
        (&["model", "show"], &[]),
        (&[&agent[..], &["--model"]].concat(), &[]),
        (&[&agent[..], &["--config"]].concat(), &[]),
        (&["report", "-i"], &[]),
    ] {
        let said = |mode| {
            fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).expect("mode");
            let mut command = as_nobody(&eprof, &folder);
            let output = command.args(verb).arg(&secret).args(option).output().expect("runs");
            assert!(!output.status.success(), "{verb:?}");
            stderr(&output)
        };
        let closed = said(0o600);
        assert!(closed.contains("Permission denied") && !closed.contains("hunter2"), "{verb:?}: {closed}");
        assert!(!said(0o644).contains("Permission denied"), "{verb:?}");
    }
}

#[test]
fn a_binary_with_capabilities_gives_the_program_the_users_environment() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let Some(eprof) = eprof_with_capabilities(&folder, "cap_perfmon=ep") else { return };
    // The C library takes these out of the environment of a program with capabilities.
    let given = [("LD_LIBRARY_PATH", "/nonexistent/lib"), ("TMPDIR", "/nonexistent/tmp"), ("OTHER", "a=b c")];
    let script = "echo \"$LD_LIBRARY_PATH|$TMPDIR|$OTHER|$LD_PRELOAD|$(id -u)\"";
    // No such file: the loader says so and goes on.
    let preload = "/nonexistent/libpreloaded.so";
    for verb in ["record", "stat"] {
        let mut command = as_nobody(&eprof, &folder);
        command
            .args([verb, "--meter", "estimate", "sh", "-c", script])
            .envs(given)
            .env("LD_PRELOAD", preload);
        let output = command.output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(said, format!("/nonexistent/lib|/nonexistent/tmp|a=b c|{preload}|65534\n"), "{verb}");
    }
    let mut command = as_nobody(&eprof, &folder);
    command.args(["tune", "--threads", "1,2", "--watts", "1:9", "--repeat", "1", "--quiet", "--"]);
    command.args(["sh", "-c", "echo \"$TMPDIR\" >> tuned; sleep 0.1"]).envs(given);
    let output = command.output().expect("runs");
    let tuned = fs::read_to_string(folder.path().join("tuned")).unwrap_or_default();
    assert!(tuned.starts_with("/nonexistent/tmp\n"), "{tuned:?}: {}", stderr(&output));
}

#[test]
fn a_binary_of_another_user_refuses_to_run() {
    if !can_record() {
        return;
    }
    if !nix::unistd::geteuid().is_root() || !has_program("setpriv", &["--version"]) {
        return skip("only root can make such a binary");
    }
    let folder = Folder::new();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("mode");
    let eprof = readable_eprof(&folder);
    fs::set_permissions(&eprof, fs::Permissions::from_mode(0o4755)).expect("mode");
    let output = as_nobody(&eprof, &folder).args(["record", "true"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("chmod u-s"), "{}", stderr(&output));
    assert!(!folder.data().exists());
}

#[test]
fn another_users_program_gets_no_capability_of_roots() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let eprof = env!("CARGO_BIN_EXE_eprof");
    let output = Command::new("setpriv")
        .args([
            "--inh-caps",
            "+net_raw",
            "--ambient-caps",
            "+net_raw",
            "--securebits",
            "+no_setuid_fixup",
            eprof,
        ])
        .args(["record", "--user", "nobody", "grep", "^Cap", "/proc/self/status"])
        .current_dir(folder.path())
        .output();
    let Ok(output) = output.as_ref().map_err(|error| skip(&error.to_string())) else { return };
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can run a program as another user");
    }
    assert!(output.status.success(), "{}", stderr(output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let sets = capability_sets(&said);
    assert_eq!(sets.len(), 5, "{said}");
    assert!(sets.iter().all(|(name, set)| *name == "Bnd" || *set == 0), "{sets:?}");
}

//! Ctrl-C, SIGTERM and their like.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use eprof_testbed::{Started, has_program, skip};
use nix::sys::signal::{SIGINT, SIGKILL, SIGTERM, Signal, kill, killpg};
use nix::unistd::Pid;

use super::harness::{Contents, Folder, can_record, wait_until};
use super::workload;

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// Starts eprof in a process group of its own, as a shell does, and waits until it records.
fn start(folder: &Folder, options: &[&str], program: &[std::ffi::OsString]) -> Started {
    let mut record = folder.record(options);
    record.args(program).process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    let child = Started::new(&mut record);
    wait_until("the recording to start", || fs::metadata(folder.data()).is_ok_and(|file| file.len() > 4000));
    child
}

#[test]
fn asked_to_stop_it_hands_the_signal_on_and_closes_the_file() {
    if !can_record() {
        return;
    }
    for signal in [SIGTERM, Signal::SIGHUP, SIGINT] {
        let folder = Folder::new();
        let mut child = start(&folder, &["--"], &workload::command("spin:60000"));
        kill(pid(&child), signal).expect("eprof is there");
        let status = child.wait().expect("eprof ends");
        assert_eq!(status.code(), Some(128 + signal as i32), "the program died of the signal");
        let contents = Contents::read(&folder.data());
        assert!(contents.is_complete && contents.error.is_none() && contents.samples > 0);
    }
}

#[test]
fn attached_it_ends_at_the_first_interrupt_with_success() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let own = std::process::id().to_string();
    let mut child = start(&folder, &["-p", &own], &[]);
    kill(pid(&child), SIGINT).expect("eprof is there");
    assert_eq!(child.wait().expect("eprof ends").code(), Some(0));
    assert!(Contents::read(&folder.data()).is_complete);
}

/// The kernel sends ctrl-C to the terminal's whole foreground group. A test has no terminal, but `script`
/// makes one.
#[test]
fn ctrl_c_is_the_programs_to_handle() {
    if !can_record() {
        return;
    }
    if !has_program("script", &["--version"]) {
        return skip("no program `script`, which makes a terminal");
    }
    let folder = Folder::new();
    let eprof = env!("CARGO_BIN_EXE_eprof");
    // A shell that survives the interrupt and says so, one that then ends by itself.
    let program = "trap 'echo caught; exit 5' INT; echo ready; while :; do :; done";
    fs::write(folder.path().join("program"), program).expect("file");
    // The outer shell is in the foreground group too; without a trap it may die of the interrupt itself.
    let inner = format!("trap : INT; {eprof} record -q sh program; echo status $?");
    let mut script = std::process::Command::new("script");
    script.args(["-qefc", &inner, "typescript"]).current_dir(folder.path());
    script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut terminal = Started::new(&mut script);
    let typescript = || fs::read_to_string(folder.path().join("typescript")).unwrap_or_default();
    wait_until("the program", || typescript().contains("ready"));
    use std::io::Write;
    terminal.stdin.as_mut().expect("piped").write_all(b"\x03").expect("typed");
    wait_until("the program's end", || typescript().contains("status"));
    drop(terminal.stdin.take());
    terminal.wait().expect("script ends");
    let said = typescript();
    assert!(said.contains("caught") && said.contains("status 5"), "{said}");
    assert!(Contents::read(&folder.data()).is_complete);
}

#[test]
fn a_signal_to_the_whole_group_leaves_a_whole_file_behind() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut child = start(&folder, &["--"], &workload::command("spin:60000"));
    killpg(pid(&child), SIGTERM).expect("the group is there");
    assert_eq!(child.wait().expect("eprof ends").code(), Some(128 + SIGTERM as i32));
    assert!(Contents::read(&folder.data()).is_complete);
}

#[test]
fn a_program_that_ignores_a_first_interrupt_is_waited_for() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let ready = folder.path().join("ready");
    let line = format!("trap '' INT; touch {}; sleep 1.5", ready.display());
    let mut child = start(&folder, &["sh", "-c", &line], &[]);
    wait_until("the program to ignore interrupts", || ready.exists());
    kill(pid(&child), SIGINT).expect("eprof is there");
    assert_eq!(child.wait().expect("eprof ends").code(), Some(0), "the program's own status");
    assert!(Contents::read(&folder.data()).is_complete);
}

#[test]
fn the_program_outlives_a_killed_recorder() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let done = folder.path().join("done");
    let line = format!("sleep 0.5; touch {}", done.display());
    let mut child = start(&folder, &["sh", "-c", &line], &[]);
    kill(pid(&child), SIGKILL).expect("eprof is there");
    child.wait().expect("gone");
    wait_until("the program to go on", || done.exists());
}

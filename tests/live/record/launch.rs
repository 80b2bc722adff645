//! Starting programs: exit statuses, streams, what is not there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use super::harness::{Contents, Folder, can_record, stderr};
use super::workload;

#[test]
fn the_programs_exit_status_is_passed_on() {
    if !can_record() {
        return;
    }
    for status in [0, 1, 7, 255] {
        let folder = Folder::new();
        let output = folder.record(["sh", "-c", &format!("exit {status}")]).output().expect("eprof runs");
        assert_eq!(output.status.code(), Some(status));
        let contents = Contents::read(&folder.data());
        assert!(contents.is_complete && contents.error.is_none());
    }
}

#[test]
fn a_program_killed_by_a_signal_gives_128_and_its_number() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let output = folder.record(["--"]).args(workload::command("segfault")).output().expect("eprof runs");
    assert_eq!(output.status.code(), Some(128 + 11), "{}", stderr(&output));
    assert!(Contents::read(&folder.data()).samples > 0);
    let output = folder.record(["sh", "-c", "kill -TERM $$"]).output().expect("eprof runs");
    assert_eq!(output.status.code(), Some(128 + 15));
}

#[test]
fn a_program_that_cannot_be_started_leaves_the_old_recording_alone() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    fs::write(folder.data(), "precious").expect("file");
    let plain = folder.path().join("plain");
    fs::write(&plain, "no program").expect("file");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("mode");
    for (program, status, says) in [
        ("./no-such-program", 127, "command not found: there is no such file"),
        ("./plain", 126, "`chmod +x ./plain` makes it so"),
        (".", 126, "it is a folder"),
    ] {
        let output = folder.record([program]).output().expect("eprof runs");
        assert_eq!(output.status.code(), Some(status), "{program}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    assert_eq!(fs::read(folder.data()).expect("still there"), b"precious");
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 2, "nothing else is left behind");
}

#[test]
fn stdin_and_stdout_are_the_programs_own_byte_for_byte() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut input: Vec<u8> =
        (0..300_000u32).flat_map(|number| (number.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
    input.extend(b"\x1b[31m\0\r\n");
    let mut child = folder
        .record(["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("eprof runs");
    let mut stdin = child.stdin.take().expect("piped");
    let sent = input.clone();
    let sender = std::thread::spawn(move || stdin.write_all(&sent).expect("cat reads it"));
    let output = child.wait_with_output().expect("eprof ends");
    sender.join().expect("sent");
    assert!(output.status.success());
    assert!(output.stdout == input, "stdout differs from what went in");
}

#[test]
fn only_the_summary_is_said_and_nothing_when_quiet() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let output =
        folder.record(["--watts", "1:2", "sh", "-c", "echo out; echo err >&2"]).output().expect("eprof runs");
    assert_eq!(output.stdout, b"out\n");
    let said = stderr(&output);
    let last = said.lines().last().expect("a summary");
    assert!(
        said.starts_with("err\n") && last.starts_with("[ eprof: ") && last.contains("eprof.data"),
        "{said}"
    );
    let output = folder.record(["--quiet", "sh", "-c", "echo err >&2"]).output().expect("eprof runs");
    assert_eq!(stderr(&output), "err\n");
}

#[test]
fn the_old_recording_is_kept_and_a_link_is_not_followed() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    fs::write(folder.data(), "old").expect("file");
    assert!(folder.record(["true"]).status().expect("eprof runs").success());
    assert_eq!(fs::read(folder.path().join("eprof.data.old")).expect("kept"), b"old");
    assert_eq!(fs::metadata(folder.data()).expect("there").permissions().mode() & 0o777, 0o600);

    let victim = folder.path().join("victim");
    fs::write(&victim, "untouched").expect("file");
    symlink(&victim, folder.path().join("link.data")).expect("link");
    let output = folder.record(["-o", "link.data", "true"]).output().expect("eprof runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("symbolic link"), "{}", stderr(&output));
    assert_eq!(fs::read(victim).expect("there"), b"untouched");
}

#[test]
fn nothing_to_record_is_explained() {
    let folder = Folder::new();
    for (arguments, says) in [
        (&[][..], "nothing to record"),
        (&["-e", "no-such-event", "true"], "no-such-event"),
        (&["--user", "no such user", "true"], "no user"),
        (&["-o", "/", "true"], "folder"),
    ] {
        let output = folder.record(arguments).output().expect("eprof runs");
        assert!(!output.status.success());
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
}

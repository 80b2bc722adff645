//! What a terminal shows while a recording is under way.

use std::process::{Command, Stdio};

use eprof_testbed::{has_program, skip};

use super::harness::{Folder, can_record};

/// What a terminal gets of a recording of all CPUs, or of a program, for two seconds; `script` makes the terminal.
fn on_a_terminal(folder: &Folder, arguments: &str) -> String {
    let eprof = env!("CARGO_BIN_EXE_eprof");
    let data = folder.data();
    let command = format!("'{eprof}' record -o '{}' {arguments}", data.display());
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &command, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
    let output = script.output().expect("script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_line_shows_what_there_is_so_far_unless_the_program_has_the_terminal() {
    if !can_record() {
        return;
    }
    if !has_program("script", &["--version"]) {
        return skip("script, which makes a terminal, is not installed");
    }
    let folder = Folder::new();
    let quiet_program = on_a_terminal(&folder, "sleep 2 >/dev/null");
    let told = quiet_program.matches(" samples, ").count();
    assert!(
        told >= 2 && quiet_program.contains(" s, "),
        "one line and the summary at least: {quiet_program}"
    );
    let on_the_same = on_a_terminal(&folder, "sleep 2");
    assert!(!on_the_same.contains(" s, "), "{on_the_same}");
    let not_wanted = on_a_terminal(&folder, "-q sleep 2 >/dev/null");
    assert!(!not_wanted.contains("samples"), "{not_wanted}");
}

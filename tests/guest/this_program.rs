//! Runs a test of this very test program, or another program, in a guest.

use std::path::Path;
use std::process::Command;

use eprof_testbed::skip;

use crate::bench::{bench, can_be_made, turn};

/// Set for the part of a test that runs within the guest.
const INSIDE: &str = "EPROF_INSIDE_GUEST";

/// Whether this is the guest. Tests marked `ignore` for it return at once elsewhere.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Boots a guest with these options of the bench and runs `test` of this program in it.
pub fn run(options: &[&str], test: &str) {
    let program = std::env::current_exe().expect("a test program has a file");
    let arguments = format!("--exact {test} --ignored --nocapture --test-threads 1");
    let line = format!("{INSIDE}=1 RUST_BACKTRACE=0 ./program {arguments}");
    let Some((text, status)) = run_program(options, &program, &line) else { return };
    assert_eq!(status, Some(0), "{test} failed within the guest, see above");
    assert!(text.contains("1 passed"), "{test} did not run");
}

/// Boots a guest with these options of the bench and runs a shell command in it. Returns what it
/// printed, `None` where there is no guest.
pub fn run_command(options: &[&str], shell_command: &str) -> Option<String> {
    let (text, status) = boot(options, shell_command)?;
    assert_eq!(status, Some(0), "`{shell_command}` failed within the guest:\n{text}");
    Some(text)
}

/// Boots a guest with these options and runs a command line in it, where `program` is `./program`.
/// Returns what it printed and its exit status, `None` where there is no guest.
pub fn run_program(options: &[&str], program: &Path, line: &str) -> Option<(String, Option<i32>)> {
    let file = format!("{}:program", program.display());
    let result = boot(&[options, &["-f", &file]].concat(), line)?;
    println!("{}", result.0);
    Some(result)
}

/// A guest that does not come up on a busy host (its kernel panics when its timer comes late) is
/// started anew, twice.
fn boot(options: &[&str], line: &str) -> Option<(String, Option<i32>)> {
    const NO_GUEST: Option<i32> = Some(125);
    if cfg!(not(target_arch = "x86_64")) {
        skip("this guest is for programs of x86-64");
        return None;
    }
    let bench = bench("qemu-system-x86_64")?;
    let _turn = turn(options);
    let run = || {
        let mut command = Command::new(&bench);
        command.args(options).args(["--timeout", "240", "--", line]);
        let output = command.output().expect("the bench can be started");
        if !can_be_made(&output) {
            return None;
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Some((String::from_utf8_lossy(&output.stdout).into_owned() + &errors, output.status.code()))
    };
    let mut result = run()?;
    for _ in 0..2 {
        if result.1 == NO_GUEST {
            println!("{}", result.0);
            result = run()?;
        }
    }
    Some(result)
}

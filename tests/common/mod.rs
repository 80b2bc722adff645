//! What the tests of the whole program share: programs and recordings that may be missing.

#![allow(dead_code, reason = "each test uses its own part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Says why a test cannot run here. With `EPROF_REQUIRE_LIVE=1` that is a failure.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(std::env::var_os("EPROF_REQUIRE_LIVE").is_none_or(|value| value != "1"), "cannot run: {reason}");
    println!("skipped: {reason}");
}

/// The folder of recordings made by others, if this machine has it.
pub fn shared_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    if folder.is_dir() {
        return Some(folder);
    }
    skip("the recordings of other machines (../shared/data) are not here");
    None
}

/// Can this program be run?
pub fn has_program(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The binary under test.
pub fn eprof() -> Command {
    Command::new(env!("CARGO_BIN_EXE_eprof"))
}

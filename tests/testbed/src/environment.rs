//! The program under test, and programs and recordings that may be missing.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Says why a test cannot run here: it ends as ignored, with this reason. With `EPROF_REQUIRE_LIVE=1` that is a failure.
/// The test and the reason are added to the file that `EPROF_SKIPS` names, so that a script can hold them against a list.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(env::var_os("EPROF_REQUIRE_LIVE").is_none_or(|value| value != "1"), "cannot run: {reason}");
    skip_quietly(reason);
}

/// The same of what few machines have: it is not demanded of one that runs all live tests.
pub fn skip_quietly(reason: &str) {
    crate::harness::skipped(reason);
    let Some(list) = env::var_os("EPROF_SKIPS") else { return };
    let line = format!("{}\t{}\n", crate::harness::name(), reason.replace('\n', "; "));
    let file = OpenOptions::new().create(true).append(true).open(list);
    // One write, so that lines of tests that run at the same time do not mix.
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of skips is kept");
}

/// The folder of eprof's sources.
pub(crate) fn project() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("the testbed lies two folders below")
}

/// Can this program be run?
pub fn has_program(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs commands in turn, as long as each succeeds. Where one does not, the test cannot run here: see [`skip`].
#[track_caller]
pub fn run_or_skip<'c>(commands: impl IntoIterator<Item = &'c mut Command>) -> bool {
    for command in commands {
        let output = command.output();
        if !output.as_ref().is_ok_and(|output| output.status.success()) {
            skip(&format!("{command:?}: {output:?}"));
            return false;
        }
    }
    true
}

/// The program under test.
pub fn eprof() -> Command {
    Command::new(eprof_file())
}

/// The file of the program under test. Cargo says where it has built it; to a test that is run by hand, which lies
/// in the folder `deps` beside it, nobody does.
pub fn eprof_file() -> PathBuf {
    env::var_os("CARGO_BIN_EXE_eprof").map_or_else(beside_deps, PathBuf::from)
}

fn beside_deps() -> PathBuf {
    let own = env::current_exe().expect("a test program has a file");
    let folder = own.ancestors().nth(2).expect("a test program lies in a folder of a folder");
    folder.join("eprof")
}

//! Boots a guest, runs a script in it and brings back what it wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use eprof_testbed::{has_program, skip};
use tempfile::TempDir;

/// What came back from a guest.
pub struct Run {
    folder: TempDir,
    /// All that was printed.
    pub said: String,
}

/// One guest at a time: they would only take CPU time from each other.
static BUSY: Mutex<()> = Mutex::new(());
/// The bench's exit status when the guest gave none.
const NO_GUEST: i32 = 125;

/// Runs `script` by the shell of a guest that was booted with `options`; it finds the programs `./eprof`
/// and `./phases`, and the files `bring` of its folder come back. `None`, with the reason said, where
/// there is no guest.
pub fn run(options: &[&str], script: &str, bring: &[&str]) -> Option<Run> {
    let bench = bench("qemu-system-x86_64")?;
    let folder = tempfile::tempdir().expect("a folder");
    let eprof = stripped_eprof(folder.path());
    let options = [&["--phases", "--cpu", "SandyBridge"], options].concat();
    Some(boot(&bench, &options, folder, &eprof, script, bring))
}

/// The same with a guest whose CPUs are Arm's, `eprof` being built for them.
pub fn run_arm64(eprof: &Path, options: &[&str], script: &str, bring: &[&str]) -> Option<Run> {
    let bench = bench("qemu-system-aarch64")?;
    let folder = tempfile::tempdir().expect("a folder");
    let options = [&["--arch", "arm64"], options].concat();
    Some(boot(&bench, &options, folder, eprof, script, bring))
}

/// Waits until no other test has a guest.
pub fn alone() -> MutexGuard<'static, ()> {
    BUSY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bench's command, if it can be used here.
pub fn bench(emulator: &str) -> Option<PathBuf> {
    let bench = std::env::var_os("EPROF_GUEST").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/guest/guest.sh"),
        PathBuf::from,
    );
    if !bench.is_file() {
        skip("the test bench (guest.sh) is not here");
        return None;
    }
    if !has_program(emulator, &["--version"]) {
        skip(&format!("{emulator} is not installed"));
        return None;
    }
    Some(bench)
}

fn boot(bench: &Path, options: &[&str], folder: TempDir, eprof: &Path, script: &str, bring: &[&str]) -> Run {
    let script_file = folder.path().join("script");
    fs::write(&script_file, script).expect("file");

    let mut command = Command::new(bench);
    command.args(["-q", "--timeout", "400"]).args(options);
    command
        .arg("-f")
        .arg(format!("{}:eprof", eprof.display()))
        .arg("-f")
        .arg(&script_file)
        .current_dir(folder.path());
    for file in bring {
        command.arg("--bring").arg(format!("/guest/{file}"));
    }
    let _alone = alone();
    command.arg("sh script");
    let boot = || command.output().expect("the bench runs");
    // On a busy host a guest may panic, since its timer comes late; it is started anew, twice.
    let mut outputs = std::iter::repeat_with(boot).take(3);
    let output = outputs.find(|output| output.status.code() != Some(NO_GUEST));
    let output = output.expect("a guest that comes up");
    let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Run { folder, said }
}

/// The binary without its debug information, which would take most of the guest's memory.
fn stripped_eprof(folder: &Path) -> PathBuf {
    let eprof = folder.join("eprof");
    let built = env!("CARGO_BIN_EXE_eprof");
    let stripped = Command::new("strip").arg("-o").arg(&eprof).arg(built).status();
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(built, &eprof).expect("copied");
    }
    fs::set_permissions(&eprof, fs::Permissions::from_mode(0o755)).expect("mode");
    eprof
}

impl Run {
    /// What was printed between the lines `== name` and the next such line.
    pub fn section(&self, name: &str) -> &str {
        let mark = format!("== {name}\n");
        let start = self.said.find(&mark).unwrap_or_else(|| panic!("no section {name} in {}", self.said));
        let rest = &self.said[start + mark.len()..];
        &rest[..rest.find("\n== ").map_or(rest.len(), |end| end + 1)]
    }

    /// A file that was brought back.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Fails unless `value` is within `share` of `truth`.
#[track_caller]
pub fn assert_near(what: &str, value: f64, truth: f64, share: f64) {
    let error = value / truth - 1.0;
    assert!(error.abs() <= share, "{what}: {value:e} instead of {truth:e}, {:+.2} %", error * 100.0);
}

//! Boots a guest, runs a script in it and brings back what it wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Condvar, Mutex, PoisonError};

use eprof_testbed::{has_program, skip};
use tempfile::TempDir;

/// What came back from a guest.
pub struct Run {
    folder: PathBuf,
    /// Removes the folder, unless it is kept.
    _temporary: Option<TempDir>,
    /// All that was printed.
    pub said: String,
}

/// The guest's time counts its instructions: however busy the host is, nothing in it is late.
pub const STEADY: [&str; 2] = ["--icount", "shift=3"];

/// How many CPUs of the host guests may have at a time. A steady guest has one and does not notice others; any other
/// would have its interrupts come late.
const CPUS: usize = 2;
static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();
/// The bench's exit status when the guest gave none.
const NO_GUEST: i32 = 125;
/// And when the host cannot make one: no packages, no tools, no right to install them.
const NOT_HERE: i32 = 77;

/// Skips the test where a guest cannot be made here, with what the bench said of it.
pub fn can_be_made(output: &Output) -> bool {
    let can = output.status.code() != Some(NOT_HERE);
    if !can {
        let said = String::from_utf8_lossy(&output.stderr);
        skip(&format!("a guest cannot be made here: {}", said.trim().replace('\n', "; ")));
    }
    can
}

/// Runs `script` by the shell of a guest that was booted with `options`; it finds the programs `./eprof`
/// and `./phases`, and the files `bring` of its folder come back. `None`, with the reason said, where
/// there is no guest.
pub fn run(options: &[&str], script: &str, bring: &[&str]) -> Option<Run> {
    let bench = bench("qemu-system-x86_64")?;
    let folder = tempfile::tempdir().expect("a folder");
    let eprof = stripped_eprof(folder.path());
    let options = [&["--phases", "--cpu", "SandyBridge"], options].concat();
    boot(&bench, &options, folder, &eprof, script, bring)
}

/// The same with a guest whose CPUs are Arm's, `eprof` being built for them.
pub fn run_arm64(eprof: &Path, options: &[&str], script: &str, bring: &[&str]) -> Option<Run> {
    let bench = bench("qemu-system-aarch64")?;
    let folder = tempfile::tempdir().expect("a folder");
    let options = [&["--arch", "arm64"], options].concat();
    boot(&bench, &options, folder, eprof, script, bring)
}

/// Some of the host's CPUs, until it is dropped.
pub struct Turn(usize);

impl Turn {
    /// Waits for `cpus` of the host's CPUs.
    fn of(cpus: usize) -> Self {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken + cpus > CPUS {
            taken = GIVEN_BACK.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += cpus;
        Self(cpus)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        GIVEN_BACK.notify_all();
    }
}

/// Waits until a guest of these options disturbs no other and is not disturbed.
pub fn turn(options: &[&str]) -> Turn {
    Turn::of(if options.contains(&STEADY[0]) { 1 } else { CPUS })
}

/// The bench's command, if it can be used here.
pub fn bench(emulator: &str) -> Option<PathBuf> {
    let bench = std::env::var_os("EPROF_GUEST").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/machine/guest.sh"),
        PathBuf::from,
    );
    assert!(bench.is_file(), "{} is not there", bench.display());
    if !has_program(emulator, &["--version"]) {
        skip(&format!("{emulator} is not installed"));
        return None;
    }
    Some(bench)
}

fn boot(
    bench: &Path,
    options: &[&str],
    folder: TempDir,
    eprof: &Path,
    script: &str,
    bring: &[&str],
) -> Option<Run> {
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
    let _turn = turn(options);
    command.arg("sh script");
    let boot = || command.output().expect("the bench runs");
    // On a busy host a guest may panic, since its timer comes late; it is started anew, twice.
    let mut outputs = std::iter::repeat_with(boot).take(3);
    let output = outputs.find(|output| output.status.code() != Some(NO_GUEST));
    let output = output.expect("a guest that comes up");
    if !can_be_made(&output) {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(Run { folder: folder.path().to_owned(), _temporary: Some(folder), said })
}

/// The binary without its debug information, which would take most of the guest's memory.
fn stripped_eprof(folder: &Path) -> PathBuf {
    let eprof = folder.join("eprof");
    let built = env!("CARGO_BIN_EXE_eprof");
    let stripped = Command::new("strip").arg("-o").arg(&eprof).arg(built).status();
    if !stripped.is_ok_and(|status| status.success()) {
        fs::copy(built, &eprof).expect("copied");
        fs::set_permissions(&eprof, fs::Permissions::from_mode(0o755)).expect("mode");
    }
    eprof
}

/// What a kept run printed, in its folder.
const SAID: &str = "said";

impl Run {
    /// A run that was kept in `folder`, if there is one.
    pub fn kept(folder: &Path) -> Option<Self> {
        let said = fs::read_to_string(folder.join(SAID)).ok()?;
        Some(Self { folder: folder.to_owned(), _temporary: None, said })
    }

    /// Keeps these files of the run, and what was printed, in `folder`.
    pub fn keep(&self, folder: &Path, files: &[&str]) {
        fs::create_dir_all(folder).expect("a folder");
        for file in files {
            fs::copy(self.file(file), folder.join(file)).expect("copied");
        }
        // The last one: with it the run is whole.
        fs::write(folder.join(SAID), &self.said).expect("written");
    }

    /// What was printed between the lines `== name` and the next such line.
    pub fn section(&self, name: &str) -> &str {
        let mark = format!("== {name}\n");
        let start = self.said.find(&mark).unwrap_or_else(|| panic!("no section {name} in {}", self.said));
        let rest = &self.said[start + mark.len()..];
        &rest[..rest.find("\n== ").map_or(rest.len(), |end| end + 1)]
    }

    /// A file that was brought back.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Fails unless `value` is within `share` of `truth`.
#[track_caller]
pub fn assert_near(what: &str, value: f64, truth: f64, share: f64) {
    let error = value / truth - 1.0;
    assert!(error.abs() <= share, "{what}: {value:e} instead of {truth:e}, {:+.2} %", error * 100.0);
}

//! Programs for the guest's Arm CPUs: eprof itself, and what it records.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use eprof_testbed::{has_program, programs, skip};

/// An eprof for aarch64: the file that `EPROF_AARCH64` names, one that was built for the target here, or, with
/// `EPROF_BUILD_AARCH64=1`, one that is built now, with Debian's compiler where the own has no such target. `None`, with the reason
/// said, where there is none.
pub fn eprof() -> Option<PathBuf> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Some(named) = std::env::var_os("EPROF_AARCH64") {
        return Some(PathBuf::from(named));
    }
    let targets = ["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"];
    let built = targets.map(|target| project.join("target").join(target).join("debug/eprof"));
    if let Some(built) = built.into_iter().find(|file| file.is_file()) {
        return Some(built);
    }
    if std::env::var_os("EPROF_BUILD_AARCH64").is_none() {
        skip(
            "there is no eprof for aarch64: EPROF_BUILD_AARCH64=1 builds one (minutes), or \
             name a static one by EPROF_AARCH64",
        );
        return None;
    }
    let script = project.join("tests/guest/build-aarch64.sh");
    let output = Command::new(script).stderr(Stdio::inherit()).output().expect("a shell");
    assert!(output.status.success(), "eprof was not built for aarch64, see above");
    Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Compiles a program of the testbed that keeps frame pointers. `None`, with the reason said, without a
/// compiler.
pub fn compile(source: &str, program: &Path) -> Option<()> {
    const COMPILER: &str = "aarch64-linux-gnu-gcc";
    if !has_program(COMPILER, &["--version"]) {
        skip(&format!("{COMPILER} is not installed"));
        return None;
    }
    let options = ["-O2", "-g", "-static", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o"];
    let status = Command::new(COMPILER)
        .args(options)
        .arg(program)
        .arg(programs::source(source))
        .status()
        .expect("runs");
    assert!(status.success());
    Some(())
}

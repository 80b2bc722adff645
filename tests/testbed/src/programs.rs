//! Programs that tests and benches compile and record.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The source of a program, by its file's name: `launcher.c`.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// Copies a program so that it can be started at once.
///
/// The copy is another process's work. A file that this process itself has open for writing is inherited by what
/// another test's thread starts in that moment, up to its `execve`, and until then the kernel starts the file for
/// nobody ("Text file busy").
///
/// # Panics
///
/// If it cannot be copied.
pub fn copy(program: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg("--").arg(program.as_ref()).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} is copied", program.as_ref().display());
    set_executable(to);
}

/// Writes a shell script, with its first line, so that it can be started at once; see [`copy`].
///
/// # Panics
///
/// If it cannot be written.
pub fn write_script(path: &Path, text: &str) {
    let text = format!("#!/bin/sh\n{text}");
    let mut written = Command::new("tee");
    let mut child =
        written.arg(path).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("tee is there");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("tee reads");
    assert!(child.wait().is_ok_and(|status| status.success()), "{} is written", path.display());
    set_executable(path);
}

fn set_executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is there");
}

//! Tables and traces with something in them that is not as it should be: it is told, and what repairs it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs eprof in a folder that has the files.
fn eprof(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eprof"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs")
}

#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A folder with these files.
fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

/// A figure of three hundred digits is none for people.
#[test]
fn large_numbers_have_an_exponent() {
    let row = |n: u32| format!("w{},{},{}e150\n", n % 5, n * 7 % 11, 20 + n * 7 % 11);
    let text = "job,cycles,watts\n".to_owned() + &(0..40).map(row).collect::<String>();
    let folder = folder(&[("runs", text)]);
    let text =
        said(&eprof(folder.path(), "gpu model fit --target watts --columns cycles --group job --quick runs"));
    assert!(text.contains("power 2.000e151..3.000e151 W"), "{text}");
    assert!(text.lines().all(|line| line.len() < 200), "{text}");
}

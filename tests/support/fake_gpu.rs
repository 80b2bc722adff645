//! Builds the fake GPU's library (tests/fakes/gpu.rs) and gives each test its own copy.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A library of its own with these settings; `flags` are `--cfg` names that leave functions out.
pub fn fake_gpu(folder: &Path, settings: &str, flags: &[&str]) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libfakegpu{}.so", flags.join("-")));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fakes/gpu.rs");
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if changed(&built) < changed(&source) {
        let partial = folder.join("partial.so");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-o"]).arg(&partial).arg(&source);
        for flag in flags {
            rustc.args(["--cfg", flag]);
        }
        let output = rustc.output().expect("rustc, which builds this test, can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::copy(&partial, &built).expect("the target folder can be written to");
    }
    let own = folder.join("libfakegpu.so");
    std::fs::copy(&built, &own).expect("a copy of the library");
    std::fs::write(folder.join("libfakegpu.so.conf"), settings).expect("its settings");
    own
}

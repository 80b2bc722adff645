//! Programs that tests and benches compile and record.

use std::path::{Path, PathBuf};

/// The source of a program, by its file's name: `launcher.c`.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

//! Builds the libraries of `tests/testbed/fakes` and gives each test its own copy.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::environment::eprof_file;

/// One library is built at a time: two tests may want the same one.
static BUILDING: Mutex<()> = Mutex::new(());

/// A fake GPU's library (`gpu.rs` there) with these settings; `flags` are `--cfg` names that leave
/// functions out.
pub fn fake_gpu(folder: &Path, settings: &str, flags: &[&str]) -> PathBuf {
    let own = folder.join("libfakegpu.so");
    std::fs::copy(built("gpu", folder, flags), &own).expect("a copy of the library");
    std::fs::write(folder.join("libfakegpu.so.conf"), settings).expect("its settings");
    own
}

/// A library to preload into a program so that its time is virtual (`virtual_time.rs`).
pub fn virtual_time(folder: &Path) -> PathBuf {
    built("virtual_time", folder, &[])
}

/// A library of that folder, built anew if its source has changed since.
fn built(name: &str, folder: &Path, flags: &[&str]) -> PathBuf {
    let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let all = eprof_file().with_file_name("fakes");
    std::fs::create_dir_all(&all).expect("the target folder can be written to");
    let built = all.join(format!("lib{name}{}.so", flags.join("-")));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fakes").join(name).with_extension("rs");
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    // A library has other files of the folder as its modules.
    let sources = std::fs::read_dir(source.parent().expect("a folder")).expect("readable");
    let newest = sources.flatten().filter_map(|file| changed(&file.path())).max();
    if changed(&built) < newest {
        let partial = folder.join(format!("{name}-partial.so"));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-o"]).arg(&partial).arg(&source);
        for flag in flags {
            rustc.args(["--cfg", flag]);
        }
        let output = rustc.output().expect("rustc, which builds this test, can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Renamed into place, so that a test that runs beside this one never loads half a library.
        let beside = all.join(format!("{name}-{}.partial", std::process::id()));
        std::fs::copy(&partial, &beside).expect("the target folder can be written to");
        std::fs::rename(&beside, &built).expect("a file in the target folder");
    }
    built
}

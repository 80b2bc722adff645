//! A program that launches kernels (`programs/launcher.c`) on a fake GPU (`fakes/gpu.rs`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::fakes::fake_gpu;
use crate::{eprof, has_program, programs, skip};

/// 50 W of idling. A turn of `heat` (ten divisions) takes 400 ns and 40.1 uJ, one of `cool` (one
/// division) 220 ns and 4.1 uJ; each runs three times for 500,000 turns.
const SETTINGS: &str =
    "shared 1\nidle 50\nrefresh_ms 20\nwindow_ms 10\nnanoseconds 20\nbase 0.1\nenergy div.u32 4\n";

/// A folder with the program, the fake GPU's library and what is recorded.
pub struct Stage {
    /// The folder, removed when dropped.
    pub folder: tempfile::TempDir,
    /// The fake `libcuda.so.1`, which is NVML and CUPTI too.
    pub library: PathBuf,
    /// The program, compiled.
    pub program: PathBuf,
}

impl Stage {
    /// Builds both, the library with more settings than the usual ones and with these `--cfg` flags. `None`, and said so,
    /// where this machine cannot do it.
    pub fn set(more_settings: &str, flags: &[&str]) -> Option<Self> {
        if !has_program("cc", &["--version"]) {
            skip("no C compiler");
            return None;
        }
        if !Path::new("/sys/bus/event_source/devices/uprobe").is_dir()
            || !nix::unistd::Uid::effective().is_root()
        {
            skip("probes need a kernel with uprobes, and root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("libcuda.so.1");
        let settings = format!("{SETTINGS}{more_settings}");
        std::fs::rename(fake_gpu(folder.path(), &settings, flags), &library).expect("in place");
        std::fs::rename(folder.path().join("libfakegpu.so.conf"), folder.path().join("libcuda.so.1.conf"))
            .expect("in place");
        let program = folder.path().join("launcher");
        let built = Command::new("cc")
            .args(["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o"])
            .args([&program, &programs::source("launcher.c")])
            .args(["-ldl", "-lpthread"])
            .status();
        assert!(built.expect("a compiler").success());
        Some(Self { folder, library, program })
    }

    /// Records the program, which launches kernels in this way, and waits for the end.
    pub fn record(&self, how: &str, arguments: &[&str]) -> Output {
        self.recorder(how, arguments).output().expect("the program runs")
    }

    /// The command that [`Stage::record`] runs.
    pub fn recorder(&self, how: &str, arguments: &[&str]) -> Command {
        let mut recorder = eprof();
        recorder
            .args(["record", "--watts", "10:50", "-o"])
            .arg(self.recording())
            .arg("--nvml-lib")
            .arg(&self.library)
            .args(arguments)
            .arg(&self.program)
            .arg(&self.library)
            .args([how, "150"]);
        recorder
    }

    /// Where the recording is.
    pub fn recording(&self) -> PathBuf {
        self.folder.path().join("eprof.data")
    }

    /// The option that names the library to programs that look for CUDA.
    pub fn cuda_lib(&self) -> String {
        format!("--cuda-lib={}", self.library.display())
    }

    /// What `eprof report` says of the recording.
    pub fn report(&self, arguments: &[&str]) -> String {
        let output =
            eprof().args(["report", "-i"]).arg(self.recording()).args(arguments).output().expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The same as JSON.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.report(&[&["--format", "json"], arguments].concat());
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The joules of a row itself, by its name.
pub fn joules_of(report: &Value, name: &str) -> f64 {
    let rows = report["rows"].as_array().expect("rows");
    let row =
        rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}: {rows:#?}"));
    row["self_joules"].as_f64().expect("joules")
}

/// Fails with what a program said if it failed.
#[track_caller]
pub fn assert_succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

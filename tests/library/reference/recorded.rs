//! Recordings of real kernels: of this machine's, and of a guest whose PMU and energy counters are simulated.

use std::path::Path;
use std::process::Command;
use std::{fs, str};

use eprof::analyze::{Dimensions, Options};
use eprof_testbed::{eprof, skip};

use super::judge::{Near, compare, is_here};

fn options() -> Options {
    Options { dimensions: Dimensions { stacks: false, ..Dimensions::ALL }, ..Options::default() }
}

/// A recording of a guest whose PMU and energy counters are simulated: `fixtures/recordings/SOURCES.md`.
fn of_guest(name: &str, near: Near) {
    if !is_here() {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recordings").join(name);
    compare(name, fs::read(path).expect("a recording"), &options(), near);
}

#[test]
fn a_guest_whose_processes_were_all_sampled() {
    of_guest("guest-neighbours.data", Near { balance: 0.002, thread: 0.002, page: 0.005 });
}

#[test]
fn a_guest_whose_other_processes_were_not_sampled() {
    of_guest("guest-program-only.data", Near { balance: 0.008, thread: 0.008, page: 0.008 });
}

/// Three processes, one after another, on a machine that may be as busy as it likes.
#[test]
fn a_program_recorded_now() {
    const LOOP: &str = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";
    if !is_here() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("eprof.data");
    let script = format!("{LOOP}; sh -c '{LOOP}'; sh -c '{LOOP}'");
    let mut command: Command = eprof();
    let output = command
        .args(["record", "-q", "--meter", "estimate", "--call-graph", "none", "-o"])
        .arg(&path)
        .args(["sh", "-c", &script])
        .output()
        .expect("eprof runs");
    let said = str::from_utf8(&output.stderr).unwrap_or_default();
    if !output.status.success() {
        return skip(&format!("eprof cannot record here: {said}"));
    }
    let recording = fs::read(&path).expect("a recording");
    // Where the recorder is held up, as on a busy machine, readings are far apart, and before the first CPU times nobody
    // knows what ran: half a percent usually.
    let near = Near { balance: 0.1, thread: 0.03, page: 0.03 };
    compare("recorded now", recording, &options(), near);
}

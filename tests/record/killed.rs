//! Killed at any moment, the recorder leaves a file that reads up to there.

use std::process::Stdio;
use std::time::Duration;

use eprof::recording::Recording;

use crate::common;
use crate::harness::{Contents, Folder, can_record};
use crate::workload;

#[test]
fn whatever_the_moment_the_file_reads() {
    if !can_record() {
        return;
    }
    let with_perf = common::has_program("perf", &["--version"]);
    let (mut read, mut samples, mut seen_by_perf) = (0, 0, 0);
    for attempt in 0..12u64 {
        let folder = Folder::new();
        let mut child = folder
            .record(["-F", "5000", "--"])
            .args(workload::command("spin:400"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("eprof runs");
        // Moments that are spread over the recording, its first and last milliseconds included.
        std::thread::sleep(Duration::from_micros(1500 * attempt * attempt * 3 % 500_000));
        child.kill().expect("killed");
        child.wait().expect("gone");
        if !folder.data().exists() {
            continue;
        }
        let contents = Contents::read(&folder.data());
        assert_eq!(contents.error, None);
        assert!(contents.metadata >= 1, "the file says what it is");
        let names: Vec<String> = Recording::open(&folder.data())
            .expect("readable")
            .events()
            .iter()
            .map(|event| event.name.clone())
            .collect();
        assert!(
            names.iter().any(|name| name.starts_with("energy/") || name.starts_with("cpu-clock")),
            "{names:?}"
        );
        if with_perf {
            let output = std::process::Command::new("perf")
                .args(["script", "-F", "event", "-i"])
                .arg(folder.data())
                .output()
                .expect("perf runs");
            let said = String::from_utf8_lossy(&output.stdout);
            let seen = said.lines().filter(|line| line.contains("cpu-clock")).count() as u64;
            // perf goes by the header, which does not yet know of a round that was just written.
            assert!(output.status.success() && seen <= contents.samples, "{seen} of {contents:?}");
            seen_by_perf += seen;
        }
        read += 1;
        samples += contents.samples;
    }
    assert!(read > 4 && samples > 0, "{read} files with {samples} samples");
    assert!(!with_perf || seen_by_perf * 2 > samples, "perf saw {seen_by_perf} of {samples} samples");
}

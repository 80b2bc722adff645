//! Killed at any moment, the recorder leaves a file that reads up to there, and whose joules add up.

use std::hash::{BuildHasher, RandomState};
use std::process::Stdio;
use std::time::Duration;

use eprof::analyze::{self, Options};
use eprof::recording::Recording;
use eprof::report::{self, Report};
use eprof::symbolize::Symbols;
use eprof_testbed::{Started, has_program};

use super::harness::{Contents, Folder, can_record};
use super::workload;

/// What is in the files of several recorders that were killed.
#[derive(Debug, Default)]
struct Found {
    files: u32,
    samples: u64,
    seen_by_perf: u64,
}

#[test]
fn whatever_the_moment_the_file_reads() {
    if !can_record() {
        return;
    }
    // Moments that are spread over the recording, its first and last milliseconds included.
    let moments = (0..12u64).map(|attempt| Duration::from_micros(4500 * attempt * attempt % 500_000));
    let with_perf = has_program("perf", &["--version"]);
    let found = kill_after(moments, &["-F", "5000"], with_perf);
    assert!(found.files > 8 && found.samples > 0, "{found:?}");
    assert!(!with_perf || found.seen_by_perf * 2 > found.samples, "{found:?}");
}

#[test]
#[ignore = "takes some minutes: cargo test --test live -- --ignored killed"]
fn a_hundred_random_moments() {
    if !can_record() {
        return;
    }
    let seed = RandomState::new();
    for options in [&["-F", "5000"][..], &["-F", "5000", "--compress"], &["-F", "2000", "-a"]] {
        let moments = (0..100u64).map(|attempt| Duration::from_micros(seed.hash_one(attempt) % 450_000));
        let found = kill_after(moments, options, false);
        println!("{options:?}: {found:?}");
        assert!(found.files > 90 && found.samples > 1000, "{options:?}: {found:?}");
    }
}

/// Kills a recorder each of these times after it made its file, and reads what it left.
fn kill_after(moments: impl Iterator<Item = Duration>, options: &[&str], with_perf: bool) -> Found {
    let mut found = Found::default();
    for moment in moments {
        let folder = Folder::new();
        let mut record = folder.record(options);
        record.arg("--").args(workload::command("spin:400")).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Started::new(&mut record);
        // How long it takes to begin is the machine's affair.
        for _ in 0..20_000 {
            if folder.data().exists() || child.try_wait().expect("a child").is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(moment);
        child.kill().expect("killed");
        child.wait().expect("gone");
        // Nothing is lost where nothing was written yet.
        if std::fs::metadata(folder.data()).map_or(0, |file| file.len()) == 0 {
            continue;
        }
        let contents = Contents::read(&folder.data());
        assert_eq!(contents.error, None, "after {moment:?}");
        assert!(contents.metadata >= 1, "the file says what it is");
        let recording = Recording::open(&folder.data()).expect("readable");
        let names: Vec<&str> = recording.events().iter().map(|event| event.name.as_str()).collect();
        assert!(
            names.iter().any(|name| name.starts_with("energy/") || name.starts_with("cpu-clock")),
            "{names:?}"
        );
        check_balance(&recording, moment);
        if with_perf {
            found.seen_by_perf += seen_by_perf(&folder, &contents);
        }
        found.files += 1;
        found.samples += contents.samples;
    }
    found
}

/// All joules up to the end that the file has are accounted for.
fn check_balance(recording: &Recording, moment: Duration) {
    let profile = analyze::analyze(recording, &Options::default());
    let report = Report::new(&profile, &Symbols::default(), &report::Options::default());
    let report = report.expect("a report without conditions");
    for domain in &report.summary.domains {
        assert!(domain.balance.holds(), "{} after {moment:?}: {:?}", domain.name, domain.balance);
    }
}

fn seen_by_perf(folder: &Folder, contents: &Contents) -> u64 {
    let output = std::process::Command::new("perf")
        .args(["script", "-F", "event", "-i"])
        .arg(folder.data())
        .output()
        .expect("perf runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let seen = said.lines().filter(|line| line.contains("cpu-clock")).count() as u64;
    // perf goes by the header, which does not yet know of a round that was just written.
    assert!(output.status.success() && seen <= contents.samples, "{seen} of {contents:?}");
    seen
}

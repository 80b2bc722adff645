//! What perf writes otherwise than eprof does: losses that are told twice, and folders of files.

use std::path::Path;
use std::process::Output;

use eprof_testbed::eprof;
use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::{EventAttr, flag};
use perf_data::format::{event_type, feature, misc, record_type, sample_type};
use serde_json::Value;
use tempfile::TempDir;

/// Samples come so far apart.
const PERIOD: u64 = 1_000_000;

/// Two events that sample the time.
fn file() -> File {
    let event = |name, config, id| Event {
        attr: EventAttr {
            kind: event_type::SOFTWARE,
            config,
            sample_period: PERIOD,
            sample_type: sample_type::IP | sample_type::TIME | sample_type::CPU | sample_type::IDENTIFIER,
            flags: flag::SAMPLE_ID_ALL,
            ..EventAttr::default()
        },
        ids: vec![id],
        name,
    };
    File::new(vec![event("cpu-clock", 0, 1), event("task-clock", 1, 2)])
}

/// Appends samples of the first event on CPU 0 at these milliseconds.
fn add_samples(file: &mut File, millis: impl IntoIterator<Item = u64>) {
    for milli in millis {
        let body = file.bytes().u64s(&[1, 0x40_1000, milli * PERIOD, 0]).bytes;
        file.record(record_type::SAMPLE, misc::USER, &body);
    }
}

/// Appends what a ring tells that was full until then.
fn add_lost(file: &mut File, count: u64, milli: u64) {
    let body = file.bytes().u64s(&[1, count, milli * PERIOD, 0, 1]).bytes;
    file.record(record_type::LOST, 0, &body);
}

/// Appends what perf writes at the end of the counter with that id.
fn add_lost_in_all(file: &mut File, misc: u16, count: u64, id: u64) {
    let body = file.bytes().u64s(&[count, 0, 0, id]).bytes;
    file.record(record_type::LOST_SAMPLES, misc, &body);
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    eprof().args(arguments).current_dir(folder).output().expect("eprof runs")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[&["report", "--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What of each event was lost.
fn losses(json: &Value) -> Vec<u64> {
    let events = json["events"].as_array().expect("a list");
    events.iter().map(|event| event["lost"].as_u64().expect("a number")).collect()
}

#[test]
fn losses_that_perf_tells_again_at_the_end_are_counted_once() {
    let mut file = file();
    add_samples(&mut file, 0..100);
    add_lost(&mut file, 30, 150);
    add_samples(&mut file, 150..200);
    add_lost(&mut file, 20, 250);
    let (folder, told) = (tempfile::tempdir().expect("a folder"), file.clone());
    // Ten more found no room until the end.
    add_lost_in_all(&mut file, 0, 55, 1);
    add_lost_in_all(&mut file, 0, 5, 2);
    add_lost_in_all(&mut file, misc::LOST_SAMPLES_BPF, 1_000, 1);
    for (name, file) in [("told.data", &told), ("again.data", &file)] {
        std::fs::write(folder.path().join(name), file.build()).expect("writable");
    }
    let report = |arguments: &[&str]| json(folder.path(), arguments);
    assert_eq!(losses(&report(&["-i", "told.data"])), [50, 0]);
    let again = report(&["-i", "again.data"]);
    assert_eq!((losses(&again), &again["lost_samples"]), (vec![55, 5], &60.into()));
    // A loss weighs once beside samples.
    let estimated = |name| report(&["-i", name, "--watts", "10:30"])["balance"].clone();
    assert_eq!(estimated("told.data"), estimated("again.data"));
}

/// A folder as `perf record --threads` makes it.
fn folder_of_perf() -> TempDir {
    let mut first = file();
    // What perf made up before it began.
    first.record(record_type::FINISHED_INIT, 0, &[]);
    first.features = vec![(feature::DIR_FORMAT, first.bytes().u64(1).bytes)];
    let [mut one, mut other] = [file(), file()];
    add_samples(&mut one, (0..100).step_by(2));
    add_samples(&mut other, (1..100).step_by(2));
    let folder = tempfile::tempdir().expect("a folder");
    let within = folder.path().join("threads.data");
    std::fs::create_dir(&within).expect("writable");
    for (name, bytes) in [("data", first.build()), ("data.0", one.data), ("data.1", other.data)] {
        std::fs::write(within.join(name), bytes).expect("writable");
    }
    folder
}

#[test]
fn folders_that_perf_wrote_have_the_samples_of_all_their_files() {
    let folder = folder_of_perf();
    assert_eq!(json(folder.path(), &["-i", "threads.data"])["samples"], 100);
    let mut single = file();
    add_samples(&mut single, 0..10);
    std::fs::write(folder.path().join("single.data"), single.build()).expect("writable");
    assert_eq!(json(folder.path(), &["single.data", "threads.data"])["samples"], 110);
    // In the order of time.
    let script = run(folder.path(), &["script", "-i", "threads.data/data", "-F", "time"]);
    let times = String::from_utf8(script.stdout).expect("text");
    let times: Vec<&str> = times.lines().map(|line| line.trim().trim_end_matches(':')).collect();
    assert_eq!(
        &times[..3],
        ["0.000000", "0.001000", "0.002000"],
        "{}",
        String::from_utf8_lossy(&script.stderr)
    );
}

#[test]
fn a_folder_of_perf_without_its_records_is_no_recording_of_nothing() {
    let folder = folder_of_perf();
    for name in ["data.0", "data.1"] {
        std::fs::remove_file(folder.path().join("threads.data").join(name)).expect("writable");
    }
    let mut single = file();
    add_samples(&mut single, 0..10);
    std::fs::write(folder.path().join("single.data"), single.build()).expect("writable");
    for arguments in [&["threads.data"][..], &["single.data", "threads.data"]] {
        let output = run(folder.path(), &[&["report"], arguments].concat());
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && output.stdout.is_empty(), "{error}");
        assert!(
            error.contains("threads.data/data is one file of a folder that `perf record --threads` wrote"),
            "{error}"
        );
        assert!(error.trim_end().ends_with("record without --threads to get one file"), "{error}");
    }
}

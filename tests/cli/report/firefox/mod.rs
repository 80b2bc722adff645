//! `eprof export --format firefox`: what is written is what the Firefox Profiler reads, and all joules are in it.

mod format;
mod importer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use eprof_testbed::{eprof, published_data};
use flate2::read::GzDecoder;
use format::{faults, rows};
use serde_json::Value;

use super::recording::Recorded;
use super::several::identity;
use super::{Folder, number};

/// Microjoules that rounding of a thread's samples may move.
const ROUNDED: f64 = 2.0;
/// Picowatt-hours per joule.
const PWH: f64 = 1e12 / 3600.0;

/// What `eprof ARGUMENTS...` prints.
fn output(arguments: &[&str]) -> Vec<u8> {
    let output = eprof().args(arguments).output().expect("eprof runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn export(recording: &Path, arguments: &[&str]) -> Value {
    let path = recording.to_str().expect("a path");
    let compressed = output(&[&["export", path, "--format", "firefox"], arguments].concat());
    let mut text = String::new();
    GzDecoder::new(&compressed[..]).read_to_string(&mut text).expect("gzip");
    let profile = serde_json::from_str(&text).expect("JSON");
    assert_eq!(faults(&profile), Vec::<String>::new(), "{path} {arguments:?}");
    profile
}

fn report(recording: &Path, arguments: &[&str]) -> Value {
    let path = recording.to_str().expect("a path");
    serde_json::from_slice(&output(&[&["report", path, "--format", "json"], arguments].concat()))
        .expect("JSON")
}

fn weights(thread: &Value) -> f64 {
    rows(&thread["samples"]["weight"]).iter().map(number).sum()
}

/// Weights by the name of the innermost function.
fn by_function(profile: &Value) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for thread in rows(&profile["threads"]) {
        let at = |table: &str, column: &str, index: &Value| -> Value {
            thread[table][column][index.as_u64().expect("an index") as usize].clone()
        };
        let samples = &thread["samples"];
        for (stack, weight) in rows(&samples["stack"]).iter().zip(rows(&samples["weight"])) {
            if stack.is_null() {
                continue;
            }
            let frame = at("stackTable", "frame", stack);
            let name = at("funcTable", "name", &at("frameTable", "func", &frame));
            let name =
                thread["stringArray"][name.as_u64().expect("an index") as usize].as_str().expect("a name");
            *sums.entry(name.to_owned()).or_default() += number(weight);
        }
    }
    sums
}

/// Weights of samples are the report's joules, as a whole and by function; counters are what was measured.
fn holds_all_joules(recording: &Path, arguments: &[&str]) {
    let profile = export(recording, &[arguments, &["--no-inline"]].concat());
    let report = report(recording, &[arguments, &["--no-inline"]].concat());
    let threads = rows(&profile["threads"]);
    let sum: f64 = threads.iter().map(weights).sum();
    let attributed = number(&report["balance"]["attributed"]) * 1e6;
    let rounded = ROUNDED * threads.len() as f64 + 1e-6 * attributed;
    assert!((sum - attributed).abs() <= rounded, "{recording:?}: {sum} of {attributed} microjoules");

    let mut of_report: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows(&report["rows"]) {
        *of_report.entry(row["name"].as_str().expect("a name").to_owned()).or_default() +=
            number(&row["self_joules"]) * 1e6;
    }
    let of_export = by_function(&profile);
    for (name, joules) in &of_report {
        let exported = of_export.get(name).copied().unwrap_or_default();
        // Each sample is rounded, and what is lost by it goes to the next of the thread.
        let near = 0.001 * joules + 0.0001 * attributed + 20.0;
        assert!(
            (exported - joules).abs() <= near,
            "{recording:?} {name}: {exported} of {joules} microjoules"
        );
    }
    assert!(of_export.keys().all(|name| of_report.contains_key(name)), "{recording:?}: functions of its own");

    let counters = rows(&profile["counters"]);
    let domains = rows(&report["domains"]);
    assert_eq!(counters.len(), domains.len());
    for (counter, domain) in counters.iter().zip(domains) {
        assert_eq!(counter["category"], "power");
        let name = domain["name"].as_str().expect("a name");
        assert!(counter["name"].as_str().is_some_and(|text| text.contains(name)), "{}", counter["name"]);
        let joules = rows(&counter["samples"]["count"]).iter().map(number).sum::<f64>() / PWH;
        let measured = number(&domain["joules"]);
        assert!(
            (joules - measured).abs() <= 1e-6 * measured,
            "{recording:?} {name}: {joules} of {measured} J"
        );
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recordings").join(name)
}

#[test]
fn measured_joules_are_in_samples_and_power_tracks() {
    for name in ["guest-program-only.data", "guest-neighbours.data"] {
        holds_all_joules(&fixture(name), &[]);
        holds_all_joules(&fixture(name), &["--bucket", "20mJ"]);
        holds_all_joules(&fixture(name), &["--static", "spread"]);
    }
}

#[test]
fn one_domain_alone_weighs_its_own_joules() {
    let recording = fixture("guest-neighbours.data");
    let profile = export(&recording, &["--domain", "dram-0"]);
    let sum: f64 = rows(&profile["threads"]).iter().map(weights).sum();
    let domains = report(&recording, &[]);
    let dram = rows(&domains["domains"]).iter().find(|domain| domain["name"] == "dram-0").expect("memory");
    let joules = number(&dram["balance"]["attributed"]);
    assert!(joules > 0.0 && (sum * 1e-6 - joules).abs() < 1e-5, "{sum} microjoules of {joules} J");
}

#[test]
fn times_are_the_recordings_own() {
    let folder = Folder::with(&Recorded::default());
    let recording = folder.path().join("eprof.data");
    let profile = export(&recording, &[]);
    let meta = &profile["meta"];
    assert!(
        (number(&meta["profilingEndTime"]) - 1000.0).abs() < 1.0,
        "a second: {}",
        meta["profilingEndTime"]
    );
    assert_eq!(meta["product"], "app --work (microjoules)");
    let [thread] = rows(&profile["threads"]) else { panic!("one thread") };
    assert_eq!((&thread["name"], &thread["isMainThread"]), (&Value::from("app"), &Value::from(true)));
    let samples = &thread["samples"];
    let times = rows(&samples["time"]);
    assert!(times.iter().all(|time| (0.0..=1000.1).contains(&number(time))));
    // One CPU was busy all the time, at 10 W.
    let busy: f64 = rows(&samples["threadCPUDelta"]).iter().map(number).sum();
    assert!((busy * 1e-9 - 1.0).abs() < 0.05, "{busy} ns");
    assert!((weights(thread) - 10e6).abs() < 5.0, "{} microjoules", weights(thread));
    let first_half: f64 = times
        .iter()
        .zip(rows(&samples["weight"]))
        .filter(|(time, _)| number(time) < 500.0)
        .map(|(_, weight)| number(weight))
        .sum();
    assert!((first_half * 1e-6 - 5.0).abs() < 0.5, "{first_half} microjoules in the first half");
    let watts = &thread["markers"]["data"][0]["power"];
    assert_eq!(watts, "10.00 W");
    let lines = thread["frameTable"]["line"].as_array().expect("lines");
    assert!(lines.iter().any(Value::is_u64), "lines of this test's own functions");
}

/// One each millisecond, and none is merged with another.
#[test]
fn each_sample_stands_where_it_was_taken() {
    let folder = Folder::with(&Recorded::default());
    let recording = folder.path().join("eprof.data");
    let profile = export(&recording, &[]);
    let [thread] = rows(&profile["threads"]) else { panic!("one thread") };
    let samples = &thread["samples"];
    let taken =
        rows(&samples["time"]).iter().zip(rows(&samples["stack"])).filter(|(_, stack)| !stack.is_null());
    let times: Vec<f64> = taken.map(|(time, _)| number(time)).collect();
    assert_eq!(times, (1..=1000).map(f64::from).collect::<Vec<f64>>());
    let attributed = number(&report(&recording, &[])["balance"]["attributed"]) * 1e6;
    assert!((weights(thread) - attributed).abs() < 1e-3, "{} of {attributed} microjoules", weights(thread));
    assert_eq!(profile["meta"]["interval"], 1.0);
}

/// Weights of a thread's samples, and how many milliseconds after the start they came.
fn weights_in_time(thread: &Value) -> Vec<(f64, f64)> {
    let samples = &thread["samples"];
    let rows = rows(&samples["time"]).iter().zip(rows(&samples["weight"]));
    rows.map(|(time, weight)| (number(time), number(weight))).filter(|(_, weight)| *weight > 0.0).collect()
}

/// Joules of a power track, and when they were counted.
fn joules_in_time(counter: &Value) -> Vec<(f64, f64)> {
    let samples = &counter["samples"];
    let rows = rows(&samples["time"]).iter().zip(rows(&samples["count"]));
    rows.map(|(time, count)| (number(time), number(count) / PWH))
        .filter(|(_, joules)| *joules > 0.0)
        .collect()
}

/// Two ranks of one machine at one time, and one of another machine that began three seconds after them: each of one second.
#[test]
fn several_recordings_stand_where_the_wall_clock_had_them() {
    let folder = Folder::with(&Recorded::default());
    let ranks = folder.path().join("ranks");
    std::fs::create_dir(&ranks).expect("writable");
    for (boot, rank, late) in [("one", 0, 0), ("one", 1, 0), ("two", 2, 3_000_000_000)] {
        let mut recorded = Recorded { recorder: rank + 1, ..Recorded::default() };
        recorded.identity = Some(identity(boot, rank));
        recorded.started_unix_ns += late;
        recorded.write(&ranks.join(format!("{rank}.data")));
    }
    let profile = export(&ranks, &[]);
    let report = report(&ranks, &[]);
    assert!((number(&profile["meta"]["profilingEndTime"]) - 4000.0).abs() < 1.0, "{}", profile["meta"]);

    let threads = rows(&profile["threads"]);
    let sum: f64 = threads.iter().map(weights).sum();
    let attributed = number(&report["balance"]["attributed"]) * 1e6;
    assert!(
        (sum - attributed).abs() <= ROUNDED * 3.0 + 1e-5 * attributed,
        "{sum} of {attributed} microjoules"
    );
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let found: BTreeMap<String, &Value> =
        threads.iter().map(|thread| (text(&thread["processName"]), thread)).collect();
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["app (n-one, rank=0)", "app (n-one, rank=1)", "app (n-two, rank=2)"]);
    let mut pids: Vec<String> = threads.iter().map(|thread| text(&thread["pid"])).collect();
    pids.sort();
    assert_eq!(pids, ["4242", "4242.2", "4242.3"], "one number, three processes");
    for (name, when) in names.iter().zip([0.0..1000.1, 0.0..1000.1, 2999.9..4000.1]) {
        let samples = weights_in_time(found[*name]);
        assert!(samples.iter().all(|(time, _)| when.contains(time)), "{name}: {samples:?}");
        // They lie all over it: a second of which half is in the first half.
        let middle = (when.start + when.end) / 2.0;
        let all: f64 = samples.iter().map(|(_, weight)| weight).sum();
        let first: f64 = samples.iter().filter(|(time, _)| *time < middle).map(|(_, weight)| weight).sum();
        assert!((first / all - 0.5).abs() < 0.05, "{name}: {first} of {all} microjoules");
    }

    let counters = rows(&profile["counters"]);
    let names: Vec<String> = counters.iter().map(|counter| text(&counter["name"])).collect();
    assert_eq!(names, ["Power: package-0 of n-one", "Power: package-0 of n-two"]);
    for (counter, when) in counters.iter().zip([0.0..1000.1, 2999.9..4000.1]) {
        let joules = joules_in_time(counter);
        let sum: f64 = joules.iter().map(|(_, joules)| joules).sum();
        assert!((sum - 10.0).abs() < 1e-6, "{sum} J: two ranks read one meter");
        assert!(joules.iter().all(|(time, _)| when.contains(time)), "{joules:?}");
        let main = &threads[counter["mainThreadIndex"].as_u64().expect("an index") as usize];
        let of = text(&main["processName"]);
        assert!(of.contains(&names[usize::from(when.start > 0.0)]["Power: package-0 of ".len()..]), "{of}");
    }
    // Other words for them, if these are asked for.
    let by_color = export(&ranks, &["--by", "label:color"]);
    let pids: BTreeSet<String> =
        rows(&by_color["threads"]).iter().map(|thread| text(&thread["pid"])).collect();
    assert_eq!(pids.len(), 3, "{pids:?}");
    assert!(rows(&by_color["threads"]).iter().all(|thread| thread["processName"] == "app (color=red)"));
}

#[test]
fn estimated_joules_are_said_to_be() {
    let recorded = Recorded { watts_error: Some(0.3), ..Recorded::default() };
    let folder = Folder::with(&recorded);
    let profile = export(&folder.path().join("eprof.data"), &[]);
    assert_eq!(profile["meta"]["product"], "app --work (microjoules, estimated)");
    assert_eq!(profile["counters"][0]["name"], "Power: package-0 (estimated)");
    assert!(profile["counters"][0]["description"].as_str().expect("text").contains("ESTIMATED"));
}

#[test]
fn names_that_would_break_a_terminal_are_made_safe() {
    let recorded = Recorded { comm: "a\u{1b}[31m\nb", ..Recorded::default() };
    let folder = Folder::with(&recorded);
    let text = export(&folder.path().join("eprof.data"), &[]).to_string();
    assert!(!text.contains("\\u001b") && !text.contains("\\n"));
}

#[test]
fn recordings_of_perf_are_read_with_and_without_watts() {
    let Some(data) = published_data() else { return };
    let folders = ["perf_data_converter", "linux-perf-data"].map(|name| std::fs::read_dir(data.join(name)));
    let files = folders.into_iter().flat_map(|folder| folder.expect("a folder"));
    let mut recordings: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    recordings.retain(|path| !path.to_string_lossy().ends_with(".buildids"));
    recordings.sort();
    let mut tried = 0;
    for recording in recordings {
        let path = recording.to_str().expect("a path");
        let readable = eprof().args(["report", path, "--format", "json"]).output().expect("eprof runs");
        if !readable.status.success() {
            continue;
        }
        tried += 1;
        let counted: Value = serde_json::from_slice(&readable.stdout).expect("JSON");
        let samples: f64 = rows(&counted["events"]).iter().map(|event| number(&event["samples"])).sum();
        if samples == 0.0 {
            let refused = eprof().args(["export", path, "--format", "firefox"]).output().expect("eprof runs");
            assert!(!refused.status.success() && refused.stdout.is_empty(), "{path}: {refused:?}");
            continue;
        }
        // Its samples, of which nothing tells how much they spent.
        let profile = export(&recording, &[]);
        let sum: f64 = rows(&profile["threads"]).iter().map(weights).sum();
        assert_eq!(sum, samples, "{path}");
        let estimated = eprof().args(["report", path, "--watts", "10:60", "--format", "json"]).output();
        let estimated: Value = serde_json::from_slice(&estimated.expect("eprof runs").stdout).expect("JSON");
        if estimated["total_joules"].as_f64().is_some_and(|joules| joules > 0.0) {
            holds_all_joules(&recording, &["--watts", "10:60"]);
        }
    }
    assert!(tried >= 20, "{tried} recordings");
}

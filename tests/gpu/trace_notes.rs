//! What `eprof gpu correct` and `calibrate` say of logs that do not fit what they are read with.

use std::path::{Path, PathBuf};
use std::process::Command;

use eprof_testbed::gpu::sensor::{Follows, Sensor, as_nvidia_smi, at, energy};
use eprof_testbed::published;
use serde_json::Value;

/// Two bursts, after each of which a card rests at 60 W.
const LOAD: [(f64, f64); 5] = [(0.0, 30.0), (2.0, 180.0), (3.5, 60.0), (5.0, 120.0), (5.5, 60.0)];

fn sensor(follows: Follows, refresh: f64) -> Sensor {
    let poll = 0.005;
    Sensor {
        follows,
        refresh,
        resolution: 0.001,
        noise: 0.2,
        poll,
        poll_at_refresh: poll,
        stalls: vec![],
        seed: 4,
    }
}

/// What is printed, or why nothing is.
fn eprof(arguments: &[&str], trace: &Path) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
    let output = command.arg("gpu").args(arguments).arg(trace).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

/// A log of a capacitor, and the sensor that was found in it.
fn calibrated(folder: &Path) -> (PathBuf, PathBuf) {
    let (csv, model) = (folder.join("trace.csv"), folder.join("sensor.json"));
    let slow = sensor(Follows::Rc(0.2), 0.015);
    std::fs::write(&csv, as_nvidia_smi(&slow.poll(&LOAD, 8.0, None))).expect("written");
    eprof(&["calibrate", "--save", text(&model)], &csv).expect("a sensor");
    (csv, model)
}

/// With another level at rest in the sensor's file.
fn with_idle(model: &Path, watts: f64) {
    let json = std::fs::read_to_string(model).expect("saved");
    let mut json: Value = serde_json::from_str(&json).expect("JSON");
    json["active_idle"] = watts.into();
    std::fs::write(model, json.to_string()).expect("written");
}

#[test]
fn a_log_that_rests_elsewhere_counts_from_its_own_level() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, model) = calibrated(folder.path());
    let arguments = ["correct", "--format", "json", "--sensor", text(&model)];
    let report =
        || -> Value { serde_json::from_str(&eprof(&arguments, &csv).expect("corrected")).expect("JSON") };
    let truth = energy(&LOAD, 2.0, 3.5) + energy(&LOAD, 5.0, 5.5) - 2.0 * 60.0;
    let assert_true = |report: &Value| {
        let above = report["total"]["above_idle_j"].as_f64().expect("joules");
        assert!((above / truth - 1.0).abs() < 0.02, "{above} of {truth} J");
    };
    let as_found = report();
    assert_true(&as_found);
    assert!(!as_found["notes"].to_string().contains("the log rests at"), "{as_found}");
    for (watts, described) in [(40.0, "has 40.0 ± "), (90.0, "has 90.0 ± ")] {
        with_idle(&model, watts);
        let report = report();
        assert_true(&report);
        let notes = report["notes"].to_string();
        assert!(notes.contains("the log rests at ") && notes.contains(described), "{notes}");
    }
}

/// One poll of 1600 that failed takes every burst with it, as undoing the lag makes it 13 times as large.
#[test]
fn a_reading_that_the_lag_cannot_show_is_left_out_and_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, model) = calibrated(folder.path());
    let arguments = ["correct", "--format", "json", "--sensor", text(&model)];
    let above = |csv: &Path| -> (f64, String) {
        let report: Value = serde_json::from_str(&eprof(&arguments, csv).expect("corrected")).expect("JSON");
        (report["total"]["above_idle_j"].as_f64().expect("joules"), report["notes"].to_string())
    };
    let (right, notes) = above(&csv);
    assert!(!notes.contains("left out"), "{notes}");
    let log = std::fs::read_to_string(&csv).expect("a log");
    for (row, watts) in [(700, "0.00"), (700, "900.00"), (1300, "5.00")] {
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        let (time, _) = lines[row].rsplit_once(", ").expect("a time and watts");
        lines[row] = format!("{time}, {watts} W");
        let wrong = folder.path().join("wrong.csv");
        std::fs::write(&wrong, lines.join("\n")).expect("written");
        let (found, notes) = above(&wrong);
        let told = format!("left out: one reading ({:.1} W, ", watts.parse::<f64>().expect("watts"));
        assert!(notes.contains(&told), "{watts} W: {notes}");
        assert!((found / right - 1.0).abs() < 0.005, "{watts} W: {found} for {right} J");
    }
}

/// What a card falls to when its program has ended is no active idle: that of the file counts, and the note says so.
#[test]
fn a_log_without_rests_between_loads_counts_from_the_files_level() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, model) = calibrated(folder.path());
    let once = [(0.0, 30.0), (2.0, 180.0), (3.5, 30.0)];
    let slow = sensor(Follows::Rc(0.2), 0.015);
    std::fs::write(&csv, as_nvidia_smi(&slow.poll(&once, 8.0, None))).expect("written");
    let found = eprof(&["correct", "--sensor", text(&model)], &csv).expect("corrected");
    assert!(found.contains("active idle 60.") || found.contains("active idle 59."), "{found}");
    assert!(found.contains("W after its load, and the sensor's description has"), "{found}");
    // All of a log above it.
    let high: Vec<(f64, f64)> = LOAD.iter().map(|(at, watts)| (*at, watts + 100.0)).collect();
    std::fs::write(&csv, as_nvidia_smi(&slow.poll(&high[..2], 8.0, None))).expect("written");
    let found = eprof(&["correct", "--sensor", text(&model)], &csv).expect("corrected");
    assert!(found.contains("note: the log never falls below 1"), "{found}");
}

#[test]
fn how_much_a_window_covers_is_told_as_far_as_it_is_known() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("trace.csv");
    let short = sensor(Follows::Window(0.025), 0.1);
    std::fs::write(&csv, as_nvidia_smi(&short.poll(&LOAD, 8.0, None))).expect("written");
    let found = eprof(&["correct"], &csv).expect("corrected");
    assert!(found.contains("window may cover as little as 21 % of the time"), "{found}");
    let found = eprof(&["correct", "--sensor", "boxcar:25ms"], &csv).expect("corrected");
    assert!(found.contains("window covers 25 % of the time"), "{found}");
}

#[test]
fn a_spike_is_told_where_it_hides_the_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("trace.csv");
    let row = |(n, reading): (usize, &eprof::gpu::trace::PowerReading)| {
        let seconds = (reading.time.as_nanos() - at(0.0).as_nanos()) as f64 / 1e9;
        format!("{seconds:.4},{}\n", if n == 500 { 2000.0 } else { reading.power.as_watts() })
    };
    let trace = sensor(Follows::Window(0.01), 0.02).poll(&LOAD, 8.0, None);
    let rows: String = trace.readings().iter().enumerate().map(row).collect();
    std::fs::write(&csv, format!("time_s,power_w\n{rows}")).expect("written");
    for verb in ["correct", "calibrate"] {
        let error = eprof(&[verb], &csv).expect_err("no load of its own");
        assert!(error.contains("one reading is more than three times as high"), "{error}");
        assert!(error.contains("(2000.0 W, 2.49"), "{error}");
    }
}

#[test]
fn a_gpu_is_chosen_by_any_of_its_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("trace.csv");
    let trace = sensor(Follows::Rc(0.2), 0.015).poll(&LOAD, 8.0, None);
    let row = |reading: &eprof::gpu::trace::PowerReading| {
        let (nanos, watts) = (reading.time.as_nanos(), reading.power.as_watts());
        format!("{nanos},0,GPU-aa,{watts:.2}\n{nanos},1,GPU-bb,{:.2}\n", watts + 100.0)
    };
    let rows: String = trace.readings().iter().map(row).collect();
    std::fs::write(&csv, format!("time_ns,index,uuid,power [W]\n{rows}")).expect("written");
    let of = |gpu: &str| eprof(&["correct", "--gpu", gpu], &csv);
    assert_eq!(of("1").expect("an index"), of("GPU-bb").expect("a uuid"));
    assert_ne!(of("0").expect("an index"), of("GPU-bb").expect("a uuid"));
    assert!(of("GPU-cc").expect_err("no such GPU").contains("it has: 0 (GPU-aa), 1 (GPU-bb)"));
}

/// A load in step with the sensor, of which the window's fit and that of the levels tell other delays.
#[test]
fn the_delay_that_is_printed_is_the_one_that_is_stored() {
    let file = |kind: &str| published(&format!("gpu-power-benchmark/a100-5050.{kind}.csv"));
    let (Some(trace), Some(steps)) = (file("nvsmi"), file("load-steps")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("sensor.json");
    let found =
        eprof(&["calibrate", "--steps", text(&steps), "--save", text(&saved)], &trace).expect("a fit");
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&saved).expect("saved")).expect("JSON");
    let stored = |what: &str| json["delay"][what].as_f64().expect("seconds") * 1e3;
    let line = format!("delay of answers {:.1} ± {:.1} ms", stored("seconds"), stored("std_error"));
    assert!(found.contains(&line), "{line} in {found}");
    assert!(found.contains("the window was found with a delay of -59.0 ms"), "{found}");
}

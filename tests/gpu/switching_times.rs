//! `eprof gpu correct --steps` where times or sensor are not what they are said to be.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use eprof::gpu::trace::PowerTrace;
use eprof_testbed::gpu::sensor::{Follows, Sensor, at};
use eprof_testbed::published;
use serde_json::Value;

fn correct(trace: &Path, steps: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eprof"))
        .args(["gpu", "correct", "--format", "json", "--steps"])
        .arg(steps)
        .arg(trace)
        .args(more)
        .output()
        .expect("runs")
}

fn as_csv(trace: &PowerTrace) -> String {
    let row = |reading: &eprof::gpu::trace::PowerReading| {
        format!("{},{:.2}\n", reading.time.as_nanos() / 1000, reading.power.as_watts())
    };
    trace.readings().iter().map(row).fold("time_us,power_w\n".to_owned(), |text, row| text + &row)
}

#[track_caller]
fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Nanoseconds and joules of each row of what is written.
fn written(path: &Path) -> Vec<(f64, f64)> {
    let text = std::fs::read_to_string(path).expect("written");
    let cells =
        |line: &str| line.split(',').map(|cell| cell.parse().expect("a number")).collect::<Vec<f64>>();
    text.lines().skip(1).map(cells).map(|cells| (cells[0], cells[2])).collect()
}

/// The energy until the last row that is not later.
fn until(rows: &[(f64, f64)], nanos: f64) -> f64 {
    rows.iter().take_while(|row| row.0 <= nanos).last().expect("a row").1
}

/// 20 bursts of 50 ms with rests as long, of which the file has the program's end, too: an odd number of times.
fn with_an_end(folder: &Path) -> (PathBuf, PathBuf, Vec<f64>) {
    let times: Vec<f64> = (0..=40).map(|n| 2.0 + 0.052 * f64::from(n)).collect();
    let levels = times[..40].iter().zip([300.0, 60.0].into_iter().cycle()).map(|(at, watts)| (*at, watts));
    let load: Vec<(f64, f64)> = std::iter::once((0.0, 60.0)).chain(levels).collect();
    let sensor = Sensor {
        follows: Follows::Window(0.025),
        refresh: 0.1,
        resolution: 0.01,
        noise: 0.5,
        poll: 0.012,
        poll_at_refresh: 0.012,
        stalls: vec![],
        seed: 2,
    };
    let (trace, steps) = (folder.join("trace.csv"), folder.join("steps"));
    std::fs::write(&trace, as_csv(&sensor.poll(&load, 9.0, None))).expect("written");
    let micros = |seconds: &f64| format!("{}\n", at(*seconds).as_nanos() / 1000);
    std::fs::write(&steps, times.iter().map(micros).collect::<String>()).expect("written");
    (trace, steps, times)
}

#[test]
fn what_follows_the_programs_end_is_as_it_was_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, steps, times) = with_an_end(folder.path());
    let output = folder.path().join("corrected.csv");
    let options = ["--sensor", "boxcar:25ms", "--output", output.to_str().expect("a path")];
    let report = report(&correct(&trace, &steps, &options));
    let notes = report["notes"].to_string();
    assert!(notes.contains("41 different times") && notes.contains("take it out of the file"), "{notes}");
    let rows = written(&output);
    let nanos = |seconds: f64| at(seconds).as_nanos() as f64;
    let (first, last) = (nanos(times[0]), nanos(times[40]));
    let end = rows.last().expect("rows");
    let behind = (end.1 - until(&rows, last)) / (end.0 - last) * 1e9;
    assert!((behind - 60.0).abs() < 2.0, "{behind} W at rest");
    // What is printed is what is written: from the first time to the last.
    let (printed, written) = (&report["total"]["corrected_j"], until(&rows, last) - until(&rows, first));
    let printed = printed.as_f64().expect("joules");
    assert!((written / printed - 1.0).abs() < 1e-3, "{written} J written, {printed} J printed");
    // Without that time nothing is wrong.
    let lines: Vec<String> =
        std::fs::read_to_string(&steps).expect("times").lines().map(String::from).collect();
    std::fs::write(&steps, lines[..40].join("\n")).expect("written");
    let notes = self::report(&correct(&trace, &steps, &options))["notes"].to_string();
    assert!(!notes.contains("different times"), "{notes}");
}

/// An A100 beside a meter; its list of times ends with the program's end.
#[test]
fn an_a100_rests_after_the_programs_end() {
    let file = |kind: &str| published(&format!("gpu-power-benchmark/a100-5050.{kind}.csv"));
    let (Some(trace), Some(steps)) = (file("nvsmi"), file("load-steps")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("corrected.csv");
    let report = report(&correct(&trace, &steps, &["--output", output.to_str().expect("a path")]));
    assert!(report["notes"].to_string().contains("153 different times"), "{report}");
    let rows = written(&output);
    let (end, last) = (rows.last().expect("rows"), 1_689_325_975_912_681_000.0);
    let behind = (end.1 - until(&rows, last)) / (end.0 - last) * 1e9;
    assert!((59.0..61.5).contains(&behind), "{behind} W where 59 to 61 W were read");
}

/// Readings that jump within a tenth of a second are no K20's, which takes two seconds.
#[test]
fn another_cards_sensor_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, steps, _) = with_an_end(folder.path());
    for sensor in ["k20", "rc:833ms"] {
        let output = correct(&trace, &steps, &["--sensor", sensor]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success()
                && error.contains("bad fit")
                && error.contains("as rc, time constant 83"),
            "{error}"
        );
    }
    let file = |kind: &str| published(&format!("gpu-power-benchmark/a100-5050.{kind}.csv"));
    let (Some(trace), Some(steps)) = (file("nvsmi"), file("load-steps")) else { return };
    let output = correct(&trace, &steps, &["--sensor", "k20"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success()
            && error.contains("bad fit")
            && error.contains("30.7 %")
            && error.contains("Leave --sensor out"),
        "{error}"
    );
    // Without times it is corrected, and the doubt is told.
    let output = Command::new(env!("CARGO_BIN_EXE_eprof"))
        .args(["gpu", "correct", "--sensor", "k20"])
        .arg(&trace)
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("note: bad fit"), "{text}");
}

/// A level that the GPU never rests at: loads would have drawn less than nothing.
#[test]
fn joules_below_idle_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let load = [(0.0, 60.0), (3.0, 90.0), (4.0, 60.0), (6.0, 200.0), (7.0, 60.0)];
    let sensor = Sensor {
        follows: Follows::Rc(0.2),
        refresh: 0.015,
        resolution: 0.001,
        noise: 0.1,
        poll: 0.005,
        poll_at_refresh: 0.005,
        stalls: vec![],
        seed: 3,
    };
    let (trace, steps) = (folder.path().join("trace.csv"), folder.path().join("steps"));
    std::fs::write(&trace, as_csv(&sensor.poll(&load, 10.0, None))).expect("written");
    let lines: String = [3.0, 4.0, 6.0, 7.0].map(|time| format!("{}\n", at(time).as_nanos() / 1000)).concat();
    std::fs::write(&steps, lines).expect("written");
    let model = folder.path().join("sensor.json");
    let notes = |idle: &str| {
        let kind = "{\"rc\":{\"time_constant\":200000000}}";
        let json = format!(
            "{{\"kind\":{kind},\"refresh\":15000000,\"gain\":1,\"offset\":0,\"active_idle\":{idle}}}"
        );
        std::fs::write(&model, json).expect("written");
        let options = ["--sensor", model.to_str().expect("a path")];
        report(&correct(&trace, &steps, &options))["notes"].to_string()
    };
    assert!(notes("100").contains("1 of 2 bursts drew less than the idle level"), "{}", notes("100"));
    assert!(!notes("60").contains("idle level"), "{}", notes("60"));
}

/// An RTX 3090 whose list of times ends with the program's end, too: its window is told by what lies before that.
#[test]
fn a_windows_switching_times_may_end_with_the_program() {
    let file = |kind: &str| published(&format!("gpu-power-benchmark/rtx3090-step.{kind}.csv"));
    let (Some(trace), Some(steps)) = (file("nvsmi"), file("load-steps")) else { return };
    let found = report(&correct(&trace, &steps, &[]));
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("the switching times tell the sensor") && notes.contains("3 different times"),
        "{notes}"
    );
    assert!(!notes.contains("half of that is assumed"), "{notes}");
}

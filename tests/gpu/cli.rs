//! `eprof gpu correct`, `calibrate` and `model` as a person runs them.

use std::path::Path;
use std::process::{Command, Output};

use eprof_testbed::fakes::{fake_gpu, virtual_time};
use eprof_testbed::gpu::recording::{Gpu, write};
use eprof_testbed::gpu::sensor::{Follows, Sensor, as_nvidia_smi, energy};
use eprof_testbed::outputs::{refused, said};
use serde_json::Value;

/// Watts from a time on: a load of 1.5 s and one of half a second.
const LOAD: [(f64, f64); 5] = [(0.0, 30.0), (2.0, 180.0), (3.5, 60.0), (5.0, 120.0), (5.5, 60.0)];
const END: f64 = 8.0;

fn volta(seed: u64) -> Sensor {
    Sensor {
        follows: Follows::Window(0.01),
        refresh: 0.02,
        resolution: 0.001,
        noise: 0.2,
        poll: 0.005,
        poll_at_refresh: 0.005,
        stalls: vec![],
        seed,
    }
}

fn gpu(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eprof")).arg("gpu").args(arguments).arg(file).output().expect("runs")
}

/// Both bursts with their energies within 2 %.
#[track_caller]
fn assert_bursts(json: &str) {
    let report: Value = serde_json::from_str(json).expect("JSON");
    let bursts = report["bursts"].as_array().expect("bursts");
    let joules: Vec<f64> = bursts.iter().filter_map(|burst| burst["corrected_j"].as_f64()).collect();
    let truth = [energy(&LOAD, 2.0, 3.5), energy(&LOAD, 5.0, 5.5)];
    assert_eq!(joules.len(), truth.len(), "{json}");
    for (found, truth) in joules.iter().zip(truth) {
        assert!((found / truth - 1.0).abs() < 0.02, "{found} J of {truth} J");
    }
}

#[test]
fn a_csv_is_calibrated_and_corrected() {
    let folder = tempfile::tempdir().expect("a folder");
    let (csv, model) = (folder.path().join("trace.csv"), folder.path().join("sensor.json"));
    let slow = Sensor { follows: Follows::Rc(0.2), refresh: 0.015, ..volta(7) };
    std::fs::write(&csv, as_nvidia_smi(&slow.poll(&LOAD, END, None))).expect("written");
    let text = said(&gpu(&["calibrate", "--save", model.to_str().expect("a path")], &csv));
    assert!(text.contains("rc, time constant") && text.contains("active idle"), "{text}");
    let text =
        said(&gpu(&["correct", "--sensor", model.to_str().expect("a path"), "--format", "json"], &csv));
    assert_bursts(&text);
    assert!(refused(&gpu(&["calibrate"], Path::new("/nonexistent.csv"))).contains("/nonexistent.csv"));
}

#[test]
fn a_recordings_sensor_is_corrected_as_it_told_its_power() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("eprof.data");
    let slow = Sensor { follows: Follows::Rc(0.2), refresh: 0.015, ..volta(3) };
    write(&path, &[Gpu::with_sensor(&slow.poll(&LOAD, END, None))]);
    // The kind is inferred from the steps of the recorded load itself.
    let text = said(&gpu(&["correct", "--format", "json"], &path));
    assert!(text.contains("rc, time constant"), "{text}");
    assert_bursts(&text);
    let table = said(&gpu(&["correct", "--sensor", "rc:200ms"], &path));
    assert!(table.starts_with("gpu-0, NVML instant power (Fake GPU): rc"), "{table}");
    assert!(said(&gpu(&["calibrate"], &path)).contains("rc, time constant"));
}

#[test]
fn a_recordings_counter_needs_no_correction() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("eprof.data");
    let counter = Gpu::with_counter(|time| energy(&LOAD, 0.0, time), END);
    let sensor = Gpu::with_sensor(&volta(5).poll(&LOAD, END, None));
    write(&path, &[counter, sensor]);
    assert!(refused(&gpu(&["correct"], &path)).contains("--gpu (gpu-0, gpu-1)"));
    assert!(refused(&gpu(&["correct", "--gpu", "gpu-2"], &path)).contains("it has: gpu-0, gpu-1"));
    let text = said(&gpu(&["correct", "--gpu", "0", "--format", "json"], &path));
    assert!(text.contains("\"sensor\": \"counter\""), "{text}");
    assert_bursts(&text);
    assert_bursts(&said(&gpu(&["correct", "--gpu", "gpu-1", "--format", "json"], &path)));
    assert!(refused(&gpu(&["calibrate", "--gpu", "0"], &path)).contains("nothing to calibrate"));
}

/// A load of 99.7 ms under a window of 100 ms: every reading is nearly the same mean. It tells joules; levels fitted to what
/// differs are what noise makes of them.
#[test]
fn levels_that_no_reading_tells_apart_are_not_made_up() {
    let switches: Vec<f64> = (0..400).map(|n| 2.0 + 0.0997 / 2.0 * f64::from(n)).collect();
    let levels = switches.iter().zip([300.0, 60.0].into_iter().cycle()).map(|(at, watts)| (*at, watts));
    let load: Vec<(f64, f64)> = std::iter::once((0.0, 60.0)).chain(levels).collect();
    let sensor = Sensor { follows: Follows::Window(0.1), refresh: 0.1, noise: 0.7, poll: 0.012, ..volta(2) };
    let trace = sensor.poll(&load, 24.0, None);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let seconds = |reading: &eprof::gpu::trace::PowerReading| {
        (reading.time.as_nanos() - eprof_testbed::gpu::sensor::at(0.0).as_nanos()) as f64 / 1e9
    };
    let rows: String = trace
        .readings()
        .iter()
        .map(|reading| format!("{:.6},{:.3}\n", seconds(reading), reading.power.as_watts()))
        .collect();
    std::fs::write(path("trace.csv"), format!("time [s],power [W]\n{rows}")).expect("written");
    let lines: String = switches.iter().map(|at| format!("{at:.6}\n")).collect();
    std::fs::write(path("switches"), lines).expect("written");
    let (steps, output) = (path("switches"), path("corrected.csv"));
    let arguments = ["correct", "--sensor", "boxcar:100ms", "--format", "json", "--steps"];
    let arguments: Vec<&str> = arguments
        .into_iter()
        .chain([steps.to_str().expect("a path"), "--output", output.to_str().expect("a path")])
        .collect();
    let report: Value = serde_json::from_str(&said(&gpu(&arguments, &path("trace.csv")))).expect("JSON");
    let total = &report["total"];
    let joules = total["corrected_j"].as_f64().expect("joules");
    let error = total["stderr_j"].as_f64().expect("an error");
    let truth = energy(&load, switches[0], switches[399]);
    assert!(
        (joules / truth - 1.0).abs() < 0.005 && (joules - truth).abs() < 1.96 * error,
        "{joules} of {truth}"
    );
    let raw = total["raw_j"].as_f64().expect("joules");
    assert!((joules - truth).abs() <= (raw - truth).abs() + 0.005 * truth, "{joules}, raw {raw}, of {truth}");
    // What is written is what is printed.
    let text = std::fs::read_to_string(output).expect("written");
    let knots: Vec<(f64, f64)> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().expect("a number")).collect::<Vec<f64>>())
        .map(|cells| (cells[0] / 1e9, cells[2]))
        .collect();
    let until = |time: f64| knots.iter().take_while(|knot| knot.0 <= time).last().expect("a knot").1;
    let written = until(switches[399]) - until(switches[0]);
    assert!((written / joules - 1.0).abs() < 0.01, "{written} and {joules}");
}

/// Bursts as `gpu correct` reports them, each with its truth: energy between the burst's own times.
fn corrected(
    sensor: &Sensor,
    load: &[(f64, f64)],
    end: f64,
    keep: impl Fn(f64) -> bool,
    options: &[&str],
) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.csv");
    let trace = sensor.poll(load, end, None);
    let origin = eprof_testbed::gpu::sensor::at(0.0).as_nanos();
    let seconds = |reading: &eprof::gpu::trace::PowerReading| (reading.time.as_nanos() - origin) as f64 / 1e9;
    let rows: String = trace
        .readings()
        .iter()
        .filter(|reading| keep(seconds(reading)))
        .map(|reading| format!("{:.6},{:.3}\n", seconds(reading), reading.power.as_watts()))
        .collect();
    std::fs::write(&path, format!("time [s],power [W]\n{rows}")).expect("written");
    let arguments: Vec<&str> =
        ["correct", "--format", "json"].into_iter().chain(options.iter().copied()).collect();
    serde_json::from_str(&said(&gpu(&arguments, &path))).expect("JSON")
}

fn joules(of: &Value, what: &str) -> f64 {
    of[what].as_f64().unwrap_or_else(|| panic!("{what} in {of}"))
}

/// How many of its standard errors the whole trace's energy is off.
fn off(report: &Value, truth: f64) -> f64 {
    (joules(&report["total"], "corrected_j") - truth) / joules(&report["total"], "stderr_j")
}

/// An A100's window sees 25 of 100 ms. A load that repeats in step with it looks as one that holds still, at whatever
/// power it has in the window.
#[test]
fn bars_have_the_time_that_a_window_never_sees() {
    let sensor = Sensor { follows: Follows::Window(0.025), refresh: 0.1, noise: 0.7, poll: 0.01, ..volta(3) };
    let pulses = |period: f64, on: f64| -> Vec<(f64, f64)> {
        let count = (10.0 / period) as usize;
        let pulse = |n: usize| {
            let at = 2.0 + period * n as f64;
            [(at, 300.0), (at + on * period, 60.0)]
        };
        std::iter::once((0.0, 60.0)).chain((0..count).flat_map(pulse)).collect()
    };
    let mut held = 0;
    let mut tried = 0;
    for on in [0.3, 0.5, 0.8] {
        for shift in 0..4 {
            let load: Vec<(f64, f64)> = pulses(0.1, on)
                .into_iter()
                .map(|(at, watts)| (if at > 0.0 { at + 0.025 * f64::from(shift) } else { at }, watts))
                .collect();
            let report = corrected(&sensor, &load, 14.0, |_| true, &["--sensor", "boxcar:25ms"]);
            let off = off(&report, energy(&load, 0.0, 14.0));
            println!("{on} on, {shift}: {off:.2} standard errors; {report}");
            if !report["bursts"].as_array().expect("bursts").is_empty() {
                tried += 1;
                held += usize::from(off.abs() < 1.96);
                assert!(off.abs() < 3.0, "{report}");
                assert!(report["notes"].to_string().contains("covers 25 % of the time"), "{report}");
            }
        }
    }
    assert!(tried >= 6 && held * 10 >= tried * 8, "{held} of {tried}");
    // A window of which only its limit is known may be as short, and that half of the limit is taken is said.
    let seen: Vec<(f64, f64)> = pulses(0.1, 0.5)
        .into_iter()
        .map(|(at, watts)| (if at > 0.0 { at + 0.05 } else { at }, watts))
        .collect();
    let report = corrected(&sensor, &seen, 14.0, |_| true, &[]);
    let off_by = off(&report, energy(&seen, 0.0, 14.0));
    assert!(off_by.abs() < 1.96, "{off_by} standard errors: {report}");
    assert!(report["notes"].to_string().contains("half of that is assumed"), "{report}");
    // Where the load comes as it likes, windows are samples of it, and bars are no wider than by their chance.
    let varied = pulses(0.0373, 0.5);
    let report = corrected(&sensor, &varied, 14.0, |_| true, &["--sensor", "boxcar:25ms"]);
    let share = joules(&report["total"], "stderr_j") / joules(&report["total"], "corrected_j");
    assert!(off(&report, energy(&varied, 0.0, 14.0)).abs() < 2.0 && share < 0.12, "{report}");
}

/// Of 4 s in which nobody polled, nothing is known.
#[test]
fn gaps_are_said_and_their_unknown_is_in_the_bar() {
    let sensor = Sensor { follows: Follows::Window(0.1), refresh: 0.1, poll: 0.02, ..volta(4) };
    let load = [(0.0, 60.0), (2.0, 250.0), (5.0, 60.0), (8.9, 250.0), (10.0, 60.0)];
    let keep = |time: f64| !(4.8..8.95).contains(&time);
    let report = corrected(&sensor, &load, 13.0, keep, &["--sensor", "boxcar:100ms"]);
    assert!(report["notes"].to_string().contains("1 gaps without readings, 4.0"), "{report}");
    let off = off(&report, energy(&load, 0.0, 13.0));
    assert!(off.abs() < 1.96, "{off} standard errors: {report}");
    assert!(
        (joules(&report["total"], "corrected_j") / energy(&load, 0.0, 13.0) - 1.0).abs() > 0.15,
        "{report}"
    );
    let whole = corrected(&sensor, &load, 13.0, |_| true, &["--sensor", "boxcar:100ms"]);
    assert!(!whole["notes"].to_string().contains("gap"), "{whole}");
    assert!(joules(&whole["total"], "stderr_j") < 0.4 * joules(&report["total"], "stderr_j"), "{whole}");
}

/// Under a window of a second bursts of a third of one are smeared: what they drew above idle stays, their length does not.
#[test]
fn short_bursts_under_a_long_window() {
    let sensor = Sensor { follows: Follows::Window(1.0), refresh: 0.1, noise: 0.3, poll: 0.02, ..volta(5) };
    let starts = [4.0, 8.03, 12.06, 16.09];
    let bursts = starts.iter().flat_map(|at| [(*at, 260.0), (at + 0.3, 60.0)]);
    let load: Vec<(f64, f64)> = std::iter::once((0.0, 60.0)).chain(bursts).collect();
    let report = corrected(&sensor, &load, 20.0, |_| true, &["--sensor", "boxcar:1s"]);
    assert!((joules(&report, "active_idle_w") - 60.0).abs() < 1.0, "{report}");
    let notes = report["notes"].to_string();
    assert!(!notes.contains("energy is right"), "{notes}");
    let found = report["bursts"].as_array().expect("bursts");
    assert_eq!(found.len(), starts.len(), "{report}");
    for (burst, at) in found.iter().zip(starts) {
        let truth = energy(&load, at, at + 0.3);
        let error = (joules(burst, "corrected_j") - truth) / joules(burst, "stderr_j");
        let above = (joules(burst, "above_idle_j") - 60.0) / joules(burst, "above_idle_stderr_j");
        assert!(error.abs() < 1.96 && above.abs() < 1.96, "{error} and {above} standard errors: {burst}");
    }
    // All bursts together have what they have one by one.
    let above: f64 = found.iter().map(|burst| joules(burst, "above_idle_j")).sum();
    assert!((joules(&report["total"], "above_idle_j") - above).abs() < 1e-6, "{report}");
}

#[test]
fn a_recording_without_gpu_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("eprof.data");
    write(&path, &[]);
    assert!(refused(&gpu(&["correct"], &path)).contains("no GPU whose power was measured"));
}

/// The window that a load of the program's own finds, in virtual time, in seconds.
fn window_by_load(refresh_ms: u32, window_ms: u32) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = format!(
        "idle 50\nnoise 0.3\nrefresh_ms {refresh_ms}\nwindow_ms {window_ms}\nnanoseconds 20\nbase 0.001\n\
         energy fma.rn.f32 0.0008\n"
    );
    let library = fake_gpu(folder.path(), &settings, &[]);
    let model = folder.path().join("sensor.json");
    let output = Command::new(env!("CARGO_BIN_EXE_eprof"))
        .env("LD_PRELOAD", virtual_time(folder.path()))
        .args(["gpu", "calibrate", "--load", "--burst", "0.6", "--bursts", "16", "--save"])
        .arg(&model)
        .arg("--cuda-lib")
        .arg(&library)
        .arg("--nvml-lib")
        .arg(&library)
        .output()
        .expect("runs");
    let text = said(&output);
    println!("{text}");
    assert!(text.contains("Fake GPU, 16 bursts"), "{text}");
    let idle = text.lines().find_map(|line| line.strip_prefix("active idle")).expect("a level");
    let (idle, error) = idle.trim().split_once(" W ± ").expect("a level and its error");
    let idle: f64 = idle.parse().expect("watts");
    assert!((idle - 50.0).abs() < 0.5 && error.ends_with(" mW"), "{idle} ± {error}");
    let model: Value = serde_json::from_slice(&std::fs::read(model).expect("a model")).expect("JSON");
    model["kind"]["boxcar"]["window"].as_f64().expect("a window in nanoseconds") * 1e-9
}

#[test]
fn a_load_of_its_own_tells_the_sensors_window() {
    // Volta, and the first Ampere.
    for (refresh, window) in [(20, 10), (100, 25)] {
        let found = window_by_load(refresh, window) * 1e3;
        assert!((found / f64::from(window) - 1.0).abs() < 0.2, "{found} ms of {window} ms");
    }
}

/// Power that is 40 W, and 30 W for each full rate of instructions and 20 W for each of loads.
fn counters() -> String {
    let mut text = "kernel,time_s,instructions,loads,power_w\n".to_owned();
    for kernel in 0..24 {
        let (time, alu, memory) = (
            1.0 + f64::from(kernel % 5),
            f64::from(kernel * 7 % 11) / 10.0,
            f64::from(kernel * 5 % 13) / 12.0,
        );
        let power = 40.0 + 30.0 * alu + 20.0 * memory;
        text += &format!("k{kernel},{time},{},{},{power}\n", alu * time * 1e9, memory * time * 1e8);
    }
    text
}

#[test]
fn a_model_is_fitted_validated_and_predicts() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("counters.csv");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (model, figure) = (path("model.json"), path("figure.svg"));
    std::fs::write(&csv, counters()).expect("written");
    let columns = ["--group", "kernel", "--duration", "time_s", "--methods", "published"];
    let fit = [&["model", "fit", "--save", &model, "--figure", &figure][..], &columns].concat();
    let text = said(&gpu(&fit, &csv));
    assert!(text.contains("24 rows in 24 groups") && text.contains("instructions"), "{text}");
    assert!(text.contains("mean error 0.00 % of groups left out in turn"), "{text}");
    assert!(std::fs::read_to_string(&figure).expect("a figure").contains("<svg"));
    let text = said(&gpu(&[&["model", "validate"][..], &columns].concat(), &csv));
    assert!(text.contains("mean error 0.00 %"), "{text}");
    // The same rows, with the time in another unit.
    let in_ms = folder.path().join("in_ms.csv");
    let as_ms = |row: String| {
        let cells: Vec<&str> = row.split(',').collect();
        let ms = cells[1].parse::<f64>().map_or("time_ms".to_owned(), |seconds| (seconds * 1e3).to_string());
        [&cells[..1], &[&ms], &cells[2..]].concat().join(",") + "\n"
    };
    let rows: String = counters().lines().map(str::to_owned).map(as_ms).collect();
    std::fs::write(&in_ms, rows).expect("written");
    for table in [&csv, &in_ms] {
        let text = said(&gpu(&["model", "validate", "--group", "kernel", "--model", &model], table));
        assert!(text.contains("24 rows in 24 groups") && text.contains("mean error 0.00 %"), "{text}");
    }
    let columns = ["--group", "kernel", "--duration", "time_s"];
    let text = said(&gpu(&[&["model", "predict", &model][..], &columns].concat(), &csv));
    let errors: Vec<f64> = text
        .lines()
        .filter(|line| line.contains(" k"))
        .map(|line| line.split_whitespace().nth(4).and_then(|word| word.parse().ok()).expect("an error"))
        .collect();
    assert!(errors.len() == 24 && errors.iter().all(|error| error.abs() < 0.1), "{text}");
    // The same rows without their power.
    let bare = path("bare.csv");
    let counters: String =
        counters().lines().map(|line| line.rsplit_once(',').expect("columns").0.to_owned() + "\n").collect();
    std::fs::write(&bare, counters).expect("written");
    let text = said(&gpu(
        &["model", "predict", &model, "--group", "kernel", "--format", "json"],
        std::path::Path::new(&bare),
    ));
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let rows = found["rows"].as_array().expect("rows");
    assert!(rows.len() == 24 && rows[0]["measured_watts"].is_null() && rows[0]["group"] == "k0", "{text}");
    let number = |row: &Value, key: &str| row[key].as_f64().expect("a number");
    let is_within = |row: &Value| {
        number(row, "low") <= number(row, "watts") && number(row, "watts") <= number(row, "high")
    };
    assert!(rows.iter().all(is_within), "{text}");
    let text = refused(&gpu(&["model", "fit", "--target", "volts"], &csv));
    assert!(text.contains("there is no column `volts`"), "{text}");
}

/// Standard output that nobody reads any more, as behind `| head -0`.
fn unread() -> std::process::Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn files_are_written_though_nobody_reads_what_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let (counters_csv, trace) = (path("counters.csv"), path("trace.csv"));
    std::fs::write(&counters_csv, counters()).expect("written");
    let sensor = Sensor { follows: Follows::Rc(0.2), refresh: 0.015, ..volta(7) };
    std::fs::write(&trace, as_nvidia_smi(&sensor.poll(&LOAD, END, None))).expect("written");
    let columns = ["--group", "kernel", "--duration", "time_s", "--methods", "published"];
    let (model, figure) = (path("model.json"), path("figure.svg"));
    let (rows, curve, found) = (path("rows.csv"), path("curve.csv"), path("sensor.json"));
    let fit = ["model", "fit", &counters_csv, "--save", &model, "--figure", &figure];
    let validate = ["model", "validate", &counters_csv, "--output", &rows];
    let verbs: [(Vec<&str>, &[&String]); 4] = [
        ([&fit[..], &columns].concat(), &[&model, &figure]),
        ([&validate[..], &columns].concat(), &[&rows]),
        (vec!["correct", &trace, "--output", &curve], &[&curve]),
        (vec!["calibrate", &trace, "--save", &found], &[&found]),
    ];
    for (arguments, files) in verbs {
        let program = env!("CARGO_BIN_EXE_eprof");
        let ended = Command::new(program).arg("gpu").args(&arguments).stdout(unread()).status();
        assert!(ended.expect("runs").success(), "{arguments:?}");
        for file in files {
            let length = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
            assert!(length > 50, "{arguments:?}: {file} has {length} bytes");
        }
    }
}

/// One recipe may have one error in the list of recipes and another of groups left out: it is said why.
#[test]
fn two_errors_of_one_recipe_are_explained() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("counters.csv");
    let fit = |text: &str| {
        std::fs::write(&csv, text).expect("written");
        let options = ["--group", "kernel", "--duration", "time_s", "--methods", "published"];
        said(&gpu(&[&["model", "fit"][..], &options].concat(), &csv))
    };
    let exact = fit(&counters());
    assert!(!exact.contains("the list above only compares"), "{exact}");
    // One kernel far beyond the others, of which a straight line says nothing that a GPU draws.
    let far = counters() + "far,1,1e11,0,200\n";
    let found = fit(&far);
    let number =
        |line: Option<&str>| line.and_then(|line| line.split(' ').find_map(|word| word.parse::<f64>().ok()));
    let listed = number(found.lines().find(|line| line.contains("least squares")));
    let nested = number(found.lines().find(|line| line.starts_with("mean error")));
    assert!(listed.expect("an error") > nested.expect("an error"), "{found}");
    assert!(found.contains("the list above only compares recipes"), "{found}");
}

#[test]
fn refusals_say_what_repairs_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("trace.csv");
    std::fs::write(&csv, as_nvidia_smi(&volta(5).poll(&LOAD, END, None))).expect("written");
    for watts in ["nan", "inf", "-inf", "much"] {
        let threshold = format!("--threshold={watts}");
        assert!(refused(&gpu(&["correct", &threshold], &csv)).contains("no number of watts"), "{watts}");
    }
    assert!(said(&gpu(&["correct", "--threshold", "100"], &csv)).contains("above 100.0 W"));
    let text = refused(&gpu(&["correct", "--gpu", "3"], &csv));
    assert!(text.contains("no column that names GPUs") && text.contains("leave it out"), "{text}");
    // Each GPU once, though there are two columns of each.
    let rows = (0..40).map(|n| format!("{n},{},{n},{n}\n", n % 2)).collect::<String>();
    std::fs::write(&csv, format!("time_s,index,power.draw [W],power.draw.average [W]\n{rows}"))
        .expect("written");
    assert!(refused(&gpu(&["correct", "--gpu", "3"], &csv)).contains("it has: 0, 1\n"));
    assert!(refused(&gpu(&["correct"], &csv)).contains("choose one with --gpu (0, 1)"));
    // Nothing is switched in it.
    let steady: String = (0..200).map(|n| format!("{},{}\n", f64::from(n) * 0.05, 60 + n % 2)).collect();
    std::fs::write(&csv, format!("time_s,power_w\n{steady}")).expect("written");
    let text = refused(&gpu(&["correct"], &csv));
    assert!(text.contains("--sensor, or give the times") && text.contains("(--steps)"), "{text}");
    let sensor = folder.path().join("sensor.json");
    for (gain, window) in [("0", "100"), ("-1", "100"), ("1", "0")] {
        let kind = format!("{{\"boxcar\":{{\"window\":{window}}}}}");
        let json =
            format!("{{\"kind\":{kind},\"refresh\":null,\"gain\":{gain},\"offset\":0,\"active_idle\":null}}");
        std::fs::write(&sensor, json).expect("written");
        let options = ["correct", "--sensor", sensor.to_str().expect("a path")];
        assert!(refused(&gpu(&options, &csv)).contains("no sensor in the file: its"), "{gain} {window}");
    }
}

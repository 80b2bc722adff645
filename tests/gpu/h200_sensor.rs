//! The two power sensors of an H200 (`fixtures/h200-sensor`) under bursts whose joules NVML's energy counter tells: what
//! `benches/gpu/correct.sh` read on the card.

use std::path::{Path, PathBuf};

use eprof::gpu::correct::correct;
use eprof::gpu::known_steps::{KnownSteps, Shown};
use eprof::gpu::sensor::SensorModel;
use eprof::gpu::trace_csv;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/h200-sensor").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect("a fixture")
}

/// Errors in per cent of what was read, and of what was corrected, from the first to the last switch.
fn errors(millis: u32, column: &str, truth: f64) -> (f64, f64, Shown) {
    let model: SensorModel = serde_json::from_str(&text(&format!("{column}.json"))).expect("a sensor");
    let target = format!("power.draw.{column}");
    let table = text(&format!("burst-{millis}.csv"));
    let trace = trace_csv::parse_column(&table, &target).expect("a power column").remove(0).trace;
    let switches = trace_csv::parse_times(&text(&format!("burst-{millis}.steps")));
    let corrected = correct(&trace, &model).expect("long enough");
    let found = KnownSteps::of(&trace, &corrected, &switches, &model).expect("one run");
    let (first, last) = (switches[0], switches[switches.len() - 1]);
    let off = |joules: f64| (joules / truth - 1.0) * 100.0;
    let energy = found.curve.energy(first, last).as_joules();
    let error = found.std_error(first, last).as_joules();
    println!("{millis} ms {column}: {energy:.1} J +- {error:.1} of {truth} J, {:?}", found.shown);
    assert!((energy - truth).abs() < 1.96 * error, "{millis} ms {column}: {energy} +- {error} of {truth}");
    (off(trace.as_polled().energy(first, last).as_joules()), off(energy), found.shown)
}

/// The counter's joules from the first to the last switch: straight lines through its moves at rest before and after.
const BURSTS: [(u32, f64); 3] = [(250, 1176.1), (500, 1281.7), (1000, 1491.0)];

#[test]
fn the_averaged_sensor_lags_and_its_joules_do_not() {
    for (millis, truth) in BURSTS {
        let (raw, corrected, shown) = errors(millis, "average", truth);
        println!("{raw:+.2} %, {corrected:+.2} %");
        assert!(raw < -8.0 && corrected.abs() < 1.0, "{millis} ms: {raw} %, {corrected} %");
        assert_eq!(shown, Shown::Together);
    }
}

#[test]
fn the_instant_sensors_bursts_are_known_one_by_one() {
    for (millis, truth) in BURSTS {
        let (raw, corrected, shown) = errors(millis, "instant", truth);
        println!("{raw:+.2} %, {corrected:+.2} %");
        assert_eq!(shown, Shown::OneByOne { without: 0 });
        assert!(corrected.abs() < 2.0, "{millis} ms: {raw} %, {corrected} %");
    }
}

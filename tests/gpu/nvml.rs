//! The NVML meter against a fake library of the real interface.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use eprof::meter::EnergyMeter;
use eprof::meter::nvml::{NvmlSearch, search};
use eprof_testbed::fakes::fake_gpu;
use serde_json::Value;

fn look(settings: &str, flags: &[&str], watch_ms: u64) -> NvmlSearch {
    let folder = tempfile::tempdir().expect("a folder");
    let library = fake_gpu(folder.path(), settings, flags);
    search(Some(&library), Duration::from_millis(watch_ms))
}

fn joules_per_second(mut meter: impl EnergyMeter, seconds: f64) -> Vec<f64> {
    let mut readings = Vec::new();
    let mut first: Vec<f64> = Vec::new();
    let start = std::time::Instant::now();
    loop {
        meter.read(&mut readings).expect("a reading");
        let energy: Vec<f64> =
            readings.iter().map(|reading| reading.expect("each GPU answers").energy.as_joules()).collect();
        let elapsed = start.elapsed().as_secs_f64();
        if first.is_empty() {
            first.clone_from(&energy);
        }
        if elapsed >= seconds {
            return energy.iter().zip(&first).map(|(now, first)| (now - first) / elapsed).collect();
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

#[test]
fn the_energy_counter_is_preferred_and_counts_every_gpu() {
    let found = look("gpus 2\nidle 120\nrefresh_ms 10\n", &[], 0);
    assert!(found.rejected.is_empty(), "{:?}", found.rejected);
    let meter = found.meter.expect("two GPUs");
    let names: Vec<_> = meter.domains().iter().map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["gpu-0", "gpu-1"]);
    assert!(meter.domains()[0].source.contains("energy counter"), "{}", meter.domains()[0].source);
    // A late poll on a busy machine changes nothing: the counter is read beside the clock.
    for watts in joules_per_second(meter, 0.8) {
        assert!((watts / 120.0 - 1.0).abs() < 0.1, "{watts} W");
    }
}

#[test]
fn other_processes_on_the_gpu_are_named() {
    let own = std::process::id();
    let found = look(&format!("idle 80\nprocess {own}\nprocess 4000000000\n"), &[], 0);
    let [said] = &found.warnings[..] else { panic!("{:?}", found.warnings) };
    assert!(said.contains("2 other processes") && said.contains(&format!(" {own}, 4000000000")), "{said}");
    for quiet in ["idle 80\n", "idle 80\nprocess 1\nfail processes 3\n"] {
        let found = look(quiet, &[], 0);
        assert!(found.meter.is_some() && found.warnings.is_empty(), "{:?}", found.warnings);
    }
}

#[test]
fn without_a_counter_power_is_integrated() {
    for (settings, flags, source) in [
        ("idle 80\nfail energy 3\n", &[][..], "instant power"),
        ("idle 80\n", &["no_energy"][..], "instant power"),
        ("idle 80\nfail energy 3\nfail instant 3\n", &[][..], "NVML power ("),
        ("idle 80\nfail energy 3\ntype instant 9\n", &[][..], "NVML power ("),
        ("idle 80\nfail energy 3\nfail power 3\nfail instant 3\n", &[][..], "average power"),
        ("idle 80\nfail energy 3\n", &["no_fields"][..], "NVML power ("),
    ] {
        let meter = look(settings, flags, 0).meter.expect("power");
        assert!(meter.domains()[0].source.contains(source), "{settings}: {}", meter.domains()[0].source);
        let watts = joules_per_second(meter, 0.2)[0];
        assert!((watts / 80.0 - 1.0).abs() < 0.02, "{settings}: {watts} W");
    }
}

#[test]
fn not_supported_is_no_source_and_never_zero_joules() {
    let found = look("fail energy 3\nfail power 3\nfail instant 3\nfail average 3\n", &[], 0);
    assert!(found.meter.is_none());
    let why = found.rejected[0].to_string();
    assert!(
        why.contains("neither energy nor power") && why.contains("not available on the target device"),
        "{why}"
    );
}

#[test]
fn shared_and_virtual_gpus_are_said_to_be_that() {
    let divided = look("mig 1\n", &[], 0);
    assert!(divided.meter.is_some() && divided.warnings[0].contains("MIG"), "{:?}", divided.warnings);
    let guest = look("virtual 1\n", &[], 0);
    assert!(guest.meter.is_none() && guest.rejected[0].to_string().contains("virtual GPU"));
}

#[test]
fn a_driver_that_does_not_start_is_named() {
    let found = look("fail init 9\n", &[], 0);
    assert!(found.meter.is_none());
    assert!(found.rejected[0].to_string().contains("modprobe nvidia"), "{}", found.rejected[0]);
}

#[test]
fn the_refresh_period_is_seen_and_sets_the_pace() {
    // Power that changes at every refresh: a ramp.
    let folder = tempfile::tempdir().expect("a folder");
    let ramp: String = (0..2000).map(|i| format!("{},{}\n", f64::from(i) * 0.01, 50 + i)).collect();
    std::fs::write(folder.path().join("ramp.csv"), ramp).expect("a trace");
    let trace = folder.path().join("ramp.csv");
    let settings = format!("trace {}\nrefresh_ms 60\nwindow_ms 30\nfail energy 3\n", trace.display());
    let meter = look(&settings, &[], 700).meter.expect("power");
    let refresh = meter.domains()[0].refresh.expect("a refresh period").as_secs_f64();
    assert!((refresh / 0.06 - 1.0).abs() < 0.25, "{refresh} s");
    assert!((meter.pace().shortest.as_secs_f64() / (refresh / 2.0) - 1.0).abs() < 1e-6);
}

/// Runs eprof in a folder with a fake GPU's library, or with none.
fn eprof(folder: &Path, library: &Path, verb: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
    command.current_dir(folder).args(verb).args(["--meter", "nvml", "--nvml-lib"]).arg(library);
    command.args(["--", "sleep", "0.5"]).output().expect("eprof runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_gpu_alone_is_metered_where_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let library = fake_gpu(folder.path(), "idle 120\nrefresh_ms 10\n", &[]);
    let output = eprof(folder.path(), &library, &["record", "--gpu=never"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("J measured by NVML energy counter (Fake GPU)"), "{said}");

    let report = Command::new(env!("CARGO_BIN_EXE_eprof"))
        .current_dir(folder.path())
        .args(["report", "--format", "json"])
        .output()
        .expect("eprof runs");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let [gpu] = &report["domains"].as_array().expect("domains")[..] else { panic!("{report:#}") };
    assert_eq!(gpu["name"], "gpu-0");
    let joules = gpu["joules"].as_f64().expect("joules");
    assert!(joules > 0.45 * 120.0, "{joules} J in more than half a second of 120 W");

    let output = eprof(folder.path(), &library, &["stat", "--json"]);
    let stat: Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert!(stat.to_string().contains("gpu-0"), "{stat:#}");
}

#[test]
fn a_library_that_was_asked_for_and_is_not_there_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for verb in ["record", "stat"] {
        let output = eprof(folder.path(), Path::new("/nonexistent/libnvidia-ml.so.1"), &[verb]);
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("NVML: /nonexistent/libnvidia-ml.so.1"), "{said}");
        assert!(said.contains("it comes with NVIDIA's driver"), "{said}");
    }
    let library = fake_gpu(folder.path(), "gpus 0\n", &[]);
    let said = text(&eprof(folder.path(), &library, &["record"]).stderr);
    assert!(
        said.contains("NVML: the driver knows no GPU") && said.contains("docker run --gpus all"),
        "{said}"
    );
}

#[test]
fn the_help_of_every_verb_lists_it() {
    for verb in ["record", "stat", "calibrate"] {
        let help = Command::new(env!("CARGO_BIN_EXE_eprof")).args([verb, "--help"]).output().expect("runs");
        let words: Vec<String> = text(&help.stdout).split_whitespace().map(str::to_owned).collect();
        assert!(words.join(" ").contains("hwmon, battery, nvml or estimate"), "{words:?}");
    }
}

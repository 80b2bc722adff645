//! What is simulated is a recording like any other.

use std::fs;
use std::process::Command;

use eprof::analyze;
use eprof::profile::Profile;
use eprof::recording::Recording;
use eprof::units::{Joules, Nanoseconds};
use eprof_testbed::simulate::alternating::{Alternation, scenario};
use eprof_testbed::simulate::scenario::Sampling;
use eprof_testbed::simulate::simulate;
use eprof_testbed::{has_program, skip};

use super::support::QUICK;

#[test]
fn perf_reads_it() {
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("simulated.data");
    let alternation = Alternation {
        duration: Nanoseconds::from_millis(300),
        joules_per_sample: Joules::from_joules(0.01),
        sampling: Sampling { lost_share: 0.1, most_per_tick: Some(20), ..Sampling::default() },
        others: 2,
        ..Alternation::default()
    };
    let simulation = simulate(&scenario(&alternation)).expect("a scenario that fits together");
    fs::write(&path, &simulation.recording).expect("room for a file");
    let script = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&path).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let perf = script("perf", &["script", "-F", "comm,tid,cpu,time,event", "-i"]);
    let samples = perf.matches("CPU_CLK_UNHALTED.THREAD_P:").count();
    assert!(samples > 500, "{samples} samples of cycles\n{}", &perf[..perf.len().min(2000)]);
    let comms: Vec<&str> = ["program", "others"].into_iter().filter(|comm| perf.contains(comm)).collect();
    assert_eq!(comms, ["program", "others"]);
    let ours = script(env!("CARGO_BIN_EXE_eprof"), &["report", "--format", "json", "-i"]);
    let report: serde_json::Value = serde_json::from_str(&ours).expect("JSON");
    assert_eq!(report["method"], "measured");
}

#[test]
fn one_thread_and_two_find_the_same_to_the_last_bit() {
    let alternation = Alternation {
        duration: Nanoseconds::from_millis(if QUICK { 2000 } else { 10_000 }),
        joules_per_sample: Joules::from_joules(0.002),
        sampling: Sampling { lost_share: 0.05, most_per_tick: Some(20), ..Sampling::default() },
        others: 2,
        ..Alternation::default()
    };
    let simulation = simulate(&scenario(&alternation)).expect("a scenario that fits together");
    let recording = Recording::from_bytes(simulation.recording).expect("a recording");
    let with = |threads| {
        let options = analyze::Options { threads: Some(threads), keep_buckets: true, ..Default::default() };
        analyze::analyze(&recording, &options)
    };
    let (one, two) = (with(1), with(2));
    let samples: u64 = one.events.iter().map(|event| event.samples).sum();
    assert!(samples > 5000, "{samples} samples");
    assert_eq!(one.cells, two.cells);
    assert_eq!(one.cell_joules, two.cell_joules);
    assert_eq!(one.cell_variances, two.cell_variances);
    assert_eq!(one.slices, two.slices);
    assert_eq!(one.events, two.events);
    assert_eq!(one.warnings, two.warnings);
    let sensitivities =
        |profile: &Profile| profile.errors.as_ref().map(|errors| errors.sensitivities.clone());
    assert_eq!(sensitivities(&one), sensitivities(&two));
}

#[test]
#[ignore = "takes a minute: cargo test --test library -- --ignored of_256_cpus --nocapture"]
fn a_recording_of_256_cpus_is_read_in_bounded_memory() {
    const LIMIT_KB: u64 = 256 << 10;
    let alternation = Alternation {
        packages: 2,
        cores_per_package: 128,
        busy: 256,
        duration: Nanoseconds::from_secs_f64(12.0),
        joules_per_sample: Joules::from_joules(0.01),
        ..Alternation::default()
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("simulated.data");
    let simulation = simulate(&scenario(&alternation)).expect("a scenario that fits together");
    fs::write(&path, &simulation.recording).expect("room for a file");
    let bytes = simulation.recording.len();
    drop(simulation);
    for options in ["", "--children", "--by core"] {
        // The limit is of memory that is no file's: with more the program aborts.
        let line = format!(
            "ulimit -d {LIMIT_KB} && exec {} report --format json {options} -i {}",
            env!("CARGO_BIN_EXE_eprof"),
            path.display()
        );
        let start = std::time::Instant::now();
        let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
        let took = start.elapsed();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let samples: u64 = (report["events"].as_array().expect("events").iter())
            .map(|event| event["samples"].as_u64().expect("a number"))
            .sum();
        assert!(samples > 500_000, "{samples} samples");
        println!("{samples} samples, {bytes} bytes, report {options}: {:.2} s", took.as_secs_f64());
    }
}

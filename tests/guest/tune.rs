//! Tuning with a meter: programs of known scaling and power in a guest with simulated RAPL.

use std::path::{Path, PathBuf};
use std::process::Command;

use eprof_testbed::{programs, skip};

use crate::bench::STEADY;
use crate::this_program::run_command;

/// Watts of the simulated machine that do not depend on what runs: cores, uncore, memory.
const CONSTANT_WATTS: f64 = 12.41 + 3.0 + 1.5;

/// `scaling.c` of the testbed, compiled; `None` without a compiler.
fn scaling(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("scaling");
    let compiled = Command::new("cc")
        .args(["-O2", "-fopenmp", "-o"])
        .arg(&program)
        .arg(programs::source("scaling.c"))
        .status();
    if compiled.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    skip("there is no C compiler with OpenMP");
    None
}

/// Seconds and joules of `scaling THREADS`.
fn truth(threads: f64) -> [f64; 2] {
    const THREAD_WATTS: f64 = 1.8 * 3.161;
    let parallel = 1.6 / threads + 0.02 * threads;
    let time = 0.2 + parallel;
    [time, CONSTANT_WATTS * time + THREAD_WATTS * (0.2 + threads * parallel)]
}

/// Time counts instructions here, so the result does not depend on how busy the host is.
#[test]
fn the_truth_is_found_with_a_simulated_meter() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = scaling(folder.path()) else { return };
    let files = ["-f", env!("CARGO_BIN_EXE_eprof"), "-f", program.to_str().expect("text")];
    let files = [&files[..], &STEADY].concat();
    let tune = "./eprof tune --threads 1..8 --max-slowdown 15% --repeat 2 --quiet";
    let command =
        format!("{tune} -- ./scaling {{threads}}; echo ==; {tune} --format csv -- ./scaling {{threads}}");
    let Some(output) = run_command(&files, &command) else { return };
    println!("{output}");
    assert!(
        output.contains("energy   measured: package-0 (") && output.contains("dram-0 ("),
        "a meter is used"
    );
    assert!(output.contains("(within the limit)"), "the recommendation was run and kept its promise");
    assert!(!output.contains("DISAGREES"));

    let after_mark = output.lines().map(str::trim_end).skip_while(|line| *line != "==");
    let csv: Vec<Vec<&str>> = after_mark
        .filter(|line| line.matches(',').count() > 10)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(csv.len(), 1 + 8, "one line per setting");
    let column = |name: &str| csv[0].iter().position(|heading| *heading == name).expect("a column");
    let mut squares = [0.0; 2];
    println!("threads: time predicted, true; energy predicted, true");
    for row in &csv[1..] {
        let number = |name: &str| row[column(name)].parse::<f64>().expect("a number");
        let (threads, predicted) = (number("threads"), [number("time"), number("energy")]);
        let true_values = truth(threads);
        println!(
            "{threads}: {:.3} {:.3} s; {:.2} {:.2} J",
            predicted[0], true_values[0], predicted[1], true_values[1]
        );
        for axis in 0..2 {
            squares[axis] += (predicted[axis] / true_values[axis] - 1.0).powi(2) / 8.0;
        }
        if row[column("recommended")] == "1" {
            assert!((4.0..=6.0).contains(&threads), "5 threads are the best, not {threads}");
        }
    }
    let [time, energy] = squares.map(f64::sqrt);
    println!("root mean square: time {:.1} %, energy {:.1} %", time * 100.0, energy * 100.0);
    assert!(time < 0.05 && energy < 0.05, "time {time}, energy {energy}");
}

/// Eight real threads. How long they take depends on the host, but the joules add up to the truth.
#[test]
#[ignore = "long: run by .ci/long"]
fn eight_threads_and_every_joule_accounted_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = scaling(folder.path()) else { return };
    let files = ["-f", env!("CARGO_BIN_EXE_eprof"), "-f", program.to_str().expect("text"), "--smp", "8"];
    let account = "grep ^package /proc/simhw";
    let command = format!(
        "{account}; echo ==before; ./eprof tune --threads 1..8 --repeat 2 --no-verify -- ./scaling; echo ==after; \
         {account}; echo ==journal; cat eprof-tune.jsonl"
    );
    let Some(output) = run_command(&files, &command) else { return };
    println!("{output}");
    let section = |from: &str, to: &str| {
        let start = if from.is_empty() { 0 } else { output.find(from).expect("a mark") };
        let end = output.find(to).unwrap_or(output.len());
        &output[start..end]
    };
    // package PACKAGE TIME_NS PKG_UJ CORES_UJ DRAM_UJ: seconds and joules of package and memory.
    let package = |text: &str| -> [f64; 2] {
        let line = text.lines().find(|line| line.starts_with("package ")).expect("an account");
        let fields: Vec<f64> =
            line.split_whitespace().skip(2).map(|field| field.parse().expect("a number")).collect();
        [fields[0] * 1e-9, (fields[1] + fields[3]) * 1e-6]
    };
    let (before, after) = (package(section("", "==before")), package(section("==after", "==journal")));
    let mut runs = [0.0; 2];
    for line in section("==journal", "guest.sh:").lines().filter(|line| line.contains("\"joules\"")) {
        let run: serde_json::Value = serde_json::from_str(line.trim()).expect("JSON");
        runs[0] += run["seconds"].as_f64().expect("seconds");
        runs[1] += run["joules"].as_f64().expect("joules");
    }
    // Between the runs only eprof itself ran, now and then on one CPU.
    let between = (after[0] - before[0]) - runs[0];
    let least = (after[1] - before[1]) - between * (CONSTANT_WATTS + 1.1);
    let most = (after[1] - before[1]) - between * CONSTANT_WATTS;
    println!("runs: {:.2} s, {:.2} J; the truth is {least:.2} to {most:.2} J", runs[0], runs[1]);
    assert!(runs[1] > 0.99 * least && runs[1] < 1.01 * most);
}

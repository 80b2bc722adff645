//! `eprof record --cupti`, end to end: a fake driver (of the testbed) loads eprof's library into a program,
//! the library finds a fake CUPTI, and the report goes by the times that kernels ran.

use std::path::{Path, PathBuf};
use std::process::Output;

use eprof_testbed::eprof;
use eprof_testbed::gpu::launcher::{Stage, assert_succeeded, joules_of};
use serde_json::Value;

/// A turn of `heat` takes 400 ns and 40.1 uJ, one of `cool` 220 ns and 4.1 uJ; three times 500,000 turns.
const HEAT_JOULES: f64 = 3.0 * 500_000.0 * 40.1e-6;
const COOL_JOULES: f64 = 3.0 * 500_000.0 * 4.1e-6;

/// Cargo puts the library of a dependency beside the tests.
fn injection() -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    let library = own.parent().expect("a folder").join("libeprof_cupti_injection.so");
    assert!(library.is_file(), "{} is built with the tests", library.display());
    library
}

fn record(stage: &Stage, how: &str, cupti: &Path, more: &[&str]) -> Output {
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let own = [
        stage.cuda_lib(),
        "--cupti".to_owned(),
        format!("--cupti-lib={}", text(cupti)),
        format!("--cupti-injection={}", text(&injection())),
    ];
    let arguments: Vec<&str> = own.iter().map(String::as_str).chain(more.iter().copied()).collect();
    stage.record(how, &arguments)
}

fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

#[track_caller]
fn assert_told_apart(report: &Value) {
    let (heat, cool) = (joules_of(report, "heat"), joules_of(report, "cool"));
    println!("heat {heat:.2} J of {HEAT_JOULES:.2}, cool {cool:.2} J of {COOL_JOULES:.2}");
    assert!((heat + cool - HEAT_JOULES - COOL_JOULES).abs() < 0.1 * HEAT_JOULES, "{heat} + {cool}");
    assert!(heat > 4.0 * cool, "{heat} J, {cool} J");
}

#[test]
fn kernels_that_are_waited_for_together_are_told_apart() {
    let Some(stage) = Stage::set("", &[]) else { return };
    // Without CUPTI nobody knows when the first ended and the second began.
    assert_succeeded(&stage.record("batch", &[&stage.cuda_lib()]));
    let modelled = stage.json(&["--by", "kernel"]);
    let (heat, cool) = (joules_of(&modelled, "heat"), joules_of(&modelled, "cool"));
    assert!(heat < 4.0 * cool, "{heat} J, {cool} J");

    let output = record(&stage, "batch", &stage.library, &[]);
    assert_succeeded(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("CUPTI watches each launch"), "the cost is said beforehand: {said}");
    let report = stage.json(&["--by", "kernel"]);
    assert_told_apart(&report);
    assert!(warnings(&report).contains("by the times that their kernels ran, as CUPTI told"), "{report:#}");
    let stacks = stage.report(&["--format", "collapsed", "--event", "gpu-launch"]);
    assert!(stacks.lines().any(|line| line.contains("main;batch;start;cuLaunchKernel;heat ")), "{stacks}");
}

#[test]
fn cupti_with_a_clock_of_its_own() {
    let Some(stage) = Stage::set("", &["no_clock"]) else { return };
    assert_succeeded(&record(&stage, "batch", &stage.library, &["-z"]));
    assert_told_apart(&stage.json(&["--by", "kernel"]));
}

#[test]
fn what_a_program_did_before_it_was_killed_is_known() {
    let Some(stage) = Stage::set("", &[]) else { return };
    let output = record(&stage, "killed", &stage.library, &[]);
    assert_eq!(output.status.code(), Some(128 + 9), "{}", String::from_utf8_lossy(&output.stderr));
    assert_told_apart(&stage.json(&["--by", "kernel"]));
}

#[test]
fn too_many_launches_end_the_watching_and_the_recording_says_so() {
    let Some(stage) = Stage::set("", &[]) else { return };
    assert_succeeded(&record(&stage, "storm", &stage.library, &["--cupti-max-rate=500"]));
    let report = stage.json(&["--by", "kernel"]);
    let said = warnings(&report);
    assert!(said.contains("CUPTI was stopped") && said.contains("--cupti-max-rate=0"), "{said}");
    assert!(said.contains("the other"), "later launches go by their waits: {said}");
    assert!(said.contains("among 3000 launches"), "all of them are there: {said}");
}

#[test]
fn without_cupti_the_program_runs_on_and_the_report_says_why() {
    let Some(stage) = Stage::set("cupti_busy 1\n", &[]) else { return };
    let missing = Path::new("/nonexistent/libcupti.so");
    let cases = [(missing, "CUPTI cannot be loaded"), (&stage.library, "another tool may be using CUPTI")];
    for (cupti, why) in cases {
        assert_succeeded(&record(&stage, "driver", cupti, &[]));
        let report = stage.json(&["--by", "kernel"]);
        let said = warnings(&report);
        assert!(said.contains(why) && said.contains("from launch to wait"), "{said}");
        assert!(joules_of(&report, "heat") > 0.0);
    }
}

#[test]
fn what_cannot_be_done_is_said_before_anything_runs() {
    let refused = |arguments: &[&str]| {
        let output = eprof().arg("record").args(arguments).output().expect("runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let own = std::process::id().to_string();
    let injection = format!("--cupti-injection={}", injection().display());
    assert!(refused(&["--cupti", &injection, "-p", &own]).contains("from its start"));
    let said = refused(&["--cupti", "--cupti-injection=/nonexistent.so", "true"]);
    assert!(said.contains("/nonexistent.so") && said.contains("cargo build"), "{said}");
    assert!(refused(&["--cupti", "--gpu=never", "true"]).contains("there are no launches"));
}

//! What samples cost the program that is sampled, counted in instructions: with the guest's clock counting
//! them, the same work takes the same time to a thousandth, and what is more is the samples'.

use std::process::Command;

use eprof_testbed::{programs, skip};

use crate::bench::{STEADY, run};

/// Of a steady guest.
const NANOSECONDS_PER_INSTRUCTION: f64 = 8.0;
/// What the default is on a core as busy as usual.
const SAMPLES_PER_SECOND: f64 = 1500.0;
/// A core of 3 GHz, at two instructions in three cycles.
const INSTRUCTIONS_PER_SECOND: f64 = 2e9;

/// The program prints its CPU time; two threads go up and down stacks of 4 to 60 frames.
const SCRIPT: &str = "
echo == bare; ./workload descents 20000
echo == recorded; ./eprof record -q --neighbours=never --meter estimate -o o.data ./workload descents 20000
echo == end";

#[test]
#[ignore = "long: run by .ci/long"]
fn samples_of_the_models_events_cost_less_than_a_hundredth() {
    let folder = tempfile::tempdir().expect("a folder");
    let workload = folder.path().join("workload");
    let built = Command::new("rustc")
        .args(["--edition", "2024", "-O", "-Cforce-frame-pointers=yes", "-o"])
        .args([&workload, &programs::source("workload.rs")])
        .output();
    if !built.is_ok_and(|output| output.status.success()) {
        return skip("rustc cannot build the workload");
    }
    let program = workload.to_str().expect("a path of text");
    let Some(run) = run(&[&STEADY[..], &["-f", program]].concat(), SCRIPT, &["o.data"]) else { return };
    let cpu_time = |section: &str| -> f64 {
        let section = run.section(section);
        section.split_whitespace().next().and_then(|word| word.parse().ok()).expect("nanoseconds")
    };
    let recorded = run.recording("o.data");
    let samples: u64 = recorded.events.values().map(|event| event.samples).sum();
    assert!(recorded.events.len() == 5 && samples > 1000, "{:?}", recorded.events);
    let more = cpu_time("recorded") - cpu_time("bare");
    let instructions = more / NANOSECONDS_PER_INSTRUCTION / samples as f64;
    let share = instructions * SAMPLES_PER_SECOND / INSTRUCTIONS_PER_SECOND;
    println!(
        "{samples} samples of five events cost {instructions:.0} instructions each: {:.2} % of a core at \
         {SAMPLES_PER_SECOND} samples and {INSTRUCTIONS_PER_SECOND:e} instructions a second",
        share * 100.0
    );
    assert!(share > 0.0 && share < 0.01, "{share}");
}

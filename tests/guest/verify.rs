//! `eprof verify` against machines whose truth is known: does it find the error that eprof makes there?
//!
//! Each machine is a guest with a simulated PMU and RAPL, which tells afterwards what every thread of every process
//! took under every kernel's name. eprof's joules beside these are its real errors, and those that verify found
//! itself, by the meter alone, are held against them.

use std::collections::BTreeMap;
use std::fs;

use eprof::verify::{Arrangement, Comparison, Row, Verdict};

use crate::bench::{Run, STEADY, run};

/// A machine to be verified on.
struct Machine {
    name: &'static str,
    /// Parameters of the simulation.
    simulation: &'static str,
    /// Seconds that verify is given.
    seconds: u32,
}

/// At this, a guest takes about a minute.
const SHORT: u32 = 20;
/// What users get.
const USUAL: u32 = 120;

/// The preset's own coefficients: what is left is sampling.
const AS_THE_PRESET: Machine = Machine { name: "as the preset", simulation: "c_clk=2168276", seconds: SHORT };
/// Every coefficient is unlike the preset's by a fifth to a half, and misses are dearer than any preset knows.
const UNLIKE_THE_PRESET: Machine = Machine {
    name: "unlike the preset",
    simulation: "c_clk=2700000 c_inst=160000 c_rs=2200000 c_l2=8900000 c_llc=60000000 static_mw=9100 uncore_mw=4200",
    seconds: SHORT,
};
/// What no counter counts costs 7 W in one kernel, 1 W in a second and half a watt in a third: no model of events is right.
const WITH_A_HIDDEN_EVENT: Machine =
    Machine { name: "a hidden event", simulation: "c_clk=2168276 c_hid=3000000", seconds: SHORT };
/// The same kernel draws different power from moment to moment: what it takes alone is known after many moments only.
const DATA_DECIDE: Machine =
    Machine { name: "data decide", simulation: "c_clk=2168276 vary_ms=35 data_pct=30", seconds: USUAL };
/// Frequency and voltage change.
const CLOCKS_CHANGE: Machine =
    Machine { name: "clocks change", simulation: "c_clk=2168276 vary_ms=50 freq=1", seconds: USUAL };

#[test]
#[ignore = "long: run by .ci/long"]
fn the_error_that_is_there_where_the_model_is_right() {
    verify_finds_the_error(&AS_THE_PRESET);
}

#[test]
fn the_error_that_is_there_where_the_model_is_wrong() {
    verify_finds_the_error(&UNLIKE_THE_PRESET);
}

#[test]
fn the_error_that_is_there_where_no_counter_counts_what_costs() {
    verify_finds_the_error(&WITH_A_HIDDEN_EVENT);
}

#[test]
#[ignore = "long: run by .ci/long"]
fn the_error_that_is_there_where_data_decide_the_power() {
    verify_finds_the_error(&DATA_DECIDE);
}

#[test]
#[ignore = "long: run by .ci/long"]
fn the_error_that_is_there_where_clocks_change() {
    verify_finds_the_error(&CLOCKS_CHANGE);
}

fn verified(machine: &Machine) -> Option<Run> {
    let script = format!(
        "export XDG_CONFIG_HOME=/guest/home\n\
         ./eprof verify --announce /proc/simhw --time {} --meter power --meter-watch 500 --format json \
         -o found.json; echo \"status $?\"\n\
         echo == truth\ngrep ^task /proc/simhw\n\
         echo == quoted\n\
         ./eprof record -q --meter power --meter-watch 500 -o a.data ./phases -o asm -t 300 -q\n\
         ./eprof report a.data --limit 2\n\
         echo == end\n",
        machine.seconds
    );
    let options = [&STEADY[..], &["--sim", machine.simulation]].concat();
    run(&options, &script, &["found.json"])
}

/// Joules by process and announced name. A line is `task TID TGID COMM PRESET CPU_NS ... CORE_UJ DRAM_UJ SETS`.
fn truth(section: &str) -> BTreeMap<(u64, String), f64> {
    let line = |line: &str| -> Option<((u64, String), f64)> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |from_end: usize| words.get(words.len().checked_sub(from_end)?)?.parse::<f64>().ok();
        let joules = (number(3)? + number(2)?) * 1e-6;
        Some(((words.get(2)?.parse().ok()?, (*words.get(4)?).to_owned()), joules))
    };
    section.lines().filter_map(line).collect()
}

/// The name under which each kernel is announced.
fn announced(kernel: &str) -> &'static str {
    match kernel {
        "quotients" => "stress",
        "products" => "asm",
        "integers" => "l1",
        "table" => "l2",
        "memory" => "mem",
        other => panic!("a kernel {other} that the guest does not know"),
    }
}

/// Means of the errors' sizes: what verify found, and what is so.
#[derive(Debug)]
struct Errors {
    found: f64,
    real: f64,
    /// What verify itself says that its truth is uncertain by.
    truth: f64,
}

impl Errors {
    /// `rows` are what is so and what is said of it.
    fn of(found: f64, truth: f64, rows: &[(f64, f64)]) -> Self {
        let sizes = rows.iter().map(|(real, said)| (said / real - 1.0).abs());
        Self { found, real: sizes.sum::<f64>() / rows.len() as f64, truth }
    }

    /// To within a third, or half a per cent where there is next to nothing to find. Where verify says that its truth is known
    /// badly, as where kernels draw different power from moment to moment, it is held to half of what it says: on the other
    /// machines that is less than half a per cent.
    fn agree(&self) -> bool {
        (self.found - self.real).abs() <= (self.real / 3.0).max(0.005).max(self.truth / 2.0)
    }
}

fn verify_finds_the_error(machine: &Machine) {
    let Some(run) = verified(machine) else { return };
    println!("{}: {}", machine.name, run.section("quoted"));
    let found: serde_json::Value =
        serde_json::from_slice(&fs::read(run.file("found.json")).expect("a file")).expect("JSON");
    let truth = truth(run.section("truth"));
    let comparisons: Vec<Comparison> =
        serde_json::from_value(found["comparisons"].clone()).expect("comparisons");
    let real = |pid: u32, row: &Row| truth[&(pid.into(), announced(&row.kernel.to_string()).to_owned())];
    for comparison in &comparisons {
        for row in &comparison.rows {
            let real = real(comparison.pid, row);
            println!(
                "{:<14} {:<10} guest {real:.3}, true {:.3} ± {:.3}, eprof {:.3}, by time {:.3}",
                comparison.arrangement.to_string(),
                row.kernel,
                row.truth_joules,
                row.truth_std_error,
                row.eprof_joules,
                row.by_time_joules
            );
        }
    }
    // A tenth of a turn below a millisecond is the system calls that announce it, which the guest takes for the kernel.
    let is_long =
        |of: &Comparison| !matches!(of.arrangement, Arrangement::Turns { seconds } if seconds <= 0.001);
    let comparisons: Vec<Comparison> = comparisons.into_iter().filter(is_long).collect();
    let rows = || comparisons.iter().flat_map(|of| of.rows.iter().map(|row| (of.pid, row)));
    let by_energy: Vec<(f64, f64)> = rows().map(|(pid, row)| (real(pid, row), row.eprof_joules)).collect();
    let by_time: Vec<(f64, f64)> = rows().map(|(pid, row)| (real(pid, row), row.by_time_joules)).collect();
    assert!(by_energy.len() >= 15, "{by_energy:?}");
    let verdict = Verdict::of(&comparisons).expect("rows");
    let by_energy = Errors::of(verdict.mean_error, verdict.truth_error, &by_energy);
    let by_time = Errors::of(verdict.by_time_mean_error, verdict.truth_error, &by_time);
    println!("{}: {by_energy:?}, by time {by_time:?}, {verdict:?}", machine.name);
    assert!(by_energy.agree(), "{}: {by_energy:?}", machine.name);
    // A profile that takes all time for equal is wrong by a lot, and that is found, too.
    assert!(by_time.real > 0.1 && by_time.agree(), "{}: {by_time:?}", machine.name);
    assert_eq!(found["verdict"]["rows"], 20);
    let quoted = run.section("quoted");
    assert!(quoted.contains("verified on this machine: mean "), "{quoted}");
}

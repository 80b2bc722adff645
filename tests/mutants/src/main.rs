//! Puts faults into eprof's arithmetic and sees which of them the tests notice.
//!
//! Each fault on its own takes a build, and there are some ten thousand: days on two cores. So all of them go into **one**
//! build: an expression `a + b` becomes one that adds, or subtracts if the environment of the process says that fault 17 is
//! to be active. The steps:
//!
//! 1. [`tree`]: a copy of the sources; which of them are to have faults.
//! 2. [`faults`]: an expression or a function's body at a time, all faults of it ([`edits`] writes them into the text).
//! 3. [`build`]: faults that do not compile (joules that are multiplied by joules) are taken out, until the rest does.
//!    Where a part of the faults is asked for (`--every`, `--since`, `--survivors`), only these are written: such a build takes
//!    hardly longer than one without faults.
//! 4. [`cases`]: the tests one by one, and which faults each of them passes by.
//! 5. [`judge`]: with one fault active at a time, the tests that pass by it, those first that noticed most of the faults before
//!    for the time that they take, until one fails.
//! 6. [`verdicts`]: what survived, and how many in which folder.
//!
//! A fault that no test passes by, and one that lets all of them pass, survives. A fault that makes no difference to
//! anything is none: `equivalent.jsonl` lists those, each with its reason; they are not tried, and counted by themselves.
//! What is only reserved (`with_capacity(2 * n)`) gets no faults to begin with, since it shows in the time alone.

mod build;
mod cases;
mod edits;
mod equivalent;
mod faults;
mod judge;
mod run;
mod tree;
mod values;
mod verdicts;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Puts faults into eprof's arithmetic, all into one build, and sees which of them the tests notice.
#[derive(Parser)]
struct Arguments {
    /// Files and folders of sources that get faults; by default those of arithmetic
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The project's folder
    #[arg(long, default_value = ".")]
    project: PathBuf,
    /// Where the faulty copy, its build and the results are kept
    #[arg(long, value_name = "DIR", default_value = "target/mutants")]
    folder: PathBuf,
    /// Only faults in lines that differ from this commit
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// Only faults that survived the time before
    #[arg(long)]
    survivors: bool,
    /// Tests to be run for one fault, in seconds that they take without it; what a longer search would find survives
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    budget: f64,
    /// Stop after this time, in minutes; what was not tried is said
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Every Nth fault only
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// The first fault that is tried, from 0: another sample of one in N
    #[arg(long, value_name = "INDEX", default_value_t = 0)]
    offset: usize,
    /// Programs of tests to be run, beside the unit tests; `--tests ""` for none
    #[arg(long, value_name = "NAME", default_values_t = ["library", "gpu", "cli"].map(String::from))]
    tests: Vec<String>,
    /// Tests that are not run, by a part of their names: those that take minutes or want a quiet machine
    #[arg(long, value_name = "PART")]
    skip: Vec<String>,
    /// Exit with status 1 if a larger share of the tried faults survives, in per cent
    #[arg(long, value_name = "PERCENT")]
    at_most: Option<f64>,
    /// Tests that run at the same time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Write the faults into the copy, list them and stop
    #[arg(long)]
    list: bool,
}

/// What gets faults unless something else is named: what calculates.
const ARITHMETIC: [&str; 13] = [
    "src/analyze",
    "src/attribute",
    "src/gpu",
    "src/merge",
    "src/meter",
    "src/numerics",
    "src/power_model",
    "src/profile",
    "src/report/division.rs",
    "src/report/sums.rs",
    "src/report/totals_by_frame.rs",
    "src/stat",
    "src/tune",
];

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    run::run(&arguments)
}

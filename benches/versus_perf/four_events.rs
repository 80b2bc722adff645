//! What four events at the default rate cost a program: runs with and without the recorder in pairs.
//!
//! Where no PMU is at hand, four software clocks stand for the four events of the power model: each interrupts,
//! takes a callchain and writes a sample as an overflow of the PMU does, 1500 times a second for all four.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::overhead::{Cost, cost, cpu_of_program};
use crate::recordings::{self, EPROF};
use crate::run::{Output, command, run};
use crate::table::{head, interval_of_median, median, row};

/// What each of the program's two threads does; about half a second.
const WORK: [&str; 2] = ["descents", "600000"];
const EVENTS: &str = "cpu-clock,task-clock,cpu-clock,task-clock";
/// Nanoseconds between two samples of each of them: 375 a second.
const PERIOD: &str = "2666657";
const LONGEST: Duration = Duration::from_secs(100);

/// Prints the median of the pairs' ratios and the interval that holds it with 95 %.
pub fn compare(folder: &Path, pairs: usize) -> anyhow::Result<()> {
    let program = recordings::workload(folder)?;
    let program = program.to_str().context("a path of text")?;
    let file = folder.join("four-events.data");
    let path = file.to_str().context("a path of text")?;
    let bare: Vec<&str> = [&[program], &WORK[..]].concat();
    let recorder = [EPROF, "record", "-q", "-e", EVENTS, "-c", PERIOD, "-o", path, "--"];
    let recorded: Vec<&str> = [&recorder[..], &bare].concat();

    let mut ratios = Vec::new();
    let mut costs: Vec<Cost> = Vec::new();
    let mut samples_per_second = Vec::new();
    for pair in 0..pairs {
        let run_bare = || cpu_of_program(&run(vec![command(&bare)], Output::Keep, LONGEST)?);
        let run_recorded = || cost(&run(vec![command(&recorded)], Output::Keep, LONGEST)?, &file);
        // Whichever comes first has the warmer or the colder machine: they take turns.
        let (bare, cost) = if pair % 2 == 0 {
            let bare = run_bare()?;
            (bare, run_recorded()?)
        } else {
            let cost = run_recorded()?;
            (run_bare()?, cost)
        };
        ratios.push(cost.program / bare);
        samples_per_second.push(recordings::count(&file)?.0 as f64 / cost.program);
        costs.push(cost);
    }
    std::fs::remove_file(&file)?;
    let share = median(costs.iter().map(|cost| cost.recorder / cost.program));
    println!("\n## Four events at the default rate, {pairs} pairs of runs\n");
    head(&[
        "samples/s of CPU time",
        "program's CPU time / bare",
        "95 % interval",
        "recorder's CPU time / program's",
    ]);
    row([
        format!("{:.0}", median(samples_per_second)),
        format!("{:.4}", median(ratios.iter().copied())),
        interval_of_median(ratios),
        format!("{share:.4}"),
    ]);
    Ok(())
}

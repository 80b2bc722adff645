//! What recording costs the program and the machine.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::recordings::{self, EPROF};
use crate::run::{Output, Taken, command, run};
use crate::table::{head, median, megabytes, row};

/// What each of the program's threads does, some seconds of it.
const WORK: [&str; 2] = ["descents", "3000000"];
const RATES: [&str; 3] = ["1000", "5000", "10000"];
const LONGEST: Duration = Duration::from_secs(100);

/// What one recording cost.
pub struct Cost {
    /// CPU time of the program, in seconds.
    pub program: f64,
    /// Of the recorder.
    pub recorder: f64,
    memory: f64,
    bytes_per_sample: f64,
    lost: f64,
}

/// Compares bare runs, perf and eprof at several rates, with callchains by frame pointers.
pub fn compare(folder: &Path, rounds: usize) -> anyhow::Result<()> {
    let program = recordings::workload(folder)?;
    let program = program.to_str().context("a path of text")?;
    let file = folder.join("overhead.data");
    let file = file.to_str().context("a path of text")?;
    println!("\n## Recording two busy threads, with callchains\n");
    head(&[
        "rate",
        "recorder",
        "program's CPU time / bare",
        "recorder's CPU time",
        "memory",
        "bytes/sample",
        "lost",
    ]);
    for rate in RATES {
        let mut bare = Vec::new();
        let mut costs: [Vec<Cost>; 2] = Default::default();
        let recorders: [&[&str]; 2] = [
            &[EPROF, "record", "-q", "-e", "cpu-clock", "-F", rate, "--call-graph", "fp", "-o", file, "--"],
            &["perf", "record", "-q", "-e", "cpu-clock", "-F", rate, "--call-graph", "fp", "-o", file, "--"],
        ];
        for _ in 0..rounds {
            for (words, costs) in recorders.iter().zip(&mut costs) {
                let taken = run(vec![command(&[&[program], &WORK[..]].concat())], Output::Keep, LONGEST)?;
                bare.push(cpu_of_program(&taken)?);
                let recorded = [words, &[program][..], &WORK].concat();
                let taken = run(vec![command(&recorded)], Output::Keep, LONGEST)?;
                costs.push(cost(&taken, Path::new(file))?);
            }
        }
        let bare = median(bare);
        for (name, costs) in ["eprof", "perf"].iter().zip(&costs) {
            let median = |of: fn(&Cost) -> f64| median(costs.iter().map(of));
            row([
                format!("{rate} Hz"),
                (*name).to_owned(),
                format!("{:.4}", median(|cost| cost.program) / bare),
                format!("{:.3} s", median(|cost| cost.recorder)),
                megabytes(median(|cost| cost.memory)),
                format!("{:.0}", median(|cost| cost.bytes_per_sample)),
                format!("{:.0}", median(|cost| cost.lost)),
            ]);
        }
    }
    std::fs::remove_file(file)?;
    Ok(())
}

/// What a recording cost that left this file.
pub fn cost(taken: &Taken, file: &Path) -> anyhow::Result<Cost> {
    let program = cpu_of_program(taken)?;
    let (samples, lost) = recordings::count(file)?;
    Ok(Cost {
        program,
        recorder: taken.cpu.as_secs_f64() - program,
        memory: taken.memory as f64,
        bytes_per_sample: std::fs::metadata(file)?.len() as f64 / samples as f64,
        lost: lost as f64,
    })
}

/// CPU seconds that the program says it used.
pub fn cpu_of_program(taken: &Taken) -> anyhow::Result<f64> {
    let nanos = taken.output.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    Ok(nanos.context("the program says its CPU time")? as f64 * 1e-9)
}

//! What recording costs the program and the machine.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use crate::recordings::{self, EPROF};
use crate::run::{Output, Taken, command, run};
use crate::table::{head, interval_of_median, median, megabytes, row};

/// What each of the program's threads does; about half a second.
const WORK: [&str; 2] = ["descents", "200000"];
const LONGEST: Duration = Duration::from_secs(100);

/// Who records, with options of its own. The last is the one that the others are compared with.
const RECORDERS: [(&str, &str, &[&str]); 3] =
    [("eprof", EPROF, &[]), ("eprof --compress", EPROF, &["--compress"]), ("perf", "perf", &[])];

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

/// Compares bare runs, perf and eprof at several rates, with callchains by frame pointers. The runs of a group
/// follow each other, and each of them comes first in turn: what else the machine does meets all alike.
pub fn compare(folder: &Path, rates: &[u32], groups: usize) -> anyhow::Result<()> {
    let program = recordings::workload(folder)?;
    let program = program.to_str().context("a path of text")?;
    let file = folder.join("overhead.data");
    let file = file.to_str().context("a path of text")?;
    let bare = [&[program], &WORK[..]].concat();
    println!(
        "\n## Recording two busy threads, with callchains: {groups} groups of {} runs\n",
        RECORDERS.len() + 1
    );
    head(&[
        "rate",
        "recorder",
        "program's CPU time / bare",
        "95 % interval",
        "/ that under perf",
        "95 % interval",
        "recorder's CPU time",
        "memory",
        "bytes/sample",
        "lost",
    ]);
    for rate in rates.iter().map(u32::to_string) {
        let rate = rate.as_str();
        let recorders = RECORDERS.map(|(_, program, options)| {
            let record =
                [program, "record", "-q", "-e", "cpu-clock", "-F", rate, "--call-graph", "fp", "-o", file];
            [&record[..], options, &["--"], &bare].concat()
        });
        let mut costs: [Vec<Cost>; RECORDERS.len()] = Default::default();
        let mut bare_times = Vec::new();
        for group in 0..groups {
            for place in 0..=RECORDERS.len() {
                match (group + place) % (RECORDERS.len() + 1) {
                    0 => {
                        let taken = run(vec![command(&bare)], Output::Keep, LONGEST)?;
                        bare_times.push(cpu_of_program(&taken)?);
                    }
                    which => {
                        let taken = run(vec![command(&recorders[which - 1])], Output::Keep, LONGEST)?;
                        costs[which - 1].push(cost(&taken, Path::new(file))?);
                    }
                }
            }
        }
        for ((name, ..), of_recorder) in RECORDERS.iter().zip(&costs) {
            let programs = of_recorder.iter().map(|cost| cost.program);
            let to_bare: Vec<f64> =
                programs.clone().zip(&bare_times).map(|(time, bare)| time / bare).collect();
            let to_perf: Vec<f64> =
                programs.zip(&costs[RECORDERS.len() - 1]).map(|(time, perf)| time / perf.program).collect();
            let median_of = |of: fn(&Cost) -> f64| median(of_recorder.iter().map(of));
            row([
                format!("{rate} Hz"),
                (*name).to_owned(),
                format!("{:.4}", median(to_bare.iter().copied())),
                interval_of_median(to_bare),
                format!("{:.4}", median(to_perf.iter().copied())),
                interval_of_median(to_perf),
                format!("{:.3} s", median_of(|cost| cost.recorder)),
                megabytes(median_of(|cost| cost.memory)),
                format!("{:.0}", median_of(|cost| cost.bytes_per_sample)),
                format!("{:.0}", median_of(|cost| cost.lost)),
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

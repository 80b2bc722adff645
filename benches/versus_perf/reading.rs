//! Reports, flamegraphs and dumps of the same recording.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::limit;
use crate::recordings::{self, EPROF};
use crate::run::{Output, Taken, command, is_installed, run};
use crate::table::{head, median, median_seconds, megabytes, row, seconds};

/// What is compared: pipelines of programs, words each, with `EPROF` for eprof and `FILE` for the recording.
struct Task {
    name: &'static str,
    eprof: &'static [&'static [&'static str]],
    other: &'static [&'static [&'static str]],
}

const TASKS: &[Task] = &[
    Task {
        name: "report, self",
        eprof: &[&["EPROF", "report", "-i", "FILE"]],
        other: &[&["perf", "report", "--stdio", "--no-children", "-g", "none", "-i", "FILE"]],
    },
    Task {
        name: "report, children and callers",
        eprof: &[&["EPROF", "report", "--children", "-i", "FILE"]],
        other: &[&["perf", "report", "--stdio", "--children", "-g", "-i", "FILE"]],
    },
    Task {
        name: "flamegraph",
        eprof: &[&["EPROF", "flamegraph", "--no-inline", "-o", "/dev/null", "-i", "FILE"]],
        other: &[
            &["perf", "script", "--no-inline", "-i", "FILE"],
            &["inferno-collapse-perf"],
            &["inferno-flamegraph"],
        ],
    },
    Task {
        name: "script",
        eprof: &[&["EPROF", "script", "-i", "FILE"]],
        other: &[&["perf", "script", "--no-inline", "-i", "FILE"]],
    },
    Task {
        name: "opening: first line of script",
        eprof: &[&["EPROF", "script", "-i", "FILE"], &["head", "-n", "1"]],
        other: &[&["perf", "script", "--no-inline", "-i", "FILE"], &["head", "-n", "1"]],
    },
    Task {
        name: "import (samply)",
        eprof: &[&["EPROF", "flamegraph", "-o", "/dev/null", "-i", "FILE"]],
        other: &[&["samply", "import", "--save-only", "-o", "/dev/null", "FILE"]],
    },
];

const LINES: Task = Task {
    name: "lines and inlined frames",
    eprof: &[&["EPROF", "report", "--by", "line", "-i", "FILE"]],
    other: &[&[
        "perf",
        "report",
        "--stdio",
        "--no-children",
        "-g",
        "none",
        "--sort",
        "srcline",
        "-i",
        "FILE",
    ]],
};

/// Compares all tasks on a recording of so many samples, so many times over.
pub fn compare(folder: &Path, samples: u64, repeat: u64, rounds: usize, longest: u64) -> anyhow::Result<()> {
    let file = recordings::of_long_workload(folder, samples, repeat)?;
    let (samples, lost) = recordings::count(&file)?;
    let size = std::fs::metadata(&file)?.len();
    println!("\n## Reading {samples} samples ({}, {lost} lost)\n", megabytes(size as f64));
    let walks: Result<Vec<Duration>, _> = (0..rounds).map(|_| limit::walk(&file)).collect();
    let walk = median_seconds(walks?);
    println!("Walking all bytes once: {}, {:.1} M samples/s.\n", seconds(walk), samples as f64 / walk * 1e-6);
    table_head();
    for task in TASKS {
        compare_task(task, &file, samples, rounds, longest)?;
    }
    Ok(())
}

/// Compares lines and inlined frames of a large program.
pub fn compare_lines(folder: &Path, rounds: usize, longest: u64) -> anyhow::Result<()> {
    let (program, file) = recordings::of_large_program(folder)?;
    let (samples, _) = recordings::count(&file)?;
    let size = std::fs::metadata(program)?.len();
    println!("\n## Lines of a program of {} with {samples} samples\n", megabytes(size as f64));
    table_head();
    compare_task(&LINES, &file, samples, rounds, longest)
}

fn table_head() {
    head(&[
        "work",
        "eprof",
        "samples/s",
        "memory",
        "eprof, one core",
        "other",
        "other's memory",
        "ratio",
        "ratio of CPU time",
    ]);
}

fn compare_task(task: &Task, file: &Path, samples: u64, rounds: usize, longest: u64) -> anyhow::Result<()> {
    if task.other.iter().any(|words| !is_installed(words[0])) {
        row([task.name, "not compared: a program is not installed"]);
        return Ok(());
    }
    let longest = Duration::from_secs(longest);
    let file = file.display().to_string();
    let pipeline = |programs: &[&[&str]], before: &[&'static str]| -> Vec<Command> {
        let of = |words: &&[&str]| {
            let words = words.iter().map(|word| match *word {
                "EPROF" => EPROF,
                "FILE" => file.as_str(),
                word => word,
            });
            command(&before.iter().copied().chain(words).collect::<Vec<_>>())
        };
        programs.iter().map(of).collect()
    };
    let [mut ours, mut one_core, mut others]: [Vec<Taken>; 3] = Default::default();
    for _ in 0..rounds {
        ours.push(run(pipeline(task.eprof, &[]), Output::Drop, longest)?);
        // Where the other one does not finish, once is enough.
        if !others.iter().any(|taken| taken.is_ended) {
            others.push(run(pipeline(task.other, &[]), Output::Drop, longest)?);
        }
        one_core.push(run(pipeline(task.eprof, &["taskset", "-c", "0"]), Output::Drop, longest)?);
    }
    let wall = |taken: &[Taken]| median_seconds(taken.iter().map(|taken| taken.wall));
    let cpu = |taken: &[Taken]| median_seconds(taken.iter().map(|taken| taken.cpu));
    let memory = |taken: &[Taken]| megabytes(median(taken.iter().map(|taken| taken.memory as f64)));
    let at_least = if others.iter().any(|taken| taken.is_ended) { "> " } else { "" };
    row([
        task.name.to_owned(),
        seconds(wall(&ours)),
        format!("{:.2} M", samples as f64 / wall(&ours) * 1e-6),
        memory(&ours),
        seconds(wall(&one_core)),
        format!("{at_least}{}", seconds(wall(&others))),
        memory(&others),
        format!("{at_least}{:.1}", wall(&others) / wall(&ours)),
        format!("{at_least}{:.1}", cpu(&others) / cpu(&ours)),
    ]);
    Ok(())
}

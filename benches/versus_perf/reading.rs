//! Reports, flamegraphs and dumps of the same recording.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::equal;
use crate::limit;
use crate::recordings::{self, EPROF};
use crate::run::{Output, Taken, command, is_installed, run};
use crate::table::{head, median, median_seconds, megabytes, row, seconds};

/// Programs with ` | ` between them, and blanks between their words: `EPROF` is eprof, `FILE` the recording, `OUT` a
/// file to write and `EVENT` the sampled event. eprof's recordings hold its readings of meters, too, as samples of
/// further events.
type Pipeline = &'static str;

/// The words of a pipeline's programs.
fn programs(pipeline: Pipeline) -> Vec<Vec<&'static str>> {
    pipeline.split(" | ").map(|program| program.split_whitespace().collect()).collect()
}

/// What is compared.
struct Task {
    name: &'static str,
    eprof: Pipeline,
    other: Pipeline,
    /// How it is found that both did the same work.
    same: Same,
}

/// What tells that two programs did the same work: what either of them prints, by other formats of the same tables
/// where programs cannot read those for people.
enum Same {
    /// Functions with their own samples, and with totals.
    Functions { is_total: bool },
    /// Lines of the source with their own samples.
    Lines,
    /// Call paths with their samples, by `inferno-collapse-perf`.
    Stacks,
    /// Call paths with their samples, by perf.
    PerfStacks,
    /// All samples with all their frames, as text.
    Texts,
    /// Samples of threads in profiles for the Firefox Profiler.
    Firefox,
    /// The first line alone, of more or less.
    Unchecked,
}

const TASKS: &[Task] = &[
    Task {
        name: "report, self",
        eprof: "EPROF report --limit 0 -i FILE",
        other: "perf report --stdio --no-children -g none --sort dso,sym -i FILE",
        same: Same::Functions { is_total: false },
    },
    Task {
        name: "report, totals",
        eprof: "EPROF report --children --limit 0 -i FILE",
        other: "perf report --stdio --children -g none --sort dso,sym -i FILE",
        same: Same::Functions { is_total: true },
    },
    Task {
        name: "all call paths",
        eprof: "EPROF export --format collapsed --root command --no-inline -o OUT -i FILE",
        other: "perf report --stdio --no-children -g folded,0,caller,function,count --no-inline --max-stack 1024 \
                --sort comm -i FILE",
        same: Same::PerfStacks,
    },
    Task {
        name: "flamegraph",
        eprof: "EPROF flamegraph --no-inline -o OUT -i FILE",
        other: "perf script --no-inline --max-stack 1024 -i FILE | inferno-collapse-perf --event-filter EVENT \
                | inferno-flamegraph",
        same: Same::Stacks,
    },
    Task {
        name: "script",
        eprof: "EPROF script --no-inline -F comm,tid,time,ip,sym -i FILE",
        other: "perf script --no-inline --max-stack 1024 -F comm,tid,time,ip,sym -i FILE",
        same: Same::Texts,
    },
    Task {
        name: "first line of script",
        eprof: "EPROF script --no-inline -i FILE | head -n 1",
        other: "perf script --no-inline -i FILE | head -n 1",
        same: Same::Unchecked,
    },
    Task {
        name: "profile for Firefox, with names",
        eprof: "EPROF export --format firefox -o OUT -i FILE",
        other: "samply import --save-only --unstable-presymbolicate -o OUT FILE",
        same: Same::Firefox,
    },
];

const LINES: Task = Task {
    name: "lines",
    eprof: "EPROF report --by line --limit 0 -i FILE",
    other: "perf report --stdio --no-children -g none --sort srcline -i FILE",
    same: Same::Lines,
};

/// Outputs of more samples than this are not compared: gigabytes of text.
const MOST_COMPARED: u64 = 1_200_000;

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
        compare_task(task, folder, &file, samples, rounds, longest)?;
    }
    println!("\nThe commands:\n");
    TASKS.iter().for_each(list_commands);
    Ok(())
}

/// Compares lines and inlined frames of a large program.
pub fn compare_lines(folder: &Path, rounds: usize, longest: u64) -> anyhow::Result<()> {
    let (program, file) = recordings::of_large_program(folder)?;
    let (samples, _) = recordings::count(&file)?;
    let size = std::fs::metadata(program)?.len();
    println!("\n## Lines of a program of {} with {samples} samples\n", megabytes(size as f64));
    table_head();
    compare_task(&LINES, folder, &file, samples, rounds, longest)?;
    println!("\nThe commands:\n");
    list_commands(&LINES);
    Ok(())
}

fn list_commands(task: &Task) {
    println!("- {}: `{}`; `{}`", task.name, task.eprof.replace("EPROF", "eprof"), task.other);
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
        "equal in both outputs",
    ]);
}

fn compare_task(
    task: &Task,
    folder: &Path,
    file: &Path,
    samples: u64,
    rounds: usize,
    longest: u64,
) -> anyhow::Result<()> {
    let (eprof, other) = (programs(task.eprof), programs(task.other));
    if let Some(words) = other.iter().find(|words| !is_installed(words[0])) {
        row([task.name, &format!("not compared: {} is not installed", words[0])]);
        return Ok(());
    }
    let longest = Duration::from_secs(longest);
    let out = folder.join("output");
    let places = Places { file: file.display().to_string(), out: out.display().to_string() };
    let [mut ours, mut one_core, mut others]: [Vec<Taken>; 3] = Default::default();
    for _ in 0..rounds {
        ours.push(run(places.pipeline(&eprof, &[]), Output::Drop, longest)?);
        // Where the other one does not finish, once is enough.
        if !others.iter().any(|taken| taken.is_ended) {
            others.push(run(places.pipeline(&other, &[]), Output::Drop, longest)?);
        }
        one_core.push(run(places.pipeline(&eprof, &["taskset", "-c", "0"]), Output::Drop, longest)?);
    }
    let equal = match others.iter().any(|taken| taken.is_ended) {
        true => "unknown: the other one did not finish".to_owned(),
        false => places.compare(task, samples, longest)?,
    };
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
        equal,
    ]);
    Ok(())
}

/// What stands for words in commands.
struct Places {
    file: String,
    out: String,
}

impl Places {
    fn pipeline(&self, programs: &[Vec<&str>], before: &[&str]) -> Vec<Command> {
        let of = |words: &Vec<&str>| {
            let words = words.iter().map(|word| match *word {
                "EPROF" => EPROF,
                "FILE" => self.file.as_str(),
                "OUT" => self.out.as_str(),
                "EVENT" => recordings::EVENT,
                word => word,
            });
            command(&before.iter().copied().chain(words).collect::<Vec<_>>())
        };
        programs.iter().map(of).collect()
    }

    /// What a pipeline prints.
    fn output(&self, programs: &[Vec<&str>], longest: Duration) -> anyhow::Result<String> {
        Ok(run(self.pipeline(programs, &[]), Output::Keep, longest)?.output)
    }

    /// What a program writes into `OUT`.
    fn written(&self, programs: &[Vec<&str>], longest: Duration) -> anyhow::Result<Vec<u8>> {
        run(self.pipeline(programs, &[]), Output::Drop, longest)?;
        Ok(std::fs::read(&self.out)?)
    }

    /// Runs both once more, for a program instead of people, and compares what they say: an error if it is not the same.
    fn compare(&self, task: &Task, samples: u64, longest: Duration) -> anyhow::Result<String> {
        if samples > MOST_COMPARED {
            return Ok("compared with fewer samples".to_owned());
        }
        // What a recording with joules is weighed by if nothing is said.
        const BY_SAMPLES: &[&str] = &["--weight", "samples"];
        const JSON: &[&str] = &["--format", "json"];
        // Numbers of samples, and cells that a program can tell apart.
        const CELLS: &[&str] = &["-n", "-t", "|"];
        const COLLAPSED: Pipeline = "EPROF export --format collapsed --root command --no-inline -i FILE";
        let with = |pipeline: Pipeline, more: &[&'static str]| [&programs(pipeline)[0], more].concat();
        let ours = |more| self.output(&[with(task.eprof, more)], longest);
        let theirs = |more| self.output(&[with(task.other, more)], longest);
        let collapsed = || self.output(&[with(COLLAPSED, BY_SAMPLES)], longest);
        let event = recordings::EVENT;
        let equal = match task.same {
            Same::Functions { is_total } => equal::functions(&ours(JSON)?, &theirs(CELLS)?, event, is_total),
            Same::Lines => equal::lines(&ours(JSON)?, &theirs(CELLS)?, event),
            Same::Stacks => equal::stacks(&collapsed()?, &self.output(&programs(task.other)[..2], longest)?),
            Same::PerfStacks => equal::perf_stacks(&collapsed()?, &theirs(&[])?, event),
            Same::Texts => equal::texts(&ours(&[])?, &theirs(&[])?),
            Same::Firefox => {
                let ours = self.written(&[with(task.eprof, BY_SAMPLES)], longest)?;
                equal::firefox(&ours, &self.written(&programs(task.other), longest)?)
            }
            Same::Unchecked => Ok("not looked at".to_owned()),
        };
        equal.with_context(|| format!("{} do not say the same", task.name))
    }
}

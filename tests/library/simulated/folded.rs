//! Recordings whose call stacks do not fit into the memory that may be taken: sums stay exact, what is folded of
//! trees is told, and memory stays within its limit.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use eprof::analyze::{Analysis, Dimensions, MemoryLimit, Options};
use eprof::profile::ProfileParts;
use eprof::recording::Recording;
use eprof::report::tree::{CallTree, Direction, Root, TreeOptions};
use eprof::report::{self, FunctionChoice, Grouping, Neighbours, Report, Selection, Side, Weight, folded};
use eprof::symbolize::{SymbolizeOptions, Symbolizer, Symbols};
use eprof_testbed::Started;

use super::deep::{Deep, DeepTruth, RANDOM, name};
use super::support::QUICK;

/// So many samples that the least memory is too little for their stacks.
const FEW: Deep = Deep { samples: 40_000, ..RANDOM };

fn record(deep: &Deep, path: &Path) -> DeepTruth {
    let file = BufWriter::new(File::create(path).expect("a new file"));
    deep.write(file).expect("room for a file").1
}

fn analyze(path: &Path, options: &Options, limit: MemoryLimit) -> (Analysis, Symbols) {
    let recording = Arc::new(Recording::open(path).expect("a recording"));
    let analysis = Analysis::new(&recording, options, limit);
    let profile = analysis.profile();
    let symbols =
        Symbolizer::new(SymbolizeOptions::default()).symbolize(&profile.modules, &profile.addresses);
    (analysis, symbols)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
}

/// Two reports of one recording say the same.
fn assert_same(whole: &Report, parts: &Report) {
    assert_eq!(whole.warnings, parts.warnings);
    assert_eq!(whole.rows.len(), parts.rows.len(), "by {}", whole.by.name());
    // Rows of nearly equal weight may have changed places.
    let rows = |report: &Report| -> BTreeMap<String, report::Row> {
        report
            .rows
            .iter()
            .map(|row| (format!("{} {:?} {:?}", row.name, row.module, row.ids), row.clone()))
            .collect()
    };
    for ((key, a), (other, b)) in rows(whole).into_iter().zip(rows(parts)) {
        assert_eq!(key, other);
        for (a, b) in [(a.own, b.own), (a.total, b.total)] {
            assert_eq!((a.samples, a.count, a.time), (b.samples, b.count, b.time), "{key}");
            assert!(near(a.joules.as_joules(), b.joules.as_joules()), "{key}: {} and {}", a.joules, b.joules);
            // Some of what errors follow from is kept in single precision.
            let (a, b) = (a.standard_error().as_joules(), b.standard_error().as_joules());
            assert!((a - b).abs() <= 1e-4 * a.abs().max(1e-6), "{key}: {a} and {b}");
        }
    }
    let (a, b) = (whole.whole, parts.whole);
    assert_eq!((a.samples, a.count, a.time), (b.samples, b.count, b.time));
    assert!(near(whole.not_selected.joules.as_joules(), parts.not_selected.joules.as_joules()));
}

#[test]
fn figures_do_not_depend_on_the_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep.data");
    let truth = record(&FEW, &path);
    let options = Options::default();
    let (whole, symbols) = analyze(&path, &options, MemoryLimit::NONE);
    let (parts, other_symbols) = analyze(&path, &options, MemoryLimit::LEAST);
    assert!(whole.whole().is_some() && parts.whole().is_none());
    let mut count = 0;
    parts.for_each_part(&mut |part| {
        count += 1;
        assert!(!part.cells.is_empty());
    });
    assert!(count > 1, "{count} parts");

    let report = |options: &report::Options| {
        let whole = Report::new(&whole, &symbols, options).expect("a report");
        let parts = Report::new(&parts, &other_symbols, options).expect("a report of parts");
        assert_same(&whole, &parts);
        parts
    };
    let by_function = report(&report::Options::default());
    for (function, (own, total)) in truth.samples.iter().enumerate() {
        let name = name(function as u64);
        let row = by_function.rows.iter().find(|row| row.name.as_str() == name).expect("every function");
        assert_eq!((row.own.samples, row.total.samples), (*own, *total), "{name}");
    }
    for by in [Grouping::Module, Grouping::Thread, Grouping::Process, Grouping::Core, Grouping::Domain] {
        report(&report::Options { by, ..report::Options::default() });
    }
    for side in [Side::Callers, Side::Callees] {
        let neighbours = Some(Neighbours { side, function: FunctionChoice::Named(name(7)) });
        let found = report(&report::Options { neighbours, ..report::Options::default() });
        assert_eq!(found.whole.samples, truth.samples[7].1);
    }
    let through = Selection {
        through: Some(regex("work_00[0-4]")),
        thread: Some(regex("thread-1")),
        ..Selection::default()
    };
    report(&report::Options { selection: through, ..report::Options::default() });
}

fn regex(text: &str) -> regex::Regex {
    regex::Regex::new(text).expect("a regular expression")
}

/// The weight of each frame of a tree with all below it, by the names on its path.
fn frames(tree: &CallTree<'_>) -> BTreeMap<String, u64> {
    let mut text = Vec::new();
    folded::write(tree, &mut text).expect("a vector takes all");
    let mut frames = BTreeMap::new();
    for line in String::from_utf8(text).expect("text").lines() {
        let (path, weight) = line.rsplit_once(' ').expect("a weight");
        let weight: u64 = weight.parse().expect("a whole number");
        let ends = path.match_indices(';').map(|(end, _)| end).chain([path.len()]);
        ends.for_each(|end| *frames.entry(path[..end].to_owned()).or_default() += weight);
    }
    frames
}

#[test]
fn kept_frames_of_trees_do_not_depend_on_the_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep.data");
    // Two thirds of the samples go a way that many go.
    let deep = Deep { samples: 60_000, one_by_chance_of: 3, ..RANDOM };
    record(&deep, &path);
    let options = Options::default();
    let (whole, symbols) = analyze(&path, &options, MemoryLimit::NONE);
    let (parts, other_symbols) = analyze(&path, &options, MemoryLimit::LEAST);
    assert!(parts.whole().is_none());
    for (direction, root) in
        [(Direction::FromOutermost, Root::Thread), (Direction::FromInnermost, Root::None)]
    {
        // Samples are whole numbers, so that nothing is rounded.
        let selection = Selection { weight: Some(Weight::Samples), ..Selection::default() };
        let options = TreeOptions { selection, direction, root, ..TreeOptions::default() };
        let whole = CallTree::new(&whole, &symbols, &options).expect("a tree");
        let kept = CallTree::new(&parts, &other_symbols, &options).expect("a tree of parts");
        assert_eq!((whole.folded_share(), whole.warning()), (None, None));
        let share = kept.folded_share().expect("too many frames");
        assert!(kept.warning().expect("a warning").contains(&format!("{:.1} %", share * 100.0)));
        let (all, kept_frames) = (frames(&whole), frames(&kept));
        let (mut of_folded, mut at_top) = (0, 0);
        for (path, weight) in &kept_frames {
            match path.rsplit(';').next() {
                Some("[folded]") => of_folded += weight,
                _ => assert_eq!(Some(weight), all.get(path), "{path}"),
            }
            at_top += if path.contains(';') { 0 } else { *weight };
        }
        assert_eq!(at_top, deep.samples);
        assert!((of_folded as f64 - share * deep.samples as f64).abs() < 1e-6, "{of_folded} samples");
        assert!(kept_frames.len() > 10_000 && kept_frames.len() < all.len(), "{} frames", kept_frames.len());
    }
}

#[test]
fn what_is_not_told_apart_takes_no_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("deep.data");
    record(&FEW, &path);
    let dimensions = Dimensions { stacks: false, threads: true, cpus: true };
    let (analysis, _) = analyze(&path, &Options { dimensions, ..Options::default() }, MemoryLimit::LEAST);
    assert!(analysis.whole().is_some());
}

/// What a run said, and the most anonymous memory that it had, in bytes.
fn run(folder: &Path, arguments: &[&str]) -> (Output, usize) {
    let file = |name: &str| Stdio::from(File::create(folder.join(name)).expect("a file"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    let mut child = Started::new(command.stdout(file("stdout")).stderr(file("stderr")));
    let status_file = format!("/proc/{}/status", child.id());
    let begun = Instant::now();
    let mut most = 0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(600), "{arguments:?} takes too long");
        let text = fs::read_to_string(&status_file).unwrap_or_default();
        let anonymous =
            text.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
        most = most.max(anonymous.and_then(|number| number.trim().parse().ok()).unwrap_or(0) * 1024);
        thread::sleep(Duration::from_millis(1));
    };
    let read = |name: &str| fs::read(folder.join(name)).expect("a file");
    (Output { status, stdout: read("stdout"), stderr: read("stderr") }, most)
}

/// Every way to look at a recording.
const WAYS: [&[&str]; 11] = [
    &["report"],
    &["report", "--children", "--format", "json"],
    &["report", "--callers", "work_007"],
    &["report", "--by", "bucket"],
    &["report", "--format", "html", "-o", "page.html"],
    &["flamegraph", "-o", "flame.svg"],
    &["flamegraph", "--reverse", "-o", "reverse.svg"],
    &["flamegraph", "--diff", "deep.data", "-o", "difference.svg"],
    &["export", "--format", "collapsed"],
    &["export", "--format", "pprof", "-o", "energy.pb"],
    &["export", "--format", "perf-data", "-o", "energy.data"],
];

#[test]
fn memory_stays_within_its_limit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Whole, all stacks would take 0.8 GB of a million samples; optimised, as many are looked at.
    let (samples, limit, limit_text) = if QUICK { (100_000, 64, "64M") } else { (1_000_000, 128, "128M") };
    record(&Deep { samples, ..RANDOM }, &folder.path().join("deep.data"));
    println!(
        "\nmost anonymous memory of {samples} samples, no two of which have one stack, with --memory {limit_text}"
    );
    for way in WAYS {
        let begun = Instant::now();
        let arguments = [way, &["-i", "deep.data", "--memory", limit_text]].concat();
        let (output, most) = run(folder.path(), &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        println!(
            "{:6.1} MiB, {:5.1} s: {}",
            most as f64 / 1048576.0,
            begun.elapsed().as_secs_f64(),
            way.join(" ")
        );
        assert!(most > 1 << 20, "it was seen");
        assert!(most <= limit << 20, "{arguments:?} took {most} bytes");
    }
}

#[test]
fn too_little_memory_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (output, _) = run(folder.path(), &["report", "--memory", "63M"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("with less than 64 MiB of memory no recording can be analyzed"), "{said}");
}

/// Writes a recording for measurements: `EPROF_DEEP=random.data EPROF_SAMPLES=1000000 EPROF_CHANCE=1`.
#[test]
#[ignore = "writes a file where it is told to"]
fn write_a_recording() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let path = std::env::var("EPROF_DEEP").expect("a path");
    let deep = Deep {
        samples: number("EPROF_SAMPLES").unwrap_or(RANDOM.samples),
        one_by_chance_of: number("EPROF_CHANCE").unwrap_or(RANDOM.one_by_chance_of),
        ..RANDOM
    };
    record(&deep, Path::new(&path));
}

//! perf is the judge: for every file that perf reads, the number of samples of each (event, function) is
//! the same here.
//!
//! Needs `perf` and recordings that others published; skips, and says why, where either is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof::analyze::{Dimensions, Options, analyze};
use eprof::profile::ModuleKind;
use eprof::recording::Recording;
use eprof_testbed::{files_below, has_program, published_data, skip};

/// Samples by event, shared object and symbol (an address where there is no symbol).
type Counts = BTreeMap<(String, String, String), u64>;

const FOLDERS: [&str; 5] = ["perf_data_converter", "perfparser", "hotspot", "linux-perf-data", "autofdo"];

#[test]
fn every_function_has_as_many_samples_as_perf_says() {
    let Some(data) = published_data() else { return };
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let mut compared = 0;
    let mut wrong = Vec::new();
    let files = FOLDERS.iter().flat_map(|folder| files_below(&data.join(folder)));
    let is_recording =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".data"));
    for path in files.filter(is_recording) {
        let Some(perf) = counts_by_perf(&path) else { continue };
        let ours = counts_by_eprof(&path);
        compared += 1;
        let samples: u64 = perf.values().sum();
        let name = path.strip_prefix(&data).expect("below data").display().to_string();
        println!("{name}: {samples} samples in {} functions", perf.len());
        let differences = differences(&perf, &ours);
        if !differences.is_empty() {
            let shown: Vec<_> = differences.iter().take(8).cloned().collect();
            wrong.push(format!("{name}: {} differences\n    {}", differences.len(), shown.join("\n    ")));
        }
    }
    assert!(compared > 25, "perf read only {compared} files");
    assert!(wrong.is_empty(), "{} of {compared} files differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// `None` where perf prints no samples: it cannot read the file, or there are none.
fn counts_by_perf(path: &Path) -> Option<Counts> {
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "--no-branch-stack",
            "--no-inline",
            "--no-itrace",
        ])
        .args(["-F", "sample,dso,sym", "--percent-limit", "0", "-t", "|", "--symfs", "/nonexistent", "-i"])
        .arg(path)
        .output()
        .expect("perf runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts = Counts::new();
    let mut event = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.strip_prefix('#').and_then(|rest| rest.split_once(" of event '")) {
            event = name.split('\'').next().unwrap_or("").to_owned();
        }
        if line.starts_with('#') {
            continue;
        }
        let mut fields = line.splitn(3, '|').map(str::trim);
        let (Some(samples), Some(dso), Some(symbol)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let Ok(samples) = samples.parse::<u64>() else { continue };
        let symbol = symbol.get(4..).unwrap_or(symbol).trim();
        let (dso, symbol) = in_common_terms(dso, symbol);
        *counts.entry((event.clone(), dso, symbol)).or_default() += samples;
    }
    (counts.values().sum::<u64>() > 0).then_some(counts)
}

fn counts_by_eprof(path: &Path) -> Counts {
    let recording = Recording::open(path).expect("a file that perf reads opens");
    let options = Options {
        dimensions: Dimensions { stacks: false, threads: false, cpus: false },
        ..Options::default()
    };
    let profile = analyze(&recording, &options);
    let mut counts = Counts::new();
    for cell in &profile.cells {
        let leaf = profile.stacks.innermost(cell.stack).expect("a sample has an address");
        let code = profile.addresses[leaf.0 as usize];
        let module = &profile.modules[code.module.0 as usize];
        let symbol = match module.kind {
            ModuleKind::Jit => module.path.clone(),
            _ => format!("{:#018x}", code.address),
        };
        let dso = match module.kind {
            ModuleKind::File => file_name(&module.path),
            ModuleKind::KernelModule => {
                let name = file_name(&module.path);
                format!("[{}]", name.split(".ko").next().unwrap_or("").replace('-', "_"))
            }
            _ => module.path.clone(),
        };
        let (dso, symbol) = in_common_terms(&dso, &symbol);
        let event = profile.events[cell.event as usize].name.clone();
        *counts.entry((event, dso, symbol)).or_default() += cell.samples;
    }
    counts
}

/// Both programs' words for one thing. perf counts addresses in a kernel module from the module's start,
/// names anonymous memory after the thread, and calls the kernel unknown where no record maps it.
fn in_common_terms(dso: &str, symbol: &str) -> (String, String) {
    let kernel = ["[kernel.kallsyms]", "[kernel.vmlinux]", "[unknown]"];
    let memory = ["[vdso]", "[vdso32]", "[vsyscall]", "[heap]", "[stack]"];
    match dso {
        _ if kernel.contains(&dso) => ("[kernel] or unknown".to_owned(), symbol.to_owned()),
        _ if dso.starts_with("[JIT]") => ("//anon".to_owned(), symbol.to_owned()),
        _ if dso.starts_with('[') && !memory.contains(&dso) => (dso.to_owned(), "an address".to_owned()),
        _ => (dso.to_owned(), symbol.to_owned()),
    }
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn differences(perf: &Counts, ours: &Counts) -> Vec<String> {
    let keys: std::collections::BTreeSet<_> = perf.keys().chain(ours.keys()).collect();
    keys.into_iter()
        .filter_map(|key| {
            let (theirs, ours) = (perf.get(key).unwrap_or(&0), ours.get(key).unwrap_or(&0));
            (theirs != ours).then(|| format!("{key:?}: perf {theirs}, eprof {ours}"))
        })
        .collect()
}

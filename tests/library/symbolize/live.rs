//! A program with much variety, recorded by perf: each function must get as many samples as perf says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use eprof::analyze::{Dimensions, Options, analyze};
use eprof::profile::ModuleKind;
use eprof::recording::Recording;
use eprof::symbolize::{SymbolizeOptions, Symbolizer};

use super::support::*;

/// Samples by symbol, and where it lies.
type Counts = BTreeMap<(String, String), u64>;

const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
volatile double sink;
static char buffer[1 << 16];
__attribute__((noinline)) static double own(int n) { double s = 0; for (int i = 1; i < n; i++) s += 1.0 / i; return s; }
__attribute__((noinline)) double stubs(int n) { double s = 0; for (int i = 0; i < n; i++) s += sin(i) + rand(); return s; }
__attribute__((noinline)) double clocks(int n) {
    struct timespec t; double s = 0;
    for (int i = 0; i < n; i++) { clock_gettime(CLOCK_MONOTONIC, &t); s += t.tv_nsec; }
    return s;
}
__attribute__((noinline)) void kernel(int n) {
    int zero = open("/dev/zero", O_RDONLY);
    for (int i = 0; i < n; i++) if (read(zero, buffer, sizeof buffer) < 0) abort();
    close(zero);
}
int main(int count, char **arguments) {
    for (int round = 0; round < 4; round++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/library%d.so", arguments[count - 1], round % 2);
        void *library = dlopen(path, RTLD_NOW);
        double (*work)(int) = (double (*)(int))dlsym(library, "work");
        sink += work(3000000) + own(6000000) + stubs(3000000) + clocks(2000000);
        kernel(3000);
        memset(buffer, round, sizeof buffer);
        dlclose(library);
    }
    return 0;
}
"#;

/// Records the program by perf; `false` where perf fails, which is told.
fn recorded(folder: &Path) -> bool {
    fs::write(folder.join("program.c"), PROGRAM).unwrap();
    run("cc", &["-g", "-O1", "program.c", "-o", "program", "-ldl", "-lm"], folder);
    for number in 0..2 {
        let source = format!(
            "static double helper(int n) {{ double s = 0; for (int i = {number}; i < n; i++) s += i * 0.5; return s; }}\n\
             double work(int n) {{ return helper(n) + {number}; }}\n"
        );
        let (file, library) = (format!("library{number}.c"), format!("library{number}.so"));
        fs::write(folder.join(&file), source).unwrap();
        run("cc", &["-g", "-O1", "-fno-inline", "-shared", "-fPIC", &file, "-o", &library], folder);
    }
    let command =
        ["record", "-q", "-k", "mono", "-e", "cpu-clock", "-F", "4000", "-o", "perf.data", "./program", "."];
    let output = Command::new("perf").args(command).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {command:?}: {errors}");
    true
}

fn counts_of_perf(recording: &Path) -> Counts {
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "--no-inline",
            "--no-demangle",
            "--percent-limit",
            "0",
        ])
        .args(["-F", "sample,dso,sym", "-t", "|", "-i"])
        .arg(recording)
        .output()
        .unwrap();
    let mut counts = Counts::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let [samples, module, symbol] = fields[..] else { continue };
        let Ok(samples) = samples.parse::<u64>() else { continue };
        // Before the name stands where it runs: "[.] " or "[k] ".
        let symbol = symbol.get(4..).unwrap_or(symbol).trim();
        let name = if symbol.starts_with("0x") { "unknown" } else { symbol };
        *counts.entry((module.to_owned(), in_common_terms(name))).or_default() += samples;
    }
    counts
}

/// perf before 6.3 lets `_init`, which has no size, reach over the linkage stubs behind it. Whether it then finds
/// `_init` or the stub depends on the shape of its search tree.
pub fn in_common_terms(name: &str) -> String {
    if name == "_init" || name.ends_with("@plt") { String::from("linkage stubs") } else { name.to_owned() }
}

fn counts_of_eprof(recording: &Path) -> Counts {
    let recording = Recording::open(recording).unwrap();
    let dimensions = Dimensions { stacks: false, threads: false, cpus: false };
    let mut profile = analyze(&recording, &Options { dimensions, ..Options::default() });
    let build_ids = &recording.features().build_ids;
    for module in &mut profile.modules {
        let known = build_ids.iter().find(|file| file.path == module.path.as_bytes());
        module.build_id = known.map(|file| file.id.clone());
    }
    let options = SymbolizeOptions { inlines: false, lines: false, ..SymbolizeOptions::default() };
    let symbols = Symbolizer::new(options).symbolize(&profile.modules, &profile.addresses);
    println!("{:?}", symbols.warnings);
    let mut counts = Counts::new();
    for cell in &profile.cells {
        let leaf = profile.stacks.innermost(cell.stack).unwrap();
        let module = &profile.modules[profile.addresses[leaf.0 as usize].module.0 as usize];
        let function = symbols.function(symbols.frames(leaf)[0].function);
        let name = if function.known { in_common_terms(&function.raw_name) } else { String::from("unknown") };
        let place = match module.kind {
            ModuleKind::File => module.path.rsplit('/').next().unwrap().to_owned(),
            _ => module.path.clone(),
        };
        *counts.entry((place, name)).or_default() += cell.samples;
    }
    counts
}

#[test]
fn each_function_has_the_samples_that_perf_counts() {
    if !available("cc") || !available("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if !recorded(folder.path()) {
        return;
    }
    let recording = folder.path().join("perf.data");
    let (perf, ours) = (counts_of_perf(&recording), counts_of_eprof(&recording));
    let total: u64 = perf.values().sum();
    assert!(total > 500, "{total} samples");
    for name in ["own", "helper", "stubs"] {
        assert!(perf.keys().any(|(_, symbol)| symbol == name), "no samples in {name}: {perf:?}");
    }
    let keys = perf.keys().chain(ours.keys());
    let differ: BTreeMap<_, _> = keys
        .map(|key| (key, (perf.get(key).copied().unwrap_or(0), ours.get(key).copied().unwrap_or(0))))
        .filter(|(_, (perf, ours))| perf != ours)
        .collect();
    assert!(differ.is_empty(), "samples by perf and by eprof, of {total}: {differ:#?}");
}

//! Stacks unwound from copies of the stack, compared with perf's own unwinder.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use eprof::profile::{Module, ModuleKind};
use eprof::recording::Recording;
use eprof::symbolize::{Architecture, CodeMapping, StackRegisters, StackUnwinder, SymbolizeOptions};
use perf_data::record::{CpuMode, Record};

use super::support::*;

/// Recursion, virtual calls, callbacks through libc, and frames that only an exception leaves.
const SOURCE: &str = r#"
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>
volatile double sink;
struct Shape { virtual double area(int depth) const = 0; virtual ~Shape() {} };
struct Fractal : Shape {
    __attribute__((noinline)) double area(int depth) const override {
        if (depth == 0) {
            double sum = 0;
            for (int i = 1; i < 2000; i++) sum += std::sqrt(double(i)) / i;
            return sum;
        }
        return area(depth - 1) * 0.5 + area(depth - 1) * 0.25;
    }
};
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    for (int i = 0; i < 20; i++) sink = sink + x;
    return x < y ? -1 : x > y;
}
__attribute__((noinline)) void sort(std::vector<double> &values) {
    qsort(values.data(), values.size(), sizeof(double), compare);
}
__attribute__((noinline)) double thrower(int k) {
    if (k % 3) throw std::runtime_error("no");
    return k;
}
int main() {
    Fractal fractal;
    const Shape &shape = fractal;
    for (int round = 0; round < 40; round++) {
        sink = sink + shape.area(7);
        std::vector<double> values;
        for (int i = 0; i < 3000; i++) values.push_back(double((i * 7919) % 3001));
        sort(values);
        for (int k = 0; k < 300; k++) {
            try { sink = sink + thrower(k); } catch (const std::exception &) { sink = sink + 1; }
        }
    }
}
"#;

/// perf's callchains of user code by time, innermost first.
fn chains_of_perf(recording: &Path) -> HashMap<u64, Vec<u64>> {
    let output = Command::new("perf")
        .args(["script", "--ns", "--no-inline", "-F", "time,ip", "-i"])
        .arg(recording)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut chains = HashMap::new();
    for block in text.split("\n\n") {
        let mut lines = block.trim().lines();
        let Some(time) = lines.next() else { continue };
        let (seconds, nanoseconds) = time.trim().trim_end_matches(':').split_once('.').unwrap();
        let time = seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanoseconds.parse::<u64>().unwrap();
        chains.insert(time, lines.filter_map(|line| u64::from_str_radix(line.trim(), 16).ok()).collect());
    }
    chains
}

/// Ours, of the samples in user mode.
fn chains_of_eprof(recording: &Path) -> HashMap<u64, Vec<u64>> {
    let recording = Recording::open(recording).unwrap();
    let mut mappings: Vec<(u64, u64, u64, Module)> = Vec::new();
    let mut records = recording.records();
    while let Some((_, _, record)) = records.next().unwrap() {
        if let Record::Mmap(mmap) = record
            && mmap.mode != CpuMode::Kernel
        {
            let path = String::from_utf8_lossy(mmap.path).into_owned();
            let kind = match path.as_str() {
                "[vdso]" => ModuleKind::Vdso,
                path if path.starts_with('/') => ModuleKind::File,
                _ => continue,
            };
            let module = Module { kind, path, build_id: None, inode: None, pid: None };
            mappings.push((mmap.address, mmap.address + mmap.length, mmap.file_offset, module));
        }
    }
    let mut chains = HashMap::new();
    let mut unwinder = StackUnwinder::new(SymbolizeOptions::default(), Architecture::X86_64);
    let mut records = recording.records();
    while let Some((_, context, record)) = records.next().unwrap() {
        let Record::Sample(sample) = record else { continue };
        let Some(registers) = sample.user_registers.filter(|_| sample.mode == CpuMode::User) else {
            continue;
        };
        let registers = StackRegisters::select(Architecture::X86_64, |number| registers.get(number)).unwrap();
        let space = || {
            mappings.iter().map(|(start, end, offset, module)| CodeMapping {
                start: *start,
                end: *end,
                module_address: *offset,
                module,
            })
        };
        let mut frames = Vec::new();
        unwinder.unwind(1, space, registers, sample.user_stack, &mut frames);
        // perf shows places in files, and return addresses less one, which lies in the call.
        let shown = frames.iter().enumerate().map(|(depth, address)| {
            let address = address - u64::from(depth > 0);
            let mapping = mappings.iter().rev().find(|(start, end, _, _)| (*start..*end).contains(&address));
            mapping.map_or(address, |(start, _, offset, _)| address - start + offset)
        });
        chains.insert(context.time.unwrap().as_nanos(), shown.collect());
    }
    chains
}

#[test]
fn stacks_without_frame_pointers_as_perf_unwinds_them() {
    if !cfg!(target_arch = "x86_64") || !available("c++") || !available("perf") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("program.cpp"), SOURCE).unwrap();
    run("c++", &["-O2", "-g", "-fomit-frame-pointer", "program.cpp", "-o", "program"], path);
    run(
        "perf",
        &[
            "record",
            "-q",
            "-e",
            "cpu-clock:u",
            "-F",
            "2000",
            "--call-graph",
            "dwarf,16384",
            "-o",
            "perf.data",
            "./program",
        ],
        path,
    );
    let perf = chains_of_perf(&path.join("perf.data"));
    let ours = chains_of_eprof(&path.join("perf.data"));
    assert!(ours.len() > 50, "{} samples", ours.len());
    let equal = ours.iter().filter(|(time, chain)| perf.get(time) == Some(chain)).count();
    for (time, chain) in ours.iter().filter(|(time, chain)| perf.get(time) != Some(chain)).take(5) {
        println!("{time}: perf {:x?}\n     eprof {chain:x?}", perf.get(time));
    }
    println!("{equal} of {} stacks equal", ours.len());
    assert!(equal * 100 >= ours.len() * 95, "{equal} of {} stacks are perf's", ours.len());
}

//! Every address of some binaries must get the name that perf gives it.
//!
//! The recordings are synthetic: a sample at each few bytes of the binary's code, so that every symbol, gap and
//! linkage stub is met.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use eprof::symbolize::{SymbolizeOptions, Symbolizer};
use object::{Object, ObjectSegment, SegmentFlags, elf};

use super::live::in_common_terms;
use super::support::*;

const BASE: u64 = 0x5500_0000_0000;

/// Ranges of the file that hold code.
fn code_ranges(path: &Path) -> Vec<(u64, u64)> {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let executable = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
    file.segments()
        .filter(executable)
        .map(|segment| segment.file_range())
        .map(|(at, size)| (at, at + size))
        .collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((body.len() as u16 + 8).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() / 8 + 1) * 8, 0);
    bytes
}

/// A perf.data file with one mapping per range and one sample per offset.
fn perf_data(path: &Path, ranges: &[(u64, u64)], offsets: &[u64]) -> Vec<u8> {
    const PID: u32 = 4242;
    let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let ids = || [PID.to_le_bytes(), PID.to_le_bytes()].concat();
    let sample_id = [ids(), words(&[1])].concat();
    let mut events = record(3, 2, &[ids(), padded("program"), sample_id.clone()].concat());
    for &(start, end) in ranges {
        let (from, to) = (start & !4095, (end + 4095) & !4095);
        let place = words(&[BASE + from, to - from, from, 0, 0, 0, 5 | 2 << 32]);
        let body = [ids(), place, padded(path.to_str().unwrap()), sample_id.clone()].concat();
        events.extend(record(10, 2, &body));
    }
    for (&offset, time) in offsets.iter().zip(2u64..) {
        events.extend(record(9, 2, &[words(&[BASE + offset]), ids(), words(&[time])].concat()));
    }
    // One attribute: the cpu-clock, with IP, TID and TIME in samples and identifiers behind all records.
    let flags = 1 << 8 | 1 << 9 | 1 << 18;
    let mut attribute = words(&[1 | 112 << 32, 0, 1_000_000, 1 | 2 | 4, 0, flags]);
    attribute.resize(112, 0);
    let header = words(&[104, 128, 104, 128, 232, events.len() as u64, 0, 0, 0, 0, 0, 0]);
    [b"PERFILE2".to_vec(), header, attribute, words(&[0, 0]), events].concat()
}

fn names_of_perf(path: &Path, ranges: &[(u64, u64)], offsets: &[u64]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("perf.data");
    fs::write(&recording, perf_data(path, ranges, offsets)).unwrap();
    let output = Command::new("perf")
        .arg("script")
        .arg("-i")
        .arg(&recording)
        .args(["--no-demangle", "-F", "ip,sym"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| Some(line.trim().split_once(' ')?.1.to_owned())).collect()
}

fn names_of_eprof(path: &Path, offsets: &[u64]) -> Vec<String> {
    let module = Module {
        kind: ModuleKind::File,
        path: path.to_str().unwrap().to_owned(),
        build_id: None,
        inode: None,
        pid: None,
    };
    let addresses: Vec<CodeAddress> =
        offsets.iter().map(|&address| CodeAddress { module: ModuleId(0), address, kernel: false }).collect();
    let options =
        SymbolizeOptions { inlines: false, lines: false, demangle: false, ..SymbolizeOptions::default() };
    let symbols = Symbolizer::new(options).symbolize(&[module], &addresses);
    assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
    (0..addresses.len() as u32)
        .map(|index| {
            let function = symbols.function(symbols.frames(AddressId(index))[0].function);
            if function.known { function.name.to_string() } else { String::from("[unknown]") }
        })
        .collect()
}

/// The mapped shared library with this start of its name.
fn mapped(name: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
    path.into_iter()
        .find(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)))
}

/// Compares the names at every `stride` bytes of the code of a file.
fn assert_like_perf(path: &Path, stride: usize) {
    let ranges = code_ranges(path);
    let offsets: Vec<u64> = ranges.iter().flat_map(|&(start, end)| (start..end).step_by(stride)).collect();
    let (perf, ours) = (names_of_perf(path, &ranges, &offsets), names_of_eprof(path, &offsets));
    assert_eq!(perf.len(), offsets.len(), "perf did not print every sample");
    let mut differ: BTreeMap<(String, String), (u64, usize)> = BTreeMap::new();
    for ((perf, ours), &offset) in perf.iter().zip(&ours).zip(&offsets) {
        // Where `_init` reaches over the stubs, perf can miss both.
        let is_stub = in_common_terms(ours) == "linkage stubs";
        if in_common_terms(perf) != in_common_terms(ours) && !(is_stub && perf == "[unknown]") {
            differ.entry((perf.clone(), ours.clone())).or_insert((offset, 0)).1 += 1;
        }
    }
    assert!(differ.is_empty(), "{} of {}: {differ:#x?}", path.display(), offsets.len());
}

#[test]
fn a_program_with_symbols_and_one_without() {
    if !available("perf") || !available("c++") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let source = "#include <iostream>\n#include <map>\n#include <string>\nint main() { std::map<std::string, int> words; \
                  std::string word; while (std::cin >> word) words[word]++; for (auto &it : words) \
                  std::cout << it.first << it.second; }\n";
    fs::write(path.join("program.cpp"), source).unwrap();
    run("c++", &["-O2", "program.cpp", "-o", "program"], path);
    run("c++", &["-O2", "-no-pie", "program.cpp", "-o", "fixed"], path);
    run("strip", &["program", "-o", "stripped"], path);
    for name in ["program", "fixed", "stripped"] {
        assert_like_perf(&path.join(name), 1);
    }
}

#[test]
fn libraries_with_dynamic_symbols() {
    if !available("perf") {
        return;
    }
    for name in ["libc.so", "ld-linux", "libgcc_s"] {
        if let Some(path) = mapped(name) {
            assert_like_perf(&path, 8);
        }
    }
}

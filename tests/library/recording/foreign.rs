//! Recordings of other recorders on other machines, of fourteen years: each opens and is read whole, with as
//! many samples of each event as perf counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use eprof_testbed::{published_data, skip};
use perf_data::format::feature;
use perf_data::record::Record;
use perf_data::{PerfData, ReadError};

const FOLDERS: [&str; 5] = ["autofdo", "hotspot", "linux-perf-data", "perf_data_converter", "perfparser"];
/// Files beside the recordings.
const NO_RECORDINGS: [&str; 3] = [".buildids", ".txt", ".md"];
/// What is expected of each file; `EPROF_BLESS=1` writes it anew.
const EXPECTED: &str = "tests/library/recording/foreign.expected";

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All recordings, by their names below the folder of data; none if it is not there.
fn recordings() -> BTreeMap<String, PathBuf> {
    let Some(root) = published_data() else { return BTreeMap::new() };
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !NO_RECORDINGS.iter().any(|ending| name.ends_with(ending)) {
                found.insert(name, path);
            }
        }
    }
    for folder in FOLDERS.iter().filter(|folder| !root.join(folder).exists()) {
        skip(&format!("the recordings of {folder} are not here"));
    }
    found
}

/// Numbers of samples by the events' names, and why reading ended early.
struct Counts {
    samples: BTreeMap<String, u64>,
    other_records: u64,
    ended_by: Option<ReadError>,
}

fn count(recording: &PerfData) -> Counts {
    let mut counts = Counts { samples: BTreeMap::new(), other_records: 0, ended_by: None };
    let mut records = recording.records();
    loop {
        match records.next() {
            Ok(Some((_, context, Record::Sample(_)))) => {
                let event = context.event.expect("every sample's event is known");
                let name = &recording.events()[event.0 as usize].name;
                *counts.samples.entry(name.clone()).or_default() += 1;
            }
            Ok(Some(_)) => counts.other_records += 1,
            Ok(None) => return counts,
            Err(error) => {
                counts.ended_by = Some(error);
                return counts;
            }
        }
    }
}

#[test]
fn every_recording_opens_and_reads_to_its_end() {
    let recordings = recordings();
    let mut table = String::new();
    for (name, path) in &recordings {
        let recording = PerfData::open(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let counts = count(&recording);
        let samples: Vec<String> = counts.samples.iter().map(|(event, n)| format!("{n} {event}")).collect();
        let _ = write!(table, "{name}: {}; {} other records", samples.join(", "), counts.other_records);
        match counts.ended_by {
            Some(error) => writeln!(table, "; {error}"),
            None => writeln!(table),
        }
        .expect("a string takes all");
    }
    println!("{table}");
    let expected = project().join(EXPECTED);
    if std::env::var_os("EPROF_BLESS").is_some() {
        fs::write(&expected, &table).expect("writable");
    }
    let expected = fs::read_to_string(&expected).expect("the expected table");
    let folders: BTreeSet<&str> = recordings.keys().filter_map(|name| name.split('/').next()).collect();
    let is_here = |line: &&str| line.split('/').next().is_some_and(|folder| folders.contains(folder));
    let expected: Vec<&str> = expected.lines().filter(is_here).collect();
    for (line, expected) in table.lines().zip(&expected) {
        assert_eq!(line, *expected);
    }
    assert_eq!(table.lines().count(), expected.len());
}

/// What perf's `script` counts; `None` if perf cannot read the file.
fn perf_counts(path: &Path) -> Option<BTreeMap<String, u64>> {
    let output = Command::new("perf")
        .args(["script", "--force", "--no-itrace", "-G", "-F", "event", "-i"])
        .arg(path)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(event) = line.trim().strip_suffix(':') {
            *counts.entry(event.to_owned()).or_default() += 1;
        }
    }
    (output.status.success() && !counts.is_empty()).then_some(counts)
}

#[test]
fn as_many_samples_of_each_event_as_perf_counts() {
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip("perf is not installed");
    }
    let recordings = recordings();
    let mut compared = 0;
    for (name, path) in &recordings {
        let Some(expected) = perf_counts(path) else {
            println!("{name}: perf cannot read this");
            continue;
        };
        let recording = PerfData::open(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(count(&recording).samples, expected, "{name}");
        compared += 1;
    }
    println!("{compared} of {} recordings compared with perf", recordings.len());
    // perf 6.1 reads all but five that are too new for it and two that are damaged.
    assert!(compared + 7 >= recordings.len(), "perf read only {compared}");
}

#[test]
fn the_file_corrupted_on_purpose_gives_an_offset_and_what_precedes_it() {
    let name = "perf_data_converter/perf.data.piped.corrupted.zero_size_sample-3.2";
    let Some(path) = recordings().remove(name) else { return };
    let counts = count(&PerfData::open(&path).expect("it opens"));
    assert_eq!(counts.other_records, 570);
    let Some(ReadError::RecordSize { offset, size: 0 }) = counts.ended_by else {
        panic!("{:?}", counts.ended_by)
    };
    let bytes = fs::read(&path).expect("readable");
    assert_eq!(bytes[offset as usize + 6..offset as usize + 8], [0, 0]);
}

#[test]
fn the_tracepoint_of_a_probe_is_named_by_its_format() {
    let name = "perfparser/probe.data.file";
    let Some(path) = recordings().remove(name) else { return };
    let mut bytes = fs::read(&path).expect("readable");
    // Without the section that describes the events (bit 12), the name comes from the tracepoint's format.
    let sections = recorded_sections(&bytes);
    let described = sections.iter().position(|&bit| bit == feature::EVENT_DESC).expect("described");
    let table = u64_at(&bytes, 40) as usize + u64_at(&bytes, 48) as usize;
    bytes[table + 16 * described + 8..][..8].fill(0);
    let recording = PerfData::from_bytes(bytes).expect("it opens");
    assert_eq!(recording.events()[0].name, "probe_untitled1:main");
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The bits of a file's feature sections, in their order.
fn recorded_sections(bytes: &[u8]) -> Vec<u32> {
    (0..64).filter(|bit| u64_at(bytes, 72) >> bit & 1 == 1).collect()
}

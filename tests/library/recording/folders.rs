//! Recordings of several files, as `perf record --threads` writes them.

use std::path::PathBuf;

use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::EventAttr;
use perf_data::format::{feature, misc, record_type, sample_type};
use perf_data::record::Record;
use perf_data::{PerfData, ReadError};
use tempfile::TempDir;

use super::compressed::{Compressor, add_compressed};

fn file() -> File {
    let attr = EventAttr { sample_type: sample_type::IP | sample_type::TIME, ..EventAttr::default() };
    File::new(vec![Event { attr, ids: vec![], name: "cycles" }])
}

/// The first file of a folder, and what lies beside it by number.
fn folder(further: &[&File]) -> (TempDir, PathBuf) {
    let mut first = file();
    // perf's own are here.
    let name = first.bytes().u32(7).u32(7).text("app").bytes;
    first.record(record_type::COMM, misc::COMM_EXEC, &name);
    first.features = vec![(feature::DIR_FORMAT, first.bytes().u64(1).bytes)];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    std::fs::write(&path, first.build()).expect("writable");
    for (number, file) in further.iter().enumerate() {
        std::fs::write(folder.path().join(format!("data.{number}")), &file.data).expect("writable");
    }
    (folder, path)
}

/// A file of samples at these addresses, which are their times, too.
fn samples(addresses: &[u64]) -> File {
    let mut samples = file();
    for &address in addresses {
        let body = samples.bytes().u64s(&[address, address]).bytes;
        samples.record(record_type::SAMPLE, misc::USER, &body);
    }
    samples
}

/// The same as perf compresses them: in a stream that has no end, a piece of which ends within a record.
fn compressed(addresses: &[u64]) -> File {
    let (plain, mut packed, mut stream) = (samples(addresses), file(), Compressor::new());
    for piece in plain.data.chunks(17) {
        let piece = stream.piece(piece);
        add_compressed(&mut packed, record_type::COMPRESSED, &piece);
    }
    packed
}

/// Names and addresses, in the order of the records.
fn contents(recording: &PerfData) -> Vec<String> {
    let (mut records, mut found) = (recording.records(), Vec::new());
    while let Some((_, _, record)) = records.next().expect("sound records") {
        match record {
            Record::Comm { name, .. } => found.push(String::from_utf8_lossy(name).into_owned()),
            Record::Sample(sample) => found.extend(sample.ip.map(|address| address.to_string())),
            other => panic!("unexpected {other:?}"),
        }
    }
    found
}

#[test]
fn records_of_all_files_of_a_folder_are_read() {
    let nothing = file();
    for make in [samples, compressed] {
        let (_folder, path) = folder(&[&make(&[3, 5]), &nothing, &make(&[2, 4, 6])]);
        let recording = PerfData::open(&path).expect("a folder of perf's");
        assert_eq!(contents(&recording), ["app", "3", "5", "2", "4", "6"]);
        assert!(recording.is_of_several_files() && recording.is_complete());
    }
    assert!(!PerfData::from_bytes(samples(&[1]).build()).expect("sound").is_of_several_files());
}

#[test]
fn a_file_whose_records_are_in_others_that_are_not_there_is_refused() {
    let (_folder, path) = folder(&[]);
    let refused = PerfData::open(&path);
    assert!(matches!(refused, Err(ReadError::FilesMissing { path: of }) if of == path));
}

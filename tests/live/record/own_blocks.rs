//! The list of the recorder's own records leads to all of them, and to the same joules as without it.

use std::fs;
use std::path::Path;

use eprof::recording::Recording;
use eprof::recording::own_blocks::own_blocks;
use eprof_testbed::eprof;
use perf_data::record::Record;

use super::harness::{Folder, can_record, stderr};

/// Records that are the recorder's: samples of events that the kernel knows nothing of.
fn own_records(recording: &Recording, mut records: perf_data::Records<'_>) -> Vec<String> {
    let is_own = |name: &str| name.starts_with("energy/") || name.starts_with("eprof/cpu-times/");
    let mut own = Vec::new();
    while let Some((raw, context, record)) = records.next().expect("undamaged") {
        let event = context.event.map(|event| &recording.events()[event.0 as usize]);
        if matches!(record, Record::Sample(_)) && event.is_some_and(|event| is_own(&event.name)) {
            own.push(format!("{:?} {context:?} {record:?}", raw.position));
        }
    }
    own
}

fn report(folder: &Path) -> String {
    let output =
        eprof().args(["report", "--format", "json"]).current_dir(folder).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_list_leads_to_all_of_the_recorders_own_records() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let contents = folder.record_workload(&["-F", "1000", "--watts", "10:20"], "threads:32");
    let recording = Recording::open(&folder.data()).expect("a recording");
    let file = recording.perf_data();
    if contents.lost > 0 {
        assert_eq!(own_blocks(file), None, "where records were lost, all have to be looked at");
        return;
    }
    let blocks = own_blocks(file).expect("a list");
    assert!(blocks.len() > 1, "{blocks:?}");
    let all = own_records(&recording, recording.records());
    let listed = blocks.iter().flat_map(|block| {
        let records = file.records_in(block.clone()).expect("among the records");
        own_records(&recording, records)
    });
    assert_eq!(listed.collect::<Vec<_>>(), all);
    assert_eq!(all.len(), contents.readings.len() + contents.cpu_times.len());

    // The same recording, in which the list cannot be found.
    let mut bytes = fs::read(folder.data()).expect("readable");
    let end = file.data_range().end as usize;
    bytes[end - 1] ^= 1;
    let without = Folder::new();
    fs::write(without.data(), &bytes).expect("room on the disk");
    assert_eq!(own_blocks(Recording::open(&without.data()).expect("a recording").perf_data()), None);
    assert_eq!(report(folder.path()), report(without.path()));
}

#[test]
fn compressed_records_have_no_list() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    folder.record_workload(&["--compress"], "spin:20");
    let recording = Recording::open(&folder.data()).expect("a recording");
    assert_eq!(own_blocks(recording.perf_data()), None);
}

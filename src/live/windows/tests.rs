//! Tests of windows.

use std::collections::BTreeSet;

use perf_data::encode::{self, MappingFields, SampleFields, SampleId};
use perf_data::format::misc;
use perf_data::record::CpuMode;

use super::held::Subject;
use super::*;
use crate::analyze::fixture::{PERIOD, SAMPLE_TYPE, file_with, metadata};
use crate::analyze::{Options, analyze};
use crate::profile::Cell;

/// The processes that a window says began or ended, and those that it has names of.
fn told(cut: &Cut) -> [BTreeSet<u32>; 2] {
    let mut records = cut.recording.records();
    let [mut lives, mut names] = [BTreeSet::new(), BTreeSet::new()];
    while let Some((_, _, record)) = records.next().expect("as written") {
        match record {
            Record::Fork(change) | Record::Exit(change) => lives.extend([change.pid]),
            Record::Comm { pid, .. } => names.extend([pid]),
            _ => {}
        }
    }
    [lives, names]
}

/// One window in which 50 is sampled. It comes from 300, and that from 200; 700 and what comes from it left no sample.
fn window_of(target: Target, system_wide_samples: bool) -> Cut {
    let file = file_with(
        &vec![vec![1]; 120],
        Metadata { target, system_wide_samples, ..metadata() },
        |_| true,
        |time, records| {
            let id = |pid: u32| SampleId { pid, tid: pid, time, cpu: 0, id: 1 };
            // The child's ring comes first.
            for (child, parent) in [(50, 300), (300, 200), (700, 200), (701, 700)] {
                encode::fork((child, child), (parent, parent), &id(parent), records).expect("short");
                encode::comm(child, child, b"name", true, &id(child), records).expect("short");
            }
        },
    );
    let whole = Recording::from_bytes(file.clone()).expect("a recording");
    let mut windows = Windows::new(whole, CutOptions::default()).expect("eprof's");
    let place = Recording::from_bytes(file.clone()).expect("a recording").perf_data().data_range();
    windows.push(&file[place.start as usize..place.end as usize]);
    windows.finish().expect("a window").expect("a window")
}

#[test]
fn a_window_tells_of_what_was_sampled_and_of_what_that_came_from() {
    let sampled = BTreeSet::from([50, 300]);
    let of_all = [(Target::System, false), (Target::Processes(vec![200]), true)];
    for (target, system_wide_samples) in of_all {
        assert_eq!(told(&window_of(target, system_wide_samples)), [sampled.clone(), sampled.clone()]);
    }
}

/// They may have run in what counters of tasks have more than samples.
#[test]
fn a_window_of_a_program_tells_when_all_that_it_started_began_and_ended() {
    let [lives, names] = told(&window_of(Target::Processes(vec![200]), false));
    assert_eq!((lives, names), (BTreeSet::from([50, 300, 700, 701]), BTreeSet::from([50, 300])));
}

/// Of each window, the code that samples of process 61 lie in, and what that process is called.
fn code_of_the_child(file: &[u8], most_bytes: usize) -> Vec<Option<(String, String)>> {
    let whole = Recording::from_bytes(file.to_vec()).expect("a recording");
    let place = whole.perf_data().data_range();
    let mut windows =
        Windows::new(whole, CutOptions { most_bytes, ..CutOptions::default() }).expect("eprof's");
    let mut cuts = Vec::new();
    for record in file[place.start as usize..place.end as usize].chunks(4_096) {
        windows.push(record);
        cuts.extend(std::iter::from_fn(|| windows.next_window().expect("a window")));
    }
    cuts.extend(windows.finish().expect("a window"));
    let code = |cut: &Cut| {
        let options = Options { counted: Some(cut.counted), ..Options::default() };
        let profile = analyze(&cut.recording, &options);
        let of_child = |cell: &&Cell| profile.threads[cell.thread.0 as usize].pid == 61;
        let cell = profile.cells.iter().find(of_child)?;
        let address = profile.stacks.innermost(cell.stack).expect("a frame");
        let module = profile.addresses[address.0 as usize].module;
        let process = profile.threads[cell.thread.0 as usize].process_name.clone();
        Some((process, profile.modules[module.0 as usize].path.clone()))
    };
    cuts.iter().map(code).collect()
}

/// A sample of process 61 in the code of its parent.
fn sample_of_61(time: Timestamp, records: &mut Vec<u8>) {
    const CONTEXT_USER: u64 = -512i64 as u64;
    let fields = SampleFields {
        id: 1,
        ip: 0x1010,
        mode: CpuMode::User,
        pid: 61,
        tid: 61,
        time,
        cpu: 0,
        period: PERIOD,
        callchain: &[CONTEXT_USER, 0x1010],
        raw: &[],
    };
    encode::sample(SAMPLE_TYPE, &fields, records).expect("short");
}

/// A server that forks workers, which never `exec`: it runs no more itself, and was told of before the window began or in it.
#[test]
fn a_child_without_a_program_of_its_own_runs_its_parents_code() {
    const BEGIN: u64 = 1_000_000_000;
    let file = file_with(
        &vec![vec![1]; 2_000],
        metadata(),
        |_| true,
        |time, records| {
            let id = |pid: u32| SampleId { pid, tid: pid, time, cpu: 0, id: 1 };
            let since = time.as_nanos() - BEGIN;
            if since == 0 {
                encode::comm(60, 60, b"server", true, &id(60), records).expect("short");
                let fields = MappingFields {
                    pid: 60,
                    tid: 60,
                    addresses: 0x1000..0x5000,
                    file_offset: 0,
                    inode: (8, 1, 5),
                    protection: 5,
                    flags: 2,
                    path: b"/bin/server",
                };
                encode::mmap2(&fields, &id(60), records).expect("short");
            }
            // Readings are 20 ms apart.
            if (600_000_000..620_000_000).contains(&since) {
                encode::fork((61, 61), (60, 60), &id(60), records).expect("short");
            }
            if since >= 620_000_000 {
                sample_of_61(time, records);
            }
        },
    );
    let expected = ("server".to_owned(), "/bin/server".to_owned());
    // All in one window, and a window of a tenth of a second each.
    for (most_bytes, least) in [(1 << 30, 1), (20_000, 3)] {
        let found = code_of_the_child(&file, most_bytes);
        let of_child: Vec<_> = found.iter().flatten().collect();
        assert!(of_child.len() >= least, "{found:?}");
        assert!(of_child.iter().all(|found| **found == expected), "{found:?}");
    }
}

/// In whole rounds, in the middle of a record, or all at once when the reader has fallen behind.
#[test]
fn windows_are_the_same_however_the_records_come() {
    let file = file_with(&vec![vec![1]; 12_000], metadata(), |_| true, |_, _| ());
    let place = Recording::from_bytes(file.clone()).expect("a recording").perf_data().data_range();
    let records = &file[place.start as usize..place.end as usize];
    let windows = |at_once: usize| -> Vec<(CountedTime, Vec<u8>)> {
        let whole = Recording::from_bytes(file.clone()).expect("a recording");
        let mut windows = Windows::new(whole, CutOptions::default()).expect("eprof's");
        let mut cuts = Vec::new();
        for some in records.chunks(at_once) {
            windows.push(some);
            cuts.extend(std::iter::from_fn(|| windows.next_window().expect("a window")));
        }
        cuts.extend(windows.finish().expect("a window"));
        cuts.into_iter().map(|cut| (cut.counted, cut.recording.perf_data().data().to_vec())).collect()
    };
    let expected = windows(records.len());
    assert!(expected.len() > 3, "{}", expected.len());
    for at_once in [61, 4_096, 100_000] {
        let found = windows(at_once);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.0, expected.0, "{at_once} bytes at once");
            assert!(found.1 == expected.1, "{at_once} bytes at once: {:?}", found.0);
        }
    }
}

/// A meter that has gone, and a machine that is busy: what is held must not grow until the window's time is over.
#[test]
fn without_readings_a_window_is_cut_when_it_is_full() {
    let file = file_with(&vec![vec![1]; 12_000], metadata(), |number| number < 10, |_, _| ());
    let whole = Recording::from_bytes(file.clone()).expect("a recording");
    let place = whole.perf_data().data_range();
    let records = &file[place.start as usize..place.end as usize];
    let most_bytes = records.len() / 20;
    let period = Nanoseconds::from_millis(3_600_000);
    let mut windows = Windows::new(whole, CutOptions { period, most_bytes }).expect("eprof's");
    let mut most = 0;
    for some in records.chunks(1_000) {
        windows.push(some);
        while windows.next_window().expect("a window").is_some() {}
        most = most.max(windows.held_bytes());
    }
    assert!(most < 3 * most_bytes, "{most} bytes of {} are held, {most_bytes} are asked for", records.len());
}

/// Such a time would make a window of each second until then.
#[test]
fn a_time_that_lies_far_ahead_of_the_recorder_is_none() {
    const BEGIN: u64 = 1_000_000_000;
    // No machine has been up for so long.
    const FAR: u64 = 1 << 62;
    let windows = |far: u64| {
        let file = file_with(
            &vec![vec![1]; 12_000],
            metadata(),
            |_| true,
            |time, records| {
                if time.as_nanos() == BEGIN {
                    let id = SampleId {
                        pid: 61,
                        tid: 61,
                        time: Timestamp::from_nanos(BEGIN + far),
                        cpu: 0,
                        id: 1,
                    };
                    encode::comm(61, 61, b"late", true, &id, records).expect("short");
                } else if far > 0 {
                    sample_of_61(Timestamp::from_nanos(time.as_nanos() + far), records);
                }
            },
        );
        let whole = Recording::from_bytes(file.clone()).expect("a recording");
        let place = whole.perf_data().data_range();
        let mut windows = Windows::new(whole, CutOptions::default()).expect("eprof's");
        let mut ends = Vec::new();
        for records in file[place.start as usize..place.end as usize].chunks(4_096) {
            windows.push(records);
            ends.extend(
                std::iter::from_fn(|| windows.next_window().expect("a window")).map(|cut| cut.counted.end),
            );
        }
        (ends, windows.dropped)
    };
    let (expected, dropped) = windows(0);
    assert!(dropped == 0 && expected.len() > 1, "{expected:?}");
    let (found, dropped) = windows(FAR);
    assert_eq!(found, expected);
    assert!(dropped > 100, "{dropped}");
}

#[test]
fn what_the_kernel_maps_is_of_all() {
    let record = |kind: u32, mode: u16| {
        let words = [kind.to_le_bytes(), [mode as u8, 0, 24, 0], 7u32.to_le_bytes(), 8u32.to_le_bytes()];
        words.as_flattened().to_vec()
    };
    let of = |kind, mode| Subject::of(&record(kind, mode));
    let (process, child) = (Subject { pid: 7, parent: None }, Subject { pid: 7, parent: Some(8) });
    assert_eq!(of(record_type::MMAP2, misc::USER), Some(process));
    assert_eq!(of(record_type::MMAP2, 1), None);
    assert_eq!(of(record_type::FORK, 0), Some(child));
    assert_eq!(of(record_type::EXIT, 0), Some(process));
    assert_eq!(of(record_type::KSYMBOL, 0), None);
    assert_eq!(Subject::of(&record(record_type::COMM, 0)[..12]), None);
}

//! What workers find is what one thread finds, whatever processes do meanwhile.

use std::cell::Cell;
use std::sync::Arc;

use perf_data::encode::{self, MappingFields, SampleFields, SampleId};
use perf_data::record::CpuMode;
use proptest::prelude::*;

use crate::analyze::fixture::{PERIOD, SAMPLE_TYPE, file_with, metadata};
use crate::analyze::memory::MemoryLimit;
use crate::analyze::options::{FunctionsAlone, FunctionsOfStacks};
use crate::analyze::run::Analysis;
use crate::analyze::{Options, WattsRange};
use crate::recording::Recording;
use crate::symbolize::SymbolizeOptions;
use crate::units::{Nanoseconds, Timestamp, Watts};

const CONTEXT_USER: u64 = -512i64 as u64;

/// What a process does.
#[derive(Debug, Clone)]
enum Deed {
    /// Maps one of some files at one of some places.
    Map {
        pid: u32,
        place: u64,
        file: u8,
    },
    /// Begins another program.
    Exec {
        pid: u32,
    },
    Fork {
        parent: u32,
        child: u32,
    },
    /// Is sampled, with these callers.
    Run {
        pid: u32,
        chain: Vec<u64>,
    },
}

fn any_deed() -> impl Strategy<Value = Deed> {
    let pid = || 60u32..64;
    // Some addresses lie nowhere.
    let chain = prop::collection::vec(0x900u64..0x5000, 1..7);
    prop_oneof![
        2 => (pid(), 1u64..5, 0u8..4).prop_map(|(pid, place, file)| Deed::Map { pid, place, file }),
        1 => pid().prop_map(|pid| Deed::Exec { pid }),
        1 => (pid(), pid()).prop_map(|(parent, child)| Deed::Fork { parent, child }),
        12 => (pid(), chain).prop_map(|(pid, chain)| Deed::Run { pid, chain }),
    ]
}

fn write(deed: &Deed, time: Timestamp, records: &mut Vec<u8>) {
    let id = |pid: u32| SampleId { pid, tid: pid, time, cpu: 0, id: 1 };
    match deed {
        Deed::Map { pid, place, file } => {
            let path = format!("/lib/{file}");
            let fields = MappingFields {
                pid: *pid,
                tid: *pid,
                addresses: place * 0x1000..(place + 1) * 0x1000,
                file_offset: 0,
                inode: (8, 1, u64::from(*file)),
                protection: 5,
                flags: 2,
                path: path.as_bytes(),
            };
            encode::mmap2(&fields, &id(*pid), records).expect("short");
        }
        Deed::Exec { pid } => encode::comm(*pid, *pid, b"other", true, &id(*pid), records).expect("short"),
        Deed::Fork { parent, child } => {
            encode::fork((*child, *child), (*parent, *parent), &id(*parent), records).expect("short");
        }
        Deed::Run { pid, chain } => {
            let callchain: Vec<u64> = [CONTEXT_USER].into_iter().chain(chain.iter().copied()).collect();
            let fields = SampleFields {
                id: 1,
                ip: chain[0],
                mode: CpuMode::User,
                pid: *pid,
                tid: *pid,
                time,
                cpu: 0,
                period: PERIOD,
                callchain: &callchain,
                raw: &[],
            };
            encode::sample(SAMPLE_TYPE, &fields, records).expect("short");
        }
    }
}

/// Deeds between samples of other programs, some at each reading.
fn recording_of(deeds: &[Deed]) -> Arc<Recording> {
    const AT_ONCE: usize = 40;
    let next = Cell::new(0);
    let file = file_with(
        &vec![vec![1, 2]; 400],
        metadata(),
        |_| true,
        |time, records| {
            let from = next.get();
            let some = &deeds[from.min(deeds.len())..(from + AT_ONCE).min(deeds.len())];
            for (number, deed) in (0..).zip(some) {
                write(deed, time + Nanoseconds::from_nanos(number), records);
            }
            next.set(from + some.len());
        },
    );
    assert_eq!(next.get(), deeds.len(), "there are too few readings");
    Arc::new(Recording::from_bytes(file).expect("a recording"))
}

/// The profile, by everything that it has.
fn profile(recording: &Arc<Recording>, options: &Options, threads: usize) -> String {
    let options = Options { threads: Some(threads), ..options.clone() };
    let analysis = Analysis::new(recording, &options, MemoryLimit::NONE);
    format!("{:#?}", analysis.into_whole().expect("there is memory"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn workers_follow_what_processes_do(deeds in prop::collection::vec(any_deed(), 100..400)) {
        let recording = recording_of(&deeds);
        for of_stacks in [None, Some(FunctionsOfStacks::Paths), Some(FunctionsOfStacks::Sets)] {
            let functions =
                of_stacks.map(|of_stacks| FunctionsAlone { symbols: SymbolizeOptions::default(), of_stacks });
            let options = Options { functions, ..Options::default() };
            let alone = profile(&recording, &options, 1);
            for threads in [2, 3, 5, 12] {
                prop_assert!(profile(&recording, &options, threads) == alone, "{threads} threads");
            }
        }
    }
}

/// Of recordings that others made, compressed ones and such of machines of the other byte order among them.
#[test]
fn workers_find_the_same_in_recordings_of_others() {
    let Some(data) = eprof_testbed::published_data() else { return };
    let watts = WattsRange { idle: Watts::from_watts(10.0), busy: Watts::from_watts(65.0) };
    let mut compared = 0;
    for path in eprof_testbed::files_below(&data) {
        let Ok(recording) = Recording::open(&path) else { continue };
        let recording = Arc::new(recording);
        let functions =
            FunctionsAlone { symbols: SymbolizeOptions::default(), of_stacks: FunctionsOfStacks::Sets };
        for functions in [None, Some(functions)] {
            let options = Options { functions, watts: Some(watts), ..Options::default() };
            let alone = profile(&recording, &options, 1);
            assert!(profile(&recording, &options, 5) == alone, "{}", path.display());
        }
        compared += 1;
    }
    assert!(compared > 20, "{compared} recordings");
}

//! Where only functions are asked for, addresses of one need not be told apart: what is found of functions is the same.

use std::collections::{BTreeMap, BTreeSet};

use eprof::analyze::{Dimensions, FunctionsAlone, FunctionsOfStacks, Options, analyze};
use eprof::numerics::random::Random;
use eprof::profile::Profile;
use eprof::recording::Recording;
use eprof::symbolize::{SymbolizeOptions, Symbolizer};
use eprof_testbed::recording_builder::{Event, File};
use perf_data::attr::EventAttr;
use perf_data::format::{feature, misc, record_type, sample_type};

const LOADED_AT: u64 = 0x7f00_0000_0000;
const USER: u64 = -512i64 as u64;
/// More than are gathered before functions are looked up.
const SAMPLES: usize = 60_000;

/// A recording of this test's own program: samples all over its file, with callers here and there. Of an architecture that is
/// known, what no call stands before is no return address, of which there are many here.
fn recording(architecture: Option<&str>) -> Recording {
    let path = std::env::current_exe().expect("a path").display().to_string();
    let size = std::fs::metadata(&path).expect("a file").len();
    let fields = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::CALLCHAIN;
    let attr = EventAttr { kind: 1, sample_period: 1000, sample_type: fields, ..EventAttr::default() };
    let mut file = File::new(vec![Event { attr, ids: vec![1], name: "cpu-clock" }]);
    if let Some(name) = architecture {
        file.features = vec![(feature::ARCH, file.bytes().counted_text(name).bytes)];
    }
    let map = file.bytes().u32(7).u32(7).u64s(&[LOADED_AT, size, 0]).text(&path).bytes;
    file.record(record_type::MMAP, misc::USER, &map);
    let mut random = Random::seeded(5);
    // A few bytes behind one of so many places, which most often is another address of the same function.
    let mut place = |places: u64, bytes: u64| {
        let [of_places, of_bytes] = [places, bytes].map(|count| (random.uniform() * count as f64) as u64);
        LOADED_AT + size / (places + 1) * (of_places + 1) + of_bytes
    };
    for time in 0..SAMPLES as u64 {
        let (ip, callers) = (place(50, 32), [place(8, 4), place(8, 4), place(8, 4)]);
        let body = file.bytes().u64(ip).u32(7).u32(7).u64s(&[1_000 + time, 5, USER, ip]).u64s(&callers);
        let body = body.bytes;
        file.record(record_type::SAMPLE, misc::USER, &body);
    }
    Recording::from_bytes(file.build()).expect("a recording")
}

/// Samples by the names of their functions, the innermost first.
fn by_names(profile: &Profile) -> BTreeMap<Vec<String>, u64> {
    let options = SymbolizeOptions { inlines: false, lines: false, ..SymbolizeOptions::default() };
    let symbols = Symbolizer::new(options).symbolize(&profile.modules, &profile.addresses);
    let names: Vec<String> = (0..)
        .map(eprof::profile::AddressId)
        .take(profile.addresses.len())
        .map(|address| {
            let function = symbols.function(symbols.frames(address)[0].function);
            format!("{} {:?}", function.raw_name, function.address)
        })
        .collect();
    let mut sums = BTreeMap::new();
    for cell in &profile.cells {
        let frames = profile.stacks.frames(cell.stack);
        let path = frames.map(|address| names[address.0 as usize].clone()).collect();
        *sums.entry(path).or_default() += cell.samples;
    }
    sums
}

/// The same by the innermost function and what others there are, each once.
fn by_sets(by_names: &BTreeMap<Vec<String>, u64>) -> BTreeMap<(Option<String>, BTreeSet<String>), u64> {
    let mut sums = BTreeMap::new();
    for (path, samples) in by_names {
        let all = path.iter().cloned().collect();
        *sums.entry((path.first().cloned(), all)).or_default() += samples;
    }
    sums
}

#[test]
fn functions_have_the_same_samples_whether_or_not_addresses_are_told_apart() {
    for architecture in [None, Some("x86_64")] {
        let recording = recording(architecture);
        let dimensions = Dimensions { stacks: true, threads: false, cpus: false };
        let apart = analyze(&recording, &Options { dimensions, ..Options::default() });
        let of_apart = by_names(&apart);
        let symbols = SymbolizeOptions { inlines: false, lines: false, ..SymbolizeOptions::default() };
        for threads in [1, 2] {
            let cells = [FunctionsOfStacks::Paths, FunctionsOfStacks::Sets].map(|of_stacks| {
                let functions = Some(FunctionsAlone { symbols: symbols.clone(), of_stacks });
                let threads = Some(threads);
                let options = Options { dimensions, functions, threads, ..Options::default() };
                let together = analyze(&recording, &options);
                let of_together = by_names(&together);
                assert_eq!(of_together.values().sum::<u64>(), SAMPLES as u64);
                let said = format!("{architecture:?}, {threads:?} threads, {of_stacks:?}");
                match of_stacks {
                    FunctionsOfStacks::Paths => assert!(of_together == of_apart, "{said}"),
                    FunctionsOfStacks::Sets => assert!(by_sets(&of_together) == by_sets(&of_apart), "{said}"),
                }
                together.cells.len()
            });
            let [paths, sets] = cells;
            let apart = apart.cells.len();
            assert!(sets <= paths && paths < apart, "{sets}, {paths} and {apart} cells");
            // Where there are no return addresses, paths are what they are.
            assert!(sets < paths || architecture.is_some(), "{sets} and {paths} cells");
        }
    }
}

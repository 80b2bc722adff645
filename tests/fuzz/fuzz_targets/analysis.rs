//! A whole perf.data file on its whole way: analyzed, and written in every format.
#![no_main]

use std::io::{self, Cursor};
use std::path::PathBuf;

use eprof::analyze::{MemoryLimit, Options, SampleEnergies, WattsRange, analyze};
use eprof::profile::ProfileMethod;
use eprof::recording::Recording;
use eprof::report::flamegraph::{self, FlamegraphOptions};
use eprof::report::tree::{CallTree, TreeOptions};
use eprof::report::{
    self, Grouping, Report, Selection, csv, folded, html, json, perf_data, pprof, speedscope, table,
};
use eprof::symbolize::{SymbolizeOptions, Symbols};
use eprof::units::Watts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = Recording::from_bytes(bytes.to_vec()) else { return };
    let options = Options {
        watts: Some(WattsRange { idle: Watts::from_watts(2.0), busy: Watts::from_watts(10.0) }),
        keep_buckets: true,
        // Names in a recording lead nowhere here.
        symbolize: SymbolizeOptions {
            sysroot: Some(PathBuf::from("/nonexistent")),
            ..SymbolizeOptions::default()
        },
        threads: Some(1),
        ..Options::default()
    };
    let profile = analyze(&recording, &options);
    let symbols = Symbols::default();
    for by in [Grouping::Function, Grouping::Thread] {
        let Ok(report) = Report::new(&profile, &symbols, &report::Options { by, ..Default::default() })
        else {
            continue;
        };
        for domain in &report.summary.domains {
            assert!(domain.balance.holds(), "{}: {:?}", domain.name, domain.balance);
        }
        let _ = table::write(&report, &eprof::report::Style::default(), io::sink());
        let _ = json::write(&report, io::sink());
        let _ = csv::write(&report, io::sink());
        if let Ok(tree) = CallTree::new(&profile, &symbols, &TreeOptions::default()) {
            let _ = html::write(&tree, &report, io::sink());
            let _ = flamegraph::write(&tree, &FlamegraphOptions::default(), io::sink());
            let _ = speedscope::write(&tree, io::sink());
            let _ = folded::write(&tree, io::sink());
        }
    }
    let _ = pprof::write(&profile, &symbols, &Selection::default(), io::sink());
    let mut energies = SampleEnergies::new(&recording, &options, MemoryLimit::LEAST);
    let joules = |position| energies.at(position).map(|row| row.iter().copied().sum());
    let _ = perf_data::write(&recording, ProfileMethod::Estimated, joules, Cursor::new(Vec::new()));
});

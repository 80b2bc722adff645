//! A text of another tool on its whole way: read, and written in every format that takes names.
#![no_main]

use std::io;

use eprof::report::flamegraph::{self, FlamegraphOptions};
use eprof::report::tree::{CallTree, TreeOptions};
use eprof::report::{self, Grouping, Report, Selection, folded, pprof, table};
use eprof::text_profile::{self, TextOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = text_profile::read(bytes, TextOptions { cpus: true }) else { return };
    let (profile, symbols) = (text.profile, text.symbols);
    let samples: u64 = profile.events.iter().fold(0, |sum, event| event.samples.saturating_add(sum));
    let in_cells = profile.cells.iter().fold(0u64, |sum, cell| cell.samples.saturating_add(sum));
    assert_eq!(samples, in_cells, "no sample is lost");
    for by in [Grouping::Function, Grouping::Thread, Grouping::Core] {
        if let Ok(report) = Report::new(&profile, &symbols, &report::Options { by, ..Default::default() }) {
            let _ = table::write(&report, &eprof::report::Style::default(), io::sink());
        }
    }
    if let Ok(tree) = CallTree::new(&profile, &symbols, &TreeOptions::default()) {
        let _ = flamegraph::write(&tree, &FlamegraphOptions::default(), io::sink());
        let _ = folded::write(&tree, io::sink());
    }
    let _ = pprof::write(&profile, &symbols, &Selection::default(), io::sink());
});

//! Texts and files that are not recordings. The first byte says which parser gets the others.
#![no_main]

use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::table::{Roles, Table as CounterTable};
use eprof::gpu::trace_csv;
use eprof::power_model::observations::perf_stat::PerfStatLog;
use eprof::power_model::observations::table::Table;
use eprof::power_model::stored::StoredModel;
use eprof::tables::decode;
use eprof::tune::table::{TableOptions, read_runs};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, content)) = bytes.split_first() else { return };
    if which % 8 == 0 {
        let mut records = eprof_cupti_injection::wire::Records::new(content);
        let count = records.by_ref().count();
        assert!(records.read() <= content.len() && count <= content.len() / 8);
        let (whole, _) = eprof_cupti_injection::wire::whole(content, content.len() / 2);
        assert!(whole <= content.len() / 2);
        return;
    }
    let Ok(text) = decode(content.to_vec()) else { return };
    let text = text.as_str();
    match which % 8 {
        1 => drop(PerfStatLog::parse("file", "work", text)),
        2 => drop(Table::parse("file", "work", text)),
        3 => {
            drop(trace_csv::parse(text));
            drop(trace_csv::parse_sum(text));
            drop(trace_csv::parse_times(text));
        }
        4 => drop(CounterTable::parse(text, &Roles::default())),
        5 => drop(read_runs(text, &TableOptions::default())),
        6 => {
            // A model that is taken predicts something for any row of its columns.
            if let Ok(model) = Blend::from_json(text) {
                model.predict(&vec![1.0; model.columns().len()]);
            }
        }
        _ => {
            if let Ok(stored) = StoredModel::from_json(text) {
                let again = stored.to_json().expect("a model is JSON");
                assert!(StoredModel::from_json(&again).is_ok(), "what was written does not read: {again}");
            }
        }
    }
});

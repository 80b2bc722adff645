//! A whole perf.data file: header, attributes, feature sections, records.
#![no_main]

use perf_data::PerfData;
use libfuzzer_sys::fuzz_target;

/// A compressed record may expand to a great many small ones; that takes time, not memory.
const ENOUGH: usize = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = PerfData::from_bytes(bytes.to_vec()) else { return };
    let mut records = recording.records();
    for _ in 0..ENOUGH {
        match records.next() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) if error.is_recoverable() => {}
            Err(_) => {
                assert!(matches!(records.next(), Ok(None)), "goes on after a fatal error");
                break;
            }
        }
    }
});

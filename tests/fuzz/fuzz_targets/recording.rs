//! A whole perf.data file: header, attributes, feature sections, records, payloads in parts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perf_data::PerfData;
use perf_data::record::EventIndex;

/// A compressed record may expand to a great many small ones; that takes time, not memory.
const ENOUGH: usize = 100_000;
/// Longer values are not asked for.
const LONGEST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = PerfData::from_bytes(bytes.to_vec()) else { return };
    let mut records = file.records();
    let mut ended = false;
    for _ in 0..ENOUGH {
        match records.next() {
            Ok(Some(_)) => {}
            Ok(None) => {
                ended = true;
                break;
            }
            Err(error) if error.is_recoverable() => {}
            Err(_) => {
                assert!(matches!(records.next(), Ok(None)), "goes on after a fatal error");
                ended = true;
                break;
            }
        }
    }
    if ended {
        let joined = file.joined_parts(EventIndex(0), LONGEST);
        assert!(joined.is_none_or(|value| value.bytes.len() <= LONGEST));
    }
});

//! A whole jitdump file.
#![no_main]

use eprof::symbolize::jitdump::Jitdump;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(jitdump) = Jitdump::new(bytes) else { return };
    // A record has at least a head of 16 bytes.
    assert!(jitdump.count() <= bytes.len() / 16);
});

//! The least that any reader must do: walk all bytes of all records once.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Offset of the data section's place in the header of a perf.data file, and of its size.
const DATA: usize = 40;

/// Maps a recording, goes from record to record and sums their words.
pub fn walk(file: &Path) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let file = File::open(file)?;
    // SAFETY: the file is this bench's own, and nobody changes it while it is mapped.
    let bytes = unsafe { memmap2::Mmap::map(&file)? };
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (mut at, size) = (word(DATA) as usize, word(DATA + 8) as usize);
    let end = at + size;
    let mut sum = 0_u64;
    while at + 8 <= end {
        let length = (word(at) >> 48) as usize;
        for word in bytes[at..at + length].as_chunks::<8>().0 {
            sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
        at += length.max(8);
    }
    black_box(sum);
    Ok(begin.elapsed())
}

//! Makes compressed records (zstd) of others.
//!
//! Each compressed record is a zstd frame of its own, so that damage or a cut costs no more than that
//! record. A skippable frame before it, which decoders pass over, keeps records multiples of eight
//! bytes long; perf's own records of this kind are not.

use std::io;

use zstd::bulk::Compressor;

use crate::format::{RECORD_HEADER_SIZE, record_type};

/// Most bytes that one record holds before compression.
pub const CHUNK: usize = 128 << 10;
/// The longest payload: a record's size is a multiple of eight below 65536, and padding may take 15.
const LONGEST_FRAME: usize = 65528 - RECORD_HEADER_SIZE - 16;
/// Records that zstd cannot shrink below the longest payload are compressed in smaller parts; parts as
/// small as this always fit.
const ALWAYS_FITS: usize = 32 << 10;
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;

/// Compresses records on their way to the file.
pub struct RecordCompressor {
    zstd: Compressor<'static>,
    level: i32,
    input: Vec<u8>,
    frame: Vec<u8>,
    bytes_in: u64,
    bytes_out: u64,
}

impl RecordCompressor {
    /// With a level of zstd, 1 to 22; 1 is meant for recording.
    ///
    /// # Errors
    /// zstd's, for want of memory or for a level that there is not.
    pub fn new(level: i32) -> io::Result<Self> {
        let zstd = Compressor::new(level)?;
        Ok(Self { zstd, level, input: Vec::new(), frame: Vec::new(), bytes_in: 0, bytes_out: 0 })
    }

    /// Appends compressed records that hold all of `pieces`, one after the other.
    ///
    /// # Errors
    /// zstd's.
    pub fn compress<'a>(
        &mut self,
        pieces: impl IntoIterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut input = std::mem::take(&mut self.input);
        input.clear();
        pieces.into_iter().for_each(|piece| input.extend(piece));
        let compressed = input.chunks(CHUNK).try_for_each(|chunk| self.compress_chunk(chunk, out));
        self.input = input;
        compressed
    }

    /// The level.
    pub fn level(&self) -> u32 {
        self.level.unsigned_abs()
    }

    /// How many times smaller the records became, rounded.
    pub fn ratio(&self) -> u32 {
        let out = self.bytes_out.max(1);
        u32::try_from((self.bytes_in + out / 2) / out).unwrap_or(u32::MAX)
    }

    fn compress_chunk(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(chunk.len()));
        self.zstd.compress_to_buffer(chunk, &mut self.frame)?;
        if self.frame.len() > LONGEST_FRAME && chunk.len() > ALWAYS_FITS {
            let (first, second) = chunk.split_at(chunk.len() / 2);
            self.compress_chunk(first, out)?;
            return self.compress_chunk(second, out);
        }
        let start = out.len();
        out.extend(record_type::COMPRESSED.to_le_bytes());
        out.extend([0; 4]);
        if !self.frame.len().is_multiple_of(8) {
            let padding = 8 - self.frame.len() % 8;
            out.extend(SKIPPABLE_MAGIC.to_le_bytes());
            out.extend((padding as u32).to_le_bytes());
            out.resize(out.len() + padding, 0);
        }
        out.extend(&self.frame);
        let size = out.len() - start;
        out[start + 6..start + 8].copy_from_slice(&(size as u16).to_le_bytes());
        self.bytes_in += chunk.len() as u64;
        self.bytes_out += size as u64;
        Ok(())
    }
}

impl std::fmt::Debug for RecordCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordCompressor").field("level", &self.level).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The payloads of records, each a multiple of eight, all expanded.
    fn expand(records: &[u8]) -> Vec<u8> {
        let mut expanded = Vec::new();
        let mut at = 0;
        while at < records.len() {
            let size = usize::from(u16::from_le_bytes([records[at + 6], records[at + 7]]));
            assert!(size > 8 && size % 8 == 0);
            assert_eq!(records[at], 81);
            expanded.extend(zstd::stream::decode_all(&records[at + 8..at + size]).expect("zstd frames"));
            at += size;
        }
        expanded
    }

    #[test]
    fn noise_that_cannot_be_compressed_still_fits() {
        let mut state = 1u64;
        let noise: Vec<u8> = (0..300_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let mut out = Vec::new();
        let mut compressor = RecordCompressor::new(1).expect("zstd");
        compressor.compress([&noise[..]], &mut out).expect("compressed");
        assert_eq!(expand(&out), noise);
        assert_eq!(compressor.ratio(), 1);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(pieces in prop::collection::vec(prop::collection::vec(0u8..4, 0..5000), 0..8)) {
            let mut out = Vec::new();
            let mut compressor = RecordCompressor::new(1).expect("zstd");
            compressor.compress(pieces.iter().map(Vec::as_slice), &mut out).expect("compressed");
            prop_assert_eq!(expand(&out), pieces.concat());
        }
    }
}

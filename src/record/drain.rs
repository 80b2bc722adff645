//! Moves records from the rings to the file, round by round.
//!
//! A round empties every ring once and ends with a FINISHED_ROUND mark. Whatever a ring gets after it
//! was emptied in one round is younger than everything that the round before had, so a reader may put
//! a round's records in order as soon as it has seen the next round's mark.

use std::fs::File;
use std::io::{self, IoSlice};

use crate::record::census::Census;
use crate::record::counters::CpuRing;
use crate::record::ring::Unread;
use crate::recording::compress::{CHUNK, RecordCompressor};
use crate::recording::encode;
use crate::recording::trailer::Compression;
use crate::recording::writer::RecordingWriter;

/// The file's end of the rings.
#[derive(Debug)]
pub struct Drain {
    writer: RecordingWriter<File>,
    round_mark: Vec<u8>,
    compressor: Option<RecordCompressor>,
    compressed: Vec<u8>,
}

impl Drain {
    /// Writes to `writer`, which has its head already, with or without compression.
    pub fn new(writer: RecordingWriter<File>, compressor: Option<RecordCompressor>) -> Self {
        let mut round_mark = Vec::new();
        encode::finished_round(&mut round_mark);
        Self { writer, round_mark, compressor, compressed: Vec::new() }
    }

    /// One round: all that the rings hold, then `own_records`, then the mark. Records are counted into
    /// `census`. A round without any record is not written.
    ///
    /// # Errors
    /// The first error of writing; the rings keep what was not written.
    pub fn round(
        &mut self,
        rings: &mut [CpuRing],
        own_records: &[u8],
        census: &mut Census,
    ) -> io::Result<()> {
        let unread: Vec<Unread<'_>> = rings.iter().map(|ring| ring.ring.unread()).collect();
        if own_records.is_empty() && unread.iter().all(Unread::is_empty) {
            return Ok(());
        }
        let kernel_records = unread.iter().flat_map(|unread| unread.pieces);
        let records = kernel_records.chain([own_records]);
        if let Some(compressor) = &mut self.compressor {
            self.compressed.clear();
            compressor.compress(records, &mut self.compressed)?;
            self.compressed.extend(&self.round_mark);
            self.writer.write_raw(&self.compressed)?;
        } else {
            let mut pieces: Vec<IoSlice<'_>> =
                records.chain([&self.round_mark[..]]).map(IoSlice::new).collect();
            self.writer.write_raw_vectored(&mut pieces)?;
        }
        let heads: Vec<u64> = unread
            .iter()
            .map(|unread| {
                census.count(unread.pieces);
                unread.head
            })
            .collect();
        for (ring, head) in rings.iter_mut().zip(heads) {
            ring.ring.release(head);
        }
        // The header knows of each round, so that readers who go by it miss none if the recorder is killed.
        self.writer.commit()
    }

    /// How the records were compressed, for the trailer.
    pub fn compression(&self) -> Option<Compression> {
        let compressor = self.compressor.as_ref()?;
        Some(Compression { level: compressor.level(), ratio: compressor.ratio(), chunk: CHUNK as u32 })
    }

    /// The writer, for the end.
    pub fn into_writer(self) -> RecordingWriter<File> {
        self.writer
    }
}

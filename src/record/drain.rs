//! Moves records from the rings to the file, round by round.
//!
//! A round empties every ring once and ends with a FINISHED_ROUND mark. Whatever a ring gets after it
//! was emptied in one round is younger than everything that the round before had, so a reader may put
//! a round's records in order as soon as it has seen the next round's mark.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IoSlice};

use perf_data::Timestamp;
use perf_data::compress::{CHUNK, RecordCompressor};
use perf_data::encode;
use perf_data::features::{BuildId, Compression};
use perf_data::writer::{FailedWrite, PerfDataWriter};

use crate::record::census::Census;
use crate::record::counters::CpuRing;
use crate::record::mapped_files::MappedFiles;
use crate::record::partial_round::PartialRound;
use crate::record::ring::Unread;
use crate::record::untold_losses::ToldNow;
use crate::recording::own_blocks::OwnBlocks;

/// How often the room that was found is tried to be used, less of it each time.
const ATTEMPTS: usize = 4;

/// The file's end of the rings.
#[derive(Debug)]
pub struct Drain {
    writer: PerfDataWriter<File>,
    round_mark: Vec<u8>,
    compressor: Option<RecordCompressor>,
    compressed: Vec<u8>,
    own_written: usize,
    /// Where the recorder's own records lie in the file.
    own_blocks: OwnBlocks,
    census: Census,
    files: MappedFiles,
}

impl Drain {
    /// Writes to `writer`, which has its head already, with or without compression.
    /// Samples of the events `keep` are kept in the census; mappings get the build-ids of `files`.
    pub fn new(
        writer: PerfDataWriter<File>,
        compressor: Option<RecordCompressor>,
        keep: BTreeSet<u64>,
        files: MappedFiles,
    ) -> Self {
        let mut round_mark = Vec::new();
        encode::finished_round(&mut round_mark);
        Self {
            writer,
            round_mark,
            compressor,
            compressed: Vec::new(),
            own_written: 0,
            own_blocks: OwnBlocks::default(),
            census: Census { keep, ..Census::default() },
            files,
        }
    }

    /// One round: all that the rings hold, then `own_records`, then the mark. Records are counted. A round without any record is not written.
    ///
    /// # Errors
    /// The first error of writing. As many records as the file has room for were written then, and all of
    /// the rings' are still in them.
    pub fn round(&mut self, rings: &mut [CpuRing], own_records: &[u8]) -> io::Result<()> {
        self.own_written = 0;
        let unread: Vec<Unread<'_>> = rings.iter().map(|ring| ring.ring.unread()).collect();
        if own_records.is_empty() && unread.iter().all(Unread::is_empty) {
            return Ok(());
        }
        let signed: Vec<Option<Vec<u8>>> =
            unread.iter().map(|unread| self.files.sign(unread.pieces)).collect();
        let kernel_records = unread.iter().zip(&signed).map(|(unread, signed)| match signed {
            Some(signed) => [&signed[..], &[]],
            None => unread.pieces,
        });
        let kernel_records: Vec<[&[u8]; 2]> = kernel_records.collect();
        let start = self.writer.data_end();
        if let Err(failed) = self.write(kernel_records.iter().flatten().copied().chain([own_records])) {
            self.own_blocks.give_up();
            // Should that fail too, the first error says more.
            let _ = self.write_what_fits(&kernel_records, own_records, failed.room);
            return Err(failed.cause);
        }
        self.own_written = own_records.len();
        let of_kernel: usize = kernel_records.iter().flatten().map(|piece| piece.len()).sum();
        let own_start = start + of_kernel as u64;
        self.own_blocks.note(own_start..own_start + own_records.len() as u64);
        self.census.count_rings(&kernel_records);
        let heads: Vec<u64> = unread.iter().map(|unread| unread.head).collect();
        for (ring, head) in rings.iter_mut().zip(heads) {
            ring.ring.release(head);
        }
        // The header knows of each round, so that readers who go by it miss none if the recorder is killed.
        self.writer.commit()
    }

    /// Writes records and the round's mark.
    fn write<'a>(&mut self, records: impl Iterator<Item = &'a [u8]>) -> Result<(), FailedWrite> {
        let Some(compressor) = &mut self.compressor else {
            let mut pieces: Vec<IoSlice<'_>> = records.map(IoSlice::new).collect();
            pieces.push(IoSlice::new(&self.round_mark));
            return self.writer.write_raw_vectored(&mut pieces);
        };
        self.compressed.clear();
        compressor.compress(records, &mut self.compressed).map_err(|cause| FailedWrite { cause, room: 0 })?;
        self.compressed.extend(&self.round_mark);
        self.writer.write_raw_vectored(&mut [IoSlice::new(&self.compressed)])
    }

    /// Writes as many of these records as take `room` bytes of the file.
    fn write_what_fits(&mut self, rings: &[[&[u8]; 2]], own_records: &[u8], room: usize) -> io::Result<()> {
        let all = rings.iter().flatten().map(|piece| piece.len()).sum::<usize>() + own_records.len();
        let room = room.saturating_sub(self.round_mark.len());
        // How small the records that are kept become is known only when they are compressed.
        let mut wanted = match self.compressor {
            Some(_) => scaled(all, room, self.compressed.len()),
            None => room,
        };
        for _ in 0..ATTEMPTS {
            let kept = PartialRound::choose(rings, own_records, wanted);
            match self.write(kept.pieces()) {
                Ok(()) => {
                    self.own_written = kept.own.len();
                    self.census.count_rings(&kept.rings);
                    return self.writer.commit();
                }
                Err(_) => wanted = scaled(wanted, 7, 8),
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Bytes of the last round's own records that are in the file: all of them, unless it failed.
    pub fn own_written(&self) -> usize {
        self.own_written
    }

    /// What is in the file.
    pub fn census(&self) -> &Census {
        &self.census
    }

    /// The build-ids of the files that were mapped.
    pub fn build_ids(&self) -> impl Iterator<Item = BuildId> {
        self.files.build_ids()
    }

    /// Writes what the kernel has no record of.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn add_losses(&mut self, now: &ToldNow) -> io::Result<()> {
        self.round(&mut [], &now.records)?;
        for &(ring, count) in &now.by_ring {
            self.census.lost += count;
            self.census.lost_by_ring[ring] += count;
        }
        Ok(())
    }

    /// Samples kept since the last call.
    pub fn take_kept(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.census.kept)
    }

    /// How the records were compressed, for the features.
    pub fn compression(&self) -> Option<Compression> {
        let compressor = self.compressor.as_ref()?;
        Some(Compression {
            kind: Compression::ZSTD,
            level: compressor.level(),
            ratio: compressor.ratio(),
            ring_size: CHUNK as u32,
        })
    }

    /// The writer, for the end, at this time of which all records are over. The recorder's own are listed behind them, where
    /// who reads the recording can do with these: as long as nothing was lost, and if they lie in the file as they are.
    pub fn into_writer(self, time: Timestamp) -> PerfDataWriter<File> {
        let Self { mut writer, compressor, own_blocks, census, .. } = self;
        if compressor.is_none() && census.lost == 0 && census.lost_samples == 0 {
            let mut list = Vec::new();
            // Without the list nothing is missing; what of it did not fit on the disk is not of the recording.
            let _ = own_blocks
                .encode(writer.data_end(), time, &mut list)
                .map_err(io::Error::other)
                .and_then(|()| writer.write_raw(&list));
        }
        writer
    }
}

/// `number * numerator / denominator`, rounded down.
fn scaled(number: usize, numerator: usize, denominator: usize) -> usize {
    (number as u128 * numerator as u128 / denominator.max(1) as u128) as usize
}

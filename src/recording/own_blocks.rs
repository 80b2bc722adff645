//! Where a recorder's own records lie among those of the kernel.
//!
//! A recorder writes its own records, energy readings among them, in one block behind each round of the kernel's. Where
//! nothing was lost and no model is fitted, a reader must know of all readings before it goes through the samples, and of
//! nothing else: with a list of the blocks it need not look for them among a million samples.
//!
//! The list is the last thing among the records. It is carried by samples of [`METADATA_EVENT`], of which readers that do
//! not know of it take the first alone, and ends with the place where it begins, so that it is found from the end. A file
//! that was cut off, put together of others or written anew has none, or one that is not where it says.

use std::ops::Range;

use perf_data::encode::RecordTooLong;
use perf_data::record::Record;
use perf_data::{PerfData, Timestamp};

use super::metadata::METADATA_EVENT;
use super::own_events;

/// Blocks that are noted; a longer recording has no list, rather than one that grows for days.
const MOST_BLOCKS: usize = 1 << 16;
/// Blocks told by one record.
const BLOCKS_OF_RECORD: usize = 2048;
const VERSION: u32 = 1;
/// The last word of each record of the list.
const MARK: u64 = u64::from_le_bytes(*b"eprofown");
/// Bytes of that and of the word before it, which is the offset where the list begins.
const FOOT: usize = 16;

/// The blocks of a file that is being written.
#[derive(Debug, Default)]
pub struct OwnBlocks {
    blocks: Vec<Range<u64>>,
    /// There were more, or not all is known of them.
    is_given_up: bool,
}

impl OwnBlocks {
    /// Notes a block by its offsets in the file. Each lies behind the one before.
    pub fn note(&mut self, block: Range<u64>) {
        if self.blocks.len() == MOST_BLOCKS {
            self.give_up();
        }
        if !self.is_given_up && !block.is_empty() {
            self.blocks.push(block);
        }
    }

    /// There will be no list.
    pub fn give_up(&mut self) {
        self.is_given_up = true;
        self.blocks = Vec::new();
    }

    /// Appends the list, which is to lie at this offset in the file, behind all other records. Appends nothing where not all
    /// blocks were noted.
    ///
    /// # Errors
    /// None: each record is short enough.
    pub fn encode(&self, offset: u64, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        if self.is_given_up {
            return Ok(());
        }
        let records = self.blocks.chunks(BLOCKS_OF_RECORD);
        records
            .map(|blocks| payload(blocks, offset))
            .try_for_each(|it| own_events::own_blocks(&it, time, out))
    }
}

/// Version, number of blocks, start and end of each, where the list begins, and the mark.
fn payload(blocks: &[Range<u64>], offset: u64) -> Vec<u8> {
    let ends = blocks.iter().flat_map(|block| [block.start, block.end]);
    let words = std::iter::once(blocks.len() as u64).chain(ends).chain([offset, MARK]);
    VERSION.to_le_bytes().into_iter().chain(words.flat_map(u64::to_le_bytes)).collect()
}

/// The blocks of a finished file, the first one first; `None` if it has no list of them that is whole and where it says.
pub fn own_blocks(file: &PerfData) -> Option<Vec<Range<u64>>> {
    let (data, place) = (file.data(), file.data_range());
    let foot = data.last_chunk::<FOOT>().filter(|_| file.is_complete())?;
    let (offset, mark) = foot.split_at(8);
    if mark != MARK.to_le_bytes() {
        return None;
    }
    let offset = u64::from_le_bytes(offset.try_into().ok()?);
    let event = file.event_named(METADATA_EVENT)?;
    let mut records = file.records_in(offset..place.end)?;
    let mut blocks: Vec<Range<u64>> = Vec::new();
    while let Some((_, context, record)) = records.next().ok()? {
        let Record::Sample(sample) = record else { return None };
        if context.event != Some(event) {
            return None;
        }
        blocks.extend(blocks_of(sample.raw, offset)?);
    }
    let are_in_order = blocks.windows(2).all(|pair| pair[0].end <= pair[1].start);
    let are_blocks = blocks.iter().all(|block| block.start < block.end);
    let are_inside = blocks.first()?.start >= place.start && blocks.last()?.end <= offset;
    (are_in_order && are_blocks && are_inside).then_some(blocks)
}

/// What one record tells of a list that begins at this offset.
fn blocks_of(payload: &[u8], offset: u64) -> Option<Vec<Range<u64>>> {
    let (version, words) = payload.split_first_chunk::<4>()?;
    let (words, rest) = words.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let [count, ends @ .., begins, MARK] = &words[..] else { return None };
    let (ends, odd) = ends.as_chunks::<2>();
    let is_whole = rest.is_empty() && odd.is_empty() && *count == ends.len() as u64;
    let is_ours = u32::from_le_bytes(*version) == VERSION && *begins == offset;
    (is_whole && is_ours).then(|| ends.iter().map(|[start, end]| *start..*end).collect())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use perf_data::{Features, PerfDataWriter};

    use super::*;

    /// A file of so many blocks, each of one record of CPU times behind one of no block, and their list.
    fn file(blocks: usize) -> (Vec<u8>, Vec<Range<u64>>) {
        let events = own_events::descriptions(&[]);
        let mut writer = PerfDataWriter::create(Cursor::new(Vec::new()), events).expect("memory");
        let mut own = OwnBlocks::default();
        let mut expected = Vec::new();
        let record = |time: u64, out: &mut Vec<u8>| {
            own_events::cpu_times(&Default::default(), Timestamp::from_nanos(time), out).expect("short");
        };
        for time in 0..blocks as u64 {
            let (mut between, mut block) = (Vec::new(), Vec::new());
            record(2 * time, &mut between);
            writer.write_raw(&between).expect("memory");
            record(2 * time + 1, &mut block);
            let start = writer.data_end();
            writer.write_raw(&block).expect("memory");
            own.note(start..writer.data_end());
            expected.push(start..writer.data_end());
        }
        let mut list = Vec::new();
        own.encode(writer.data_end(), Timestamp::from_nanos(u64::MAX), &mut list).expect("short");
        writer.write_raw(&list).expect("memory");
        (writer.finish(&Features::default()).expect("memory").into_inner(), expected)
    }

    fn found(bytes: &[u8]) -> Option<Vec<Range<u64>>> {
        own_blocks(&PerfData::from_bytes(bytes.to_vec()).expect("a file"))
    }

    #[test]
    fn blocks_are_found_again() {
        for blocks in [1, 2, BLOCKS_OF_RECORD, 2 * BLOCKS_OF_RECORD + 1] {
            let (bytes, expected) = file(blocks);
            assert!(found(&bytes) == Some(expected), "{blocks} blocks");
        }
        assert_eq!(found(&file(0).0), None, "no block, no list");
    }

    #[test]
    fn a_block_holds_what_was_written() {
        let (bytes, blocks) = file(3);
        let file = PerfData::from_bytes(bytes).expect("a file");
        for (block, time) in blocks.into_iter().zip([1, 3, 5]) {
            let mut records = file.records_in(block).expect("inside");
            let (_, context, _) = records.next().expect("undamaged").expect("a record");
            assert_eq!(context.time, Some(Timestamp::from_nanos(time)));
            assert!(records.next().expect("undamaged").is_none());
        }
    }

    /// Any one byte of the list that is another, and any end that is missing.
    #[test]
    fn a_list_that_is_not_as_it_was_written_is_none() {
        let (bytes, expected) = file(3);
        let whole = PerfData::from_bytes(bytes.clone()).expect("a file");
        let list = blocks_end(&expected)..whole.data_range().end as usize;
        for at in list.clone() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            let found = PerfData::from_bytes(changed).ok().and_then(|file| own_blocks(&file));
            // Where a block lies is believed if it may lie there: the time, the CPU and such are not looked at.
            assert!(
                found.is_none_or(|found| found.iter().all(|block| block.end <= list.start as u64)),
                "{at}"
            );
        }
        for end in list {
            let cut = PerfData::from_bytes(bytes[..end].to_vec()).ok().and_then(|file| own_blocks(&file));
            assert_eq!(cut, None, "{end}");
        }
    }

    fn blocks_end(blocks: &[Range<u64>]) -> usize {
        blocks.last().map_or(0, |block| block.end as usize)
    }

    /// Records of two files behind each other, as a program might put them: the list is not where it says.
    #[test]
    fn the_list_of_another_file_is_none() {
        let (bytes, _) = file(3);
        let file = PerfData::from_bytes(bytes).expect("a file");
        let mut writer =
            PerfDataWriter::create(Cursor::new(Vec::new()), file.events().to_vec()).expect("memory");
        // Behind the names of events, which the writer makes itself.
        let records = &file.data()[(writer.data_end() - file.data_range().start) as usize..];
        for _ in 0..2 {
            writer.write_raw(records).expect("memory");
        }
        let twice = writer.finish(&Features::default()).expect("memory").into_inner();
        assert_eq!(found(&twice), None);
    }

    #[test]
    fn a_list_that_would_be_too_long_is_not_written() {
        let mut own = OwnBlocks::default();
        (0..=MOST_BLOCKS as u64).for_each(|at| own.note(8 * at..8 * at + 8));
        let mut list = Vec::new();
        own.encode(1 << 40, Timestamp::default(), &mut list).expect("short");
        assert!(list.is_empty());
    }
}

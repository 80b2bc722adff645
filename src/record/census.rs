//! Looks at records on their way to the file, no further than their headers, and counts them.
//!
//! The one exception are mappings, which are few: the files that code came from are noted, so that the
//! recording can name their build-ids.

use std::collections::{BTreeMap, BTreeSet};

use perf_data::features::BuildId;
use perf_data::format::{BUILD_ID_SIZE, RECORD_HEADER_SIZE, misc, record_type};

use crate::record::pieces;

/// More files than this are not noted: a program that maps ever new ones must not fill the memory.
const MOST_FILES: usize = 1 << 16;
/// Where MMAP2 has the size of the build-id, the build-id and the path.
const MMAP2_BUILD_ID_SIZE_AT: usize = 40;
const MMAP2_BUILD_ID_AT: usize = 44;
const MMAP2_PATH_AT: usize = 72;
/// Where LOST has its count.
const LOST_COUNT_AT: usize = 16;
/// Where LOST_SAMPLES has its count.
const LOST_SAMPLES_COUNT_AT: usize = 8;

/// What went into the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Samples.
    pub samples: u64,
    /// Records that the kernel says it dropped.
    pub lost: u64,
    /// Samples that it says hardware dropped.
    pub lost_samples: u64,
    /// Times the kernel stopped an event because it came too often.
    pub throttled: u64,
    /// Files that were mapped, with their build-ids.
    pub files: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Ids of events whose samples are kept.
    pub keep: BTreeSet<u64>,
    /// Those samples.
    pub kept: Vec<Vec<u8>>,
}

impl Census {
    /// Counts the records in the two pieces of a ring. A record may go over from one to the other.
    pub fn count(&mut self, pieces: [&[u8]; 2]) {
        for record in pieces::records(pieces) {
            let word = |at| pieces::word(pieces, record.at + at);
            match record.kind {
                record_type::SAMPLE => {
                    self.samples += 1;
                    // A sample begins with the id of its event.
                    if !self.keep.is_empty()
                        && word(RECORD_HEADER_SIZE).is_some_and(|id| self.keep.contains(&id))
                    {
                        self.kept.push(pieces::copied(pieces, record));
                    }
                }
                record_type::THROTTLE => self.throttled += 1,
                record_type::LOST => self.lost += word(LOST_COUNT_AT).unwrap_or(0),
                record_type::LOST_SAMPLES => self.lost_samples += word(LOST_SAMPLES_COUNT_AT).unwrap_or(0),
                record_type::MMAP2 if record.misc & misc::MMAP_BUILD_ID != 0 => {
                    self.note_file(&pieces::copied(pieces, record));
                }
                _ => {}
            }
        }
    }

    /// Notes the file of a mapping that has its build-id.
    fn note_file(&mut self, record: &[u8]) {
        let Some(path) = record.get(MMAP2_PATH_AT..).and_then(|text| text.split(|&byte| byte == 0).next())
        else {
            return;
        };
        if self.files.len() < MOST_FILES || self.files.contains_key(path) {
            let size = usize::from(record[MMAP2_BUILD_ID_SIZE_AT]).min(BUILD_ID_SIZE);
            let id = record[MMAP2_BUILD_ID_AT..MMAP2_BUILD_ID_AT + size].to_vec();
            self.files.insert(path.to_vec(), id);
        }
    }

    /// The build-ids of all files that have one.
    pub fn build_ids(&self) -> impl Iterator<Item = BuildId> {
        self.files.iter().map(|(path, id)| BuildId::of_file(id.clone(), path.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_data::encode::{self, MappingFields, SampleId};

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * words.len() as u64;
        let header = u64::from(kind) | size << 48;
        std::iter::once(&header).chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn mapping(path: &[u8]) -> Vec<u8> {
        let fields = MappingFields {
            pid: 1,
            tid: 1,
            addresses: 0x1000..0x2000,
            file_offset: 0,
            inode: (8, 1, 5),
            protection: 5,
            flags: 2,
            path,
        };
        let mut out = Vec::new();
        encode::mmap2(&fields, &SampleId::default(), &mut out).expect("short");
        out
    }

    #[test]
    fn counts_across_the_rings_end() {
        let records =
            [record(9, &[1, 2, 3]), record(2, &[7, 40]), mapping(b"/bin/x"), record(5, &[]), record(9, &[])];
        let records = records.concat();
        for split in (0..=records.len()).step_by(8) {
            let mut census = Census::default();
            census.count([&records[..split], &records[split..]]);
            assert_eq!((census.samples, census.lost, census.throttled), (2, 40, 1));
            assert_eq!(census.files, BTreeMap::new(), "no build-id");
        }
    }

    #[test]
    fn samples_of_chosen_events_are_kept() {
        let records = [record(9, &[7, 1]), record(9, &[8, 2]), record(2, &[7, 3])].concat();
        let mut census = Census { keep: BTreeSet::from([7]), ..Census::default() };
        census.count([&records[..16], &records[16..]]);
        assert_eq!(census.kept, [record(9, &[7, 1])]);
    }

    #[test]
    fn a_senseless_size_ends_the_count() {
        let mut census = Census::default();
        census.count([&[0; 64], &[]]);
        census.count([&[0xff; 64], &[]]);
        assert_eq!(census, Census::default());
    }

    #[test]
    fn a_build_id_in_the_mapping_is_kept() {
        let mut record = mapping(b"/lib/x.so");
        record[4..6].copy_from_slice(&(misc::USER | misc::MMAP_BUILD_ID).to_ne_bytes());
        record[40..64].copy_from_slice(&[&[20, 0, 0, 0][..], &[0xab; 20]].concat());
        let mut census = Census::default();
        census.count([&record, &[]]);
        census.count([&mapping(b"/lib/x.so"), &[]]);
        census.count([&mapping(b"//anon"), &[]]);
        census.count([&mapping(b"[vdso]"), &[]]);
        let of_file = BuildId::of_file(vec![0xab; 20], b"/lib/x.so".to_vec());
        assert_eq!(census.build_ids().collect::<Vec<_>>(), [of_file]);
    }
}

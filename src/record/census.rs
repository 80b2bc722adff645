//! Looks at records on their way to the file, no further than their headers, and counts them.

use std::collections::BTreeSet;

use perf_data::format::{RECORD_HEADER_SIZE, record_type};

use crate::record::pieces;

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
    /// The same, by ring.
    pub lost_by_ring: Vec<u64>,
    /// Samples that it says hardware dropped.
    pub lost_samples: u64,
    /// Times the kernel stopped an event because it came too often.
    pub throttled: u64,
    /// Ids of events whose samples are kept.
    pub keep: BTreeSet<u64>,
    /// Those samples.
    pub kept: Vec<Vec<u8>>,
}

impl Census {
    /// Counts the records of all rings, of each its two pieces. A record may go over from one to the other.
    pub fn count_rings(&mut self, rings: &[[&[u8]; 2]]) {
        if self.lost_by_ring.len() < rings.len() {
            self.lost_by_ring.resize(rings.len(), 0);
        }
        for (ring, pieces) in rings.iter().enumerate() {
            let before = self.lost;
            self.count(*pieces);
            self.lost_by_ring[ring] += self.lost - before;
        }
    }

    fn count(&mut self, pieces: [&[u8]; 2]) {
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
                _ => {}
            }
        }
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
        }
    }

    #[test]
    fn what_is_lost_is_known_by_ring() {
        let (first, second) = ([record(2, &[7, 40]), record(2, &[7, 2])].concat(), record(2, &[8, 5]));
        let mut census = Census::default();
        census.count_rings(&[[&first, &[]], [&[], &[]], [&second, &[]]]);
        census.count_rings(&[]);
        census.count_rings(&[[&[], &[]], [&second, &[]]]);
        assert_eq!((census.lost, &census.lost_by_ring[..]), (52, &[42, 5, 5][..]));
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
}

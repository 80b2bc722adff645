//! Which records of a round are kept where the file has no room for all of them.
//!
//! The recorder's own records come first: without the energy readings the samples say nothing of joules.
//! Each ring then keeps the same share of its bytes, from its start and in whole records. As every ring
//! holds the records of the same tenth of a second, what is kept of them ends at about the same time.

use crate::record::pieces;

/// The recorder's own records take this share of the room at most, if not all of them fit.
const OWN_SHARE: usize = 2;

/// What of a round has room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialRound<'a> {
    /// The records that are kept of each ring, in the order of the rings.
    pub rings: Vec<[&'a [u8]; 2]>,
    /// The records that are kept of the recorder's own.
    pub own: &'a [u8],
}

impl<'a> PartialRound<'a> {
    /// Whole records of the rings and of the recorder's own that take at most `room` bytes together.
    pub fn choose(rings: &[[&'a [u8]; 2]], own: &'a [u8], room: usize) -> Self {
        let size = |ring: &[&[u8]; 2]| ring[0].len() + ring[1].len();
        let total: usize = rings.iter().map(size).sum();
        let left_by_rings = room.saturating_sub(total).max(room / OWN_SHARE);
        let [own, _] = whole_records([own, &[]], left_by_rings);
        let room = room - own.len();
        let share = |ring: &[&[u8]; 2]| (size(ring) as u128 * room as u128 / total.max(1) as u128) as usize;
        let rings = rings.iter().map(|ring| whole_records(*ring, share(ring).min(size(ring)))).collect();
        Self { rings, own }
    }

    /// All that is kept, in the order in which it is written.
    pub fn pieces(&self) -> impl Iterator<Item = &'a [u8]> {
        self.rings.iter().flatten().copied().chain([self.own])
    }
}

/// The whole records at the start of a ring's two pieces that take at most `room` bytes.
fn whole_records(pieces: [&[u8]; 2], room: usize) -> [&[u8]; 2] {
    let ends = pieces::records(pieces).map(|record| record.at + record.size);
    let end = ends.take_while(|&end| end <= room).last().unwrap_or(0);
    let first = end.min(pieces[0].len());
    [&pieces[0][..first], &pieces[1][..end - first]]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records of these numbers of words; each says by its type where it came from.
    fn records(kind: u8, words: &[u16]) -> Vec<u8> {
        let record = |words: &u16| {
            let size = 8 * (1 + words);
            let mut record = vec![kind; usize::from(size)];
            record[6..8].copy_from_slice(&size.to_le_bytes());
            record
        };
        words.iter().flat_map(record).collect()
    }

    #[test]
    fn rings_keep_the_same_share_and_own_records_all() {
        let (busy, calm, own) = (records(1, &[9; 100]), records(2, &[9; 10]), records(3, &[4; 20]));
        let rings = [[&busy[..4000], &busy[4000..]], [&calm[..], &[]]];
        // 800 bytes of own records and half of 8800.
        let kept = PartialRound::choose(&rings, &own, 800 + 4400);
        assert_eq!(kept.own.len(), 800);
        let sizes: Vec<usize> = kept.rings.iter().map(|[a, b]| a.len() + b.len()).collect();
        assert_eq!(sizes, [4000, 400]);
    }

    #[test]
    fn own_records_leave_half_of_the_room() {
        let (ring, own) = (records(1, &[9; 100]), records(3, &[9; 100]));
        let kept = PartialRound::choose(&[[&ring, &[]]], &own, 1000);
        assert_eq!((kept.own.len(), kept.rings[0][0].len()), (480, 480));
        // Of rings that hold less, more is left.
        let kept = PartialRound::choose(&[[&ring[..80], &[]]], &own, 1000);
        assert_eq!((kept.own.len(), kept.rings[0][0].len()), (880, 80));
    }

    #[test]
    fn senseless_sizes_end_what_is_kept() {
        let kept = PartialRound::choose(&[[&[0; 64], &[0xff; 64]]], &[0xff; 12], 4096);
        assert_eq!(kept.pieces().map(<[u8]>::len).sum::<usize>(), 0);
    }

    proptest! {
        #[test]
        fn whole_records_fit_and_little_room_is_left(
            busy in prop::collection::vec(0u16..40, 0..60),
            calm in prop::collection::vec(0u16..40, 0..20),
            own in prop::collection::vec(0u16..40, 0..20),
            split in 0.0..1.0,
            share in 0.0..1.2,
        ) {
            let (busy, calm, own) = (records(1, &busy), records(2, &calm), records(3, &own));
            let all = busy.len() + calm.len() + own.len();
            let room = (all as f64 * share) as usize;
            let (first, second) = busy.split_at((busy.len() as f64 * split) as usize / 8 * 8);
            let kept = PartialRound::choose(&[[first, second], [&calm, &[]]], &own, room);
            let bytes = kept.pieces().collect::<Vec<_>>().concat();
            prop_assert!(bytes.len() <= room);
            // Each of the three leaves less than a record of 320 bytes, or is kept whole.
            prop_assert!(bytes.len() + 3 * 320 > room.min(all), "{} of {}", bytes.len(), room);
            let kept = [kept.rings[0].concat(), kept.rings[1].concat(), kept.own.to_vec()];
            for (all, kept) in [busy, calm, own].iter().zip(&kept) {
                prop_assert!(all.starts_with(kept));
                prop_assert_eq!(whole_records([kept, &[]], usize::MAX)[0].len(), kept.len());
            }
            if room >= all {
                prop_assert_eq!(bytes.len(), all);
            }
        }
    }
}

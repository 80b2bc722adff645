//! Records in a ring, which come in two pieces where they go over the ring's end.

use perf_data::format::RECORD_HEADER_SIZE;

/// Where a record lies, and what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordAt {
    /// Bytes before it, in both pieces.
    pub at: usize,
    /// Its bytes, the header among them.
    pub size: usize,
    /// `perf_event_header.type`.
    pub kind: u32,
    /// `perf_event_header.misc`.
    pub misc: u16,
}

/// The whole records of two pieces, up to the first whose size makes no sense: the kernel writes none such.
pub fn records(pieces: [&[u8]; 2]) -> impl Iterator<Item = RecordAt> {
    let total = pieces[0].len() + pieces[1].len();
    let mut at = 0;
    std::iter::from_fn(move || {
        let record = record_at(pieces, at)?;
        if record.size < RECORD_HEADER_SIZE || at + record.size > total {
            return None;
        }
        at += record.size;
        Some(record)
    })
}

fn record_at(pieces: [&[u8]; 2], at: usize) -> Option<RecordAt> {
    let header = word(pieces, at)?;
    Some(RecordAt { at, size: (header >> 48) as usize, kind: header as u32, misc: (header >> 32) as u16 })
}

/// The eight bytes at `at`. Rings and records are multiples of eight, so none goes over the ring's end.
pub fn word(pieces: [&[u8]; 2], at: usize) -> Option<u64> {
    let (piece, at) = match at.checked_sub(pieces[0].len()) {
        None => (pieces[0], at),
        Some(rest) => (pieces[1], rest),
    };
    Some(u64::from_ne_bytes(piece.get(at..at + 8)?.try_into().ok()?))
}

/// A record in one piece.
pub fn copied(pieces: [&[u8]; 2], record: RecordAt) -> Vec<u8> {
    pieces[0].iter().chain(pieces[1]).skip(record.at).take(record.size).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * words.len() as u64;
        let header = u64::from(kind) | u64::from(misc) << 32 | size << 48;
        std::iter::once(&header).chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn records_are_found_and_copied_over_the_rings_end() {
        let bytes = [record(9, 2, &[1, 2, 3]), record(10, 3, &[4, 5])].concat();
        for split in (0..=bytes.len()).step_by(8) {
            let pieces = [&bytes[..split], &bytes[split..]];
            let found: Vec<RecordAt> = records(pieces).collect();
            let expected = [(0, 32, 9, 2), (32, 24, 10, 3)].map(|(at, size, kind, misc)| RecordAt {
                at,
                size,
                kind,
                misc,
            });
            assert_eq!(found, expected);
            assert_eq!(copied(pieces, found[0]), record(9, 2, &[1, 2, 3]));
            assert_eq!(copied(pieces, found[1]), record(10, 3, &[4, 5]));
        }
    }

    #[test]
    fn a_senseless_size_ends_the_records() {
        assert_eq!(records([&[0; 64], &[]]).count(), 0);
        assert_eq!(records([&[0xff; 64], &[]]).count(), 0);
        let bytes = record(9, 0, &[1, 2]);
        assert_eq!(records([&bytes[..16], &[]]).count(), 0);
    }
}

//! Counts records on their way to the file, by their headers alone.

/// What went into the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Samples.
    pub samples: u64,
    /// Records that the kernel says it dropped.
    pub lost: u64,
    /// Times the kernel stopped an event because it came too often.
    pub throttled: u64,
}

const RECORD_LOST: u32 = 2;
const RECORD_THROTTLE: u32 = 5;
const RECORD_SAMPLE: u32 = 9;

impl Census {
    /// Counts the records in the two pieces of a ring. A record may go over from one to the other.
    pub fn count(&mut self, pieces: &[&[u8]; 2]) {
        let total = pieces[0].len() + pieces[1].len();
        let mut at = 0;
        while let Some(header) = word(pieces, at) {
            let kind = header as u32;
            // The size cannot be zero in the kernel's records; if it is, the rest cannot be counted.
            let size = (header >> 48) as usize;
            if size < 8 || at + size > total {
                break;
            }
            match kind {
                RECORD_SAMPLE => self.samples += 1,
                RECORD_THROTTLE => self.throttled += 1,
                RECORD_LOST => self.lost += word(pieces, at + 16).unwrap_or(0),
                _ => {}
            }
            at += size;
        }
    }
}

/// The eight bytes at `at`. Rings and records are multiples of eight, so none goes over the ring's end.
fn word(pieces: &[&[u8]; 2], at: usize) -> Option<u64> {
    let (piece, at) = match at.checked_sub(pieces[0].len()) {
        None => (pieces[0], at),
        Some(rest) => (pieces[1], rest),
    };
    Some(u64::from_ne_bytes(piece.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * words.len() as u64;
        let header = u64::from(kind) | size << 48;
        std::iter::once(&header).chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn counts_samples_and_losses_across_the_rings_end() {
        let records: Vec<u8> =
            [record(9, &[1, 2, 3]), record(2, &[7, 40]), record(5, &[]), record(9, &[])].concat();
        for split in (0..=records.len()).step_by(8) {
            let mut census = Census::default();
            census.count(&[&records[..split], &records[split..]]);
            assert_eq!(census, Census { samples: 2, lost: 40, throttled: 1 });
        }
    }

    #[test]
    fn a_senseless_size_ends_the_count() {
        let mut census = Census::default();
        census.count(&[&[0; 64], &[]]);
        census.count(&[&[0xff; 64], &[]]);
        assert_eq!(census, Census::default());
    }
}

//! Which code ran when, roughly: whether its mixture changes while a recording goes on.

use std::ops::Range;

use crate::units::Timestamp;

/// Code is cut into pieces of these sizes, as powers of two: of a loop, a page, a large function. What changes together is
/// seen best where it is one piece.
const SHIFTS: [u32; 3] = [8, 12, 16];
/// Counts of pieces of one size, some of which may share one.
const COUNTS: usize = 512;
/// Of one block.
const OF_BLOCK: usize = SHIFTS.len() * COUNTS;
/// Blocks of time. When a recording is longer than they reach, pairs of them become one.
const MOST_BLOCKS: usize = 64;
/// Length of a block at first: 67 ms.
const SHORTEST: u64 = 1 << 26;

/// How often each piece of code was sampled in each block of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mixture {
    origin: Option<u64>,
    width: u64,
    /// By block, size and piece.
    counts: Vec<u32>,
}

impl Mixture {
    /// A sample in the code at this address.
    pub fn sample(&mut self, address: u64, time: Timestamp) {
        let time = time.as_nanos();
        let origin = *self.origin.get_or_insert(time);
        self.width = self.width.max(SHORTEST);
        // One CPU's samples come behind another's: what is a little earlier than the first counts with it.
        let since = time.saturating_sub(origin);
        while since / self.width >= MOST_BLOCKS as u64 {
            self.merge_pairs();
        }
        let block = (since / self.width) as usize;
        if self.counts.len() <= block * OF_BLOCK {
            self.counts.resize((block + 1) * OF_BLOCK, 0);
        }
        let counts = &mut self.counts[block * OF_BLOCK..][..OF_BLOCK];
        for (of_size, shift) in counts.chunks_exact_mut(COUNTS).zip(SHIFTS) {
            // Fibonacci hashing: the high bits depend on all of the piece's number.
            let hash = (address >> shift).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let count = &mut of_size[(hash >> (64 - COUNTS.trailing_zeros())) as usize];
            *count = count.saturating_add(1);
        }
    }

    fn merge_pairs(&mut self) {
        let blocks = self.counts.len() / OF_BLOCK;
        for block in 0..blocks.div_ceil(2) {
            for at in 0..OF_BLOCK {
                let second = self.counts.get((2 * block + 1) * OF_BLOCK + at).copied().unwrap_or(0);
                self.counts[block * OF_BLOCK + at] =
                    self.counts[2 * block * OF_BLOCK + at].saturating_add(second);
            }
        }
        self.counts.truncate(blocks.div_ceil(2) * OF_BLOCK);
        self.width *= 2;
    }

    /// Which share each piece of code had in parts of the time, in seconds since `begin`; of each size all pieces add up to one,
    /// or to nothing where nothing was sampled.
    pub fn shares_in(&self, begin: Timestamp, times: &[Range<f64>]) -> Vec<Vec<f64>> {
        let origin = self.origin.unwrap_or(0) as f64 - begin.as_nanos() as f64;
        let time = |block: usize| (origin + block as f64 * self.width as f64) * 1e-9;
        let in_part = |part: &Range<f64>| {
            let mut shares = vec![0.0; OF_BLOCK];
            for (block, counts) in self.counts.chunks_exact(OF_BLOCK).enumerate() {
                let (start, end) = (time(block), time(block + 1));
                let common = (end.min(part.end) - start.max(part.start)).max(0.0) / (end - start);
                if common > 0.0 {
                    shares.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += common * f64::from(count));
                }
            }
            let all: f64 = shares[..COUNTS].iter().sum();
            shares.iter_mut().for_each(|share| *share /= all.max(f64::MIN_POSITIVE));
            shares
        };
        times.iter().map(in_part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Root of the sum of squares of what pieces of one size have more in the second second than in the first, by size, where a
    /// thousand samples of each lie at addresses by second and number.
    fn changes(address: impl Fn(u64, u64) -> u64) -> Vec<f64> {
        let mut mixture = Mixture::default();
        let begin = 77 * SECOND;
        for sample in 0..2000 {
            let address = address(sample / 1000, sample % 1000);
            mixture.sample(address, Timestamp::from_nanos(begin + sample * SECOND / 1000));
        }
        // The border of the seconds lies within a block of 67 ms.
        let shares = mixture.shares_in(Timestamp::from_nanos(begin), &[0.0..0.9, 1.1..2.0]);
        let change = |size: usize| -> f64 {
            let of = |part: usize| &shares[part][size * COUNTS..(size + 1) * COUNTS];
            assert!((of(0).iter().sum::<f64>() - 1.0).abs() < 1e-9);
            of(0).iter().zip(of(1)).map(|(early, late)| (late - early).powi(2)).sum()
        };
        (0..SHIFTS.len()).map(|size| change(size).sqrt()).collect()
    }

    fn close(found: &[f64], expected: [f64; 3]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 0.01, "{found} for {expected}");
        }
    }

    #[test]
    fn what_changes_by_hand() {
        let all = 2f64.sqrt();
        close(&changes(|_, _| 0x40_1000), [0.0; 3]);
        // One piece, then another: a share of one less, and one more.
        close(&changes(|second, _| 0x40_1000 + second * 0x10_0000), [all; 3]);
        // Two loops of one page.
        close(&changes(|second, _| 0x40_1000 + second * 0x400), [all, 0.0, 0.0]);
        // A function of 256 loops in 16 pages is one piece of 64 KiB: it changes as a whole, though each loop has 1 of 256.
        let large = changes(|second, number| 0x40_0000 + second * 0x10_0000 + number % 256 * 0x100);
        assert!(large[0] < 0.15 && large[1] < 0.5, "{large:?}");
        assert!((large[2] - all).abs() < 0.01, "{large:?}");
        // A tenth of what runs late is new: 0.1 more of it, 0.1 less of the rest.
        close(
            &changes(|second, number| 0x40_1000 + second * u64::from(number % 10 == 0) * 0x10_0000),
            [0.02f64.sqrt(); 3],
        );
    }

    #[test]
    fn long_recordings_have_longer_blocks() {
        let mut mixture = Mixture::default();
        // 64 blocks of 67 ms are 4.3 s; of 100 s, 2.1 s each.
        for second in 0..100 {
            mixture.sample(0x1000 + second / 50 * 0x10_0000, Timestamp::from_nanos(SECOND * second));
        }
        assert_eq!((mixture.width, mixture.counts.len() / OF_BLOCK), (SHORTEST << 5, 47));
        assert_eq!(mixture.counts.iter().sum::<u32>(), 300);
        let shares = mixture.shares_in(Timestamp::from_nanos(0), &[0.0..48.0, 52.0..100.0]);
        let common: f64 = shares[0].iter().zip(&shares[1]).map(|(early, late)| early * late).sum();
        assert_eq!(common, 0.0);
        let nothing = Mixture::default().shares_in(Timestamp::from_nanos(0), &[0.0..1.0]);
        assert!(nothing[0].iter().all(|share| *share == 0.0));
    }

    #[test]
    fn parts_of_the_time_are_counted_from_where_they_begin() {
        let mut mixture = Mixture::default();
        // From 3 s after the beginning on one piece of code, and from 4 s on another.
        for sample in 0..2000 {
            let address = 0x40_1000 + sample / 1000 * 0x10_0000;
            mixture.sample(address, Timestamp::from_nanos(80 * SECOND + sample * SECOND / 1000));
        }
        let times = [0.0..2.9, 3.0..3.9, 4.1..5.0, 5.1..9.0];
        let shares = mixture.shares_in(Timestamp::from_nanos(77 * SECOND), &times);
        let largest = |part: usize| shares[part][..COUNTS].iter().copied().fold(0.0, f64::max);
        assert_eq!([0, 1, 2, 3].map(largest), [0.0, 1.0, 1.0, 0.0]);
        let common: f64 = shares[1].iter().zip(&shares[2]).map(|(early, late)| early * late).sum();
        assert_eq!(common, 0.0);
    }
}

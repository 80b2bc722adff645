//! Of how many pieces of code a recording consists.
//!
//! What a power model does not tell of a piece of code is the same each time it runs, so that many intervals say no more of it
//! than the pieces that ran in them. What a function is, symbols tell; here a piece is what lies in one page of memory.

/// Of the smallest page that Linux has.
const PAGE_SHIFT: u32 = 12;
/// Counts of pages, some of which may share one: far more than a program has that matter.
const COUNTS: usize = 1 << 12;

/// How often each page of code was sampled, roughly.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    counts: Vec<u64>,
}

impl Pieces {
    /// A sample in the code at this address.
    pub fn sample(&mut self, address: u64) {
        if self.counts.is_empty() {
            self.counts.resize(COUNTS, 0);
        }
        // Fibonacci hashing: the high bits depend on all of the page's number.
        let hash = (address >> PAGE_SHIFT).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.counts[(hash >> (64 - COUNTS.trailing_zeros())) as usize] += 1;
    }

    /// So many pieces of equal weight would come together as often: the inverse of the chance that two samples fall into one.
    /// `None` without samples.
    pub fn effective(&self) -> Option<f64> {
        let squares: f64 = self.counts.iter().map(|&count| (count as f64).powi(2)).sum();
        let all: f64 = self.counts.iter().map(|&count| count as f64).sum();
        (squares > 0.0).then(|| all * all / squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_count_by_how_much_runs_in_them() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.effective(), None);
        for sample in 0..600 {
            pieces.sample(0x40_1000 + sample % 3 * 0x1000 + sample % 7);
        }
        assert!((pieces.effective().expect("samples") - 3.0).abs() < 1e-9);
        (0..5400).for_each(|_| pieces.sample(0x7f00_0000_1234));
        // 5400 of 6000 in one: 1 / (0.9² + 3 x 0.0333²).
        assert!((pieces.effective().expect("samples") - 1.0 / 0.81333).abs() < 1e-3);
    }
}

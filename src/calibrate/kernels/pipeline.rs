//! Chains of multiplications and additions that do not wait for each other: as many instructions in
//! flight as the core can hold.

use std::hint::black_box;

use super::work::Work;

const PIECE: u32 = 2_000;
/// Latency of a multiplication times the number of units of the widest cores: more chains than these
/// leave none of them idle.
const CHAINS: usize = 8;

/// The ends of the chains.
pub struct Pipeline {
    products: [f64; CHAINS],
    sums: [u64; CHAINS],
}

impl Pipeline {
    pub fn new() -> Self {
        Self { products: [1.0; CHAINS], sums: [1; CHAINS] }
    }
}

impl Work for Pipeline {
    fn go_on(&mut self) {
        let mut products = black_box(self.products);
        let mut sums = black_box(self.sums);
        for step in 0..PIECE {
            for (product, sum) in products.iter_mut().zip(&mut sums) {
                // Stays between 0.5 and 2: numbers too small for their exponent would be slow.
                *product = *product * 0.5 + 0.75;
                *sum = sum.rotate_left(7) ^ u64::from(step);
            }
        }
        self.products = black_box(products);
        self.sums = black_box(sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_ordinary() {
        let mut work = Pipeline::new();
        (0..100).for_each(|_| work.go_on());
        assert!(work.products.iter().all(|product| (0.5..=2.0).contains(product)));
        assert_ne!(work.sums, [1; CHAINS]);
    }
}

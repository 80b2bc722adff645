//! Square roots, each of the one before: the divider is busy, and little else is.

use std::hint::black_box;

use super::work::Work;

const PIECE: u32 = 2_000;

/// The number that is rooted.
pub struct SquareRoots(f64);

impl SquareRoots {
    pub fn new() -> Self {
        Self(2.0)
    }
}

impl Work for SquareRoots {
    fn go_on(&mut self) {
        let mut value = black_box(self.0);
        for step in 0..PIECE {
            // Added to, so that the value does not settle at 1, whose root may take a short cut.
            value = (value + f64::from(step)).sqrt();
        }
        self.0 = black_box(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roots_are_really_taken() {
        let mut work = SquareRoots::new();
        work.go_on();
        let expected = (0..PIECE).fold(2.0, |value: f64, step| (value + f64::from(step)).sqrt());
        assert_eq!(work.0, expected);
    }
}

//! Reads an array from end to end, again and again, and adds up what it reads.

use std::hint::black_box;

use super::work::Work;

/// Words of a piece: 64 kB, some ten microseconds from memory.
const PIECE: usize = 8 << 10;

/// The array and how far it was read.
pub struct Stream {
    words: Vec<u64>,
    at: usize,
    sum: u64,
}

impl Stream {
    /// Over so many bytes. Every page is written, so that none of them is the kernel's page of zeros.
    pub fn new(bytes: usize) -> Self {
        let words = (bytes / size_of::<u64>()).max(1);
        Self { words: (0..words as u64).collect(), at: 0, sum: 0 }
    }
}

impl Work for Stream {
    fn go_on(&mut self) {
        let mut left = PIECE;
        let mut sum = black_box(self.sum);
        while left > 0 {
            let end = self.words.len().min(self.at + left);
            let piece = black_box(&self.words[self.at..end]);
            sum = piece.iter().fold(sum, |sum, word| sum.wrapping_add(*word));
            left -= end - self.at;
            self.at = if end == self.words.len() { 0 } else { end };
        }
        self.sum = black_box(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_in_turn() {
        // A piece reads an array of half its size twice.
        let words = PIECE as u64 / 2;
        let mut stream = Stream::new(words as usize * 8);
        stream.go_on();
        assert_eq!(stream.sum, 2 * (0..words).sum::<u64>());
        assert_eq!(stream.at, 0);
        let mut long = Stream::new(PIECE * 8 * 3 / 2);
        long.go_on();
        assert_eq!(long.at, PIECE);
        long.go_on();
        assert_eq!(long.at, PIECE / 2);
    }
}

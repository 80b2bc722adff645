//! A few seconds of real work in several functions and threads, to have something to profile.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Works on two threads until the given time and returns a checksum.
pub fn run(until: Instant) -> u64 {
    thread::scope(|scope| {
        let threads =
            [("numbers", crunch_numbers as fn(u32) -> u64), ("texts", process_text)].map(|(name, work)| {
                let rounds = (0..).take_while(move |_| Instant::now() < until);
                let sum = move || rounds.map(work).fold(0, u64::wrapping_add);
                thread::Builder::new().name(name.into()).spawn_scoped(scope, sum)
            });
        threads.into_iter().flatten().filter_map(|thread| thread.join().ok()).fold(0, u64::wrapping_add)
    })
}

#[inline(never)]
fn crunch_numbers(round: u32) -> u64 {
    let side = 160;
    let a: Vec<f64> = (0..side * side).map(|i| f64::from(i as u32 % 97 + round)).collect();
    let b: Vec<f64> = (0..side * side).map(|i| f64::from(i as u32 % 89)).collect();
    let product = multiply_matrices(&a, &b, side);
    let primes = sieve_primes(400_000 + round as usize);
    black_box(product[side + 1] as u64).wrapping_add(primes as u64)
}

#[inline(never)]
fn multiply_matrices(a: &[f64], b: &[f64], side: usize) -> Vec<f64> {
    let mut product = vec![0.0; side * side];
    for row in 0..side {
        for k in 0..side {
            let factor = a[row * side + k];
            for column in 0..side {
                product[row * side + column] += factor * b[k * side + column];
            }
        }
    }
    product
}

#[inline(never)]
fn sieve_primes(limit: usize) -> usize {
    let mut composite = vec![false; limit];
    let mut count = 0;
    for number in 2..limit {
        if !composite[number] {
            count += 1;
            for multiple in (number * number..limit).step_by(number) {
                composite[multiple] = true;
            }
        }
    }
    count
}

#[inline(never)]
fn process_text(round: u32) -> u64 {
    let text = make_text(round, 60_000);
    let words = count_words(&text);
    let packed = compress(text.as_bytes());
    words.values().sum::<u64>().wrapping_add(packed as u64)
}

#[inline(never)]
fn make_text(seed: u32, words: u32) -> String {
    const SYLLABLES: [&str; 8] = ["jou", "le", "watt", "ki", "lo", "me", "ter", "sec"];
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut text = String::new();
    for _ in 0..words {
        for _ in 0..3 {
            // A linear congruential generator: the words need no better randomness.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(SYLLABLES[(state >> 29) as usize]);
        }
        text.push(' ');
    }
    text
}

#[inline(never)]
fn count_words(text: &str) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    for word in text.split_ascii_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

#[inline(never)]
fn compress(bytes: &[u8]) -> usize {
    zstd::bulk::compress(bytes, 6).map_or(0, |packed| packed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_real_and_repeatable() {
        assert_eq!(sieve_primes(100), 25);
        assert_eq!(
            multiply_matrices(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2),
            [19.0, 22.0, 43.0, 50.0]
        );
        assert_eq!(count_words("a b a")["a"], 2);
        assert_eq!(crunch_numbers(1), crunch_numbers(1));
        assert!(process_text(1) > 60_000, "as many words as there are, and the size of the packed text");
        assert_eq!(run(Instant::now()), 0, "no time, no work");
    }
}

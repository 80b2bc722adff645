//! The kernels' loops.
//!
//! Bare on purpose: a loop that is written with iterators is a handful of functions in a program that was built
//! without optimisation, and the samples would be theirs.

/// Steps of a unit: a unit takes a fraction of a microsecond.
const STEPS: u64 = 64;
/// Words of a line of the caches.
const LINE: usize = 8;

/// Each division waits for the one before.
#[inline(never)]
pub fn quotients(mut value: f64, units: u64) -> f64 {
    let mut left = units * STEPS;
    while left > 0 {
        value = 3.0 / value + 0.75;
        left -= 1;
    }
    value
}

/// Eight chains; all stay between 0.5 and 2, since numbers too small for their exponent would be slow.
#[inline(never)]
pub fn products(ends: [f64; 8], units: u64) -> [f64; 8] {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = ends;
    let mut left = units * STEPS;
    while left > 0 {
        a = a * 0.5 + 0.75;
        b = b * 0.5 + 0.5625;
        c = c * 0.5 + 0.625;
        d = d * 0.5 + 0.6875;
        e = e * 0.5 + 0.8125;
        f = f * 0.5 + 0.875;
        g = g * 0.5 + 0.71875;
        h = h * 0.5 + 0.53125;
        left -= 1;
    }
    [a, b, c, d, e, f, g, h]
}

/// Marsaglia's xorshift, four at once.
#[inline(never)]
pub fn integers(ends: [u64; 4], units: u64) -> [u64; 4] {
    let [mut a, mut b, mut c, mut d] = ends;
    let mut left = units * STEPS;
    while left > 0 {
        a ^= a << 13;
        b ^= b << 13;
        c ^= c << 13;
        d ^= d << 13;
        a ^= a >> 7;
        b ^= b >> 7;
        c ^= c >> 7;
        d ^= d >> 7;
        a ^= a << 17;
        b ^= b << 17;
        c ^= c << 17;
        d ^= d << 17;
        left -= 1;
    }
    [a, b, c, d]
}

/// Places that follow no order, none of which waits for what was read before. `words` are a power of two; `at` is the
/// latest place and what was read so far.
#[inline(never)]
pub fn table(words: &[u64], at: (u64, u64), units: u64) -> (u64, u64) {
    let (mut place, mut read) = at;
    let mask = words.len() - 1;
    let mut left = units * STEPS;
    while left > 0 {
        place ^= place << 13;
        place ^= place >> 7;
        place ^= place << 17;
        read ^= words[place as usize & mask];
        left -= 1;
    }
    (place, read)
}

/// A word of each line; `at` is the next one and what was read so far.
#[inline(never)]
pub fn memory(words: &[u64], at: (usize, u64), units: u64) -> (usize, u64) {
    let (mut next, mut read) = at;
    let mut left = units * STEPS;
    while left > 0 {
        if next >= words.len() {
            next = 0;
        }
        read ^= words[next];
        next += LINE;
        left -= 1;
    }
    (next, read)
}

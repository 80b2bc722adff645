//! A program with deep stacks: two threads go down 4 to 60 frames through a dozen functions and work at the
//! bottom, again and again.
//!
//! Compiled by the benches with frame pointers. `workload seconds 2.5` works for so much CPU time per thread,
//! `workload descents 1000000` so often. Prints the CPU time that it used, in nanoseconds.

use std::hint::black_box;
use std::thread;

/// A stream of pseudo-random numbers (xorshift64*), so that every run takes the same ways down.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Turns of work at the bottom: most samples have a deep stack.
const BOTTOM: u64 = 70;

/// What a function on the way down does: its own work, then the next function, chosen by the numbers.
macro_rules! functions {
    ($($name:ident $turns:literal),*) => {
        $(#[inline(never)]
        fn $name(numbers: &mut Numbers, depth: u32) -> u64 {
            let mut sum = turn($turns, depth as u64);
            sum ^= if depth > 0 { down(numbers, depth - 1) } else { turn(BOTTOM, sum) };
            black_box(sum)
        })*

        /// Functions by number.
        const FUNCTIONS: &[fn(&mut Numbers, u32) -> u64] = &[$($name),*];
    };
}

functions!(
    parse 3, resolve 7, optimise 2, schedule 5, allocate 9, emit 4, link 6, pack 8, hash 5, compare 3, search 7, merge 4
);

#[inline(always)]
fn down(numbers: &mut Numbers, depth: u32) -> u64 {
    // Most calls go the usual way, so that stacks are as alike as those of real programs.
    let number = numbers.next();
    let usual = depth as usize % FUNCTIONS.len();
    let index = if number % 40 == 0 { (number >> 8) as usize % FUNCTIONS.len() } else { usual };
    FUNCTIONS[index](numbers, depth)
}

#[inline(always)]
fn turn(turns: u64, seed: u64) -> u64 {
    let mut value = seed | 1;
    for turn in 0..turns * 8 {
        value = black_box(value.wrapping_mul(6364136223846793005).wrapping_add(turn));
    }
    value
}

#[repr(C)]
struct TimeSpec {
    seconds: i64,
    nanos: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut TimeSpec) -> i32;
}

/// CPU time in nanoseconds: of the process (2) or of the calling thread (3).
fn cpu_time(clock: i32) -> u64 {
    let mut time = TimeSpec { seconds: 0, nanos: 0 };
    // SAFETY: `time` is a valid `struct timespec` that the call fills in.
    unsafe { clock_gettime(clock, &mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanos as u64
}

fn work(seed: u64, nanos: u64, descents: u64) -> u64 {
    let mut numbers = Numbers(seed);
    let mut sum = 0;
    let mut done = 0;
    while done < descents && cpu_time(3) < nanos {
        done += 200;
        for _ in 0..200 {
            // Depths are spread such that the mean of the samples' frames is about 25.
            let depth = 4 + numbers.next() % 57;
            sum ^= down(&mut numbers, depth as u32);
        }
    }
    sum
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let amount: f64 = arguments.get(1).and_then(|text| text.parse().ok()).expect("an amount");
    let (nanos, descents) = match arguments[0].as_str() {
        "seconds" => ((amount * 1e9) as u64, u64::MAX),
        "descents" => (u64::MAX, amount as u64),
        unit => panic!("`seconds` or `descents`, not `{unit}`"),
    };
    let threads = [1_u64, 2].map(|seed| thread::spawn(move || work(seed, nanos, descents)));
    let sums = threads.map(|thread| thread.join().expect("a thread that ends"));
    println!("{} {}", cpu_time(2), black_box(sums[0] ^ sums[1]) & 1);
}

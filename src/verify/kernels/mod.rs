//! Programs of known character, each a single function that calls nothing.

mod loops;

use std::fmt;
use std::hint::black_box;

use serde::{Deserialize, Serialize};

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Divisions, each of the one before: a busy core with little in flight.
    Quotients,
    /// Multiplications and additions in chains that do not wait for each other.
    Products,
    /// Shifts and exclusive ors of integers, four chains.
    Integers,
    /// Reads from all over a table that fits into the second cache.
    Table,
    /// Reads memory from end to end, a word of each line.
    Memory,
}

/// Bytes that kernels read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingSizes {
    /// The table's.
    pub table: usize,
    /// Of the stream, which fits into no cache.
    pub memory: usize,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Quotients, Self::Products, Self::Integers, Self::Table, Self::Memory];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quotients => "quotients",
            Self::Products => "products",
            Self::Integers => "integers",
            Self::Table => "table",
            Self::Memory => "memory",
        }
    }

    /// What it does, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Quotients => "divisions, one after another",
            Self::Products => "independent multiplications and additions",
            Self::Integers => "shifts and exclusive ors",
            Self::Table => "reads all over the second cache",
            Self::Memory => "a stream from memory",
        }
    }

    /// The calibration's kernel of like character, by whose name it is announced.
    pub fn announced_as(self) -> &'static str {
        match self {
            Self::Quotients => "stress",
            Self::Products => "asm",
            Self::Integers => "l1",
            Self::Table => "l2",
            Self::Memory => "mem",
        }
    }

    /// Where its function begins in this process.
    pub fn address(self) -> u64 {
        let function = match self {
            Self::Quotients => loops::quotients as *const (),
            Self::Products => loops::products as *const (),
            Self::Integers => loops::integers as *const (),
            Self::Table => loops::table as *const (),
            Self::Memory => loops::memory as *const (),
        };
        function.addr() as u64
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Kernels ready to work, each going on where it stopped.
pub struct Work {
    quotient: f64,
    products: [f64; 8],
    integers: [u64; 4],
    table: Vec<u64>,
    looked_up: (u64, u64),
    memory: Vec<u64>,
    read: (usize, u64),
}

impl Work {
    /// With the memory that `kernels` need, written so that none of it is the page of zeros.
    pub fn new(kernels: &[Kernel], sizes: WorkingSizes) -> Self {
        let words = |kernel: Kernel, bytes: usize| {
            let words = if kernels.contains(&kernel) { bytes / size_of::<u64>() } else { 1 };
            written(words.max(1))
        };
        // A power of two, so that any number is a place in it.
        let table = sizes.table.checked_ilog2().map_or(1, |log| 1 << log);
        Self {
            quotient: 1.7,
            products: [1.0; 8],
            integers: [1, 2, 3, 4],
            table: words(Kernel::Table, table),
            looked_up: (1, 0),
            memory: words(Kernel::Memory, sizes.memory),
            read: (0, 0),
        }
    }

    /// Does so many units of a kernel's work.
    pub fn run(&mut self, kernel: Kernel, units: u64) {
        match kernel {
            Kernel::Quotients => self.quotient = black_box(loops::quotients(black_box(self.quotient), units)),
            Kernel::Products => self.products = black_box(loops::products(black_box(self.products), units)),
            Kernel::Integers => self.integers = black_box(loops::integers(black_box(self.integers), units)),
            Kernel::Table => self.looked_up = black_box(loops::table(&self.table, self.looked_up, units)),
            Kernel::Memory => self.read = black_box(loops::memory(&self.memory, self.read, units)),
        }
    }
}

/// Words that are written, by copies of what was written before: as fast unoptimised as optimised.
fn written(words: usize) -> Vec<u64> {
    let mut all: Vec<u64> = (1..=words.min(512) as u64).collect();
    all.reserve_exact(words - all.len());
    while all.len() < words {
        let more = all.len().min(words - all.len());
        all.extend_from_within(..more);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: WorkingSizes = WorkingSizes { table: 100_000, memory: 300_000 };

    #[test]
    fn every_kernel_goes_on_where_it_stopped() {
        for kernel in Kernel::ALL {
            let state = |work: &Work| {
                (work.quotient.to_bits(), work.products, work.integers, work.looked_up, work.read)
            };
            let [mut once, mut in_two] = [(); 2].map(|()| Work::new(&[kernel], SIZES));
            let before = state(&once);
            once.run(kernel, 37);
            in_two.run(kernel, 20);
            in_two.run(kernel, 17);
            assert_eq!(state(&once), state(&in_two), "{kernel}");
            assert_ne!(state(&once), before, "{kernel} does nothing");
        }
    }

    #[test]
    fn numbers_stay_ordinary() {
        let mut work = Work::new(&[], SIZES);
        work.run(Kernel::Quotients, 1000);
        work.run(Kernel::Products, 1000);
        assert!(work.quotient > 1.0 && work.quotient < 4.0, "{}", work.quotient);
        assert!(work.products.iter().all(|product| (0.5..=2.0).contains(product)));
    }

    #[test]
    fn memory_is_taken_only_where_it_is_read() {
        let work = Work::new(&[Kernel::Table], SIZES);
        assert_eq!((work.table.len(), work.memory.len()), (65_536 / 8, 1));
        assert_eq!(Work::new(&[Kernel::Memory], SIZES).memory.len(), 37_500);
    }

    #[test]
    fn kernels_are_functions_of_their_own() {
        let mut addresses = Kernel::ALL.map(Kernel::address).to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), Kernel::ALL.len());
    }
}

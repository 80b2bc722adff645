//! The programs that are run to learn what events cost.

mod pipeline;
mod square_roots;
mod stream;
mod work;

use std::fmt;

use work::Work;

use crate::machine::caches::Cache;

/// A program to calibrate with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Nothing: what the machine takes anyway.
    Idle,
    /// Square roots one after another: a busy core with little in flight.
    SquareRoots,
    /// Independent multiplications and additions: every port of the core at work.
    Pipeline,
    /// Reads data that fit into the first cache.
    FirstCache,
    /// Reads data that fit into the second cache.
    SecondCache,
    /// Reads data that fit into the third cache.
    ThirdCache,
    /// Reads data that fit into no cache.
    Memory,
}

impl Kernel {
    /// All kernels that keep cores busy.
    pub const BUSY: [Self; 6] = [
        Self::SquareRoots,
        Self::Pipeline,
        Self::FirstCache,
        Self::SecondCache,
        Self::ThirdCache,
        Self::Memory,
    ];

    /// Its name in the published model's tables, by which workers announce themselves.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::SquareRoots => "stress",
            Self::Pipeline => "asm",
            Self::FirstCache => "l1",
            Self::SecondCache => "l2",
            Self::ThirdCache => "l3",
            Self::Memory => "mem",
        }
    }

    /// What it does, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Idle => "nothing runs",
            Self::SquareRoots => "square roots, one after another",
            Self::Pipeline => "independent multiplications and additions",
            Self::FirstCache => "a stream in the first cache",
            Self::SecondCache => "a stream in the second cache",
            Self::ThirdCache => "a stream in the third cache",
            Self::Memory => "a stream in memory",
        }
    }

    /// Bytes that it reads over and over, where it reads any.
    pub fn working_set(self, sets: &WorkingSets) -> Option<usize> {
        match self {
            Self::Idle | Self::SquareRoots | Self::Pipeline => None,
            Self::FirstCache => sets.first,
            Self::SecondCache => sets.second,
            Self::ThirdCache => sets.third,
            Self::Memory => Some(sets.memory),
        }
    }

    /// Whether a machine with such caches can run it.
    pub fn is_possible(self, sets: &WorkingSets) -> bool {
        let reads = !matches!(self, Self::Idle | Self::SquareRoots | Self::Pipeline);
        !reads || self.working_set(sets).is_some()
    }

    /// Its work; `None` for the kernel that does nothing.
    pub fn work(self, sets: &WorkingSets) -> Option<Box<dyn Work>> {
        match self {
            Self::Idle => None,
            Self::SquareRoots => Some(Box::new(square_roots::SquareRoots::new())),
            Self::Pipeline => Some(Box::new(pipeline::Pipeline::new())),
            _ => Some(Box::new(stream::Stream::new(self.working_set(sets)?))),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Bytes that the streams of one worker read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkingSets {
    /// Fit into the first cache.
    pub first: Option<usize>,
    /// Fit into the second cache, but not into the first.
    pub second: Option<usize>,
    /// Fit into this worker's share of the third cache, but not into the second.
    pub third: Option<usize>,
    /// Fit into no cache.
    pub memory: usize,
}

/// Where the kernel does not tell the caches: 32 kB, 256 kB and 8 MB, as most of 2010's had at least.
const ASSUMED: [u64; 3] = [32 << 10, 256 << 10, 8 << 20];
/// The largest cache is passed by this factor, so that hardly any of it survives until it is read again.
const BEYOND: u64 = 4;
/// A stream in memory is at least this long.
const LEAST_MEMORY: u64 = 32 << 20;

impl WorkingSets {
    /// For workers on CPUs with these caches, `workers` of which run at once. `free_memory` are bytes that
    /// all of them together may take.
    ///
    /// Half of a cache leaves room for what else it must hold, and a level whose half is no larger than the
    /// level before it cannot be told from that one and is left out.
    pub fn of(caches: &[Cache], workers: &[u32], free_memory: u64) -> Self {
        let assumed = [(1, ASSUMED[0], 1), (2, ASSUMED[1], 1), (3, ASSUMED[2], workers.len().max(1) as u64)];
        let sharing = |cache: &Cache| workers.iter().filter(|cpu| cache.cpus.contains(cpu)).count().max(1);
        let known: Vec<(u32, u64, u64)> = match caches {
            [] => assumed.to_vec(),
            caches => caches.iter().map(|cache| (cache.level, cache.bytes, sharing(cache) as u64)).collect(),
        };
        let share =
            |wanted: u32| known.iter().find(|(level, ..)| *level == wanted).map(|(_, bytes, by)| bytes / by);
        let half = |level: u32| {
            let bytes = share(level)? / 2;
            let before = share(level - 1).unwrap_or(0);
            (bytes > before).then_some(bytes as usize)
        };
        let largest = known.iter().map(|(_, bytes, by)| bytes / by).max().unwrap_or(0);
        let affordable = free_memory / workers.len().max(1) as u64;
        let memory = (BEYOND * largest).max(LEAST_MEMORY).min(affordable.max(1 << 20));
        Self { first: half(1), second: half(2), third: half(3), memory: memory as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, bytes: u64, cpus: std::ops::Range<u32>) -> Cache {
        Cache { level, bytes, cpus: cpus.collect() }
    }

    const PLENTY: u64 = 64 << 30;

    #[test]
    fn streams_fit_where_they_belong() {
        let caches = [cache(1, 32 << 10, 0..1), cache(2, 1 << 20, 0..1), cache(3, 32 << 20, 0..8)];
        let alone = WorkingSets::of(&caches, &[0], PLENTY);
        assert_eq!((alone.first, alone.second), (Some(16 << 10), Some(512 << 10)));
        assert_eq!((alone.third, alone.memory), (Some(16 << 20), 128 << 20));
        // Eight share the third cache: its eighth is still more than the second's.
        let all = WorkingSets::of(&caches, &[0, 1, 2, 3, 4, 5, 6, 7], PLENTY);
        assert_eq!(all.third, Some(2 << 20));
        assert_eq!(all.memory, 32 << 20);
    }

    #[test]
    fn a_cache_that_is_not_there_is_not_streamed_through() {
        let two_levels = [cache(1, 32 << 10, 0..1), cache(2, 1 << 20, 0..4)];
        let sets = WorkingSets::of(&two_levels, &[0], PLENTY);
        assert_eq!(sets.third, None);
        assert!(!Kernel::ThirdCache.is_possible(&sets) && Kernel::Memory.is_possible(&sets));
        // A share of the third cache that is smaller than the second cannot be told from it.
        let small = [cache(1, 32 << 10, 0..1), cache(2, 2 << 20, 0..1), cache(3, 3 << 20, 0..2)];
        assert_eq!(WorkingSets::of(&small, &[0, 1], PLENTY).third, None);
    }

    #[test]
    fn unknown_caches_are_assumed_and_memory_is_not_exhausted() {
        let sets = WorkingSets::of(&[], &[0, 1], 40 << 20);
        assert_eq!(sets.first, Some(16 << 10));
        assert_eq!(sets.memory, 20 << 20);
        assert!(Kernel::BUSY.into_iter().all(|kernel| kernel.is_possible(&sets)));
    }

    #[test]
    fn every_busy_kernel_works() {
        let sets = WorkingSets { first: Some(4096), second: Some(8192), third: Some(16384), memory: 65536 };
        for kernel in Kernel::BUSY {
            let mut work = kernel.work(&sets).expect("busy");
            work.go_on();
            work.go_on();
        }
        assert!(Kernel::Idle.work(&sets).is_none());
    }
}

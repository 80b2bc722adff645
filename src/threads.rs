//! Work spread over threads, with results in order.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A number of threads to use.
#[derive(Debug, Clone, Copy)]
pub struct Threads(usize);

impl Threads {
    /// As many as wanted, or one for each CPU that this process may use.
    pub fn new(wanted: Option<usize>) -> Self {
        let available = || thread::available_parallelism().map_or(1, usize::from);
        Self(wanted.unwrap_or_else(available).max(1))
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.0
    }

    /// Results of `work` for 0..count, in order, from all threads.
    pub fn map<T: Send>(self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        self.run(count, |indices| indices.map(|index| (index, work(index))).collect())
    }

    /// Runs `work` in each thread; it takes indices of 0..count until there are no more, and returns results by
    /// index, which come back in order.
    pub fn run<T: Send>(
        self,
        count: usize,
        work: impl Fn(&mut dyn Iterator<Item = usize>) -> Vec<(usize, T)> + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < count);
        let threads = self.0.min(count);
        let mut results = if threads <= 1 {
            work(&mut std::iter::from_fn(take))
        } else {
            thread::scope(|scope| {
                let workers: Vec<_> =
                    (0..threads).map(|_| scope.spawn(|| work(&mut std::iter::from_fn(take)))).collect();
                workers
                    .into_iter()
                    .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
                    .collect()
            })
        };
        results.sort_unstable_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whatever_the_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|index| index * index).collect();
        for threads in [1, 2, 7, 1000] {
            assert_eq!(Threads::new(Some(threads)).map(100, |index| index * index), expected);
        }
        assert!(Threads::new(Some(3)).map(0, |index| index).is_empty());
    }

    #[test]
    fn each_index_is_taken_once() {
        let taken = Threads::new(Some(4)).run(50, |indices| indices.map(|index| (index, index)).collect());
        assert_eq!(taken, (0..50).collect::<Vec<_>>());
    }
}

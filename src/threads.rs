//! Work spread over threads, with results in order.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
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

    /// Gives `take`, in this thread, the results of `work` for 0..count in order, while all threads make them. Each thread is at most
    /// two results ahead, so that memory holds few of them at a time. With one thread no other is begun.
    ///
    /// # Errors
    /// The first of `take`'s, after which no more is made than is under way.
    pub fn in_order<T: Send, E>(
        self,
        count: usize,
        work: impl Fn(usize) -> T + Sync,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = self.0.min(count);
        if threads <= 1 {
            return (0..count).try_for_each(|index| take(work(index)));
        }
        thread::scope(|scope| {
            let work = &work;
            // Each thread makes every so many'th result, and has a way of its own to hand them over.
            let mut made: Vec<_> = (0..threads)
                .map(|first| {
                    let (sender, receiver) = sync_channel(1);
                    let worker = scope.spawn(move || {
                        // Nobody receives any more where `take` failed.
                        let _ =
                            (first..count).step_by(threads).try_for_each(|index| sender.send(work(index)));
                    });
                    (receiver, worker)
                })
                .collect();
            for index in 0..count {
                let place = index % threads;
                match made[place].0.recv() {
                    Ok(result) => take(result)?,
                    // A thread that ends too early has panicked.
                    Err(_) => made.swap_remove(place).1.join().unwrap_or_else(|panic| resume_unwind(panic)),
                }
            }
            Ok(())
        })
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
    fn results_are_handed_over_in_order() {
        for threads in [1, 2, 3, 50] {
            let mut taken = Vec::new();
            let all = Threads::new(Some(threads)).in_order(
                40,
                |index| index * index,
                |result| {
                    taken.push(result);
                    Ok::<(), ()>(())
                },
            );
            assert_eq!(all, Ok(()));
            assert!(taken.into_iter().eq((0..40).map(|index| index * index)), "{threads} threads");
        }
        assert_eq!(Threads::new(Some(2)).in_order(0, |index| index, |_| Err(())), Ok(()));
    }

    #[test]
    fn who_takes_results_ends_it_early() {
        for threads in [1, 3] {
            let made = AtomicUsize::new(0);
            let make = |index: usize| {
                made.fetch_add(1, Ordering::Relaxed);
                index
            };
            let fail = |index: usize| if index == 4 { Err("full") } else { Ok(()) };
            assert_eq!(Threads::new(Some(threads)).in_order(1_000, make, fail), Err("full"));
            // What was taken, and of each thread what it handed over, holds in its hand and has begun.
            assert!(made.into_inner() <= 5 + 3 * threads);
        }
    }

    #[test]
    #[should_panic(expected = "no result")]
    fn a_panic_in_one_thread_is_not_the_end_of_the_list() {
        let make = |index: usize| assert!(index != 7, "no result");
        let _ = Threads::new(Some(2)).in_order(20, make, |()| Ok::<(), ()>(()));
    }

    #[test]
    fn each_index_is_taken_once() {
        let taken = Threads::new(Some(4)).run(50, |indices| indices.map(|index| (index, index)).collect());
        assert_eq!(taken, (0..50).collect::<Vec<_>>());
    }
}

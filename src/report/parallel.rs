//! Two things at once.

use std::panic::resume_unwind;
use std::thread;

/// Of fewer cells than these, what takes two threads is done before a second one has begun.
const FEW_CELLS: usize = 1 << 14;

/// Does both, the first in a thread of its own where that pays for a profile of so many cells.
pub(super) fn in_parallel_if_large<A: Send, B>(
    cells: usize,
    a: impl FnOnce() -> A + Send,
    b: impl FnOnce() -> B,
) -> (A, B) {
    if cells < FEW_CELLS { (a(), b()) } else { in_parallel(a, b) }
}

/// Does both, the first in a thread of its own.
pub(super) fn in_parallel<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let a = scope.spawn(a);
        let b = b();
        (a.join().unwrap_or_else(|panic| resume_unwind(panic)), b)
    })
}

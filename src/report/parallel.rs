//! Two things at once.

use std::panic::resume_unwind;
use std::thread;

/// Does both, the first in a thread of its own.
pub(super) fn in_parallel<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let a = scope.spawn(a);
        let b = b();
        (a.join().unwrap_or_else(|panic| resume_unwind(panic)), b)
    })
}

//! Return addresses, and what the unwind tables of a file said of them: the same code runs in many processes, and in one recording after the
//! other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Stretches of code that are kept of a file; with more, all are forgotten.
const MOST_STRETCHES: usize = 1 << 14;

/// Where the return address is, of the function that an instruction belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnAddress {
    /// Above the caller's frame pointer, to which the frame pointer points: a chain of them has it.
    ByFramePointer,
    /// So many bytes above the stack pointer.
    AboveStackPointer(u32),
    /// There is none: a thread begins here.
    Outermost,
    /// There are no tables, or they speak of other registers.
    Unknown,
}

/// Answers by stretch of code, in the addresses of the file; `None` where its tables have none.
#[derive(Debug, Default)]
pub(super) struct KnownReturns(Mutex<BTreeMap<u64, (u64, Option<ReturnAddress>)>>);

impl KnownReturns {
    /// What is known of an address; `look_up` tells the answer and of which code it holds.
    pub fn get_or(
        &self,
        address: u64,
        look_up: impl FnOnce() -> (Option<ReturnAddress>, Range<u64>),
    ) -> Option<ReturnAddress> {
        // A panic elsewhere leaves a map that is whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, (end, answer))) = known.range(..=address).next_back()
            && address < *end
        {
            return *answer;
        }
        let (answer, code) = look_up();
        if known.len() >= MOST_STRETCHES {
            known.clear();
        }
        // Tables of damaged files may speak of code twice: what is known there is of its stretch alone.
        let end = known.range(address..code.end).next().map_or(code.end, |(next, _)| *next);
        let before = known.range(..=address).next_back().map_or(code.start, |(_, (end, _))| *end);
        known.insert(code.start.max(before), (end, answer));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_of_a_stretch_is_not_asked_again() {
        let known = KnownReturns::default();
        let ask = |address: u64, distance: u32, code: Range<u64>| {
            let mut is_asked = false;
            let answer = known.get_or(address, || {
                is_asked = true;
                (Some(ReturnAddress::AboveStackPointer(distance)), code)
            });
            (answer, is_asked)
        };
        let above = |distance| Some(ReturnAddress::AboveStackPointer(distance));
        assert_eq!(ask(15, 8, 10..20), (above(8), true));
        assert_eq!(ask(10, 9, 10..20), (above(8), false));
        assert_eq!(ask(19, 9, 10..20), (above(8), false));
        assert_eq!(ask(20, 16, 20..21), (above(16), true));
        // Of a stretch that goes over others, what lies between them.
        assert_eq!(ask(22, 24, 0..40), (above(24), true));
        assert_eq!(ask(20, 0, 0..40), (above(16), false));
        assert_eq!(ask(21, 0, 0..40), (above(24), false));
        assert_eq!(ask(5, 32, 0..40), (above(32), true));
        assert_eq!((ask(9, 0, 0..1), ask(12, 0, 0..1)), ((above(32), false), (above(8), false)));
        let none = known.get_or(100, || (None, 100..101));
        assert_eq!((none, ask(100, 1, 0..1).1), (None, false));
    }
}

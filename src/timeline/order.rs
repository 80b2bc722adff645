//! Time order with bounded memory.

use std::vec::Drain;

use crate::units::Timestamp;

/// Sorts a stream of records by time, round by round.
///
/// The recorder drains all rings in turn and then writes a mark (`PERF_RECORD_FINISHED_ROUND`).
/// A ring that was drained in round N can still hold, in round N + 1, records that are older than
/// others of round N, but not older than any of round N - 1:
///
/// ```text
///   ring 0   ──a──b──┤──────e──────┤
///   ring 1   ─────c──┤──d──────f───┤        d may be older than b, but not older than
///                  mark 1        mark 2     what mark 1 found already complete
/// ```
///
/// So at each mark everything up to the newest time seen before the *previous* mark is complete and
/// leaves in order. Records of one time leave in the order of arrival.
///
/// A recording without marks is held whole; the caller may then limit memory with
/// [`RoundSorter::len`] and call [`RoundSorter::finish_round`] itself.
#[derive(Debug)]
pub struct RoundSorter<T> {
    pending: Vec<(Timestamp, T)>,
    newest: Timestamp,
    newest_before_last_mark: Option<Timestamp>,
    sorted: bool,
}

impl<T> Default for RoundSorter<T> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            newest: Timestamp::default(),
            newest_before_last_mark: None,
            sorted: true,
        }
    }
}

impl<T> RoundSorter<T> {
    /// Takes a record.
    pub fn push(&mut self, time: Timestamp, record: T) {
        if time < self.newest {
            self.sorted = false;
        } else {
            self.newest = time;
        }
        self.pending.push((time, record));
    }

    /// A mark: gives, in time order, the records that are now known to be complete.
    pub fn finish_round(&mut self) -> Drain<'_, (Timestamp, T)> {
        let complete = match self.newest_before_last_mark {
            Some(limit) => {
                self.sort();
                self.pending.partition_point(|(time, _)| *time <= limit)
            }
            None => 0,
        };
        self.newest_before_last_mark = Some(self.newest);
        self.pending.drain(..complete)
    }

    /// The end of the stream: gives all that is left, in time order.
    pub fn finish(&mut self) -> Drain<'_, (Timestamp, T)> {
        self.sort();
        self.pending.drain(..)
    }

    /// Number of records held.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// The records held, in no certain order.
    pub fn iter(&self) -> impl Iterator<Item = &(Timestamp, T)> {
        self.pending.iter()
    }

    /// No record is held.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    fn sort(&mut self) {
        if !self.sorted {
            // Stable, and fast on what it finds here: a few ascending runs, one per ring.
            self.pending.sort_by_key(|(time, _)| *time);
            self.sorted = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn a_record_of_the_next_round_can_still_come_first() {
        let mut sorter = RoundSorter::default();
        sorter.push(at(10), 'a');
        sorter.push(at(20), 'b');
        assert_eq!(sorter.finish_round().count(), 0, "nothing is certain after one round");
        sorter.push(at(15), 'd');
        sorter.push(at(30), 'e');
        let complete: Vec<_> = sorter.finish_round().map(|(_, name)| name).collect();
        assert_eq!(complete, ['a', 'd', 'b']);
        let rest: Vec<_> = sorter.finish().map(|(_, name)| name).collect();
        assert_eq!(rest, ['e']);
    }

    #[test]
    fn records_of_one_time_keep_their_order() {
        let mut sorter = RoundSorter::default();
        for (time, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            sorter.push(at(time), name);
        }
        let names: String = sorter.finish().map(|(_, name)| name).collect();
        assert_eq!(names, "bdac");
    }

    proptest! {
        /// However two rings are cut into rounds, all comes out and in order.
        #[test]
        fn any_cut_into_rounds_gives_time_order(
            times in prop::collection::vec(0u64..1000, 0..200),
            cuts in prop::collection::vec(1usize..20, 1..40),
        ) {
            // Two rings, each in time order, drained alternately: a mark after each pair of drains.
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let rings: [Vec<u64>; 2] = [
                sorted.iter().copied().step_by(2).collect(),
                sorted.iter().copied().skip(1).step_by(2).collect(),
            ];
            let mut sorter = RoundSorter::default();
            let mut output = Vec::new();
            // Time goes on for both rings alike: a drain at time t takes all up to t.
            let mut taken = [0, 0];
            let mut now = 0;
            for cut in cuts {
                now += cut as u64 * 10;
                for (ring, taken) in rings.iter().zip(&mut taken) {
                    while ring.get(*taken).is_some_and(|time| *time <= now) {
                        sorter.push(at(ring[*taken]), ());
                        *taken += 1;
                    }
                    now += 3;
                }
                output.extend(sorter.finish_round().map(|(time, ())| time.as_nanos()));
            }
            for (ring, taken) in rings.iter().zip(taken) {
                ring[taken..].iter().for_each(|time| sorter.push(at(*time), ()));
            }
            output.extend(sorter.finish().map(|(time, ())| time.as_nanos()));
            prop_assert_eq!(output, sorted);
        }
    }
}

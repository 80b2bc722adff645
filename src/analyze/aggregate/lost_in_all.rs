//! Losses that are told twice: as they come, and of each event at the end.
//!
//! The kernel tells of records without room in the next one that finds some: when and on which CPU, not of which events, and of
//! those behind the last such record never. Since version 6.1 perf asks each counter how many of its records were dropped in
//! all, and writes that down at the end: of which events, not when. See kernel-notes/perf-data-format.md.

use crate::profile::EventTotals;

/// What counters said in the end, by event.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostInAll(Vec<u64>);

impl LostInAll {
    /// A counter of this event said that so many of its records were lost.
    pub fn told(&mut self, event: usize, count: u64) {
        if self.0.len() <= event {
            self.0.resize(event + 1, 0);
        }
        self.0[event] = self.0[event].saturating_add(count);
    }

    /// Puts what counters said in the place of what was told as it came, of which it is as much or more. Less it is only
    /// where something else was told, too, as of samples that hardware dropped.
    pub fn settle(&self, events: &mut [EventTotals]) {
        let as_it_came: u64 = events.iter().map(|event| event.lost).sum();
        if self.0.iter().sum::<u64>() >= as_it_came {
            let by_event = self.0.iter().copied().chain(std::iter::repeat(0));
            events.iter_mut().zip(by_event).for_each(|(event, lost)| event.lost = lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What events are said to have lost, after records told `as_it_came` and counters `in_all`.
    fn settled(as_it_came: [u64; 2], in_all: &[(usize, u64)]) -> Vec<u64> {
        let mut events = as_it_came.map(|lost| EventTotals { lost, ..EventTotals::default() });
        let mut lost = LostInAll::default();
        in_all.iter().for_each(|&(event, count)| lost.told(event, count));
        lost.settle(&mut events);
        events.iter().map(|event| event.lost).collect()
    }

    #[test]
    fn what_counters_say_in_the_end_is_not_added_to_what_was_told_before() {
        assert_eq!(settled([100, 0], &[(0, 100)]), [100, 0]);
        // Two counters of one event, and what no record came to tell.
        assert_eq!(settled([100, 0], &[(0, 50), (1, 25), (0, 30)]), [80, 25]);
        assert_eq!(settled([0, 0], &[(1, 7)]), [0, 7]);
        // Nothing was said in the end, or less than was told.
        assert_eq!(settled([100, 3], &[]), [100, 3]);
        assert_eq!(settled([100, 3], &[(0, 50)]), [100, 3]);
    }
}

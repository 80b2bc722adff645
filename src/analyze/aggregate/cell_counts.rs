//! What was counted of cells.

use std::iter;

use crate::units::Nanoseconds;

/// How many samples each cell has, and what they stand for.
#[derive(Debug, Default)]
pub(crate) struct CellCounts(Vec<(u64, u64, Nanoseconds)>);

impl CellCounts {
    /// Counts a sample of a cell that stands for `count` events and a time.
    #[inline]
    pub fn count(&mut self, cell: u32, count: u64, time: Nanoseconds) {
        self.add(cell, (1, count, time));
    }

    /// Counts a time of a cell that no sample stands for.
    pub fn count_unseen(&mut self, cell: u32, count: u64, time: Nanoseconds) {
        self.add(cell, (0, count, time));
    }

    /// The same where one cell is made of several: `into` tells which one.
    pub fn merge(self, into: impl Fn(u32) -> u32) -> Self {
        let mut merged = Self::default();
        (0..).zip(self.0).for_each(|(cell, counted)| merged.add(into(cell), counted));
        merged
    }

    #[inline]
    fn add(&mut self, cell: u32, (samples, count, time): (u64, u64, Nanoseconds)) {
        let cell = cell as usize;
        if self.0.len() <= cell {
            self.0.resize(cell + 1, (0, 0, Nanoseconds::ZERO));
        }
        let (all_samples, all_counts, all_times) = &mut self.0[cell];
        *all_samples += samples;
        *all_counts = all_counts.saturating_add(count);
        *all_times += time;
    }

    /// Samples, events and time of each cell.
    pub fn into_iter(self) -> impl Iterator<Item = (u64, u64, Nanoseconds)> {
        self.0.into_iter().chain(iter::repeat_with(Default::default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_become_one_add_up() {
        let mut cell_counts = CellCounts::default();
        let time = Nanoseconds::from_nanos;
        for cell in [0, 1, 2, 2] {
            cell_counts.count(cell, 10, time(3));
        }
        cell_counts.count(3, u64::MAX, time(0));
        let merged: Vec<_> = cell_counts.merge(|cell| cell % 2).into_iter().take(3).collect();
        assert_eq!(merged, [(3, 30, time(9)), (2, u64::MAX, time(3)), (0, 0, time(0))]);
    }
}

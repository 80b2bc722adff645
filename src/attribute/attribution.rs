//! What attribution is asked for, and what comes out.

use std::ops::Range;

use super::energy_bucket::Bucket;
use super::rise::Rise;
use crate::profile::{Balance, InSlice};
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// How to attribute.
#[derive(Debug, Clone)]
pub struct Options {
    /// Energy of one bucket.
    pub bucket: Joules,
    /// Constant power by domain, as far as it is known from a model.
    pub static_power: Vec<Watts>,
    /// By how much more it is over time, by domain; empty where it is the same all the time.
    pub rises: Vec<Option<Rise>>,
    /// Domains that no quantum tells anything of, since somebody else divides their joules later: all that they counted is
    /// static here.
    pub divided_later: Vec<bool>,
    /// A quantum can reach this far back at most; the attributor keeps as much of the past.
    pub horizon: Nanoseconds,
    /// Keep the joules of each cell in each bucket.
    pub keep_buckets: bool,
    /// Over which time the model's proportions hold.
    pub sharing: Sharing,
    /// Find out how joules depend on the weights and the static power.
    pub sensitivities: bool,
}

impl Options {
    /// What is known of a domain's joules between two times that no program causes.
    pub(super) fn static_joules(&self, domain: usize, start: Timestamp, end: Timestamp) -> Joules {
        let constant = self.static_power.get(domain).copied().unwrap_or(Watts::ZERO) * end.since(start);
        let rise = self.rises.get(domain).and_then(Option::as_ref);
        rise.map_or(constant, |rise| (constant + rise.between(start, end)).max(Joules::ZERO))
    }
}

/// Over which time joules are divided by the model's proportions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// In each bucket: code that runs while much is measured gets much.
    #[default]
    ByBucket,
    /// Over the whole recording: what the buckets gave to cells is pooled.
    Whole,
}

/// What came out.
#[derive(Debug, Clone, Default)]
pub struct Attribution {
    /// The cell that the first row is of: those before it were taken out. See [`Attribution::take_cells`].
    pub first_cell: u32,
    /// Joules of the cells: rows of as many columns as there are domains.
    pub cell_joules: Vec<Joules>,
    /// Change of a cell's joules in a domain with the weight of each event, and lastly with the static
    /// power, by way of the sums of buckets; empty if it was not asked for. See [`Options::sensitivities`].
    pub sensitivities: Vec<f32>,
    /// The account of each domain.
    pub balances: Vec<Balance>,
    /// The buckets, if they were to be kept.
    pub buckets: Vec<Bucket>,
    /// With [`Sharing::Whole`]: by which number the model's joules were multiplied, by domain.
    pub pool_factors: Vec<f64>,
    /// Readings that were refused because they went backwards.
    pub refused_readings: u64,
    /// Of some domain the CPU times of the machine were read once alone: what others took of it is not known.
    pub others_are_unknown: bool,
    /// Entries in the buckets that are of cells that are still there, and the first bucket that may have some.
    pub(super) kept_entries: usize,
    pub(super) emptied_buckets: usize,
}

/// Cells that were taken out of an [`Attribution`], numbered anew from 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TakenCells {
    /// As in [`Attribution::cell_joules`].
    pub joules: Vec<Joules>,
    /// As in [`Attribution::sensitivities`].
    pub sensitivities: Vec<f32>,
    /// What they had in each bucket, by its index, if buckets are kept; those without any are left out.
    pub by_bucket: Vec<(usize, Vec<InSlice>)>,
}

impl Attribution {
    /// The rows of a cell in tables of so many columns each; `None` for a cell that was taken out.
    pub(super) fn rows_of(&self, cell: u32, columns: usize) -> Option<Range<usize>> {
        let row = cell.checked_sub(self.first_cell)? as usize;
        Some(row * columns..(row + 1) * columns)
    }

    /// Takes the first `cells` cells out. Nothing more must be coming to them.
    pub fn take_cells(&mut self, cells: usize) -> TakenCells {
        let columns = self.balances.len();
        let rows = self.cell_joules.len().checked_div(columns).unwrap_or(0);
        let parameters = self.sensitivities.len().checked_div(self.cell_joules.len()).unwrap_or(0);
        let given = cells.min(rows) * columns;
        // Copied, so that what was taken is given back when its reader is done with it.
        let joules = self.cell_joules.drain(..given).collect();
        let sensitivities = self.sensitivities.drain(..given * parameters).collect();
        let by_bucket = self.take_from_buckets(cells as u32);
        self.first_cell += cells as u32;
        TakenCells { joules, sensitivities, by_bucket }
    }

    fn take_from_buckets(&mut self, cells: u32) -> Vec<(usize, Vec<InSlice>)> {
        let first = self.first_cell;
        let is_taken = |entry: &InSlice| entry.cell < first + cells;
        let mut by_bucket = Vec::new();
        for (index, bucket) in self.buckets.iter_mut().enumerate().skip(self.emptied_buckets) {
            let taken: Vec<InSlice> = bucket.by_cell.iter().copied().filter(is_taken).collect();
            if taken.is_empty() {
                continue;
            }
            bucket.by_cell = bucket.by_cell.iter().copied().filter(|entry| !is_taken(entry)).collect();
            self.kept_entries -= taken.len();
            let renumbered = |entry: InSlice| InSlice { cell: entry.cell - first, ..entry };
            by_bucket.push((index, taken.into_iter().map(renumbered).collect()));
        }
        let left = |bucket: &Bucket| !bucket.by_cell.is_empty();
        let skipped = self.emptied_buckets;
        let next = self.buckets.iter().skip(skipped).position(left);
        self.emptied_buckets = next.map_or(self.buckets.len(), |next| skipped + next);
        by_bucket
    }

    /// Makes one cell of several: `into` tells for each cell which one of `cells` it becomes. What they had in
    /// buckets is dropped. A row has so many `parameters`, which no cells would not tell.
    pub(super) fn merge_cells(&mut self, cells: usize, parameters: usize, into: impl Fn(u32) -> u32) {
        let columns = self.balances.len();
        let mut joules = vec![Joules::ZERO; cells * columns];
        let mut sensitivities = vec![0.0; cells * columns * parameters];
        let rows = self.cell_joules.chunks_exact(columns.max(1));
        for (cell, row) in (self.first_cell..).zip(rows) {
            let at = into(cell) as usize * columns;
            joules[at..][..columns].iter_mut().zip(row).for_each(|(sum, joules)| *sum += *joules);
        }
        let rows = self.sensitivities.chunks_exact((columns * parameters).max(1));
        for (cell, row) in (self.first_cell..).zip(rows) {
            let at = into(cell) as usize * columns * parameters;
            let sums = sensitivities[at..][..row.len()].iter_mut();
            sums.zip(row).for_each(|(sum, change)| *sum += *change);
        }
        (self.first_cell, self.cell_joules, self.sensitivities) = (0, joules, sensitivities);
        self.buckets.iter_mut().for_each(|bucket| bucket.by_cell = Vec::new());
        self.kept_entries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three cells in two domains, with two parameters each: the first and the last become the second, the middle one the first.
    #[test]
    fn cells_that_become_one_add_up() {
        let mut all = Attribution {
            cell_joules: [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Joules::from_joules).to_vec(),
            sensitivities: (1..=12).map(|number| number as f32).collect(),
            balances: vec![Balance::default(); 2],
            ..Attribution::default()
        };
        all.merge_cells(2, 2, |cell| [1, 0, 1][cell as usize]);
        assert_eq!(all.cell_joules, [3.0, 4.0, 6.0, 8.0].map(Joules::from_joules));
        assert_eq!(all.sensitivities, [5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0]);
        assert_eq!((all.rows_of(1, 4), all.first_cell), (Some(4..8), 0));
    }

    fn bucket(of_cells: &[u32]) -> Bucket {
        Bucket {
            start: Timestamp::default(),
            end: Timestamp::default(),
            measured: Vec::new(),
            modelled: Joules::ZERO,
            balance: Balance::default(),
            quanta: 0,
            by_cell: of_cells.iter().map(|cell| InSlice { cell: *cell, joules: 1.0, seconds: 0.0 }).collect(),
        }
    }

    #[test]
    fn buckets_that_are_empty_are_not_looked_at_again_and_others_are() {
        let mut all = Attribution { kept_entries: 8, ..Attribution::default() };
        let mut take = |cells: usize, more: &[&[u32]]| -> (Vec<(usize, Vec<u32>)>, usize) {
            all.buckets.extend(more.iter().map(|of_cells| bucket(of_cells)));
            let taken = all.take_cells(cells).by_bucket;
            let numbers = |of: Vec<InSlice>| of.iter().map(|entry| entry.cell).collect();
            (taken.into_iter().map(|(index, of)| (index, numbers(of))).collect(), all.emptied_buckets)
        };
        // Cells 0 and 1, then 2, then 3, which are numbered from 0 on each time.
        assert_eq!(take(2, &[&[0], &[1, 0], &[1]]), (vec![(0, vec![0]), (1, vec![1, 0]), (2, vec![1])], 3));
        assert_eq!(take(1, &[&[2], &[], &[3]]), (vec![(3, vec![0])], 5));
        assert_eq!(take(1, &[&[3]]), (vec![(5, vec![0]), (6, vec![0])], 7));
    }
}

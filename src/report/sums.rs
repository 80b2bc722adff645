//! What a report's rows are sums of, added up part by part.

use std::sync::Arc;

use super::call_path_check::CallPathCheck;
use super::error::ReportError;
use super::frames::FrameTable;
use super::row_sums::{RowSums, RowsWanted};
use super::rows::Row;
use super::select::{Selected, Selection, Totals};
use super::stack_filter::StackFilter;
use crate::profile::{Profile, StackId};
use crate::symbolize::Symbols;
use crate::units::{Joules, Nanoseconds};

/// The sums of a report.
pub(super) struct Sums<'a> {
    selected: &'a Selected,
    filter: StackFilter,
    rows: RowSums<'a>,
    paths: CallPathCheck,
    chosen: Totals,
    all: Totals,
    in_cells: Vec<f64>,
}

/// What was found.
#[derive(Default)]
pub(super) struct Found {
    pub rows: Vec<Row>,
    /// All that was selected.
    pub chosen: Totals,
    /// What cells have beyond that.
    pub not_selected: Totals,
    /// Joules of all cells by domain, selected or not.
    pub in_cells: Vec<f64>,
    /// What is wrong with call paths and missing of symbols.
    pub paths: Option<String>,
}

impl<'a> Sums<'a> {
    /// Nothing yet. `profile` is all but cells.
    pub fn new(
        profile: &'a Profile,
        symbols: &'a Symbols,
        selected: &'a Selected,
        selection: &Selection,
        wanted: RowsWanted<'a>,
    ) -> Result<Self, ReportError> {
        let frames = Arc::new(wanted.frames(profile, symbols));
        Self::of_frames(profile, symbols, selected, selection, wanted, frames)
    }

    /// The same where the table of these rows' frames ([`RowsWanted::frames`]) is there already.
    pub fn of_frames(
        profile: &'a Profile,
        symbols: &'a Symbols,
        selected: &'a Selected,
        selection: &Selection,
        wanted: RowsWanted<'a>,
        frames: Arc<FrameTable>,
    ) -> Result<Self, ReportError> {
        Ok(Self {
            selected,
            filter: StackFilter::new(profile, symbols, selection),
            rows: RowSums::new(profile, symbols, selected, wanted, frames)?,
            paths: CallPathCheck::new(profile, symbols),
            chosen: Totals::default(),
            all: Totals::default(),
            in_cells: vec![0.0; profile.domains.len()],
        })
    }

    /// Adds a part of the profile.
    pub fn add(&mut self, part: &Profile) {
        let stacks = self.filter.totals(part, self.selected);
        for totals in &stacks {
            self.chosen += *totals;
        }
        let weights = stacks.iter().map(|totals| totals.weight(self.selected.weight));
        self.paths.add(part, (0..).map(StackId).zip(weights));
        if self.selected.partial {
            self.all += self.selected.all(part);
        }
        for (index, sum) in self.in_cells.iter_mut().enumerate() {
            *sum += (0..part.cells.len()).map(|cell| part.joules(cell)[index].as_joules()).sum::<f64>();
        }
        self.rows.add(part, &stacks, Some(&self.paths));
    }

    /// The rows, and what there is beside them.
    pub fn finish(self) -> Result<Found, ReportError> {
        let Self { selected, rows, paths: check, chosen, all, in_cells, .. } = self;
        let paths = check.warning(selected.weight);
        let rows = rows.finish(Some(&check))?;
        let not_selected = if selected.partial { beyond(all, chosen) } else { Totals::default() };
        Ok(Found { rows, chosen, not_selected, in_cells, paths })
    }
}

/// What there is beyond a part of it.
pub(super) fn beyond(all: Totals, chosen: Totals) -> Totals {
    let time = all.time.as_nanos().saturating_sub(chosen.time.as_nanos());
    Totals {
        joules: (all.joules - chosen.joules).max(Joules::ZERO),
        variance: (all.variance - chosen.variance).max(0.0),
        by_chance: (all.by_chance - chosen.by_chance).max(0.0),
        common: (all.common - chosen.common).max(0.0),
        samples: all.samples.saturating_sub(chosen.samples),
        count: all.count.saturating_sub(chosen.count),
        time: Nanoseconds::from_nanos(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_a_part_is_never_less_than_nothing() {
        let totals = |joules: f64, variance: f64, by_chance: f64, [samples, count, time]: [u64; 3]| Totals {
            joules: Joules::from_joules(joules),
            variance,
            by_chance,
            common: variance - by_chance,
            samples,
            count,
            time: Nanoseconds::from_nanos(time),
        };
        let (all, part) = (totals(10.0, 7.0, 5.0, [9, 90, 900]), totals(4.0, 3.0, 1.0, [2, 20, 200]));
        assert_eq!(beyond(all, part), totals(6.0, 4.0, 4.0, [7, 70, 700]));
        assert_eq!(beyond(part, all), Totals::default());
    }
}

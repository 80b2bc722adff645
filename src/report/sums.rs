//! What a report's rows are sums of, added up part by part.

use super::call_path_check::CallPathCheck;
use super::cells::{CellSums, DomainSums};
use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::neighbours::{self, Neighbours};
use super::rows::{FrameSums, Grouping, Row, frame_row};
use super::select::{Selected, Selection, Totals};
use super::stack_filter::StackFilter;
use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{Profile, StackId};
use crate::symbolize::Symbols;
use crate::units::{Joules, Nanoseconds};

/// Which rows a report has.
#[derive(Clone, Copy)]
pub(super) struct RowsWanted<'a> {
    /// What a row stands for.
    pub by: Grouping,
    /// The callers or callees of a function instead of all rows.
    pub neighbours: Option<&'a Neighbours>,
    /// Tell inlined functions from the function they were put into.
    pub inline: bool,
    /// What tells recordings apart, each with rows of its own.
    pub dimensions: &'a [Dimension],
}

/// The sums of a report.
pub(super) struct Sums<'a> {
    symbols: &'a Symbols,
    selected: &'a Selected,
    filter: StackFilter,
    frames: FrameTable,
    detail: Detail,
    rows: RowSums<'a>,
    paths: CallPathCheck,
    chosen: Totals,
    all: Totals,
    in_cells: Vec<f64>,
}

enum RowSums<'a> {
    Neighbours { of: &'a Neighbours, marked: Vec<bool>, by_key: Vec<Totals>, at_end: Totals },
    ByFrame(FrameSums<'a>),
    ByCell(CellSums<'a>),
    ByDomain(DomainSums<'a>),
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
        let detail = match wanted.by {
            Grouping::Line => Detail::Line,
            Grouping::Module => Detail::Module,
            _ => Detail::Function,
        };
        // Sums of whole cells have no frames, of which making the names takes most of the time of a small profile's report.
        let has_frames = wanted.neighbours.is_some() || wanted.by.is_by_frame();
        let frames = if has_frames {
            FrameTable::new(profile, symbols, detail, wanted.inline)
        } else {
            FrameTable::default()
        };
        let rows = match (wanted.neighbours, wanted.by) {
            (Some(of), _) => RowSums::Neighbours {
                of,
                marked: neighbours::mark(&frames, &of.function)?,
                by_key: vec![Totals::default(); frames.keys.len()],
                at_end: Totals::default(),
            },
            (None, by) if by.is_by_frame() => {
                RowSums::ByFrame(FrameSums::new(profile, selected, frames.keys.len()))
            }
            (None, Grouping::Domain) => RowSums::ByDomain(DomainSums::new(profile, selected)),
            (None, by) => RowSums::ByCell(CellSums::new(profile, selected, by, wanted.dimensions)),
        };
        Ok(Self {
            symbols,
            selected,
            filter: StackFilter::new(profile, symbols, selection),
            frames,
            detail,
            rows,
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
        match &mut self.rows {
            RowSums::Neighbours { of, marked, by_key, at_end } => {
                *at_end += neighbours::add(part, &self.frames, &stacks, of.side, marked, by_key);
            }
            RowSums::ByFrame(sums) => sums.add(part, &self.frames, &stacks),
            RowSums::ByCell(sums) => sums.add(part, &is_taken(&stacks)),
            RowSums::ByDomain(sums) => sums.add(part, &is_taken(&stacks)),
        }
    }

    /// The rows, and what there is beside them.
    pub fn finish(self) -> Result<Found, ReportError> {
        let Self { symbols, selected, frames, detail, paths, chosen, all, in_cells, .. } = self;
        let paths = paths.warning(selected.weight);
        let row = |key, own, total| frame_row(symbols, &frames, detail, key, own, total);
        let rows = match self.rows {
            RowSums::Neighbours { of, by_key, at_end, .. } => {
                let keyed = (0..).zip(by_key).filter(|(_, totals)| !totals.is_empty());
                let mut rows: Vec<Row> = keyed.map(|(key, totals)| row(key, totals, totals)).collect();
                if !at_end.is_empty() {
                    rows.push(Row::new(Label::new(of.side.end()), at_end, at_end));
                }
                if rows.is_empty() {
                    return Err(ReportError::NoSuchFunction(of.function.name().to_owned()));
                }
                rows
            }
            RowSums::ByFrame(sums) => {
                let found = (0..).zip(sums.finish()).filter(|(_, (_, total))| !total.is_empty());
                found.map(|(key, (own, total))| row(key, own, total)).collect()
            }
            RowSums::ByCell(sums) => sums.finish(),
            RowSums::ByDomain(sums) => sums.finish(),
        };
        let not_selected = if selected.partial { beyond(all, chosen) } else { Totals::default() };
        Ok(Found { rows, chosen, not_selected, in_cells, paths })
    }
}

fn is_taken(stacks: &[Totals]) -> Vec<bool> {
    stacks.iter().map(|totals| !totals.is_empty()).collect()
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
        assert_eq!(is_taken(&[part, Totals::default()]), [true, false]);
    }
}

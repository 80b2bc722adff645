//! The rows of one kind, added up part by part.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::call_path_check::{CallPathCheck, PathEnd};
use super::cells::{CellSums, DomainSums};
use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::neighbours::{self, Neighbours, Side, Stacks};
use super::rows::{FrameSums, Grouping, Row, frame_row};
use super::select::{Selected, Totals};
use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::Profile;
use crate::symbolize::Symbols;

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

impl RowsWanted<'_> {
    /// How finely frames are told apart for these rows.
    pub fn detail(&self) -> Detail {
        match self.by {
            Grouping::Line => Detail::Line,
            Grouping::Module => Detail::Module,
            _ => Detail::Function,
        }
    }

    /// Whether rows are of frames. Making their names takes most of the time of a small profile's report.
    pub fn has_frames(&self) -> bool {
        self.neighbours.is_some() || self.by.is_by_frame()
    }

    /// The frames that the rows are of.
    pub fn frames(&self, profile: &Profile, symbols: &Symbols) -> FrameTable {
        match self.has_frames() {
            true => FrameTable::new(profile, symbols, self.detail(), self.inline),
            false => FrameTable::default(),
        }
    }
}

/// What the rows of one kind are sums of.
pub(super) struct RowSums<'a> {
    symbols: &'a Symbols,
    frames: Arc<FrameTable>,
    detail: Detail,
    sums: SumsOfKind<'a>,
}

enum SumsOfKind<'a> {
    Neighbours {
        of: &'a Neighbours,
        marked: Vec<bool>,
        by_key: Vec<Totals>,
        at_end: BTreeMap<PathEnd, Totals>,
    },
    ByFrame(FrameSums<'a>),
    ByCell(CellSums<'a>),
    ByDomain(DomainSums<'a>),
}

impl<'a> RowSums<'a> {
    /// Nothing yet. `profile` is all but cells; `frames` are those of the rows.
    pub fn new(
        profile: &'a Profile,
        symbols: &'a Symbols,
        selected: &'a Selected,
        wanted: RowsWanted<'a>,
        frames: Arc<FrameTable>,
    ) -> Result<Self, ReportError> {
        let sums = match (wanted.neighbours, wanted.by) {
            (Some(of), _) => SumsOfKind::Neighbours {
                of,
                marked: neighbours::mark(&frames, &of.function)?,
                by_key: vec![Totals::default(); frames.keys.len()],
                at_end: BTreeMap::new(),
            },
            (None, by) if by.is_by_frame() => {
                SumsOfKind::ByFrame(FrameSums::new(profile, symbols, selected, frames.keys.len()))
            }
            (None, Grouping::Domain) => SumsOfKind::ByDomain(DomainSums::new(profile, symbols, selected)),
            (None, by) => {
                SumsOfKind::ByCell(CellSums::new(profile, symbols, selected, by, wanted.dimensions))
            }
        };
        Ok(Self { symbols, frames, detail: wanted.detail(), sums })
    }

    /// Adds a part of the profile, of which `stacks` are the sums by stack. `paths` had it before; without, paths are taken to
    /// be whole.
    pub fn add(&mut self, part: &Profile, stacks: &[Totals], paths: Option<&CallPathCheck>) {
        match &mut self.sums {
            SumsOfKind::Neighbours { of, marked, by_key, at_end } => {
                let ends = match (of.side, paths) {
                    (Side::Callers, Some(paths)) => paths.ends(part),
                    // A path that ends in its innermost frame is whole there.
                    _ => vec![PathEnd::Whole; stacks.len()],
                };
                let stacks = Stacks { profile: part, totals: stacks, ends: &ends };
                neighbours::add(&stacks, &self.frames, of.side, marked, by_key, at_end);
            }
            SumsOfKind::ByFrame(sums) => sums.add(part, &self.frames, stacks),
            SumsOfKind::ByCell(sums) => sums.add(part, &is_taken(stacks)),
            SumsOfKind::ByDomain(sums) => sums.add(part, &is_taken(stacks)),
        }
    }

    /// The rows.
    ///
    /// # Errors
    /// If there is no such function as the callers or callees were asked of.
    pub fn finish(self, paths: Option<&CallPathCheck>) -> Result<Vec<Row>, ReportError> {
        let Self { symbols, frames, detail, sums } = self;
        let row = |key, own, total| frame_row(symbols, &frames, detail, key, own, total);
        Ok(match sums {
            SumsOfKind::Neighbours { of, by_key, at_end, .. } => {
                let keyed = (0..).zip(by_key).filter(|(_, totals)| !totals.is_empty());
                let mut rows: Vec<Row> = keyed.map(|(key, totals)| row(key, totals, totals)).collect();
                let mut ends: BTreeMap<Label, Totals> = BTreeMap::new();
                for (end, totals) in at_end.into_iter().filter(|(_, totals)| !totals.is_empty()) {
                    *ends.entry(of.side.end(end, paths)).or_default() += totals;
                }
                rows.extend(ends.into_iter().map(|(name, totals)| Row::new(name, totals, totals)));
                if rows.is_empty() {
                    return Err(ReportError::NoSuchFunction(of.function.name().to_owned()));
                }
                rows
            }
            SumsOfKind::ByFrame(sums) => {
                let found = (0..).zip(sums.finish()).filter(|(_, (_, total))| !total.is_empty());
                found.map(|(key, (own, total))| row(key, own, total)).collect()
            }
            SumsOfKind::ByCell(sums) => sums.finish(),
            SumsOfKind::ByDomain(sums) => sums.finish(),
        })
    }
}

fn is_taken(stacks: &[Totals]) -> Vec<bool> {
    stacks.iter().map(|totals| !totals.is_empty()).collect()
}

//! Step 7: what a person or another program reads: table, JSON, CSV, flamegraph, exports.
//!
//! A [`Report`] is a plain value made from a profile and its symbols; the formats only write it.
//! All its texts are [`text::Label`]s, which are safe to show.
//!
//! Two sums hold in every report, and [`Report::new`] checks them:
//! - the balance: attributed + static + other processes + eprof itself + lost = measured;
//! - the rows: shown + cut + filtered + not selected = attributed.

pub mod buckets;
mod cells;
pub mod csv;
mod division;
#[cfg(test)]
mod fixture;
pub mod flamegraph;
pub mod folded;
mod frames;
mod head;
mod heading;
pub mod histogram;
#[cfg(test)]
mod hostile;
pub mod html;
pub mod json;
mod kept_tree;
#[cfg(test)]
mod laws;
mod neighbours;
mod parallel;
pub mod perf_data;
pub mod pprof;
mod protobuf;
mod rows;
mod scale;
mod select;
pub mod speedscope;
mod stack_filter;
mod summary;
mod sums;
pub mod table;
#[cfg(test)]
mod tests;
pub mod text;
mod totals_by_frame;
pub mod tree;
mod walk;

pub use division::{DivisionSummary, DomainModelSummary};
pub use neighbours::{Neighbours, Side};
pub use rows::{Grouping, Place, Row, RowKind, SortKey};
pub use select::{Selection, Totals, Weight};
pub use summary::{DomainSummary, EventSummary, Summary};

use regex::Regex;
use select::Selected;
use sums::{Found, Sums};
use text::Label;

use crate::profile::{BALANCE_TOLERANCE, Profile, ProfileParts};
use crate::symbolize::Symbols;

/// Why a report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The recording has no such energy domain.
    #[error("there is no energy domain {name:?} in this recording; there are: {known}")]
    NoSuchDomain {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The recording has no such event.
    #[error("there is no event {name:?} in this recording; there are: {known}")]
    NoSuchEvent {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// No sample has such a function on its stack.
    #[error(
        "no function is named {0:?} and none matches it as a regular expression; inlined functions are found with `--inline`"
    )]
    NoSuchFunction(String),
    /// Joules were asked for where there are none.
    #[error(
        "there are no joules in this recording: record with `eprof record`, or estimate them with `--watts IDLE:BUSY`, or take `--weight samples`"
    )]
    NoJoules,
    /// No sample is left to draw.
    #[error("nothing to draw: the recording has no samples, or the options select none")]
    NothingSelected,
    /// Two profiles are weighed differently.
    #[error(
        "cannot compare a profile weighed by {older} with one weighed by {newer}: choose one for both with `--weight`"
    )]
    NotComparable {
        /// Weight of the older profile.
        older: &'static str,
        /// Weight of the newer profile.
        newer: &'static str,
    },
    /// A pattern is not a regular expression.
    #[error("not a regular expression")]
    BadPattern(#[from] regex::Error),
    /// Writing failed.
    #[error("cannot write the report")]
    Write(#[from] std::io::Error),
}

/// What a report shows. The default: all functions by their own joules.
#[derive(Debug, Clone)]
pub struct Options {
    /// What was recorded, for people.
    pub subject: Option<String>,
    /// What a row stands for.
    pub by: Grouping,
    /// What the report is made from, and what weighs.
    pub selection: Selection,
    /// Show the callers or callees of a function instead of all rows.
    pub neighbours: Option<Neighbours>,
    /// Only rows whose name or module matches.
    pub rows: Option<Regex>,
    /// Tell inlined functions from the function they were put into.
    pub inline: bool,
    /// What rows are sorted by.
    pub sort: SortKey,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Leave out rows that have no weight of their own, only of what they called.
    pub own_only: bool,
    /// Shares of everything measured instead of what was attributed, with rows for what was not.
    pub whole: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            subject: None,
            by: Grouping::Function,
            selection: Selection::default(),
            neighbours: None,
            rows: None,
            inline: true,
            sort: SortKey::Own,
            limit: None,
            own_only: false,
            whole: false,
        }
    }
}

/// A report, ready to be written in any format.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What the whole profile is about.
    pub summary: Summary,
    /// What weighs.
    pub weight: Weight,
    /// What a row stands for.
    pub by: Grouping,
    /// The only event whose samples count, if one was asked for.
    pub event: Option<Label>,
    /// Whose callers or callees the rows are.
    pub neighbours_of: Option<(Side, Label)>,
    /// The rows, sorted.
    pub rows: Vec<Row>,
    /// Rows beyond the limit: how many, and their own sums.
    pub cut: (usize, Totals),
    /// Rows that the filter took away: how many, and their own sums.
    pub filtered: (usize, Totals),
    /// Samples that were not selected.
    pub not_selected: Totals,
    /// What shares are shares of.
    pub whole: Totals,
    /// The whole is everything measured, and rows of the balance are among the rows.
    pub includes_balance: bool,
    /// What the reader must know.
    pub warnings: Vec<Label>,
}

impl Report {
    /// Makes a report of a profile, whole or in parts: its sums do not depend on which it is.
    ///
    /// # Errors
    /// If the options name something that the profile does not have.
    pub fn new(parts: &dyn ProfileParts, symbols: &Symbols, options: &Options) -> Result<Self, ReportError> {
        let profile = parts.profile();
        let selected = Selected::resolve(&options.selection, profile)?;
        let weight = selected.weight;
        if options.by == Grouping::Domain && weight != Weight::Joules {
            return Err(ReportError::NoJoules);
        }
        let mut sums = Sums::new(profile, symbols, &selected, options)?;
        parts.for_each_part(&mut |part| sums.add(part));
        let Found { rows, chosen, not_selected, in_cells } = sums.finish()?;

        let neighbours = options.neighbours.as_ref();
        let neighbours_of = neighbours.map(|of| (of.side, Label::new(&of.function)));
        let summary = Summary::new(profile, &selected, options.subject.as_deref());
        let mut report = Self {
            weight,
            by: options.by,
            event: options.selection.event.as_deref().map(Label::new),
            not_selected,
            whole: if neighbours_of.is_some() { rows.iter().map(|row| row.own).sum() } else { chosen },
            neighbours_of,
            rows,
            includes_balance: options.whole && weight == Weight::Joules && options.neighbours.is_none(),
            cut: (0, Totals::default()),
            filtered: (0, Totals::default()),
            warnings: warnings(profile, &summary, &in_cells),
            summary,
        };
        report.finish(options);
        Ok(report)
    }

    /// Adds the balance's rows where wanted, filters, sorts and cuts.
    fn finish(&mut self, options: &Options) {
        if self.includes_balance {
            let parts = self.summary.balance.unattributed();
            let row = |(name, joules)| match (self.by, name) {
                // What a GPU draws whatever runs on it.
                (Grouping::Kernel, "[static]") => Row::of_balance("[idle]", joules),
                _ => Row::of_balance(name, joules),
            };
            self.rows.extend(parts.into_iter().map(row));
            self.whole.joules = self.summary.balance.measured;
        }
        if let Some(pattern) = &options.rows {
            let (kept, filtered): (Vec<Row>, Vec<Row>) =
                std::mem::take(&mut self.rows).into_iter().partition(|row| rows::matches(row, pattern));
            self.filtered = count_and_sum(&filtered);
            self.rows = kept;
        }
        if options.own_only {
            let weight = self.weight;
            self.rows.retain(|row| row.own.weight(weight) != 0.0);
        }
        rows::sort(&mut self.rows, options.sort, self.weight);
        if let Some(limit) = options.limit.filter(|&limit| limit < self.rows.len()) {
            self.cut = count_and_sum(&self.rows.split_off(limit));
        }
    }

    /// The share that a row's own weight has of the whole, from 0 to 1; `None` if the whole is nothing.
    pub fn share(&self, totals: &Totals) -> Option<f64> {
        let whole = self.whole.weight(self.weight);
        (whole > 0.0).then(|| totals.weight(self.weight) / whole)
    }

    /// The share that a row has of all time; `None` where no event told the time.
    pub fn time_share(&self, totals: &Totals) -> Option<f64> {
        let whole = self.whole.time.as_secs_f64();
        (whole > 0.0).then(|| totals.time.as_secs_f64() / whole)
    }
}

fn count_and_sum(rows: &[Row]) -> (usize, Totals) {
    (rows.len(), rows.iter().map(|row| row.own).sum())
}

/// The profile's own warnings, and what does not add up.
/// `in_cells` are the joules of all cells, by domain.
fn warnings(profile: &Profile, summary: &Summary, in_cells: &[f64]) -> Vec<Label> {
    let mut warnings: Vec<Label> = profile.warnings.iter().map(|text| Label::new(text)).collect();
    let unbalanced = summary.domains.iter().filter(|domain| !domain.balance.holds());
    warnings.extend(unbalanced.map(|domain| {
        let (sum, measured) = (domain.balance.accounted(), domain.balance.measured);
        Label::new(&format!(
            "the balance of {} is off: its parts are {sum}, measured were {measured}",
            domain.name
        ))
    }));
    for (domain, &in_cells) in profile.domains.iter().zip(in_cells) {
        let attributed = domain.balance.attributed.as_joules();
        if (in_cells - attributed).abs()
            > BALANCE_TOLERANCE * domain.balance.measured.as_joules().abs().max(in_cells)
        {
            warnings.push(Label::new(&format!(
                "the samples of {} have {in_cells} J, the balance says {attributed} J",
                domain.info.name
            )));
        }
    }
    let joules_missing = summary.method != crate::profile::ProfileMethod::None && !summary.has_joules();
    if joules_missing {
        warnings.push(Label::new("the energy meters did not move: this report is by samples, not by joules"));
    }
    warnings
}

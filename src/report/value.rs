//! A report as a value: rows of functions, lines, threads and the like, with the sums around them.

use regex::Regex;

use super::cells;
use super::error::ReportError;
use super::frames::{Detail, FrameTable};
use super::missing_joules::MissingJoules;
use super::neighbours::{self, Neighbours, Side};
use super::rows::{self, Grouping, Row, SortKey};
use super::select::{Selected, Selection, Totals, Weight};
use super::summary::Summary;

use crate::label::Label;
use crate::profile::{BALANCE_TOLERANCE, Profile, StackId};
use crate::symbolize::Symbols;

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
    /// Makes a report.
    ///
    /// # Errors
    /// If the options name something that the profile does not have.
    pub fn new(profile: &Profile, symbols: &Symbols, options: &Options) -> Result<Self, ReportError> {
        let selected = Selected::resolve(&options.selection, profile)?;
        let weight = selected.weight;
        if options.by == Grouping::Domain && weight != Weight::Joules {
            return Err(ReportError::NoJoules(MissingJoules::in_profile(profile)));
        }
        let detail = match options.by {
            Grouping::Line => Detail::Line,
            Grouping::Module => Detail::Module,
            _ => Detail::Function,
        };
        let frames = FrameTable::new(profile, symbols, detail, options.inline);
        let stacks = stacks_of(profile, symbols, &selected, &options.selection);
        let chosen: Totals = stacks.iter().copied().sum();

        let (rows, neighbours_of): (Vec<Row>, _) = match &options.neighbours {
            Some(Neighbours { side, function }) => {
                let marked = neighbours::mark(&frames, function)?;
                let sums = neighbours::sums(profile, &frames, &stacks, *side, &marked);
                if sums.is_empty() {
                    return Err(ReportError::NoSuchFunction(function.clone()));
                }
                let end = Label::new(side.end());
                let row = |(key, totals): (Option<u32>, Totals)| match key {
                    Some(key) => rows::frame_row(symbols, &frames, detail, key, totals, totals),
                    None => Row::new(end.clone(), totals, totals),
                };
                (sums.into_iter().map(row).collect(), Some((*side, Label::new(function))))
            }
            None if options.by.is_by_frame() => {
                (rows::by_frame(profile, symbols, &frames, detail, &stacks, &selected), None)
            }
            None => {
                let counts: Vec<bool> = stacks.iter().map(|totals| !totals.is_empty()).collect();
                let rows = match options.by {
                    Grouping::Domain => cells::by_domain(profile, &selected, &counts),
                    by => cells::by_cell(profile, &selected, &counts, by),
                };
                (rows, None)
            }
        };

        let summary = Summary::new(profile, &selected, options.subject.as_deref());
        let mut report = Self {
            weight,
            by: options.by,
            event: options.selection.event.as_deref().map(Label::new),
            not_selected: not_selected(profile, &selected, chosen),
            whole: if neighbours_of.is_some() { rows.iter().map(|row| row.own).sum() } else { chosen },
            neighbours_of,
            rows,
            includes_balance: options.whole && weight == Weight::Joules && options.neighbours.is_none(),
            cut: (0, Totals::default()),
            filtered: (0, Totals::default()),
            warnings: warnings(profile, &summary),
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

/// Sums by stack; stacks that do not pass through what was asked for are left empty.
pub(super) fn stacks_of(
    profile: &Profile,
    symbols: &Symbols,
    selected: &Selected,
    selection: &Selection,
) -> Vec<Totals> {
    let mut stacks = selected.totals_by_stack(profile);
    if let Some(pattern) = &selection.through {
        let frames = FrameTable::new(profile, symbols, Detail::Function, true);
        let marked = frames.flags(|function| pattern.is_match(function.name.as_str()));
        let is_at = |address| frames.of_address(address).iter().any(|&key| marked[key as usize]);
        let table = &profile.stacks;
        let mut pass = vec![false; table.callers_len()];
        for callers in table.all_callers() {
            let caller = table.caller(callers);
            pass[callers.0 as usize] =
                caller.is_some_and(|(address, outer)| pass[outer.0 as usize] || is_at(address));
        }
        for (stack, totals) in (0..).map(StackId).zip(&mut stacks) {
            if !pass[table.callers(stack).0 as usize] && !table.innermost(stack).is_some_and(is_at) {
                *totals = Totals::default();
            }
        }
    }
    stacks
}

/// What the profile's cells have beyond the chosen ones.
fn not_selected(profile: &Profile, selected: &Selected, chosen: Totals) -> Totals {
    if !selected.partial {
        return Totals::default();
    }
    let all = selected.all(profile);
    Totals {
        joules: (all.joules - chosen.joules).max(crate::units::Joules::ZERO),
        variance: (all.variance - chosen.variance).max(0.0),
        samples: all.samples.saturating_sub(chosen.samples),
        count: all.count.saturating_sub(chosen.count),
        time: crate::units::Nanoseconds::from_nanos(
            all.time.as_nanos().saturating_sub(chosen.time.as_nanos()),
        ),
    }
}

/// The profile's own warnings, and what does not add up.
fn warnings(profile: &Profile, summary: &Summary) -> Vec<Label> {
    let mut warnings: Vec<Label> = profile.warnings.iter().map(|text| Label::new(text)).collect();
    let unbalanced = summary.domains.iter().filter(|domain| !domain.balance.holds());
    warnings.extend(unbalanced.map(|domain| {
        let (sum, measured) = (domain.balance.accounted(), domain.balance.measured);
        Label::new(&format!(
            "the balance of {} is off: its parts are {sum}, measured were {measured}",
            domain.name
        ))
    }));
    for (index, domain) in profile.domains.iter().enumerate() {
        let in_cells: f64 =
            (0..profile.cells.len()).map(|cell| profile.joules(cell)[index].as_joules()).sum();
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
        let why = MissingJoules::of(summary.method, summary.samples());
        warnings.push(Label::new(&format!("{why}: this report is by samples, not by joules")));
    }
    warnings
}

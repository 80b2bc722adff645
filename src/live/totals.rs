//! Rows of windows, added up since the start, in bounded memory.

use rustc_hash::FxHashMap;

use crate::label::Label;
use crate::profile::{Balance, ProfileMethod};
use crate::report::{Report, Row, RowKind, Summary};
use crate::units::{Joules, Nanoseconds};

/// Rows that are kept: of a machine's functions, threads and processes of a day the lightest are folded into one.
const MOST_ROWS: usize = 20_000;
/// Of them so many are left when there are too many.
const ROWS_LEFT: usize = 15_000;
/// The name of the row for those that were folded.
pub(super) const FOLDED: &str = "[others, folded]";

/// What tells rows of different windows apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// Name.
    pub name: Label,
    /// Module, of functions and lines.
    pub module: Option<Label>,
    /// What recordings or threads are told apart by.
    pub values: Vec<Label>,
    /// Process and thread.
    pub ids: (Option<u32>, Option<u32>),
}

impl RowKey {
    /// Of a report's row.
    pub fn of(row: &Row) -> Self {
        let Row { name, module, values, ids, .. } = row;
        Self { name: name.clone(), module: module.clone(), values: values.clone(), ids: *ids }
    }

    fn folded() -> Self {
        Self { name: Label::new(FOLDED), module: None, values: Vec::new(), ids: (None, None) }
    }
}

/// The sums of one row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowTotals {
    /// Of the row itself.
    pub own: Joules,
    /// With all that it called.
    pub total: Joules,
    /// Standard error of `own`.
    pub error: Joules,
}

/// All windows so far.
#[derive(Debug, Clone, Default)]
pub struct RunningTotals {
    rows: FxHashMap<RowKey, RowTotals>,
    balance: Balance,
    duration: Nanoseconds,
    windows: u64,
    folded: u64,
}

impl RunningTotals {
    /// Adds a window.
    pub fn add(&mut self, report: &Report) {
        self.add_rows(&report.rows, &report.summary);
    }

    /// Adds a window's rows of some kind; what its report has beside rows is the same of any kind.
    pub fn add_rows(&mut self, rows: &[Row], summary: &Summary) {
        let is_estimated = summary.method != ProfileMethod::Measured;
        for row in rows.iter().filter(|row| row.kind == RowKind::Samples) {
            let sums = self.rows.entry(RowKey::of(row)).or_default();
            let error = row.own.standard_error();
            sums.own += row.own.joules;
            sums.total += row.total.joules;
            sums.error = added(sums.error, error, is_estimated);
        }
        self.balance = self.balance + summary.balance;
        self.duration += summary.duration;
        self.windows += 1;
        if self.rows.len() > MOST_ROWS {
            self.fold(is_estimated);
        }
    }

    /// The rows, in no certain order.
    pub fn rows(&self) -> impl Iterator<Item = (&RowKey, &RowTotals)> {
        self.rows.iter()
    }

    /// The sums of one row.
    pub fn of(&self, key: &RowKey) -> RowTotals {
        self.rows.get(key).copied().unwrap_or_default()
    }

    /// Where all joules went.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// The time of all windows.
    pub fn duration(&self) -> Nanoseconds {
        self.duration
    }

    /// How many windows there were.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// How many rows were folded into one.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// Puts the lightest rows into one: their sum is kept.
    fn fold(&mut self, is_estimated: bool) {
        let mut weights: Vec<f64> = self.rows.values().map(|sums| sums.own.as_joules()).collect();
        weights.sort_unstable_by(|a, b| b.total_cmp(a));
        let least = weights.get(ROWS_LEFT).copied().unwrap_or(0.0);
        let mut all = self.rows.remove(&RowKey::folded()).unwrap_or_default();
        let mut folded = 0;
        self.rows.retain(|_, sums| {
            let is_kept = sums.own.as_joules() > least;
            if !is_kept {
                folded += 1;
                all.own += sums.own;
                // Callers of each other: their totals are no sum.
                all.total += sums.own;
                all.error = added(all.error, sums.error, is_estimated);
            }
            is_kept
        });
        self.folded += folded;
        self.rows.insert(RowKey::folded(), all);
    }
}

/// Errors of measured windows are mostly of sampling, and each window is sampled anew; those of an estimate are of the
/// watts that were assumed, which are the same in all.
fn added(a: Joules, b: Joules, have_one_cause: bool) -> Joules {
    let (a, b) = (a.as_joules(), b.as_joules());
    Joules::from_joules(if have_one_cause { a + b } else { a.hypot(b) })
}

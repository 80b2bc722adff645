//! A table of runs whose columns have a meaning.

use rustc_hash::FxHashSet;

use super::super::TuneError;
use super::meanings::{Meaning, Meant};
use crate::tables::{Heading, Marks, Number, Table};

/// The whole table.
pub(super) struct Sheet {
    pub(super) table: Table,
    meant: Vec<Meant>,
}

impl Sheet {
    pub(super) fn read(text: &str) -> Result<Self, TuneError> {
        let table = Table::read(text)?;
        let is_number = |heading: &Heading| Number::read_plain(heading.text(), Marks::ENGLISH).is_some();
        if table.headings().iter().all(is_number) {
            let reason = "the first line must name the columns, as in `threads,freq,seconds,joules`";
            return Err(TuneError::Table { reason: reason.into() });
        }
        let meant = table.headings().iter().map(Meant::by).collect();
        Ok(Self { table, meant })
    }

    /// Columns that the user calls settings are no times or joules, whatever their names say.
    pub(super) fn take_for_settings<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for column in names.filter_map(|name| self.table.find(name).ok()) {
            if let Some(meant) = self.meant.get_mut(column)
                && !matches!(meant.meaning, Meaning::Setting(_))
            {
                *meant = Meant { meaning: Meaning::Unknown, exact: true };
            }
        }
    }

    /// The columns: number, name and what the name says.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, &Heading, Meant)> {
        let headings = self.table.headings().iter().zip(&self.meant).enumerate();
        headings.map(|(column, (heading, meant))| (column, heading, *meant))
    }

    /// The columns whose names say this, exactly or not.
    pub(super) fn meaning(&self, meaning: Meaning) -> impl Iterator<Item = (usize, &Heading, bool)> {
        let of_meaning = move |(_, _, meant): &(usize, &Heading, Meant)| meant.meaning == meaning;
        self.columns().filter(of_meaning).map(|(column, heading, meant)| (column, heading, meant.exact))
    }

    /// The name of a column without its unit.
    pub(super) fn name(&self, column: usize) -> &str {
        self.table.headings().get(column).map_or("", Heading::name)
    }

    /// The different values of a column.
    pub(super) fn values(&self, rows: &[usize], column: usize) -> Vec<&str> {
        let mut seen = FxHashSet::default();
        let cells = rows.iter().map(|&row| self.table.cell(row, column));
        cells.filter(|cell| seen.insert(*cell)).collect()
    }
}

//! Tables of events beside measured power: what their columns mean.

use super::ObservationError;
use crate::tables::{self, TableError};

/// A table, with what messages call it and what ran during it.
#[derive(Debug, Clone)]
pub struct Table {
    pub(super) name: String,
    pub(super) workload: String,
    pub(super) table: tables::Table,
}

/// Which columns of tables mean what. A name need not be written in every detail; that of a measured
/// column may be followed by its unit, as in `power:mW`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableColumns {
    /// The column of measured power or energy.
    pub power: String,
    /// It holds joules per row, to be divided by [`TableColumns::duration`].
    pub power_is_energy: bool,
    /// The columns of events; `None` takes every numeric column that is not something else.
    pub events: Option<Vec<String>>,
    /// Columns that are no events, when all numeric columns are taken.
    pub except: Vec<String>,
    /// The columns that name the workload; empty takes each table for one workload.
    pub workload: Vec<String>,
    /// The column of row lengths in seconds: the events are then counts, to be divided by it.
    pub duration: Option<String>,
    /// The column by which rows are put into the order of time.
    pub time: Option<String>,
    /// The column of clock frequencies, where each is to have a model of its own.
    pub frequency: Option<String>,
    /// Only rows in which these columns have these values.
    pub only: Vec<(String, String)>,
}

impl Table {
    /// Names of its columns.
    pub fn names(&self) -> Vec<String> {
        self.table.names()
    }

    /// Reads the text of a table, which may have no rows. `name` is for messages, `workload` stands for a
    /// missing workload column.
    ///
    /// # Errors
    /// [`ObservationError::Table`] if the text is empty, or JSON.
    pub fn parse(name: &str, workload: &str, text: &str) -> Result<Self, ObservationError> {
        let refuse = |problem| ObservationError::Table { file: name.to_owned(), problem };
        let table = tables::Table::read_or_empty(text).map_err(refuse)?;
        Ok(Self { name: name.to_owned(), workload: workload.to_owned(), table })
    }

    /// A column by its name.
    pub(super) fn find(&self, column: &str) -> Result<usize, ObservationError> {
        self.table.find(column).map_err(|problem| self.refuse(problem))
    }

    /// Columns by their names, some of which may be lists.
    pub(super) fn find_each(&self, columns: &[String]) -> Result<Vec<usize>, ObservationError> {
        self.table.find_each(columns).map_err(|problem| self.refuse(problem))
    }

    /// What is wrong with this table.
    pub(super) fn refuse(&self, problem: TableError) -> ObservationError {
        ObservationError::Table { file: self.name.clone(), problem }
    }

    /// Number of rows of values.
    pub(super) fn rows(&self) -> usize {
        self.table.len()
    }

    /// There is a number in this cell.
    pub(super) fn has_number(&self, row: usize, column: usize) -> bool {
        self.table.number(row, column).is_some()
    }
}

//! Text that others wrote, turned into a [`Dataset`](super::dataset::Dataset): tables of numbers and logs
//! of `perf stat`.

mod numeric;
pub mod observed;
mod order;
pub mod perf_stat;
pub mod rates;
mod rows;
pub mod table;

use thiserror::Error;

use crate::tables::{CellError, TableError};

/// Why observations could not be read.
#[derive(Debug, Clone, Error, PartialEq)]
pub enum ObservationError {
    /// The text is no table, or a column that was named is not there.
    #[error("{file}: {problem}")]
    Table {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: TableError,
    },
    /// An event that was named is not in a log.
    #[error("{file}: there is no event `{event}`; it has {}", .have.join(", "))]
    NoSuchEvent {
        /// The log.
        file: String,
        /// What was asked for.
        event: String,
        /// Events there are.
        have: Vec<String>,
    },
    /// A cell of the column of times is none.
    #[error(
        "{file}, {cell}; --timestamp takes numbers, dates (2024-01-31 17:29:56 or 31.01.2024) or clocks (17:29:56), all of \
         one kind"
    )]
    NoTime {
        /// The file.
        file: String,
        /// The cell.
        cell: CellError,
    },
    /// What is to be explained is among what explains it.
    #[error(
        "{file}: `{column}` is the power that is to be explained, and no event too: leave it out of --columns"
    )]
    PowerIsEvent {
        /// The file.
        file: String,
        /// The column.
        column: String,
    },
    /// Nothing is left after leaving out what cannot be used.
    #[error("{file}: no usable row: {reason}")]
    NoRows {
        /// The file or files.
        file: String,
        /// What is missing.
        reason: String,
    },
    /// No power among the events of a log.
    #[error("{file}: no energy among its events ({}); record power/energy-pkg/ too, or name it with --target", .have.join(", "))]
    NoPower {
        /// The log.
        file: String,
        /// Events there are.
        have: Vec<String>,
    },
}

//! Text that others wrote, turned into a [`Dataset`](super::dataset::Dataset): tables of numbers and logs
//! of `perf stat`.

pub mod perf_stat;
pub mod table;

use thiserror::Error;

/// Why observations could not be read.
#[derive(Debug, Error, PartialEq)]
pub enum ObservationError {
    /// A column that was named is not there.
    #[error("{file}: there is no column `{column}`; it has {}", .have.join(", "))]
    NoSuchColumn {
        /// The table.
        file: String,
        /// What was asked for.
        column: String,
        /// Columns there are.
        have: Vec<String>,
    },
    /// The text is no table.
    #[error("{file}: not a table: {reason}")]
    NotATable {
        /// The file.
        file: String,
        /// What the parser says.
        reason: String,
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
    #[error("{file}: no energy among its events ({}); record power/energy-pkg/ too, or name it with --power", .have.join(", "))]
    NoPower {
        /// The log.
        file: String,
        /// Events there are.
        have: Vec<String>,
    },
}

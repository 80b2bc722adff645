//! One column of power of a table of measurements, and why a table may have none.

use thiserror::Error;

use super::trace::PowerTrace;
use crate::tables::{CellError, TableError};

/// Why a text is no power trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// No column tells the time.
    #[error(
        "no column of times (expected `timestamp`, a name that starts with `time`, or numbers that rise); {0}"
    )]
    NoTime(String),
    /// No column tells power.
    #[error("no column of power (a name with `power` or a unit W, mW); {0}. Choose one with --target")]
    NoPower(String),
    /// The column asked for does not exist.
    #[error("there is no column `{wanted}`; the columns of power are: {found}")]
    NoSuchColumn {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// Not one row could be read.
    #[error("column `{column}`: none of {rows} rows holds a time and a number; {first}")]
    NoReadings {
        /// Name of the column.
        column: String,
        /// Rows below the header.
        rows: usize,
        /// What is wrong with the first.
        first: String,
    },
    /// A power that none can be.
    #[error(
        "{0}: no card gives power back. Put the sign right or take the row out, or choose another column with --target"
    )]
    BelowZero(CellError),
    /// The clock was set back while the log was written.
    #[error(
        "line {line}: `{column}` goes back from {from} to {to}, and rows below are of times that rows above are of too: the \
         clock was set back while the log was written, or two logs stand one below the other, so that nothing tells which \
         reading is of when. Cut the table in two above that line, and correct each part by itself"
    )]
    SetBack {
        /// The first line after it.
        line: usize,
        /// The column of times.
        column: String,
        /// The time before.
        from: String,
        /// The time after.
        to: String,
    },
    /// Rows of one time contradict each other.
    #[error(
        "at {several} of {times} times there are readings that differ by more than a tenth: the table holds several GPUs, and \
         no column tells which is which (`nvidia-smi --query-gpu=timestamp,index,power.draw` has one), or its times are too \
         coarse"
    )]
    SeveralAtOnce {
        /// Times with such readings.
        several: usize,
        /// Times with readings.
        times: usize,
    },
    /// The text is no table, or a unit that was named with the column is none of power.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// One column of power of one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTrace {
    /// The column's name without its unit, such as `power.draw.instant`.
    pub column: String,
    /// Which GPU, where the table has a column that tells (`index`, `uuid`, `pci.bus_id`).
    pub gpu: Option<String>,
    /// What else the table calls that GPU, in other such columns.
    pub other_names: Vec<String>,
    /// The readings.
    pub trace: PowerTrace,
    /// Rows without a readable time or number: `[N/A]`, cut lines.
    pub skipped: usize,
    /// What the table does not tell and was assumed, such as a unit.
    pub notes: Vec<String>,
}

//! What can be wrong with data that a model is to be fitted to.

use thiserror::Error;

/// Why a model could not be fitted, stored or used.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum ModelError {
    /// Fewer rows than coefficients.
    #[error(
        "{rows} rows cannot determine {coefficients} coefficients; record more rows or name fewer events"
    )]
    TooFewRows {
        /// Rows that there are.
        rows: usize,
        /// Coefficients wanted, the constant included.
        coefficients: usize,
    },
    /// More spans than there are pairs of rows.
    #[error(
        "{rows} rows cannot be cut into {spans} spans of two rows or more; blocks:K takes a K up to {}{}",
        (.rows / 2).max(1),
        if *.rows < 4 { ": record four rows at least" } else { "" }
    )]
    TooManySpans {
        /// Rows that there are.
        rows: usize,
        /// Spans wanted.
        spans: usize,
    },
    /// Too few rows before or behind the place at which training ends.
    #[error(
        "the first {percent:.0} % of {rows} rows leave fewer than two to train with or none to test; forward:P takes another P"
    )]
    NothingLeft {
        /// Rows that there are.
        rows: usize,
        /// How much of them to train with.
        percent: f64,
    },
    /// What is believed beforehand weighs so much that the data are lost beside it.
    #[error(
        "the prior counts so much that nothing is told by the data beside it (condition number {condition:.1e}); give a lower \
         --prior-strength (1 weighs as much as all data)"
    )]
    PriorTooStrong {
        /// Condition number of the design with the prior's rows.
        condition: f64,
    },
    /// Powers beside which nothing can be calculated.
    #[error(
        "the power is {least:.1e} W in a row, and what it is divided into is beyond what can be calculated with: mend that \
         row, or take it out of the table"
    )]
    TooLittlePower {
        /// The least, in watts.
        least: f64,
    },
    /// A column whose values are all (nearly) alike: nothing tells it from the static power.
    #[error("column `{0}` hardly varies: its share cannot be told from the static power; leave it out")]
    Constant(String),
    /// Values whose squares are no numbers any more.
    #[error(
        "{what} has values up to {largest:.1e}, whose squares are beyond what can be calculated with: give them in another \
         unit"
    )]
    OutOfRange {
        /// Which column, or the power.
        what: String,
        /// The largest, without its sign.
        largest: f64,
    },
    /// Columns that say the same.
    #[error(
        "columns {} say the same: each is nearly a fixed combination of the others \
         (condition number {condition:.1e}); leave one of them out",
        quoted_list(.columns)
    )]
    Collinear {
        /// The columns involved.
        columns: Vec<String>,
        /// Condition number of the column-scaled design.
        condition: f64,
    },
    /// No column is usable.
    #[error("no usable column: every one is constant or empty")]
    NoColumns,
    /// Leaving one out needs at least two.
    #[error(
        "{have} workload(s): leaving one out needs at least {need}; name a workload column or give more files"
    )]
    TooFewWorkloads {
        /// Workloads there are.
        have: usize,
        /// Workloads needed.
        need: usize,
    },
    /// A prior for other columns than the data has.
    #[error("the prior model has {prior} coefficients, the data {columns} columns")]
    PriorMismatch {
        /// Coefficients of the prior.
        prior: usize,
        /// Columns of the data.
        columns: usize,
    },
}

fn quoted_list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.join(""),
    }
}

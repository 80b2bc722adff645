//! What can be wrong with a table as a whole.

use thiserror::Error;

/// Why a text is no table, or not the one that was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// There is nothing in it.
    #[error("the table is empty")]
    Empty,
    /// It is JSON.
    #[error(
        "this is JSON, and a table has a line of names and a line for each row, as `threads,freq,seconds,joules` and its values: \
         convert it, as with `jq -r '(.[0] | keys_unsorted) as $names | $names, (.[] | [.[$names[]]]) | @csv'`"
    )]
    Json,
    /// There is a heading and nothing else.
    #[error("the table has no rows below the line that names the columns")]
    NoRows,
    /// A column that was named does not exist.
    #[error("there is no column `{wanted}`; {}", columns(.found))]
    NoSuchColumn {
        /// What was asked for.
        wanted: String,
        /// The columns that there are.
        found: Vec<String>,
    },
    /// Which of several columns is meant cannot be told.
    #[error("several columns are called `{name}`, and they differ: give each a name of its own")]
    SameName {
        /// What they are called.
        name: String,
    },
    /// A column was named with a unit that does not belong to what it holds.
    #[error("unit `{unit}` in `{text}`: expected {expected}")]
    WrongUnit {
        /// What was asked for.
        text: String,
        /// The unit in it.
        unit: String,
        /// What it could be.
        expected: &'static str,
    },
    /// No row has the values that were asked for.
    #[error("no row has {column}={value}; its values are: {}", values(.found))]
    NoRowWith {
        /// The column.
        column: String,
        /// What was asked for.
        value: String,
        /// The column's values in the rows that other conditions leave, each once.
        found: Vec<String>,
    },
}

/// A few values, and how many more there are.
fn values(found: &[String]) -> String {
    some(found, 8)
}

/// `the columns are: a, b`, cut short where there are very many.
pub(super) fn columns(names: &[String]) -> String {
    format!("the columns are: {}", some(names, 60))
}

/// At most so many of them, and how many more there are.
fn some(all: &[String], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(String::as_str).collect();
    let more = match all.len().saturating_sub(most) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_there_is() {
        let found: Vec<String> = (0..100).map(|i| format!("c{i}")).collect();
        let text = TableError::NoSuchColumn { wanted: "x".into(), found }.to_string();
        assert!(text.starts_with("there is no column `x`; the columns are: c0, c1, "), "{text}");
        assert!(text.ends_with("c59 and 40 more"), "{text}");
    }
}

//! A cell that does not hold what is expected of it.

use thiserror::Error;

use super::number::is_missing;

/// Which cell of a table cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {}", self.problem())]
pub struct CellError {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The heading of its column.
    pub column: String,
    /// What is in it.
    pub cell: String,
    /// What is wrong with it: `no number`, `not above 0`.
    pub fault: &'static str,
}

impl CellError {
    /// The error without the line.
    pub fn problem(&self) -> String {
        const MOST_SHOWN: usize = 40;
        let cell: String = self.cell.chars().take(MOST_SHOWN).collect();
        match cell.as_str() {
            "" => format!("`{}` is empty", self.column),
            missing if is_missing(missing) => format!("`{}` is missing (`{missing}`)", self.column),
            cell => format!("`{}` is `{cell}`, which is {}", self.column, self.fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_column_and_what_was_expected() {
        let error = |cell: &str| {
            CellError { line: 3, column: "time".into(), cell: cell.into(), fault: "no number" }.to_string()
        };
        assert_eq!(error("failed"), "line 3: `time` is `failed`, which is no number");
        assert_eq!(error(""), "line 3: `time` is empty");
        assert_eq!(error("[N/A]"), "line 3: `time` is missing (`[N/A]`)");
        assert!(error(&"x".repeat(1000)).len() < 100);
    }
}

//! How a table looks.

/// Columns of a table that is not on a terminal.
const DEFAULT_WIDTH: usize = 80;

/// How the table looks.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Bold and dim text by escape sequences.
    pub color: bool,
    /// A column of totals: rows with all that they called.
    pub children: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: DEFAULT_WIDTH, color: false, children: false }
    }
}

//! How a table looks.

/// Columns of a table that is not on a terminal.
const DEFAULT_WIDTH: usize = 80;

/// Columns that names are given where nothing says how many there are, as in a pipe: templates have names of thousands of
/// letters, and every row would be as wide.
const WIDEST: usize = 120;

/// How the table looks.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Columns of the terminal; `usize::MAX` where it is none.
    pub width: usize,
    /// Columns of functions' names at most, however many there are.
    pub names: usize,
    /// Bold and dim text by escape sequences.
    pub color: bool,
    /// A column of totals: rows with all that they called.
    pub children: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: DEFAULT_WIDTH, names: WIDEST, color: false, children: false }
    }
}

impl Style {
    /// As wide as a user asks for: with 0, names are whole.
    pub fn as_wide_as(self, asked: Option<usize>) -> Self {
        match asked {
            None => self,
            Some(0) => Self { width: usize::MAX, names: usize::MAX, ..self },
            Some(width) => Self { width, ..self },
        }
    }
}

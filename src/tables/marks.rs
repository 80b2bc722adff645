//! Which of comma and point separates the fraction, as a column's cells tell.
//!
//! `1,234` alone can be read in two ways. It is read as the cells around it are: `12,5` in the same
//! column says that commas separate fractions, `12.5` or `1,234,567` that they set thousands apart. If
//! the column does not tell, the table's other columns do. If nothing tells, commas set thousands apart
//! in a table whose cells stand between commas, where such a cell must have been quoted on purpose, and
//! separate fractions in all others. A point sets thousands apart only where its own column says so.

/// How to read a mark before three digits, which alone could be either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// `1,234` is 1234.
    pub comma_sets_thousands_apart: bool,
    /// `1.234` is 1234.
    pub point_sets_thousands_apart: bool,
}

impl Marks {
    /// Decimal points; commas set thousands apart.
    pub const ENGLISH: Self = Self { comma_sets_thousands_apart: true, point_sets_thousands_apart: false };
    /// Both are taken for what separates fractions.
    pub const UNTOLD: Self = Self { comma_sets_thousands_apart: false, point_sets_thousands_apart: false };
}

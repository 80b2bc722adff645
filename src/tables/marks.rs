//! Which of comma and point separates the fraction, as a column's cells tell.
//!
//! `1,234` alone can be read in two ways. It is read as the cells around it are: `12,5` in the same
//! column says that commas separate fractions, `12.5` or `1,234,567` that they set thousands apart. If
//! the column does not tell, the table's other columns do. If nothing tells, commas set thousands apart
//! in a table whose cells stand between commas, where such a cell must have been quoted on purpose, and
//! separate fractions in all others. A point sets thousands apart only where its own column says so.

use super::number::bare;
use super::numeral::{Mark, Numeral, Told};

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

/// What the cells of a column or of a table have told so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    commas: bool,
    points: bool,
}

impl Evidence {
    /// Takes a cell into account.
    pub(super) fn add(&mut self, cell: &str) {
        let digits = bare(cell).trim_start_matches(['-', '+', '\u{2212}']);
        let Some(numeral) = Numeral::before(digits) else { return };
        match numeral.told() {
            Told::Decimal(mark) if numeral.value(Marks::UNTOLD).is_some() => match mark {
                Mark::Comma => self.commas = true,
                Mark::Point => self.points = true,
            },
            _ => {}
        }
    }

    /// Takes what another column told into account.
    pub(super) fn include(&mut self, other: Self) {
        self.commas |= other.commas;
        self.points |= other.points;
    }

    /// How a column with this evidence is read in a table with that of all of them; `default` where
    /// neither tells.
    pub(super) fn marks(self, table: Self, default: Marks) -> Marks {
        let told = |evidence: Self| match (evidence.commas, evidence.points) {
            (true, false) => Some(false),
            (false, true) => Some(true),
            _ => None,
        };
        Marks {
            comma_sets_thousands_apart: told(self)
                .or_else(|| told(table))
                .unwrap_or(default.comma_sets_thousands_apart),
            point_sets_thousands_apart: told(self) == Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(cells: &[&str]) -> Evidence {
        let mut evidence = Evidence::default();
        cells.iter().for_each(|cell| evidence.add(cell));
        evidence
    }

    #[test]
    fn cells_tell_about_their_neighbours() {
        let marks = |cells: &[&str], others: &[&str]| {
            let (own, mut all) = (evidence(cells), evidence(others));
            all.include(own);
            let marks = own.marks(all, Marks::UNTOLD);
            (marks.comma_sets_thousands_apart, marks.point_sets_thousands_apart)
        };
        assert_eq!(marks(&["1,234", "12,5"], &[]), (false, true));
        assert_eq!(marks(&["1,234", "12.5"], &[]), (true, false));
        assert_eq!(marks(&["1,234", "1,234,567"], &[]), (true, false));
        assert_eq!(marks(&["1.234", "1.234.567"], &[]), (false, true));
        assert_eq!(marks(&["1,234"], &["0.5 W"]), (true, false));
        // Another column's commas do not make thousands of this one's points.
        assert_eq!(marks(&["1.234"], &["0,5 W"]), (false, false));
        // Contradictions and nothing at all leave it open.
        assert_eq!(marks(&["1,234", "0,5", "0.5"], &[]), (false, false));
        assert_eq!(marks(&["1,234", "k1,5", "24.08.2023", "17:20,5"], &[]), (false, false));
    }
}

//! What a column's cells tell about the marks in its numbers.

use super::marks::Marks;
use super::number::bare;
use super::numeral::{Mark, Numeral, Told};

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

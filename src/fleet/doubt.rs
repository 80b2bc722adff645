//! How sure joules are that were added up over machines and windows.

use std::collections::BTreeSet;

use crate::balance::Row;

/// What the standard error of a sum of samples follows from.
///
/// Chance is another from stack to stack: variances by it add up. That is nearly so: where a program runs one function for long, samples
/// of its stacks come and stay away together, and a recording's own report has up to a quarter more there, which it finds in the
/// samples' order. All else that may be wrong (what a coefficient says of a machine, what watts were assumed, where a
/// meter's reading ends) may be wrong in the same way in all rows. How much of it is, the tables do not tell; but the standard
/// error of a sum is never more than the sum of standard errors, whatever they have in common. So that is what is said of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Doubt {
    /// Variance by chance, in square joules.
    pub chance: f64,
    /// The sum of standard errors by all else, in joules.
    pub rest: f64,
    /// Rows that do not tell.
    pub unknown: i64,
}

impl Doubt {
    /// One standard error in joules; `None` if some rows do not tell. `kinds` is of [`kinds`].
    pub fn error(&self, kinds: usize) -> Option<f64> {
        let chance = self.chance * kinds.max(1) as f64;
        (self.unknown == 0).then(|| (chance + self.rest * self.rest).sqrt())
    }

    /// Of the sum, or of the difference.
    pub fn add(&mut self, other: Self) {
        self.chance += other.chance;
        self.rest += other.rest;
        self.unknown += other.unknown;
    }

    /// Of so many times the joules.
    pub fn scaled(self, factor: f64) -> Self {
        Self { chance: self.chance * factor * factor, rest: self.rest * factor.abs(), ..self }
    }
}

/// In so many kinds of domains (packages, memory) the same sample stands. Chance errs in all of them alike: of a sum of n
/// such the variance is at most n times that of the parts together.
pub fn kinds(balance: &[Row]) -> usize {
    let kind = |row: &'_ Row| row.domain.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    balance.iter().map(kind).collect::<BTreeSet<_>>().len()
}

/// In SQL, of rows of `samples`: what [`Doubt`] is made of.
pub const OF_SAMPLES: &str = "SUM(chance) AS sc, SUM(CASE WHEN variance > chance THEN SQRT(variance - chance) ELSE 0e0 END) AS sr, \
                              SUM(CASE WHEN variance IS NULL OR chance IS NULL THEN 1 ELSE 0 END) AS su";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_adds_up_in_squares_and_the_rest_as_it_is() {
        let row = Doubt { chance: 9.0, rest: 1.0, unknown: 0 };
        let mut sum = Doubt::default();
        (0..16).for_each(|_| sum.add(row));
        assert_eq!(sum.error(1), Some(20.0), "16 times 9 and 16 squared are 400");
        assert_eq!(sum.scaled(-0.5).error(1), Some(10.0));
        assert_eq!(Doubt { chance: 8.0, rest: 3.0, unknown: 0 }.error(2), Some(5.0));
        sum.add(Doubt { unknown: 1, ..Doubt::default() });
        assert_eq!(sum.error(1), None);
    }

    #[test]
    fn packages_are_of_one_kind() {
        let row = |domain: &str| Row { domain: domain.to_owned(), ..Row::default() };
        assert_eq!(kinds(&[]), 0);
        assert_eq!(kinds(&["package-0", "package-1", "package-10", "dram-0"].map(row)), 2);
    }
}

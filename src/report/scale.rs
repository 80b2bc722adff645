//! Numbers as people read them: one unit for a whole column, thousands apart.

use crate::units::Joules;

/// A unit of energy that a whole column is written in, so that its numbers can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// `J` with its prefix.
    pub unit: &'static str,
    /// Units per joule.
    factor: f64,
    decimals: usize,
}

impl Scale {
    /// The unit in which the largest amount has one to three digits before the point; kilojoules only
    /// from 100,000 J on.
    pub fn for_largest(largest: Joules) -> Self {
        const UNITS: [(&str, f64, f64); 5] =
            [("kJ", 1e-3, 100.0), ("J", 1.0, 1.0), ("mJ", 1e3, 1.0), ("µJ", 1e6, 1.0), ("nJ", 1e9, 0.0)];
        const NONE: (&str, f64, f64) = UNITS[1];
        let largest = largest.as_joules();
        let fits = |(_, factor, from): &&(&str, f64, f64)| largest > 0.0 && largest * factor >= *from;
        let (unit, factor, _) = *UNITS.iter().find(fits).unwrap_or(&NONE);
        let decimals = match largest * factor {
            scaled if scaled >= 1000.0 => 1,
            scaled if scaled >= 100.0 => 2,
            _ => 3,
        };
        Self { unit, factor, decimals }
    }

    /// An amount in this unit. What is something never looks like nothing.
    pub fn show(&self, joules: Joules) -> String {
        let scaled = joules.as_joules() * self.factor;
        let decimals = self.decimals;
        let smallest = 0.1f64.powi(decimals as i32);
        if scaled != 0.0 && scaled.abs() < smallest / 2.0 {
            return format!("<{smallest:.decimals$}");
        }
        format!("{scaled:.decimals$}")
    }
}

/// A number with so many digits behind the point. What is rounded to nothing is not less than nothing.
pub(super) fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let is_nothing = text.starts_with('-') && !text.contains(|digit: char| ('1'..='9').contains(&digit));
    if is_nothing { text[1..].to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_follows_the_largest() {
        let scale = |joules| Scale::for_largest(Joules::from_joules(joules));
        let unit = |joules| scale(joules).unit;
        assert_eq!(
            [unit(123_456.0), unit(34.0), unit(0.5), unit(2e-5), unit(3e-9), unit(0.0)],
            ["kJ", "J", "mJ", "µJ", "nJ", "J"]
        );
        assert_eq!(scale(34.0).show(Joules::from_joules(0.25)), "0.250");
        assert_eq!(scale(250.0).show(Joules::from_joules(250.0)), "250.00");
        assert_eq!(scale(0.5).show(Joules::from_joules(0.5)), "500.00");
    }

    #[test]
    fn what_is_something_never_looks_like_nothing() {
        let scale = Scale::for_largest(Joules::from_joules(34.0));
        assert_eq!(scale.show(Joules::from_joules(0.0004)), "<0.001");
        assert_eq!(scale.show(Joules::ZERO), "0.000");
    }

    #[test]
    fn nothing_has_no_sign() {
        let said = [-0.04, -0.0, 0.04, -0.06, -10.0].map(|number| fixed(number, 1));
        assert_eq!(said, ["0.0", "0.0", "0.0", "-0.1", "-10.0"]);
    }
}

//! Where the joules of a domain went, to the last one.

use std::ops::{Add, Sub};

use crate::units::Joules;

/// The relative difference that a balance may have: what rounding of sums leaves.
pub const BALANCE_TOLERANCE: f64 = 1e-9;

/// Where the joules of a domain, or of all domains together, went.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Balance {
    /// All joules.
    pub measured: Joules,
    /// To samples of the recorded program.
    pub attributed: Joules,
    /// Spent whatever runs.
    pub static_energy: Joules,
    /// By processes that were not recorded.
    pub other_processes: Joules,
    /// By eprof itself.
    pub recorder: Joules,
    /// While records were lost, or with nothing to charge it to.
    pub lost: Joules,
}

impl Balance {
    /// The parts beside the attributed one, with the names that reports give them.
    pub fn unattributed(&self) -> [(&'static str, Joules); 4] {
        [
            ("[static]", self.static_energy),
            ("[other processes]", self.other_processes),
            ("[eprof]", self.recorder),
            ("[lost]", self.lost),
        ]
    }

    /// The whole and its parts, in the order in which every table has them: measured, functions, static, others, eprof,
    /// lost.
    pub fn columns(&self) -> [Joules; 6] {
        let [static_energy, others, recorder, lost] = self.unattributed().map(|(_, joules)| joules);
        [self.measured, self.attributed, static_energy, others, recorder, lost]
    }

    /// The sum of all parts.
    pub fn accounted(&self) -> Joules {
        self.attributed + self.unattributed().into_iter().map(|(_, joules)| joules).sum()
    }

    /// What the parts differ from the whole, as a share of the whole.
    pub fn error(&self) -> f64 {
        let difference = (self.accounted() - self.measured).abs();
        if difference == Joules::ZERO {
            0.0
        } else {
            difference / self.measured.abs().max(self.accounted().abs())
        }
    }

    /// The parts add up to the whole.
    pub fn holds(&self) -> bool {
        self.error() <= BALANCE_TOLERANCE
    }
}

impl Add for Balance {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            measured: self.measured + other.measured,
            attributed: self.attributed + other.attributed,
            static_energy: self.static_energy + other.static_energy,
            other_processes: self.other_processes + other.other_processes,
            recorder: self.recorder + other.recorder,
            lost: self.lost + other.lost,
        }
    }
}

impl Sub for Balance {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            measured: self.measured - other.measured,
            attributed: self.attributed - other.attributed,
            static_energy: self.static_energy - other.static_energy,
            other_processes: self.other_processes - other.other_processes,
            recorder: self.recorder - other.recorder,
            lost: self.lost - other.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(values: [f64; 6]) -> Balance {
        let [measured, attributed, static_energy, other_processes, recorder, lost] =
            values.map(Joules::from_joules);
        Balance { measured, attributed, static_energy, other_processes, recorder, lost }
    }

    #[test]
    fn balances_add_and_take_away_part_by_part() {
        let (one, other) =
            (balance([40.0, 1.0, 2.0, 4.0, 8.0, 16.0]), balance([7.0, 0.5, 0.25, 3.0, 2.0, 1.0]));
        assert_eq!((one + other).columns(), balance([47.0, 1.5, 2.25, 7.0, 10.0, 17.0]).columns());
        assert_eq!((one - other).columns(), balance([33.0, 0.5, 1.75, 1.0, 6.0, 15.0]).columns());
        assert_eq!(one.accounted(), Joules::from_joules(31.0));
        let names: Vec<&str> = one.unattributed().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["[static]", "[other processes]", "[eprof]", "[lost]"]);
    }

    #[test]
    fn a_balance_holds_to_a_billionth() {
        let off_by = |share: f64| balance([1.0, 0.5, 0.5 + share, 0.0, 0.0, 0.0]);
        assert!(off_by(0.0).holds() && off_by(0.9e-9).holds() && !off_by(1.2e-9).holds());
        assert!((off_by(1.0).error() - 0.5).abs() < 1e-12, "of the larger of both");
        assert_eq!(Balance::default().error(), 0.0);
        // Nothing was measured, and all parts together are nothing, too.
        assert_eq!(balance([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]).error(), 0.0);
        assert_eq!(balance([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]).error(), 1.0);
    }
}

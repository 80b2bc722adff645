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

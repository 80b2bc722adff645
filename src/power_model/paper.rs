//! The measurements of Ono, Yamamoto and Nakashima, "Sampling-based Power-Measurement Method", IPSJ SIG
//! 2015, that the preset is checked against and the simulator is driven by.

use crate::hardware::Role;

/// Seconds of the paper's time-based samples.
const SAMPLE_SECONDS: f64 = 0.01;
/// Cores that ran the program.
const CORES: f64 = 8.0;

/// Table 3: role, events per joule, and the interval used, equivalent to 10 ms.
pub const TABLE_3: [(Role, u64, u64); 4] = [
    (Role::Inst, 4_854_368_932, 48_540_000),
    (Role::Resource, 316_355_584, 3_160_000),
    (Role::L2, 165_070_981, 1_650_000),
    (Role::Clk, 3_689_567_430, 36_900_000),
];

/// One row of table 4: the mean energy between two samples of each event, in joules per core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Between two samples of INST, RESOURCE, L2 and CLK; `None` where there were none.
    joules_between_samples: [Option<f64>; 4],
    /// Between two samples 10 ms apart.
    joules_per_10_ms: f64,
}

const fn program(name: &'static str, joules: [Option<f64>; 4], joules_per_10_ms: f64) -> Program {
    Program { name, joules_between_samples: joules, joules_per_10_ms }
}

/// Table 4: the six programs, each on all eight cores.
pub const PROGRAMS: [Program; 6] = [
    program("cpu-stress", [Some(0.08), Some(16.85), None, Some(0.11)], 0.09),
    program("cpu-own", [Some(0.12), Some(0.03), Some(1.94), Some(0.17)], 0.14),
    program("stream-L1", [Some(0.48), Some(0.14), Some(0.65), Some(0.11)], 0.09),
    program("stream-L2", [Some(0.19), Some(0.13), Some(0.63), Some(0.11)], 0.09),
    program("stream-L3", [Some(0.12), Some(0.07), Some(0.06), Some(0.16)], 0.13),
    program("stream-mem", [Some(0.55), Some(0.06), Some(0.27), Some(0.13)], 0.10),
];

impl Program {
    /// Power of the core domain of the package in watts.
    pub fn package_watts(&self) -> f64 {
        self.joules_per_10_ms / SAMPLE_SECONDS * CORES
    }

    /// Events per second of one core, in the preset's order: CLK, INST, RESOURCE, L2.
    ///
    /// A sample comes every `interval` events, so the rate is the interval over the time between two
    /// samples, which is the energy between them over the power of a core.
    pub fn rates_per_core(&self) -> [f64; 4] {
        let watts = self.joules_per_10_ms / SAMPLE_SECONDS;
        let mut rates = [0.0; 4];
        for (at, (joules, (_, _, interval))) in self.joules_between_samples.iter().zip(TABLE_3).enumerate() {
            // The table begins with INST and ends with CLK, the model begins with CLK.
            rates[(at + 1) % 4] = joules.map_or(0.0, |joules| interval as f64 * watts / joules);
        }
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_intervals_and_energies() {
        // cpu-stress: 9 W per core, a CLK sample of 36.9e6 cycles each 0.11 J: 3.02e9 cycles per second.
        let rates = PROGRAMS[0].rates_per_core();
        assert!((rates[0] - 36.9e6 * 9.0 / 0.11).abs() < 1.0);
        assert!((rates[1] - 48.54e6 * 9.0 / 0.08).abs() < 1.0);
        assert!((rates[2] - 3.16e6 * 9.0 / 16.85).abs() < 1.0);
        assert_eq!(rates[3], 0.0);
        assert_eq!(PROGRAMS[0].package_watts(), 72.0);
    }
}

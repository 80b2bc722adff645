//! Joules for a recording that has none: from CPU time and the user's word for the machine's watts.

use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::profile::{Balance, Cell, DomainEnergy};
use crate::units::{Joules, Nanoseconds, Watts};

/// Watts of a machine when idle and when all its CPUs are busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WattsRange {
    /// With nothing to do.
    pub idle: Watts,
    /// With every CPU busy.
    pub busy: Watts,
}

/// Name of the estimated domain.
pub const ESTIMATED_DOMAIN: &str = "cpu";

/// Gives each cell the joules of its CPU time, and the machine's idle power to the static row.
///
/// A busy CPU adds `(busy - idle) / cpus` watts: the straight line between the two given figures.
pub fn estimate(
    cells: &[Cell],
    duration: Nanoseconds,
    cpus: u32,
    watts: WattsRange,
) -> (DomainEnergy, Vec<Joules>) {
    let per_cpu = (watts.busy - watts.idle) / f64::from(cpus.max(1));
    let joules: Vec<Joules> = cells.iter().map(|cell| per_cpu * cell.time).collect();
    let attributed = joules.iter().sum();
    let static_energy = watts.idle * duration;
    let info = DomainInfo {
        static_power: Some(watts.idle),
        ..DomainInfo::new(
            ESTIMATED_DOMAIN,
            DomainKind::Package,
            format!("CPU time x {:.1}..{:.1} W", watts.idle.as_watts(), watts.busy.as_watts()),
            Method::Estimated,
        )
    };
    let energy = DomainEnergy {
        info,
        balance: Balance {
            measured: attributed + static_energy,
            attributed,
            static_energy,
            ..Balance::default()
        },
    };
    (energy, joules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{StackId, ThreadIndex};

    #[test]
    fn half_of_two_cpus_is_a_quarter_of_the_dynamic_power() {
        let cell = Cell {
            stack: StackId(0),
            thread: ThreadIndex(0),
            cpu: None,
            event: 0,
            samples: 500,
            count: 500_000_000,
            time: Nanoseconds::from_millis(500),
        };
        let watts = WattsRange { idle: Watts::from_watts(10.0), busy: Watts::from_watts(50.0) };
        let (domain, joules) = estimate(&[cell], Nanoseconds::from_millis(1000), 2, watts);
        // One CPU adds 20 W; it ran for half a second.
        assert_eq!(joules, [Joules::from_joules(10.0)]);
        assert_eq!(domain.balance.static_energy, Joules::from_joules(10.0));
        assert_eq!(domain.balance.measured, Joules::from_joules(20.0));
    }
}

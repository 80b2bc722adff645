//! Joules for a recording that has none: from CPU time and the user's word for the machine's watts.

use crate::analyze::intervals::survey::Survey;
use crate::analyze::options::WattsRange;
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::profile::{Balance, Cell, DomainEnergy, Profile};
use crate::recording::Recording;
use crate::units::{Joules, Nanoseconds, Watts};

/// Name of the estimated domain.
pub const ESTIMATED_DOMAIN: &str = "cpu";

/// Joules by CPU time, and the machine's idle power for the static row.
///
/// A busy CPU adds `(busy - idle) / cpus` watts: the straight line between the two given figures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    watts: WattsRange,
    per_cpu: Watts,
}

impl Estimate {
    /// For a machine of so many CPUs.
    pub fn new(cpus: u32, watts: WattsRange) -> Self {
        Self { watts, per_cpu: (watts.busy - watts.idle) / f64::from(cpus.max(1)) }
    }

    /// For the machine of a recording: where it does not say how many CPUs there are, those that were seen.
    pub fn of_recording(recording: &Recording, survey: &Survey, watts: WattsRange) -> Self {
        let seen = survey.highest_cpu.map_or(1, |cpu| cpu.saturating_add(1));
        let told = recording.features().cpus.map(|count| count.online);
        // The file of a recorder that was killed says it at its beginning alone.
        let known = || Some(recording.metadata()?.machine.cpus.len() as u32).filter(|&count| count > 0);
        Self::new(told.or_else(known).unwrap_or(seen), watts)
    }

    /// Gives the cells of a profile without joules those of their CPU time.
    pub fn add_to(&self, profile: &mut Profile) {
        profile.cell_joules = self.joules(&profile.cells);
        profile.domains = vec![self.domain(&profile.cell_joules, profile.duration)];
    }

    /// The joules of each cell.
    pub fn joules(&self, cells: &[Cell]) -> Vec<Joules> {
        cells.iter().map(|cell| self.per_cpu * cell.time).collect()
    }

    /// The domain of which cells have these joules.
    pub fn domain(&self, joules: &[Joules], duration: Nanoseconds) -> DomainEnergy {
        let watts = self.watts;
        let attributed = joules.iter().sum();
        let static_energy = watts.idle * duration;
        let info = DomainInfo {
            static_power: Some(watts.idle),
            watts_error: Some(0.0),
            ..DomainInfo::new(
                ESTIMATED_DOMAIN,
                DomainKind::Package,
                format!("CPU time x {:.1}..{:.1} W", watts.idle.as_watts(), watts.busy.as_watts()),
                Method::Estimated,
            )
        };
        DomainEnergy {
            info,
            balance: Balance {
                measured: attributed + static_energy,
                attributed,
                static_energy,
                ..Balance::default()
            },
        }
    }
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
        let estimate = Estimate::new(2, watts);
        let joules = estimate.joules(&[cell]);
        let domain = estimate.domain(&joules, Nanoseconds::from_millis(1000));
        // One CPU adds 20 W; it ran for half a second.
        assert_eq!(joules, [Joules::from_joules(10.0)]);
        assert_eq!(domain.balance.static_energy, Joules::from_joules(10.0));
        assert_eq!(domain.balance.measured, Joules::from_joules(20.0));
    }
}

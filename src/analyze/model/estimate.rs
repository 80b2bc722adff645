//! Joules for a recording that has none: from CPU time and the user's word for the machine's watts.

use crate::analyze::intervals::survey::Survey;
use crate::analyze::options::WattsRange;
use crate::hardware::{DomainInfo, DomainKind, Method};
use crate::profile::{Balance, Cell, DomainEnergy, Profile};
use crate::recording::Recording;
use crate::units::{Joules, Nanoseconds, Watts};

/// Name of the estimated domain.
pub const ESTIMATED_DOMAIN: &str = "cpu";

/// Of a recording by other events alone.
const TELLS_NO_TIME: &str = "no event of this recording tells CPU time, which joules are estimated from: no function has any. Record \
     cpu-clock or cycles as well (-e cpu-clock,EVENT); `--weight samples` shows what was sampled";

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
        let tells_none = profile.cells.iter().all(|cell| cell.time == Nanoseconds::ZERO);
        if tells_none && !profile.cells.is_empty() {
            profile.warnings.push(TELLS_NO_TIME.to_owned());
        }
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

    const WATTS: WattsRange = WattsRange { idle: Watts::from_watts(10.0), busy: Watts::from_watts(50.0) };

    fn cell(time: Nanoseconds) -> Cell {
        Cell {
            stack: StackId(0),
            thread: ThreadIndex(0),
            cpu: None,
            event: 0,
            samples: 500,
            count: 500_000_000,
            time,
        }
    }

    #[test]
    fn samples_that_tell_no_time_have_no_joules_and_that_is_said() {
        let warnings = |cells: Vec<Cell>| {
            let mut profile = Profile { cells, ..Profile::default() };
            Estimate::new(2, WATTS).add_to(&mut profile);
            profile.warnings
        };
        let none = || cell(Nanoseconds::ZERO);
        assert_eq!(warnings(vec![none(), none()]), [TELLS_NO_TIME]);
        assert!(warnings(vec![none(), cell(Nanoseconds::from_millis(1))]).is_empty());
        assert!(warnings(Vec::new()).is_empty());
    }

    #[test]
    fn half_of_two_cpus_is_a_quarter_of_the_dynamic_power() {
        let estimate = Estimate::new(2, WATTS);
        let joules = estimate.joules(&[cell(Nanoseconds::from_millis(500))]);
        let domain = estimate.domain(&joules, Nanoseconds::from_millis(1000));
        // One CPU adds 20 W; it ran for half a second.
        assert_eq!(joules, [Joules::from_joules(10.0)]);
        assert_eq!(domain.balance.static_energy, Joules::from_joules(10.0));
        assert_eq!(domain.balance.measured, Joules::from_joules(20.0));
    }
}

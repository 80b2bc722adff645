//! What a recording under way has so far.

use std::fmt;
use std::time::Duration;

use crate::hardware::Method;
use crate::record::energy_log::EnergySummary;
use crate::units::grouped;

/// A recording so far.
#[derive(Debug, Clone, PartialEq)]
pub struct SoFar {
    /// Since the program was started, or sampling began.
    pub elapsed: Duration,
    /// What the meters read.
    pub energy: Option<EnergySummary>,
    /// Samples in the file.
    pub samples: u64,
    /// Records that the kernel dropped because a ring was full.
    pub lost: u64,
}

/// Who is told of it, twice a second. What it takes is the recorder's own time.
pub type Listener<'l> = &'l mut dyn FnMut(&SoFar);

impl fmt::Display for SoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        write!(f, "{seconds:.1} s, ")?;
        if let Some(EnergySummary { total, method, .. }) = &self.energy {
            let method = if *method == Method::Estimated { " estimated" } else { "" };
            write!(f, "{total}{method} ({:.2} W), ", total.as_joules() / seconds.max(1e-3))?;
        }
        write!(f, "{} samples, {} lost", grouped(self.samples), grouped(self.lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Joules;

    #[test]
    fn a_line_tells_time_joules_watts_samples_and_losses() {
        let mut so_far =
            SoFar { elapsed: Duration::from_millis(2500), energy: None, samples: 12_345, lost: 0 };
        assert_eq!(so_far.to_string(), "2.5 s, 12,345 samples, 0 lost");
        let total = Joules::from_joules(50.0);
        so_far.energy = Some(EnergySummary { total, method: Method::Estimated, sources: Vec::new() });
        assert_eq!(so_far.to_string(), "2.5 s, 50.00 J estimated (20.00 W), 12,345 samples, 0 lost");
    }
}

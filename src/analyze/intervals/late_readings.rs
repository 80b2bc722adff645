//! Readings so far apart that a counter of limited range may have gone around unseen.

use crate::hardware::DomainInfo;
use crate::units::{Joules, Nanoseconds, Timestamp};

/// The readings of one meter, as far as they tell whether it was read in time.
#[derive(Debug, Clone, Default)]
pub(crate) struct LateReadings {
    first: Option<(Timestamp, Joules)>,
    last: Option<(Timestamp, Joules)>,
    late: u64,
    longest: Nanoseconds,
}

impl LateReadings {
    /// A reading of a counter that begins anew after `range`. Call in the order of time.
    pub fn reading(&mut self, range: Option<Joules>, time: Timestamp, energy: Joules) {
        let first = *self.first.get_or_insert((time, energy));
        let Some(last) = self.last.replace((time, energy)) else { return };
        let (gap, so_far) = (time.since(last.0), last.0.since(first.0));
        let Some(range) = range.filter(|_| so_far > Nanoseconds::ZERO) else { return };
        let usual = (last.1 - first.1) / so_far;
        // At twice the power that was usual so far it has gone around.
        if usual * gap > range * 0.5 {
            self.late += 1;
            self.longest = self.longest.max(gap);
        }
    }

    /// What a reader of the joules must know.
    pub fn warning(&self, domain: &DomainInfo) -> Option<String> {
        let range = domain.range.filter(|_| self.late > 0)?;
        let times = if self.late == 1 { "once".to_owned() } else { format!("{} times", self.late) };
        Some(format!(
            "{}: its counter begins anew after {range:.3} and was read too late to notice it {times}, {} at the longest: joules \
             may be missing. Keep the recorder running (a stopped or starved one reads no meter), or take a meter that the kernel \
             reads by itself: --meter power",
            domain.name, self.longest,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{DomainKind, Method};

    fn warning(range: Option<f64>, seconds: &[f64]) -> Option<String> {
        let range = range.map(Joules::from_joules);
        let mut readings = LateReadings::default();
        for seconds in seconds {
            let (time, energy) =
                (Timestamp::from_nanos((seconds * 1e9) as u64), Joules::from_joules(20.0 * seconds));
            readings.reading(range, time, energy);
        }
        let domain = DomainInfo::new("package-0", DomainKind::Package, "powercap", Method::Measured);
        readings.warning(&DomainInfo { range, ..domain })
    }

    #[test]
    fn a_pause_in_which_a_counter_may_have_gone_around_is_told() {
        // 20 W: 4 J are counted in 0.2 s, and in 0.1 s at twice the power.
        assert_eq!(warning(Some(4.0), &[0.0, 0.05, 0.1, 0.19, 0.25]), None);
        let told = warning(Some(4.0), &[0.0, 0.05, 0.1, 0.3, 0.35, 0.47]).expect("a warning");
        assert!(told.contains("package-0") && told.contains("2 times") && told.contains("200"), "{told}");
        assert!(warning(Some(4.0), &[0.0, 0.05, 0.2]).expect("a warning").contains("once"));
    }

    #[test]
    fn a_counter_without_end_is_never_late() {
        assert_eq!(warning(None, &[0.0, 0.05, 900.0]), None);
    }

    #[test]
    fn two_readings_of_one_time_tell_no_power() {
        let mut readings = LateReadings::default();
        for (millis, joules) in [(0, 0.0), (0, 1.0), (50, 1.5)] {
            let (time, energy) = (Timestamp::from_nanos(millis * 1_000_000), Joules::from_joules(joules));
            readings.reading(Some(Joules::from_joules(4.0)), time, energy);
        }
        assert_eq!(readings.late, 0);
    }
}

//! What makes the figures of measured runs doubtful, collected while they are made.

use std::fs;
use std::path::PathBuf;

use crate::machine::Roots;
use crate::measure::RunMeter;

/// Others that use more than this share of the CPU time spent disturb a run.
const DISTURBING: f64 = 0.05;
/// Frequencies that differ by more than this from what was set are not what was set.
const OFF: f64 = 0.05;

/// Collected warnings.
#[derive(Debug)]
pub struct Observations {
    stat: PathBuf,
    busy_before: Option<f64>,
    shortest: f64,
    worst_disturbance: f64,
    disturbed: usize,
    runs: usize,
    off_frequency: Option<String>,
    of_the_meter: Vec<String>,
}

impl Observations {
    /// Nothing seen yet but what the meters say.
    pub fn new(roots: &Roots, of_the_meter: &[String]) -> Self {
        Self {
            stat: roots.procfs.join("stat"),
            busy_before: None,
            shortest: f64::INFINITY,
            worst_disturbance: 0.0,
            disturbed: 0,
            runs: 0,
            off_frequency: None,
            of_the_meter: of_the_meter.to_vec(),
        }
    }

    /// A run begins.
    pub fn begin(&mut self) {
        self.busy_before = self.busy_seconds();
    }

    /// A run ended, after so long and with so much CPU time of its own. Returns the program's share of the CPU time that was spent meanwhile.
    pub fn end(&mut self, seconds: f64, cpu_seconds: f64) -> f64 {
        self.runs += 1;
        self.shortest = self.shortest.min(seconds);
        let (Some(before), Some(after)) = (self.busy_before, self.busy_seconds()) else { return 1.0 };
        // /proc/stat counts in hundredths of a second.
        let others = (after - before - cpu_seconds - 0.02).max(0.0);
        let share = others / (cpu_seconds + others).max(0.1);
        if share > DISTURBING {
            self.disturbed += 1;
            self.worst_disturbance = self.worst_disturbance.max(share);
        }
        1.0 - share
    }

    /// The frequency set and the one that the CPUs had.
    pub fn note_frequency(&mut self, setting: &str, wanted: Option<f64>, had: Option<f64>) {
        if let (Some(wanted), Some(had), None) = (wanted, had, &self.off_frequency)
            && (had / wanted - 1.0).abs() > OFF
        {
            self.off_frequency = Some(format!("at {setting} the CPUs ran at {had:.2} GHz on average"));
        }
    }

    /// What the user should know.
    pub fn warnings(&self, meter: &RunMeter, tunes_power: bool) -> Vec<String> {
        let mut warnings = self.of_the_meter.clone();
        if meter.is_estimated() && tunes_power {
            warnings.push(
                "the energy is estimated from CPU time, which knows nothing of frequencies and power caps: what it \
                 says of them is a guess"
                    .into(),
            );
        }
        warnings.extend(self.short_run(meter));
        warnings.extend(self.disturbance(meter));
        if let Some(text) = &self.off_frequency {
            warnings.push(format!(
                "frequencies were not kept: {text} (hardware-managed P-states, turbo, heat or a power limit)"
            ));
        }
        warnings
    }

    /// A warning if a run was too short for the meter.
    pub fn short_run(&self, meter: &RunMeter) -> Option<String> {
        (self.shortest < meter.shortest_run()).then(|| {
            format!(
                "the shortest run took {:.3} s; for 1 % of accuracy the meter needs {:.1} s: give the program more work",
                self.shortest,
                meter.shortest_run()
            )
        })
    }

    /// A warning if others were busy during a run.
    pub fn disturbance(&self, meter: &RunMeter) -> Option<String> {
        (self.disturbed > 0).then(|| {
            format!(
                "other programs ran during {} of {} runs and used up to {:.0} % of the CPU time spent: {}",
                self.disturbed,
                self.runs,
                self.worst_disturbance * 100.0,
                match meter.is_estimated() {
                    true => "times are longer for it",
                    false => "their energy is in the figures",
                }
            )
        })
    }

    /// CPU time that all CPUs were not idle since boot.
    fn busy_seconds(&self) -> Option<f64> {
        let text = fs::read_to_string(&self.stat).ok()?;
        busy_seconds(&text)
    }
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal in ticks.
pub fn busy_seconds(stat: &str) -> Option<f64> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let fields: Vec<u64> =
        stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|f| f.parse().ok()).collect();
    let ticks: u64 = [0, 1, 2, 5, 6].iter().filter_map(|&index| fields.get(index)).sum();
    (fields.len() >= 4).then_some(ticks as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_waiting_and_stolen_time_is_not_busy() {
        let text = "cpu  100 20 30 1000 40 5 6 7 0 0\ncpu0 1 2 3\n";
        assert_eq!(busy_seconds(text), Some(1.61));
        assert_eq!(busy_seconds("intr 5"), None);
        assert_eq!(busy_seconds("cpu  x"), None);
    }

    #[test]
    fn the_first_frequency_that_is_off_is_named() {
        let mut seen = Observations::new(&Roots::default(), &[]);
        seen.note_frequency("freq=2GHz", Some(2.0), Some(1.95));
        assert_eq!(seen.off_frequency, None);
        seen.note_frequency("freq=1GHz", Some(1.0), Some(2.8));
        seen.note_frequency("freq=3GHz", Some(3.0), Some(2.8));
        assert_eq!(seen.off_frequency.as_deref(), Some("at freq=1GHz the CPUs ran at 2.80 GHz on average"));
    }
}

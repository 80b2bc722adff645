//! What the counters of each event say at the end of a recording: counted all the time, or by turns?

use std::collections::BTreeMap;

use perf_data::encode::CounterValue;

/// An event that was on a counter for less than this share of the time was multiplexed.
const WHOLE_TIME: f64 = 0.99;

/// The final values of all counters, by event.
#[derive(Debug, Clone, Default)]
pub struct EventTotals(BTreeMap<usize, EventTotal>);

#[derive(Debug, Clone, Default)]
struct EventTotal {
    running: u64,
    /// Time the event was enabled on all CPUs, where it counts all tasks.
    enabled_on_cpus: u64,
    /// Time the event was enabled for each task. A task's counter of one CPU goes on being enabled, though
    /// not running, while the task is on another CPU: the longest of its counters tells the task's time.
    enabled_for_tasks: BTreeMap<u32, u64>,
    lost: u64,
}

impl EventTotal {
    /// The share of the time that the event was on a counter; `None` if it was never enabled.
    fn share_counted(&self) -> Option<f64> {
        let enabled = self.enabled_on_cpus + self.enabled_for_tasks.values().sum::<u64>();
        (enabled > 0).then(|| self.running as f64 / enabled as f64)
    }
}

impl EventTotals {
    /// Adds the value of one counter of an event, for one task or for all.
    pub fn add(&mut self, event: usize, task: Option<u32>, value: &CounterValue) {
        let total = self.0.entry(event).or_default();
        total.running += value.time_running;
        total.lost += value.lost.unwrap_or(0);
        match task {
            None => total.enabled_on_cpus += value.time_enabled,
            Some(task) => {
                let enabled = total.enabled_for_tasks.entry(task).or_default();
                *enabled = value.time_enabled.max(*enabled);
            }
        }
    }

    /// What must be known of these events before their samples are trusted, in sentences.
    pub fn warnings(&self, names: &[&str]) -> Vec<String> {
        let mut warnings = Vec::new();
        for (&event, total) in &self.0 {
            let name = names.get(event).copied().unwrap_or_default();
            if let Some(share) = total.share_counted().filter(|&share| share < WHOLE_TIME) {
                warnings.push(format!(
                    "event {name} was on a counter {:.0} % of the time only, since there are more events than \
                     counters; record fewer events for exact counts",
                    share * 100.0
                ));
            }
            if total.lost > 0 {
                warnings.push(format!(
                    "{} samples of event {name} were lost, since the ring was full; lower the rate (-F, -c) or \
                     leave out call paths (--call-graph none)",
                    total.lost
                ));
            }
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(time_enabled: u64, time_running: u64, lost: Option<u64>) -> CounterValue {
        CounterValue { value: 1, time_enabled, time_running, lost }
    }

    #[test]
    fn only_what_was_shared_or_lost_is_worth_a_warning() {
        let mut totals = EventTotals::default();
        totals.add(0, None, &value(100, 100, Some(0)));
        totals.add(1, None, &value(100, 100, None));
        totals.add(1, None, &value(100, 20, Some(7)));
        totals.add(2, None, &value(0, 0, None));
        let warnings = totals.warnings(&["cycles", "r01", "r02"]);
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with("event r01 was on a counter 60 % of the time"), "{warnings:?}");
        assert!(warnings[1].starts_with("7 samples of event r01 were lost"), "{warnings:?}");
    }

    #[test]
    fn a_task_that_moves_between_cpus_does_not_look_multiplexed() {
        let mut totals = EventTotals::default();
        totals.add(0, Some(7), &value(100, 60, None));
        totals.add(0, Some(7), &value(100, 40, None));
        totals.add(0, Some(8), &value(50, 50, None));
        totals.add(0, Some(8), &value(0, 0, None));
        assert!(totals.warnings(&["cycles"]).is_empty());
    }
}

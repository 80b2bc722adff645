//! What the counters counted, beside what their samples stand for.
//!
//! Each sample stands for a period of its event's counts, so all samples together are what the counter counted, but for
//! the period that each counter was in at the end. Where interrupts come late or not at all (throttled, in a virtual
//! machine that waits for its host, by a counter that the firmware uses, too) samples are missing that no record tells
//! of, and whatever ran then has too few joules. The recorder writes what each counter counted at the end.

use crate::profile::EventTotals;

/// Samples that stand for less than this share of the counts are worth a warning: 5 % of joules is more than
/// most error bars.
const WHOLE: f64 = 0.95;

/// Counts of the events, in the order of [`EventTotals`], of a whole recording: a part has other samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissedCounts(Vec<Counts>);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    counted: f64,
    /// How many counters that was.
    counters: f64,
}

impl MissedCounts {
    /// What one counter counted in all the time.
    pub fn counted(&mut self, event: usize, value: u64) {
        if self.0.len() <= event {
            self.0.resize(event + 1, Counts::default());
        }
        let counts = &mut self.0[event];
        counts.counted += value as f64;
        counts.counters += 1.0;
    }

    /// What the reader must know, of events for which `is_counter` holds: a clock's ticks are no counts. Where records are
    /// known to be lost, that is said, and has a row of its own in the balance.
    pub fn warnings(&self, events: &[EventTotals], is_counter: impl Fn(usize) -> bool) -> Vec<String> {
        if events.iter().any(|event| event.lost > 0) {
            return Vec::new();
        }
        let told = |(index, (counts, event)): (usize, (&Counts, &EventTotals))| {
            let share = counts.share(event).filter(|share| *share < WHOLE && is_counter(index))?;
            Some(format!(
                "samples of event {} stand for {:.0} % of what its counters counted: interrupts came late or never, or tasks ended \
                 before their first sample, and nothing tells what ran then. Joules of functions may be wrong by as much, beyond \
                 their error; record at a lower rate (-F), or short tasks by -e cpu-clock",
                event.name,
                100.0 * share
            ))
        };
        self.0.iter().zip(events).enumerate().filter_map(told).collect()
    }
}

impl Counts {
    /// The share of the counts that samples stand for, the last period of each counter left out; `None` where nothing
    /// was counted, or too little to tell.
    fn share(self, event: &EventTotals) -> Option<f64> {
        const FEWEST: f64 = 100.0;
        let sampled = event.count as f64;
        let period = sampled / event.samples as f64;
        let complete = self.counted - self.counters * period;
        (event.samples > 0 && complete > FEWEST * period).then(|| sampled / complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples that stand for a million each.
    fn event(name: &str, samples: u64, lost: u64) -> EventTotals {
        EventTotals { name: name.to_owned(), samples, count: samples * 1_000_000, lost, throttled: 0 }
    }

    /// Two counters of two events: 4,000 of 4,100 periods are sampled of the first, 2,000 of the second.
    fn counts() -> MissedCounts {
        let mut counts = MissedCounts::default();
        for event in [0, 1] {
            (0..2).for_each(|_| counts.counted(event, 2_050_000_000));
        }
        counts
    }

    #[test]
    fn samples_that_are_missing_without_a_record_are_told() {
        let counts = counts();
        let events = |second: &str, lost| [event("cycles", 4000, lost), event(second, 2000, 0)];
        let share = counts.0[0].share(&events("stalls", 0)[0]).expect("counted");
        assert!((share - 4000.0 / 4098.0).abs() < 1e-12);
        let told = counts.warnings(&events("stalls", 0), |_| true);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("samples of event stalls stand for 49 % of what its counters"),
            "{told:?}"
        );
        assert!(counts.warnings(&events("cpu-clock", 0), |at| at == 0).is_empty());
        assert!(counts.warnings(&events("stalls", 7), |_| true).is_empty());
    }

    /// A program of many short threads ends in the middle of a period in each of them; nothing counted is no share.
    #[test]
    fn what_is_too_little_to_tell_is_not_told() {
        let mut many = counts();
        (0..2000).for_each(|_| many.counted(1, 600_000));
        let share = many.0[1].share(&event("stalls", 2000, 0)).expect("counted");
        assert!(share > 0.6, "each has a period of its own: {:?}", many.0[1]);
        let mut few = MissedCounts::default();
        few.counted(0, 90_000_000);
        assert_eq!(few.0[0].share(&event("cycles", 1, 0)), None);
        assert_eq!(Counts::default().share(&event("cycles", 0, 0)), None);
    }
}

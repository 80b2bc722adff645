//! What the counters counted, beside what their samples stand for.
//!
//! Each sample stands for a period of its event's counts, so all samples together are what the counter counted, but for
//! the period that each counter was in at the end. Where interrupts come late or not at all (in a virtual
//! machine that waits for its host, by a counter that the firmware uses, too) samples are missing that no record tells
//! of, and whatever ran then has too few joules. The recorder writes what each counter counted at the end.

use rustc_hash::FxHashMap;

use crate::analyze::intervals::unsampled_tasks::Known;
use crate::profile::EventTotals;

/// Samples that stand for less than this share of the counts are worth a warning: 5 % of joules is more than
/// most error bars.
const WHOLE: f64 = 0.95;

/// Counts of the events of a whole recording: a part has other samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct MissedCounts {
    /// The latest value of each counter by its number, and its event in the order of [`EventTotals`].
    latest: FxHashMap<u64, (usize, u64)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    counted: f64,
    /// How many counters that was.
    counters: f64,
}

impl MissedCounts {
    /// What a counter counted so far.
    pub fn counted(&mut self, counter: u64, event: usize, value: u64) {
        self.latest.insert(counter, (event, value));
    }

    /// What the reader must know, of events of which `made_up` tells what samples stand for beyond their periods: `None` of a
    /// clock, whose ticks are no counts. What is known to be of tasks between their samples is nothing to be said. Where records
    /// are known to be lost, that is said, and has a row of its own in the balance.
    pub fn warnings(
        &self,
        events: &[EventTotals],
        made_up: impl Fn(usize) -> Option<u64>,
        known: impl Fn(usize) -> Known,
    ) -> Vec<String> {
        if events.iter().any(|event| event.lost > 0) {
            return Vec::new();
        }
        let told = |(index, event): (usize, &EventTotals)| {
            let made_up = made_up(index)?;
            let Known { told, unfinished } = known(index);
            let share = match made_up {
                0 => self.of_event(index).share(event, told + unfinished)?,
                // What is unfinished is made up, too.
                _ => {
                    let sampled = event.count as f64;
                    let unfinished = unfinished.min(made_up as f64);
                    (sampled + told + unfinished) / (sampled + told + made_up as f64)
                }
            };
            let (name, percent) = (&event.name, 100.0 * share);
            let told = match made_up {
                0 => format!(
                    "samples of event {name} stand for {percent:.0} % of what its counters counted: interrupts came late or \
                     never, or tasks ended before their first sample, and nothing tells what ran then. Joules of functions may be \
                     wrong by as much, beyond their error; record at a lower rate (-F), or short tasks by -e cpu-clock"
                ),
                _ => format!(
                    "the periods of samples of event {name} are {percent:.0} % of what happened: interrupts came late or never, \
                     the kernel held them back, or the event took turns with others on a counter. The samples around weigh \
                     the more for it: what ran while none came is taken to be what ran before and after; record at a lower \
                     rate (-F), or fewer events (-e)"
                ),
            };
            (share < WHOLE).then_some(told)
        };
        events.iter().enumerate().filter_map(told).collect()
    }

    fn of_event(&self, event: usize) -> Counts {
        let of_event = self.latest.values().filter(|(of, _)| *of == event);
        of_event.fold(Counts::default(), |sum, (_, value)| Counts {
            counted: sum.counted + *value as f64,
            counters: sum.counters + 1.0,
        })
    }
}

impl Counts {
    /// The share of the counts that samples stand for or that are `known` besides, the last period of each counter left out;
    /// `None` where nothing was counted, or too little to tell.
    fn share(self, event: &EventTotals, known: f64) -> Option<f64> {
        const FEWEST: f64 = 100.0;
        let sampled = event.count as f64;
        let period = sampled / event.samples as f64;
        let complete = self.counted - self.counters * period;
        (event.samples > 0 && complete > FEWEST * period).then(|| (sampled + known) / complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples that stand for a million each.
    fn event(name: &str, samples: u64, lost: u64) -> EventTotals {
        EventTotals {
            name: name.to_owned(),
            samples,
            count: samples * 1_000_000,
            lost,
            ..EventTotals::default()
        }
    }

    /// Two counters of two events: 4,000 of 4,100 periods are sampled of the first, 2,000 of the second.
    fn counts() -> MissedCounts {
        let mut counts = MissedCounts::default();
        for event in [0, 1] {
            for counter in 0..2 {
                let number = 10 * event as u64 + counter;
                counts.counted(number, event, 50_000_000);
                counts.counted(number, event, 2_050_000_000);
            }
        }
        counts
    }

    #[test]
    fn samples_that_are_missing_without_a_record_are_told() {
        let counts = counts();
        let events = |second: &str, lost| [event("cycles", 4000, lost), event(second, 2000, 0)];
        let share = counts.of_event(0).share(&events("stalls", 0)[0], 0.0).expect("counted");
        assert!((share - 4000.0 / 4098.0).abs() < 1e-12);
        let told = |second: &str, lost, made_up: [Option<u64>; 2]| {
            counts.warnings(&events(second, lost), |event| made_up[event], |_| Known::default())
        };
        let half = told("stalls", 0, [Some(0); 2]);
        assert!(half.len() == 1 && half[0].starts_with("samples of event stalls stand for 49 %"), "{half:?}");
        assert!(told("cpu-clock", 0, [Some(0), None]).is_empty());
        assert!(told("stalls", 7, [Some(0); 2]).is_empty());
        let made_up = told("stalls", 0, [Some(0), Some(2_000_000_000)]);
        assert!(made_up.len() == 1 && made_up[0].contains("stalls are 50 % of what happened"), "{made_up:?}");
        assert!(told("stalls", 0, [Some(0), Some(20_000_000)]).is_empty());
    }

    /// A program of many short threads ends in the middle of a period in each of them; nothing counted is no share.
    #[test]
    fn what_is_too_little_to_tell_is_not_told() {
        let mut many = counts();
        (100..2100).for_each(|counter| many.counted(counter, 1, 600_000));
        let share = many.of_event(1).share(&event("stalls", 2000, 0), 0.0).expect("counted");
        assert!(share > 0.6, "each has a period of its own: {:?}", many.of_event(1));
        let mut few = MissedCounts::default();
        few.counted(7, 0, 90_000_000);
        assert_eq!(few.of_event(0).share(&event("cycles", 1, 0), 0.0), None);
        assert_eq!(Counts::default().share(&event("cycles", 0, 0), 0.0), None);
    }

    /// Of 4,098 periods 2,000 have samples.
    #[test]
    fn what_is_known_of_tasks_is_not_missing_and_what_they_were_in_when_they_ended_neither() {
        let events = [event("cycles", 4000, 0), event("stalls", 2000, 0)];
        let warnings = |told: f64, unfinished: f64| {
            let known = |event| if event == 1 { Known { told, unfinished } } else { Known::default() };
            counts().warnings(&events, |_| Some(0), known)
        };
        let short = warnings(0.5e9, 0.5e9);
        assert!(short.len() == 1 && short[0].contains("stalls stand for 73 %"), "{short:?}");
        // Neither of them alone is enough.
        assert!(warnings(1e9, 1e9).is_empty());
        assert_eq!((warnings(1e9, 0.0).len(), warnings(0.0, 1e9).len()), (1, 1));
    }
}

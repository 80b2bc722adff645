//! What records stood for that the kernel had no room for.
//!
//! The kernel says on which CPU how many records were lost, and not of which events: the rings are shared
//! by all. They are divided by the pace at which each event was sampled on that CPU just before, and lie
//! between its last sample and the moment when there was room again.

use crate::analyze::intervals::pace::weight_of_latest;
use crate::analyze::intervals::spans::Span;
use crate::analyze::sample_key::MOST_CPUS;
use crate::attribute::{Charge, Quantum};
use crate::units::{Nanoseconds, Timestamp};

/// How far back a sample's events can reach.
pub(crate) const HORIZON: Nanoseconds = Nanoseconds::from_millis(200);

/// The pace of samples on each CPU.
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// By CPU, then by event.
    cpus: Vec<Vec<Pace>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    last: Option<Timestamp>,
    /// A loss ended at `last`, and not a sample's period.
    after_loss: bool,
    /// Nanoseconds and events from one sample to the next, as of late; zero until there were two.
    gap: f64,
    events: f64,
}

/// What was lost of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Index of the sampled event.
    pub event: u32,
    /// Events that were not seen.
    pub count: u64,
    /// When they began.
    pub start: Timestamp,
}

impl Loss {
    /// Attribution does not wait so long for what happened: of a loss that ends then it must be told before.
    pub fn is_long(&self, end: Timestamp) -> bool {
        end.since(self.start).as_nanos() > HORIZON.as_nanos() / 2
    }

    /// As attribution takes it: what ended then, while its CPU ran as long as `span` says.
    pub fn quantum(self, end: Timestamp, cpu: Option<u32>, span: Span) -> Quantum {
        let Self { event, count, start } = self;
        Quantum { start, end, cpu, event, count, running: span.running, charge: Charge::Lost }
    }
}

impl Losses {
    /// A sample of `count` events. Call in time order.
    #[inline]
    pub fn sampled(&mut self, event: u32, cpu: Option<u32>, time: Timestamp, count: u64) {
        let Some(pace) = self.pace(event as usize, cpu) else { return };
        if let Some(last) = pace.last
            && !pace.after_loss
        {
            let new = weight_of_latest(pace.gap);
            pace.gap += new * (time.since(last).as_nanos() as f64 - pace.gap);
            pace.events += new * (count as f64 - pace.events);
        }
        (pace.last, pace.after_loss) = (Some(time), false);
    }

    /// So many records were lost on a CPU up to a time. Empty if nothing was sampled there before.
    pub fn lost(&mut self, cpu: Option<u32>, time: Timestamp, records: u64) -> Vec<Loss> {
        let Some(paces) = slot(cpu).and_then(|slot| self.cpus.get_mut(slot)) else { return Vec::new() };
        let Some(start) = paces.iter().filter_map(|pace| pace.last).max() else { return Vec::new() };
        let span = time.since(start).as_nanos() as f64;
        let expected = |pace: &Pace| match pace.last {
            // An event that has not been seen for long is rare in what runs now.
            Some(last) if pace.gap > 0.0 => span / pace.gap.max(start.since(last).as_nanos() as f64),
            _ => 0.0,
        };
        let all: f64 = paces.iter().map(expected).sum();
        if all <= 0.0 {
            return Vec::new();
        }
        let mut losses = Vec::new();
        for (event, pace) in paces.iter_mut().enumerate() {
            let of_event = records as f64 * expected(pace) / all;
            let count = (of_event * pace.events).round() as u64;
            if count > 0 {
                losses.push(Loss { event: event as u32, count, start });
                (pace.last, pace.after_loss) = (Some(time), true);
            }
        }
        losses
    }

    #[inline]
    fn pace(&mut self, event: usize, cpu: Option<u32>) -> Option<&mut Pace> {
        let slot = slot(cpu)?;
        if self.cpus.len() <= slot {
            self.cpus.resize_with(slot + 1, Vec::new);
        }
        let paces = &mut self.cpus[slot];
        if paces.len() <= event {
            paces.resize(event + 1, Pace::default());
        }
        paces.get_mut(event)
    }
}

fn slot(cpu: Option<u32>) -> Option<usize> {
    let slot = cpu.map_or(0, |cpu| cpu as usize + 1);
    (slot <= MOST_CPUS as usize).then_some(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_nanos(micros * 1000)
    }

    #[test]
    fn lost_records_are_divided_by_pace() {
        let mut losses = Losses::default();
        for micro in 0..40 {
            losses.sampled(0, Some(1), at(micro * 100), 1000);
            if micro % 4 == 0 {
                losses.sampled(2, Some(1), at(micro * 100), 7);
            }
        }
        // 9.9 ms since the last sample, of which there are 99 periods of the one and 24.75 of the other: 4 to 1.
        let found = losses.lost(Some(1), at(13_800), 125);
        let loss = |event, count, micros| Loss { event, count, start: at(micros) };
        assert_eq!(found, [loss(0, 100_000, 3_900), loss(2, 25 * 7, 3_900)]);
        // The next sample comes soon after the loss, which is not its period.
        losses.sampled(0, Some(1), at(13_810), 1000);
        losses.sampled(0, Some(1), at(13_910), 1000);
        // A millisecond: ten periods of the one, two and a half of the other.
        assert_eq!(losses.lost(Some(1), at(14_910), 10), [loss(0, 8_000, 13_910), loss(2, 2 * 7, 13_910)]);
        // The other was last seen 2.01 ms before: 0.249 of its periods since then, beside five of the first.
        (0..21).for_each(|step| losses.sampled(0, Some(1), at(14_920 + step * 100), 1000));
        let found = losses.lost(Some(1), at(17_420), 21);
        assert_eq!(found, [loss(0, 20_005, 16_920), loss(2, 7, 16_920)]);
        // What is too little for one event is none.
        let found = losses.lost(Some(1), at(17_421), 0);
        assert_eq!(found, []);
    }

    #[test]
    fn paces_follow_what_is_sampled_lately_on_that_cpu() {
        let mut losses = Losses::default();
        for (cpu, period) in [(None, 100), (Some(0), 200), (Some(8191), 400)] {
            (0..10).for_each(|step| losses.sampled(0, cpu, at(step * period), period));
            (0..10).for_each(|step| losses.sampled(1, cpu, at(step * period), 1));
        }
        for (cpu, period) in [(None, 100), (Some(0), 200), (Some(8191), 400)] {
            let found = losses.lost(cpu, at(19 * period), 20);
            let start = at(9 * period);
            let expected =
                [Loss { event: 0, count: 10 * period, start }, Loss { event: 1, count: 10, start }];
            assert_eq!(found, expected, "{cpu:?}");
        }
        losses.sampled(0, Some(8192), at(0), 5);
        assert_eq!(losses.cpus.len(), MOST_CPUS as usize + 1);
    }

    #[test]
    fn half_the_horizon_is_not_long() {
        let loss = Loss { event: 0, count: 1, start: Timestamp::from_nanos(7) };
        let ends = |nanos: u64| loss.is_long(Timestamp::from_nanos(7 + nanos));
        assert!(!ends(100_000_000) && ends(100_000_001));
    }

    #[test]
    fn a_loss_lies_between_the_last_sample_and_the_news_of_it() {
        let mut losses = Losses::default();
        (0..10).for_each(|step| losses.sampled(0, Some(1), at(step * 100), 1000));
        let [loss] = losses.lost(Some(1), at(1500), 6)[..] else { panic!("one event was sampled") };
        assert_eq!((loss.start, loss.count), (at(900), 6000));
        let span = Span { start: at(1400), running: Nanoseconds::from_nanos(600_000) };
        let quantum = loss.quantum(at(1500), Some(1), span);
        assert_eq!((quantum.start, quantum.end, quantum.count), (at(900), at(1500), 6000));
        assert_eq!((quantum.charge, quantum.running), (Charge::Lost, span.running));
    }

    #[test]
    fn nothing_is_known_of_a_cpu_without_samples() {
        let mut losses = Losses::default();
        losses.sampled(0, Some(1), at(1), 5);
        assert_eq!(losses.lost(Some(1), at(2), 3), [], "one sample has no pace");
        assert_eq!(losses.lost(Some(9), at(2), 3), []);
        losses.sampled(0, Some(u32::MAX), at(1), 5);
        assert!(losses.cpus.len() < 10);
    }
}

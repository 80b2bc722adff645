//! Sampling in a part of the time.
//!
//! In each cycle there is one stretch in which samples are taken; where in the cycle is drawn anew each time, so that
//! it does not fall into step with what a machine does every ten seconds. Until the next stretch begins the samples of each
//! CPU are told to be lost, as the kernel tells of a ring that was full: attribution then knows that something ran there of
//! which nothing is known, and books the joules to what was lost, and neither to whatever was sampled last nor to a machine at
//! rest. That is told many times a second, since attribution does not wait long for what happened.

use std::time::{Duration, Instant};

use perf_data::encode::{self, RecordTooLong, SampleId};

use crate::numerics::random::Random;
use crate::process::clocks::monotonic_now;
use crate::record::counters::Counters;
use crate::record::options::{DutyCycle, SamplingRate};
use crate::units::Timestamp;

/// Samples a second that an event is taken to have missed, where nobody said how often it is sampled.
const USUAL_RATE: f64 = 999.0;

/// Between two tellings of what was missed.
const TELLING: Duration = Duration::from_millis(90);

/// Turns sampling on and off.
#[derive(Debug)]
pub struct Duty {
    cycle: DutyCycle,
    /// Samples a second on a busy CPU.
    rate: f64,
    random: Random,
    /// Whether samples are taken now.
    is_on: bool,
    /// When that changes.
    next: Instant,
    /// When the next cycle starts.
    cycle_end: Instant,
    /// Until when it was told what was missed, or when sampling was turned off.
    told: Timestamp,
}

impl Duty {
    /// Of counters that count now. `now` is the recording's clock.
    pub fn new(cycle: DutyCycle, rate: SamplingRate, now: Timestamp) -> Self {
        let rate = match rate {
            SamplingRate::Frequency(hertz) => hertz as f64,
            SamplingRate::Thinned(times) => USUAL_RATE / f64::from(times.get()),
            SamplingRate::Default | SamplingRate::Period(_) => USUAL_RATE,
        };
        let started = Instant::now();
        Self {
            cycle,
            rate,
            random: Random::seeded(now.as_nanos()),
            is_on: true,
            next: started + cycle.on,
            cycle_end: started + cycle.cycle,
            told: now,
        }
    }

    /// When to look again.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Turns sampling on or off, if it is time, and appends what was missed.
    ///
    /// # Errors
    /// None: a record of what was lost is short.
    pub fn step(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordTooLong> {
        let is_over = now >= self.next;
        let time = monotonic_now();
        if self.is_on {
            if is_over {
                counters.pause_sampling();
                self.told = time;
            }
        } else if is_over || time.since(self.told).as_nanos() >= TELLING.as_nanos() as u64 {
            self.tell_missed(time, counters, out)?;
            self.told = time;
            if is_over {
                counters.resume_sampling();
            }
        }
        if is_over {
            self.turn(now);
        }
        Ok(())
    }

    /// The state after a change, and how long it lasts.
    fn turn(&mut self, now: Instant) {
        self.is_on = !self.is_on;
        if self.is_on {
            self.next = now + self.cycle.on;
            return;
        }
        // A recorder that was held up for long begins anew.
        let start = self.cycle_end.max(now);
        let room = self.cycle.cycle.saturating_sub(self.cycle.on);
        // The stretch ends within its cycle.
        self.next = start + room.mul_f64(self.random.uniform());
        self.cycle_end = start + self.cycle.cycle;
    }

    /// A record of each CPU: as many samples as it would have had, had it been busy.
    fn tell_missed(
        &self,
        now: Timestamp,
        counters: &Counters,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordTooLong> {
        let missed = (now.since(self.told).as_secs_f64() * self.rate).ceil().max(1.0) as u64;
        let mut last = None;
        for (cpu, id) in counters.sampled_ids() {
            // Those of a CPU stand together, and one event speaks for all.
            if last.replace(cpu) != Some(cpu) {
                encode::lost(missed, &SampleId { pid: 0, tid: 0, time: now, cpu, id }, out)?;
            }
        }
        Ok(())
    }
}

impl DutyCycle {
    /// Samples for this share of the time, in cycles of this length at most; `None` for all of the time. A stretch has a
    /// few samples at least: short ones make the cycle longer.
    pub fn of_share(share: f64, rate: f64, longest: Duration) -> Option<Self> {
        /// A stretch with fewer has hardly begun.
        const FEWEST_SAMPLES: f64 = 5.0;
        if !(share > 0.0 && share < 1.0) {
            return None;
        }
        let shortest = Duration::from_secs_f64(FEWEST_SAMPLES / rate.max(1.0));
        let on = longest.mul_f64(share).max(shortest);
        Some(Self { on, cycle: Duration::from_secs_f64(on.as_secs_f64() / share) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_for_their_share_of_the_time() {
        let cycle = DutyCycle::of_share(0.1, 100.0, Duration::from_secs(10)).expect("a part");
        assert_eq!(cycle, DutyCycle { on: Duration::from_secs(1), cycle: Duration::from_secs(10) });
        let mut duty = Duty::new(cycle, SamplingRate::Frequency(100), crate::units::Timestamp::from_nanos(7));
        let first = duty.next();
        let (mut on, mut now) = (Duration::ZERO, first);
        for _ in 0..2_000 {
            duty.turn(now);
            let next = duty.next();
            if duty.is_on {
                on += next - now;
            }
            now = next;
        }
        let share = on.as_secs_f64() / (now - first).as_secs_f64();
        assert!((share - 0.1).abs() < 0.002, "{share}");
    }

    #[test]
    fn a_stretch_has_samples_and_the_share_stays() {
        let cycle = DutyCycle::of_share(0.01, 19.0, Duration::from_secs(10)).expect("a part");
        assert!(cycle.on.as_secs_f64() * 19.0 >= 4.999);
        assert!((cycle.on.as_secs_f64() / cycle.cycle.as_secs_f64() - 0.01).abs() < 1e-6);
        assert_eq!(DutyCycle::of_share(1.0, 49.0, Duration::from_secs(10)), None);
    }
}

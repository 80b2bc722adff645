//! What each meter had counted by any instant that windows may be cut at.

use std::collections::VecDeque;

use perf_data::encode::RecordTooLong;

use crate::recording::energy::EnergyReading;
use crate::recording::own_events;
use crate::units::{Joules, Timestamp};

/// Readings kept of a meter: an hour's of a slow one, and seconds' of the fastest.
const MOST_READINGS: usize = 1 << 16;

/// The readings of all domains around the next cut.
#[derive(Debug, Default)]
pub struct MeterCurves {
    curves: Vec<Curve>,
}

#[derive(Debug, Default)]
struct Curve {
    readings: VecDeque<(Timestamp, EnergyReading)>,
    cpu: u32,
}

impl MeterCurves {
    /// Of so many domains, none of them read.
    pub fn new(domains: usize) -> Self {
        Self { curves: (0..domains).map(|_| Curve::default()).collect() }
    }

    /// A reading. One that goes backwards in time or energy is none to interpolate by.
    pub fn push(&mut self, domain: usize, time: Timestamp, cpu: u32, reading: EnergyReading) {
        let Some(curve) = self.curves.get_mut(domain) else { return };
        curve.cpu = cpu;
        let last = curve.readings.back();
        if last.is_none_or(|(before, last)| *before < time && last.energy <= reading.energy) {
            curve.readings.push_back((time, reading));
            if curve.readings.len() > MOST_READINGS {
                curve.readings.pop_front();
            }
        }
    }

    /// The first reading of all.
    pub fn first(&self) -> Option<Timestamp> {
        self.curves.iter().filter_map(|curve| curve.readings.front()).map(|(time, _)| *time).min()
    }

    /// The last reading of all.
    pub fn last(&self) -> Option<Timestamp> {
        self.curves.iter().filter_map(|curve| curve.readings.back()).map(|(time, _)| *time).max()
    }

    /// All domains that have been read were read at `time` or later.
    pub fn reach(&self, time: Timestamp) -> bool {
        self.curves.iter().all(|curve| curve.readings.back().is_none_or(|(last, _)| *last >= time))
    }

    /// What a domain had counted at `time`, in proportion between two readings; `None` before its first one. Behind the
    /// last one it has counted no more, for all that is known.
    pub fn at(&self, domain: usize, time: Timestamp) -> Option<EnergyReading> {
        let readings = &self.curves.get(domain)?.readings;
        let behind = readings.partition_point(|(at, _)| *at <= time);
        let (before, reading) = *readings.get(behind.checked_sub(1)?)?;
        let Some((after, next)) = readings.get(behind) else { return Some(reading) };
        let share = time.since(before).as_nanos() as f64 / after.since(before).as_nanos().max(1) as f64;
        let energy = reading.energy + (next.energy - reading.energy) * share;
        Some(EnergyReading { energy, uncertainty: reading.uncertainty.max(next.uncertainty), ..reading })
    }

    /// Appends what all domains had counted at `time`, as readings of that time.
    ///
    /// # Errors
    /// None: a reading is short.
    pub fn encode_at(&self, time: Timestamp, out: &mut Vec<u8>) -> Result<(), RecordTooLong> {
        for (domain, curve) in self.curves.iter().enumerate() {
            if let Some(reading) = self.at(domain, time) {
                own_events::energy(domain, &reading, time, curve.cpu, out)?;
            }
        }
        Ok(())
    }

    /// Forgets what no later cut needs.
    pub fn forget_before(&mut self, time: Timestamp) {
        for curve in &mut self.curves {
            while curve.readings.get(1).is_some_and(|(next, _)| *next <= time) {
                curve.readings.pop_front();
            }
        }
    }

    /// What all domains together count from one instant to a later one, each from its first reading on.
    pub fn counted(&self, domain: usize, from: Timestamp, to: Timestamp) -> Joules {
        let start = self.at(domain, from).or_else(|| Some(self.curves.get(domain)?.readings.front()?.1));
        let end = self.at(domain, to);
        match (start, end) {
            (Some(start), Some(end)) => end.energy - start.energy,
            _ => Joules::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanoseconds;

    fn reading(joules: f64) -> EnergyReading {
        EnergyReading { energy: Joules::from_joules(joules), raw: 0, uncertainty: Nanoseconds::ZERO }
    }

    fn at(nanos: u64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn cuts_lie_on_the_line_between_readings() {
        let mut curves = MeterCurves::new(2);
        for (time, joules) in [(100, 1.0), (200, 3.0), (150, 9.0), (300, 2.0), (300, 4.0)] {
            curves.push(0, at(time), 0, reading(joules));
        }
        let joules = |time| curves.at(0, at(time)).map(|reading| reading.energy.as_joules());
        assert_eq!(
            [99, 100, 150, 250, 300, 900].map(joules),
            [None, Some(1.0), Some(2.0), Some(3.5), Some(4.0), Some(4.0)]
        );
        assert_eq!(curves.at(1, at(150)), None, "it was never read");
        assert!(curves.reach(at(300)) && !curves.reach(at(301)));
        assert_eq!(curves.counted(0, at(0), at(250)).as_joules(), 2.5);
    }

    #[test]
    fn what_a_cut_needs_is_kept() {
        let mut curves = MeterCurves::new(1);
        (0..100).for_each(|step| curves.push(0, at(step * 10), 0, reading(step as f64)));
        let before = curves.at(0, at(515));
        curves.forget_before(at(515));
        assert_eq!(curves.at(0, at(515)), before);
        assert_eq!(curves.first(), Some(at(510)));
    }
}

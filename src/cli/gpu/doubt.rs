//! How far the joules of a burst may be off, by all that is not known of it.

use eprof::gpu::correct::Corrected;
use eprof::gpu::curve::PowerCurve;
use eprof::gpu::known_steps::KnownSteps;
use eprof::gpu::phases::IdleLevel;
use eprof::units::{Nanoseconds, Timestamp};

/// What is known of the load beside the trace.
#[derive(Clone, Copy)]
pub enum Knowing<'c> {
    /// Bursts were found in the trace itself.
    Nothing,
    /// The times at which it switches, between which it is steady.
    WhenItSwitches,
    /// The same, and the trace was corrected by them.
    Steps(&'c KnownSteps),
}

impl Knowing<'_> {
    /// The sensor tells how long a burst is, or where its energy was spent.
    pub fn resolves(self, corrected: &Corrected, burst: Nanoseconds) -> bool {
        match self {
            Self::Nothing => corrected.resolves(burst),
            Self::WhenItSwitches => burst >= corrected.resolution,
            Self::Steps(_) => true,
        }
    }
}

/// What energies of one trace are off by.
pub struct Doubt<'c> {
    pub corrected: &'c Corrected,
    pub curve: &'c PowerCurve,
    pub idle: Option<IdleLevel>,
    /// One standard error of the board's gain, as a share of it.
    pub gain_error: f64,
    pub knowing: Knowing<'c>,
}

impl Doubt<'_> {
    /// One standard error of an energy in joules.
    pub fn of_energy(&self, start: Timestamp, end: Timestamp) -> f64 {
        if let Knowing::Steps(known) = self.knowing {
            return known.std_error(start, end).as_joules().hypot(self.in_gaps(start, end));
        }
        let seen = self.corrected.doubt.std_error(self.curve, start, end).as_joules();
        let parts =
            [seen, self.between_windows(start, end), self.in_gaps(start, end), self.of_length(start, end)];
        root_of_squares(parts)
    }

    /// The same of what lies above idle, in its parts; `None` where that level is not known.
    pub fn above_idle(&self, start: Timestamp, end: Timestamp) -> Option<AboveIdle> {
        let idle = self.idle?;
        if let Knowing::Steps(known) = self.knowing
            && let Some(above) = known.above_idle(start, end)
        {
            return Some(AboveIdle {
                by_chance: above.by_chance.as_joules().hypot(self.in_gaps(start, end)),
                by_gain: above.by_gain.as_joules(),
                between_windows: 0.0,
                by_level: above.by_level.as_joules(),
            });
        }
        let duration = end.since(start);
        let above = (self.curve.energy(start, end) - idle.power * duration).as_joules();
        let gain = self.gain_error * above;
        let seen = self.corrected.doubt.std_error_above(self.curve, start, end, idle.power).as_joules();
        Some(AboveIdle {
            by_chance: (seen * seen - gain * gain).max(0.0).sqrt().hypot(self.in_gaps(start, end)),
            by_gain: gain,
            between_windows: self.between_windows(start, end),
            by_level: (idle.std_error * duration).as_joules(),
        })
    }

    /// The sensor tells how long a burst is, or where its energy was spent.
    fn resolves(&self, burst: Nanoseconds) -> bool {
        self.knowing.resolves(self.corrected, burst)
    }

    fn between_windows(&self, start: Timestamp, end: Timestamp) -> f64 {
        match self.knowing {
            Knowing::Nothing => self.corrected.unseen.error_between_windows(start, end).as_joules(),
            Knowing::WhenItSwitches | Knowing::Steps(_) => 0.0,
        }
    }

    fn in_gaps(&self, start: Timestamp, end: Timestamp) -> f64 {
        self.corrected.unseen.error_of_gaps(self.curve, start, end).as_joules()
    }

    /// Of a burst that is shorter than the sensor resolves. Where it was found in the trace, its length may be off by all
    /// of the resolution, and with it the idle power that is counted to it. Where its times are known, what the sensor
    /// spread over the resolution lies outside of them.
    fn of_length(&self, start: Timestamp, end: Timestamp) -> f64 {
        let (duration, resolution) = (end.since(start), self.corrected.resolution);
        if self.resolves(duration) || duration == Nanoseconds::ZERO {
            return 0.0;
        }
        // Anything from nothing to this, evenly.
        let even = 3f64.sqrt();
        let lowest = self.corrected.unseen.lowest();
        match self.knowing {
            Knowing::Nothing => (lowest * resolution).as_joules().abs() / even,
            Knowing::WhenItSwitches | Knowing::Steps(_) => {
                let above = (self.curve.energy(start, end) - lowest * duration).as_joules().abs();
                above * (resolution.as_secs_f64() / duration.as_secs_f64() - 1.0) / even
            }
        }
    }
}

/// Parts of one standard error of joules above idle.
#[derive(Clone, Copy)]
pub struct AboveIdle {
    /// Of each burst another.
    by_chance: f64,
    /// Of all bursts alike.
    by_gain: f64,
    between_windows: f64,
    by_level: f64,
}

impl AboveIdle {
    /// All parts together.
    pub fn std_error(self) -> f64 {
        root_of_squares([self.by_chance, self.by_gain, self.between_windows, self.by_level])
    }

    /// That of several bursts together.
    pub fn sum(bursts: &[Self]) -> Self {
        let sum = |part: fn(&Self) -> f64| bursts.iter().map(part).sum::<f64>();
        Self {
            by_chance: bursts.iter().map(|burst| burst.by_chance * burst.by_chance).sum::<f64>().sqrt(),
            by_gain: sum(|burst| burst.by_gain),
            between_windows: sum(|burst| burst.between_windows),
            by_level: sum(|burst| burst.by_level),
        }
    }
}

fn root_of_squares(parts: [f64; 4]) -> f64 {
    parts.iter().map(|part| part * part).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What differs from burst to burst averages out, what all have in common does not.
    #[test]
    fn bursts_add_up() {
        let burst = AboveIdle { by_chance: 3.0, by_gain: 2.0, between_windows: 1.0, by_level: 0.5 };
        let both = AboveIdle::sum(&[burst, burst]);
        assert!((both.std_error() - (18.0f64 + 16.0 + 4.0 + 1.0).sqrt()).abs() < 1e-12);
        assert!((burst.std_error() - (9.0f64 + 4.0 + 1.0 + 0.25).sqrt()).abs() < 1e-12);
    }
}

//! True power where the times are known at which a load was switched on and off.

use super::correct::Corrected;
use super::curve::{PowerCurve, Segment};
use super::infer::{KnownLevels, ReferenceError};
use super::outside::Outside;
use super::own_readings::OwnReadings;
use super::phases::IdleLevel;
use super::refresh;
use super::sensor::{Delay, SensorKind, SensorModel};
use super::trace::PowerTrace;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// How a load shows in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Bursts and rests have readings of their own, but for so many bursts.
    OneByOne {
        /// Bursts for which the others stand in.
        without: usize,
    },
    /// Too short for that; all readings together tell what load and rest draw.
    Together,
    /// Readings are all of nearly the same mixture: they tell what load and rest draw together, and not what each does.
    Mixed {
        /// What they tell differs from what was read by less than it is uncertain by: it is left as it was read.
        is_as_read: bool,
    },
}

/// A trace corrected by the times of switching.
#[derive(Debug, Clone)]
pub struct KnownSteps {
    /// How it shows.
    pub shown: Shown,
    /// The power.
    pub curve: PowerCurve,
    /// What the GPU rests at after load.
    pub idle: Option<IdleLevel>,
    model: SensorModel,
    levels: KnownLevels,
    own: Option<OwnReadings>,
    as_read: Option<AsRead>,
    /// The first switch and the last, and the time that one reading stands for outside of them.
    loaded: (Timestamp, Timestamp),
    period: Nanoseconds,
}

/// What is left as it was read from the first switch to the last.
#[derive(Debug, Clone, Copy)]
struct AsRead {
    power: Watts,
    /// By how much that is more than what all readings together tell.
    more: Watts,
    first: Timestamp,
    last: Timestamp,
}

impl AsRead {
    /// `None` where what readings tell together is known better than that.
    fn of(trace: &PowerTrace, levels: &KnownLevels, switches: &[Timestamp]) -> Option<Self> {
        let (&first, &last) = (switches.first()?, switches.last()?);
        let (told, error) = levels.energy(first, last);
        let read = trace.as_polled().energy(first, last);
        let duration = last.since(first);
        let is_unsure = (read - told).as_joules().abs() < error.as_joules();
        is_unsure.then(|| Self { power: read / duration, more: (read - told) / duration, first, last })
    }

    /// What the energy between two times is more than what readings tell.
    fn more(&self, start: Timestamp, end: Timestamp) -> Joules {
        self.more * end.min(self.last).since(start.max(self.first))
    }
}

impl KnownSteps {
    /// Of a trace and the times at which load was switched on and off in turn.
    ///
    /// # Errors
    /// [`ReferenceError`] if they do not meet, or if the sensor does not follow the times.
    pub fn of(
        trace: &PowerTrace,
        corrected: &Corrected,
        switches: &[Timestamp],
        model: &SensorModel,
    ) -> Result<Self, ReferenceError> {
        /// Of load above rest, one standard error: beyond it two levels are not worth drawing.
        const WORST_CONTRAST: f64 = 0.25;
        let refreshes = refresh::refreshes(trace, &corrected.refresh);
        let levels = KnownLevels::of(&refreshes, corrected.refresh.period, switches, model)
            .ok_or(ReferenceError::Unseen)?;
        ReferenceError::unless_followed(levels.residual, levels.range)?;
        let ends = corrected.segments.first().zip(corrected.segments.last());
        let span = ends.map(|(first, last)| (first.start, last.end)).ok_or(ReferenceError::TooShort)?;
        let (rest, std_error) = levels.rest();
        let idle = IdleLevel { power: model.scaled(rest), std_error: std_error * model.gain.abs() };
        let is_window = !matches!(model.kind, SensorKind::Rc { .. });
        let (loaded, period) = (loaded(switches, span), corrected.refresh.period);
        let own = is_window.then(|| OwnReadings::of(&refreshes, &levels, switches, span, model)).flatten();
        if let Some(own) = own {
            let curve = PowerCurve::from_segments(&own.segments);
            let shown = Shown::OneByOne { without: own.without };
            let idle = own.idle.unwrap_or(idle);
            return Ok(Self {
                shown,
                curve,
                idle: Some(idle),
                model: *model,
                levels,
                own: Some(own),
                as_read: None,
                loaded,
                period,
            });
        }
        let (contrast, error) = levels.contrast();
        let is_mixed = contrast <= Watts::ZERO || error.as_watts() > WORST_CONTRAST * contrast.as_watts();
        let as_read = AsRead::of(trace, &levels, switches).filter(|_| is_mixed);
        let between = match is_mixed {
            true => mixture(&levels, switches, span, as_read.map(|read| read.power)),
            false => staircase(&levels, switches, span),
        };
        let between = between.into_iter().map(|of| Segment { power: model.scaled(of.power), ..of });
        let outside = Outside::of(&refreshes, corrected, &levels, model);
        let behind = if switches.len().is_multiple_of(2) { rest } else { levels.high().0 };
        let mut segments = outside.before(span.0, loaded.0, rest);
        segments.extend(between);
        segments.extend(outside.after(loaded.1, span.1, behind));
        let shown = if is_mixed { Shown::Mixed { is_as_read: as_read.is_some() } } else { Shown::Together };
        let curve = PowerCurve::from_segments(&segments);
        let idle = Some(idle);
        Ok(Self { shown, curve, idle, model: *model, levels, own: None, as_read, loaded, period })
    }

    /// What lies between a window's end and its answer.
    pub fn delay(&self) -> Delay {
        self.levels.delay
    }

    /// One standard error of the curve's energy between two times, with the board's gain and offset.
    pub fn std_error(&self, start: Timestamp, end: Timestamp) -> Joules {
        let seen = match &self.own {
            Some(own) => own.std_error(start, end),
            None => {
                let (from, until) = self.within(start, end);
                let between = self.beside_read(self.levels.energy(from, until).1, start, end);
                hypot(between, self.error_outside(start, end))
            }
        };
        let by_gain = self.model.gain_error * self.curve.energy(start, end).as_joules();
        let by_offset = self.model.offset_error.as_watts() * end.since(start).as_secs_f64();
        Joules::from_joules(seen.as_joules().hypot(by_gain.hypot(by_offset)))
    }

    /// What lies between the first switch and the last.
    fn within(&self, start: Timestamp, end: Timestamp) -> (Timestamp, Timestamp) {
        let (first, last) = self.loaded;
        (start.clamp(first, last), end.clamp(first, last))
    }

    fn outside(&self, start: Timestamp, end: Timestamp) -> Nanoseconds {
        let (from, until) = self.within(start, end);
        let between = until.since(from).as_nanos();
        Nanoseconds::from_nanos(end.since(start).as_nanos().saturating_sub(between))
    }

    /// The error of what lies outside of that, where each reading stands for its own time.
    fn error_outside(&self, start: Timestamp, end: Timestamp) -> Joules {
        let readings = self.outside(start, end).as_secs_f64() / self.period.as_secs_f64();
        let of_one = self.levels.residual * self.model.gain.abs() * self.period;
        of_one * readings.sqrt()
    }

    /// The error of what readings tell, with what is taken in its place.
    fn beside_read(&self, error: Joules, start: Timestamp, end: Timestamp) -> Joules {
        let more = self.as_read.map_or(Joules::ZERO, |read| read.more(start, end));
        Joules::from_joules(error.as_joules().hypot(more.as_joules())) * self.model.gain.abs()
    }

    /// Energy above what the GPU rests at, and one standard error of it in its parts: by chance, and by the level at rest.
    pub fn above_idle(&self, start: Timestamp, end: Timestamp) -> Option<AboveRest> {
        let idle = self.idle?;
        let duration = end.since(start);
        let energy = self.curve.energy(start, end) - idle.power * duration;
        let (by_chance, by_level) = match &self.own {
            Some(own) => (own.std_error(start, end), idle.std_error * duration),
            None => {
                let (from, until) = self.within(start, end);
                let between = self.beside_read(self.levels.above_rest(from, until).1, start, end);
                let by_level = idle.std_error * self.outside(start, end);
                (hypot(between, self.error_outside(start, end)), by_level)
            }
        };
        let by_gain = Joules::from_joules(self.model.gain_error * energy.as_joules());
        Some(AboveRest { energy, by_chance, by_level, by_gain })
    }
}

/// Joules above rest, and parts of one standard error of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AboveRest {
    /// The joules.
    pub energy: Joules,
    /// What differs from burst to burst.
    pub by_chance: Joules,
    /// By the level at rest, of all bursts alike.
    pub by_level: Joules,
    /// By the board's gain, of all alike.
    pub by_gain: Joules,
}

fn hypot(a: Joules, b: Joules) -> Joules {
    Joules::from_joules(a.as_joules().hypot(b.as_joules()))
}

/// From the first switch to the last, as far as that lies in the trace.
fn loaded(switches: &[Timestamp], (first, last): (Timestamp, Timestamp)) -> (Timestamp, Timestamp) {
    let within = |at: Option<&Timestamp>, otherwise| at.map_or(otherwise, |at| (*at).clamp(first, last));
    (within(switches.first(), first), within(switches.last(), last))
}

/// From switch to switch.
fn staircase(
    levels: &KnownLevels,
    switches: &[Timestamp],
    (first, last): (Timestamp, Timestamp),
) -> Vec<Segment> {
    let power = |at: usize| if at.is_multiple_of(2) { levels.high().0 } else { levels.low().0 };
    let within = |at: Timestamp| at.clamp(first, last);
    let segment = |(at, pair): (usize, &[Timestamp])| Segment {
        start: within(pair[0]),
        end: within(pair[1]),
        power: power(at),
    };
    switches.windows(2).enumerate().map(segment).filter(|of| of.end > of.start).collect()
}

/// Load and the rests between at their mean, or at what was read.
fn mixture(
    levels: &KnownLevels,
    switches: &[Timestamp],
    span: (Timestamp, Timestamp),
    read: Option<Watts>,
) -> Vec<Segment> {
    let (start, end) = loaded(switches, span);
    if end <= start {
        return Vec::new();
    }
    let power = read.unwrap_or_else(|| levels.energy(start, end).0 / end.since(start));
    vec![Segment { start, end, power }]
}

#[cfg(test)]
#[path = "known_steps_tests.rs"]
mod tests;

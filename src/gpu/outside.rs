//! Power before the first switch of a load and after the last: by what was read there.
//!
//! Switching times tell what lies between them. What follows the last may be load or rest, as that time may be a switch
//! or only the end of a program; and a card at rest goes on falling. Readings that saw nothing else tell it.

use super::correct::Corrected;
use super::curve::Segment;
use super::infer::KnownLevels;
use super::refresh::Refresh;
use super::sensor::{SensorKind, SensorModel};
use crate::units::{Nanoseconds, Timestamp, Watts};

/// What a reading stands for; seconds from an origin, and watts by the board's gain.
struct Saw {
    start: f64,
    end: f64,
    watts: f64,
}

/// Readings with the time that each of them saw, by all that is plausible.
pub(super) struct Outside {
    origin: Timestamp,
    model: SensorModel,
    saw: Vec<Saw>,
}

impl Outside {
    /// From the readings of a window, or from what a capacitor was charged by between them.
    pub fn of(
        refreshes: &[Refresh],
        corrected: &Corrected,
        levels: &KnownLevels,
        model: &SensorModel,
    ) -> Self {
        let origin = corrected.segments.first().map_or(Timestamp::default(), |of| of.start);
        let second = |time| second(origin, time);
        let delay = levels.delay.seconds;
        let margin = levels.delay.std_error;
        let of_window = |of: &Refresh| {
            let (length, error) = levels.length;
            let margin = margin + 2.0 * error + 0.05 * length;
            Saw {
                start: second(of.earliest) - delay - length - margin,
                end: second(of.latest) - delay + margin,
                watts: model.scaled(of.power).as_watts(),
            }
        };
        let of_charge = |of: &Segment| Saw {
            start: second(of.start) - delay - margin,
            end: second(of.end) - delay + margin,
            watts: of.power.as_watts(),
        };
        let saw = match model.kind {
            SensorKind::Rc { .. } => corrected.segments.iter().map(of_charge).collect(),
            SensorKind::Boxcar { .. } | SensorKind::Counter => refreshes.iter().map(of_window).collect(),
        };
        Self { origin, model: *model, saw }
    }

    /// The power until the first switch; `otherwise`, in what the sensor shows, if no reading tells it.
    pub fn before(&self, from: Timestamp, until: Timestamp, otherwise: Watts) -> Vec<Segment> {
        let end = self.second(until);
        self.segments((from, until), |saw| saw.end <= end, otherwise)
    }

    /// The power from the last switch on.
    pub fn after(&self, from: Timestamp, until: Timestamp, otherwise: Watts) -> Vec<Segment> {
        let start = self.second(from);
        self.segments((from, until), |saw| saw.start >= start, otherwise)
    }

    /// At each time that of the nearest of these readings.
    fn segments(
        &self,
        (from, until): (Timestamp, Timestamp),
        is_here: impl Fn(&Saw) -> bool,
        otherwise: Watts,
    ) -> Vec<Segment> {
        let (start, end) = (self.second(from), self.second(until));
        let here = self.saw.iter().filter(|saw| is_here(saw));
        let mut middles: Vec<(f64, f64)> = here.map(|saw| ((saw.start + saw.end) / 2.0, saw.watts)).collect();
        middles.sort_by(|a, b| a.0.total_cmp(&b.0));
        let borders = middles.windows(2).map(|pair| ((pair[0].0 + pair[1].0) / 2.0).clamp(start, end));
        let time = |seconds: f64| self.origin + Nanoseconds::from_secs_f64(seconds);
        let edges: Vec<Timestamp> = std::iter::once(from).chain(borders.map(time)).chain([until]).collect();
        let otherwise = self.model.scaled(otherwise);
        let power = |at: usize| middles.get(at).map_or(otherwise, |(_, watts)| Watts::from_watts(*watts));
        let segment =
            |(at, pair): (usize, &[Timestamp])| Segment { start: pair[0], end: pair[1], power: power(at) };
        edges.windows(2).enumerate().map(segment).filter(|of| of.end > of.start).collect()
    }

    fn second(&self, time: Timestamp) -> f64 {
        second(self.origin, time)
    }
}

/// Windows reach back to before the first poll.
fn second(origin: Timestamp, time: Timestamp) -> f64 {
    if time >= origin { time.since(origin).as_secs_f64() } else { -origin.since(time).as_secs_f64() }
}

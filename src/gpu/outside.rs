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

impl Saw {
    /// A window of so long whose answer came between two times; its ends may lie farther apart by a margin each.
    fn through((earliest, latest): (f64, f64), (length, delay): (f64, f64), margin: f64, watts: f64) -> Self {
        Self { start: earliest - delay - length - margin, end: latest - delay + margin, watts }
    }
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
        let of_window = |of: &Refresh| {
            let answered = (second(of.earliest), second(of.latest));
            let watts = model.scaled(of.power).as_watts();
            Saw::through(answered, (levels.length.0, delay), levels.margin(), watts)
        };
        let of_charge = |of: &Segment| {
            let margin = levels.delay.std_error;
            Saw::through((second(of.start), second(of.end)), (0.0, delay), margin, of.power.as_watts())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_window_saw_reaches_as_far_as_is_plausible() {
        let saw = Saw::through((10.0, 10.1), (1.0, 0.2), 0.05, 300.0);
        assert!((saw.start - 8.75).abs() < 1e-9 && (saw.end - 9.95).abs() < 1e-9 && saw.watts == 300.0);
    }

    /// Readings of the time from 0 to 1, 1 to 2 and 2 to 3 s, of which those count that saw nothing of the load.
    #[test]
    fn the_nearest_reading_without_load_tells_the_power() {
        let at = |millis: u64| Timestamp::from_nanos(5_000_000_000 + millis * 1_000_000);
        let read = |second: f64, watts: f64| Saw { start: second, end: second + 1.0, watts };
        let outside = Outside {
            origin: at(0),
            model: SensorModel::new(SensorKind::Counter),
            saw: vec![read(0.0, 100.0), read(1.0, 110.0), read(2.0, 400.0)],
        };
        let shown = |segments: Vec<Segment>| -> Vec<(u64, u64, f64)> {
            let millis = |time: Timestamp| time.since(at(0)).as_nanos() / 1_000_000;
            segments.iter().map(|of| (millis(of.start), millis(of.end), of.power.as_watts())).collect()
        };
        let rest = Watts::from_watts(90.0);
        let before = |until: u64| shown(outside.before(at(0), at(until), rest));
        // Middles lie at 0.5 and 1.5 s.
        assert_eq!(before(2500), [(0, 1000, 100.0), (1000, 2500, 110.0)]);
        assert_eq!(before(2000), [(0, 1000, 100.0), (1000, 2000, 110.0)]);
        assert_eq!(before(1999), [(0, 1999, 100.0)]);
        assert_eq!(before(999), [(0, 999, 90.0)], "none saw rest alone");
        let after = |from: u64| shown(outside.after(at(from), at(4000), rest));
        assert_eq!(after(2000), [(2000, 4000, 400.0)]);
        assert_eq!(after(2001), [(2001, 4000, 90.0)]);
        assert_eq!(after(900), [(900, 2000, 110.0), (2000, 4000, 400.0)]);
    }
}

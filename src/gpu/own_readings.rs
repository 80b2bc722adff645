//! Bursts and rests that have readings of their own: those whose window lies in them from end to end.

use super::curve::Segment;
use super::infer::KnownLevels;
use super::phases::{IdleLevel, spread};
use super::refresh::Refresh;
use super::sensor::{SensorKind, SensorModel};
use crate::numerics::quantiles;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// A trace between known switches.
///
/// Between two switches the power is that of the nearest reading of that stretch. Readings whose window has a switch in
/// it ought to show the mixture of both sides; what they show more or less, a card's power that rises slowly, is spread over
/// the time that they stand for, so that all readings count, and joules are kept where windows cover all time.
#[derive(Debug, Clone)]
pub struct OwnReadings {
    /// The power, without gaps.
    pub segments: Vec<Segment>,
    /// Bursts without a reading of their own.
    pub without: usize,
    /// The level after bursts.
    pub idle: Option<IdleLevel>,
    /// What a time is in doubt by: watts squared times seconds that err alike.
    doubts: Vec<(f64, f64, f64)>,
    origin: Timestamp,
}

/// A stretch between two switches, or before the first or after the last; seconds and watts.
struct Stretch {
    start: f64,
    end: f64,
    is_load: bool,
    /// Middles of windows, and what they showed.
    own: Vec<(f64, f64)>,
}

/// A reading's window.
struct Window {
    start: f64,
    end: f64,
    watts: f64,
    /// The stretch that it lies in, by all that is plausible.
    own: Option<usize>,
}

impl OwnReadings {
    /// `None` where half of the bursts, or of the rests between them, have none.
    pub fn of(
        refreshes: &[Refresh],
        levels: &KnownLevels,
        switches: &[Timestamp],
        (first, last): (Timestamp, Timestamp),
        model: &SensorModel,
    ) -> Option<Self> {
        let second = |time: Timestamp| time.as_nanos() as f64 * 1e-9 - first.as_nanos() as f64 * 1e-9;
        let seconds = |nanos: Timestamp| {
            if nanos >= first { nanos.since(first).as_secs_f64() } else { second(nanos) }
        };
        let whole = seconds(last);
        let edges: Vec<f64> = std::iter::once(0.0)
            .chain(switches.iter().map(|at| seconds(*at).clamp(0.0, whole)))
            .chain([whole])
            .collect();
        let mut stretches: Vec<Stretch> = edges
            .windows(2)
            .enumerate()
            .map(|(at, pair)| Stretch { start: pair[0], end: pair[1], is_load: at % 2 == 1, own: Vec::new() })
            .collect();
        // A counter's readings stand for a refresh, and have no length that may be another.
        let length = levels.length.0;
        let margin = if matches!(model.kind, SensorKind::Counter) { 0.0 } else { levels.margin() };
        // A value that stands for several refreshes was read at the first of them: some sensors look seldom at a card at rest.
        let mut held: Option<(Watts, Timestamp)> = None;
        let mut windows: Vec<Window> = refreshes
            .iter()
            .map(|of| {
                let read = match held {
                    Some((power, read)) if power == of.power => read,
                    _ => of.earliest,
                };
                held = Some((of.power, read));
                let (earliest, latest) =
                    (seconds(of.earliest) - levels.delay.seconds, seconds(of.latest) - levels.delay.seconds);
                let end = (earliest + latest) / 2.0;
                let from = seconds(read) - levels.delay.seconds - length - margin;
                let at = edges[1..edges.len() - 1].partition_point(|edge| *edge <= from);
                let own = (latest + margin <= stretches[at].end || at + 1 == stretches.len()).then_some(at);
                Window { start: end - length, end, watts: model.scaled(of.power).as_watts(), own }
            })
            .collect();
        windows.sort_by(|a, b| a.end.total_cmp(&b.end));
        for window in &windows {
            if let Some(at) = window.own {
                stretches[at].own.push(((window.start + window.end) / 2.0, window.watts));
            }
        }
        let inner = &stretches[1..stretches.len() - 1];
        let has = |is_load: bool| {
            let of = inner.iter().filter(|of| of.is_load == is_load && of.end > of.start);
            let with = of.clone().filter(|of| !of.own.is_empty()).count();
            (with, of.count())
        };
        let ((loads, all_loads), (rests, all_rests)) = (has(true), has(false));
        if loads * 2 < all_loads.max(1) || rests * 2 < all_rests {
            return None;
        }
        let otherwise = [levels.high().0, levels.rest().0].map(|level| model.scaled(level).as_watts());
        let found = Levels::of(&stretches, otherwise);
        Some(Self::assembled(&stretches, &windows, &found, (first, all_loads - loads)))
    }

    fn assembled(
        stretches: &[Stretch],
        windows: &[Window],
        found: &Levels,
        (origin, without): (Timestamp, usize),
    ) -> Self {
        let middles: Vec<f64> = windows.iter().map(|of| (of.start + of.end) / 2.0).collect();
        let between = |a: &f64, b: &f64| (a + b) / 2.0;
        let borders: Vec<f64> = middles.windows(2).map(|pair| between(&pair[0], &pair[1])).collect();
        let excess: Vec<f64> = windows.iter().map(|of| found.excess(stretches, of)).collect();
        let mixed: Vec<f64> =
            windows.iter().zip(&excess).filter(|(of, _)| of.own.is_none()).map(|(_, more)| *more).collect();
        let mixed_square = mixed.iter().map(|more| more * more).sum::<f64>() / mixed.len().max(1) as f64;
        let mut cuts = borders.clone();
        let mut doubts = Vec::new();
        for (at, stretch) in stretches.iter().enumerate() {
            let pieces = found.pieces(stretches, at);
            cuts.extend(pieces.iter().map(|(start, ..)| *start));
            doubts.extend(pieces.iter().map(|(start, end, _)| (*start, *end, found.square(stretch))));
        }
        for (at, window) in windows.iter().enumerate().filter(|(_, of)| of.own.is_none()) {
            let start = at.checked_sub(1).map_or(window.start, |before| borders[before]);
            let end = borders.get(at).copied().unwrap_or(window.end);
            doubts.push((start, end, mixed_square));
        }
        let whole = stretches.last().map_or(0.0, |of| of.end);
        cuts.push(0.0);
        cuts.push(whole);
        cuts.retain(|cut| (0.0..=whole).contains(cut));
        cuts.sort_by(f64::total_cmp);
        let time = |seconds: f64| origin + Nanoseconds::from_secs_f64(seconds);
        let segment = |pair: &[f64]| {
            let middle = (pair[0] + pair[1]) / 2.0;
            let at = stretches.partition_point(|of| of.end <= middle).min(stretches.len() - 1);
            let more =
                excess.get(borders.partition_point(|border| *border <= middle)).copied().unwrap_or(0.0);
            let power = Watts::from_watts(found.at(stretches, at, middle) + more);
            Segment { start: time(pair[0]), end: time(pair[1]), power }
        };
        let segments = cuts.windows(2).map(segment).filter(|of| of.end > of.start).collect();
        Self { segments, without, idle: found.idle(stretches), doubts, origin }
    }

    /// One standard error of an energy, without the board's gain and offset.
    pub fn std_error(&self, start: Timestamp, end: Timestamp) -> Joules {
        let (start, end) = (
            start.since(self.origin.min(start)).as_secs_f64(),
            end.since(self.origin.min(end)).as_secs_f64(),
        );
        let squares = self.doubts.iter().map(|(from, until, square)| {
            let part = (until.min(end) - from.max(start)).max(0.0);
            square * part * part
        });
        Joules::from_joules(squares.sum::<f64>().sqrt())
    }
}

/// What stretches without readings of their own are taken to draw.
struct Levels {
    load: f64,
    rest: f64,
    /// Squares of the standard deviation of a reading, and of loads and rests from each other.
    reading: f64,
    load_square: f64,
    rest_square: f64,
}

impl Levels {
    /// Loads and rests draw as much as `otherwise` says where none has readings.
    fn of(stretches: &[Stretch], otherwise: [f64; 2]) -> Self {
        let steps: Vec<f64> = stretches
            .iter()
            .flat_map(|of| of.own.windows(2).map(|pair| (pair[1].1 - pair[0].1).powi(2) / 2.0))
            .collect();
        let inner = &stretches[1..stretches.len() - 1];
        let like = |is_load: bool, otherwise: f64| {
            let means: Vec<f64> =
                inner.iter().filter(|of| of.is_load == is_load).filter_map(Stretch::mean).collect();
            let count = means.len() as f64;
            let mean = means.iter().sum::<f64>() / count;
            let square = means.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
            if means.is_empty() { (otherwise, 0.0) } else { (mean, square) }
        };
        let (load, load_square) = like(true, otherwise[0]);
        let (rest, rest_square) = like(false, otherwise[1]);
        // Where no stretch has two readings, those of different ones are compared.
        let reading = match steps.len() {
            0 => load_square.max(rest_square),
            count => steps.iter().sum::<f64>() / count as f64,
        };
        Self { load, rest, reading, load_square, rest_square }
    }

    fn square(&self, of: &Stretch) -> f64 {
        match (of.own.is_empty(), of.is_load) {
            (false, _) => self.reading,
            (true, true) => self.load_square,
            (true, false) => self.rest_square,
        }
    }

    /// The level at a time in a stretch.
    fn at(&self, stretches: &[Stretch], at: usize, time: f64) -> f64 {
        let of = &stretches[at];
        let after = of.own.partition_point(|(middle, _)| *middle <= time);
        let near = [after.checked_sub(1).and_then(|at| of.own.get(at)), of.own.get(after)];
        let near =
            near.into_iter().flatten().min_by(|a, b| (a.0 - time).abs().total_cmp(&(b.0 - time).abs()));
        near.map_or(if of.is_load { self.load } else { self.rest }, |(_, watts)| *watts)
    }

    /// Times of a stretch for which one reading, or none, stands.
    fn pieces(&self, stretches: &[Stretch], at: usize) -> Vec<(f64, f64, f64)> {
        let of = &stretches[at];
        let borders = of.own.windows(2).map(|pair| (pair[0].0 + pair[1].0) / 2.0);
        let edges: Vec<f64> = std::iter::once(of.start).chain(borders).chain([of.end]).collect();
        edges
            .windows(2)
            .map(|pair| (pair[0], pair[1], self.at(stretches, at, (pair[0] + pair[1]) / 2.0)))
            .collect()
    }

    /// By how much a window shows more than a mixture of what lies in it.
    fn excess(&self, stretches: &[Stretch], window: &Window) -> f64 {
        if window.own.is_some() {
            return 0.0;
        }
        let middle = (window.start + window.end) / 2.0;
        let within = |of: &Stretch| (of.end.min(window.end) - of.start.max(window.start)).max(0.0);
        let from = stretches.partition_point(|of| of.end <= window.start).min(stretches.len() - 1);
        let (mut joules, mut seconds) = (0.0, 0.0);
        for (at, of) in stretches.iter().enumerate().skip(from).take_while(|(_, of)| of.start < window.end) {
            joules += within(of) * self.at(stretches, at, middle.clamp(of.start, of.end));
            seconds += within(of);
        }
        if seconds > 0.0 { window.watts - joules / seconds } else { 0.0 }
    }

    /// The level within a second after a burst: the median over bursts after which enough was read to see where the power
    /// falls to. Of shorter rests all may be on the way there. Where a sensor gives few readings of long rests, one of them
    /// does not tell whether the power stays, and the level is as uncertain as readings at rest differ.
    fn idle(&self, stretches: &[Stretch]) -> Option<IdleLevel> {
        const SOON: f64 = 1.0;
        const ENOUGH: usize = 5;
        const SOME: usize = 5;
        let rests = || stretches.iter().skip(1).filter(|of| !of.is_load);
        let within_a_second = |of: &Stretch, from: f64| {
            of.own.iter().filter(|(time, _)| *time < from + SOON).map(|(_, watts)| *watts).collect::<Vec<_>>()
        };
        let after = |of: &Stretch| {
            let mut soon = within_a_second(of, of.start);
            if soon.len() < ENOUGH { None } else { quantiles::median(&mut soon) }
        };
        let mut levels: Vec<f64> = rests().filter_map(after).collect();
        let mut within = self.reading;
        if levels.is_empty() {
            let long = || rests().filter(|of| of.end - of.start > SOON);
            let first = |of: &Stretch| quantiles::median(&mut within_a_second(of, of.own.first()?.0));
            levels = long().filter_map(first).collect();
            let all = long().flat_map(|of| &of.own).map(|(_, watts)| *watts);
            within = within.max(spread(all).unwrap_or(0.0).powi(2));
        }
        let power = quantiles::median(&mut levels)?;
        let count = levels.len() as f64;
        let between = levels.iter().map(|of| (of - power).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        // How far single readings lie apart is in that of the levels, where there are some.
        let square = if levels.len() < SOME { between.max(within) } else { between };
        let std_error = (square / count).sqrt();
        Some(IdleLevel { power: Watts::from_watts(power), std_error: Watts::from_watts(std_error) })
    }
}

impl Stretch {
    fn mean(&self) -> Option<f64> {
        let count = self.own.len() as f64;
        (count > 0.0).then(|| self.own.iter().map(|(_, watts)| watts).sum::<f64>() / count)
    }
}

#[cfg(test)]
#[path = "own_readings_tests.rs"]
mod tests;

//! What a sensor does not see: the time between its windows, and the time in which nobody read it.

use super::curve::{PowerCurve, Segment};
use super::refresh::RefreshPeriod;
use super::sensor::{SensorKind, SensorModel};
use super::trace::PowerTrace;
use crate::numerics::quantiles;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// A time without readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Since then nothing was read
    pub start: Timestamp,
    /// that tells of the time until then.
    pub end: Timestamp,
}

impl Gap {
    /// Its length.
    pub fn duration(&self) -> Nanoseconds {
        self.end.since(self.start)
    }

    /// The part of it that lies between two times.
    fn within(&self, start: Timestamp, end: Timestamp) -> Option<Self> {
        let part = Self { start: self.start.max(start), end: self.end.min(end) };
        (part.end > part.start).then_some(part)
    }
}

/// What a trace leaves unseen.
#[derive(Debug, Clone, PartialEq)]
pub struct Unseen {
    /// Share of each refresh period that no window covers, by the shortest window that is plausible.
    share: f64,
    period: Nanoseconds,
    /// The trace's power while nothing runs, and its highest: unseen power may be anything between.
    lowest: Watts,
    highest: Watts,
    /// What was seen.
    segments: Vec<Segment>,
    gaps: Vec<Gap>,
}

/// Even odds that a load of which a window sees one power is steady, or repeats in step with the refresh so
/// that the window sees the same part of it every time. Nothing in the readings tells which.
const IN_STEP: f64 = 0.5;

/// Power this share of the way up from the lowest is a load's.
const LOADED: f64 = 0.1;

impl Unseen {
    /// Of a trace that was corrected to these segments.
    pub(super) fn of(
        model: &SensorModel,
        trace: &PowerTrace,
        refresh: &RefreshPeriod,
        segments: &[Segment],
    ) -> Self {
        let period = refresh.period.as_secs_f64();
        let share = match model.kind {
            SensorKind::Boxcar { window } => {
                (1.0 - window.as_secs_f64() * (1.0 - model.length_error).max(0.0) / period).max(0.0)
            }
            SensorKind::Rc { .. } | SensorKind::Counter => 0.0,
        };
        let mut powers: Vec<(f64, f64)> =
            segments.iter().map(|of| (of.power.as_watts(), of.duration().as_secs_f64())).collect();
        powers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = quantiles::weighted(&powers, |(_, span)| *span, 0.05).map_or(0.0, |(power, _)| *power);
        let highest = powers.last().map_or(lowest, |(power, _)| *power);
        Self {
            share,
            period: refresh.period,
            lowest: Watts::from_watts(lowest),
            highest: Watts::from_watts(highest),
            segments: segments.to_vec(),
            gaps: gaps(model, trace, refresh),
        }
    }

    /// Share of the time that no window covers, by the shortest window that is plausible.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The power while nothing runs.
    pub fn lowest(&self) -> Watts {
        self.lowest
    }

    /// Times of which no reading tells, as far as they lie between two times.
    pub fn gaps(&self, start: Timestamp, end: Timestamp) -> Vec<Gap> {
        self.gaps.iter().filter_map(|gap| gap.within(start, end)).collect()
    }

    /// One standard error of an energy by what happened in gaps, where the power may have been anything between
    /// the lowest and the highest of the trace, whatever the curve has there.
    pub fn error_of_gaps(&self, curve: &PowerCurve, start: Timestamp, end: Timestamp) -> Joules {
        let of_gap = |gap: Gap| {
            let power = curve.mean(gap.start, gap.end).unwrap_or(self.lowest);
            self.doubt(power) * gap.duration().as_secs_f64()
        };
        let squares = self.gaps(start, end).into_iter().map(|gap| of_gap(gap).powi(2));
        Joules::from_joules(squares.sum::<f64>().sqrt())
    }

    /// One standard error of an energy by what happened between the windows while a load ran.
    ///
    /// Of a load that changes from reading to reading windows are samples, whose means err by chance and the less
    /// the more there are. Where readings do not change, the load holds still or repeats in step with the refresh
    /// (`IN_STEP`), and then all of them err alike, by what it does while nobody looks.
    pub fn error_between_windows(&self, start: Timestamp, end: Timestamp) -> Joules {
        let range = (self.highest - self.lowest).as_watts();
        let floor = self.lowest.as_watts() + LOADED * range;
        let loaded: Vec<(f64, f64)> = self
            .segments
            .iter()
            .filter(|segment| segment.power.as_watts() > floor)
            .filter_map(|segment| {
                let part = Gap { start: segment.start, end: segment.end }.within(start, end)?;
                Some((segment.power.as_watts(), part.duration().as_secs_f64()))
            })
            .collect();
        if self.share <= 0.0 || range <= 0.0 || loaded.is_empty() {
            return Joules::ZERO;
        }
        let seconds: f64 = loaded.iter().map(|(_, span)| span).sum();
        let in_step: f64 =
            loaded.iter().map(|(power, span)| self.doubt(Watts::from_watts(*power)) * span).sum();
        let in_step = in_step * self.share * IN_STEP.sqrt();
        let moves: f64 = loaded.windows(2).map(|pair| (pair[1].0 - pair[0].0).powi(2) / 2.0).sum();
        let variance = moves / (loaded.len().max(2) - 1) as f64;
        // Samples from anywhere in the range vary by a twelfth of its square.
        const FEWEST: usize = 8;
        let sampled = if loaded.len() < FEWEST { 0.0 } else { (12.0 * variance / (range * range)).min(1.0) };
        let by_chance = self.share * (variance * self.period.as_secs_f64() * seconds).sqrt();
        Joules::from_joules((in_step * (1.0 - sampled).sqrt()).hypot(by_chance))
    }

    /// Root mean square distance in watts of a power from any between the lowest and the highest.
    fn doubt(&self, power: Watts) -> f64 {
        let range = (self.highest - self.lowest).as_watts();
        let middle = (self.highest + self.lowest).as_watts() / 2.0;
        (range * range / 12.0 + (power.as_watts() - middle).powi(2)).sqrt()
    }
}

/// Pauses of the polls that are longer than readings reach back: what a sensor showed after one tells of a window, a
/// refresh period or a time constant before it.
fn gaps(model: &SensorModel, trace: &PowerTrace, refresh: &RefreshPeriod) -> Vec<Gap> {
    const MANY: u64 = 3;
    let reach = match model.kind {
        SensorKind::Boxcar { window } => window.max(refresh.period),
        SensorKind::Rc { time_constant } => time_constant.max(refresh.period),
        // A counter counts on.
        SensorKind::Counter => return Vec::new(),
    };
    let usual = refresh.period.max(refresh.poll_interval).as_nanos() * MANY;
    let unread = |pair: &[super::trace::PowerReading]| {
        let pause = pair[1].time.since(pair[0].time).as_nanos();
        let end = Timestamp::from_nanos(pair[1].time.as_nanos().saturating_sub(reach.as_nanos()));
        (pause > usual && end > pair[0].time).then_some(Gap { start: pair[0].time, end })
    };
    trace.readings().windows(2).filter_map(unread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::trace::PowerReading;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    fn period() -> RefreshPeriod {
        RefreshPeriod {
            period: Nanoseconds::from_millis(100),
            resolved: true,
            poll_interval: Nanoseconds::from_millis(10),
            changes: 40,
        }
    }

    /// One segment for each refresh.
    fn segments(powers: impl IntoIterator<Item = f64>) -> Vec<Segment> {
        let segment = |(at, watts): (u64, f64)| Segment {
            start: ms(at * 100),
            end: ms(at * 100 + 100),
            power: Watts::from_watts(watts),
        };
        (0u64..).zip(powers).map(segment).collect()
    }

    fn window(millis: u64) -> SensorModel {
        SensorModel::new(SensorKind::Boxcar { window: Nanoseconds::from_millis(millis) })
    }

    fn error(model: &SensorModel, powers: impl IntoIterator<Item = f64>) -> f64 {
        let segments = segments(powers);
        let unseen = Unseen::of(model, &PowerTrace::default(), &period(), &segments);
        unseen.error_between_windows(ms(0), ms(segments.len() as u64 * 100)).as_joules()
    }

    #[test]
    fn a_steady_load_may_be_one_in_step() {
        // 1 s at 100 W and 1 s at 300 W, of which three quarters are not seen: 150 J by half of the squares of a third
        // of the range.
        let steady = || std::iter::repeat_n(100.0, 10).chain(std::iter::repeat_n(300.0, 10));
        let expected = 150.0 * (0.5f64 / 3.0).sqrt();
        assert!((error(&window(25), steady()) - expected).abs() < 1e-9);
        assert_eq!(error(&window(100), steady()), 0.0);
        assert_eq!(error(&SensorModel::new(SensorKind::Counter), steady()), 0.0);
        // A window of which nothing is known but that it is within a refresh may be much shorter.
        let unknown = SensorModel { length_error: 0.5, ..window(50) };
        assert!((error(&unknown, steady()) - expected).abs() < 1e-9);
    }

    #[test]
    fn windows_of_a_load_that_varies_are_samples() {
        // 10 s of power from 110 to 290 W in turn: its jumps are those of chance, and only their mean is in doubt.
        let varying = (0..100).map(|at| if at == 0 { 100.0 } else { 110.0 + f64::from(at * 7 % 19) * 10.0 });
        let found = error(&window(25), varying);
        let by_chance = 0.75 * 55.0 * (0.1f64 * 10.0).sqrt();
        assert!((0.6..1.6).contains(&(found / by_chance)), "{found} J, {by_chance} J by chance alone");
    }

    #[test]
    fn in_a_gap_the_power_is_anything() {
        let reading = |at: u64| PowerReading {
            time: ms(at),
            power: Watts::from_watts(if at < 1000 { 100.0 } else { 300.0 }),
        };
        let times = (0..200).map(|at| at * 10).chain((500..600).map(|at| at * 10));
        let trace = PowerTrace::new(times.map(reading).collect());
        let segments = vec![
            Segment { start: ms(0), end: ms(1000), power: Watts::from_watts(100.0) },
            Segment { start: ms(1000), end: ms(6000), power: Watts::from_watts(300.0) },
        ];
        let unseen = Unseen::of(&window(100), &trace, &period(), &segments);
        // The first reading after it tells of 100 ms before.
        assert_eq!(unseen.gaps(ms(0), ms(6000)), [Gap { start: ms(1990), end: ms(4900) }]);
        assert_eq!(unseen.gaps(ms(0), ms(1500)), []);
        let curve = PowerCurve::from_segments(&segments);
        // 2.91 s at the upper end of 200 W.
        let expected = 2.91 * 200.0 / 3f64.sqrt();
        let found = unseen.error_of_gaps(&curve, ms(0), ms(6000)).as_joules();
        assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        let counter = SensorModel::new(SensorKind::Counter);
        assert_eq!(Unseen::of(&counter, &trace, &period(), &segments).gaps(ms(0), ms(6000)), []);
    }

    /// Three refreshes of a load at 300, 200 and 300 W, of which a quarter was seen.
    #[test]
    fn a_few_windows_of_a_load_do_not_tell_that_they_are_samples() {
        let found = error(&window(25), [100.0, 300.0, 200.0, 300.0]);
        // Any power from 100 to 300 W, as it would be if the load were in step: 200 W are their middle.
        let (middle, end) = ((4e4f64 / 12.0).sqrt(), (4e4f64 / 12.0 + 1e4).sqrt());
        let in_step = 0.75 * 0.1 * (middle + 2.0 * end) * 0.5f64.sqrt();
        // Jumps of 100 W, half of whose squares is the variance, in 0.3 s of windows each 0.1 s.
        let by_chance = 0.75 * (5e3f64 * 0.1 * 0.3).sqrt();
        assert!((found - in_step.hypot(by_chance)).abs() < 1e-9, "{found}");
    }
}

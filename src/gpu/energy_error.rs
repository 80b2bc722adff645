//! How far the energy of a part of a corrected trace may be off.

use super::curve::PowerCurve;
use super::refresh::Refresh;
use super::sensor::{SensorKind, SensorModel};
use super::stretches;
use crate::units::{Joules, Nanoseconds, Timestamp, Watts};

/// What a sensor and its readings leave in doubt.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyDoubt {
    /// Standard deviation of a reading.
    reading: Watts,
    /// Mean time between refreshes.
    period: Nanoseconds,
    /// The time constant, by which an error of a reading at an end of a part is multiplied; zero of a window.
    constant: Nanoseconds,
    /// Standard deviation of the time at which the power is said to have changed.
    switch: Nanoseconds,
    /// One standard error of the time constant as a share of it.
    constant_error: f64,
    /// One standard error of the board's gain as a share of it.
    gain_error: f64,
    /// One standard error of the least power.
    offset_error: Watts,
    /// What the sensor showed, by the board's gain.
    shown: PowerCurve,
}

impl EnergyDoubt {
    /// Of a trace whose sensor refreshed so.
    pub fn of(model: &SensorModel, refreshes: &[Refresh], period: Nanoseconds) -> Self {
        let watts: Vec<f64> = refreshes.iter().map(|refresh| refresh.power.as_watts()).collect();
        let knots = refreshes.iter().map(|refresh| (refresh.time(), model.scaled(refresh.power)));
        let (constant, window) = match model.kind {
            SensorKind::Rc { time_constant } => (time_constant.as_secs_f64(), None),
            SensorKind::Boxcar { window } => (0.0, Some(window.as_secs_f64())),
            SensorKind::Counter => (0.0, Some(period.as_secs_f64())),
        };
        // A reading was made somewhere between two polls; what happens outside of its window it does not tell; and of
        // a window that is longer or shorter than thought, the middle is elsewhere by half of that.
        let polls = refreshes.iter().map(|refresh| refresh.latest.since(refresh.earliest).as_secs_f64());
        let poll = polls.sum::<f64>() / refreshes.len().max(1) as f64;
        let unseen = window.map_or(0.0, |window| (period.as_secs_f64() - window).max(0.0));
        let middle = window.map_or(0.0, |window| window * model.length_error / 2.0);
        // The standard deviation of what is anything from 0 to 1 is the reciprocal of this.
        let even = 12f64.sqrt();
        let switch = (poll / even).hypot(unseen / even).hypot(middle);
        Self {
            reading: Watts::from_watts(stretches::reading_noise(&watts)) * model.gain.abs(),
            period,
            constant: Nanoseconds::from_secs_f64(constant),
            switch: Nanoseconds::from_secs_f64(switch),
            constant_error: if window.is_none() { model.length_error } else { 0.0 },
            gain_error: model.gain_error,
            offset_error: model.offset_error,
            shown: PowerCurve::new(knots.collect()),
        }
    }

    /// One standard error of the energy that a corrected curve has between two times.
    ///
    /// Readings err by chance, each for as long as it stands. The correction of a capacitor adds the time constant times what
    /// the readings at the two ends differ by: so their errors count by as much, and that of the constant by the
    /// difference. What a part gains or loses where the power changes at its ends is as uncertain as the time of the
    /// change. Last, the board's gain and offset.
    pub fn std_error(&self, curve: &PowerCurve, start: Timestamp, end: Timestamp) -> Joules {
        let by_gain = self.gain_error * curve.energy(start, end).as_joules();
        let by_offset = self.offset_error.as_watts() * end.since(start).as_secs_f64();
        Joules::from_joules(self.by_readings(curve, start, end).as_joules().hypot(by_gain.hypot(by_offset)))
    }

    /// One standard error of the energy above a level of the same trace, which the board's offset does not change and its
    /// gain only by what lies above; without that of the level itself.
    pub fn std_error_above(
        &self,
        curve: &PowerCurve,
        start: Timestamp,
        end: Timestamp,
        level: Watts,
    ) -> Joules {
        let above = curve.energy(start, end) - level * end.since(start);
        let by_gain = self.gain_error * above.as_joules();
        Joules::from_joules(self.by_readings(curve, start, end).as_joules().hypot(by_gain))
    }

    /// As [`EnergyDoubt::std_error`], on a board of which everything is known.
    fn by_readings(&self, curve: &PowerCurve, start: Timestamp, end: Timestamp) -> Joules {
        let (period, duration) = (self.period.as_secs_f64(), end.since(start).as_secs_f64());
        let reading = self.reading.as_watts();
        let constant = self.constant.as_secs_f64();
        let by_readings = reading * (period * duration).sqrt();
        let by_ends = reading * constant * std::f64::consts::SQRT_2;
        let shown = |time| self.shown.at(time).map(Watts::as_watts);
        let rise = shown(start).zip(shown(end)).map_or(0.0, |(start, end)| end - start);
        let by_constant = self.constant_error * constant * rise;
        let by_switches = |time| jump(curve, time, self.period).as_watts() * self.switch.as_secs_f64();
        let parts = [by_readings, by_ends, by_constant, by_switches(start), by_switches(end)];
        Joules::from_joules(parts.iter().map(|part| part * part).sum::<f64>().sqrt())
    }
}

/// By how much the power differs right after and right before a time, over two refreshes each.
fn jump(curve: &PowerCurve, time: Timestamp, period: Nanoseconds) -> Watts {
    let reach = period + period;
    let before = Timestamp::from_nanos(time.as_nanos().saturating_sub(reach.as_nanos()));
    let means = curve.mean(before, time).zip(curve.mean(time, time + reach));
    means.map_or(Watts::ZERO, |(before, after)| after - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    /// 100 W, and 200 W from 1 to 2 s, as a sensor showed it that refreshes every 20 ms, polled every 6 ms.
    fn refreshes() -> Vec<Refresh> {
        let refresh = |at: u64| {
            let watts = if (1000..2000).contains(&(at * 20)) { 200.0 } else { 100.0 };
            let power = Watts::from_watts(watts);
            Refresh { earliest: ms(at * 20), latest: ms(at * 20 + 6), power }
        };
        (0..150).map(refresh).collect()
    }

    fn curve() -> PowerCurve {
        let watts = Watts::from_watts;
        PowerCurve::new(vec![
            (ms(0), watts(100.0)),
            (ms(1000), watts(100.0)),
            (ms(1000), watts(200.0)),
            (ms(2000), watts(200.0)),
            (ms(2000), watts(100.0)),
            (ms(3000), watts(100.0)),
        ])
    }

    fn error(model: &SensorModel, start: u64, end: u64) -> f64 {
        let doubt = EnergyDoubt::of(model, &refreshes(), Nanoseconds::from_millis(20));
        doubt.std_error(&curve(), ms(start), ms(end)).as_joules()
    }

    fn window(millis: u64) -> SensorModel {
        let kind = SensorKind::Boxcar { window: Nanoseconds::from_millis(millis) };
        SensorModel { gain_error: 0.0, ..SensorModel::new(kind) }
    }

    /// Readings move by steps of 100 W alone (28.9 W of rounding) and range over 100 W (0.2 W): 28.87 W each.
    const READING: f64 = 28.868_206_5;

    #[test]
    fn by_hand() {
        // 100 ms stand for 5 readings of 20 ms; at their ends the power is steady.
        let readings = READING * (0.02f64 * 0.1).sqrt();
        assert!((error(&window(20), 1400, 1500) - readings).abs() < 1e-6);
        // From switch to switch: 100 W by the time of a poll, and of a window of 5 of 20 ms, 15 ms more.
        let readings = READING * 0.02f64.sqrt();
        let switch = 100.0 * 0.006 / 12f64.sqrt();
        assert!((error(&window(20), 1000, 2000) - readings.hypot(switch).hypot(switch)).abs() < 1e-6);
        let switch = 100.0 * (0.006f64.hypot(0.015)) / 12f64.sqrt();
        assert!((error(&window(5), 1000, 2000) - readings.hypot(switch).hypot(switch)).abs() < 1e-6);
        // A window of 200 ms that may be a tenth longer is half of that elsewhere.
        let model = SensorModel { length_error: 0.1, ..window(200) };
        let switch = 100.0 * (0.006f64 / 12f64.sqrt()).hypot(0.01);
        assert!((error(&model, 1000, 2000) - readings.hypot(switch).hypot(switch)).abs() < 1e-6);
        // 3 W for a second, and 5 % of 200 J.
        let model = SensorModel { offset_error: Watts::from_watts(3.0), ..window(20) };
        assert!(
            (error(&model, 1000, 2000).powi(2) - error(&window(20), 1000, 2000).powi(2) - 9.0).abs() < 1e-6
        );
        let model = SensorModel { gain_error: 0.05, ..window(20) };
        assert!(
            (error(&model, 1000, 2000).powi(2) - error(&window(20), 1000, 2000).powi(2) - 100.0).abs() < 1e-6
        );
    }

    #[test]
    fn above_a_level_the_boards_offset_does_not_count() {
        let known = window(20);
        let board = SensorModel { gain_error: 0.05, offset_error: Watts::from_watts(3.0), ..known };
        let above = |model: &SensorModel| {
            let doubt = EnergyDoubt::of(model, &refreshes(), Nanoseconds::from_millis(20));
            let level = Watts::from_watts(100.0);
            doubt.std_error_above(&curve(), ms(1000), ms(2000), level).as_joules()
        };
        // 5 % of the 100 J above 100 W.
        assert!((above(&board).powi(2) - above(&known).powi(2) - 25.0).abs() < 1e-6);
        assert!((above(&known) - error(&known, 1000, 2000)).abs() < 1e-9);
    }

    #[test]
    fn a_capacitor_multiplies_what_is_read_at_the_ends() {
        let kind = SensorKind::Rc { time_constant: Nanoseconds::from_millis(500) };
        let sure = SensorModel { gain_error: 0.0, ..SensorModel::new(kind) };
        let of_readings = READING * (0.02f64 * 0.2).sqrt();
        let of_ends = READING * 0.5 * 2f64.sqrt();
        assert!((error(&sure, 1400, 1600) - of_readings.hypot(of_ends)).abs() < 1e-6);
        // Where both ends show the same, the constant does not matter; else by what they differ, 100 W.
        let unsure = SensorModel { length_error: 0.02, ..sure };
        assert!((error(&unsure, 1400, 1600) - error(&sure, 1400, 1600)).abs() < 1e-12);
        let by_constant = error(&unsure, 500, 1500).powi(2) - error(&sure, 500, 1500).powi(2);
        assert!((by_constant.sqrt() - 0.02 * 0.5 * 100.0).abs() < 1e-6);
    }
}

//! From what a lagging sensor said to what the GPU drew.

use thiserror::Error;

use super::curve::{PowerCurve, Segment};
use super::edges;
use super::energy_error::EnergyDoubt;
use super::explained::{Unexplained, reading_noise, steady};
use super::refresh::{self, Refresh, RefreshPeriod};
use super::sensor::{SensorKind, SensorModel, charging_power};
use super::trace::PowerTrace;
use super::unseen::Unseen;
use super::wrong_readings::{self, WrongReadings};
use crate::numerics::robust::jitter;
use crate::units::{Nanoseconds, Timestamp, Watts};

/// Why a trace cannot be corrected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CorrectError {
    /// Too little to see the sensor at work.
    #[error(
        "{0} readings with {1} changes of value are too few to see how the sensor refreshes (at least 4 changes)"
    )]
    TooShort(usize, usize),
    /// The sensor was polled too seldom for its time constant.
    #[error(
        "readings come {0} apart, too far for a sensor with a time constant of {1}: its lag cannot be undone. \
         Poll at least every {2}"
    )]
    PolledTooSeldom(Nanoseconds, Nanoseconds, Nanoseconds),
}

/// A corrected trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrected {
    /// Mean power between refreshes, without gaps.
    pub segments: Vec<Segment>,
    /// The same with the sensor's noise taken out, which undoing a long lag makes larger: stretches of
    /// steady power, to find bursts and idling by.
    pub levels: Vec<Segment>,
    /// Standard deviation of a level's power.
    pub level_noise: Watts,
    /// The refreshes as found or given.
    pub refresh: RefreshPeriod,
    /// Standard deviation of one segment's power on a steady load.
    pub noise: Watts,
    /// What happens within less than this cannot be told apart.
    pub resolution: Nanoseconds,
    /// Share of the time that the sensor's window covers; the rest is assumed to be like it.
    pub observed: f64,
    /// What is in doubt of an energy, as far as windows saw the load.
    pub doubt: EnergyDoubt,
    /// What no window and no poll saw.
    pub unseen: Unseen,
    /// Why the readings cannot be those of the capacitor that they are taken for.
    pub unexplained: Option<Unexplained>,
    /// Readings that this sensor cannot have shown.
    pub wrong: Option<WrongReadings>,
}

impl Corrected {
    /// The staircase of the segments.
    pub fn curve(&self) -> PowerCurve {
        PowerCurve::from_segments(&self.segments)
    }

    /// A burst that was found in the trace is as long as it looks. Below that it may be shorter by up to all of its length:
    /// the sensor shows what it smeared over its window and a refresh to both sides.
    pub fn resolves(&self, burst: Nanoseconds) -> bool {
        burst >= self.resolution + self.refresh.period + self.refresh.period
    }

    /// How long after a change of load the sensor's window holds power from before it; nothing where it settles within
    /// a refresh, as then steps are put back to where they were.
    pub fn settling(&self) -> Nanoseconds {
        if self.resolution > self.refresh.period { self.resolution } else { Nanoseconds::ZERO }
    }
}

/// Undoes a sensor's lag.
///
/// `rc`: between two refreshes `s0` and `s1`, `dt` apart, the mean power is that which charges the
/// capacitor from `s0` to `s1`: `(s1 - q s0) / (1 - q)` with `q = exp(-dt / C)`. It is the paper's
/// `P = s + C ds/dt` solved exactly for power that is constant between refreshes, and it conserves
/// energy whatever the spacing. `boxcar`: a reading stands for the middle of its window. No
/// deconvolution: inverting a moving average feeds its own error back for ever. `counter`: nothing.
/// Readings that a capacitor cannot have shown are left out before ([`wrong_readings`]).
/// Last, steps are put back to where they were, at the time that keeps their energy ([`edges`]): of a capacitor by the
/// stretches of steady power that its exponential course shows, of a window where a transition takes no longer than it
/// smears one.
///
/// # Errors
/// [`CorrectError`] when the trace is too short or too coarse for its sensor.
pub fn correct(trace: &PowerTrace, model: &SensorModel) -> Result<Corrected, CorrectError> {
    let mut refresh = refresh_of(trace, model)?;
    let (kept, wrong) = match model.kind {
        SensorKind::Rc { time_constant } => wrong_readings::left_out(trace, &refresh, time_constant),
        _ => (None, None),
    };
    let trace = kept.as_ref().unwrap_or(trace);
    if kept.is_some() {
        refresh = refresh_of(trace, model)?;
    }
    let refreshes = refresh::refreshes(trace, &refresh);
    let period = refresh.period;
    // What a window tells of the time before the first poll is not the trace's, and its stamps may begin at 0.
    let first = trace.span().map_or(Timestamp::default(), |(first, _)| first);
    let (mut segments, smear, observed) = match model.kind {
        SensorKind::Rc { time_constant } => {
            let limit = Nanoseconds::from_nanos(time_constant.as_nanos().saturating_mul(3));
            if period > limit {
                return Err(CorrectError::PolledTooSeldom(period, time_constant, time_constant));
            }
            (uncharge(&refreshes, time_constant), Nanoseconds::ZERO, 1.0)
        }
        SensorKind::Boxcar { window } => {
            let observed = (window.as_secs_f64() / period.as_secs_f64()).min(1.0);
            (center(&refreshes, window, first), window + period + period, observed)
        }
        SensorKind::Counter => (center(&refreshes, period, first), Nanoseconds::ZERO, 1.0),
    };
    for segment in &mut segments {
        segment.power = model.scaled(segment.power);
    }
    let noise = noise(&segments);
    let (levels, of_readings, unexplained) = match model.kind {
        SensorKind::Rc { time_constant } => {
            let of_readings = reading_noise(&refreshes);
            let (levels, unexplained) = steady(&refreshes, time_constant, of_readings, model);
            (levels, of_readings, unexplained)
        }
        _ => (Vec::new(), noise, None),
    };
    if smear > Nanoseconds::ZERO {
        segments = edges::sharpen(&segments, smear, noise);
    }
    let (segments, levels, level_noise) = match levels.len() {
        0 | 1 => (segments.clone(), segments, noise),
        _ => (edges::split(&segments, &levels), levels, of_readings * model.gain),
    };
    let resolution = match model.kind {
        SensorKind::Boxcar { window } => period.max(window),
        _ => period,
    };
    let doubt = EnergyDoubt::of(model, &refreshes, period);
    let unseen = Unseen::of(model, trace, &refresh, &segments);
    Ok(Corrected {
        segments,
        levels,
        level_noise,
        refresh,
        noise,
        resolution,
        observed,
        doubt,
        unseen,
        unexplained,
        wrong,
    })
}

/// The paper's own four steps: repeats dropped, `P = s + C (s[i+1] - s[i-1]) / (t[i+1] - t[i-1])`, and
/// straight lines between for the integral by time stamps.
///
/// # Errors
/// [`CorrectError::TooShort`] with fewer than three readings left.
pub fn correct_as_published(
    trace: &PowerTrace,
    time_constant: Nanoseconds,
) -> Result<PowerCurve, CorrectError> {
    let new = refresh::drop_repeats(trace, Nanoseconds::from_millis(4));
    let readings = new.readings();
    if readings.len() < 3 {
        return Err(CorrectError::TooShort(trace.readings().len(), readings.len()));
    }
    let knots = readings.windows(3).map(|around| {
        let slope = (around[2].power - around[0].power) / around[2].time.since(around[0].time).as_secs_f64();
        (around[1].time, around[1].power + slope * time_constant.as_secs_f64())
    });
    Ok(PowerCurve::new(knots.collect()))
}

/// The refresh period that the model gives or the trace shows.
fn refresh_of(trace: &PowerTrace, model: &SensorModel) -> Result<RefreshPeriod, CorrectError> {
    let inferred = refresh::infer_period(trace);
    match (model.refresh, inferred) {
        (Some(period), Some(inferred)) => {
            let resolved = inferred.poll_interval.as_secs_f64() < 0.8 * period.as_secs_f64();
            let period = if resolved { period } else { inferred.poll_interval };
            Ok(RefreshPeriod { period, resolved, ..inferred })
        }
        (None, Some(inferred)) => Ok(inferred),
        (_, None) => {
            let changes = trace.readings().windows(2).filter(|pair| pair[0].power != pair[1].power).count();
            Err(CorrectError::TooShort(trace.readings().len(), changes))
        }
    }
}

fn uncharge(refreshes: &[Refresh], time_constant: Nanoseconds) -> Vec<Segment> {
    let pairs = refreshes.windows(2).filter(|pair| pair[1].time() > pair[0].time());
    pairs
        .map(|pair| {
            let (start, end) = (pair[0].time(), pair[1].time());
            let kept = (-(end.since(start).as_secs_f64() / time_constant.as_secs_f64())).exp();
            Segment { start, end, power: charging_power(pair[0].power, pair[1].power, kept) }
        })
        .collect()
}

/// Each refresh stands for the time around the middle of its window, up to half way to its neighbours, but for what lies
/// before `first`.
fn center(refreshes: &[Refresh], window: Nanoseconds, first: Timestamp) -> Vec<Segment> {
    // Middles may lie before the time that stamps are counted from.
    let half = i128::from(window.as_nanos() / 2);
    let middle = |refresh: &Refresh| i128::from(refresh.time().as_nanos()) - half;
    let after_first =
        |nanos: i128| Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(0).max(first.as_nanos()));
    let mut segments = Vec::with_capacity(refreshes.len());
    for (index, refresh) in refreshes.iter().enumerate() {
        let own = middle(refresh);
        let before = index.checked_sub(1).map(|i| middle(&refreshes[i]));
        let after = refreshes.get(index + 1).map(middle);
        let reach = after.map(|after| after - own).or(before.map(|before| own - before)).unwrap_or(0) / 2;
        let start = after_first(before.map_or(own - reach, |before| before + (own - before) / 2));
        let end = after_first(after.map_or(own + reach, |after| own + (after - own) / 2));
        if end > start {
            segments.push(Segment { start, end, power: refresh.power });
        }
    }
    segments
}

/// Standard deviation of a segment's power, in which steps do not count.
fn noise(segments: &[Segment]) -> Watts {
    let watts: Vec<f64> = segments.iter().map(|segment| segment.power.as_watts()).collect();
    jitter(&watts).map_or(Watts::ZERO, Watts::from_watts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gpu::trace::PowerReading;
    use crate::units::Joules;

    fn ms(millis: f64) -> Timestamp {
        Timestamp::from_nanos((millis * 1e6) as u64)
    }

    #[test]
    fn a_capacitor_is_uncharged_exactly() {
        // 100 W from t = 0 into an empty capacitor of 50 ms, read every 10 ms.
        let refreshes: Vec<Refresh> = (0..20)
            .map(|i| {
                let time = ms(f64::from(i) * 10.0);
                let power = Watts::from_watts(100.0 * (1.0 - (-f64::from(i) * 0.2).exp()));
                Refresh { earliest: time, latest: time, power }
            })
            .collect();
        for segment in uncharge(&refreshes, Nanoseconds::from_millis(50)) {
            assert!((segment.power.as_watts() - 100.0).abs() < 1e-6, "{segment:?}");
        }
    }

    #[test]
    fn a_window_is_moved_to_its_middle() {
        let refreshes: Vec<Refresh> = [(100.0, 1.0), (200.0, 2.0), (300.0, 3.0)]
            .map(|(t, w)| Refresh { earliest: ms(t), latest: ms(t), power: Watts::from_watts(w) })
            .to_vec();
        let segments = center(&refreshes, Nanoseconds::from_millis(100), ms(0.0));
        assert_eq!(segments[1], Segment { start: ms(100.0), end: ms(200.0), power: Watts::from_watts(2.0) });
        assert_eq!((segments[0].start, segments[2].end), (ms(0.0), ms(300.0)));
    }

    /// Readings of a window of a second, whose stamps begin at 0 or anywhere.
    #[test]
    fn the_same_readings_have_the_same_energy_whenever_they_begin() {
        let model = SensorModel::new(SensorKind::Boxcar { window: Nanoseconds::from_millis(1000) });
        let energy = |origin: u64| {
            let trace = through_a_window(100, 1000.0);
            let later = |of: &PowerReading| PowerReading {
                time: of.time + Nanoseconds::from_millis(origin),
                power: of.power,
            };
            let trace = PowerTrace::new(trace.readings().iter().map(later).collect());
            let corrected = correct(&trace, &model).expect("long enough");
            assert_eq!(corrected.segments[0].start, ms(origin as f64));
            corrected.segments.iter().map(Segment::energy).sum::<Joules>().as_joules()
        };
        let (at_zero, later) = (energy(0), energy(3_600_000));
        assert!((at_zero - later).abs() < 1e-3, "{at_zero} J from 0 on, {later} J an hour later");
    }

    #[test]
    fn too_coarse_a_trace_is_refused() {
        let trace = PowerTrace::new(
            (0..20)
                .map(|i| PowerReading {
                    time: ms(f64::from(i) * 1000.0),
                    power: Watts::from_watts(f64::from(i % 3)),
                })
                .collect(),
        );
        let model = SensorModel::new(SensorKind::Rc { time_constant: Nanoseconds::from_millis(50) });
        assert!(matches!(correct(&trace, &model), Err(CorrectError::PolledTooSeldom(..))));
    }

    /// 437 ms of 50 W and 437 ms of 150 W in turn.
    fn square(millis: f64) -> f64 {
        if ((millis / HALF) as u64).is_multiple_of(2) { 50.0 } else { 150.0 }
    }
    const HALF: f64 = 437.0;
    const MILLIS: u32 = 8000;

    /// What a sensor shows of it that is refreshed so often, polled every 2 ms.
    fn polled(period: u32, mut shown: impl FnMut(f64) -> f64) -> PowerTrace {
        let mut at_refresh = 0.0;
        let poll = |millis: u32| {
            if millis % period < 2 {
                at_refresh = shown(f64::from(millis / period * period));
            }
            PowerReading { time: ms(f64::from(millis)), power: Watts::from_watts(at_refresh) }
        };
        PowerTrace::new((0..MILLIS).step_by(2).map(poll).collect())
    }

    fn through_a_window(period: u32, window: f64) -> PowerTrace {
        polled(period, |end| {
            let of = |step: u32| square((end - window * (f64::from(step) + 0.5) / 1000.0).max(0.0));
            (0..1000).map(of).sum::<f64>() / 1000.0
        })
    }

    fn through_a_capacitor(period: u32, constant: f64) -> PowerTrace {
        let (mut charge, mut at) = (50.0, 0.0);
        polled(period, |until| {
            while at < until {
                charge += (square(at) - charge) * (1.0 - (-0.1 / constant).exp());
                at += 0.1;
            }
            charge
        })
    }

    /// Switches are where they were, and there is next to nothing between the two levels.
    fn assert_square(corrected: &Corrected) {
        let curve = corrected.curve();
        for half in 2..16 {
            let (start, end) = (f64::from(half) * HALF, f64::from(half + 1) * HALF);
            let mean = curve.mean(ms(start), ms(end)).expect("within the trace").as_watts();
            assert!((mean / square(start + 1.0) - 1.0).abs() < 0.03, "{mean} W from {start} to {end} ms");
        }
        let is_between = |segment: &&Segment| (60.0..140.0).contains(&segment.power.as_watts());
        let seconds = |segment: &Segment| segment.duration().as_secs_f64();
        let inside = |segment: &&Segment| segment.start > ms(HALF) && segment.end < ms(16.0 * HALF);
        let between: f64 = corrected.segments.iter().filter(inside).filter(is_between).map(seconds).sum();
        assert!(between < 0.03, "{between} s between the levels");
    }

    #[test]
    fn what_a_window_smeared_is_put_back() {
        for (period, window) in [(30, 100), (20, 20), (100, 25)] {
            let span = Nanoseconds::from_millis(window);
            let model = SensorModel {
                refresh: Some(Nanoseconds::from_millis(u64::from(period))),
                ..SensorModel::new(SensorKind::Boxcar { window: span })
            };
            let corrected = correct(&through_a_window(period, window as f64), &model).expect("long enough");
            assert_eq!(corrected.resolution, Nanoseconds::from_millis(window.max(u64::from(period))));
            if window >= u64::from(period) {
                assert_square(&corrected);
            }
        }
    }

    #[test]
    fn what_a_capacitor_smeared_is_put_back() {
        let constant = Nanoseconds::from_millis(80);
        let model = SensorModel {
            refresh: Some(Nanoseconds::from_millis(30)),
            ..SensorModel::new(SensorKind::Rc { time_constant: constant })
        };
        let corrected = correct(&through_a_capacitor(30, 80.0), &model).expect("long enough");
        assert_square(&corrected);
        assert_eq!(corrected.resolution, corrected.refresh.period);
    }

    /// 100 W, and this much more or less at each refresh.
    fn noisy(watts: f64) -> PowerTrace {
        let mut random = crate::numerics::random::Random::seeded(5);
        polled(20, |_| 100.0 + watts * random.symmetric())
    }

    #[test]
    fn noise_is_told_and_not_taken_for_steps() {
        let model = SensorModel {
            refresh: Some(Nanoseconds::from_millis(20)),
            ..SensorModel::new(SensorKind::Boxcar { window: Nanoseconds::from_millis(20) })
        };
        let trace = noisy(3.0);
        let corrected = correct(&trace, &model).expect("long enough");
        // Of numbers that are equally likely from -3 to 3.
        let deviation = 3.0 / 3f64.sqrt();
        for noise in [corrected.noise, corrected.level_noise] {
            assert!((0.8..1.25).contains(&(noise.as_watts() / deviation)), "{noise} for {deviation} W");
        }
        // Nothing was put together to steps.
        let refresh = refresh_of(&trace, &model).expect("long enough");
        let shown = center(&refresh::refreshes(&trace, &refresh), Nanoseconds::from_millis(20), ms(0.0));
        assert_eq!(corrected.segments, shown);
    }

    /// What a board multiplies readings by, it multiplies everything by that is told in watts.
    #[test]
    fn a_gain_is_the_gain_of_all_watts() {
        let mut random = crate::numerics::random::Random::seeded(9);
        let (mut charge, mut at) = (50.0, 0.0);
        let trace = polled(30, |until| {
            while at < until {
                charge += (square(at) - charge) * (1.0 - (-0.1f64 / 80.0).exp());
                at += 0.1;
            }
            charge + 0.2 * random.symmetric()
        });
        for kind in [
            SensorKind::Rc { time_constant: Nanoseconds::from_millis(80) },
            SensorKind::Boxcar { window: Nanoseconds::from_millis(30) },
            SensorKind::Counter,
        ] {
            let [plain, double] = [1.0, 2.0].map(|gain| {
                correct(&trace, &SensorModel { gain, ..SensorModel::new(kind) }).expect("long enough")
            });
            let is_double = |a: Watts, b: Watts| {
                (b.as_watts() - 2.0 * a.as_watts()).abs() < 1e-9 * a.as_watts().abs().max(1.0)
            };
            assert!(is_double(plain.noise, double.noise), "{kind:?}");
            assert!(
                plain.level_noise > Watts::ZERO && is_double(plain.level_noise, double.level_noise),
                "{kind:?}"
            );
            for (plain, double) in [(&plain.segments, &double.segments), (&plain.levels, &double.levels)] {
                assert!(plain.len() > 10 && plain.len() == double.len(), "{kind:?}");
                assert!(
                    plain.iter().zip(double).all(|(a, b)| is_double(a.power, b.power) && a.start == b.start)
                );
            }
        }
    }

    proptest! {
        /// `int P dt = int s dt + C (s_end - s_start)`, whatever the readings: checked on the exact
        /// integral of the sensor's own exponential curve between refreshes.
        #[test]
        fn unchanging_a_capacitor_conserves_energy(
            steps in prop::collection::vec((1.0f64..130.0, 0.0f64..300.0), 3..40),
            millis in 20.0f64..900.0,
        ) {
            let constant = Nanoseconds::from_secs_f64(millis * 1e-3);
            let c = constant.as_secs_f64();
            let (mut time, mut refreshes) = (0.0, Vec::new());
            for (gap, watts) in &steps {
                time += gap;
                refreshes.push(Refresh { earliest: ms(time), latest: ms(time), power: Watts::from_watts(*watts) });
            }
            let segments = uncharge(&refreshes, constant);
            let energy: Joules = segments.iter().map(Segment::energy).sum();
            let sensor: f64 = segments.iter().zip(&refreshes).map(|(segment, from)| {
                let dt = segment.duration().as_secs_f64();
                let power = segment.power.as_watts();
                power * dt + (from.power.as_watts() - power) * c * (1.0 - (-dt / c).exp())
            }).sum();
            let ends = steps[steps.len() - 1].1 - steps[0].1;
            prop_assert!((energy.as_joules() - sensor - c * ends).abs() < 1e-6 * (1.0 + energy.as_joules().abs()));
        }
    }

    #[test]
    fn a_burst_is_resolved_that_is_longer_than_what_smears_it() {
        let model = SensorModel {
            refresh: Some(Nanoseconds::from_millis(20)),
            ..SensorModel::new(SensorKind::Boxcar { window: Nanoseconds::from_millis(50) })
        };
        let corrected = correct(&through_a_window(20, 50.0), &model).expect("long enough");
        // The window, and a refresh to both sides of it.
        let least = Nanoseconds::from_millis(90);
        let shorter = Nanoseconds::from_nanos(least.as_nanos() - 1);
        assert!(corrected.resolves(least) && !corrected.resolves(shorter));
    }

    #[test]
    fn the_published_correction_by_hand() {
        let trace = |readings: &[(f64, f64)]| {
            let reading = |(time, watts): &(f64, f64)| PowerReading {
                time: ms(*time),
                power: Watts::from_watts(*watts),
            };
            PowerTrace::new(readings.iter().map(reading).collect())
        };
        let constant = Nanoseconds::from_millis(60);
        let of = |readings: &[(f64, f64)]| correct_as_published(&trace(readings), constant);
        // 200 W in 40 ms are 300 W in 60 ms.
        let curve = of(&[(0.0, 100.0), (10.0, 150.0), (40.0, 300.0)]).expect("three readings");
        assert_eq!(curve.knots().len(), 1);
        let (time, power) = curve.knots()[0];
        assert!(time == ms(10.0) && (power.as_watts() - 450.0).abs() < 1e-9, "{power}");
        assert_eq!(of(&[(0.0, 100.0), (10.0, 150.0)]), Err(CorrectError::TooShort(2, 2)));
    }
}

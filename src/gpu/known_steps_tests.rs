//! Simulated sensors whose truth is exact, corrected by the times of switching.

use super::*;
use crate::gpu::correct::correct;
use crate::gpu::infer::load_curve;
use crate::gpu::trace::PowerReading;
use crate::units::Nanoseconds;

const REST: f64 = 120.0;
const LOAD: f64 = 400.0;

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(((10_000.0 + seconds) * 1e9).round() as u64)
}

fn window(millis: u64) -> SensorModel {
    let kind = SensorKind::Boxcar { window: Nanoseconds::from_millis(millis) };
    let delay = Some(Delay { seconds: 0.0, std_error: 1e-3 });
    SensorModel { gain_error: 0.0, delay, ..SensorModel::new(kind) }
}

/// Bursts of so long with rests as long during 4 s, after 2 s and before 3 s at rest, polled every 4 ms through a window
/// that is refreshed every 100 ms.
fn recorded(burst: f64, window: f64, phase: f64) -> (PowerTrace, Vec<Timestamp>, PowerCurve) {
    let switches: Vec<Timestamp> =
        (0..(2.0 / burst).round() as u32 * 2).map(|n| at(2.0 + burst * f64::from(n))).collect();
    let share = load_curve(&switches, (at(-5.0), at(9.0)));
    let watts = |share: Watts| Watts::from_watts(REST + (LOAD - REST) * share.as_watts());
    let truth = PowerCurve::new(share.knots().iter().map(|(time, share)| (*time, watts(*share))).collect());
    let reading = |n: u32| {
        let time = 0.004 * f64::from(n);
        let refresh = ((time - phase) / 0.1).floor();
        let end = phase + 0.1 * refresh;
        let noise = (refresh as i64 * 7).rem_euclid(5) as f64 * 0.5 - 1.0;
        let power = truth.mean(at(end - window), at(end)).expect("within") + Watts::from_watts(noise);
        PowerReading { time: at(time), power }
    };
    (PowerTrace::new((0..2100).map(reading).collect()), switches, truth)
}

fn known(trace: &PowerTrace, switches: &[Timestamp], model: &SensorModel) -> KnownSteps {
    let corrected = correct(trace, model).expect("long enough");
    KnownSteps::of(trace, &corrected, switches, model).expect("they meet")
}

/// Slow loads keep what lies above rest, wherever refreshes fall.
#[test]
fn bursts_with_readings_of_their_own_are_known_one_by_one() {
    for burst in [0.25, 0.4, 0.5, 1.0] {
        for phase in [0.0, 0.031, 0.077] {
            let (trace, switches, truth) = recorded(burst, 0.025, phase);
            let found = known(&trace, &switches, &window(25));
            assert_eq!(found.shown, Shown::OneByOne { without: 0 }, "{burst}");
            let idle = found.idle.expect("rests");
            assert!(
                (idle.power.as_watts() - REST).abs() < 2.0 && idle.std_error.as_watts() < 2.0,
                "{idle:?}"
            );
            for pair in switches.chunks_exact(2) {
                let (energy, expected) =
                    (found.curve.energy(pair[0], pair[1]), truth.energy(pair[0], pair[1]));
                let above = found.above_idle(pair[0], pair[1]).expect("a level");
                let expected_above = (LOAD - REST) * burst;
                assert!((energy / expected - 1.0).abs() < 0.02, "{burst} {phase}: {energy} of {expected}");
                let off = above.energy.as_joules() / expected_above - 1.0;
                assert!(off.abs() < 0.03, "{burst} {phase}: {off} above rest");
            }
        }
    }
}

/// Six seconds of load, after which the GPU waits at 160 W for two before it rests; the sensor's mean of 1.3 s comes once a second
/// then, so that one reading tells of that level.
#[test]
fn a_level_that_one_reading_tells_is_as_uncertain_as_the_rest_moves() {
    let watts = Watts::from_watts;
    let steps = [(-5.0, 2.0, REST), (2.0, 8.0, LOAD), (8.0, 10.0, 160.0), (10.0, 20.0, REST)];
    let knots =
        steps.iter().flat_map(|(from, to, power)| [(at(*from), watts(*power)), (at(*to), watts(*power))]);
    let truth = PowerCurve::new(knots.collect());
    let reading = |n: u32| {
        let time = 0.004 * f64::from(n);
        let end = if time < 8.0 { (time * 10.0).floor() / 10.0 } else { time.floor() };
        let noise = (n / 25 * 7 % 5) as f64 * 0.5 - 1.0;
        let noise = if time < 8.0 { noise } else { 0.0 };
        PowerReading {
            time: at(time),
            power: truth.mean(at(end - 1.3), at(end)).expect("within") + watts(noise),
        }
    };
    let trace = PowerTrace::new((0..4000).map(reading).collect());
    let found = known(&trace, &[at(2.0), at(8.0)], &window(1300));
    let idle = found.idle.expect("it rests");
    let off = (idle.power - watts(160.0)).as_watts().abs();
    assert!(off < 2.0 * idle.std_error.as_watts(), "{idle:?}");
    assert!((5.0..20.0).contains(&idle.std_error.as_watts()), "{idle:?}");
    let above = found.above_idle(at(2.0), at(8.0)).expect("a level");
    let error = above.by_chance.as_joules().hypot(above.by_level.as_joules());
    assert!((above.energy.as_joules() - 6.0 * (LOAD - 160.0)).abs() < 2.0 * error, "{above:?}");
}

/// The error of joules above rest is of their own size, not of many times it.
#[test]
fn bursts_that_are_about_a_refresh_long_have_narrow_intervals() {
    for burst in [0.0997, 0.1, 0.13, 0.25] {
        let (trace, switches, truth) = recorded(burst, 0.025, 0.037);
        let found = known(&trace, &switches, &window(25));
        let (first, last) = (switches[0], switches[switches.len() - 1]);
        let (energy, expected) = (found.curve.energy(first, last), truth.energy(first, last));
        let error = found.std_error(first, last);
        assert!(
            (energy / expected - 1.0).abs() < 0.01 && error / expected < 0.02,
            "{burst}: {energy} +- {error} of {expected}"
        );
        let above = found.above_idle(first, last).expect("a level");
        let error = above.by_chance.as_joules().hypot(above.by_level.as_joules());
        assert!(error < 0.1 * above.energy.as_joules(), "{burst}: {above:?}");
    }
}

/// A long window lags behind by half of its length; joules from the first to the last switch do not.
#[test]
fn joules_under_a_long_window_are_not_those_of_what_it_lags_behind() {
    for burst in [0.025, 0.05, 0.1, 0.25, 0.5] {
        let (trace, switches, truth) = recorded(burst, 1.0, 0.037);
        let found = known(&trace, &switches, &window(1000));
        assert_ne!(found.shown, Shown::OneByOne { without: 0 }, "{burst}");
        let (first, last) = (switches[0], switches[switches.len() - 1]);
        let (energy, expected) = (found.curve.energy(first, last), truth.energy(first, last));
        let error = found.std_error(first, last);
        let raw = trace.as_polled().energy(first, last);
        assert!((raw / expected - 1.0).abs() > 0.05, "what is read is off: {raw} of {expected}");
        assert!((energy / expected - 1.0).abs() < 0.01, "{burst}: {energy} of {expected}");
        assert!(
            (energy - expected).as_joules().abs() < 1.96 * error.as_joules() + 1e-3 * expected.as_joules(),
            "{burst}"
        );
        // What is drawn has the same joules, and rest before and behind it.
        assert!((found.curve.at(at(1.0)).expect("within").as_watts() - REST).abs() < 1.0);
    }
}

/// Bursts of 25 ms under a window of 25 ms that is refreshed every 100 ms: each reading sees the same half burst. What would be
/// corrected by less than is not known of it is left as it was read.
#[test]
fn a_load_in_step_is_not_made_worse_than_its_interval_says() {
    let mut as_read = 0;
    for phase in [0.0, 0.005, 0.012, 0.02, 0.037] {
        for burst in [0.025, 0.05] {
            let (trace, switches, truth) = recorded(burst, 0.025, phase);
            let corrected = correct(&trace, &window(25)).expect("long enough");
            let Ok(found) = KnownSteps::of(&trace, &corrected, &switches, &window(25)) else { continue };
            let (first, last) = (switches[0], switches[switches.len() - 1]);
            let (energy, read) = (found.curve.energy(first, last), trace.as_polled().energy(first, last));
            let error = found.std_error(first, last).as_joules();
            if found.shown == (Shown::Mixed { is_as_read: true }) {
                assert!((energy - read).as_joules().abs() < 1e-6 * read.as_joules(), "{energy} for {read}");
                as_read += 1;
            }
            let [off, raw] =
                [energy, read].map(|joules| (joules - truth.energy(first, last)).as_joules().abs());
            assert!(off <= raw + 1.96 * error, "{burst} {phase}: {off} J off, raw {raw}, +- {error}");
        }
    }
    assert!(as_read > 0, "each of them is known");
}

#[test]
fn times_that_the_sensor_does_not_follow_are_refused() {
    let (trace, switches, _) = recorded(0.5, 0.025, 0.0);
    let others: Vec<Timestamp> = switches.iter().map(|time| *time + Nanoseconds::from_millis(250)).collect();
    let corrected = correct(&trace, &window(25)).expect("long enough");
    let refused = KnownSteps::of(&trace, &corrected, &others, &window(25)).expect_err("other times");
    assert!(matches!(refused, ReferenceError::BadFit { .. }), "{refused}");
    let far: Vec<Timestamp> = switches.iter().map(|time| *time + Nanoseconds::from_millis(60_000)).collect();
    let refused = KnownSteps::of(&trace, &corrected, &far, &window(25)).expect_err("another run");
    assert_eq!(refused, ReferenceError::Unseen);
}

/// Power before and after a load is what was read there, whatever the number of times would have: the last may only be the end
/// of the program, or the load may go on.
#[test]
fn before_and_after_the_switches_power_is_as_it_was_read() {
    for (burst, millis) in [(0.05, 25), (0.03, 100), (0.05, 1000)] {
        let (trace, switches, truth) = recorded(burst, millis as f64 / 1e3, 0.037);
        let less = |by: usize| switches[..switches.len() - by].to_vec();
        // The program's end, a rest after the load's; the load's end left out; and all of the last load.
        let end = switches[switches.len() - 1] + Nanoseconds::from_secs_f64(burst);
        let lists = [switches.clone(), [&switches[..], &[end]].concat(), less(1), less(2)];
        for times in &lists {
            let found = known(&trace, times, &window(millis));
            // Where the window looked at nothing but rest.
            let last = at(6.0) + Nanoseconds::from_millis(millis + 200);
            for (from, until) in [(at(0.3), at(1.9)), (last, at(8.2))] {
                let mean = found.curve.mean(from, until).expect("within").as_watts();
                assert!((mean - REST).abs() < 1.0, "{burst} s, {millis} ms, {} times: {mean} W", times.len());
            }
            // From end to end nothing is lost or made: what windows leave unseen is what loads of one level differ by.
            let (first, last) = truth_span(&found.curve);
            let (energy, expected) = (found.curve.energy(first, last), truth.energy(first, last));
            assert!(
                (energy / expected - 1.0).abs() < 0.03,
                "{burst} s, {millis} ms, {} times: {energy} of {expected}",
                times.len()
            );
            let error = found.std_error(first, last);
            assert!(error.as_joules() > 0.0 && error / expected < 0.05, "{error}");
        }
    }
}

fn truth_span(curve: &PowerCurve) -> (Timestamp, Timestamp) {
    let (first, last) = curve.span().expect("a curve");
    (first.max(at(-4.0)), last.min(at(8.9)))
}

/// Outside of the load each reading stands for its own refresh, and errs by itself.
#[test]
fn outside_of_a_load_the_error_grows_with_the_root_of_the_readings() {
    let (trace, switches, _) = recorded(0.025, 0.1, 0.037);
    let found = known(&trace, &switches, &window(100));
    let of_one = (found.levels.residual * found.period).as_joules();
    assert!(of_one > 0.0);
    let error = |readings: u64| {
        let end = at(6.5) + Nanoseconds::from_nanos(readings * found.period.as_nanos());
        found.error_outside(at(6.5), end).as_joules() / of_one
    };
    assert!([1, 4, 9].iter().all(|&readings| (error(readings) - (readings as f64).sqrt()).abs() < 1e-9));
    assert_eq!(found.error_outside(at(3.0), at(5.0)), Joules::ZERO, "between the switches");
}

//! Levels of simulated loads, whose truth is exact.

use super::*;
use crate::gpu::refresh::Refresh;

const REST: f64 = 120.0;
const LOAD: f64 = 400.0;

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(((10_000.0 + seconds) * 1e9).round() as u64)
}

/// Bursts of so long with rests as long, 4 s of them after 2 s at rest.
fn switches(burst: f64) -> Vec<Timestamp> {
    (0..(4.0 / burst / 2.0) as u32 * 2).map(|n| at(2.0 + burst * f64::from(n))).collect()
}

/// What a window of so long shows every 100 ms, the first after `phase`.
fn refreshes(switches: &[Timestamp], window: f64, delay: f64, phase: f64) -> Vec<Refresh> {
    let load = load_curve(switches, (at(-10.0), at(20.0)));
    let reading = |n: u32| {
        let time = phase + 0.1 * f64::from(n);
        let (from, to) = (at(time - delay - window), at(time - delay));
        let share = load.mean(from, to).map_or(0.0, Watts::as_watts);
        let noise = 0.5 * f64::from(n * 7 % 5) - 1.0;
        Refresh {
            earliest: at(time),
            latest: at(time),
            power: Watts::from_watts(REST + (LOAD - REST) * share + noise),
        }
    };
    (0..80).map(reading).collect()
}

fn window(seconds: f64) -> SensorModel {
    SensorModel::new(SensorKind::Boxcar { window: Nanoseconds::from_secs_f64(seconds) })
}

fn levels(
    burst: f64,
    length: f64,
    delay: f64,
    phase: f64,
    model: &SensorModel,
) -> (KnownLevels, f64, (f64, f64)) {
    let switches = switches(burst);
    let readings = refreshes(&switches, length, delay, phase);
    let found = KnownLevels::of(&readings, Nanoseconds::from_millis(100), &switches, model).expect("levels");
    let (first, last) = (switches[0], switches[switches.len() - 1]);
    let (energy, error) = found.energy(first, last);
    let on = load_curve(&switches, (first, last)).energy(first, last).as_joules();
    let truth = REST * last.since(first).as_secs_f64() + (LOAD - REST) * on;
    (found, truth, (energy.as_joules(), error.as_joules()))
}

/// A long window sees the mean of many bursts whatever it is: the joules are right although the levels are not known.
#[test]
fn a_window_that_shows_no_levels_shows_their_joules() {
    for (burst, length) in [(0.05, 0.1), (0.025, 0.1), (0.05, 1.0), (0.1, 1.0), (0.25, 1.0)] {
        let (found, truth, (energy, error)) = levels(burst, length, 0.0, 0.037, &window(length));
        println!("{burst} {length}: {energy:.1} +- {error:.1} of {truth:.1} {found:?}");
        assert!(
            (energy / truth - 1.0).abs() < 0.01 && error / truth < 0.02,
            "{burst} {length}: {energy} +- {error} of {truth}"
        );
        let (rest, rest_error) = found.rest();
        assert!(
            (rest.as_watts() - REST).abs() < 1.0 && rest_error.as_watts() < 1.0,
            "{rest} +- {rest_error}"
        );
    }
}

/// Every reading sees the same part of the load. Which part, the delay would say.
#[test]
fn a_load_in_step_with_the_sensor_is_known_as_well_as_the_delay() {
    let (_, truth, (energy, error)) = levels(0.025, 0.025, 0.0, 0.037, &window(0.025));
    assert!(error / truth > 0.05 && (energy - truth).abs() < 1.96 * error, "{energy} +- {error} of {truth}");
    let measured = SensorModel { delay: Some(Delay { seconds: 0.0, std_error: 1e-4 }), ..window(0.025) };
    let (_, truth, (energy, closer)) = levels(0.025, 0.025, 0.0, 0.037, &measured);
    assert!(
        (energy - truth).abs() < 1.96 * closer && closer < 0.7 * error,
        "{energy} +- {closer} of {truth}"
    );
}

/// Bursts that are not in step tell window, delay and levels.
#[test]
fn what_varies_tells_all() {
    let unsure = SensorModel { length_error: 0.2, ..window(0.03) };
    let (found, truth, (energy, error)) = levels(0.0831, 0.025, 0.012, 0.037, &unsure);
    assert!((found.delay.seconds - 0.012).abs() < 0.002, "{:?}", found.delay);
    assert!((found.length.0 - 0.025).abs() < 0.003, "{:?}", found.length);
    assert!((found.low().0.as_watts() - REST).abs() < 3.0 && (found.high().0.as_watts() - LOAD).abs() < 3.0);
    assert!((energy / truth - 1.0).abs() < 0.01 && error / truth < 0.02, "{energy} +- {error} of {truth}");
    let (contrast, error) = found.contrast();
    assert!((contrast.as_watts() - 280.0).abs() < 4.0 && error.as_watts() < 5.0, "{contrast} +- {error}");
    let (above, _) = found.above_rest(at(0.0), at(8.0));
    let on = found.load.energy(at(0.0), at(8.0)).as_joules();
    assert!((above.as_joules() / (on * 280.0) - 1.0).abs() < 0.02);
}

/// Whatever burst, window, delay and phase: 95 % of the intervals hold, and what is found is never farther from the truth
/// than its interval and what the readings alone say together.
#[test]
fn intervals_hold_over_bursts_windows_and_phases() {
    let (mut held, mut tried) = (0, 0);
    for length in [0.025, 0.1, 0.5, 1.0] {
        for burst in [0.01, 0.025, 0.0333, 0.05, 0.0731, 0.0997, 0.1, 0.13, 0.25, 0.4] {
            for (phase, delay) in [(0.0, 0.0), (0.013, 0.007), (0.037, 0.0), (0.061, 0.02), (0.088, 0.011)] {
                let model = SensorModel { length_error: 0.05, ..window(length * 1.03) };
                let switches = switches(burst);
                let readings = refreshes(&switches, length, delay, phase);
                let (low, high) = quantiles::range(readings.iter().map(|of| of.power.as_watts()));
                if high - low < 0.1 * high {
                    let found = KnownLevels::of(&readings, Nanoseconds::from_millis(100), &switches, &model);
                    assert!(found.is_none(), "no reading shows the load");
                    continue;
                }
                let (_, truth, (energy, error)) = levels(burst, length, delay, phase, &model);
                let raw: Vec<f64> = readings
                    .iter()
                    .filter(|of| (switches[0]..=switches[switches.len() - 1]).contains(&of.time()))
                    .map(|of| of.power.as_watts())
                    .collect();
                let span = switches[switches.len() - 1].since(switches[0]).as_secs_f64();
                let raw = raw.iter().sum::<f64>() / raw.len() as f64 * span;
                let off = (energy - truth).abs();
                tried += 1;
                held += usize::from(off <= 1.96 * error + 1e-3 * truth);
                if off > 1.96 * error + 1e-3 * truth {
                    println!(
                        "window {length}, burst {burst}, {phase}, {delay}: {energy:.1} +- {error:.1}, raw {raw:.1}, of {truth:.1}"
                    );
                }
                assert!(
                    off <= (raw - truth).abs() + 1.96 * error + 1e-3 * truth,
                    "window {length}, burst {burst}, {phase}, {delay}: {energy} +- {error}, raw {raw}, of {truth}"
                );
            }
        }
    }
    println!("{held} of {tried}");
    assert!(held * 100 >= tried * 93, "{held} of {tried}");
}

#[test]
fn too_little_tells_nothing() {
    let switches = switches(0.4);
    let period = Nanoseconds::from_millis(100);
    let readings = refreshes(&switches, 0.1, 0.0, 0.0);
    assert!(KnownLevels::of(&readings[..7], period, &switches, &window(0.1)).is_none());
    assert!(KnownLevels::of(&readings, period, &[], &window(0.1)).is_none());
    assert!(
        KnownLevels::of(&readings[..15], period, &switches, &window(0.1)).is_none(),
        "they are all alike"
    );
}

#[test]
fn a_window_may_lie_elsewhere_by_all_that_is_not_known_of_it() {
    let (found, ..) = levels(0.4, 0.1, 0.0, 0.037, &window(0.1));
    let delay = Delay { seconds: 0.2, std_error: 0.01 };
    let found = KnownLevels { length: (1.0, 0.02), delay, ..found };
    // 10 ms, twice 20 ms, and a twentieth of a second.
    assert!((found.margin() - 0.1).abs() < 1e-12);
}

#[test]
fn a_shorter_window_with_the_same_middle_ends_earlier() {
    assert!((delay_of(0.9, (1.0, 0.2)) - 0.25).abs() < 1e-12);
    assert!((delay_of(1.2, (1.0, 0.2)) - 0.1).abs() < 1e-12);
}

/// Without readings only what is believed beforehand is left.
#[test]
fn lengths_are_believed_as_far_as_the_model_knows_them() {
    let switches = switches(0.4);
    let load = load_curve(&switches, (at(0.0), at(6.0)));
    let readings =
        Readings { origin: at(0.0), tick: 0.1, all: Vec::new(), lowest: 0.0, highest: 1.0, range: 1.0 };
    let log_prior = |length_error: f64, length: f64| {
        let model = SensorModel { length_error, ..window(0.1) };
        let seen = Seen::new(&load, &switches, readings.origin, model.kind);
        Point::at(&readings, &seen, &model, length, 0.0).log_prior
    };
    // One standard error, and two to the other side: a half and two less.
    for (errors, less) in [(1.0f64, 0.5), (-2.0, 2.0)] {
        let fall = log_prior(0.2, 0.1) - log_prior(0.2, 0.1 * (0.2 * errors).exp());
        assert!((fall - less).abs() < 1e-9, "{fall}");
    }
    assert_eq!(log_prior(0.0, 0.1), log_prior(0.0, 0.13), "of a length that is given there is no other");
}

/// A load from 1 to 2 s and a window of 0.2 s: in the middle of the load its time does not matter, at a switch it does.
#[test]
fn a_readings_time_is_in_doubt_only_where_both_ends_of_its_window_differ() {
    let switches = [at(1.0), at(2.0)];
    let load = load_curve(&switches, (at(0.0), at(3.0)));
    let kind = SensorKind::Boxcar { window: Nanoseconds::from_millis(200) };
    let seen = Seen::new(&load, &switches, at(0.0), kind);
    let doubt = |time: f64| seen.doubt(time, 0.2, 0.5, 0.01);
    assert_eq!([doubt(0.5), doubt(1.5), doubt(2.5)], [0.0; 3]);
    // A hundredth of a second, and a thousandth of when the power follows the switch, of a fifth of a second.
    let at_a_switch = (0.01f64.powi(2) + EDGE.powi(2)) / 0.04;
    for time in [1.1, 2.1] {
        assert!((doubt(time) - at_a_switch).abs() < 1e-12, "{time}: {}", doubt(time));
    }
}

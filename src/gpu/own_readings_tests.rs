//! A load from 1 to 5 s between rests, by hand.

use super::*;

fn stretch(start: f64, end: f64, is_load: bool, own: &[(f64, f64)]) -> Stretch {
    Stretch { start, end, is_load, own: own.to_vec() }
}

fn stretches() -> [Stretch; 3] {
    [
        stretch(0.0, 1.0, false, &[]),
        stretch(1.0, 5.0, true, &[(2.0, 390.0), (3.0, 410.0)]),
        stretch(5.0, 9.0, false, &[(7.0, 100.0)]),
    ]
}

const LEVELS: Levels = Levels { load: 400.0, rest: 105.0, reading: 4.0, load_square: 9.0, rest_square: 16.0 };

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(((1000.0 + seconds) * 1e9).round() as u64)
}

#[test]
fn each_reading_stands_for_the_time_that_is_nearest_to_it() {
    let stretches = stretches();
    assert_eq!(LEVELS.pieces(&stretches, 0), [(0.0, 1.0, 105.0)], "none of its own");
    assert_eq!(LEVELS.pieces(&stretches, 1), [(1.0, 2.5, 390.0), (2.5, 5.0, 410.0)]);
    assert_eq!(LEVELS.pieces(&stretches, 2), [(5.0, 9.0, 100.0)]);
}

/// Windows of a second, of which the third has the end of the load in its middle: 20 W more than half of 410 and of 100 W.
#[test]
fn what_a_mixed_window_shows_more_is_spread_over_its_time() {
    let window = |start: f64, watts: f64, own: Option<usize>| Window { start, end: start + 1.0, watts, own };
    let windows = [
        window(1.5, 390.0, Some(1)),
        window(2.5, 410.0, Some(1)),
        window(4.5, 275.0, None),
        window(6.5, 100.0, Some(2)),
    ];
    let found = OwnReadings::assembled(&stretches(), &windows, &LEVELS, (at(0.0), 0));
    let shown: Vec<(f64, f64, f64)> = found
        .segments
        .iter()
        .map(|of| {
            let second = |time: Timestamp| time.since(at(0.0)).as_secs_f64();
            (second(of.start), second(of.end), of.power.as_watts())
        })
        .collect();
    // Half way between middles of windows one reading gives way to the next.
    let expected = [
        (0.0, 1.0, 105.0),
        (1.0, 2.5, 390.0),
        (2.5, 4.0, 410.0),
        (4.0, 5.0, 430.0),
        (5.0, 6.0, 120.0),
        (6.0, 9.0, 100.0),
    ];
    assert_eq!(shown, expected);
    // Readings err by 2 W, each for all of the time that it stands for, the mixed one by 20 W; rest without any by 4 W.
    let error = |start: f64, end: f64| found.std_error(at(start), at(end)).as_joules();
    assert!((error(0.0, 1.0) - 4.0).abs() < 1e-9);
    assert!((error(1.0, 2.0) - 2.0).abs() < 1e-9);
    assert!((error(1.0, 4.0) - (3f64.powi(2) + 3f64.powi(2)).sqrt()).abs() < 1e-9);
    assert!((error(1.0, 5.0) - (3f64.powi(2) + 5f64.powi(2) + 20f64.powi(2)).sqrt()).abs() < 1e-9);
}

#[test]
fn readings_of_one_stretch_tell_their_noise_and_loads_how_they_differ() {
    let all = [
        stretch(0.0, 1.0, false, &[(0.5, 50.0)]),
        stretch(1.0, 5.0, true, &[(2.0, 390.0), (3.0, 410.0)]),
        stretch(5.0, 6.0, false, &[]),
        stretch(6.0, 8.0, true, &[(7.0, 420.0)]),
        stretch(8.0, 9.0, false, &[(8.5, 60.0)]),
    ];
    let found = Levels::of(&all, [500.0, 70.0]);
    // Two readings 20 W apart have a variance of 200; so have loads of 400 and 420 W. No rest between loads was read.
    assert_eq!((found.reading, found.load, found.load_square), (200.0, 410.0, 200.0));
    assert_eq!((found.rest, found.rest_square), (70.0, 0.0));
    // Without two readings of one stretch those of different ones are compared.
    let single = [
        stretch(0.0, 1.0, false, &[]),
        stretch(1.0, 5.0, true, &[(2.0, 400.0)]),
        stretch(5.0, 6.0, false, &[(5.5, 80.0)]),
        stretch(6.0, 8.0, true, &[(7.0, 430.0)]),
        stretch(8.0, 9.0, false, &[]),
    ];
    assert_eq!(Levels::of(&single, [0.0; 2]).reading, 450.0);
}

/// A burst from 2 to 5 s as a window of 0.1 s shows it.
#[test]
fn a_burst_alone_has_no_rests_between_bursts_to_be_read() {
    let switches = [at(2.0), at(5.0)];
    let refresh = |number: u32| {
        let time = 0.05 + 0.1 * f64::from(number);
        let on = (time.min(5.0) - (time - 0.1).max(2.0)).max(0.0) / 0.1;
        // Readings differ, or one value would stand for several.
        let watts = 100.0 + 300.0 * on + f64::from(number % 2);
        Refresh { earliest: at(time), latest: at(time), power: Watts::from_watts(watts) }
    };
    let refreshes: Vec<Refresh> = (0..80).map(refresh).collect();
    let window = Nanoseconds::from_millis(100);
    let model = SensorModel::new(SensorKind::Boxcar { window });
    let levels = KnownLevels::of(&refreshes, window, &switches, &model).expect("levels");
    let own = OwnReadings::of(&refreshes, &levels, &switches, (at(0.0), at(8.0)), &model);
    assert_eq!(own.expect("both levels were read").without, 0);
}

/// Five readings each within a second behind bursts: two rests at 50, two at 52, and two at 54 W.
#[test]
fn the_level_after_bursts_is_in_doubt_by_how_rests_differ() {
    let rest = |number: u32| {
        let (start, watts) = (10.0 * f64::from(number), f64::from(50 + number / 2 * 2));
        let own: Vec<(f64, f64)> = (1..=5).map(|at| (start + 0.15 * f64::from(at), watts)).collect();
        stretch(start, start + 4.0, false, &own)
    };
    let before = stretch(-5.0, 0.0, true, &[]);
    let stretches: Vec<Stretch> = std::iter::once(before).chain((0..6).map(rest)).collect();
    let found = LEVELS.idle(&stretches).expect("rests were read");
    assert_eq!(found.power, Watts::from_watts(52.0));
    // Four of them are 2 W off: a variance of 16 / 5, of six rests.
    assert!((found.std_error.as_watts() - (3.2f64 / 6.0).sqrt()).abs() < 1e-9, "{found:?}");
}

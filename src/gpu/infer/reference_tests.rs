//! Each step of the fit by hand, or beside the same said plainly.

use super::*;
use crate::gpu::trace::PowerReading;

fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos(((10_000.0 + seconds) * 1e9).round() as u64)
}

fn trace(times: impl IntoIterator<Item = f64>) -> PowerTrace {
    let reading = |seconds: f64| PowerReading { time: at(seconds), power: Watts::from_watts(50.0) };
    PowerTrace::new(times.into_iter().map(reading).collect())
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} for {expected}");
}

/// What was seen is 1, 3 and 5; watts are 12, 14 and 19: products of the distances from the means add up to 14, squares to 8.
#[test]
fn a_line_by_hand() {
    let line = affine(&[(1.0, 12.0), (2.0, 14.0), (3.0, 19.0)], 0.5, |time| 2.0 * time);
    close(line.slope, 1.75, 1e-12);
    close(line.constant, 9.75, 1e-12);
    // It is half a watt, one, and half a watt off.
    close(line.residual, 0.5f64.sqrt(), 1e-12);
    // What never differs tells no slope.
    assert_eq!(affine(&[(1.0, 3.0), (2.0, 5.0)], 0.0, |_| 7.0).slope, 0.0);
}

#[test]
fn grids_parts_and_doubts_by_hand() {
    let grid = log_grid(1.0, 16.0, 4);
    assert_eq!(grid.len(), 5);
    grid.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0]).for_each(|(found, expected)| close(*found, expected, 1e-9));
    // Of thirteen readings six parts are 3, 2, 2, 2, 2 and 2.
    let readings: Vec<(f64, f64)> = (0..13).map(|at| (f64::from(at), 0.0)).collect();
    let left_out = |part: usize| -> Vec<u32> {
        let rest = without_part(&readings, part);
        (0..13).filter(|at| !rest.contains(&(f64::from(*at), 0.0))).collect()
    };
    let parts: Vec<Vec<u32>> = (0..PARTS).map(left_out).collect();
    assert_eq!(parts, [vec![0, 1, 2], vec![3, 4], vec![5, 6], vec![7, 8], vec![9, 10], vec![11, 12]]);
    // Twice the middle one.
    let refresh = |doubt: u64| refresh::Refresh {
        earliest: Timestamp::from_nanos(1000),
        latest: Timestamp::from_nanos(1000 + doubt),
        power: Watts::ZERO,
    };
    assert_eq!(longest_doubt(&[100, 1, 4, 3, 2].map(refresh)), Nanoseconds::from_nanos(6));
    assert_eq!(longest_doubt(&[]), Nanoseconds::ZERO);
}

#[test]
fn a_load_is_switched_on_first() {
    let curve = load_curve(&[at(1.0), at(3.0)], (at(0.0), at(5.0)));
    let watts = Watts::from_watts;
    let expected = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (3.0, 1.0), (3.0, 0.0), (5.0, 0.0)]
        .map(|(t, w)| (at(t), watts(w)));
    assert_eq!(curve.knots(), expected);
    // As far as it is known: to the end after an even number of times, to the last of an odd number.
    let ends = |times: &[f64]| {
        let times: Vec<Timestamp> = times.iter().map(|time| at(*time)).collect();
        known_load_curve(&times, (at(0.0), at(5.0))).span().map(|(_, last)| last)
    };
    assert_eq!([ends(&[1.0, 3.0]), ends(&[1.0, 3.0, 4.0])], [Some(at(5.0)), Some(at(4.0))]);
    assert_eq!([ends(&[1.0, 3.0, 9.0]), ends(&[])], [Some(at(5.0)), Some(at(5.0))]);
}

/// Forty readings of a second each, their middle at 19.5 s.
#[test]
fn traces_are_moved_by_whole_quarters_of_an_hour() {
    let trace = trace((0..40).map(f64::from));
    let quarters = |from: f64, to: f64| aligned(&trace, (at(from), at(to))).map(|(_, found)| found.quarters);
    // The middles are 1810.5 s apart: half an hour and a little.
    let (moved, found) = aligned(&trace, (at(1810.0), at(1850.0))).expect("they share thirty readings");
    assert_eq!((found.quarters, moved.span()), (2, Some((at(1800.0), at(1839.0)))));
    assert_eq!(moved.readings().len(), 40);
    // 449 s are nearer to none, 451 s to one, to both sides.
    assert_eq!([quarters(-500.0, 1437.0), quarters(-500.0, 1441.0)], [Ok(0), Ok(1)]);
    assert_eq!([quarters(-1400.0, 541.0), quarters(-1400.0, 537.0)], [Ok(0), Ok(-1)]);
    // Twenty readings in common are enough, the ends among them.
    assert_eq!(quarters(1820.0, 1880.0), Ok(2));
    assert_eq!(quarters(1821.0, 1881.0), Err(ReferenceError::Apart(20)));
    // Fourteen hours are the most.
    let of_hours = |hours: f64| quarters(hours * 3600.0, hours * 3600.0 + 39.0);
    let apart = |hours: f64| Err(ReferenceError::DaysApart(Nanoseconds::from_secs_f64(hours * 3600.0)));
    assert_eq!((of_hours(14.0), of_hours(240.0)), (Ok(56), apart(240.0)));
    assert_eq!(quarters(0.0, 19.0), Ok(0));
    // An hour of readings, and times near its end: 27 minutes from its middle, and within it.
    let hour = self::trace((0..3600).map(f64::from));
    let near_its_end = aligned(&hour, (at(3400.0), at(3440.0))).map(|(_, found)| found.quarters);
    assert_eq!(near_its_end, Ok(0));
    // They are of one run, and it is the reference that is short.
    let few = ReferenceError::TooFew { inside: 19, span: Nanoseconds::from_millis(18_000), least: 20 };
    assert_eq!(quarters(0.0, 18.0), Err(few.clone()));
    // They meet in one moment, at either end.
    let of_one =
        |span| Err(ReferenceError::TooFew { inside: 1, span: Nanoseconds::from_millis(span), least: 20 });
    assert_eq!((quarters(39.0, 99.0), quarters(-60.0, 0.0)), (of_one(60_000), of_one(60_000)));
    assert_eq!(quarters(39.5, 99.5), Err(ReferenceError::Apart(20)));
    assert!(
        few.to_string().contains("only 19 readings lie between")
            && few.to_string().contains("Poll more often")
    );
    assert_eq!(aligned(&PowerTrace::default(), (at(0.0), at(1.0))), Err(ReferenceError::TooShort));
}

/// A sensor that shows a wave the flatter and the later the longer it looks: what a window makes of a sine.
fn wave(length: f64) -> impl Fn(f64) -> f64 {
    move |time: f64| {
        let of = |angle: f64| {
            (angle * (time - length / 2.0)).sin() * (angle * length / 2.0).sin() / (angle * length / 2.0)
        };
        of(7.0) + 0.6 * of(19.0)
    }
}

/// Eighty readings in 4 s of a window of 0.12 s that is told of 30 ms late, each off by so much to both sides in turn.
fn waves(off: f64) -> Vec<(f64, f64)> {
    let seen = wave(0.12);
    let error = |index: u32| off * f64::from([1, -1, -1, 1, 1, 1, -1, -1, 1, -1][index as usize % 10]);
    (0..80)
        .map(|index| (f64::from(index) * 0.05, index))
        .map(|(time, index)| (time, 60.0 + 25.0 * seen(time - 0.03) + error(index)))
        .collect()
}

const LENGTHS: (f64, f64) = (0.01, 0.6);

fn residual_of(readings: &[(f64, f64)], length: f64) -> f64 {
    let delays = (-600..=600).map(|step| f64::from(step) * 0.0002);
    delays.map(|delay| affine(readings, delay, wave(length)).residual).fold(f64::MAX, f64::min)
}

#[test]
fn the_best_length_and_delay_are_found() {
    let lengths = log_grid(LENGTHS.0, LENGTHS.1, 28);
    let found = search(&waves(0.0), &lengths, 0.05, wave);
    close(found.length, 0.12, 0.002);
    close(found.delay, 0.03, 0.002);
    close(found.fit.slope, 25.0, 0.3);
    close(found.fit.constant, 60.0, 0.1);
    assert!(found.fit.residual < 0.2, "{}", found.fit.residual);
}

/// Beside the same by trying all.
#[test]
fn lengths_are_plausible_as_far_as_their_residual_is_hardly_larger() {
    let readings = waves(2.0);
    let lengths = log_grid(LENGTHS.0, LENGTHS.1, 28);
    let found = search(&readings, &lengths, 0.05, wave);
    close(found.length, 0.12, 0.02);
    let limit = 1.05 * found.fit.residual;
    for (edge, farther) in [(found.plausible.0, 0.97), (found.plausible.1, 1.03)] {
        let (inside, outside) = (residual_of(&readings, edge), residual_of(&readings, edge * farther));
        assert!(inside < limit * 1.004, "{edge}: {inside} of {limit}");
        assert!(outside > limit * 0.999, "{edge}: {outside} of {limit}");
    }
    assert!(found.plausible.0 < 0.9 * found.length && found.plausible.1 > 1.1 * found.length);
}

/// The same with no delay of its own: the length tells by how much the faster wave is flattened, and nothing else.
fn centred(length: f64) -> impl Fn(f64) -> f64 {
    move |time| wave(length)(time + length / 2.0)
}

#[test]
fn parts_left_out_tell_how_far_a_length_may_be_off() {
    let lengths = log_grid(LENGTHS.0, LENGTHS.1, 28);
    let readings = |off: f64| -> Vec<(f64, f64)> {
        let error = |(time, watts)| watts - 25.0 * wave(0.12)(time - 0.03);
        let of = |(time, watts)| (time, error((time, watts)) + 25.0 * centred(0.12)(time - 0.03));
        waves(off).into_iter().map(of).collect()
    };
    let spread = |off: f64| {
        let readings = readings(off);
        let found = search(&readings, &lengths, 0.05, centred);
        (spread_of_parts(&readings, &found, 0.05, centred), found)
    };
    let (exact, _) = spread(0.0);
    assert!((1.0..1.02).contains(&exact), "{exact}");
    let (found, best) = spread(2.0);
    // By trying all lengths and five delays: Student's t of five degrees of freedom times the jackknife's error.
    let readings = readings(2.0);
    let best_without = |part: usize| {
        let rest = without_part(&readings, part);
        let residual = |log: f64| {
            let delays = [-0.01, -0.005, 0.0, 0.005, 0.01].map(|more| best.delay + more);
            let of = |delay| affine(&rest, delay, centred(log.exp())).residual;
            delays.into_iter().map(of).fold(f64::MAX, f64::min)
        };
        let logs = (-250..=250).map(|step| best.length.ln() + f64::from(step) * 0.001);
        logs.map(|log| (log, residual(log))).min_by(|a, b| a.1.total_cmp(&b.1)).expect("some").0
    };
    let logs: Vec<f64> = (0..6).map(best_without).collect();
    let mean = logs.iter().sum::<f64>() / 6.0;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() * 5.0 / 6.0;
    let expected = (2.571 * variance.sqrt()).exp();
    assert!(expected > 1.03, "{expected}");
    close(found.ln(), expected.ln(), 0.1 * expected.ln());
    // Never more than a factor of three.
    assert!(spread(60.0).0 <= 3.0);
}

/// Beside the same with each line written out.
#[test]
fn parts_left_out_tell_the_errors_of_gain_and_offset() {
    let readings: Vec<(f64, f64)> = waves(2.0)
        .into_iter()
        .enumerate()
        .map(|(at, (time, watts))| (time, watts + at as f64 * 0.01))
        .collect();
    let points: Vec<(f64, f64)> =
        readings.iter().map(|(time, watts)| (wave(0.12)(time - 0.03), *watts)).collect();
    let (gain_error, offset_error) = scale_of_parts(&points);
    let least = readings.iter().map(|(_, watts)| *watts).fold(f64::MAX, f64::min);
    let (mut gains, mut of_least) = (Vec::new(), Vec::new());
    let parts = parts_by_leverage(&points);
    for part in 0..6 {
        let kept: Vec<(f64, f64)> =
            points.iter().zip(&parts).filter(|(_, of)| **of != part).map(|(point, _)| *point).collect();
        let count = kept.len() as f64;
        let (x, y) =
            (kept.iter().map(|p| p.0).sum::<f64>() / count, kept.iter().map(|p| p.1).sum::<f64>() / count);
        let slope = kept.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
            / kept.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
        gains.push(1.0 / slope);
        of_least.push((least - (y - slope * x)) / slope);
    }
    let error = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / 6.0;
        (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() * 5.0 / 6.0).sqrt()
    };
    let mean = gains.iter().sum::<f64>() / 6.0;
    close(gain_error, error(&gains) / mean, 1e-9);
    close(offset_error.as_watts(), error(&of_least), 1e-9);
    assert!(gain_error > 1e-3 && offset_error.as_watts() > 1e-3);
}

/// 80 readings under load and 8 at rest, which tell as much of the line as those: without a sixth of the time there would be
/// no rest and no gain.
#[test]
fn a_short_rest_is_in_several_parts() {
    let points: Vec<(f64, f64)> =
        (0..88).map(|at| if at < 8 { (0.0, 10.0) } else { (110.0, 120.0) }).collect();
    // Mean 100; squares 8 * 100^2 + 80 * 10^2 = 88,000. Each at rest has 1/88 + 10,000/88,000 = 11/88, all of them 1; each
    // under load 1/88 + 100/88,000 = 1.1/88, all of them 1 as well. So each has three parts.
    let parts = parts_by_leverage(&points);
    let count = |part: usize| parts.iter().filter(|of| **of == part).count();
    assert_eq!([0, 1, 2].map(count).iter().sum::<usize>(), 8);
    assert_eq!([0, 1, 2].map(count), [3, 2, 3]);
    assert!([3, 4, 5].map(count).iter().all(|count| (26..=27).contains(count)), "{parts:?}");
    assert!(parts.is_sorted());
    // Where nothing varies, all tell the same.
    assert_eq!(parts_by_leverage(&[(1.0, 1.0); 6]), [0, 1, 2, 3, 4, 5]);
}

/// Two loads of 40 readings each, after rests as long. Where each reading is 1 W off to one side or the other in turn, that is
/// chance. Where the first half of every stretch is 1 W too high and the second as much too low, the sensor is of another
/// shape, and the mean of two loads is off by 1 W / sqrt(2).
#[test]
fn what_a_shape_leaves_is_told_from_chance() {
    let points = |off: fn(usize) -> f64| -> Vec<(f64, f64)> {
        let at = |n: usize| {
            let x = if n / 40 % 2 == 1 { 100.0 } else { 0.0 };
            (x, 50.0 + x + off(n))
        };
        (0..160).map(at).collect()
    };
    let by_chance = misfit(&points(|n| if n % 2 == 0 { 1.0 } else { -1.0 }));
    assert_eq!(by_chance, 0.0);
    let by_shape = misfit(&points(|n| if n % 40 < 20 { 1.0 } else { -1.0 }));
    // Three switches are one load and a half.
    close(by_shape, (1.0f64 / 1.5).sqrt(), 1e-6);
}

#[test]
fn a_sensor_follows_if_it_leaves_no_more_than_15_percent() {
    let of = |residual: f64| {
        ReferenceError::unless_followed(Watts::from_watts(residual), Watts::from_watts(100.0))
    };
    assert_eq!(of(15.0), Ok(()));
    let (residual, limit) = ("15.1 %".to_owned(), "15.0 %".to_owned());
    assert_eq!(of(15.1), Err(ReferenceError::BadFit { residual, limit }));
}

/// A load that is switched every 0.35 s, as a window of 0.1 s shows it each 0.1 s, polled five times meanwhile. The reference
/// begins long before the trace, and ends behind so many refreshes.
#[test]
fn twenty_readings_within_a_reference_are_enough() {
    let switches: Vec<Timestamp> = (0..12).map(|number| at(0.2 + 0.35 * f64::from(number))).collect();
    let load = load_curve(&switches, (at(-10.0), at(10.0)));
    let reading = |poll: u32| {
        let refresh = 0.1 * f64::from(poll / 5);
        let share = load.mean(at(refresh - 0.1), at(refresh)).map_or(0.0, Watts::as_watts);
        // No refresh shows what the one before it did.
        let watts = 100.0 + 200.0 * share + f64::from(poll / 5 % 3);
        PowerReading { time: at(0.02 * f64::from(poll) + 0.005), power: Watts::from_watts(watts) }
    };
    let trace = PowerTrace::new((0..200).map(reading).collect());
    let period = refresh::infer_period(&trace).expect("changes");
    let times: Vec<Timestamp> =
        refresh::refreshes(&trace, &period).iter().map(|refresh| refresh.time()).collect();
    let fit = |refreshes: usize| {
        let last = times[refreshes - 1] + Nanoseconds::from_nanos(1);
        fit_to_reference(&trace, &known_load_curve(&switches, (at(-10.0), last)), false)
    };
    assert!(fit(20).is_ok(), "{:?}", fit(20));
    for few in [19, 5] {
        assert_eq!(fit(few), Err(ReferenceError::Apart(20)));
    }
}

//! All numbers that come out of the arithmetic of GPUs for made-up sensors and kernels, kept beside these tests: a net below
//! those that compare with the truth. Where a change alters them on purpose, `cargo insta review` accepts the new ones; each
//! test says by itself how far they may be from what is true.

use std::fmt::{Debug, Write as _};

use eprof::gpu::correct::{Corrected, correct, correct_as_published};
use eprof::gpu::curve::{PowerCurve, Segment};
use eprof::gpu::infer::{aligned, calibrate, fit_to_reference, load_curve};
use eprof::gpu::instructions::energy::{Run, difference, offset};
use eprof::gpu::launches::{Outstanding, share};
use eprof::gpu::model::blend::Blend;
use eprof::gpu::model::candidates::Allowed;
use eprof::gpu::model::choose::Ranking;
use eprof::gpu::model::diagnostics::diagnose;
use eprof::gpu::model::figure::coefficients;
use eprof::gpu::model::fit::{Method, Model, Recipe, Response};
use eprof::gpu::model::form::{Columns, Form, Scale};
use eprof::gpu::model::table::{Roles, Table};
use eprof::gpu::model::validate::leave_group_out;
use eprof::gpu::phases;
use eprof::gpu::refresh::{infer_period, refreshes};
use eprof::gpu::sensor::{SensorKind, SensorModel};
use eprof::gpu::trace::PowerTrace;
use eprof::numerics::random::Random;
use eprof::units::{Joules, Nanoseconds, Timestamp, Watts};
use eprof_testbed::figures::rounded;
use eprof_testbed::gpu::sensor::{Follows, Sensor, at, energy};

/// A load that begins and ends, with a level of active idle, and a short burst.
const LOAD: [(f64, f64); 6] = [(0.0, 25.0), (1.0, 140.0), (2.2, 52.0), (3.1, 90.0), (3.6, 52.0), (4.4, 25.0)];
const END: f64 = 5.5;

fn sensor(follows: Follows, refresh: f64, poll: f64) -> Sensor {
    let (resolution, noise, seed) = (0.1, 0.15, 5);
    Sensor { follows, refresh, resolution, noise, poll, poll_at_refresh: poll, stalls: vec![], seed }
}

/// Sensors of all kinds and speeds, one of them polled by a machine that is held up again and again.
fn sensors() -> Vec<(&'static str, Sensor)> {
    let stalls: Vec<(f64, f64)> =
        (1..20).map(|i| (0.31 * f64::from(i), 0.004 * f64::from(1 + i % 6))).collect();
    vec![
        ("capacitor of 41 ms, every 15 ms", sensor(Follows::Rc(0.041), 0.015, 0.004)),
        ("capacitor of 0.83 s, every 15 ms", sensor(Follows::Rc(0.8333), 0.015, 0.004)),
        ("capacitor of 155 ms, every 100 ms", sensor(Follows::Rc(0.155), 0.1, 0.02)),
        ("window of 0.4 s, every 50 ms", sensor(Follows::Window(0.4), 0.05, 0.007)),
        ("window of 25 ms, every 100 ms", sensor(Follows::Window(0.025), 0.1, 0.013)),
        (
            "capacitor, whole watts",
            Sensor { resolution: 1.0, noise: 0.4, ..sensor(Follows::Rc(0.06), 0.02, 0.003) },
        ),
        ("window, polls held up", Sensor { stalls, ..sensor(Follows::Window(0.2), 0.03, 0.002) }),
        ("polled as often as it refreshes", sensor(Follows::Rc(0.2), 0.02, 0.021)),
    ]
}

/// Six digits of each number; a nanosecond more or less is rounding.
fn keep(name: &str, text: &str) {
    insta::assert_snapshot!(name, rounded(text));
}

fn seconds(time: Timestamp) -> f64 {
    time.as_nanos().saturating_sub(at(0.0).as_nanos()) as f64 / 1e9
}

/// Debugging texts of times count nanoseconds: digits beyond the sixth are the library of mathematics'.
fn shown_of(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Nanoseconds(") {
        let (before, after) = rest.split_at(at + "Nanoseconds(".len());
        let end = after.find(')').expect("a number in brackets");
        let nanoseconds: f64 = after[..end].parse().expect("a number");
        let _ = write!(out, "{before}{:e}", nanoseconds);
        rest = &after[end..];
    }
    out + rest
}

#[test]
fn refreshes_are_found() {
    let mut text = String::new();
    for (name, sensor) in sensors() {
        let trace = sensor.poll(&LOAD, END, None);
        let period = infer_period(&trace).expect("changes");
        let off = period.period.as_secs_f64() / sensor.refresh - 1.0;
        let is_known =
            off.abs() < 0.07 || !period.resolved && period.period.as_secs_f64() < 1.2 * sensor.refresh;
        assert!(is_known, "{name}: {} instead of {} s", period.period, sensor.refresh);
        let _ = writeln!(text, "{name}: {}", shown_of(&period));
        let found = refreshes(&trace, &period);
        // Every sixth is shown.
        for refresh in found.iter().step_by(6) {
            let (earliest, latest) = (seconds(refresh.earliest), seconds(refresh.latest));
            let _ = writeln!(text, "  {earliest:.6} {latest:.6} {}", refresh.power.as_watts());
        }
        let sum: f64 = found.iter().map(|refresh| seconds(refresh.time())).sum();
        let _ = writeln!(text, "  {} of them, mean {}", found.len(), sum / found.len() as f64);
    }
    keep("refreshes", &text);
}

#[test]
fn sensors_are_recognised() {
    let mut text = String::new();
    for (name, sensor) in sensors() {
        let found = calibrate(&sensor.poll(&LOAD, END, None));
        if let Ok(found) = &found {
            let (expected, length) = match (sensor.follows, found.model.kind) {
                (Follows::Rc(expected), SensorKind::Rc { time_constant }) => (expected, time_constant),
                (Follows::Window(expected), SensorKind::Boxcar { window }) => (expected, window),
                _ => (f64::NAN, Nanoseconds::ZERO),
            };
            let off = length.as_secs_f64() / expected - 1.0;
            assert!(
                off.abs() < 0.1 || found.notes.iter().any(|note| note.contains("at most")),
                "{name}: {found:?}"
            );
        }
        let _ =
            writeln!(text, "{name}:\n  {}", shown_of(&found).replace(", exponential", ",\n  exponential"));
    }
    for (name, load) in [("no load", vec![(0.0, 25.0)]), ("a ramp", ramp())] {
        let found = calibrate(&sensor(Follows::Rc(0.05), 0.015, 0.009).poll(&load, END, None));
        let _ = writeln!(text, "{name}: {}", found.expect_err("nothing to be seen"));
    }
    keep("kinds", &text);
}

fn ramp() -> Vec<(f64, f64)> {
    (0..550).map(|i| (f64::from(i) * 0.01, 25.0 + f64::from(i) * 0.2)).collect()
}

fn model(follows: Follows) -> SensorModel {
    let kind = match follows {
        Follows::Rc(constant) => SensorKind::Rc { time_constant: Nanoseconds::from_secs_f64(constant) },
        Follows::Window(window) => SensorKind::Boxcar { window: Nanoseconds::from_secs_f64(window) },
    };
    SensorModel::new(kind)
}

/// Mean power of each tenth of a second, and the steady levels.
fn describe(corrected: &Corrected) -> String {
    let Corrected {
        level_noise,
        refresh,
        noise,
        resolution,
        observed,
        segments,
        levels,
        doubt,
        unseen: _,
        unexplained,
        wrong,
    } = corrected;
    assert_eq!((unexplained, wrong), (&None, &None));
    let mut text = format!(
        "  {} {} {} {} {observed}; {} segments, {} levels\n",
        level_noise.as_watts(),
        noise.as_watts(),
        shown_of(resolution),
        shown_of(refresh),
        segments.len(),
        levels.len()
    );
    let curve = corrected.curve();
    for tenth in 0..55 {
        let mean = curve.mean(at(f64::from(tenth) / 10.0), at(f64::from(tenth + 1) / 10.0));
        let _ = write!(text, " {}", mean.map_or(0.0, Watts::as_watts));
    }
    text.push('\n');
    // Of idling, of a rise, and of a whole burst.
    for (start, end) in [(0.3, 0.9), (0.5, 1.5), (0.9, 2.4)] {
        let _ = write!(text, "  ± {} J", doubt.std_error(&curve, at(start), at(end)).as_joules());
    }
    text.push('\n');
    let level = |segment: &Segment| {
        format!("  {:.6} {:.6} {}\n", seconds(segment.start), seconds(segment.end), segment.power.as_watts())
    };
    text.extend(levels.iter().take(12).map(level));
    text
}

#[test]
fn lag_is_undone_and_bursts_are_found() {
    let mut text = String::new();
    for (name, sensor) in sensors() {
        let trace = sensor.poll(&LOAD, END, None);
        // A board whose gain is known to a hundredth, and its sensor's length to a twentieth.
        let known = SensorModel {
            gain: 1.1,
            gain_error: 0.01,
            length_error: 0.05,
            offset_error: Watts::from_watts(0.3),
            refresh: Some(Nanoseconds::from_secs_f64(sensor.refresh)),
            ..model(sensor.follows)
        };
        for (how, model) in [("found", model(sensor.follows)), ("known", known)] {
            let corrected = correct(&trace, &model).expect("enough readings");
            let whole = corrected.curve().energy(at(0.3), at(5.2)).as_joules() / model.gain;
            let off = whole / energy(&LOAD, 0.3, 5.2) - 1.0;
            assert!(off.abs() < 0.03, "{name}: energy off by {off}");
            let _ = write!(text, "{name}, refresh {how}\n{}", describe(&corrected));
            let Corrected { levels, level_noise, .. } = &corrected;
            let idle = phases::idle_level(levels, *level_noise, Nanoseconds::ZERO).map(|level| level.power);
            let _ = writeln!(text, "  {idle:?} {:?}", phases::middle_level(levels, *level_noise));
            let Some(idle) = idle else { continue };
            let threshold = phases::work_threshold(levels, idle, *level_noise);
            let _ = writeln!(text, "  work from {threshold:?}");
            for phase in phases::above(&corrected.segments, threshold) {
                let (start, end) = (seconds(phase.start), seconds(phase.end));
                let _ = writeln!(text, "  {start:.6} {end:.6} {} J", phase.energy.as_joules());
            }
        }
        if let Follows::Rc(constant) = sensor.follows {
            let curve = correct_as_published(&trace, Nanoseconds::from_secs_f64(constant)).expect("readings");
            let _ = writeln!(text, "  as published: {} J", curve.energy(at(0.3), at(5.2)).as_joules());
        }
    }
    keep("corrected", &text);
}

/// Bursts of unequal length, as a load that is told its times makes them.
fn bursts() -> (Vec<(f64, f64)>, Vec<Timestamp>) {
    let (mut load, mut switches, mut time) = (vec![(0.0, 50.0)], Vec::new(), 0.6);
    for burst in 0..12 {
        for watts in [190.0, 50.0] {
            load.push((time, watts));
            switches.push(at(time));
            time += 0.15 + 0.013 * f64::from(burst % 5);
        }
    }
    (load, switches)
}

#[test]
fn sensors_follow_a_reference() {
    let (load, switches) = bursts();
    let end = seconds(switches[switches.len() - 1]) + 1.2;
    let mut text = String::new();
    let cases = [
        ("window", Follows::Window(0.06), 0.02, 0),
        ("capacitor", Follows::Rc(0.09), 0.02, 17),
        ("short", Follows::Window(0.025), 0.1, 30),
    ];
    for (name, follows, refresh, late) in cases {
        let trace = sensor(follows, refresh, 0.003).poll(&load, end, None);
        // The clock of what switched the load is so many milliseconds behind.
        let late = Nanoseconds::from_millis(late);
        let switches: Vec<Timestamp> =
            switches.iter().map(|time| Timestamp::from_nanos(time.as_nanos() - late.as_nanos())).collect();
        let curve = load_curve(&switches, trace.span().expect("a trace"));
        for calibrate_gain in [false, true] {
            let fit = fit_to_reference(&trace, &curve, calibrate_gain).expect("a fit");
            let (low, high) = (fit.plausible.0.as_secs_f64(), fit.plausible.1.as_secs_f64());
            let truth = match follows {
                Follows::Rc(length) | Follows::Window(length) => length,
            };
            assert!((fit.delay - late.as_secs_f64()).abs() < 0.4 * refresh, "{name}: {}", fit.delay);
            assert!(low * 0.98 <= truth && truth <= high * 1.02, "{name}: {low} to {high}");
            let _ = writeln!(text, "{name} {}", shown_of(&fit));
        }
    }
    // A meter beside the board, an hour and a half behind, to which the sensor shows a tenth too little.
    let shown: Vec<(f64, f64)> = load.iter().map(|(from, watts)| (*from, 0.9 * watts - 3.0)).collect();
    let trace = sensor(Follows::Window(0.06), 0.02, 0.003).poll(&shown, end, None);
    let behind = Nanoseconds::from_secs_f64(5400.0);
    let earlier = |seconds: f64| Timestamp::from_nanos(at(seconds).as_nanos() - behind.as_nanos());
    let until = load.iter().skip(1).map(|(from, _)| *from).chain([end]);
    let segments = load.iter().zip(until);
    let segments = segments.map(|((from, watts), until)| Segment {
        start: earlier(*from),
        end: earlier(until),
        power: Watts::from_watts(*watts),
    });
    let meter = PowerCurve::from_segments(&segments.collect::<Vec<_>>());
    let (moved, alignment) = aligned(&trace, meter.span().expect("knots")).expect("the same run");
    assert_eq!(alignment.quarters, -6);
    let fit = fit_to_reference(&moved, &meter, true).expect("a fit");
    assert!((fit.model.gain * 0.9 - 1.0).abs() < 0.01, "{fit:?}");
    let _ = writeln!(text, "meter {}", shown_of(&fit));
    keep("references", &text);
}

/// Kernels of which the power is known: 30 W, a share of work and of memory, each times the clock, and a little noise.
fn kernels() -> Table {
    let roles = Roles { target: Some("power_w".into()), group: vec!["kernel".into()], ..Roles::default() };
    Table::parse(&kernels_as_text(), &roles).expect("a table")
}

/// The same as counts of instructions and of sectors in two units each, and the time that they took.
fn kernels_with_counts() -> Table {
    let mut text =
        String::from("kernel,time_s,inst_fp32,inst_int,dram_read_sectors,dram_write_sectors,power_w\n");
    for (index, line) in kernels_as_text().lines().skip(1).enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |field: usize| fields[field].parse::<f64>().expect("a number");
        let (seconds, clock) = (0.5 + 0.07 * (index % 11) as f64, number(1) / 1500.0);
        let (work, memory) = (number(2) * clock * seconds * 1e7, number(3) * clock * seconds * 1e6);
        let (some, most) = (0.3 * work, 0.6 * memory);
        let _ = writeln!(
            text,
            "{},{seconds},{some:.0},{:.0},{most:.0},{:.0},{}",
            fields[0],
            work - some,
            memory - most,
            fields[5]
        );
    }
    let roles = Roles {
        target: Some("power_w".into()),
        group: vec!["kernel".into()],
        time: Some("time_s".into()),
        ..Roles::default()
    };
    Table::parse(&text, &roles).expect("a table")
}

fn kernels_as_text() -> String {
    let mut random = Random::seeded(11);
    let mut uniform = || (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
    let mut text = String::from("kernel,clock_mhz,sm_util,mem_util,idle_cycles_per_s,power_w\n");
    for kernel in 0..14 {
        let (work, memory) = (uniform(), uniform());
        for clock in [800.0, 1000.0, 1300.0, 1500.0] {
            let watts = 30.0 + clock / 1500.0 * (90.0 * work + 50.0 * memory);
            let watts = watts * (1.0 + 0.02 * (uniform() - 0.5));
            let idle = 10.0 * (1.0 - work) + uniform();
            let _ = writeln!(
                text,
                "k{kernel},{clock},{:.3},{:.3},{idle:.3},{watts:.3}",
                work * 100.0,
                memory * 100.0
            );
        }
    }
    text
}

fn short(recipe: &Recipe) -> String {
    let Recipe { form, response, method } = recipe;
    let Form { columns, scale, clock_products, clock_steps } = form;
    let clocks =
        ["", " times clocks", " by steps"][usize::from(*clock_products) + 2 * usize::from(*clock_steps)];
    format!("{columns:?} {scale:?}{clocks} {response:?} {method:?}")
}

#[test]
fn recipes_are_ranked_and_fitted() {
    let mut text = String::new();
    for (table, allowed, most) in [
        (kernels(), Allowed::All, usize::MAX),
        (kernels(), Allowed::Linear, 5),
        (kernels(), Allowed::Published, 5),
        (kernels_with_counts(), Allowed::All, 40),
    ] {
        let ranking = Ranking::of(&table, allowed).expect("recipes");
        assert!(ranking.error < 0.1, "{}", ranking.error);
        let chosen: Vec<String> = ranking.chosen.iter().map(short).collect();
        let _ = writeln!(text, "{allowed:?} of {:?}: {} by {chosen:?}", table.columns, ranking.error);
        for choice in ranking.choices.iter().take(most) {
            let _ = writeln!(text, "  {} {}", choice.error, short(&choice.recipe));
        }
        let blend = Blend::fit(&ranking.chosen, &table).expect("a fit");
        let watts: Vec<f64> = table.rows.iter().step_by(9).map(|row| blend.predict(row)).collect();
        for (watts, measured) in watts.iter().zip(table.power.iter().step_by(9)) {
            assert!((watts / measured - 1.0).abs() < 0.12, "{watts} instead of {measured} W");
        }
        let _ = writeln!(text, "  {watts:?}");
    }
    keep("ranking", &text);
}

/// Every form, response and method once, on the rows themselves.
#[test]
fn fits_of_every_kind_predict() {
    let mut text = String::new();
    let methods = [
        Method::Ridge(0.0),
        Method::Ridge(0.3),
        Method::Robust(0.01),
        Method::NonNegative(0.01),
        Method::Level,
        Method::Similar { length: 1.0, noise: 0.01 },
    ];
    let scales = [Scale::Linear, Scale::Root, Scale::Log];
    let mut forms = vec![Form::plain(Columns::NoCounters, Scale::Linear)];
    for columns in [Columns::AsGiven, Columns::PerTime, Columns::Pooled] {
        forms.extend(scales.map(|scale| Form::plain(columns, scale)));
    }
    forms.push(Form { clock_steps: true, ..forms[0] });
    forms.push(Form { clock_steps: true, ..forms[1] });
    forms.push(Form { clock_products: true, ..forms[1] });
    forms.push(Form { clock_products: true, ..forms[3] });
    for form in forms.iter().copied() {
        let by_time = matches!(form.columns, Columns::PerTime | Columns::Pooled);
        let table = if by_time { kernels_with_counts() } else { kernels() };
        for response in [Response::Watts, Response::Shares, Response::Log] {
            for method in methods {
                // Of no counters there is but the level, and that is in watts.
                if (method == Method::Level) != (form == forms[0])
                    || method == Method::Level && response != Response::Watts
                {
                    continue;
                }
                let recipe = Recipe { form, response, method };
                let Some(model) = Model::fit(recipe, &table) else { continue };
                let watts: Vec<f64> = table.rows.iter().step_by(13).map(|row| model.predict(row)).collect();
                let is_near = watts
                    .iter()
                    .zip(table.power.iter().step_by(13))
                    .all(|(watts, measured)| (watts / measured - 1.0).abs() < 0.9);
                assert!(is_near, "{recipe:?}: {watts:?}");
                let of_terms: Vec<f64> = model.coefficients().into_iter().map(|(_, of)| of).collect();
                let _ = writeln!(text, "{}\n  {watts:?} {of_terms:?}", short(&recipe));
            }
        }
    }
    keep("fits", &text);
}

#[test]
fn kernels_left_out_are_predicted_with_intervals() {
    let table = kernels();
    let found = leave_group_out(&table, Allowed::Linear, usize::MAX, |_, _| {}).expect("a fit");
    assert!(found.mean_error < 0.1, "{}", found.mean_error);
    let mut text = format!(
        "{:?} {} {} {} {}\n",
        found.predicted, found.mean_error, found.median_error, found.rms, found.r2
    );
    for (group, recipes) in &found.recipes {
        let _ = writeln!(text, "{group} {:?}", recipes.iter().map(short).collect::<Vec<_>>());
    }
    for level in [0.5, 0.8, 0.95] {
        let _ = writeln!(text, "{level}: {}", shown_of(&found.coverage(&table, level)));
    }
    let blend =
        Blend::fit(&Ranking::of(&table, Allowed::Linear).expect("recipes").chosen, &table).expect("a fit");
    let blend = blend.with_errors(Some(found.distances(&table)));
    for watts in [40.0, 100.0] {
        let (low, high) = blend.interval(watts, 0.9).expect("errors");
        assert!(low < watts && watts < high);
        let _ = writeln!(text, "{watts} W: {low} to {high}");
    }
    let _ = writeln!(text, "{}", shown_of(&found.coverage_by(&blend, &table, 0.9)));
    keep("left_out", &text);
    let (rows, mean) = diagnose(&table).expect("determined");
    let mut text = format!("mean leverage {mean}\n");
    for row in rows.iter().step_by(5) {
        let _ = writeln!(text, "{} {} {}", shown_of(row), row.is_leverage_point(mean), row.is_outlier());
    }
    keep("diagnosis", &text);
}

/// Launches of three owners, some side by side, and what a meter shows of them that moves every 20 ms.
#[test]
fn launches_share_what_a_meter_counts() {
    let watts = |owner: u32| [0.0, 100.0, 60.0, 150.0][owner as usize];
    let spans: [(u32, f64, f64); 9] = [
        (1, 0.4, 0.7),
        (2, 0.75, 1.05),
        (1, 1.6, 1.7),
        (3, 1.65, 2.0),
        (2, 1.8, 2.2),
        (3, 3.1, 3.13),
        (1, 3.2, 3.21),
        (2, 3.21, 3.5),
        (3, 4.6, 4.9),
    ];
    let launches: Vec<Outstanding> = spans
        .iter()
        .map(|(owner, start, end)| Outstanding {
            start: at(*start),
            end: at(*end),
            owner: *owner,
            gpu: Some(0),
        })
        .collect();
    // A context is there from the first launch on.
    let joules = |time: f64| {
        let idle = 20.0 * time.min(0.4) + 50.0 * (time - 0.4).max(0.0);
        let of = |&(owner, start, end): &(u32, f64, f64)| watts(owner) * (time.min(end) - start).max(0.0);
        idle + spans.iter().map(of).sum::<f64>()
    };
    let truth = |owner: u32| -> f64 {
        spans.iter().filter(|span| span.0 == owner).map(|span| watts(owner) * (span.2 - span.1)).sum()
    };
    let mut text = String::new();
    for (name, poll, moves) in [("polled often", 0.003, Some(0.02)), ("a step for each reading", 0.019, None)]
    {
        let shown =
            |time: f64| moves.map_or(joules(time), |every: f64| joules((time / every).floor() * every));
        let readings: Vec<(Timestamp, Joules)> = (0..)
            .map(|n| 0.001 + poll * f64::from(n))
            .take_while(|time| *time < 6.0)
            .map(|time| (at(time), Joules::from_joules(shown(time))))
            .collect();
        for refresh in [None, moves.map(Nanoseconds::from_secs_f64)] {
            let found = share(&readings, &launches, refresh);
            let all: f64 = found.by_owner.values().map(|share| share.joules.as_joules()).sum();
            let counted = (readings[readings.len() - 1].1 - readings[0].1).as_joules();
            assert!((all + found.idle.as_joules() - counted).abs() < 1e-9, "{name}");
            assert!(
                found.idle_power.is_some_and(|watts| (watts.as_watts() - 50.0).abs() < 1.0),
                "{name}: {found:?}"
            );
            for (owner, share) in &found.by_owner {
                let off = share.joules.as_joules() / truth(*owner) - 1.0;
                assert!(off.abs() < 0.25, "{name}: owner {owner} is off by {off}");
            }
            let _ = writeln!(text, "{name}, {refresh:?}: {found:?}");
        }
    }
    // Nothing but launches: no level is known, and all is theirs.
    let busy = share(&[(at(0.5), Joules::ZERO), (at(0.6), Joules::from_joules(15.0))], &launches, None);
    assert_eq!((busy.idle_power, busy.idle), (None, Joules::ZERO));
    assert_eq!(busy.by_owner[&1].joules, Joules::from_joules(15.0));
    keep("launches", &text);
}

#[test]
fn coefficients_are_drawn() {
    let named = |name: &str, value: f64| (name.to_owned(), value);
    let ranked = [named("sm & mem", 12.5), named("nothing", 0.0), named("idle", -2.5)];
    keep("drawing", &coefficients(&ranked, "watts").replace("/><", "/>\n<").replace("><", ">\n<"));
}

/// Runs of three lengths, of which the middle one is a little off.
fn runs_of(joules_per_turn: f64, cycles_per_turn: f64, off: f64) -> Vec<Run> {
    let lengths = [(1e6, 0.0), (2e6, off), (3e6, 0.0)];
    let run = |(turns, off): (f64, f64)| Run {
        turns,
        joules: 0.7 + turns * joules_per_turn + off,
        cycles: 500.0 + 2.0 * turns * cycles_per_turn,
        thread_turns: 2.0 * turns,
    };
    lengths.map(run).to_vec()
}

#[test]
fn instructions_have_errors() {
    let found = difference(&runs_of(12e-6, 60.0, 0.3), &runs_of(2e-6, 20.0, 0.4), 10).expect("three lengths");
    // Residuals -d/3, 2d/3, -d/3 of a spread of 2e12: the slope's error is d / sqrt(3) / 1e6.
    let expected = (0.3f64.hypot(0.4) * (2.0f64 / 3.0 / 2.0).sqrt()) / 1e6 / 10.0 * 1e6;
    assert!((found.std_error / expected - 1.0).abs() < 1e-9, "{found:?} {expected}");
    assert!((found.microjoules - 1.0).abs() < 1e-9 && (found.cycles - 4.0).abs() < 1e-9);
    // Of 2 J per length, 0.4 J too much in the middle leave sum of squares 0.16 x 2/3 of 8 + 0.16 x 2/3.
    let rest = 0.16 * 2.0 / 3.0;
    assert!((found.r2 - 8.0 / (8.0 + rest)).abs() < 1e-9, "{}", found.r2);
    let half = difference(&runs_of(2e-6, 25.0, 0.0), &runs_of(2e-6, 20.0, 0.0), 10).expect("three lengths");
    assert!(!half.eliminated, "half a cycle is enough: {half:?}");
    // Both stretches rest at 40 W but for noise; 3 J lie between.
    let at = |from: f64, extra: f64, noise: [f64; 4]| -> Vec<(f64, f64)> {
        (0..4)
            .map(|i| (from + f64::from(i), 40.0 * (from + f64::from(i)) + extra + noise[i as usize]))
            .collect()
    };
    let (before, after) = (at(0.0, 0.0, [0.1, -0.1, -0.1, 0.1]), at(9.0, 3.0, [-0.2, 0.2, 0.2, -0.2]));
    assert!((offset(&before, &after).expect("four readings each") - 3.0).abs() < 1e-9);
    assert_eq!((offset(&before, &after[..3]), offset(&before[..3], &after)), (None, None));
}

#[test]
fn a_trace_keeps_what_it_was_given() {
    let trace: PowerTrace = sensor(Follows::Rc(0.05), 0.02, 0.004).poll(&LOAD, 1.0, None);
    let polled = trace.as_polled();
    let (first, last) = trace.span().expect("readings");
    // Idle for the whole second.
    let joules = polled.energy(first, last).as_joules();
    assert!((joules / (25.0 * last.since(first).as_secs_f64()) - 1.0).abs() < 0.01, "{joules}");
}

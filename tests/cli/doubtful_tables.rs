//! Tables and traces with something in them that is not as it should be: it is told, and what repairs it.

use eprof_testbed::outputs::{refused, said};

use crate::table_verbs::eprof;

/// A folder with these files.
fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

/// Forty rows of five jobs, 20 W and 1 W per event; the largest power is 30 W.
fn measured(event: impl Fn(u32) -> f64) -> String {
    let row = |n: u32| format!("w{},{},{}\n", n % 5, event(n), 20 + n * 7 % 11);
    "job,cycles,watts\n".to_owned() + &(0..40).map(row).collect::<String>()
}

#[test]
fn an_estimate_that_is_limited_says_so() {
    let folder = folder(&[
        ("runs", measured(|n| f64::from(n * 7 % 11))),
        ("new", "job,cycles\nnear,5\nfar,1000000\n".to_owned()),
    ]);
    let predict = |more: &str| {
        eprof(folder.path(), &format!("model predict --target watts --group job runs --rates new {more}"))
    };
    let note = "1 of 2 rows are limited, the first of workload `far`: the model says less than 1.0000 W, a twentieth of the \
                least power measured, or more than 60.0000 W, twice the most";
    let text = said(&predict(""));
    assert!(text.contains(&format!("note: {note}")), "{text}");
    let rows: Vec<&str> =
        text.lines().filter(|line| line.contains(" far") || line.contains(" near")).collect();
    assert!(rows[0].ends_with("near") && rows[1].ends_with("far  (beyond the data) (limited)"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&said(&predict("--format json"))).expect("JSON");
    assert_eq!([&json["rows"][0]["limited"], &json["rows"][1]["limited"]], [false, true]);
    assert!(json["notes"].to_string().contains("1 of 2 rows are limited"), "{json}");
    let output = predict("--format csv");
    let csv = said(&output);
    assert!(csv.lines().next().is_some_and(|names| names.ends_with(",file,row,limited")), "{csv}");
    assert!(csv.contains("far,60.0000") && csv.trim_end().ends_with("true,new,2,true"), "{csv}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(note));
    // Straight lines have no such end.
    let text = said(&predict("--kind lines"));
    assert!(!text.contains("limited"), "{text}");
}

/// Readings every 20 ms for 40 s, of which each other two seconds are load.
fn trace(names: &str, row: impl Fn(f64, f64) -> String) -> String {
    let rows = (0..2000).map(|n| f64::from(n) * 0.02);
    let watts = |time: f64| if time % 4.0 < 2.0 { 60.0 } else { 250.0 };
    format!("{names}\n") + &rows.map(|time| row(time, watts(time)) + "\n").collect::<String>()
}

#[test]
fn of_two_columns_of_power_it_is_told_which_was_read() {
    let text = trace("time [s],power.draw [W],power.draw.instant [W],power.limit [W]", |time, watts| {
        format!("{time:.2},{:.1},{watts},400", 0.9 * watts)
    });
    let folder = folder(&[("trace", text)]);
    let note = "power is read from `power.draw.instant`, and the table has `power.draw` besides: --target chooses another column";
    for verb in ["gpu correct trace --sensor counter", "gpu calibrate trace"] {
        let output = eprof(folder.path(), verb);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("note: {note}")), "{verb}: {text}");
    }
    let text = said(&eprof(folder.path(), "gpu correct trace --sensor counter --target power.draw"));
    assert!(!text.contains("is read from"), "{text}");
}

#[test]
fn watts_below_zero_are_refused() {
    let text = |low: f64| {
        trace("time [s],power [W]", |time, watts| {
            format!("{time:.2},{}", if time == 0.5 { low } else { watts })
        })
    };
    let folder = folder(&[("trace", text(-250.0)), ("near", text(-0.5)), ("fine", text(60.0))]);
    let refusal = "line 27: `power [W]` is `-250`, which is below 0: no card gives power back";
    for verb in
        ["correct trace --sensor counter", "calibrate trace", "correct fine --sensor counter --meter trace"]
    {
        let error = refused(&eprof(folder.path(), &format!("gpu {verb}")));
        assert!(error.contains(refusal) && error.matches("eprof: error").count() == 1, "{verb}: {error}");
    }
    said(&eprof(folder.path(), "gpu correct near --sensor counter"));
}

#[test]
fn switching_times_of_another_run_are_told() {
    // 2023-08-24 22:18:34 and later.
    let start = 1_692_915_514.0;
    let of = |shift: f64| {
        let times = (0..10).map(|n| start + shift + 2.0 + 2.0 * f64::from(n));
        times.map(|time| format!("{time:.3}\n")).collect::<String>()
    };
    let folder = folder(&[
        ("trace", trace("timestamp,power.draw [W]", |time, watts| format!("{:.3},{watts}", start + time))),
        ("minutes", of(300.0)),
        ("hours", of(9_003.1)),
        ("days", of(200_000.0)),
    ]);
    for (steps, range) in [
        ("minutes", "22:23:36.000 to 22:23:54.000"),
        ("hours", "2023-08-25 00:48:39.100 to 00:48:57.100"),
        ("days", "2023-08-27 05:51:56.000 to 05:52:14.000"),
    ] {
        for verb in ["correct trace", "correct trace --sensor boxcar:1s", "calibrate trace"] {
            let error = refused(&eprof(folder.path(), &format!("gpu {verb} --steps {steps}")));
            assert!(
                error.contains(
                    "no time of --steps lies within the trace, which is of 2023-08-24 22:18:34.000 to 22:19:13.980: they are of "
                ),
                "{verb} {steps}: {error}"
            );
            assert!(error.contains(range), "{verb} {steps}: {error}");
            assert!(error.contains("of another run") || error.contains("of different runs"), "{error}");
        }
    }
}

#[test]
fn of_values_that_no_row_has_those_there_are_are_told() {
    let folder = folder(&[("runs", measured(f64::from))]);
    for verb in ["model fit", "model predict --rates runs", "gpu model fit --columns cycles"] {
        let error = refused(&eprof(folder.path(), &format!("{verb} --target watts --where job=nope runs")));
        assert!(error.contains("no row has job=nope; its values are: w0, w1, w2, w3, w4"), "{verb}: {error}");
    }
}

#[test]
fn values_that_are_too_large_are_not_called_constant() {
    let right = measured(|n| f64::from(n * 7 % 11));
    let folder = folder(&[
        ("rates", measured(|n| 1e200 * f64::from(n * 7 % 11))),
        (
            "powers",
            right.lines().map(|line| format!("{line}e200\n")).collect::<String>().replacen("e200", "", 1),
        ),
    ]);
    for (table, what) in [
        ("rates", "column `cycles` has values up to 1.0e201"),
        ("powers", "the power has values up to 3.0e201"),
    ] {
        for verb in ["model fit --use-all", "model fit"] {
            let error = refused(&eprof(folder.path(), &format!("{verb} --target watts --group job {table}")));
            assert!(error.contains(&format!("{what}, whose squares are beyond")), "{verb}: {error}");
        }
    }
}

/// A figure of three hundred digits is none for people.
#[test]
fn large_numbers_have_an_exponent() {
    let row = |n: u32| format!("w{},{},{}e150\n", n % 5, n * 7 % 11, 20 + n * 7 % 11);
    let text = "job,cycles,watts\n".to_owned() + &(0..40).map(row).collect::<String>();
    let folder = folder(&[("runs", text)]);
    let text =
        said(&eprof(folder.path(), "gpu model fit --target watts --columns cycles --group job --quick runs"));
    assert!(text.contains("power 2.000e151..3.000e151 W"), "{text}");
    assert!(text.lines().all(|line| line.len() < 200), "{text}");
}

#[test]
fn what_a_gpus_model_does_not_know_is_told() {
    let folder = folder(&[
        ("runs", measured(|n| f64::from(n * 7 % 11))),
        ("new", "job,cycles\nnear,5\nfar,1000000\n".to_owned()),
    ]);
    let gpu_model = |arguments: &str| eprof(folder.path(), &format!("gpu model {arguments}"));
    said(&gpu_model("fit --quick --group job --columns cycles --save model runs"));
    let note = "1 of 2 rows lie beyond the data, the first of group `far`: a term is more than half of its range outside";
    let text = said(&gpu_model("predict model --group job new"));
    assert!(text.contains(&format!("note: {note}")), "{text}");
    // Of 0 to 10 events 15 are followed, at 1 W each.
    let rows: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("35.00")).collect();
    assert!(rows.len() == 1 && rows[0].ends_with("far  (beyond the data)"), "{text}");
    assert!(text.lines().any(|line| line.ends_with("  near")), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&said(&gpu_model("predict model --group job new --format json"))).expect("JSON");
    let beyond = |row: usize| &json["rows"][row]["beyond_the_data"];
    assert_eq!([beyond(0), beyond(1)], [false, true]);
    assert!(json["notes"].to_string().contains("1 of 2 rows lie beyond"), "{json}");
    let output = gpu_model("predict model --group job new --format csv");
    let csv = said(&output);
    assert!(csv.contains("far,35.0000,,,,true\n") && csv.contains(",,,,false\n"), "{csv}");
    assert!(String::from_utf8_lossy(&output.stderr).contains(note));
}

/// The data of [`measured`] in the order of `at`, rising times of any kind, and in another.
#[test]
fn rows_are_put_in_the_order_of_dates_and_what_is_no_time_is_refused() {
    let row = |n: u32| {
        let (hour, minute) = (n / 60, n % 60);
        let date = format!("2024-01-31 {hour:02}:{minute:02}:00,{:02}.{:02}.2024", 1 + n % 20, 1 + n / 20);
        format!("{},{n},{date},{hour:02}:{minute:02}:30,x,{}\n", n * 7 % 11, 20 + n * 7 % 11 + n)
    };
    let table = |order: &dyn Fn(u32) -> u32| {
        "cycles,s,iso,dots,clock,text,watts\n".to_owned()
            + &(0..40).map(|n| row(order(n))).collect::<String>()
    };
    let folder = folder(&[("right", table(&|n| n)), ("shuffled", table(&|n| n * 7 % 40))]);
    let validate = |more: &str| {
        let verb = "model validate --target watts --columns cycles --protocol forward:60";
        eprof(folder.path(), &format!("{verb} {more}"))
    };
    let right = said(&validate("right"));
    assert_ne!(said(&validate("shuffled")), right);
    for column in ["s", "iso", "dots", "clock"] {
        assert_eq!(said(&validate(&format!("--timestamp {column} shuffled"))), right, "{column}");
    }
    let error = refused(&validate("--timestamp text shuffled"));
    assert!(
        error.contains("line 2: `text` is `x`, which is no time; --timestamp takes numbers, dates"),
        "{error}"
    );
}

/// Kernels of 1 to 8 s whose counts per second tell the power; `unit` is of the time, `count` that of the counts.
fn kernels(name: &str, unit: f64, count: f64) -> String {
    let row = |n: u32| {
        let (rate, seconds) = (f64::from(n * 7 % 11), f64::from(1 + n * 5 % 8));
        format!("k{},{},{},{}\n", n % 8, seconds / unit, rate * seconds * count, 20.0 + rate)
    };
    format!("kernel,{name},cycles,watts\n") + &(0..40).map(row).collect::<String>()
}

#[test]
fn a_gpus_model_knows_the_unit_of_the_time() {
    let folder = folder(&[
        ("plain", kernels("time", 1.0, 1e6)),
        ("seconds", kernels("time_s", 1.0, 1e6)),
        ("milli", kernels("time_ms", 1e-3, 1e6)),
        ("wall", kernels("wall", 1e-3, 1e6)),
    ]);
    let columns = "--target watts --group kernel";
    for learnt in ["plain", "seconds", "milli"] {
        said(&eprof(
            folder.path(),
            &format!("gpu model fit --quick {columns} --save {learnt}.json {learnt}"),
        ));
    }
    let predict = |model: &str, table: &str, more: &str| {
        let output =
            eprof(folder.path(), &format!("gpu model predict {model}.json {columns} {table} {more}"));
        let text = said(&output);
        let rows: Vec<String> =
            text.lines().skip_while(|line| !line.contains("low")).map(str::to_owned).collect();
        assert!(rows.len() > 40, "{text}");
        (rows, text)
    };
    let (right, text) = predict("plain", "plain", "");
    assert!(!text.contains("converted"), "{text}");
    for (model, table, note) in [
        (
            "plain",
            "milli",
            "`time_ms` is converted to the unit of `time` of the model, which tells no unit and is taken for seconds: times 0.001",
        ),
        (
            "milli",
            "plain",
            "`time`, which tells no unit and is taken for seconds is converted to the unit of `time_ms` of the model: times 1000",
        ),
        ("milli", "seconds", "`time_s` is converted to the unit of `time_ms` of the model: times 1000"),
    ] {
        let (rows, text) = predict(model, table, "");
        assert_eq!(rows, right, "{model} {table}");
        assert!(text.contains(note), "{text}");
    }
    let (rows, _) = predict("seconds", "wall", "--duration wall:ms");
    assert_eq!(rows, right);
}

#[test]
fn kernels_of_no_time_and_counts_below_zero_are_left_out() {
    let right = kernels("time", 1.0, 1e6);
    let with = |row: &str| right.replacen("k1,", &format!("{row}\nk1,"), 1);
    let folder = folder(&[
        ("right", right.clone()),
        ("none", with("k0,0,5000000,25")),
        ("less", with("k0,-5,5000000,25")),
        ("negative", with("k0,1,-5000000,25")),
        ("lost", with("k0,1,18446744073709551615,25")),
    ]);
    let gpu_model = |arguments: &str| {
        eprof(folder.path(), &format!("gpu model {arguments} --target watts --group kernel"))
    };
    said(&gpu_model("fit --quick --save model right"));
    for (table, why) in [
        ("none", "line 3: `time` is `0`, which is not above 0"),
        ("less", "line 3: `time` is `-5`, which is not above 0"),
        ("negative", "line 3: `cycles` is `-5000000`, which is below 0, and counts are not"),
        (
            "lost",
            "line 3: `cycles` is `18446744073709551615`, which is what 64 bits make of a number below 0",
        ),
    ] {
        for verb in ["fit --quick", "predict model"] {
            let text = said(&gpu_model(&format!("{verb} {table}")));
            assert!(text.contains(&format!("skipped, the first in {why}")), "{verb}: {text}");
            assert!(verb != "fit --quick" || text.starts_with("40 rows in 8 groups"), "{text}");
        }
    }
    let text = said(&eprof(folder.path(), "model fit --target watts --group kernel --duration time lost"));
    assert!(text.contains("left out, the first: lost, line 3: `cycles` is `18446744073709551615`"), "{text}");
    assert!(text.contains("40 rows of 8 workloads"), "{text}");
}

#[test]
fn what_is_a_count_does_not_depend_on_its_unit() {
    let units = [1e6, 1.0, 1e-3];
    let files: Vec<(String, String)> =
        units.iter().map(|unit| (format!("per{unit}"), kernels("time", 1.0, *unit))).collect();
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    let plain = kernels("time", 1.0, 1.0);
    let shares = plain.lines().enumerate().map(|(n, line)| match n {
        0 => format!("{line},active\n"),
        n => format!("{line},0.{}\n", n * 3 % 10),
    });
    let folder = folder(&[files, vec![("shares", shares.collect())]].concat());
    let fit = |table: &str| {
        let columns = "--target watts --group kernel --duration time";
        said(&eprof(folder.path(), &format!("gpu model fit --quick {columns} {table}")))
    };
    for unit in units {
        let text = fit(&format!("per{unit}"));
        assert!(text.contains("(1 of them counts, per time)") && !text.contains("not divided"), "{text}");
        assert!(text.contains(" 0.00 %   "), "{text}");
    }
    let text = fit("shares");
    assert!(text.contains("3 counters (1 of them counts, per time)"), "{text}");
    assert!(
        text.contains("note: not divided by `time`") && text.contains("grow with it: `active`\n"),
        "{text}"
    );
}

#[test]
fn a_setting_that_is_called_a_time_is_none() {
    let row = |n: u32| format!("{},{},{}\n", 1 + n % 8, 10 + n % 8, 100 - n % 8);
    let rows: String = (0..16).map(row).collect();
    for name in ["t", "time", "sec", "duration"] {
        let folder = folder(&[("runs", format!("{name},seconds,joules\n{rows}"))]);
        for variable in [name.to_owned(), format!("{name}=1,2,3,4,5,6,7,8")] {
            let text = said(&eprof(folder.path(), &format!("tune --runs-csv runs --var {variable}")));
            assert!(text.contains("10.00 s") && text.contains("17.00 s"), "{name}: {text}");
        }
    }
}

#[test]
fn options_that_can_mean_nothing_are_refused() {
    let powers = |low: &str| measured(|n| f64::from(n * 7 % 11)).replacen(",20\n", &format!(",{low}\n"), 1);
    let folder = folder(&[
        ("runs", measured(|n| f64::from(n * 7 % 11))),
        ("least", powers("1e-300")),
        ("most", powers("1e300")),
    ]);
    for (arguments, why) in [
        ("model predict --model generic --packages 0 --rates runs", "0 is not in 1.."),
        (
            "model validate --target watts --protocol blocks:25 runs",
            "40 rows cannot be cut into 25 spans of two rows or more; blocks:K takes a K up to 20",
        ),
        (
            "model validate --target watts --protocol forward:1 runs",
            "the first 1 % of 40 rows leave fewer than two to train with",
        ),
        (
            "model fit --target watts --group job --use-all --prior generic --prior-strength 1e9 runs",
            "give a lower --prior-strength",
        ),
        (
            "model fit --target watts --columns cycles,watts runs",
            "`watts` is the power that is to be explained",
        ),
        ("model fit --target watts --group job least", "the power is 1.0e-300 W in a row"),
        ("model fit --target watts --group job most", "the power has values up to 1.0e300"),
        (
            "gpu model fit --quick --columns cycles least",
            "line 2: `watts` is `1e-300`, which is beyond what can be calculated with",
        ),
        (
            "gpu model fit --quick --columns cycles most",
            "line 2: `watts` is `1e300`, which is beyond what can be calculated with",
        ),
        ("tune --runs-csv runs --level 20", "write a percentage, such as 95%"),
        ("model show generic --energy nan", "more than 0 and finite"),
        ("model show generic --energy inf", "more than 0 and finite"),
        ("model show generic --energy 0", "more than 0 and finite"),
    ] {
        let error = refused(&eprof(folder.path(), arguments));
        assert!(error.contains(why), "{arguments}: {error}");
    }
}

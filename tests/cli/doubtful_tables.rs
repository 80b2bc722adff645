//! Tables and traces with something in them that is not as it should be: it is told, and what repairs it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs eprof in a folder that has the files.
fn eprof(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eprof"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs")
}

#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[track_caller]
fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

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

//! The same table through `eprof model`, `gpu model`, `tune --runs-csv` and `gpu correct`: in any style, and
//! with the names that options had before.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use eprof_testbed::gpu::sensor::{Follows, Sensor};
use eprof_testbed::outputs::{refused, said};
use eprof_testbed::table_styles::{Cell, Column, PLAIN, STYLES, Written};

/// Runs eprof in a folder that has the table.
pub fn eprof(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_eprof"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs")
}

/// Runs of six applications: power by instructions and loads, time by threads.
fn runs() -> Written {
    let columns = vec![
        Column::new("stamp", "s", 1),
        Column::new("app", "", 0),
        Column::new("threads", "", 0),
        Column::new("instructions", "", 0),
        Column::new("loads", "", 0),
        Column::new("draw", "W", 2),
        Column::new("elapsed", "s", 3),
        Column::new("energy", "J", 2),
    ];
    let row = |i: u32| {
        let threads = f64::from(1 + i % 6);
        let (alu, memory) = (f64::from(i * 7 % 11), f64::from(i * 5 % 13));
        let draw = 1040.0 + 30.0 * alu + 20.5 * memory;
        let elapsed = 1.0 + 40.0 / threads;
        let numbers =
            [0.5 * f64::from(i), threads, alu * 1.5e6, memory * 1234.0, draw, elapsed, draw * elapsed];
        let mut cells: Vec<Cell> = numbers.map(Cell::Number).to_vec();
        cells.insert(1, Cell::Text(if i < 6 { "app0".to_owned() } else { format!("app {}", i / 6) }));
        if i == 17 {
            cells[4] = Cell::Missing;
        }
        cells
    };
    Written { columns, rows: (0..36).map(row).collect() }
}

/// What a verb prints, but for notes and for how columns are written: they are called as in the table, with their units.
fn results(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("note:") && !line.starts_with("not used:"));
    let written = ["elapsed [s]", "elapsed (s)", "elapsed_s"];
    lines
        .map(|line| written.iter().fold(line.to_owned(), |line, name| line.replace(name, "elapsed")))
        .collect()
}

#[test]
fn every_verb_reads_every_style_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("runs");
    let written = runs();
    let verbs = [
        "model fit --target draw --group app --columns instructions,loads --use-all runs",
        "model fit --energy energy --duration elapsed --group app --columns instructions,loads runs",
        "model validate --target draw --group app --columns instructions,loads --protocol blocks:3 runs",
        "gpu model fit --target draw --group app --columns instructions,loads --methods published runs",
        "gpu model validate --target draw --group app --exclude stamp,energy --duration elapsed --methods published runs",
        "tune --runs-csv runs --var threads --duration elapsed --energy energy --where app=app0",
        "tune --runs-csv runs --var threads --var app --duration elapsed --energy energy",
    ];
    let mut plain: Vec<String> = Vec::new();
    for style in &STYLES {
        std::fs::write(&table, written.bytes(style)).expect("written");
        for (index, verb) in verbs.iter().enumerate() {
            let text = said(&eprof(folder.path(), verb));
            match plain.get(index) {
                None => plain.push(text),
                Some(plain) => assert_eq!(results(&text), results(plain), "{}: {verb}", style.name),
            }
        }
    }
    assert!(plain[0].contains("35 rows of 6 workloads; 2 events: instructions, loads"), "{}", plain[0]);
    assert!(plain[0].contains("R2 1.0000"), "{}", plain[0]);
    assert!(
        plain[0].contains("note: 1 rows lack") && plain[0].contains("runs, line 19: `loads` is empty"),
        "{}",
        plain[0]
    );
    assert!(
        plain[3].contains("35 rows in 6 groups, 3 counters (2 of them counts, per elapsed)"),
        "{}",
        plain[3]
    );
    assert!(plain[3].contains("skipped, the first in line 19: `loads` is empty"), "{}", plain[3]);
    assert!(plain[5].contains("bs(log(threads))") && plain[6].contains("C(app)"), "{}{}", plain[5], plain[6]);
}

#[test]
fn a_power_trace_is_corrected_alike_in_every_style() {
    const LOAD: [(f64, f64); 5] = [(0.0, 30.0), (2.0, 180.0), (3.5, 60.0), (5.0, 120.0), (5.5, 60.0)];
    let slow = Sensor {
        follows: Follows::Rc(0.2),
        refresh: 0.015,
        resolution: 0.001,
        noise: 0.2,
        poll: 0.005,
        poll_at_refresh: 0.005,
        stalls: vec![],
        seed: 7,
    };
    let trace = slow.poll(&LOAD, 8.0, None);
    let start = trace.readings()[0].time;
    let columns = vec![
        Column::new("time", "s", 4),
        Column::new("state", "", 0),
        Column::new("draw", "W", 3),
        Column::new("cap", "W", 1),
    ];
    let rows = trace.readings().iter().enumerate().map(|(index, reading)| {
        let draw = if index % 100 == 50 { Cell::Missing } else { Cell::Number(reading.power.as_watts()) };
        let time = reading.time.since(start).as_secs_f64();
        vec![Cell::Number(time), Cell::Text("P0 busy".into()), draw, Cell::Number(1250.5)]
    });
    let written = Written { columns, rows: rows.collect() };
    let folder = tempfile::tempdir().expect("a folder");
    let mut plain = None;
    for style in &STYLES {
        std::fs::write(folder.path().join("trace"), written.bytes(style)).expect("written");
        let text =
            said(&eprof(folder.path(), "gpu correct trace --target draw --sensor rc:200ms --format json"));
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let bursts = report["bursts"].clone();
        assert_eq!(bursts.as_array().map(Vec::len), Some(2), "{}: {text}", style.name);
        let plain = plain.get_or_insert_with(|| bursts.clone());
        assert_eq!(bursts, *plain, "{}", style.name);
        let text = said(&eprof(folder.path(), "gpu calibrate trace --target Draw"));
        assert!(text.contains("rc, time constant"), "{}: {text}", style.name);
    }
}

/// Options were called differently by each verb; scripts that use those names go on working.
#[test]
fn earlier_names_of_options_still_work() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("runs"), runs().bytes(&PLAIN)).expect("written");
    let same = |now: &str, before: &str| {
        let (now, before) = (said(&eprof(folder.path(), now)), said(&eprof(folder.path(), before)));
        assert_eq!(now, before);
    };
    for verb in ["model fit", "model validate --protocol blocks:3"] {
        same(
            &format!("{verb} --target draw --group app --columns instructions,loads --timestamp stamp runs"),
            &format!("{verb} --power draw --workload app --events instructions,loads --time stamp runs"),
        );
        same(
            &format!("{verb} --target draw --group app --exclude stamp,elapsed,threads runs"),
            &format!("{verb} --power draw --workload app --except stamp,elapsed,threads runs"),
        );
    }
    for verb in ["gpu model fit", "gpu model validate"] {
        let options = "--target draw --group app --methods published --exclude stamp,energy runs";
        same(&format!("{verb} --duration elapsed {options}"), &format!("{verb} --time elapsed {options}"));
    }
    same(
        "tune --runs-csv runs --var threads --duration elapsed --energy energy --where app=app0",
        "tune --runs-csv runs --var threads --time elapsed --energy energy --where app=app0",
    );
    let trace = "time,draw,other\n0.0,30,1\n0.1,31,1\n0.2,30,1\n0.3,90,1\n0.4,91,1\n0.5,90,1\n";
    std::fs::write(folder.path().join("trace"), trace).expect("written");
    same(
        "gpu correct trace --target draw --sensor counter",
        "gpu correct trace --column draw --sensor counter",
    );
    // They are not shown.
    for verb in ["model fit", "model validate", "gpu model fit", "gpu correct", "tune"] {
        let help = said(&eprof(folder.path(), &format!("{verb} --help")));
        let words: Vec<&str> = help.split_whitespace().collect();
        for old in ["--power", "--workload", "--events", "--except", "--time", "--column"] {
            assert!(!words.contains(&old), "{verb} {old}");
        }
    }
}

/// The machine draws 1040 W, 20 µW per instruction and 16.6 mW per load: `runs` above says so to the last digit.
#[test]
fn power_is_predicted_where_none_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("runs"), runs().bytes(&PLAIN)).expect("written");
    std::fs::write(
        folder.path().join("new"),
        "loads,app,instructions\n3702,one,3e6\n0,,0\n1e6,far,0\n-,none,1\n",
    )
    .expect("written");
    let options = "--target draw --group app --columns instructions,loads runs --rates new";
    for (kind, limited) in [("estimator", "true"), ("lines", "false")] {
        let limited = format!(",true,new,3,{limited}");
        let text =
            said(&eprof(folder.path(), &format!("model predict {options} --kind {kind} --format csv")));
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 4, "{text}");
        assert!(
            rows[1].starts_with("one,1161.5") && rows[1].ends_with("false,new,1,false"),
            "{kind}: {text}"
        );
        assert!(rows[2].starts_with("new,1040.0"), "{kind}: {text}");
        assert!(rows[3].starts_with("far,") && rows[3].ends_with(&limited), "{kind}: {text}");
    }
    let text = said(&eprof(folder.path(), &format!("model predict {options}")));
    assert!(text.contains("6 workloads left out in turn; intervals of 95 %"), "{text}");
    assert!(text.contains("(beyond the data)") && text.contains("`loads` is missing"), "{text}");
    let json = said(&eprof(folder.path(), &format!("model predict {options} --format json --level 80")));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let row = &json["rows"][0];
    let (low, high) = (row["low"].as_f64().expect("low"), row["high"].as_f64().expect("high"));
    assert!(low <= 1161.501 && high >= 1161.499 && json["level"] == 0.8, "{json}");
    let refusal = refused(&eprof(folder.path(), &format!("model predict {options} --frequency threads")));
    assert!(refusal.contains("pick one with --where"), "{refusal}");
    std::fs::write(folder.path().join("new"), "loads\n1\n").expect("written");
    let refusal = refused(&eprof(folder.path(), &format!("model predict {options}")));
    assert!(refusal.contains("there is no column `instructions`"), "{refusal}");
}

/// Of one workload nothing tells how far off others are.
#[test]
fn intervals_of_one_workload_are_for_it_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let row = |at: u32| format!("job,{at},{}\n", 20.0 + f64::from(at) + f64::from(at * 7 % 5) * 0.1);
    let table = "app,events,watts\n".to_owned() + &(1..40).map(row).collect::<String>();
    std::fs::write(folder.path().join("runs"), table).expect("written");
    std::fs::write(folder.path().join("new"), "app,events\njob,10\nother,10\n").expect("written");
    let options = "--target watts --group app runs --rates new";
    let text = said(&eprof(folder.path(), &format!("model predict {options}")));
    assert!(
        text.contains("note: all measurements are of one workload, `job`: intervals hold for more"),
        "{text}"
    );
    let csv = said(&eprof(folder.path(), &format!("model predict {options} --format csv")));
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows[1][0], rows[2][0]), ("job", "other"), "{csv}");
    assert!(!rows[1][2].is_empty() && rows[2][2].is_empty() && rows[2][3].is_empty(), "{csv}");
}

#[test]
fn tables_come_from_standard_input_too() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("runs"), runs().bytes(&STYLES[1])).expect("written");
    let watts = |row: u32| f64::from(row % 3) * 0.1 + if (20..50).contains(&row) { 150.0 } else { 50.0 };
    let trace: String = (0..80).map(|row| format!("{};{}\n", row * 20, watts(row))).collect();
    std::fs::write(folder.path().join("trace"), format!("time (ms);draw (W)\n{trace}")).expect("written");
    for (table, verb) in [
        ("runs", "model fit --target draw --columns instructions,loads --use-all -"),
        ("runs", "gpu model fit --target draw --columns instructions,loads --methods published -"),
        ("runs", "tune --runs-csv - --var threads --duration elapsed --energy energy --where app=app0"),
        ("trace", "gpu correct - --target draw --sensor counter"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_eprof"))
            .args(verb.split_whitespace())
            .stdin(std::fs::File::open(folder.path().join(table)).expect("the table"))
            .output();
        said(&output.expect("eprof runs"));
    }
}

/// What two GPUs drew is no trace, and two columns of one name are not the first of them.
#[test]
fn rows_and_columns_that_contradict_each_other_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String =
        (0..80).map(|row| format!("{0},{1}\n{0},{2}\n", row * 20, 50 + row % 7, 220)).collect();
    std::fs::write(folder.path().join("cards"), format!("time (ms),draw (W)\n{rows}")).expect("written");
    let error = refused(&eprof(folder.path(), "gpu correct cards --sensor counter"));
    assert!(error.contains("at 80 of 80 times") && error.contains("several GPUs"), "{error}");
    let rows: String = (0..40)
        .map(|row| format!("w{},{},{},{}\n", row % 5, row % 11, row * 7 % 13, 10 + row % 11))
        .collect();
    std::fs::write(folder.path().join("twins"), format!("job,cycles,cycles,watts\n{rows}")).expect("written");
    for verb in
        ["model fit --target watts --group job twins", "gpu model fit --target watts --columns cycles twins"]
    {
        let error = refused(&eprof(folder.path(), verb));
        assert!(error.contains("several columns are called `cycles`, and they differ"), "{verb}: {error}");
    }
}

#[test]
fn files_that_are_no_tables_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("binary"), b"\x7fELF\0\0\x02\x01").expect("written");
    std::fs::write(folder.path().join("empty"), "").expect("written");
    for verb in
        ["model fit --target draw", "gpu model fit", "gpu correct", "gpu calibrate", "tune --runs-csv"]
    {
        let error = refused(&eprof(folder.path(), &format!("{verb} binary")));
        assert!(error.contains("cannot read binary: binary data, not a table in text"), "{verb}: {error}");
        let error = refused(&eprof(folder.path(), &format!("{verb} empty")));
        assert!(error.contains("empty"), "{verb}: {error}");
        let error = refused(&eprof(folder.path(), &format!("{verb} missing")));
        assert!(error.contains("cannot read missing"), "{verb}: {error}");
    }
}

/// One application alone cannot be left out; its rows can.
#[test]
fn a_single_group_is_fitted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = String::from("kernel,reads,writes,clock,power_w\n");
    for i in 0..40 {
        let (reads, writes) = (i * 7 % 11, i * 5 % 13);
        table += &format!("k,{reads},{writes},{},{}\n", 1000 + i % 4 * 100, 50 + 3 * reads + 2 * writes);
    }
    std::fs::write(folder.path().join("counters"), table).expect("written");
    let text = said(&eprof(folder.path(), "gpu model fit --group kernel counters"));
    assert!(text.contains("40 rows in 1 groups") && text.contains("coefficients"), "{text}");
    assert!(text.contains("note: all rows are of one group: each row is left out alone"), "{text}");
    let error = refused(&eprof(folder.path(), "gpu model validate --group kernel counters"));
    assert!(error.contains("all rows belong to one group"), "{error}");
}

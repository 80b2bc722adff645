//! `eprof tune --runs-csv`: tables of other people, good and bad.

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use eprof_testbed::{eprof, published_data};

fn tune(table: &str, options: &[&str]) -> (String, String, bool) {
    let mut child = eprof()
        .args(["tune", "--runs-csv", "-"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("eprof runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    // A program that refuses its options does not read its input.
    let _ = pipe.write_all(table.as_bytes());
    drop(pipe);
    texts(&child.wait_with_output().expect("eprof ends"))
}

fn texts(output: &Output) -> (String, String, bool) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

/// Runs at 4 x 3 settings of the paper's space: time falls to a plateau, power rises.
fn twelve_runs() -> String {
    let mut table = String::from("threads,freq_GHz,seconds,joules\n");
    for threads in [4.0, 16.0, 32.0, 44.0] {
        for ghz in [1.2, 1.7, 2.2f64] {
            let time = 100.0 / f64::min(threads, 20.0 + 0.1 * threads) / ghz.powf(0.7);
            let watts = 80.0 + threads * ghz * ghz;
            table += &format!("{threads},{ghz},{time:.4},{:.3}\n", time * watts);
        }
    }
    table
}

const SPACE: [&str; 4] = ["--threads", "4..44:4", "--freq", "1.2..2.2GHz"];

#[test]
fn a_whole_space_is_predicted_from_twelve_runs() {
    let (text, notes, success) = tune(&twelve_runs(), &[&SPACE[..], &["--max-slowdown", "20%"]].concat());
    assert!(success && notes.is_empty(), "{notes}");
    // Time is a power of the clock: a curve of its logarithm, which needs less than the usual form.
    assert!(text.contains("bs(log(freq), df=2)"), "{text}");
    assert!(text.contains("7 coefficients from 12 settings, 12 runs"), "{text}");
    assert!(text.contains("of 121 settings on the Pareto front"), "{text}");
    assert!(text.contains("recommended (least energy at no more than 20 % slow-down): threads="), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn every_setting_as_csv_and_a_drawing() {
    let folder = tempfile::tempdir().expect("a folder");
    let drawing = folder.path().join("front.svg");
    let svg = drawing.to_str().expect("text");
    let (csv, _, success) = tune(&twelve_runs(), &[&SPACE[..], &["--format", "csv", "--svg", svg]].concat());
    assert!(success);
    assert_eq!(csv.lines().count(), 1 + 121);
    let fields = csv.lines().next().expect("headings").split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == fields));
    let svg = fs::read_to_string(drawing).expect("a drawing");
    assert_eq!(svg.matches("<title>measured: ").count(), 12);
}

#[test]
fn too_few_runs_are_refused_with_the_number_needed() {
    let seven: String = twelve_runs().lines().take(8).map(|line| format!("{line}\n")).collect();
    let (_, error, success) = tune(&seven, &SPACE);
    assert!(!success);
    for part in
        ["has 8 coefficients", "at least 8 different settings", "threads needs 4 different values and has 3"]
    {
        assert!(error.contains(part), "{error}");
    }
    let with_nodes = twelve_runs().replace("threads,", "nodes,threads,").replace("\n4", "\n20,4");
    let with_nodes =
        with_nodes.replace("\n16", "\n42,16").replace("\n32", "\n64,32").replace("\n44", "\n86,44");
    let (_, error, success) =
        tune(&with_nodes, &["--nodes", "20,42,64,86", "--threads", "4..44:4", "--freq", "1.2..2.2GHz"]);
    assert!(!success);
    assert!(error.contains("has 20 coefficients") && error.contains("12 settings determine only"), "{error}");
}

#[test]
fn ties_and_copies_do_no_harm() {
    let mut table = String::from("Cores;Time[s];Energy[Wh]\n");
    for cores in 1..=8 {
        for _ in 0..2 {
            table += &format!("{cores};{};0,2\n", 10 / cores.min(4));
        }
    }
    let (text, error, success) = tune(&table, &["--min-energy"]);
    assert!(success, "{error}");
    assert!(text.contains("8 settings, 8 runs") && error.contains("8 of 16 rows"), "{text}{error}");
    assert!(
        text.contains("that is the default setting: nothing to gain")
            || text.contains("cannot be told from none"),
        "{text}"
    );
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn a_single_setting_has_nothing_to_tune() {
    let (text, error, success) = tune("threads,time,energy\n4,1,10\n4,1.1,11\n", &[]);
    assert!(success, "{error}");
    assert!(text.contains("ln(y) ~ 1\n") && text.contains("nothing to gain"), "{text}");
}

#[test]
fn names_are_variables_when_asked() {
    let mut table = String::from("flags,threads,time,energy\n");
    for (flags, factor) in [("-O0", 3.0), ("-O2", 1.0), ("-O3", 0.9)] {
        for threads in 1..=4 {
            let time = 8.0 * factor / f64::from(threads);
            table += &format!("{flags},{threads},{time},{}\n", time * 20.0);
        }
    }
    let (_, error, success) = tune(&table, &[]);
    assert!(!success && error.contains("--where flags=-O0") && error.contains("--var flags"), "{error}");
    let (text, error, success) =
        tune(&table, &["--var", "flags", "--var", "threads", "--default", "flags=-O2,threads=4"]);
    assert!(success, "{error}");
    assert!(text.contains("C(flags)") && text.contains("recommended"), "{text}");
    assert!(text.lines().any(|line| line.contains("flags=-O3")), "{text}");
}

#[test]
fn the_next_runs_are_planned_where_the_model_knows_least() {
    let (plan, _, success) = tune(&twelve_runs(), &[&SPACE[..], &["--plan", "--budget", "15"]].concat());
    assert!(success);
    let lines: Vec<&str> = plan.lines().collect();
    assert_eq!(lines[0], "threads,freq_GHz,seconds,joules");
    assert_eq!(lines.len(), 1 + 3, "{plan}");
    for line in &lines[1..] {
        assert!(!twelve_runs().contains(line.trim_end_matches(',')), "{line} was run already");
    }
}

#[test]
fn a_table_in_the_place_of_a_program_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("runs.csv"), twelve_runs()).expect("a file");
    for name in ["runs.csv", "./runs.csv"] {
        let mut tune = eprof();
        let output = tune.args(["tune", "--threads", "1..4", name]).current_dir(folder.path()).output();
        let (_, error, succeeded) = texts(&output.expect("eprof runs"));
        assert!(!succeeded && error.contains(&format!("`eprof tune --runs-csv {name}`")), "{error}");
    }
}

#[test]
fn copies_of_rows_tell_nothing_of_errors() {
    let runs = twelve_runs();
    let twice = runs.clone() + runs.split_once('\n').expect("a heading").1;
    let (once, _, _) = tune(&runs, &SPACE);
    let (output, notes, succeeded) = tune(&twice, &SPACE);
    assert!(succeeded && notes.contains("12 of 24 rows"), "{notes}");
    assert_eq!(output, once);
}

/// One of three runs has a thousand times the joules of the others, as by a slip of the unit.
#[test]
fn a_wild_run_is_named_and_its_say_in_the_choice_told() {
    let table = |wild: f64| {
        let mut table = String::from("threads,seconds,joules\n");
        for repeat in 0..3 {
            for threads in 1..=8 {
                let n = f64::from(repeat * 8 + threads);
                let seconds =
                    (8.0 / f64::from(threads) + 0.15 * f64::from(threads)) * (1.0 + 0.004 * (n * 2.4).sin());
                let factor = if (repeat, threads) == (1, 5) { wild } else { 1.0 };
                table += &format!(
                    "{threads},{seconds:.4},{:.3}\n",
                    seconds * (40.0 + 5.0 * f64::from(threads)) * factor
                );
            }
        }
        table
    };
    let recommended = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("recommended")).map(str::to_owned);
        line.expect("a recommendation")
    };
    let (right, notes, _) = tune(&table(1.0), &["--min-energy"]);
    assert!(notes.is_empty() && recommended(&right).ends_with("threads=5"), "{notes}{right}");
    let (text, notes, success) = tune(&table(1000.0), &["--min-energy"]);
    assert!(success, "{notes}");
    assert!(notes.contains("note: 1 run is out of line: line 14 (threads=5): energy "), "{notes}");
    assert!(notes.contains(" kJ, where the other runs of this setting say 15"), "{notes}");
    assert!(
        notes.contains("Nothing is left out for it; the recommendation depends on this run: threads="),
        "{notes}"
    );
    assert!(!recommended(&text).ends_with("threads=5"), "{text}");
    assert!(text.contains("\nwithout the run that is out of line: threads=5 (saving "), "{text}");
    let (csv, notes, _) = tune(&table(1000.0), &["--min-energy", "--format", "csv"]);
    assert!(notes.contains("line 14") && !csv.contains("without"), "{notes}");
}

#[test]
fn what_is_wrong_is_said() {
    let good = "threads,time,energy\n1,4,10\n2,2,9\n4,1,8\n";
    let cases: [(&str, &[&str], &str); 8] = [
        ("", &[], "the table is empty"),
        ("a,b\n1,2\n", &[], "--duration COLUMN"),
        (good, &["--duration", "walltime"], "there is no column `walltime`"),
        (good, &["--duration", "time:parsec"], "unit `parsec`"),
        (good, &["--where", "threads=99"], "no row has threads=99"),
        (good, &["--default", "threads=3"], "threads has no such value"),
        (good, &["--formula", "bs(cores)"], "there is no variable `cores`"),
        (good, &["--freq", "1,2GHz"], "there is no column `freq`"),
    ];
    for (table, options, expected) in cases {
        let (_, error, success) = tune(table, options);
        assert!(!success && error.contains(expected), "{options:?}: {error}");
        assert_eq!(error.matches("eprof: error").count(), 1, "{error}");
    }
}

#[test]
fn published_tables_are_read_as_they_are() {
    let Some(data) = published_data() else { return };
    let run = |options: &[&str]| texts(&eprof().arg("tune").args(options).output().expect("eprof runs"));
    let path = |file: &str| data.join(file).to_string_lossy().into_owned();

    let (text, error, success) =
        run(&["--runs-csv", &path("multicores-time-energy/raw/amd/data-bt.csv"), "--hold-out"]);
    assert!(success, "{error}");
    assert!(text.contains("fixed    Procs=1 Freq=2.1GHz") && text.contains("held out 42 settings"), "{text}");

    let languages = path("Energy-Languages-PowerCap/measurements.csv");
    let (_, error, success) = run(&["--runs-csv", &languages]);
    assert!(!success && error.contains("--where Language="), "{error}");
    let (text, error, success) = run(&[
        "--runs-csv",
        &languages,
        "--where",
        "Language=Rust",
        "--where",
        "Program=n-body",
        "--duration",
        "Time:ms",
    ]);
    assert!(success, "{error}");
    assert!(error.contains("energy is Package + DRAM") && text.contains("C(PowerLimit)"), "{error}{text}");

    let zeus = path("zeus/summary_power_v100.csv");
    let options = ["--runs-csv", &zeus, "--where", "network=shufflenetv2", "--where", "optimizer=adam"];
    let (text, error, success) = run(&options);
    assert!(success, "{error}");
    assert!(error.contains("energy is average_power times time"), "{error}");
    assert!(error.contains("is one of batch_size a setting"), "{error}");
    assert!(text.contains("bs(log(power_limit))"), "{text}");
}

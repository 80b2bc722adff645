//! `eprof stat` with real programs, wherever it runs: estimated where nothing measures.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use eprof_testbed::{Started, eprof, has_program, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// `eprof stat` by the estimate: 1 W idle and 9 W with every CPU busy, whatever machine this is.
fn stat(options: &[&str], command: &[&str]) -> Command {
    let mut stat = eprof();
    stat.args(["stat", "--meter", "estimate", "--watts", "1:9"]).args(options).arg("--").args(command);
    stat.stdin(Stdio::null());
    stat
}

fn run(options: &[&str], command: &[&str]) -> Output {
    stat(options, command).output().expect("eprof runs")
}

fn document(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&stderr).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

const SPIN: &str = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";

#[test]
fn the_programs_output_and_status_are_its_own() {
    let output = run(&[], &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(output.stdout, b"out\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("err\n") && stderr.contains("~ ESTIMATED, not measured"), "{stderr}");
}

#[test]
fn whose_energy_it_is_is_said() {
    let said = |options: &[&str]| String::from_utf8_lossy(&run(options, &["true"]).stderr).into_owned();
    assert!(said(&[]).contains("energy of the program and the idle machine"), "{}", said(&[]));
    assert!(said(&["-a"]).contains("energy of the whole machine"), "{}", said(&["-a"]));
    let above_idle = said(&["--subtract-idle=0.1"]);
    assert!(above_idle.contains("energy of the program alone"), "{above_idle}");
    assert_eq!(document(&run(&["--json"], &["true"]))["energy_of"], "program-and-idle");
}

/// What a terminal gets; `script` makes the terminal.
fn on_a_terminal(arguments: &str) -> String {
    let eprof = env!("CARGO_BIN_EXE_eprof");
    let command = format!("'{eprof}' stat --meter estimate --watts 1:9 {arguments}");
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", &command, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
    let output = script.output().expect("script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_terminal_shows_which_of_several_runs_it_is_unless_the_program_has_it() {
    if !has_program("script", &["--version"]) {
        return skip("script, which makes a terminal, is not installed");
    }
    let several = on_a_terminal("-r 3 --warmup 1 sleep 0.3 >/dev/null");
    assert!(several.contains("run 1 of 4") && several.contains(" s so far"), "{several}");
    // Carriage return and erasure: the line is gone before the figures come.
    let last = several.rfind("run ").expect("shown");
    assert!(several[last..].contains("\u{1b}[2K") || several[last..].contains("\u{1b}[K"), "{several:?}");
    let one = on_a_terminal("sleep 0.1 >/dev/null");
    assert!(!one.contains("run 1 of"), "{one}");
    let on_the_same = on_a_terminal("-r 2 sleep 0.1");
    assert!(!on_the_same.contains("run 1 of"), "{on_the_same}");
    let no_terminal = run(&["-r", "2"], &["true"]);
    assert!(!String::from_utf8_lossy(&no_terminal.stderr).contains("run 1 of"));
}

#[test]
fn what_cannot_be_run_says_so_as_a_shell_would() {
    let output = run(&[], &["/nonexistent/program"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("command not found"));
    assert_eq!(run(&[], &["/"]).status.code(), Some(126));
}

#[test]
fn an_estimate_follows_from_time_and_cpu_time() {
    let output = run(&["-r", "3", "--warmup", "1", "--json"], &["sh", "-c", SPIN]);
    assert!(output.status.success());
    let document = document(&output);
    let cpus = std::fs::read_to_string("/proc/stat").expect("readable");
    let cpus = cpus.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let runs = document["commands"][0]["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3);
    for run in runs {
        let number = |name: &str| run[name].as_f64().expect("a number");
        let joules: f64 = run["joules"].as_array().expect("domains").iter().filter_map(Value::as_f64).sum();
        let expected = 1.0 * number("seconds") + 8.0 / cpus as f64 * number("cpu_seconds");
        assert!((joules / expected - 1.0).abs() < 1e-6, "{joules} J instead of {expected}");
        assert!(number("cpu_seconds") > 0.0 && number("cpu_seconds") <= number("seconds") * 1.5 + 0.02);
    }
    let whole = &document["commands"][0]["parts"][0];
    assert_eq!(whole["method"], "estimated");
    let mean = |quantity: &str| whole[quantity]["mean"].as_f64().expect("a mean");
    assert!(mean("joules") > 0.0 && mean("watts") >= 0.99 && mean("joule_seconds") > 0.0);
    assert!(whole["joules"]["half_width"].as_f64().expect("three runs") > 0.0);
}

#[test]
fn two_programs_take_turns() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let note = |letter: &str| format!("echo {letter} >> {}", log.display());
    let csv = folder.path().join("stat.csv");
    let csv_path = csv.to_str().expect("text");
    let slow = format!("{}; {SPIN}; {SPIN}; {SPIN}; {SPIN}", note("B"));
    let quick = note("A");
    let output =
        run(&["-r", "3", "--warmup", "1", "--csv", "-o", csv_path, "--vs", &slow], &["sh", "-c", &quick]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_to_string(&log).expect("a log"), "A\nB\n".repeat(4));
    let table = std::fs::read_to_string(&csv).expect("a table");
    let ratio = table.lines().find(|line| line.starts_with("B/A,") && line.contains(",energy,"));
    let fields: Vec<&str> = ratio.expect("a ratio").split(',').collect();
    let [mean, low, high] = [6, 7, 8].map(|at| fields[at].parse::<f64>().expect("a number"));
    assert!(mean > 1.5 && low < mean && mean < high, "{table}");
}

#[test]
fn repeats_end_with_the_first_failure_unless_told_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let script = format!("echo >> {}; exit 3", log.display());
    let output = run(&["-r", "5"], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(&log).expect("a log").lines().count(), 1);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--ignore-failure"));
    let output = run(&["-r", "5", "-i"], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(std::fs::read_to_string(&log).expect("a log").lines().count(), 6);
}

#[test]
fn a_signal_ends_the_runs_and_the_figures_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    // The third run waits for the signal.
    let script = format!("echo >> {0}; [ $(wc -l < {0}) -lt 3 ] || exec sleep 60", log.display());
    let mut stat = stat(&["-r", "10", "--json"], &["sh", "-c", &script]);
    let child = Started::new(stat.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(&log).map_or(0, |text| text.lines().count()) < 3 {
        assert!(Instant::now() < deadline, "the third run never came");
        std::thread::sleep(Duration::from_millis(5));
    }
    let start = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("signalled");
    let output = child.wait_with_output().expect("ended");
    assert!(start.elapsed() < Duration::from_secs(30), "the program was told");
    assert_eq!((output.status.code(), output.status.signal()), (Some(143), None));
    let document = document(&output);
    assert_eq!(document["interrupted"], "SIGTERM");
    assert_eq!(document["commands"][0]["runs"].as_array().expect("runs").len(), 2, "whole runs only");
}

#[test]
fn idle_power_is_subtracted_when_asked_for() {
    let output = run(&["--subtract-idle=0.05", "--json"], &["sleep", "0.2"]);
    let document = document(&output);
    let joules = document["commands"][0]["parts"][0]["joules"]["mean"].as_f64().expect("a number");
    // Sleeping takes idle power, and the rest is next to nothing.
    assert!((-1e-9..0.1).contains(&joules), "{joules} J");
    assert!(document["domains"][0]["idle_watts_subtracted"].as_f64().expect("watts") > 0.0);
}

/// The estimate of so many seconds and CPU seconds.
fn estimated(seconds: f64, cpu_seconds: f64) -> f64 {
    let cpus = std::fs::read_to_string("/proc/stat").expect("readable");
    let cpus = cpus.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    seconds + 8.0 / cpus as f64 * cpu_seconds
}

#[test]
fn what_runs_already_is_measured_until_a_command_ends() {
    let busy = Started::new(Command::new("sh").args(["-c", "while :; do :; done"]));
    let pid = busy.id().to_string();
    let output = run(&["-p", &pid, "--json"], &["sleep", "0.5"]);
    drop(busy);
    let document = document(&output);
    let run_of = &document["commands"][0]["runs"][0];
    let number = |name: &str| run_of[name].as_f64().expect("a number");
    assert_eq!(document["commands"][0]["command"], format!("process {pid}"));
    assert!(number("seconds") >= 0.5 && number("cpu_seconds") > 0.05, "{document:#}");
    let joules: f64 = run_of["joules"].as_array().expect("domains").iter().filter_map(Value::as_f64).sum();
    let expected = estimated(number("seconds"), number("cpu_seconds"));
    assert!((joules / expected - 1.0).abs() < 1e-6, "{joules} J instead of {expected}");
    // Nobody of this number is there any more.
    let missing = run(&["-p", &pid], &["true"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains(&format!("no process {pid}")));
}

#[test]
fn a_process_is_measured_until_it_ends() {
    let mut brief = Started::new(Command::new("sleep").arg("0.5"));
    let pid = brief.id().to_string();
    let reaper = std::thread::spawn(move || brief.wait().expect("ends"));
    let mut stat = eprof();
    let output = stat.args(["stat", "--meter", "estimate", "-p", &pid]).output().expect("eprof runs");
    reaper.join().expect("reaped");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(&format!("process {pid}")), "{said}");
}

#[test]
fn the_whole_machine_is_measured_until_it_is_interrupted() {
    let output = run(&["-a", "--json"], &["sleep", "0.2"]);
    let document = document(&output);
    assert_eq!(document["commands"][0]["command"], "the whole machine");
    // Without a command, Ctrl-C ends it.
    let mut stat = eprof();
    let child = stat.args(["stat", "--meter", "estimate", "-a", "-I", "50"]).stderr(Stdio::piped());
    let mut child = Started::new(child);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().expect("piped")));
    // Two of them say that it goes on; it may be signalled from then on.
    let first: Vec<String> = lines.by_ref().take(3).map(|line| line.expect("text")).collect();
    assert!(first[0].contains("joules") && first[2].split_whitespace().count() == 5, "{first:?}");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("signalled");
    assert!(lines.count() >= 1, "what was left");
    assert_eq!(child.wait().expect("ended").code(), Some(0));
}

#[test]
fn intervals_add_up_to_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("intervals");
    let path_text = path.to_str().expect("text");
    let output = run(&["-I", "40", "--json", "-o", path_text], &["sh", "-c", &format!("{SPIN}; sleep 0.2")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&path).expect("written");
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // On a machine of several packages there is a total.
    let part = rows.last().expect("rows")["part"].clone();
    let rows: Vec<&Value> = rows.iter().filter(|row| row["part"] == part).collect();
    assert!(rows.len() >= 4, "{text}");
    let sum = |name: &str| rows.iter().map(|row| row[name].as_f64().expect("a number")).sum::<f64>();
    let ends: Vec<f64> = rows.iter().map(|row| row["seconds"].as_f64().expect("a number")).collect();
    assert!(ends.windows(2).all(|pair| pair[0] < pair[1]), "{ends:?}");
    let expected = estimated(*ends.last().expect("rows"), sum("cpu_seconds"));
    assert!((sum("joules") / expected - 1.0).abs() < 1e-6, "{} J instead of {expected}", sum("joules"));
    assert!(sum("cpu_seconds") > 0.0);
    assert_eq!(run(&["-I", "40", "-r", "2"], &["true"]).status.code(), Some(2));
}

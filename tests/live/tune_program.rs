//! `eprof tune` runs programs: OpenMP kernels for real, and on a folder of files that stands for the
//! machine's settings, every way a tuning can end.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use eprof_testbed::{Started, eprof, has_program, programs, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A place for one tuning: its journal, and a machine whose settings are plain files.
struct Place {
    folder: tempfile::TempDir,
}

const POLICY: &str = "sys/devices/system/cpu/cpufreq/policy0";
const PACKAGE: &str = "sys/class/powercap/intel-rapl:0";

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("a folder") };
        for (file, content) in [
            ("cpuinfo_min_freq", "1200000"),
            ("cpuinfo_max_freq", "3000000"),
            ("scaling_min_freq", "1200000"),
            ("scaling_max_freq", "3000000"),
            ("scaling_cur_freq", "2999000"),
            ("scaling_governor", "performance"),
        ] {
            place.write(&format!("{POLICY}/{file}"), content);
        }
        place.write(&format!("{PACKAGE}/name"), "package-0");
        place.write(&format!("{PACKAGE}/constraint_0_power_limit_uw"), "90000000");
        place
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn write(&self, file: &str, content: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, format!("{content}\n")).expect("a file");
    }

    fn frequencies(&self) -> [String; 2] {
        ["scaling_min_freq", "scaling_max_freq"].map(|file| self.content(&format!("{POLICY}/{file}")))
    }

    fn content(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("readable").trim().to_owned()
    }

    /// `eprof tune` in this place, with the options that come before the command.
    fn tune(&self, options: &[&str], command: &[&str]) -> Command {
        let mut tune = eprof();
        tune.current_dir(self.folder.path())
            .args(["tune", "--root", ".", "--watts", "5:20"])
            .args(options)
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        tune
    }

    fn journal_lines(&self) -> usize {
        fs::read_to_string(self.path("eprof-tune.jsonl")).map_or(0, |text| text.lines().count())
    }
}

const UNTOUCHED: [&str; 2] = ["1200000", "3000000"];

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn succeed(mut command: Command) -> (String, String) {
    let output = command.output().expect("eprof runs");
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    (stdout, stderr)
}

fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !reached() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn frequencies_and_caps_are_set_for_each_run_and_restored() {
    let place = Place::new();
    let log = place.path("log");
    let script = format!(
        "echo $(cat {POLICY}/scaling_min_freq) $(cat {POLICY}/scaling_max_freq) \
         $(cat {PACKAGE}/constraint_0_power_limit_uw) >> {}",
        log.display()
    );
    let tune = place.tune(
        &["--freq", "1.5,3.0GHz", "--power-cap", "40,90W", "--repeat", "1", "--no-verify"],
        &["sh", "-c", &script],
    );
    let (stdout, stderr) = succeed(tune);
    let mut seen: Vec<String> = fs::read_to_string(&log).expect("a log").lines().map(String::from).collect();
    seen.sort();
    let expected = [
        "1500000 1500000 40000000",
        "1500000 1500000 90000000",
        "3000000 3000000 40000000",
        "3000000 3000000 90000000",
    ];
    assert_eq!(seen, expected, "{stderr}");
    assert_eq!(place.frequencies(), UNTOUCHED);
    assert_eq!(place.content(&format!("{PACKAGE}/constraint_0_power_limit_uw")), "90000000");
    assert!(stderr.contains("as they were before, read back"), "{stderr}");
    assert!(stderr.contains("a guess"), "an estimate knows nothing of frequencies: {stderr}");
    assert!(stdout.contains("ESTIMATED, not measured"), "{stdout}");
}

#[test]
fn what_the_command_sets_itself_is_left_to_it() {
    let place = Place::new();
    let (_, stderr) = succeed(place.tune(
        &["--freq", "1.5,3.0GHz", "--repeat", "1", "--no-verify"],
        &["sh", "-c", "test $(cat sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq) = 3000000 && echo {khz} >> log"],
    ));
    let mut log: Vec<String> = place.content("log").lines().map(String::from).collect();
    log.sort();
    assert_eq!(log, ["1500000", "3000000"], "{stderr}");
}

#[test]
fn what_cannot_be_set_is_said_and_the_rest_is_tuned() {
    let place = Place::new();
    fs::remove_dir_all(place.path("sys")).expect("removable");
    let (stdout, stderr) = succeed(place.tune(
        &[
            "--threads",
            "1..2",
            "--freq",
            "1.5,3.0GHz",
            "--power-cap",
            "40,90W",
            "--repeat",
            "1",
            "--no-verify",
        ],
        &["sh", "-c", "sleep 0.0{threads}"],
    ));
    assert!(stderr.contains("frequencies are not tuned: there is no cpufreq policy"), "{stderr}");
    assert!(stderr.contains("power caps are not tuned"), "{stderr}");
    assert!(stdout.contains("ln(y) ~ threads\n"), "{stdout}");
}

#[test]
fn a_driver_that_ignores_the_frequency_ends_the_tuning_and_all_is_restored() {
    let place = Place::new();
    let ignoring = place.path(&format!("{POLICY}/scaling_min_freq"));
    fs::remove_file(&ignoring).expect("removable");
    std::os::unix::fs::symlink("/dev/null", &ignoring).expect("a link");
    let output =
        place.tune(&["--freq", "1.5,3.0GHz", "--repeat", "1"], &["true"]).output().expect("eprof runs");
    let (_, stderr) = text(&output);
    assert!(!output.status.success());
    assert!(stderr.contains("the driver does not take this value"), "{stderr}");
    assert_eq!(place.content(&format!("{POLICY}/scaling_max_freq")), "3000000");
}

/// Starts a tuning whose program sleeps, and waits until the frequency is changed.
fn started(place: &Place, seconds: &str) -> Started {
    let options = ["--freq", "1.5,2.0,2.5GHz", "--default", "freq=2.5GHz", "--repeat", "2"];
    let child = Started::new(&mut place.tune(&options, &["sleep", seconds]));
    until("the frequency is changed", || place.frequencies() != UNTOUCHED);
    child
}

#[test]
fn interrupt_and_termination_restore_and_end_the_program() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let place = Place::new();
        // A length of sleep that no other process has.
        let child = started(&place, "61.25");
        kill(Pid::from_raw(child.id() as i32), signal).expect("alive");
        let output = child.wait_with_output().expect("it ends");
        let (_, stderr) = text(&output);
        assert_eq!(output.status.code(), Some(128 + signal as i32), "{stderr}");
        assert_eq!(place.frequencies(), UNTOUCHED, "{signal}");
        assert!(stderr.contains("the same command goes on there"), "{stderr}");
        assert!(!is_running("61.25"), "the program is gone too");
    }
}

#[test]
fn a_killed_eprof_is_cleaned_up_after_by_its_guard() {
    let place = Place::new();
    let mut child = started(&place, "62.25");
    child.kill().expect("alive");
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32));
    until("the guard restores", || place.frequencies() == UNTOUCHED);
    until("the program is gone too", || !is_running("62.25"));
}

fn is_running(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("procfs").filter_map(Result::ok);
    processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        let mut words = line.split(|&byte| byte == 0);
        words.next().is_some_and(|name| name.ends_with(b"sleep")) && words.next() == Some(argument.as_bytes())
    })
}

#[test]
fn an_interrupted_tuning_goes_on_where_it_stopped() {
    let place = Place::new();
    let options = ["--threads", "1..2", "--repeat", "3", "--no-verify"];
    let command = ["sh", "-c", "echo run >> log; sleep 0.3"];
    let child = Started::new(&mut place.tune(&options, &command));
    until("two runs are in the journal", || place.journal_lines() >= 3);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("alive");
    child.wait_with_output().expect("it ends");
    let kept = place.journal_lines() - 1;
    let started = place.content("log").lines().count();
    assert!((2..6).contains(&kept), "{kept}");

    let (_, stderr) = succeed(place.tune(&options, &command));
    assert!(stderr.contains(&format!("{kept} runs are taken from eprof-tune.jsonl")), "{stderr}");
    assert_eq!(place.content("log").lines().count() - started, 6 - kept, "only the rest is run");
    assert_eq!(place.journal_lines(), 1 + 6);

    let (_, stderr) = succeed(place.tune(&options, &command));
    assert!(stderr.contains("6 runs are taken"), "{stderr}");
    let output = place.tune(&options, &["true"]).output().expect("eprof runs");
    assert!(text(&output).1.contains("belongs to another tuning"), "{output:?}");
}

#[test]
fn setup_runs_once_per_text_and_teardown_at_the_end() {
    let place = Place::new();
    succeed(place.tune(
        &[
            "--var",
            "flags=-O1,-O2",
            "--setup",
            "echo build {flags} >> log",
            "--teardown",
            "echo clean >> log",
            "--repeat",
            "2",
            "--no-verify",
        ],
        &["sh", "-c", "echo run >> log"],
    ));
    let log = place.content("log");
    let mut lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.pop(), Some("clean"));
    assert_eq!(lines.iter().filter(|line| line.starts_with("build")).count(), 2, "{log}");
    assert_eq!(lines.iter().filter(|line| **line == "run").count(), 4, "{log}");
}

#[test]
fn a_failing_program_is_shown_with_its_words() {
    let place = Place::new();
    let output = place
        .tune(&["--threads", "1..2", "--repeat", "1"], &["sh", "-c", "echo out of memory; exit 7"])
        .output()
        .expect("eprof runs");
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    for part in ["failed at threads=", "exit status: 7", "out of memory"] {
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn a_program_that_hangs_is_ended() {
    let place = Place::new();
    let output = place
        .tune(&["--threads", "1..2", "--repeat", "1", "--timeout", "1"], &["sleep", "63.25"])
        .output()
        .expect("eprof runs");
    assert!(text(&output).1.contains("was ended after 1 s"), "{output:?}");
    assert!(!is_running("63.25"));
}

#[test]
fn a_figure_in_the_output_is_the_metric() {
    let place = Place::new();
    let (stdout, _) = succeed(place.tune(
        &["--threads", "1..2", "--repeat", "2", "--rate", "rate: ([0-9]+)", "--format", "csv", "--no-verify"],
        &["sh", "-c", "echo rate: {threads}00; sleep 0.05"],
    ));
    let rows: Vec<Vec<&str>> = stdout.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][1], "performance");
    let performance: Vec<f64> = rows[1..].iter().map(|row| row[1].parse().expect("a number")).collect();
    assert!((performance[0] - 100.0).abs() < 1e-6 && (performance[1] - 200.0).abs() < 1e-6, "{stdout}");
    let output = place
        .tune(
            &["--threads", "1..2", "--repeat", "1", "--rate", "speed: ([0-9]+)", "--fresh"],
            &["echo", "nothing"],
        )
        .output()
        .expect("eprof runs");
    assert!(text(&output).1.contains("nothing in the output"), "{output:?}");
}

#[test]
fn threads_are_told_to_openmp_and_placed() {
    let place = Place::new();
    let script = "echo $OMP_NUM_THREADS $OMP_PROC_BIND $(nproc) >> log";
    succeed(place.tune(
        &["--threads", "1", "--var", "x=1,2", "--repeat", "1", "--no-verify"],
        &["sh", "-c", script, "{x}"],
    ));
    assert_eq!(place.content("log"), "1 spread 1\n1 spread 1");
}

#[test]
fn mistakes_are_explained_before_anything_runs() {
    let place = Place::new();
    let cases: [(&[&str], &[&str], &str); 7] = [
        (&["--threads", "1..2"], &["touch", "ran", "{thread}"], "stands for no variable"),
        (&["--var", "tile=1,2"], &["touch", "ran"], "nothing sets `tile`"),
        (&["--threads", "1.5,2"], &["touch", "ran"], "whole numbers"),
        (&["--freq", "5,6GHz"], &["touch", "ran"], "out of the CPUs' range, 1.2 to 3 GHz"),
        (&["--threads", "1..2", "--max-slowdown", "0.2"], &["touch", "ran"], "such as 20%"),
        (&["--threads", "1..2", "--domain", "package-99"], &["touch", "ran"], "no energy domain"),
        (&["--threads", "1..2"], &[], "give a command after --"),
    ];
    for (options, command, expected) in cases {
        let output = place.tune(options, command).output().expect("eprof runs");
        let (_, stderr) = text(&output);
        assert!(!output.status.success() && stderr.contains(expected), "{options:?}: {stderr}");
        assert!(!place.path("ran").exists(), "{options:?}");
    }
}

#[test]
fn a_plan_runs_nothing_and_can_be_filled_in() {
    let place = Place::new();
    let mut plan = eprof();
    plan.args(["tune", "--threads", "4..44:4", "--freq", "1.2..2.2GHz", "--plan"]);
    let (stdout, _) = succeed(plan);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "threads,freq_GHz,seconds,joules");
    assert_eq!(lines.len(), 1 + 12);
    let fill = |line: &&str| {
        let fields: Vec<f64> = line.split(',').filter_map(|field| field.parse().ok()).collect();
        let [threads, freq] = fields[..] else { panic!("two values and two empty fields: {line}") };
        let time = 100.0 / threads / freq;
        format!("{threads},{freq},{time},{}\n", time * 50.0)
    };
    let filled: String = lines[1..].iter().map(fill).collect();
    fs::write(place.path("runs.csv"), format!("{}\n{filled}", lines[0])).expect("a file");
    let mut tune = eprof();
    tune.current_dir(place.folder.path()).args([
        "tune",
        "--runs-csv",
        "runs.csv",
        "--threads",
        "4..44:4",
        "--freq",
        "1.2..2.2GHz",
    ]);
    let (stdout, _) = succeed(tune);
    // More threads take as much less time as there are more of them: by the law, nothing is left to be done alone.
    let expected = ["amdahl(threads, serial=0)", "4 coefficients from 12 settings"];
    assert!(expected.iter().all(|text| stdout.contains(text)), "{stdout}");
    assert!(stdout.contains("of 121 settings on the Pareto front"), "{stdout}");
}

/// The kernels for real, on two threads; the energy is an estimate where there is no meter.
#[test]
fn openmp_kernels_are_tuned() {
    if !has_program("cc", &["--version"]) {
        return skip("there is no C compiler");
    }
    let place = Place::new();
    for (kernel, size) in [("stencil", "400"), ("transpose", "512"), ("stream", "500000")] {
        let program = place.path(kernel);
        let compiled = Command::new("cc")
            .args(["-O2", "-fopenmp", "-o"])
            .arg(&program)
            .arg(programs::source(&format!("{kernel}.c")))
            .status()
            .expect("cc runs");
        if !compiled.success() {
            return skip("the C compiler has no OpenMP");
        }
        let journal = format!("{kernel}.jsonl");
        let drawing = format!("{kernel}.svg");
        let (stdout, stderr) = succeed(place.tune(
            &[
                "--threads",
                "1..2",
                "--repeat",
                "3",
                "--journal",
                &journal,
                "--svg",
                &drawing,
                "--save-runs",
                "runs.csv",
            ],
            &[program.to_str().expect("text"), size, "10"],
        ));
        // Where runs differ much, as on a busy machine, more are made.
        let runs = stdout.split_once("2 settings, ").and_then(|(_, rest)| rest.split_once(" runs"));
        let runs: Option<u32> = runs.and_then(|(count, _)| count.parse().ok());
        assert!(runs.is_some_and(|runs| runs >= 6), "{stdout}");
        assert!(stdout.contains("recommended (least energy at no more than 10 % slow-down)"), "{stdout}");
        assert!(stderr.contains("run 6 of "), "{stderr}");
        assert!(fs::read_to_string(place.path(&drawing)).expect("a drawing").contains("class=\"chosen\""));
        assert!(
            fs::read_to_string(place.path("runs.csv")).expect("runs").starts_with("threads,seconds,joules\n")
        );
        println!("{kernel}:\n{stdout}");
    }
}

//! A program is charged with its own joules, however busy its neighbours are.

use eprof_testbed::{Started, eprof};
use serde_json::Value;

use super::attach::start;
use super::harness::{Folder, can_record, stderr};
use super::workload;

/// The balance of the only domain of a recording.
fn balance(folder: &Folder) -> Value {
    let output =
        eprof().args(["report", "--format", "json", "-i"]).arg(folder.data()).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["domains"][0]["balance"].clone()
}

/// Busy CPUs take 4 W each and nothing else does, so that the truth is 4 J for a second of CPU time.
#[test]
fn of_two_busy_programs_the_recorded_one_has_its_own_share() {
    if !can_record() {
        return;
    }
    let cpus = std::thread::available_parallelism().expect("known").get();
    let online = std::fs::read_to_string("/proc/stat").expect("readable");
    let online = online.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let neighbours: Vec<_> = (0..cpus).map(|_| start("spin:60000")).collect();
    let folder = Folder::new();
    let watts = format!("0:{}", 4 * online);
    let output = folder
        .record(["--meter", "estimate", "--watts", &watts, "--"])
        .args(workload::command("spin:1500"))
        .output();
    drop(neighbours);
    let output = output.expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let balance = balance(&folder);
    let joules = |row: &str| balance[row].as_f64().expect("joules");
    let (own, others) = (joules("attributed"), joules("other"));
    // The program's start and end take some of the CPU, too.
    assert!((5.7..=6.6).contains(&own), "6 J of its own, and not {own} J: {balance}");
    assert!(others > 3.0, "the neighbours had at least a CPU: {balance}");
}

/// What an event that is no clock would have counted of processes without samples nothing tells: the report says so.
#[test]
fn processes_too_short_for_a_sample_are_told_where_their_time_is_not_known() {
    if !can_record() {
        return;
    }
    let line = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done";
    let warned = |options: &[&str]| {
        let folder = Folder::new();
        let output = folder.record(options).args(["--", "sh", "-c", line]).output().expect("eprof runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let report = eprof().args(["report", "--format", "json", "-i"]).arg(folder.data()).output();
        let report: Value = serde_json::from_slice(&report.expect("eprof runs").stdout).expect("JSON");
        let warnings = report["warnings"].as_array().expect("warnings").clone();
        warnings.iter().any(|text| text.as_str().is_some_and(|text| text.contains("left no sample")))
    };
    assert!(warned(&["-e", "page-faults", "-c", "1000000000"]), "none of them has a sample");
    // A sample in ten seconds.
    let rare = ["-e", "cpu-clock", "-c", "10000000000"];
    assert!(!warned(&rare), "a clock is completed by the counted time");
    assert!(!warned(&[&rare[..], &["--user-only"]].concat()), "in one mode, too");
}

#[test]
fn the_programs_cpu_time_is_counted_and_not_guessed_from_samples() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // A sample in ten seconds: samples tell nothing of a program of half a second.
    let contents = folder.record_workload(&["-e", "cpu-clock", "-c", "10000000000"], "spin:500");
    let times = contents.own_times.last().expect("CPU times");
    let seconds: f64 = times.iter().map(|(_, time)| time.as_secs_f64()).sum();
    assert!((0.5..0.7).contains(&seconds), "half a second and a start, not {seconds} s");
    assert!(contents.own_times.windows(2).all(|pair| {
        let sum = |times: &[(u32, eprof::units::Nanoseconds)]| {
            times.iter().map(|(_, time)| time.as_nanos()).sum::<u64>()
        };
        sum(&pair[0]) <= sum(&pair[1])
    }));
}

/// Records what a shell runs, of whose CPU time most has no sample, and expects all of it to be charged to the program.
fn check_that_unsampled_time_is_charged(options: &[&str], script: &str) {
    let online = std::fs::read_to_string("/proc/stat").expect("readable");
    let online = online.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
    let folder = Folder::new();
    let watts = format!("0:{}", 4 * online);
    let output = folder
        .record(["--meter", "estimate", "--watts", &watts, "--neighbours=never"])
        .args(options)
        .args(["--", "sh", "-c", script])
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let contents = super::harness::Contents::read(&folder.data());
    let counted = contents.own_times.last().expect("CPU times");
    let truth = 4.0 * counted.iter().map(|(_, time)| time.as_secs_f64()).sum::<f64>();
    let sampled = 4.0 * 1e-9 * contents.period as f64;
    let balance = balance(&folder);
    let own = balance["attributed"].as_f64().expect("joules");
    // 20 ms are taken for what any program's last ticks miss.
    assert!(
        (own - truth).abs() < 0.05 * truth + 4.0 * 0.025,
        "{options:?}: {truth} J, of which samples tell {sampled}: {balance}"
    );
    // Usually 0.5; 0.83 was seen where other work kept all CPUs busy, and processes took longer.
    assert!(sampled < 0.9 * truth, "not what this test is of: samples tell {sampled} J of {truth}");
}

/// Thousands of processes do the work, each of which ends before a clock's first tick.
#[test]
fn short_processes_are_charged_to_the_program_that_starts_them() {
    if !can_record() {
        return;
    }
    let script = "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done";
    check_that_unsampled_time_is_charged(&[], script);
    check_that_unsampled_time_is_charged(&["--user-only"], script);
}

/// As users have it who may not sample the kernel: that is no other process.
#[test]
fn work_in_the_kernel_is_charged_to_the_program_though_it_is_not_sampled() {
    if !can_record() {
        return;
    }
    check_that_unsampled_time_is_charged(
        &["--user-only"],
        "dd if=/dev/urandom of=/dev/null bs=1M count=150 2>/dev/null",
    );
}

/// Of one process that ran before all is its own; of two it is not known whose, and that is told.
#[test]
fn work_in_the_kernel_of_a_running_process_is_charged_to_it() {
    if !can_record() {
        return;
    }
    let start = || {
        let mut reader = std::process::Command::new("dd");
        reader.args(["if=/dev/urandom", "of=/dev/null", "bs=1M"]).stderr(std::process::Stdio::null());
        Started::new(&mut reader)
    };
    let (first, second) = (start(), start());
    let report = |pids: &str| {
        let folder = Folder::new();
        let output = folder
            .record(["--meter", "estimate", "--watts", "0:8", "--neighbours=never", "--user-only"])
            .args(["-p", pids, "--duration", "1"])
            .output()
            .expect("eprof runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let mut command = eprof();
        command.args(["report", "--format", "json", "-i"]).arg(folder.data());
        let profile = command.output().expect("eprof runs");
        serde_json::from_slice::<Value>(&profile.stdout).expect("JSON")
    };
    let warned = |profile: &Value| {
        profile["warnings"].as_array().expect("a list").iter().any(|warning| {
            warning.as_str().is_some_and(|warning| warning.contains("only user mode was sampled"))
        })
    };
    let of_one = report(&first.id().to_string());
    let rows = of_one["rows"].as_array().expect("rows");
    let kernel = rows.iter().find(|row| row["name"] == "kernel mode, not sampled").expect("a row");
    let all: f64 = rows.iter().map(|row| row["self_joules"].as_f64().unwrap_or(0.0)).sum();
    assert!(kernel["self_joules"].as_f64().expect("joules") > 0.8 * all, "{rows:?}");
    assert!(!warned(&of_one), "{}", of_one["warnings"]);
    let of_both = report(&format!("{},{}", first.id(), second.id()));
    assert!(warned(&of_both), "whose the time was is not known: {}", of_both["warnings"]);
}

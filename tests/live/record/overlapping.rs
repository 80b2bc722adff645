//! Recordings of one process that overlap in time.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use eprof_testbed::{Started, eprof};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::attach;
use super::harness::{Folder, can_record, stderr, wait_until};

/// CPU time of a process, in seconds, to a hundredth.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields = stat.rsplit_once(')').expect("a name in parentheses").1.split_whitespace();
    let ticks: Vec<u64> = fields.skip(11).take(2).map(|field| field.parse().expect("ticks")).collect();
    (ticks[0] + ticks[1]) as f64 / 100.0
}

fn record(folder: &Folder, pid: u32, file: &str) -> Started {
    let mut command = folder.record(["-e", "cpu-clock", "--meter", "estimate", "--watts", "0:40"]);
    command.args(["-p", &pid.to_string(), "-o", file]);
    let started = Started::new(command.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("the recorder", || folder.path().join(file).exists());
    started
}

fn interrupt(mut recorder: Started) {
    kill(Pid::from_raw(recorder.id() as i32), Signal::SIGINT).expect("it runs");
    recorder.wait().expect("a child");
}

/// CPU time of all functions, in seconds; and what warnings say.
fn recorded(folder: &Path, files: &[&str]) -> (f64, String) {
    let mut command: Command = eprof();
    let output = command.args(["report", "--format", "json"]).args(files).current_dir(folder).output();
    let output = output.expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let count = report["events"][0]["count"].as_u64().expect("nanoseconds");
    (count as f64 / 1e9, report["warnings"].to_string())
}

#[test]
fn what_only_one_of_them_saw_is_in_their_sum() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let running = attach::start("spin:60000");
    let pid = running.id();
    let wait_for = |seconds: f64| {
        let from = cpu_seconds(pid);
        wait_until("its CPU time", || cpu_seconds(pid) >= from + seconds);
    };
    let first = record(&folder, pid, "first.data");
    wait_for(0.4);
    let before_second = cpu_seconds(pid);
    let second = record(&folder, pid, "second.data");
    let both = cpu_seconds(pid);
    wait_for(0.4);
    let until = cpu_seconds(pid);
    interrupt(first);
    let after_first = cpu_seconds(pid);
    wait_for(0.4);
    interrupt(second);
    let of = |files: &[&str]| recorded(folder.path(), files);
    let ((a, _), (b, _), (sum, warnings)) =
        (of(&["first.data"]), of(&["second.data"]), of(&["first.data", "second.data"]));
    // What both have is no more than was spent from before the second one began until the first had ended, and no less than half of
    // what was spent while both were surely there.
    let (most, least) = (after_first - before_second, (until - both) / 2.0);
    let twice = a + b - sum;
    assert!(
        (least..=most + 0.04).contains(&twice),
        "{a} s and {b} s are {sum} s: {least} to {most} s are of both"
    );
    assert!(warnings.contains("where the former did not record"), "{warnings}");
}

//! `eprof top`: what samples do not tell, of short processes and by events that are no time.

use std::process::Stdio;

use eprof_testbed::eprof;

use super::record::harness::{can_record, can_sample_all, stderr};

/// A program that starts others all the time, which end before their first sample.
const LOOP: &str = "timeout 4 sh -c 'while :; do /bin/true; done'";

#[test]
fn processes_that_leave_no_sample_are_a_row_and_no_other_processes() {
    if !can_record() {
        return;
    }
    let output = eprof()
        .args([
            "top",
            "-e",
            "cpu-clock",
            "--by",
            "process",
            "-n",
            "100000",
            "--iterations",
            "3",
            "--",
            "sh",
            "-c",
            LOOP,
        ])
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = || format!("{text}\n{}", stderr(&output));
    // Watts, and the process.
    let row = |line: &str| -> Option<(f64, String)> {
        let mut words = line.split_whitespace();
        let watts = words.next()?.parse().ok()?;
        let share = words.nth(2).filter(|word| word.ends_with('%'))?;
        let name = line.split_once(share)?.1.trim();
        Some((watts, name.to_owned()))
    };
    let pictures: Vec<Vec<(f64, String)>> =
        text.split("\n\n").map(|picture| picture.lines().filter_map(row).collect()).collect();
    let of_short = |rows: &Vec<(f64, String)>| {
        rows.iter().find(|(_, name)| name == "[short processes]").map(|(watts, _)| *watts)
    };
    let (mut seen, mut of_one) = (Vec::new(), 0.0_f64);
    for rows in &pictures {
        seen.extend(of_short(rows));
        let processes = rows.iter().filter(|(_, name)| name.starts_with("true ("));
        of_one = processes.map(|(watts, _)| *watts).fold(of_one, f64::max);
    }
    let most = seen.iter().copied().fold(0.0, f64::max);
    // One of hundreds had twenty times what it ran for, and those without a sample nothing.
    assert!(seen.len() >= 2 && of_one < most / 3.0, "{most} W of all, {of_one} W of one: {}", said());
}

#[test]
fn events_that_tell_no_time_have_no_watts() {
    if !can_sample_all() {
        return;
    }
    let output =
        eprof().args(["top", "-a", "-e", "page-faults", "--iterations", "2"]).output().expect("eprof runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("eprof top -e cpu-clock,page-faults"), "{said}");
    let both = ["top", "-a", "-e", "cpu-clock,page-faults", "--iterations", "1"];
    let output = eprof().args(both).output().expect("eprof runs");
    assert!(output.status.success(), "{output:?}");
}

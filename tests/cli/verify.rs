//! `eprof verify` where nothing can be measured.

use std::fs;
use std::process::{Command, Output};

use eprof_testbed::eprof;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// An estimate is no meter, on whatever machine this runs.
fn without_a_meter(arguments: &[&str]) -> Command {
    let mut command = eprof();
    command.args(["verify", "--meter", "estimate"]).args(arguments);
    command
}

#[test]
fn without_a_meter_it_says_what_would_help() {
    let home = tempfile::tempdir().expect("a folder");
    let output = without_a_meter(&[]).env("XDG_CONFIG_HOME", home.path()).output().expect("eprof runs");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("eprof cannot be verified on this machine"), "{said}");
    assert!(said.contains("no meter measures the CPUs") && said.contains("on the machine itself"), "{said}");
    assert!(fs::read_dir(home.path()).expect("a folder").next().is_none(), "nothing is kept");
}

#[test]
fn a_dry_run_tells_the_plan_and_the_obstacles() {
    let output = without_a_meter(&["--dry-run"]).output().expect("eprof runs");
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for part in ["quotients", "turns of 0.2 ms", "turns of 1 s", "no meter measures the CPUs"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
}

#[test]
fn bad_options_are_errors() {
    for (arguments, why) in [
        (&["--time", "1"][..], "5 seconds or more"),
        (&["--time", "soon"], "not a number of seconds"),
        (&["--work", "{"], "not a task of eprof verify"),
        (&["--format", "xml"], "possible values"),
    ] {
        let output = without_a_meter(arguments).output().expect("eprof runs");
        assert!(!output.status.success() && said(&output).contains(why), "{arguments:?}: {}", said(&output));
    }
}

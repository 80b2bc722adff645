//! What `eprof verify` found on a machine stands in reports of recordings made there.

use std::process::Output;

use eprof::power_model::folder::ModelFolder;
use eprof::verify::{self, VERIFICATION_FORMAT, Verdict, Verification};
use eprof_testbed::eprof;

use super::Folder;
use super::recording::{CPU_IDENTITY, Recorded};

const LINE: &str = "verified on this machine: mean 1.2 %, worst 2.9 %, 2026-11-22\n";

fn keep(home: &Folder, cpu_identity: &str) {
    let verdict =
        Verdict { mean_error: 0.012, worst_error: 0.0294, held: 19, rows: 20, ..Verdict::default() };
    let found = Verification {
        format: VERIFICATION_FORMAT,
        eprof_version: "0.1.0".to_owned(),
        cpu_identity: cpu_identity.to_owned(),
        cpu_model: String::new(),
        created_unix: 1_795_391_999,
        meters: Vec::new(),
        idle_watts: 10.0,
        kernels: Vec::new(),
        comparisons: Vec::new(),
        verdict,
        notes: Vec::new(),
    };
    verify::save(&ModelFolder::at(home.path().join("eprof/models")), &found).expect("kept");
}

fn report(home: &Folder, options: &[&str]) -> String {
    let mut command = eprof();
    command.arg("report").args(options).current_dir(home.path()).env("XDG_CONFIG_HOME", home.path());
    let Output { status, stdout, stderr } = command.output().expect("eprof runs");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("text")
}

#[test]
fn a_report_quotes_what_was_found_of_its_cpu() {
    let home = Folder::with(&Recorded::default());
    assert!(!report(&home, &[]).contains("verified"));
    keep(&home, "another-cpu");
    assert!(!report(&home, &[]).contains("verified"));
    keep(&home, CPU_IDENTITY);
    let table = report(&home, &["--width", "100"]);
    let (balance, _) = table.split_once(LINE).unwrap_or_else(|| panic!("not quoted: {table}"));
    assert!(balance.trim_end().ends_with("exactly") || balance.contains("lost = measured"), "{table}");
    let json: serde_json::Value = serde_json::from_str(&report(&home, &["--format", "json"])).expect("JSON");
    assert_eq!(json["verified"]["date"], "2026-11-22");
    assert_eq!(json["verified"]["mean_error"], 0.012);
}

#[test]
fn what_was_not_tried_is_not_vouched_for() {
    // Joules divided in another way than was verified.
    let home = Folder::with(&Recorded::default());
    keep(&home, CPU_IDENTITY);
    assert!(!report(&home, &["--model", "time"]).contains("verified"));
    // Joules that no meter counted.
    let home = Folder::with(&Recorded { watts_error: Some(0.6), ..Recorded::default() });
    keep(&home, CPU_IDENTITY);
    assert!(!report(&home, &[]).contains("verified"));
}

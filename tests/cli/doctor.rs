//! `eprof doctor` on the machines of `fixtures/machines`: what it prints is kept beside each of them.
//!
//! `EPROF_BLESS=1` writes what it prints now; read it before it is committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../../src/machine/fixture.rs"]
mod fixture;

use fixture::FixtureMachine;

fn doctor(machine: &FixtureMachine, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
    command.arg("doctor").arg("--root").arg(machine.path()).args(options);
    command.output().expect("eprof can be started")
}

fn machines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/machines");
    let entries = fs::read_dir(folder).expect("the folder of machines").flatten().map(|entry| entry.path());
    let mut machines: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "machine")).collect();
    machines.sort();
    machines
}

#[test]
fn every_machine_is_described_as_before() {
    let machines = machines();
    assert!(machines.len() >= 17, "only {} machines", machines.len());
    let mut differ = Vec::new();
    for path in machines {
        let machine = FixtureMachine::load(&path);
        let output = doctor(&machine, &[]);
        let text = String::from_utf8(output.stdout).expect("text");
        let text = text.replace(env!("CARGO_BIN_EXE_eprof"), "/usr/bin/eprof");
        let errors = String::from_utf8_lossy(&output.stderr);
        let status = output.status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let text = format!("{text}{errors}\nexit status {status}\n");
        let golden = path.with_extension("doctor");
        if std::env::var_os("EPROF_BLESS").is_some() {
            fs::write(&golden, text).expect("the folder can be written");
        } else if fs::read_to_string(&golden).unwrap_or_default() != text {
            println!("--- {}\n{text}", golden.display());
            differ.push(golden);
        }
    }
    assert!(differ.is_empty(), "see above, or EPROF_BLESS=1 to accept: {differ:?}");
}

#[test]
fn json_says_the_same_to_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/machines");
    let machine = FixtureMachine::load(&folder.join("sandybridge-ep-2s.machine"));
    let output = doctor(&machine, &["--json"]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["verdict"], "measured");
    assert_eq!(told["machine"]["packages"], 2);
    assert_eq!(told["machine"]["microarchitecture"], "sandybridge-ep");
    assert_eq!(told["events"][2]["name"], "RESOURCE_STALLS.RS");
    assert_eq!(told["events"][2]["encoding"], "cpu/config=0x4a2/");
    assert_eq!(told["domains"][0]["name"], "package-0");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn lines_fit_into_eighty_columns_but_for_commands() {
    for path in machines() {
        let machine = FixtureMachine::load(&path);
        let output = doctor(&machine, &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        let long = text.lines().find(|line| !line.starts_with("        ") && line.chars().count() > 80);
        assert_eq!(long, None, "{}", path.display());
    }
}

#[test]
fn nonsense_is_refused() {
    let status = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
        command.arg("doctor").args(options).output().expect("eprof can be started").status.code()
    };
    assert_eq!(status(&["--watch", "-1"]), Some(2));
    assert_eq!(status(&["--root", "/nonexistent"]), Some(1));
}

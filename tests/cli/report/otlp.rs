//! `eprof export --format otlp`: what OpenTelemetry's own decoder finds in it is what the report says.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use eprof_testbed::{eprof, has_program, skip_quietly};
use serde_json::Value;

use super::recording::Recorded;
use super::{Folder, number};

const DECODER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/report/otlp.py");

/// What a decoder, which got it by HTTP, finds in the export of these recordings; `None` where there is no decoder.
fn received(folder: &Path, arguments: &[&str]) -> Option<Value> {
    let module = "import opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2";
    if !has_program("python3", &["-c", module]) {
        skip_quietly(
            "python3 has no opentelemetry-proto (pip install opentelemetry-proto): nobody decodes OTLP",
        );
        return None;
    }
    let file = folder.join("energy.otlp");
    let status =
        eprof().args(["export", "--format", "otlp", "--no-inline", "-o"]).arg(&file).args(arguments).status();
    assert!(status.expect("eprof runs").success());
    let output = Command::new("python3").arg(DECODER).arg(&file).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn report(arguments: &[&str]) -> Value {
    let mut eprof = eprof();
    eprof.args(["report", "--format", "json", "--no-inline"]).args(arguments);
    serde_json::from_slice(&eprof.output().expect("eprof runs").stdout).expect("JSON")
}

/// Nanojoules by function are the report's joules, and those of each domain what its balance says.
#[track_caller]
fn holds_all_joules(recording: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(received) = received(folder.path(), &[recording]) else { return };
    let profiles = &received[0]["profiles"];
    let report = report(&[recording]);
    let energy = &profiles["energy"];
    assert_eq!(energy["unit"], "nanojoules");
    let functions: BTreeMap<&String, f64> = energy["functions"]
        .as_object()
        .expect("functions")
        .iter()
        .map(|(name, nano)| (name, number(nano) * 1e-9))
        .collect();
    let mut of_report: BTreeMap<String, f64> = BTreeMap::new();
    for row in report["rows"].as_array().expect("rows") {
        *of_report.entry(row["name"].as_str().expect("a name").to_owned()).or_default() +=
            number(&row["self_joules"]);
    }
    let all: f64 = functions.values().sum();
    let attributed = number(&report["balance"]["attributed"]);
    assert!((all - attributed).abs() <= 1e-9 * (1.0 + attributed), "{all} of {attributed} J");
    for (name, joules) in &of_report {
        // Each sample is rounded by a nanojoule at most, and there are some thousands.
        let found = functions.get(name).copied().unwrap_or_default();
        assert!((found - joules).abs() <= 1e-5, "{recording} {name}: {found} of {joules} J");
    }
    assert!(functions.keys().all(|name| of_report.contains_key(*name)), "{recording}: functions of its own");
    let domains = report["domains"].as_array().expect("domains");
    for domain in domains.iter().filter(|_| domains.len() > 1) {
        let name = domain["name"].as_str().expect("a name");
        let functions = &profiles[&format!("energy of {name}")]["functions"];
        let sum: f64 = functions.as_object().expect("functions").values().map(number).sum::<f64>() * 1e-9;
        let attributed = number(&domain["balance"]["attributed"]);
        assert!((sum - attributed).abs() <= 1e-8 * (1.0 + attributed), "{name}: {sum} of {attributed} J");
    }
}

#[test]
fn measured_joules_arrive() {
    for name in ["guest-program-only.data", "guest-neighbours.data"] {
        holds_all_joules(&format!("{}/fixtures/recordings/{name}", env!("CARGO_MANIFEST_DIR")));
    }
}

#[test]
fn estimated_joules_are_said_to_be_and_have_time_and_threads() {
    let recorded = Recorded { watts_error: Some(0.3), ..Recorded::default() };
    let folder = Folder::with(&recorded);
    let recording = folder.path().join("eprof.data");
    let Some(received) = received(folder.path(), &[recording.to_str().expect("a path")]) else { return };
    let [only] = &received.as_array().expect("recordings")[..] else { panic!("one recording") };
    assert_eq!(only["attributes"]["eprof.energy.method"], "estimated");
    assert_eq!(only["attributes"]["service.name"], "app");
    assert_eq!(only["attributes"]["os.type"], "linux");
    let (energy, cpu) = (&only["profiles"]["energy"], &only["profiles"]["cpu"]);
    assert_eq!((&energy["unit"], &cpu["unit"]), (&Value::from("nanojoules"), &Value::from("nanoseconds")));
    // One CPU was busy for a second, at 10 W.
    assert!((number(&energy["threads"]["app"]) * 1e-9 - 10.0).abs() < 1e-6, "{energy}");
    assert!((number(&cpu["threads"]["app"]) * 1e-9 - 1.0).abs() < 0.05, "{cpu}");
    assert!((number(&energy["nanoseconds"]) * 1e-9 - 1.0).abs() < 0.05, "{energy}");
}

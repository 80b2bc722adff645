//! What the Firefox Profiler's own code makes of an export: Mozilla publishes it as a program for terminals, too.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use eprof_testbed::{has_program, skip_quietly};
use serde_json::Value;

use super::super::number;
use super::{PWH, fixture, output, report, rows};

/// A server of it has read the profile by then, or never will.
const PATIENCE: Duration = Duration::from_secs(180);

/// The profiler, with one profile loaded.
struct Profiler {
    script: PathBuf,
    /// Where its server is found.
    folder: tempfile::TempDir,
}

impl Profiler {
    fn load(profile: &[u8]) -> Option<Self> {
        if !has_program("node", &["--version"]) {
            skip_quietly("node is not installed: the Firefox Profiler's own code reads no export");
            return None;
        }
        let named = env::var_os("EPROF_PROFILER_CLI").map(PathBuf::from);
        let script = named.or_else(|| {
            let folder = Command::new("npm").args(["root", "-g"]).output().ok()?.stdout;
            let folder = String::from_utf8(folder).ok()?;
            Some(Path::new(folder.trim()).join("@firefox-devtools/profiler-cli/dist/profiler-cli.js"))
        });
        let Some(script) = script.filter(|file| file.is_file()) else {
            skip_quietly(
                "the Firefox Profiler's own code reads no export: npm install -g @firefox-devtools/profiler-cli, or \
                 EPROF_PROFILER_CLI=profiler-cli.js",
            );
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("profile.json.gz");
        std::fs::write(&file, profile).expect("written");
        let profiler = Self { script, folder };
        // On a busy machine it says that its server is not ready yet.
        let said = profiler.run(&["load", file.to_str().expect("a path")]).err();
        let began = Instant::now();
        while let Err(why) = profiler.run(&["counter", "list", "--json"]) {
            assert!(began.elapsed() < PATIENCE, "{why}; when it was loaded: {said:?}");
            sleep(Duration::from_millis(200));
        }
        Some(profiler)
    }

    fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let mut command = Command::new("node");
        command.arg(&self.script).args(arguments).env("PROFILER_CLI_SESSION_DIR", self.folder.path());
        let output = command.env("PROFILER_CLI_NO_SYMBOLICATE", "1").output().expect("node runs");
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        let answer = self.run(&[arguments, &["--json"]].concat()).expect("an answer");
        serde_json::from_slice(&answer).expect("JSON")
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        let _ = self.run(&["stop"]);
    }
}

#[test]
fn the_profiler_itself_sees_all_joules() {
    let recording = fixture("guest-neighbours.data");
    let path = recording.to_str().expect("a path");
    let exported = output(&["export", path, "--format", "firefox", "--no-inline", "-o", "-"]);
    let Some(profiler) = Profiler::load(&exported) else { return };
    let report = report(&recording, &["--no-inline"]);
    // What a track says of all of the time is what the meter counted.
    let list = profiler.ask(&["counter", "list"]);
    let (counters, domains) = (rows(&list["counters"]), rows(&report["domains"]));
    assert_eq!(counters.len(), domains.len());
    for (counter, domain) in counters.iter().zip(domains) {
        assert_eq!((&counter["category"], &counter["unit"]), (&Value::from("power"), &Value::from("pWh")));
        let seen = number(&counter["stats"][0]["value"]) / PWH;
        let measured = number(&domain["joules"]);
        assert!((seen - measured).abs() < 1e-6 * measured, "{seen} of {measured} J: {counter}");
    }
    // Functions of all threads, in microjoules.
    let mut seen: BTreeMap<String, f64> = BTreeMap::new();
    for thread in rows(&profiler.ask(&["thread", "list"])["threads"]) {
        let handle = thread["threadHandle"].as_str().expect("a name");
        let of_thread =
            profiler.ask(&["thread", "functions", "--thread", handle, "--limit", "0", "--include-idle"]);
        for function in rows(&of_thread["functions"]) {
            *seen.entry(function["name"].as_str().expect("a name").to_owned()).or_default() +=
                number(&function["selfSamples"]);
        }
    }
    let mut reported: BTreeMap<String, f64> = BTreeMap::new();
    for row in rows(&report["rows"]) {
        *reported.entry(row["name"].as_str().expect("a name").to_owned()).or_default() +=
            number(&row["self_joules"]) * 1e6;
    }
    let all: f64 = reported.values().sum();
    assert!(all > 1e6);
    let sum: f64 = seen.values().sum();
    assert!((sum - all).abs() < 1e-5 * all, "{sum} of {all} microjoules");
    for (name, joules) in reported.iter().filter(|(_, joules)| **joules > 0.01 * all) {
        let found = seen.get(name).copied().unwrap_or_default();
        // Each sample is rounded, and what is lost by it goes to the next of the thread.
        assert!(
            (found - joules).abs() < 0.001 * joules + 0.0001 * all,
            "{name}: {found} of {joules} microjoules"
        );
    }
}

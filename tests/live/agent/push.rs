//! `eprof agent --push` and `--otlp`: receivers get each window, whatever happens to them and to the agent.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use eprof_testbed::clickhouse::ClickHouse;
use eprof_testbed::receiver::{Answer, Certificate, Receiver, Request};
use eprof_testbed::{eprof, has_program, skip_quietly};
use flate2::read::GzDecoder;
use nix::sys::signal::Signal;

use super::harness::{Agent, files, joules, rows, whole};
use crate::record::harness::{Folder, can_sample_all, wait_until};

const SECRET: &str = "hunter2-Zx9";
const ONCE: &str =
    "(recording, push) GLOBAL IN (SELECT recording, max(push) FROM energy.pushes GROUP BY recording)";
const DECODER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live/agent/otlp.py");

/// Whether a window has joules that meters or an estimate gave to its functions.
fn measured(tables: &Path) -> f64 {
    rows(tables, "balance").iter().map(|row| joules(row, "measured")).sum()
}

fn of_functions(tables: &Path) -> f64 {
    rows(tables, "balance").iter().map(|row| joules(row, "functions")).sum()
}

#[test]
fn a_database_that_goes_and_comes_has_each_window_once() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let Some(mut server) = ClickHouse::start(folder.path(), 1).map(|mut servers| servers.remove(0)) else {
        return;
    };
    server.ask("CREATE DATABASE energy");
    let (tables, url) = (folder.path().join("tables"), format!("clickhouse://{}/energy", server.address()));
    let agent = Agent::start(&tables, &["--push", &url]);
    let sent = |agent: &Agent| agent.counter("eprof_agent_sent_windows_total{receiver=\"clickhouse\"}");
    wait_until("windows there", || sent(&agent) >= 2.0);
    server.kill();
    let written = agent.counter("eprof_agent_windows_written_total");
    agent.wait_for("windows wait for");
    // Recording goes on.
    agent.wait_for_windows(written + 3.0);
    server.run();
    agent.wait_for("are sent to clickhouse://");
    let before = sent(&agent);
    wait_until("more windows there", || sent(&agent) >= before + 1.0);
    // The agent is killed, too; the next one sends what it has not.
    agent.end(Signal::SIGKILL);
    let agent = Agent::start(&tables, &["--push", &url]);
    agent.wait_for_windows(1.0);
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    let number = |statement: &str| -> f64 { server.value(statement).parse().expect("a number") };
    let windows = files(&tables, "balance").len();
    assert_eq!(number("SELECT uniqExact(recording) FROM energy.pushes") as usize, windows, "{said}");
    for (statement, expected) in [
        (format!("SELECT sum(measured) FROM energy.balance WHERE {ONCE}"), measured(&tables)),
        (format!("SELECT sum(joules) FROM energy.samples WHERE {ONCE}"), of_functions(&tables)),
        (format!("SELECT count() FROM energy.samples WHERE {ONCE}"), rows(&tables, "samples").len() as f64),
    ] {
        let found = number(&statement);
        assert!((found - expected).abs() <= 1e-9 * expected, "{statement}: {found} and {expected}");
    }
}

/// What a collector has got: bodies of requests that it took.
fn taken(requests: &[Request], is_taken: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for (_, request) in requests.iter().enumerate().filter(|(at, _)| is_taken(*at)) {
        assert_eq!(request.path, "/v1development/profiles");
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        assert_eq!(request.headers["content-encoding"], "gzip");
        assert_eq!(request.headers["content-length"], request.body.len().to_string());
        assert!(!request.headers.contains_key("transfer-encoding"));
        let mut body = Vec::new();
        std::io::Read::read_to_end(&mut GzDecoder::new(&request.body[..]), &mut body).expect("gzip");
        bodies.push(body);
    }
    bodies
}

/// By window: what OpenTelemetry's own decoder finds. `None` where there is none.
fn decoded(folder: &Path, bodies: &[Vec<u8>]) -> Option<Vec<serde_json::Value>> {
    let module = "import opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2";
    if !has_program("python3", &["-c", module]) {
        skip_quietly(
            "python3 has no opentelemetry-proto (pip install opentelemetry-proto): nobody decodes OTLP",
        );
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(DECODER);
    for (number, body) in bodies.iter().enumerate() {
        let path = folder.join(format!("{number}.otlp"));
        fs::write(&path, body).expect("written");
        command.arg(path);
    }
    let output = command.output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn a_collector_gets_each_window_though_it_fails_and_hangs_and_is_killed() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let (tables, token) = (folder.path().join("tables"), folder.path().join("token"));
    fs::write(&token, SECRET).expect("written");
    let took: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (list, mut requests) = (Arc::clone(&took), 0);
    let mut asked_to_wait: Option<Instant> = None;
    let mut answer = move |_: &Request| {
        requests += 1;
        // Whoever is asked to wait does.
        if let Some(asked) = asked_to_wait.take() {
            assert!(asked.elapsed() >= Duration::from_secs(3), "{:?}", asked.elapsed());
        }
        match requests {
            2 => Answer::status(503),
            3 => {
                asked_to_wait = Some(Instant::now());
                Answer::Status(429, vec![("Retry-After", "3".to_owned())], b"slowly".to_vec())
            }
            4 => Answer::Cut,
            _ => {
                list.lock().expect("no panic").push(requests - 1);
                Answer::status(200)
            }
        }
    };
    let receiver = Receiver::start(move |request| answer(request));
    let address = receiver.address();
    let url = format!("http://{address}");
    let arguments =
        ["--otlp", &url, "--otlp-token-file", token.to_str().expect("UTF-8"), "--label", "rack=7"];
    let agent = Agent::start(&tables, &arguments);
    let sent = |agent: &Agent| agent.counter("eprof_agent_sent_windows_total{receiver=\"otlp\"}");
    wait_until("windows sent", || sent(&agent) >= 4.0);
    assert!(agent.counter("eprof_agent_send_failures_total{receiver=\"otlp\"}") >= 3.0);
    // The collector is gone for a while, and then one is there that never answers, which holds nobody up.
    let mut bodies = {
        // What it answers over a connection that is open belongs to it, too.
        let requests = receiver.end();
        assert!(
            requests.iter().all(|request| request.headers["authorization"] == format!("Bearer {SECRET}"))
        );
        let took = took.lock().expect("no panic");
        taken(&requests, |at| took.contains(&at))
    };
    let written = agent.counter("eprof_agent_windows_written_total");
    agent.wait_for_windows(written + 2.0);
    let hangs = Receiver::start_at(address, None, |_| Answer::Hang(Duration::from_secs(600)));
    let written = agent.counter("eprof_agent_windows_written_total");
    agent.wait_for_windows(written + 3.0);
    let line = fs::read(format!("/proc/{}/cmdline", agent.id())).expect("read");
    assert!(!String::from_utf8_lossy(&line).contains(SECRET));
    let (_, said) = agent.end(Signal::SIGKILL);
    assert!(!said.contains(SECRET), "{said}");
    drop(hangs);
    let receiver = Receiver::start_at(address, None, |_| Answer::status(200));
    let agent = Agent::start(&tables, &arguments);
    agent.wait_for_windows(1.0);
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    bodies.extend(taken(&receiver.requests(), |_| true));
    assert!(fs::read_dir(tables.join(".otlp")).expect("a folder").next().is_none(), "nothing waits");
    for entry in fs::read_dir(&tables).expect("a folder").map(|entry| entry.expect("readable").path()) {
        assert!(!entry.is_file() || !fs::read_to_string(&entry).expect("text").contains(SECRET));
    }
    // A window is put there before its tables are written, so that an agent that is killed in between leaves one more.
    let windows = rows(&tables, "balance");
    let times: Vec<i64> = windows.iter().map(|row| whole(row, "window_start")).collect();
    let Some(decoded) = decoded(folder.path(), &bodies) else { return };
    let mut of_windows: BTreeMap<i64, f64> = BTreeMap::new();
    let mut ids = BTreeMap::new();
    for window in &decoded {
        assert_eq!(window["attributes"]["eprof.energy.method"], "estimated");
        assert_eq!(window["attributes"]["eprof.label.rack"], "7");
        assert_eq!(window["attributes"]["os.type"], "linux");
        let time = window["time_unix_nano"].as_i64().expect("a time") / 1000;
        // One that was sent twice is one, and its id tells.
        let id = window["id"].as_str().expect("an id").to_owned();
        assert_eq!(id.len(), 32);
        assert_eq!(*ids.entry(id).or_insert(time), time);
        of_windows.insert(time, window["nanojoules"].as_f64().expect("a number") * 1e-9);
    }
    for row in &windows {
        let (time, expected) = (whole(row, "window_start"), joules(row, "functions"));
        let found =
            of_windows.get(&time).copied().unwrap_or_else(|| panic!("{time} of {times:?} is in no profile"));
        assert!((found - expected).abs() <= 1e-4 * (1.0 + expected), "{time}: {found} and {expected} J");
    }
    assert!(of_windows.len() <= windows.len() + 1 && ids.len() == of_windows.len());
}

#[test]
fn what_waits_is_bounded_and_what_goes_is_counted() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let tables = folder.path().join("tables");
    // Nobody listens there.
    let arguments =
        ["--otlp", "http://127.0.0.1:9", "--otlp-spool", "1K", "--push", "clickhouse://127.0.0.1:9/energy"];
    let agent = Agent::start(&tables, &[&arguments[..], &["--keep", "2s"]].concat());
    wait_until("windows given up", || {
        agent.counter("eprof_agent_unsent_windows_total{receiver=\"otlp\"}") >= 2.0
    });
    wait_until("windows removed", || agent.counter("eprof_agent_windows_removed_total") >= 2.0);
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("--otlp-spool"), "{said}");
    let of_database = "for clickhouse://127.0.0.1:9/energy";
    let later = format!("windows wait {of_database}, they are sent later");
    assert_eq!(said.matches(&later).count(), 1, "said once: {said}");
    // The last window, at least, waits at the end.
    let command = format!("or by: eprof push {} clickhouse://127.0.0.1:9/energy", tables.display());
    assert!(said.contains(&format!("{of_database}: sent when the agent starts again, {command}")), "{said}");
}

#[test]
fn tokens_and_certificates_are_checked_before_anything_is_sent() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let (tables, token) = (folder.path().join("tables"), folder.path().join("token"));
    let refused = |arguments: &[&str]| {
        let mut command = eprof();
        command.args(["agent", "--listen", "none", "--window", "1s", "-o"]).arg(&tables).args(arguments);
        let output = command.stdin(Stdio::null()).output().expect("eprof runs");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(!said.contains(SECRET), "{said}");
        said
    };
    let file = token.to_str().expect("UTF-8");
    let missing = refused(&["--otlp", "http://127.0.0.1:9", "--otlp-token-file", file]);
    assert!(missing.contains("cannot read") && missing.contains("token"), "{missing}");
    fs::write(&token, SECRET).expect("written");
    let open = refused(&["--otlp", "http://192.0.2.1:4318", "--otlp-token-file", file]);
    assert!(open.contains("--allow-plain-http"), "{open}");
    let useless = refused(&["--push-password-file", file]);
    assert!(useless.contains("--push-password-file"), "{useless}");
    let in_url = refused(&["--push", &format!("clickhouse://a:{SECRET}@127.0.0.1/e")]);
    assert!(in_url.contains("list of processes"), "{in_url}");
    let no_authority = refused(&["--otlp", "https://localhost:9", "--ca", file]);
    assert!(no_authority.contains("BEGIN CERTIFICATE"), "{no_authority}");
    // By TLS, whose authority is first not the one that is named.
    let Some(ours) = Certificate::make(&folder.path().join("ours"), "DNS:localhost") else { return };
    let Some(others) = Certificate::make(&folder.path().join("others"), "DNS:localhost") else { return };
    let receiver = Receiver::start_at(([127, 0, 0, 1], 0).into(), Some(&ours), |_| Answer::status(200));
    let url = format!("https://localhost:{}", receiver.address().port());
    let start = |certificate: &Certificate| {
        let ca = certificate.authority.to_str().expect("UTF-8");
        Agent::start(&tables, &["--otlp", &url, "--otlp-token-file", file, "--ca", ca])
    };
    let agent = start(&others);
    agent.wait_for("--ca FILE");
    agent.end(Signal::SIGTERM);
    assert!(receiver.requests().is_empty(), "nothing was sent");
    let agent = start(&ours);
    wait_until("a window sent", || agent.counter("eprof_agent_sent_windows_total{receiver=\"otlp\"}") >= 1.0);
    agent.end(Signal::SIGTERM);
    assert_eq!(receiver.requests()[0].headers["authorization"], format!("Bearer {SECRET}"));
}

/// Whoever speaks with receivers has no rights, nor do files that only others may read reach them.
#[test]
fn the_threads_that_send_have_no_rights() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let tables = folder.path().join("tables");
    let receiver = Receiver::start(|_| Answer::status(200));
    let agent = Agent::start(&tables, &["--otlp", &format!("http://{}", receiver.address())]);
    agent.wait_for_windows(1.0);
    let look = || {
        let mut found = 0;
        for entry in fs::read_dir(format!("/proc/{}/task", agent.id())).expect("threads") {
            let status =
                fs::read_to_string(entry.expect("readable").path().join("status")).unwrap_or_default();
            if status.starts_with("Name:\teprof-otlp") {
                found += 1;
                for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                    assert!(status.contains(&format!("{set}:\t0000000000000000\n")), "{status}");
                }
            }
        }
        found
    };
    // While a receiver's address is asked for, that is done by a second thread, which has the name and the rights of the first.
    wait_until("one sending thread alone", || look() == 1);
    agent.end(Signal::SIGTERM);
}

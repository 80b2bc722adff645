//! What counts as an acknowledgement, whoever answers: windows that nobody has are sent once more.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use eprof_testbed::receiver::{Answer, Receiver, Request};

use super::{push, push_all, said, tables, url};

/// Answers as ClickHouse does whose database has no tables yet; `to_rows` answers INSERTs.
fn database(to_rows: impl Fn() -> Answer + Send + 'static) -> Receiver {
    Receiver::start(move |request: &Request| {
        if request.path.contains("INSERT") {
            return to_rows();
        }
        let is_of_databases = String::from_utf8_lossy(&request.body).contains("system.databases");
        Answer::of_clickhouse(if is_of_databases { "energy\n" } else { "" })
    })
}

/// What must not count, and what is said of it.
fn no_acknowledgements() -> Vec<(Answer, &'static str)> {
    const NAME: (&str, &str) = ("X-ClickHouse-Server-Display-Name", "test");
    let answer = |headers: &[(&'static str, &str)], body: &str| {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Answer::Status(200, headers, body.into())
    };
    vec![
        (answer(&[("Content-Type", "text/html")], "<html>Log in to go on</html>"), "is not ClickHouse"),
        (answer(&[], ""), "is not ClickHouse"),
        (answer(&[NAME, ("X-ClickHouse-Exception-Code", "209")], ""), "Code: 209"),
        (answer(&[NAME], "Code: 60. DB::Exception: Table energy.samples does not exist."), "Code: 60"),
        (answer(&[NAME], "stored\n"), "stored"),
    ]
}

/// Windows that are remembered as acknowledged.
fn remembered(tables: &Path) -> usize {
    let lists = fs::read_dir(tables).expect("a folder").map(|entry| entry.expect("readable").path());
    let lists = lists.filter(|path| path.is_file());
    let lines =
        |path| fs::read_to_string(path).expect("text").lines().filter(|line| !line.starts_with('#')).count();
    lists.map(lines).sum()
}

#[test]
fn an_insert_is_acknowledged_by_clickhouse_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 2, &["a"]);
    for (answer, why) in no_acknowledgements() {
        let server = database(move || answer.clone());
        let output = push(&tables, &url(server.address()), &["--retry-for", "0s"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why) && said.contains(&server.address().to_string()), "{said}");
        assert_eq!(remembered(&tables), 0, "{said}");
        let left = fs::read_dir(&tables).expect("a folder").map(|entry| entry.expect("readable").path());
        assert_eq!(left.filter(|path| path.is_file()).count(), 0, "no list of nothing is left");
    }
    let server = database(|| Answer::of_clickhouse(""));
    let said = push_all(&tables, &url(server.address()), &[]);
    assert!(said.contains("2 windows"), "{said}");
    assert_eq!(remembered(&tables), 2);
}

#[test]
fn questions_are_answered_by_clickhouse_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 1, &["a"]);
    for (answer, why) in no_acknowledgements() {
        if why == "stored" {
            continue;
        }
        let server = Receiver::start(move |_| answer.clone());
        let output = push(&tables, &url(server.address()), &["--retry-for", "0s"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why) && said.contains(&server.address().to_string()), "{said}");
        assert_eq!(server.requests().len(), 1, "nothing more is sent there");
    }
}

#[test]
fn a_server_that_accepts_and_is_silent_is_waited_for_as_long_as_was_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 1, &["a"]);
    let (silence, started) = (Duration::from_secs(90), Instant::now());
    let server = Receiver::start(move |_| Answer::Hang(silence));
    let output = push(&tables, &url(server.address()), &["--retry-for", "1s"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("has not answered for 1 s"), "{said}");
    assert!(started.elapsed() < silence, "{:?}", started.elapsed());
}

#[test]
fn a_port_where_nobody_listens_is_told_with_the_usual_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 1, &["a"]);
    let said = said(&push(&tables, "clickhouse://127.0.0.1:9/energy", &["--retry-for", "0s"]));
    assert!(said.contains("start the server") && said.contains("8123"), "{said}");
    let elsewhere = Receiver::start(|_| Answer::status(404));
    let said = super::said(&push(&tables, &url(elsewhere.address()), &["--retry-for", "0s"]));
    assert!(said.contains("404") && said.contains("8123"), "{said}");
}

#[test]
fn a_password_that_is_not_there_is_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 1, &["a"]);
    let arguments = ["--password-file", "nosuch"];
    let said = said(&push(&tables, "clickhouse://127.0.0.1:9/energy", &arguments));
    assert!(said.contains("cannot read nosuch"), "{said}");
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

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
        let question = String::from_utf8_lossy(&request.body);
        // It has what it acknowledged.
        if let Some((_, had)) = question.split_once("WHERE recording IN (") {
            return Answer::of_clickhouse(had.trim_end_matches(')').replace(", ", "\n"));
        }
        let is_of_databases = question.contains("system.databases");
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

/// Answers the first request by 503 and `Retry-After`, and then as a database.
fn busy_once(seconds: &'static str) -> Receiver {
    let mut asked = false;
    Receiver::start(move |request: &Request| {
        if !std::mem::replace(&mut asked, true) {
            return Answer::Status(503, vec![("Retry-After", seconds.to_owned())], b"busy".to_vec());
        }
        let question = String::from_utf8_lossy(&request.body);
        // It has what it acknowledged.
        if let Some((_, had)) = question.split_once("WHERE recording IN (") {
            return Answer::of_clickhouse(had.trim_end_matches(')').replace(", ", "\n"));
        }
        let is_of_databases = question.contains("system.databases");
        Answer::of_clickhouse(if is_of_databases { "energy\n" } else { "" })
    })
}

#[test]
fn a_server_that_asks_to_be_left_alone_is_and_what_it_asked_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 2, &["a"]);
    let (started, server) = (Instant::now(), busy_once("900"));
    let output = push(&tables, &url(server.address()), &["--retry-for", "5s"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(started.elapsed() < Duration::from_secs(300), "nobody waits for what is too long");
    assert!(
        said.contains("503") && said.contains("after 900 s") && said.contains("--retry-for 5 s"),
        "{said}"
    );
    let (started, server) = (Instant::now(), busy_once("2"));
    let said = push_all(&tables, &url(server.address()), &["--retry-for", "5m"]);
    assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(said.contains("trying again in 2 s, as it asks") && said.contains("2 sent"), "{said}");
}

#[test]
fn what_is_found_was_sent_or_there_or_is_broken_or_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = tables(folder.path(), 5, &["a"]);
    let server = database(|| Answer::of_clickhouse(""));
    let said_of = |url: &str| said(&push(&tables, url, &["--retry-for", "0s"]));
    assert!(said_of(&url(server.address())).contains("5 windows found: 5 sent"));
    let mut entries = fs::read_dir(&tables).expect("a folder").map(|entry| entry.expect("readable").path());
    let list = entries.find(|path| path.is_file()).expect("what is remembered");
    // One is there, one cannot be read, one is not whole, and two wait.
    let text = fs::read_to_string(&list).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let [owner, one, unreadable, torn, ..] = lines[..] else { panic!("{text}") };
    fs::write(&list, format!("{owner}\n{one}\n")).expect("written");
    let samples = |line: &str| tables.join("samples").join(line.split(' ').next().expect("a name"));
    fs::write(samples(unreadable), "hello").expect("written");
    fs::remove_file(samples(torn)).expect("removed");
    let away = said_of("clickhouse://127.0.0.1:9/energy");
    // Nobody knows yet that one cannot be read.
    let waiting = "5 windows found: 0 sent (0 rows), 0 there already, 1 broken, 4 waiting";
    assert!(away.contains(waiting), "{away}");
    let told = said_of(&url(server.address()));
    assert!(
        told.contains("5 windows found: 2 sent (") && told.contains("1 there already, 2 broken, 0 waiting"),
        "{told}"
    );
    let again = said_of(&url(server.address()));
    let nothing_new = "5 windows found: 0 sent (0 rows), 3 there already, 2 broken, 0 waiting";
    assert!(again.contains(nothing_new), "{again}");
    let busy = Receiver::start(|_| Answer::status(503));
    fs::write(&list, format!("{owner}\n{one}\n")).expect("written");
    let busy = said_of(&url(busy.address()));
    assert!(busy.contains("goes on with those that wait"), "{busy}");
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

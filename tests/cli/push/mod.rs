//! `eprof push`: what a real ClickHouse has afterwards is what the tables say, whatever happens on the way.

mod answers;
mod secrets;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex};

use eprof_testbed::clickhouse::ClickHouse;
use eprof_testbed::eprof;
use eprof_testbed::receiver::{Answer, Receiver, Request, post, post_for_headers};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::report::recording::Recorded;

/// What counts.
const ONCE: &str =
    "(recording, push) GLOBAL IN (SELECT recording, max(push) FROM energy.pushes GROUP BY recording)";

/// A folder with the tables of so many recordings, whose threads have these names in turn.
fn tables(folder: &Path, count: u32, comms: &[&str]) -> PathBuf {
    let mut export = eprof();
    export.args(["export", "--format", "parquet", "--no-inline", "-o", "tables"]).current_dir(folder);
    for number in 0..count {
        let comm = comms[number as usize % comms.len()];
        let name = format!("{number}.data");
        Recorded { recorder: 100 + number, comm, ..Recorded::default() }.write(&folder.join(&name));
        export.arg(name);
    }
    let output = export.output().expect("eprof runs");
    assert!(output.status.success(), "{}", said(&output));
    folder.join("tables")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn push(tables: &Path, url: &str, arguments: &[&str]) -> Output {
    let mut command = eprof();
    command.arg("push").arg(tables).arg(url).args(arguments);
    command.env_remove("EPROF_PUSH_PASSWORD").output().expect("eprof runs")
}

#[track_caller]
fn push_all(tables: &Path, url: &str, arguments: &[&str]) -> String {
    let output = push(tables, url, arguments);
    assert!(output.status.success(), "{}", said(&output));
    said(&output)
}

/// What the files say: the joules of each thread's name, and rows of samples and balance.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    joules: BTreeMap<String, f64>,
    measured: f64,
    samples: usize,
    balance: usize,
    recordings: usize,
}

impl Sums {
    fn of_files(tables: &Path) -> Self {
        let mut sums = Self::default();
        for_each_row(&tables.join("samples"), |row| {
            sums.samples += 1;
            let (Field::Str(comm), Field::Double(joules)) = (&row["comm"], &row["joules"]) else {
                panic!("{row:?}")
            };
            *sums.joules.entry(comm.clone()).or_default() += joules;
        });
        for_each_row(&tables.join("balance"), |row| {
            sums.balance += 1;
            let Field::Double(measured) = row["measured"] else { panic!("{row:?}") };
            sums.measured += measured;
        });
        sums.recordings = fs::read_dir(tables.join("balance")).expect("a folder").count();
        sums
    }

    fn of_server(server: &ClickHouse) -> Self {
        let joules =
            server.ask(&format!("SELECT comm, sum(joules) FROM energy.samples WHERE {ONCE} GROUP BY comm"));
        let number = |statement: &str| -> f64 { server.value(statement).parse().expect("a number") };
        let count =
            |table: &str| number(&format!("SELECT count() FROM energy.{table} WHERE {ONCE}")) as usize;
        Self {
            joules: joules.iter().map(|row| (row[0].clone(), row[1].parse().expect("a number"))).collect(),
            measured: number(&format!("SELECT sum(measured) FROM energy.balance WHERE {ONCE}")),
            samples: count("samples"),
            balance: count("balance"),
            recordings: number("SELECT uniqExact(recording) FROM energy.pushes") as usize,
        }
    }

    #[track_caller]
    fn assert_same(&self, other: &Self) {
        let counts = |sums: &Self| (sums.samples, sums.balance, sums.recordings);
        assert_eq!(counts(self), counts(other));
        assert!((self.measured - other.measured).abs() <= 1e-9 * self.measured, "{self:?}, {other:?}");
        assert!(self.joules.keys().eq(other.joules.keys()), "{self:?}, {other:?}");
        for (comm, joules) in &self.joules {
            assert!((joules - other.joules[comm]).abs() <= 1e-9 * joules, "{comm}: {self:?}, {other:?}");
        }
    }
}

fn for_each_row(folder: &Path, mut visit: impl FnMut(BTreeMap<String, Field>)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let file = File::open(entry.expect("readable").path()).expect("there");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            visit(row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect());
        }
    }
}

fn server(folder: &Path) -> Option<ClickHouse> {
    let server = ClickHouse::start(folder, 1)?.pop().expect("one");
    server.ask("CREATE DATABASE energy");
    Some(server)
}

fn url(address: std::net::SocketAddr) -> String {
    format!("clickhouse://{address}/energy")
}

/// A receiver in front of a server: it gives the server what it gets, and the answer back, unless `instead` says otherwise.
fn in_front_of(
    server: std::net::SocketAddr,
    mut instead: impl FnMut(&Request) -> Option<Answer> + Send + 'static,
) -> Receiver {
    Receiver::start(move |request| instead(request).unwrap_or_else(|| forward(server, request)))
}

fn forward(server: std::net::SocketAddr, request: &Request) -> Answer {
    let skipped = ["host", "content-length", "transfer-encoding", "connection"];
    let headers: Vec<(&str, &str)> = request
        .headers
        .iter()
        .filter(|(name, _)| !skipped.contains(&name.as_str()))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    const NAME: &str = "X-ClickHouse-Server-Display-Name";
    match post_for_headers(server, &request.path, &headers, &request.body) {
        Ok((status, headers, body)) => {
            let name = headers.get(&NAME.to_ascii_lowercase()).expect("each answer has it");
            Answer::Status(status, vec![(NAME, name.clone())], body)
        }
        Err(_) => Answer::Cut,
    }
}

#[test]
fn a_database_has_what_the_tables_have_and_twice_is_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    // What would end a text or a statement somewhere.
    let hostile = ["app", "'; DROP --", "a`b\"c\\'d", "ü$(x)%00&=#", "{{x}}\\N"];
    let tables = tables(folder.path(), 6, &hostile);
    let expected = Sums::of_files(&tables);
    assert_eq!((expected.recordings, expected.joules.len()), (6, 5));
    let first = push_all(&tables, &url(server.address()), &[]);
    assert!(first.contains("6 windows"), "{first}");
    expected.assert_same(&Sums::of_server(&server));
    let again = push_all(&tables, &url(server.address()), &[]);
    assert!(again.contains("has all of"), "{again}");
    // Who has forgotten what was acknowledged sends all of it again.
    for entry in fs::read_dir(&tables).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_file() {
            fs::remove_file(path).expect("removed");
        }
    }
    push_all(&tables, &url(server.address()), &[]);
    assert_eq!(server.value("SELECT count() FROM energy.pushes"), "12");
    expected.assert_same(&Sums::of_server(&server));
    // Names, and joules by function through the frames, as the page has the query.
    let names = server
        .value("SELECT count() FROM (SELECT DISTINCT function_id, name, module, line FROM energy.functions)");
    let frames =
        server.value("SELECT count() FROM (SELECT DISTINCT stack_id, depth FROM energy.stack_frames)");
    let mut known = BTreeSet::new();
    for_each_row(&tables.join("functions"), |row| {
        known.insert(format!("{:?}", row["function_id"]));
    });
    assert_eq!(names, known.len().to_string());
    known.clear();
    for_each_row(&tables.join("stack_frames"), |row| {
        known.insert(format!("{:?}, {:?}", row["stack_id"], row["depth"]));
    });
    assert_eq!(frames, known.len().to_string());
    let heavy: f64 = server
        .value(&format!(
            "SELECT sum(j) FROM (SELECT stack_id, sum(joules) AS j FROM energy.samples WHERE is_top = 1 AND {ONCE} \
             GROUP BY stack_id) ALL INNER JOIN (SELECT DISTINCT stack_id, function_id FROM energy.stack_frames \
             WHERE is_leaf = 1) USING (stack_id) WHERE function_id IN (SELECT function_id FROM energy.functions \
             WHERE name LIKE '%heavy%')"
        ))
        .parse()
        .expect("a number");
    // 10 W for a second, three quarters of it in `heavy`, in each of six recordings.
    assert!((heavy - 45.0).abs() < 0.5, "{heavy} J");
    assert_eq!(
        server
            .value("SELECT countIf(isNull(variance)) + countIf(variance >= 0) = count() FROM energy.samples"),
        "1"
    );
}

#[test]
fn two_shards_have_it_once_through_their_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(servers) = ClickHouse::start(folder.path(), 2) else { return };
    let statements = eprof().args(["push", "--print-tables"]).output().expect("eprof runs");
    let statements = String::from_utf8(statements.stdout).expect("text");
    for server in &servers {
        server.ask("CREATE DATABASE local");
        server.ask("CREATE DATABASE energy");
        for statement in statements.lines() {
            server.ask(&statement.trim_end_matches(';').replace("EXISTS `", "EXISTS local.`"));
        }
        for (table, key) in [
            ("samples", "recording"),
            ("balance", "recording"),
            ("pushes", "recording"),
            ("functions", "function_id"),
            ("stack_frames", "stack_id"),
        ] {
            server.ask(&format!(
                "CREATE TABLE energy.{table} AS local.{table} ENGINE = Distributed(all, local, {table}, {key})"
            ));
        }
    }
    let tables = tables(folder.path(), 8, &["a", "b", "c"]);
    push_all(&tables, &url(servers[0].address()), &[]);
    let expected = Sums::of_files(&tables);
    // Acknowledged is there, on both, whichever is asked.
    for server in &servers {
        expected.assert_same(&Sums::of_server(server));
    }
    let rows = |server: &ClickHouse| -> usize {
        server.value("SELECT count() FROM local.samples").parse().expect("a number")
    };
    let [first, second] = [rows(&servers[0]), rows(&servers[1])];
    assert!(first > 0 && second > 0 && first + second == expected.samples, "{first}, {second}");
}

#[test]
fn answers_that_are_lost_lose_nothing_and_count_nothing_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 3, &["a", "b"]);
    let address = server.address();
    // The first rows of `samples` and of `pushes` arrive, and nobody hears of it; in between the server is busy.
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let proxy = in_front_of(address, move |request| {
        let table = request.path.split("%60energy%60.%60").nth(1)?.split("%60").next()?.to_owned();
        let times = seen.entry(table.clone()).or_default();
        *times += 1;
        match (&*table, *times) {
            ("samples" | "pushes", 1) => {
                forward(address, request);
                Some(Answer::Cut)
            }
            ("balance", 1) => {
                Some(Answer::Status(503, vec![("Retry-After", "1".to_owned())], b"busy".to_vec()))
            }
            _ => None,
        }
    });
    let said = push_all(&tables, &url(proxy.address()), &["--retry-for", "5m"]);
    assert!(said.contains("3 windows") && said.contains("trying again"), "{said}");
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
    let all: usize = server.value("SELECT count() FROM energy.samples").parse().expect("a number");
    assert!(all > Sums::of_files(&tables).samples, "rows of attempts that do not count lie there, too");
}

#[test]
fn a_server_that_is_killed_in_the_middle_has_all_in_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 3, &["a", "b"]);
    let address = server.address();
    let server = Arc::new(Mutex::new(server));
    let (shared, mut requests) = (Arc::clone(&server), 0);
    let proxy = in_front_of(address, move |request| {
        requests += 1;
        // In the middle of four of the first dozen: while it works on rows, and before it hears of them.
        if ![4, 6, 9, 11].contains(&requests) {
            return None;
        }
        let sent = request.clone();
        let sending = std::thread::spawn(move || forward(address, &sent));
        std::thread::sleep(std::time::Duration::from_millis(requests - 4));
        let mut server = shared.lock().expect("no panic");
        server.kill();
        sending.join().expect("no panic");
        server.run();
        Some(Answer::Cut)
    });
    push_all(&tables, &url(proxy.address()), &["--retry-for", "5m"]);
    let server = server.lock().expect("no panic");
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
}

#[test]
fn eprof_killed_in_the_middle_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 3, &["a", "b"]);
    let address = server.address();
    for kill_at in [5, 8] {
        let (reached, is_reached) = std::sync::mpsc::channel();
        let mut requests = 0;
        let proxy = in_front_of(address, move |_| {
            requests += 1;
            (requests == kill_at).then(|| {
                reached.send(()).expect("somebody waits");
                Answer::Hang(std::time::Duration::from_secs(2))
            })
        });
        let mut command = eprof();
        command.arg("push").arg(&tables).arg(url(proxy.address()));
        let mut child = eprof_testbed::Started::new(command.stderr(std::process::Stdio::null()));
        is_reached.recv_timeout(std::time::Duration::from_secs(120)).expect("that far");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }
    push_all(&tables, &url(address), &[]);
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
}

#[test]
fn a_broken_file_is_left_out_and_told_and_the_others_arrive() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 4, &["a", "b"]);
    let mut names: Vec<_> = fs::read_dir(tables.join("samples"))
        .expect("a folder")
        .map(|entry| entry.expect("readable").path())
        .collect();
    names.sort();
    // Pages in the middle of one are overwritten, another is no Parquet, and a third one's samples are another's secret.
    let mut bytes = fs::read(&names[0]).expect("read");
    let middle = bytes.len() / 3;
    bytes[4..middle].fill(0xa5);
    fs::write(&names[0], bytes).expect("written");
    fs::write(&names[1], "hello").expect("written");
    fs::remove_file(&names[2]).expect("removed");
    std::os::unix::fs::symlink("/etc/passwd", &names[2]).expect("linked");
    let output = push(&tables, &url(server.address()), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("left out").count(), 3, "{said}");
    assert!(!said.contains("root:"), "{said}");
    assert_eq!(server.value("SELECT uniqExact(recording) FROM energy.pushes"), "1");
}

#[test]
fn a_table_that_is_dropped_meanwhile_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 2, &["a", "b"]);
    let (address, mut was_dropped) = (server.address(), false);
    let proxy = in_front_of(address, move |request| {
        if request.path.contains("samples") && !was_dropped {
            was_dropped = true;
            post(address, "/", &[], b"DROP TABLE energy.samples").expect("it answers");
        }
        None
    });
    push_all(&tables, &url(proxy.address()), &[]);
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
}

#[test]
fn what_a_database_has_lost_is_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 3, &["a", "b"]);
    let url = url(server.address());
    push_all(&tables, &url, &[]);
    let again = |arguments: &[&str]| push_all(&tables, &url, arguments);
    assert!(again(&[]).contains("0 sent (0 rows), 3 there already"), "nothing is lost");
    server.ask("DROP DATABASE energy");
    server.ask("CREATE DATABASE energy");
    let said = again(&[]);
    assert!(
        said.contains("acknowledged 3 windows that are not there any more") && said.contains("3 sent"),
        "{said}"
    );
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
    // What lacks rows without which it does not add up is known by `eprof fleet` alone.
    server.ask("TRUNCATE TABLE energy.samples");
    assert!(again(&[]).contains("3 there already"));
    assert!(again(&["--again"]).contains("3 sent"));
    Sums::of_files(&tables).assert_same(&Sums::of_server(&server));
}

#[test]
fn what_is_wrong_with_a_database_is_told_with_its_repair() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(server) = server(folder.path()) else { return };
    let tables = tables(folder.path(), 1, &["a"]);
    let refused = |url: &str| {
        let output = push(&tables, url, &["--retry-for", "0s"]);
        assert_eq!(output.status.code(), Some(1));
        said(&output)
    };
    let no_database = refused(&format!("clickhouse://{}/missing", server.address()));
    assert!(no_database.contains("CREATE DATABASE `missing`"), "{no_database}");
    server.ask("CREATE TABLE energy.functions (function_id Int64, name String, module String, build_id String, file String) ENGINE = Log");
    let lacks = refused(&url(server.address()));
    assert!(lacks.contains("ALTER TABLE `energy`.`functions` ADD COLUMN `line` Int64"), "{lacks}");
    server.ask("DROP TABLE energy.functions");
    server.ask("CREATE TABLE energy.functions (function_id UInt64, name String, module String, build_id String, file String, line Int64) ENGINE = Log");
    let other = refused(&url(server.address()));
    assert!(other.contains("`function_id`") && other.contains("UInt64"), "{other}");
    drop(server);
    let away = push(&tables, "clickhouse://127.0.0.1:9/energy", &["--retry-for", "1s"]);
    assert!(said(&away).contains("127.0.0.1:9") && said(&away).contains("goes on"), "{}", said(&away));
    let none = push(folder.path(), "clickhouse://127.0.0.1:9/energy", &[]);
    assert!(said(&none).contains("eprof export"), "{}", said(&none));
}

#[test]
fn a_folder_without_windows_is_told_and_nothing_is_left_in_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = "clickhouse://127.0.0.1:9/energy";
    let refused = |path: &Path, why: &str| {
        let output = push(path, nowhere, &["--retry-for", "0s"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    };
    refused(&folder.path().join("nosuch"), "there is no such folder");
    let tables = tables(folder.path(), 1, &["a"]);
    // The folder of the recordings, not that of their tables.
    refused(folder.path(), "there are no tables in it");
    fs::write(tables.join("balance/notes.txt"), "mine").expect("written");
    for entry in fs::read_dir(tables.join("samples")).expect("a folder") {
        fs::remove_file(entry.expect("readable").path()).expect("removed");
    }
    refused(&tables, "samples");
    refused(&tables, "notes.txt is no table of eprof");
    refused(&tables, "nothing to push");
    for path in [folder.path(), &tables] {
        let left = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("readable").file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(".eprof-pushed")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

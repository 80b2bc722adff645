//! All engines say the same of the same tables.

use std::fs;

use serde_json::Value;

use super::servers::{self, PASSWORD, post};
use super::*;

/// Questions, with what tells the rows of their answers apart.
const QUESTIONS: [(&[&str], &[&str]); 14] = [
    (&["report", "--by", "node"], &["node", "function", "module"]),
    (&["report", "--total", "--by", "label:version,rank"], &["label:version", "rank", "function", "module"]),
    (&["top", "--by", "node"], &["node"]),
    (&["top", "--by", "node,process,comm"], &["node", "process", "comm"]),
    (
        &["report", "--where", "(rank >= 3 and rank < 12 or node ~ '^n[56]$') and label:version != 3"],
        &["function", "module"],
    ),
    (&["report", "--where", "label:version ~ ^2 and comm != 'it''s'"], &["function", "module"]),
    (&["report", "--since", "2096-10-02T07:06:40Z", "--until", "2096-10-03"], &["function", "module"]),
    (&["top", "--where", "label:k = 'C:\\new'"], &["node"]),
    (&["top", "--where", "label:k ~ '^x|(?i)\\\\NEW$'", "--by", "label:k"], &["label:k"]),
    (&["top", "--where", "label:k ~ ^$ or label:k !~ '[a-z]'"], &["node"]),
    (&["top", "--where", "node ~ '(?i)^N[12]$|^N3' and comm !~ '\\\\'"], &["node"]),
    (&["top", "--where", "comm ~ '(?i)APP'"], &["node"]),
    (&["top", "--where", "rank < 4", "--by", "rank"], &["rank"]),
    (&["diff", "--old", "label:version = 1", "--new", "label:version = 2"], &["function", "module"]),
];

/// What tries to be more than a value.
const HOSTILE_VALUES: [&str; 8] = [
    "' OR 1=1 --",
    "\\' OR 1=1 --",
    "\\",
    "'); DROP TABLE samples; --",
    "`",
    "*/ OR 1=1 /*",
    "\n' UNION ALL SELECT 1 --",
    "ü\u{202e}'",
];

/// Rows by what tells them apart.
fn keyed(answer: &Value, columns: &[&str]) -> BTreeMap<Vec<String>, Value> {
    let key =
        |row: &Value| columns.iter().map(|column| row[*column].as_str().expect(column).to_owned()).collect();
    rows(answer).iter().map(|row| (key(row), row.clone())).collect()
}

/// Numbers are the same to rounding, all else exactly.
#[track_caller]
fn assert_same(found: &Value, expected: &Value, of: &str) {
    match (found, expected) {
        (Value::Number(_), Value::Number(_)) => {
            let (found, expected) = (number(found), number(expected));
            let is_near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            assert!(is_near, "{of}: {found} is not {expected}");
        }
        (Value::Object(found), Value::Object(expected)) => {
            assert_eq!(found.len(), expected.len(), "{of}");
            found
                .iter()
                .for_each(|(name, value)| assert_same(value, &expected[name], &format!("{of}: {name}")));
        }
        _ => assert_eq!(found, expected, "{of}"),
    }
}

/// A place says of the fleet what the embedded engine says of the folder, whose joules are known.
#[track_caller]
fn assert_says_the_same(place: &str) {
    for (question, columns) in QUESTIONS {
        let (verb, options) = question.split_first().expect("a verb");
        let ask = |place: &str| json(&[&[*verb, place][..], options].concat());
        let (found, expected) = (ask(place), ask("tables"));
        let of = format!("{question:?}");
        for (name, balance) in expected.as_object().expect("an object") {
            if name.starts_with("balance") {
                assert_balanced(balance);
                assert_same(&found[name], balance, &of);
            }
        }
        assert_eq!(found["warnings"], expected["warnings"], "{of}");
        let (found, expected) = (keyed(&found, columns), keyed(&expected, columns));
        assert!(!expected.is_empty() && found.keys().eq(expected.keys()), "{of}: {found:?}");
        found.iter().for_each(|(key, row)| assert_same(row, &expected[key], &format!("{of}: {key:?}")));
    }
    let collapsed =
        |place| output(&["flamegraph", place, "--format", "collapsed", "-o", "-", "--by", "node"]);
    assert_eq!(by_path(&collapsed(place)), by_path(&collapsed("tables")));
    for value in HOSTILE_VALUES {
        let quoted = format!("\"{value}\"");
        for condition in [
            format!("node = {quoted}"),
            format!("label:version = {quoted}"),
            format!("comm = {quoted} and rank = 1"),
        ] {
            let said = error(&["top", place, "--where", &condition]);
            assert!(said.contains("nothing is selected"), "{condition}: {said}");
        }
        let others = &json(&["top", place, "--where", &format!("node != {quoted}")])["balance"];
        assert_near(number(&others["measured"]), 80.0);
        let said = error(&["top", place, "--domain", value]);
        assert!(said.contains("there is no energy domain"), "{said}");
    }
    // A name that somebody who means harm gave a node is one as others are.
    let nodes = by(&json(&["top", place]), "node");
    let (hostile, joules) = nodes.iter().find(|(name, _)| name.starts_with("n7'")).expect("the hostile node");
    let answer = json(&["top", place, "--where", &format!("node = '{}'", hostile.replace('\'', "''"))]);
    assert_eq!(rows(&answer).len(), 1);
    assert_near(number(&answer["balance"]["selected"]), *joules);
}

/// Microjoules by path; what rounding moves from one path to the next is one.
fn by_path(collapsed: &str) -> Vec<(String, i64)> {
    let line = |line: &str| {
        let (path, weight) = line.rsplit_once(' ').expect("a weight");
        (path.to_owned(), (weight.parse::<f64>().expect("a number") / 10.0).round() as i64)
    };
    collapsed.lines().map(line).collect()
}

fn push(tables: &str, url: &str) {
    let pushed = eprof().args(["push", tables, url]).current_dir(FLEET.path()).output().expect("eprof runs");
    assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
}

/// The tables of `eprof push`, on each shard, and Distributed ones over them.
fn make_tables(shards: &[servers::Server; 2]) {
    let printed = eprof().args(["push", "--print-tables"]).output().expect("eprof runs");
    let statements = String::from_utf8(printed.stdout).expect("text");
    for server in shards {
        for statement in statements.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            let local = statement.replacen(
                "CREATE TABLE IF NOT EXISTS ",
                "CREATE TABLE IF NOT EXISTS energy_local.",
                1,
            );
            assert_ne!(local, statement);
            post(server.port, &local);
        }
        for (table, key) in [
            ("samples", "recording"),
            ("balance", "recording"),
            ("pushes", "recording"),
            ("functions", "function_id"),
            ("stack_frames", "stack_id"),
        ] {
            post(
                server.port,
                &format!(
                    "CREATE TABLE energy.{table} AS energy_local.{table} ENGINE = Distributed(shards, energy_local, {table}, {key})"
                ),
            );
        }
    }
}

#[test]
fn two_shards_of_clickhouse_say_the_same() {
    let Some(shards) = servers::clickhouse_shards() else { return };
    make_tables(&shards);
    let copy = copy();
    let tables = copy.path().join("tables");
    let tables = tables.to_str().expect("UTF-8");
    let [first, second] =
        shards.each_ref().map(|server| format!("clickhouse://127.0.0.1:{}/energy", server.port));
    assert!(error(&["report", "clickhouse://127.0.0.1:1/energy"]).contains("127.0.0.1:1"));
    let said = error(&["report", &first.replace("/energy", "/default")]);
    assert!(said.contains("has no tables of eprof") && said.contains("eprof push"), "{said}");
    push(tables, &first);
    let on = |server: &servers::Server| post(server.port, "SELECT count() FROM energy_local.samples");
    let counts: Vec<u64> = shards.iter().map(|server| on(server).trim().parse().expect("a number")).collect();
    assert!(counts.iter().all(|count| *count > 0), "both have some: {counts:?}");
    assert_says_the_same(&first);
    assert_says_the_same(&second);
    // The same again, as by an eprof that has forgotten: it counts once.
    for entry in fs::read_dir(tables).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with(".eprof-pushed") {
            fs::remove_file(entry.path()).expect("removed");
        }
    }
    push(tables, &first);
    let total: u64 = shards.iter().map(|server| on(server).trim().parse::<u64>().expect("a number")).sum();
    assert_eq!(total, 2 * counts.iter().sum::<u64>(), "it is there twice");
    assert_says_the_same(&first);
    passwords_stay_hidden(&first);
    // What is lost is no answer.
    post(shards[1].port, "DROP TABLE energy_local.samples");
    assert!(!run(&["report", &first]).status.success());
    post(
        shards[1].port,
        &post(shards[0].port, "SHOW CREATE TABLE energy_local.samples")
            .replace("\\n", "\n")
            .replace("\\'", "'"),
    );
    let said = error(&["report", &first]);
    assert!(said.contains("does not add up"), "{said}");
}

fn passwords_stay_hidden(url: &str) {
    let url = url.replace("://", "://reader@");
    let ask = |password: &str| {
        let mut fleet = Command::new(env!("CARGO_BIN_EXE_eprof-fleet"));
        fleet.args(["top", &url]).env("EPROF_FLEET_PASSWORD", password).output().expect("eprof-fleet runs")
    };
    assert!(ask(PASSWORD).status.success(), "{:?}", ask(PASSWORD));
    let refused = ask("wr0ng-one");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && !said.contains("wr0ng-one"), "{said}");
    let said = error(&["top", &url.replace("reader@", "reader:hunter2@")]);
    assert!(said.contains("password") && !said.contains("hunter2"), "{said}");
    let file = FLEET.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).expect("written");
    output(&["top", &url, "--password-file", "password"]);
}

#[test]
fn a_newer_clickhouse_says_the_same() {
    let Some(server) = servers::newer_clickhouse(&FLEET.path().join("tables")) else { return };
    assert_says_the_same(&format!("clickhouse://127.0.0.1:{}/energy", server.port));
}

#[test]
fn a_cluster_of_sail_says_the_same() {
    let Some(server) = servers::sail() else { return };
    let tables = FLEET.path().join("tables");
    let place = format!("sail://127.0.0.1:{}{}", server.port, tables.display());
    assert_says_the_same(&place);
    let said = error(&["report", &format!("sail://127.0.0.1:{}/nowhere", server.port)]);
    assert!(said.contains("/nowhere"), "{said}");
    assert!(error(&["report", "sail://127.0.0.1:1/x"]).contains("no server of Flight SQL at 127.0.0.1:1"));
}

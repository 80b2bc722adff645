//! `eprof fleet` as a user runs it, on the tables of eight nodes with three ranks each whose joules are known.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use eprof::identity::{Identity, Job, Labels};
use eprof_testbed::{eprof, has_program, skip_quietly};
use recording::Recorded;
use serde_json::Value;

mod engines;
#[allow(dead_code)]
#[path = "../cli/report/recording.rs"]
mod recording;
mod servers;
mod told;

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/report/parquet.py");
const NODES: u32 = 8;
const RANKS: u32 = 3;
/// What the meter of each node counted.
const JOULES: f64 = 10.0;
/// A name that somebody who means harm gave a node.
const HOSTILE: &str = "n7'; DROP TABLE samples; --\u{1b}[31m";

/// The recording of a rank. Node `n` runs `heavy` in `n % 4` of four samples; the first four nodes have version 1.
fn recorded(node: u32, rank: u32) -> Recorded<'static> {
    let name = if node == 7 { HOSTILE.to_owned() } else { format!("n{node}") };
    let version = ("version".to_owned(), if node < 4 { "1" } else { "2" }.to_owned());
    // Two nodes have each of these, and two have none.
    let odd =
        ["C:\\new", "x y", ""].get(node as usize % 4).map(|value| ("k".to_owned(), (*value).to_owned()));
    let identity = Identity {
        boot: Some(format!("boot {node}")),
        pid_namespace: Some(u64::from(rank)),
        job: Job {
            id: Some("4711".to_owned()),
            rank: Some(node * RANKS + rank),
            node: Some(name),
            step: None,
        },
        labels: Labels::new([version].into_iter().chain(odd)).expect("one or two"),
        ..Identity::default()
    };
    Recorded {
        identity: Some(identity),
        recorder: rank + 1,
        heavy_of_four: u64::from(node % 4),
        ..Recorded::default()
    }
}

/// Recordings of all ranks, and the tables of them.
static FLEET: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    for node in 0..NODES {
        for rank in 0..RANKS {
            recorded(node, rank).write(&folder.path().join(format!("{node}-{rank}.data")));
        }
    }
    let exported = eprof()
        .args(["export", "--format", "parquet", "-o", "tables", "."])
        .current_dir(folder.path())
        .output()
        .expect("eprof runs");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    folder
});

fn run(arguments: &[&str]) -> Output {
    let mut fleet = Command::new(env!("CARGO_BIN_EXE_eprof-fleet"));
    fleet.args(arguments).current_dir(FLEET.path()).output().expect("eprof-fleet runs")
}

#[track_caller]
fn output(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[track_caller]
fn error(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success(), "{arguments:?} succeeds");
    String::from_utf8(output.stderr).expect("text")
}

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--format", "json", "--limit", "0"]].concat();
    serde_json::from_str(&output(&arguments)).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn rows(answer: &Value) -> &[Value] {
    answer["rows"].as_array().expect("rows")
}

/// What rows are called by one column, and their joules.
fn by(answer: &Value, column: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for row in rows(answer) {
        *sums.entry(row[column].as_str().expect(column).to_owned()).or_default() += number(&row["joules"]);
    }
    sums
}

fn of(sums: &BTreeMap<String, f64>, function: &str) -> f64 {
    sums.iter().filter(|(name, _)| name.ends_with(function)).map(|(_, joules)| joules).sum()
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// Functions, static, others, eprof and lost are what was measured.
#[track_caller]
fn assert_balanced(balance: &Value) {
    let parts = ["functions", "static", "others", "eprof", "lost"].map(|part| number(&balance[part]));
    assert_near(parts.iter().sum(), number(&balance["measured"]));
}

#[test]
fn all_joules_of_all_nodes_are_there_once() {
    let answer = json(&["report", "tables", "--by", "node"]);
    let balance = &answer["balance"];
    assert_balanced(balance);
    assert_near(number(&balance["measured"]), JOULES * f64::from(NODES));
    assert_eq!((number(&balance["nodes"]), number(&balance["recordings"])), (8.0, 8.0));
    assert_near(rows(&answer).iter().map(|row| number(&row["joules"])).sum(), number(&balance["functions"]));
    assert_eq!(answer["warnings"], Value::Array(Vec::new()));
    for node in 0..NODES {
        let name = if node == 7 { "n7'".to_owned() } else { format!("n{node}") };
        let is_of_node = |row: &&Value| row["node"].as_str().is_some_and(|found| found.starts_with(&name));
        let of_node = |function: &str| -> f64 {
            let named = |row: &&Value| row["function"].as_str().is_some_and(|name| name.ends_with(function));
            rows(&answer).iter().filter(is_of_node).filter(named).map(|row| number(&row["joules"])).sum()
        };
        // Each sample of a clock that ticks evenly is worth the same; one of a thousand lies elsewhere.
        let (heavy, light) = (of_node("heavy"), of_node("light"));
        let share = f64::from(node % 4) / 4.0;
        assert!(heavy + light > 0.9 * JOULES, "{heavy} + {light}");
        assert!((heavy / (heavy + light) - share).abs() < 0.01, "node {node}: {heavy} of {}", heavy + light);
    }
}

#[test]
fn the_same_sql_by_another_engine_gives_the_same_joules() {
    if !has_program("python3", &["-c", "import duckdb"]) {
        skip_quietly("python3 has no duckdb (pip install duckdb): no other engine is asked");
        return;
    }
    let asked = |sql: &str| -> Vec<Value> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), sql).expect("written");
        let mut python = Command::new("python3");
        let output = python.arg(READER).arg(FLEET.path().join("tables")).arg(file.path()).output();
        let output = output.expect("python3 runs");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let key = |row: &Value, columns: &[&str]| -> Vec<String> {
        columns.iter().map(|column| row[*column].as_str().expect(column).to_owned()).collect()
    };
    let own = json(&["report", "tables", "--by", "node"]);
    let other = asked(&output(&["report", "tables", "--by", "node", "--sql"]));
    assert_eq!(other.len(), rows(&own).len());
    let of_other: BTreeMap<_, _> = other
        .iter()
        .map(|row| (key(row, &["node", "name", "module"]), (number(&row["own"]), number(&row["total"]))))
        .collect();
    for row in rows(&own) {
        let (joules, total) = of_other[&key(row, &["node", "function", "module"])];
        assert_near(number(&row["joules"]), joules);
        assert_near(number(&row["total_joules"]), total);
    }
    let own = json(&["top", "tables", "--by", "node,process"]);
    let other = asked(&output(&["top", "tables", "--by", "node,process", "--sql"]));
    assert_eq!((other.len(), rows(&own).len()), (8, 8));
    let of_other: BTreeMap<_, _> =
        other.iter().map(|row| (key(row, &["node", "process"]), row.clone())).collect();
    for row in rows(&own) {
        let found = &of_other[&key(row, &["node", "process"])];
        assert_near(number(&row["joules"]), number(&found["j"]));
        assert_eq!(number(&row["samples"]), number(&found["n"]));
    }
}

#[test]
fn conditions_select_and_the_balance_is_of_the_machines_in_question() {
    let all = by(&json(&["report", "tables", "--by", "node"]), "node");
    let of_node = json(&["report", "tables", "--where", "node = n3"]);
    assert_balanced(&of_node["balance"]);
    assert_near(number(&of_node["balance"]["measured"]), JOULES);
    assert_near(number(&of_node["balance"]["selected"]), all["n3"]);
    // A rank is not of the balance: it is that of the machine that it ran on.
    let of_rank = json(&["report", "tables", "--where", "rank = 10"]);
    assert_near(number(&of_rank["balance"]["measured"]), JOULES);
    let selected = number(&of_rank["balance"]["selected"]);
    assert!(selected > 0.0 && selected < 0.5 * number(&of_rank["balance"]["functions"]), "{selected}");
    let three = ["rank = 9", "rank = 10", "rank > 10 and rank < 12"]
        .map(|condition| number(&json(&["report", "tables", "--where", condition])["balance"]["selected"]));
    assert_near(three.iter().sum(), all["n3"]);
    for (condition, nodes) in [
        ("label:version = 2", 4.0),
        ("label:version != 2", 4.0),
        ("label:version ~ ^[12]$", 8.0),
        ("node ~ '^n[0-2]$' or node = n5", 4.0),
        ("(node = n1 or node = n2) and node != n1", 1.0),
        ("job = 4711 and comm = app", 8.0),
        ("label:k = 'C:\\new'", 2.0),
        ("label:k != 'C:\\new'", 6.0),
        ("label:k ~ '^x|\\\\new$'", 4.0),
        ("label:k ~ '\\\\'", 2.0),
        ("label:k ~ ^$", 2.0),
        ("label:k !~ '^x|^$'", 4.0),
        ("node ~ '(?i)^N[12]$|^N3'", 3.0),
        ("rank < 3", 1.0),
    ] {
        let balance = &json(&["report", "tables", "--where", condition])["balance"];
        assert_eq!(number(&balance["nodes"]), nodes, "{condition}");
        assert_near(number(&balance["measured"]), nodes * JOULES);
    }
    for condition in ["job = 4712", "node = \"' OR 1=1 --\"", "label:k = x", "label:none ~ .*"] {
        let said = error(&["report", "tables", "--where", condition]);
        assert!(said.contains("nothing is selected"), "{condition}: {said}");
    }
    let said = error(&["report", "tables", "--where", "job < 5"]);
    assert!(said.contains("job is a text"), "{said}");
    let hostile = format!("node ~ \"^n7'\" and node != '{}'", "x".repeat(3));
    assert_near(number(&json(&["report", "tables", "--where", &hostile])["balance"]["measured"]), JOULES);
    // The recordings began in the year 2096.
    for arguments in [["--since", "2096-10-02T07:06:40Z"], ["--until", "2096-10-03"]] {
        let balance = &json(&[&["report", "tables"][..], &arguments].concat())["balance"];
        assert_near(number(&balance["measured"]), 80.0);
    }
    for arguments in [["--since", "2096-10-02T07:06:41Z"], ["--until", "2096-10-02T07:06:40Z"]] {
        let said = error(&[&["report", "tables"][..], &arguments].concat());
        assert!(said.contains("no window starts in the time") && said.contains(arguments[0]), "{said}");
    }
}

#[test]
fn versions_are_compared() {
    let report = |version: &str| {
        by(&json(&["report", "tables", "--where", &format!("label:version = {version}")]), "function")
    };
    let (old, new) = (report("1"), report("2"));
    let conditions = ["--old", "label:version = 1", "--new", "label:version = 2"];
    let diff = json(&[&["diff", "tables"][..], &conditions].concat());
    assert_balanced(&diff["balance_old"]);
    assert_near(number(&diff["balance_old"]["measured"]), 40.0);
    assert_near(number(&diff["balance_new"]["measured"]), 40.0);
    for row in rows(&diff) {
        let name = row["function"].as_str().expect("a name");
        assert_near(number(&row["old_joules"]), old.get(name).copied().unwrap_or(0.0));
        assert_near(number(&row["difference"]), of(&new, name) - of(&old, name));
    }
    let conditions = ["--old", "node = n1", "--new", "node = n3"];
    let diff = output(&[&["diff", "tables", "--limit", "1"][..], &conditions].concat());
    assert!(
        diff.contains("heavy") && diff.contains("old: 10.00 J") && diff.contains("new: 10.00 J"),
        "{diff}"
    );
    assert!(error(&["diff", "tables"]).contains("--old"));
}

#[test]
fn groups_and_call_paths_have_the_same_joules() {
    let functions = number(&json(&["report", "tables"])["balance"]["functions"]);
    for (columns, count) in [("node", 8), ("rank", 24), ("label:version", 2), ("job,pod", 1)] {
        let answer = json(&["top", "tables", "--by", columns]);
        assert_eq!(rows(&answer).len(), count, "{columns}");
        assert_near(rows(&answer).iter().map(|row| number(&row["joules"])).sum(), functions);
    }
    let by_node = json(&["top", "tables"]);
    assert!(rows(&by_node).iter().all(|row| (number(&row["measured"]) - JOULES).abs() < 1e-9));
    let collapsed =
        output(&["flamegraph", "tables", "--format", "collapsed", "-o", "-", "--by", "label:version"]);
    let weights = collapsed
        .lines()
        .map(|line| line.rsplit(' ').next().and_then(|w| w.parse::<f64>().ok()).expect("a weight"));
    assert!((weights.sum::<f64>() * 1e-6 - functions).abs() < 1e-5);
    assert!(collapsed.lines().all(|line| line.starts_with("1;") || line.starts_with("2;")), "{collapsed}");
    output(&["flamegraph", "tables", "-o", "fleet.svg"]);
    let picture = fs::read_to_string(FLEET.path().join("fleet.svg")).expect("a picture");
    assert!(picture.contains("<svg") && picture.contains("heavy"));
    // Figures beside the pointer are those of the collapsed stacks, to the microjoule.
    let all =
        picture.split("<title>").find_map(|title| title.strip_prefix("all (")?.split_once(" µJ, 100%)"));
    let all: f64 = all.expect("the root").0.replace(',', "").parse().expect("a number");
    assert!((all * 1e-6 - functions).abs() < 1e-5, "{all} of {functions}");
    let said = error(&["flamegraph", "tables", "-o", "fleet.png"]);
    assert!(said.contains("no .png is written here"), "{said}");
    assert_eq!(
        output(&["flamegraph", "tables", "--format", "collapsed", "--by", "label:version"]),
        collapsed
    );
}

/// A copy of the tables, that may be harmed.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let status = Command::new("cp").arg("-r").arg(FLEET.path().join("tables")).arg(folder.path()).status();
    assert!(status.expect("cp runs").success());
    folder
}

fn first_of(folder: &Path, table: &str) -> std::path::PathBuf {
    let mut files = fs::read_dir(folder.join("tables").join(table)).expect("a table");
    files.next().expect("a file").expect("a file").path()
}

#[test]
fn what_does_not_add_up_is_no_answer() {
    let refused = |harm: &dyn Fn(&Path), why: &str| {
        let folder = copy();
        harm(folder.path());
        let tables = folder.path().join("tables");
        let said = error(&["report", tables.to_str().expect("UTF-8")]);
        assert!(said.contains(why), "{said}");
    };
    let remove =
        |table: &'static str| move |folder: &Path| fs::remove_file(first_of(folder, table)).expect("removed");
    refused(&remove("samples"), "does not add up");
    refused(&remove("balance"), "no balance");
    refused(&|folder| fs::remove_dir_all(folder.join("tables/functions")).expect("removed"), "eprof export");
    let twice = |table: &'static str| {
        move |folder: &Path| {
            let file = first_of(folder, table);
            fs::copy(&file, file.with_file_name("again.parquet")).expect("a copy");
        }
    };
    refused(&twice("samples"), "does not add up");
    refused(&twice("balance"), "does not add up");
    // Which file it is that is damaged.
    for table in ["balance", "samples", "functions", "stack_frames"] {
        let damaged = |folder: &Path| fs::write(first_of(folder, table), "PAR1").expect("written");
        refused(&damaged, &format!("/{table}/"));
        refused(&damaged, "is damaged");
    }
    // Of code the same rows are in many files: one of them may be there twice.
    let folder = copy();
    twice("functions")(folder.path());
    twice("stack_frames")(folder.path());
    let tables = folder.path().join("tables");
    let answer = json(&["report", tables.to_str().expect("UTF-8")]);
    assert_near(number(&answer["balance"]["measured"]), 80.0);
    // All files of stacks are needed, since all nodes of this fleet run other code.
    fs::remove_dir_all(tables.join("stack_frames")).expect("removed");
    fs::create_dir(tables.join("stack_frames")).expect("made");
    let other = tempfile::tempdir().expect("a folder");
    let source = other.path().join("other.data");
    Recorded { strange_file: "/nonexistent/other.so", heavy_of_four: 4, ..recorded(0, 0) }.write(&source);
    let exported = eprof()
        .args(["export", "--format", "parquet", "-o"])
        .arg(other.path().join("tables"))
        .arg(&source)
        .status();
    assert!(exported.expect("eprof runs").success());
    let file = first_of(other.path(), "stack_frames");
    fs::copy(&file, tables.join("stack_frames/other.parquet")).expect("a copy");
    let said = error(&["report", tables.to_str().expect("UTF-8")]);
    assert!(said.contains("the answer has"), "{said}");
}

/// Tables of these recordings, each exported by itself, in one folder, as of who copies folders of several senders to one place.
fn exported_apart(recordings: &[Recorded]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, recorded) in recordings.iter().enumerate() {
        let name = format!("{number}.data");
        recorded.write(&folder.path().join(&name));
        let mut export = eprof();
        export
            .args(["export", "--format", "parquet", "-o", &number.to_string(), &name])
            .current_dir(folder.path());
        assert!(export.output().expect("eprof runs").status.success());
        for table in ["functions", "stack_frames", "samples", "balance"] {
            let together = folder.path().join("tables").join(table);
            fs::create_dir_all(&together).expect("made");
            for file in fs::read_dir(folder.path().join(number.to_string()).join(table)).expect("a folder") {
                let file = file.expect("readable");
                fs::copy(file.path(), together.join(file.file_name())).expect("copied");
            }
        }
    }
    folder
}

#[test]
fn ranks_that_were_exported_apart_are_said_to_count_twice() {
    let folder = exported_apart(&[recorded(1, 0), recorded(1, 1)]);
    let output = run(&["report", folder.path().join("tables").to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("exported apart") && said.contains("10.00 J about"),
        "{said}"
    );
}

#[test]
fn machines_of_one_name_are_told_of_where_rows_are_nodes() {
    let mut other = recorded(1, 0);
    other.identity.as_mut().expect("one").boot = Some("another".to_owned());
    let folder = exported_apart(&[recorded(1, 0), other]);
    let tables = folder.path().join("tables");
    let tables = tables.to_str().expect("UTF-8");
    let shared = "the node n1 has windows of two boots at one time";
    for (question, by, is_told) in [
        ("top", "node", true),
        ("report", "node,process", true),
        ("report", "process", false),
        ("top", "node,boot", false),
    ] {
        let output = run(&[question, tables, "--by", by]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains(shared), is_told, "{question} --by {by}: {said}");
        assert!(!said.contains("exported apart"), "{said}");
    }
    let of_both = run(&["top", tables, "--by", "node,boot", "--format", "csv"]);
    let rows = String::from_utf8_lossy(&of_both.stdout).lines().filter(|line| line.contains("n1")).count();
    assert_eq!(rows, 2, "{}", String::from_utf8_lossy(&of_both.stdout));
}

#[test]
fn names_from_outside_reach_no_terminal() {
    let table = output(&["top", "tables", "--by", "node"]);
    assert!(table.contains("DROP TABLE") && !table.contains('\u{1b}'), "{table}");
    let csv = output(&["top", "tables", "--by", "node", "--format", "csv"]);
    assert!(!csv.contains('\u{1b}'), "{csv}");
    for wrong in ["node = n1; DROP TABLE samples", "1 = 1", "joules > 0", "node ~ ("] {
        assert!(error(&["report", "tables", "--where", wrong]).contains("--where"));
    }
}

//! `eprof export --format parquet`: what DuckDB finds in the tables is what the report says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use eprof::identity::{Identity, Job, Labels};
use eprof_testbed::{has_program, programs, skip_quietly};
use serde_json::Value;

use super::recording::Recorded;
use super::{Folder, number};

const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/report/parquet.py");

/// What DuckDB finds in a folder of tables; `None` where there is no DuckDB.
fn read(folder: &Path) -> Option<Value> {
    if !has_program("python3", &["-c", "import duckdb"]) {
        skip_quietly("python3 has no duckdb (pip install duckdb): nobody else reads the tables");
        return None;
    }
    let output = Command::new("python3").arg(READER).arg(folder).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn rows<'v>(read: &'v Value, name: &str) -> &'v [Value] {
    read[name].as_array().expect(name)
}

/// Each domain's samples are its functions, and the parts are the whole.
#[track_caller]
fn assert_balanced(read: &Value) {
    assert!(!rows(read, "check").is_empty());
    for row in rows(read, "check") {
        let [measured, functions, samples, parts] =
            ["measured", "functions", "joules", "parts"].map(|name| number(&row[name]));
        assert!((functions - samples).abs() <= 1e-9 * measured, "{row}");
        assert!((measured - parts).abs() <= 1e-9 * measured, "{row}");
    }
    assert_eq!(number(&rows(read, "orphans")[0]["count"]), 0.0);
    assert_eq!(rows(read, "versions").len(), 1);
}

#[test]
fn measured_joules_are_those_of_the_report() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recordings");
    for name in ["guest-program-only.data", "guest-neighbours.data"] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Folder(folder);
        let recording = fixtures.join(name);
        let recording = recording.to_str().expect("UTF-8");
        folder.output(&["export", "--format", "parquet", "-o", "tables", recording]);
        let Some(read) = read(&folder.path().join("tables")) else { return };
        assert_balanced(&read);
        let report = folder.json(&[recording, "--inline", "--limit", "0"]);
        let domains = report["domains"].as_array().expect("domains");
        assert_eq!(rows(&read, "balance").len(), domains.len());
        for domain in domains {
            let found =
                rows(&read, "balance").iter().find(|row| row["domain"] == domain["name"]).expect("a row");
            for (column, part) in [
                ("functions", "attributed"),
                ("static", "static"),
                ("recorder", "recorder"),
                ("lost", "lost"),
            ] {
                let (found, said) = (number(&found[column]), number(&domain["balance"][part]));
                assert!((found - said).abs() <= 1e-9, "{name}, {part}: {found} and {said} J");
            }
        }
        let mut of_report: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for row in report["rows"].as_array().expect("rows") {
            let sum = of_report.entry(row["name"].as_str().expect("a name")).or_default();
            sum.0 += number(&row["self_joules"]);
            sum.1 += number(&row["total_joules"]);
        }
        assert!(of_report.len() > 10);
        let functions = rows(&read, "functions");
        for (function, (own, total)) in &of_report {
            let found = functions.iter().find(|row| row["name"] == **function).expect(function);
            assert!((number(&found["own"]) - own).abs() <= 1e-9, "{function}: {found}, {own} J");
            assert!((number(&found["total"]) - total).abs() <= 1e-9, "{function}: {found}, {total} J");
        }
    }
}

fn export<'p>(paths: &[&'p str]) -> Vec<&'p str> {
    [&["export", "--format", "parquet", "-o", "tables"], paths].concat()
}

fn rank(boot: &str, rank: u32) -> Recorded<'static> {
    let job = Job { id: Some("7".to_owned()), rank: Some(rank), node: Some(format!("n-{boot}")), step: None };
    let labels = Labels::new([("color".to_owned(), "red".to_owned())]).expect("one");
    let pid_namespace = Some(u64::from(rank));
    let identity =
        Identity { boot: Some(boot.to_owned()), pid_namespace, job, labels, ..Identity::default() };
    Recorded { identity: Some(identity), recorder: rank + 1, ..Recorded::default() }
}

#[test]
fn ranks_of_a_node_share_its_joules_and_others_add_theirs() {
    let folder = Folder::with(&Recorded::default());
    fs::create_dir(folder.path().join("ranks")).expect("writable");
    for (boot, number) in [("one", 0), ("one", 1), ("two", 2)] {
        rank(boot, number).write(&folder.path().join(format!("ranks/{number}.data")));
    }
    folder.output(&export(&["ranks"]));
    let files = || -> Vec<_> {
        let files = fs::read_dir(folder.path().join("tables/balance")).expect("a folder");
        files.map(|file| file.expect("a file").file_name()).collect()
    };
    assert_eq!(files().len(), 2, "one for each node");
    if let Some(read) = read(&folder.path().join("tables")) {
        assert_balanced(&read);
        let balance = rows(&read, "balance");
        let nodes: Vec<&Value> = balance.iter().map(|row| &row["node"]).collect();
        assert_eq!(nodes, ["n-one", "n-two"]);
        for row in balance {
            assert!((number(&row["measured"]) - 10.0).abs() < 1e-9, "{row}");
            assert_eq!(
                (&row["start"], &row["end"]),
                (&4_000_000_000_000_000u64.into(), &4_000_000_001_000_000u64.into())
            );
        }
        let ranks: Vec<(&Value, f64)> =
            rows(&read, "ranks").iter().map(|row| (&row["node"], number(&row["rank"]))).collect();
        assert_eq!(ranks, [(nodes[0], 0.0), (nodes[0], 1.0), (nodes[1], 2.0)]);
        let [texts] = rows(&read, "texts") else { panic!("{read}") };
        let texts =
            ["job", "labels", "process", "comm", "method"].map(|name| texts[name].as_str().expect(name));
        assert_eq!(texts, ["7", "\ncolor=red\n", "app", "app", "measured"]);
    }
    // What is there is there; a third node's is added.
    let again = folder.error(&export(&["ranks"]));
    assert!(again.contains("already") && again.contains("--force"), "{again}");
    folder.output(&[export(&["ranks"]), vec!["--force"]].concat());
    assert_eq!(files().len(), 2);
    rank("three", 0).write(&folder.path().join("more.data"));
    folder.output(&export(&["more.data"]));
    assert_eq!(files().len(), 3);
    if let Some(read) = read(&folder.path().join("tables")) {
        assert_balanced(&read);
        let measured: f64 = rows(&read, "balance").iter().map(|row| number(&row["measured"])).sum();
        assert!((measured - 30.0).abs() < 1e-9, "{measured}");
    }
}

#[test]
fn what_would_count_a_meter_twice_is_refused() {
    let folder = Folder::with(&Recorded::default());
    for number in 0..2 {
        rank("one", number).write(&folder.path().join(format!("{number}.data")));
    }
    folder.output(&export(&["0.data", "1.data"]));
    let files = || fs::read_dir(folder.path().join("tables/balance")).expect("a folder").count();
    for force in [&[][..], &["--force"]] {
        let said = folder.error(&[export(&["0.data"]), force.to_vec()].concat());
        assert!(said.contains("of package-0 of the same machine, 1.000 s of the same time"), "{said}");
        assert!(said.contains("tables/balance/") && said.contains("by one command"), "{said}");
        assert_eq!(files(), 1);
    }
    // Another boot of the machine has nothing to do with it; and what is named does help.
    rank("two", 0).write(&folder.path().join("later.data"));
    folder.output(&export(&["later.data"]));
    assert_eq!(files(), 2);
    fs::remove_dir_all(folder.path().join("tables")).expect("removed");
    folder.output(&export(&["0.data"]));
    folder.error(&export(&["0.data", "1.data"]));
    assert_eq!(files(), 1);
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let folder = Folder::with(&Recorded::default());
    let base = ["export", "--format", "parquet"];
    let refused = |arguments: &[&str], why: &str| {
        let error = folder.error(&[&base[..], arguments].concat());
        assert!(error.contains(why), "{error}");
    };
    refused(&[], "-o");
    refused(&["-o", "-"], "-o");
    for option in [&["--domain", "package-0"][..], &["--by", "rank"], &["--whole"], &["--event", "cpu-clock"]]
    {
        refused(&[&["-o", "tables"], option].concat(), "eprof fleet");
    }
    fs::write(folder.path().join("text"), "main;work 3\n").expect("writable");
    refused(&["-o", "tables", "text"], "no joules");
    fs::write(folder.path().join("file"), "").expect("writable");
    refused(&["-o", "file"], "cannot make the folder");
    let files = |name: &str| fs::read_dir(folder.path().join(name)).map_or(0, Iterator::count);
    let tables =
        ["samples", "balance", "functions", "stack_frames"].map(|table| files(&format!("tables/{table}")));
    assert_eq!(tables, [0; 4]);
}

#[test]
fn fleet_says_how_to_get_its_program() {
    let folder = Folder::with(&Recorded::default());
    let empty = tempfile::tempdir().expect("a folder");
    let program = empty.path().join("eprof");
    programs::copy(eprof_testbed::eprof().get_program(), &program);
    let run = || {
        let mut command = Command::new(&program);
        command
            .args(["fleet", "report", "tables", "--by", "node", "--help"])
            .env("PATH", empty.path().join("none"));
        command.current_dir(folder.path()).output().expect("eprof runs")
    };
    let missing = run();
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(!missing.status.success() && said.contains("cargo install --path src/fleet"), "{said}");
    // What lies beside eprof is run with the arguments as they are.
    let beside = empty.path().join("eprof-fleet");
    programs::write_script(&beside, "echo \"$@\"\nexit 3\n");
    let found = run();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "report tables --by node --help\n");
    assert_eq!(found.status.code(), Some(3));
}

/// Tables tell what recordings tell: they are their owner's, and a group's where it was let in.
#[test]
fn tables_are_read_by_their_owner_unless_a_group_was_let_in() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with(&Recorded::default());
    let mode = |path: &str| {
        let metadata = fs::metadata(folder.path().join(path)).expect("there");
        metadata.permissions().mode() & 0o777
    };
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).expect("writable");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o750)).expect("set");
    for (tables, of_folder, of_file) in [("new/tables", 0o700, 0o600), ("shared", 0o750, 0o640)] {
        folder.output(&["export", "--format", "parquet", "-o", tables]);
        assert_eq!(mode(tables), of_folder, "{tables}");
        for table in ["samples", "stack_frames", "functions", "balance"] {
            let inner = format!("{tables}/{table}");
            assert_eq!(mode(&inner), of_folder, "{inner}");
            let files = fs::read_dir(folder.path().join(&inner)).expect("a folder");
            for file in files.map(|entry| entry.expect("readable").file_name()) {
                assert_eq!(mode(&format!("{inner}/{}", file.to_string_lossy())), of_file);
            }
        }
    }
}

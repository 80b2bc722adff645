//! What the tables hold, as Parquet's own reader finds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use proptest::prelude::*;

use super::content_id::ContentId;
use super::schema::{Kind, TABLE_KEY, TABLES, Table, VERSION, VERSION_KEY};
use super::table_writer::TableWriter;
use super::{Windows, recording_id, write};
use crate::identity::{Identity, Job, Labels};
use crate::profile::{Origin, Profile, ProfileParts};
use crate::report::error::ReportError;
use crate::report::exporter::Exported;
use crate::report::fixture::{Divided, Fixture, Spent, sample_profile};
use crate::report::tree::TreeOptions;
use crate::symbolize::Symbols;
use crate::units::Joules;

/// A row's fields by the names of their columns.
type Fields = BTreeMap<String, Field>;

fn read(file: File) -> Vec<Fields> {
    let reader = SerializedFileReader::new(file).expect("a file of Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    let fields =
        |row: Row| row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
    rows.map(|row| fields(row.expect("a row"))).collect()
}

fn temporary(_: &Table) -> Result<File, ReportError> {
    Ok(tempfile::tempfile()?)
}

/// The rows of each table, by its name.
fn tables(parts: &dyn ProfileParts, symbols: &Symbols) -> BTreeMap<&'static str, Vec<Fields>> {
    let options = TreeOptions::default();
    let warn = |warning: &str| panic!("{warning}");
    let exported = Exported { profile: parts, symbols, options: &options, started: None, warn: &warn };
    let files = write(&exported, false, temporary).expect("written");
    TABLES.iter().zip(files).map(|(table, file)| (table.name, read(file))).collect()
}

fn joules(row: &Fields, name: &str) -> f64 {
    match row[name] {
        Field::Double(joules) => joules,
        ref other => panic!("{name} is {other:?}"),
    }
}

fn whole(row: &Fields, name: &str) -> i64 {
    match row[name] {
        Field::Long(number) | Field::TimestampMicros(number) => number,
        Field::Int(number) => i64::from(number),
        ref other => panic!("{name} is {other:?}"),
    }
}

fn text<'r>(row: &'r Fields, name: &str) -> &'r str {
    match &row[name] {
        Field::Str(text) => text,
        other => panic!("{name} is {other:?}"),
    }
}

/// Joules by function: each one's own, and totals. Asserts that names and stacks are found once each.
fn by_function(tables: &BTreeMap<&'static str, Vec<Fields>>, flag: &str) -> BTreeMap<String, f64> {
    let mut names = BTreeMap::new();
    for row in &tables["functions"] {
        assert!(
            names.insert(whole(row, "function_id"), text(row, "name")).is_none(),
            "{row:?} is there twice"
        );
    }
    let mut frames = BTreeSet::new();
    let mut of_stacks: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for row in &tables["stack_frames"] {
        let stack = whole(row, "stack_id");
        assert!(frames.insert((stack, whole(row, "depth"))), "{row:?} is there twice");
        if whole(row, flag) == 1 {
            of_stacks.entry(stack).or_default().push(names[&whole(row, "function_id")]);
        }
    }
    let mut sums = BTreeMap::new();
    for row in tables["samples"].iter().filter(|row| whole(row, "is_top") == 1) {
        for name in &of_stacks[&whole(row, "stack_id")] {
            *sums.entry((*name).to_owned()).or_default() += joules(row, "joules");
        }
    }
    sums
}

fn assert_balanced(tables: &BTreeMap<&'static str, Vec<Fields>>) {
    for balance in &tables["balance"] {
        let is_of =
            |row: &&Fields| row["domain"] == balance["domain"] && row["recording"] == balance["recording"];
        let functions: f64 = tables["samples"].iter().filter(is_of).map(|row| joules(row, "joules")).sum();
        let rest: f64 =
            ["static", "others", "recorder", "lost"].map(|part| joules(balance, part)).iter().sum();
        let measured = joules(balance, "measured");
        assert!(
            (functions + rest - measured).abs() <= 1e-9 * measured,
            "{functions} + {rest} in {balance:?}"
        );
        assert!((functions - joules(balance, "functions")).abs() <= 1e-9 * measured);
    }
}

#[test]
fn joules_are_those_of_the_profile() {
    let (profile, symbols) = sample_profile();
    let tables = tables(&profile, &symbols);
    assert_balanced(&tables);
    assert_eq!(tables["balance"].len(), 3);
    let measured: f64 = tables["balance"]
        .iter()
        .filter(|row| whole(row, "is_top") == 1)
        .map(|row| joules(row, "measured"))
        .sum();
    assert!((measured - 34.0).abs() < 1e-9, "{measured}");
    let own = by_function(&tables, "is_leaf");
    let near = |sums: &BTreeMap<String, f64>, name: &str, expected: f64| {
        assert!((sums[name] - expected).abs() < 1e-9, "{name}: {} J", sums[name]);
    };
    // By hand, from the table at the fixture: package and DRAM together, the cores lie in the package.
    for (name, expected) in
        [("mix", 13.5), ("walk", 2.75), ("ksys_write", 0.5), ("LazyCompile:~sum app.js:3", 1.25)]
    {
        near(&own, name, expected);
    }
    assert_eq!(own.len(), 4, "{own:?}");
    let totals = by_function(&tables, "is_first");
    for (name, expected) in [("main", 18.0), ("work", 16.75), ("walk", 2.75), ("deflate", 2.75)] {
        near(&totals, name, expected);
    }
    let sum = |name: &str| tables["samples"].iter().map(|row| whole(row, name)).sum::<i64>();
    assert_eq!(
        (sum("samples"), sum("cpu_ns")),
        (1400, 1_000_000_000),
        "once, though there are three domains"
    );
    for row in &tables["samples"] {
        assert_eq!(row["variance"], Field::Null, "the fixture has no terms of errors");
        assert_eq!(row["chance"], Field::Null);
    }
}

#[test]
fn parts_are_written_as_the_whole() {
    let (profile, symbols) = sample_profile();
    let sorted = |tables: BTreeMap<&'static str, Vec<Fields>>| -> BTreeMap<&str, Vec<String>> {
        let lines = |rows: Vec<Fields>| {
            let mut lines: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            lines.sort();
            lines
        };
        tables.into_iter().map(|(name, rows)| (name, lines(rows))).collect()
    };
    let divided = Divided::new(&profile, 2, |cell| cell % 2);
    assert_eq!(sorted(tables(&divided, &symbols)), sorted(tables(&profile, &symbols)));
}

/// A program of two functions, at whatever addresses these lie, on a node of a job.
fn of_node(node: &str, first_other: bool) -> (Profile, Symbols) {
    let mut fixture = Fixture::default();
    fixture.domain("package-0", None, crate::hardware::Method::Measured, "power PMU", [1.0, 0.5, 0.25, 0.25]);
    fixture.event("cycles", 0);
    fixture.thread(7, 7, "app", "app");
    let spent = Spent { samples: 1, millis: 1, joules: &[1.0] };
    if first_other {
        fixture.cell(0, 0, 0, "/opt/app`other@o.c:1", spent);
    }
    fixture.cell(0, 0, 0, "/opt/app`main@m.c:1  /opt/app`work@w.c:2", spent);
    let (mut profile, symbols) = fixture.finish();
    profile.recordings = vec![Origin {
        hostname: node.to_owned(),
        identity: Some(Identity {
            boot: Some(format!("boot of {node}")),
            job: Job { id: Some("4711".to_owned()), rank: Some(3), ..Job::default() },
            labels: Labels::new([("version".to_owned(), "2".to_owned())]).expect("one"),
            ..Identity::default()
        }),
        ..Origin::default()
    }];
    (profile, symbols)
}

#[test]
fn a_stack_has_one_id_on_all_nodes() {
    let [a, b] = [("n1", false), ("n2", true)].map(|(node, other)| of_node(node, other));
    assert_ne!(recording_id(&a.0), recording_id(&b.0));
    let [a, b] = [a, b].map(|(profile, symbols)| tables(&profile, &symbols));
    let ids = |tables: &BTreeMap<&'static str, Vec<Fields>>, table: &str, id: &str| -> BTreeSet<i64> {
        tables[table].iter().map(|row| whole(row, id)).collect()
    };
    for (table, id) in [("functions", "function_id"), ("stack_frames", "stack_id")] {
        let (a, b) = (ids(&a, table, id), ids(&b, table, id));
        assert!(a.is_subset(&b) && a.len() + 1 == b.len(), "{table}: {a:?} and {b:?}");
    }
    let row = &a["samples"][0];
    let texts = ["job", "node", "boot", "process", "labels", "method"].map(|name| text(row, name));
    assert_eq!(texts, ["4711", "n1", "boot of n1", "app", "\nversion=2\n", "measured"]);
    assert_eq!((whole(row, "rank"), text(row, "pod"), text(row, "cgroup")), (3, "", ""));
    // Whoever keeps tables relies on it: another id here is another version of the schema.
    assert_eq!(whole(row, "stack_id"), KNOWN_STACK);
}

/// Of `work` at line 2 of w.c, called by `main` at line 1 of m.c, both of /opt/app: by Python, after the recipe in
/// kernel-notes/parquet-tables.md.
const KNOWN_STACK: i64 = -7546524103470949412;

#[test]
fn values_come_back_over_several_groups_of_rows() {
    let table = TABLES.iter().find(|table| table.name == "samples").expect("samples");
    let mut writer = TableWriter::new(table, tempfile::tempfile().expect("a file")).expect("begun");
    let count = 70_000;
    for number in 0..count {
        let mut row = writer.row();
        for column in table.columns {
            match column.kind {
                Kind::Id | Kind::Number | Kind::Time => row.int(number * 7 - 1000),
                Kind::Flag => row.int(number % 2),
                Kind::Double => row.double(number as f64 / 3.0),
                Kind::OptionalDouble => row.optional((number % 3 != 0).then_some(number as f64)),
                Kind::Text => row.text(&format!("ü{}", number % 11)),
            };
        }
        row.end().expect("taken");
    }
    let file = writer.finish().expect("written");
    let reader = SerializedFileReader::new(file.try_clone().expect("a file")).expect("a file of Parquet");
    assert!(reader.metadata().num_row_groups() > 1);
    let metadata = reader.metadata().file_metadata().key_value_metadata().expect("metadata");
    for (key, value) in [(VERSION_KEY, VERSION), (TABLE_KEY, "samples")] {
        let found = metadata.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
        assert_eq!(found, Some(value));
    }
    let rows = read(file);
    assert_eq!(rows.len() as i64, count);
    for (number, row) in (0..count).zip(&rows) {
        assert_eq!(whole(row, "stack_id"), number * 7 - 1000);
        assert_eq!(whole(row, "is_top"), number % 2);
        assert_eq!(joules(row, "joules").to_bits(), (number as f64 / 3.0).to_bits());
        assert_eq!(row["variance"] == Field::Null, number % 3 == 0);
        assert_eq!(text(row, "node"), format!("ü{}", number % 11));
    }
}

#[test]
fn without_joules_there_are_no_tables() {
    let (mut profile, symbols) = sample_profile();
    profile.domains.clear();
    profile.cell_joules.clear();
    let options = TreeOptions::default();
    let exported =
        Exported { profile: &profile, symbols: &symbols, options: &options, started: None, warn: &|_| () };
    assert!(matches!(write(&exported, false, temporary), Err(ReportError::NoJoules(_))));
}

#[test]
fn a_sum_that_is_off_is_said() {
    let (mut profile, symbols) = sample_profile();
    profile.domains[0].balance.attributed += Joules::from_joules(1e-6);
    let said = std::cell::RefCell::new(Vec::new());
    let warn = |warning: &str| said.borrow_mut().push(warning.to_owned());
    let options = TreeOptions::default();
    let exported =
        Exported { profile: &profile, symbols: &symbols, options: &options, started: None, warn: &warn };
    write(&exported, false, temporary).expect("written");
    assert!(matches!(&said.borrow()[..], [only] if only.starts_with("package-0:")), "{said:?}");
}

#[test]
fn the_page_has_every_column() {
    let page = include_str!("../../../kernel-notes/parquet-tables.md");
    assert!(page.contains(&format!("version {VERSION}")), "the version");
    for table in TABLES {
        let (_, section) = page.split_once(&format!("## {}\n", table.name)).expect(table.name);
        let section = section.split("\n## ").next().unwrap_or_default();
        assert!(section.contains(table.meaning), "{}: {}", table.name, table.meaning);
        for column in table.columns {
            let kind = match column.kind {
                Kind::Id => "id",
                Kind::Number => "INT64",
                Kind::Flag => "INT32, 0 or 1",
                Kind::Time => "TIMESTAMP",
                Kind::Double => "DOUBLE",
                Kind::OptionalDouble => "DOUBLE or null",
                Kind::Text => "UTF-8",
            };
            let line = format!("| `{}` | {kind} | {} |", column.name, column.meaning);
            assert!(section.contains(&line), "kernel-notes/parquet-tables.md lacks {line}");
        }
    }
}

proptest! {
    /// Where one text ends and the next begins makes a difference.
    #[test]
    fn ids_tell_texts_apart(a in "[ab]{0,4}", b in "[ab]{0,4}", c in "[ab]{0,4}", d in "[ab]{0,4}") {
        let id = |first: &str, second: &str| {
            let mut id = ContentId::new("test");
            id.text(first).text(second);
            id.finish()
        };
        prop_assert_eq!(id(&a, &b) == id(&c, &d), (&a, &b) == (&c, &d));
    }
}

#[test]
fn what_is_in_a_folder_already_is_found_by_meter_and_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let second = |number: u64| Some(std::time::UNIX_EPOCH + std::time::Duration::from_secs(number));
    let put = |node: &str, name: &str, started| {
        let (mut profile, symbols) = of_node(node, false);
        profile.duration = crate::units::Nanoseconds::from_nanos(2_000_000_000);
        let options = TreeOptions::default();
        let warn = |warning: &str| panic!("{warning}");
        let exported =
            Exported { profile: &profile, symbols: &symbols, options: &options, started, warn: &warn };
        let open = |table: &Table| {
            std::fs::create_dir_all(folder.path().join(table.name))?;
            Ok(File::create(folder.path().join(table.name).join(name))?)
        };
        write(&exported, false, open).expect("written");
    };
    let found = |node: &str, started| {
        let (mut profile, symbols) = of_node(node, false);
        profile.duration = crate::units::Nanoseconds::from_nanos(10_000_000_000);
        let options = TreeOptions::default();
        let warn = |warning: &str| panic!("{warning}");
        let exported =
            Exported { profile: &profile, symbols: &symbols, options: &options, started, warn: &warn };
        let own = folder.path().join("balance/own.parquet");
        Windows::in_folder(folder.path()).expect("read").overlapping(&exported, &own)
    };
    assert_eq!(found("n1", second(100)), None, "no folder yet");
    put("n1", "there.parquet", second(105));
    put("n1", "own.parquet", second(105));
    std::fs::write(folder.path().join("balance/broken.parquet"), "x").expect("written");
    let overlap = found("n1", second(100)).expect("five seconds later it began");
    assert_eq!(overlap.file, folder.path().join("balance/there.parquet"));
    assert_eq!((&*overlap.domain, overlap.time.as_secs_f64()), ("package-0", 2.0));
    assert_eq!(found("n2", second(100)), None, "another machine's meter");
    assert_eq!(found("n1", second(90)), None, "before it");
    assert_eq!(found("n1", second(95)), None, "until it begins");
    assert_eq!(found("n1", None), None, "nobody knows when");
}

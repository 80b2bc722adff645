//! Several recordings, of files that are given and of folders.

use std::collections::BTreeSet;

use eprof::identity::{Identity, Job, Labels, WallClock};
use eprof_testbed::eprof;

use super::recording::Recorded;
use super::{Folder, number, row};

/// Where a recording says that it comes from.
pub fn identity(boot: &str, rank: u32) -> Identity {
    let labels = Labels::new([("color".to_owned(), "red".to_owned())]).expect("one");
    Identity {
        boot: Some(boot.to_owned()),
        pid_namespace: Some(u64::from(rank)),
        started: Some(WallClock { clock_ns: 1, unix_ns: 2, reading_error_ns: 3, utc_error_ns: Some(4) }),
        job: Job { id: Some("7".to_owned()), rank: Some(rank), node: Some(format!("n-{boot}")), step: None },
        labels,
        ..Identity::default()
    }
}

/// Two recordings of one boot and time, in which the same 10 J were measured, and one of another boot.
fn ranks() -> Folder {
    let folder = Folder::with(&Recorded::default());
    std::fs::create_dir(folder.path().join("ranks")).expect("writable");
    for (name, boot, rank) in [("a", "one", 0), ("b", "one", 1), ("c", "two", 2)] {
        let recorded =
            Recorded { identity: Some(identity(boot, rank)), recorder: rank + 1, ..Recorded::default() };
        recorded.write(&folder.path().join(format!("ranks/{name}.data")));
    }
    folder
}

#[test]
fn meters_count_once_for_each_boot() {
    let folder = ranks();
    let alone = number(&folder.json(&["ranks/a.data"])["balance"]["attributed"]);
    let report = folder.json(&["ranks"]);
    let total = number(&report["total_joules"]);
    assert!((total - 20.0).abs() < 1e-9, "{total} J of two machines");
    let machines = report["machines"].as_array().expect("machines");
    let names: Vec<&str> = machines.iter().filter_map(|machine| machine["name"].as_str()).collect();
    assert_eq!(names, ["n-one", "n-two"]);
    // Both recorders of one machine say that nearly all of it was theirs, which cannot be.
    assert!(
        alone > 5.0 && machines.iter().all(|machine| number(&machine["balance"]["attributed"]) < 10.0 + 1e-9)
    );
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("divided the joules of package-0"), "{warnings}");
    assert_eq!(report["recordings"][2]["identity"]["job"]["rank"], 2);
    // The order in which files are named is the same to all outputs.
    let table = |files: &[&str]| folder.output(&[&["report", "--by", "node,function"], files].concat());
    let files = ["ranks/a.data", "ranks/b.data", "ranks/c.data"];
    let turned = ["ranks/c.data", "ranks/a.data", "ranks/b.data", "ranks/a.data"];
    assert_eq!(table(&files), table(&turned));
    assert_eq!(table(&files), table(&["ranks"]));
    let by_i =
        folder.output(&["report", "--by", "node,function", "-i", files[0], "-i", files[1], "-i", files[2]]);
    assert_eq!(table(&files), by_i);
}

/// Whoever adds the parts up has the whole, of one recording and of several, where eprof itself has a part of it.
#[test]
fn the_parts_of_each_balance_in_json_are_the_whole() {
    let folder = ranks();
    // Its only process is said to be the recorder.
    let own = Recorded { identity: Some(identity("three", 3)), recorder: 4242, ..Recorded::default() };
    own.write(&folder.path().join("own.data"));
    let parts = |balance: &serde_json::Value| -> f64 {
        let parts = ["attributed", "static", "other", "lost", "recorder"];
        parts.iter().map(|part| number(&balance[part])).sum()
    };
    for files in [&["ranks/a.data"][..], &["own.data"], &["ranks", "own.data"]] {
        let report = folder.json(files);
        let total = number(&report["total_joules"]);
        assert!((parts(&report["balance"]) - total).abs() < 1e-9 * total, "{files:?}: {report:#}");
        let of_domains = report["domains"].as_array().expect("domains").iter();
        let mut found: Vec<_> =
            of_domains.map(|domain| (parts(&domain["balance"]), number(&domain["joules"]))).collect();
        let machines = report["machines"].as_array().cloned().unwrap_or_default();
        let joined: f64 = machines.iter().map(|machine| parts(&machine["balance"])).sum();
        found.extend((!machines.is_empty()).then_some((joined, total)));
        for (parts, whole) in found {
            assert!((parts - whole).abs() < 1e-9 * whole, "{files:?}: {parts} of {whole} J");
        }
        let recorder = number(&report["balance"]["recorder"]);
        assert_eq!(recorder > 1.0, files.contains(&"own.data"), "{recorder} J");
    }
}

/// A meter that was read once tells nothing: samples do, and watts that are given.
#[test]
fn a_recorder_killed_before_its_second_reading_left_samples_and_their_time() {
    let folder = ranks();
    let killed = Recorded {
        identity: Some(identity("one", 4)),
        recorder: 5,
        killed_after_readings: Some(1),
        ..Recorded::default()
    };
    killed.write(&folder.path().join("killed.data"));
    let report = folder.json(&["killed.data"]);
    assert!((number(&report["duration_s"]) - 1.0).abs() < 1e-9, "{report:#}");
    assert_eq!((&report["method"], &report["partial"]), (&"none".into(), &true.into()));
    assert_eq!(report["events"][0]["samples"], 1000);
    let text = folder.output(&["report", "killed.data"]);
    assert!(text.contains("1.000 s") && text.contains("--watts IDLE:BUSY"), "{text}");
    // A second of its only CPU, at 5 W more than the 1 W at rest.
    let estimated = folder.json(&["killed.data", "--watts", "1:6"]);
    assert!((number(&estimated["total_joules"]) - 6.0).abs() < 1e-6, "{estimated:#}");
    assert!(!estimated["warnings"].to_string().contains("--watts"), "{}", estimated["warnings"]);
    // Beside others of its machine, it is said that its joules are theirs.
    let warnings = folder.json(&["ranks/a.data", "killed.data"])["warnings"].to_string();
    assert!(
        warnings.contains("killed.data has no joules") && warnings.contains("other processes'"),
        "{warnings}"
    );
}

#[test]
fn what_a_killed_rank_left_is_named() {
    let folder = ranks();
    for (name, bytes) in [("d.data", &b""[..]), ("e.data", b"no recording"), ("notes.txt", b"no recording")] {
        std::fs::write(folder.path().join("ranks").join(name), bytes).expect("writable");
    }
    let output = eprof().arg("report").arg(folder.path().join("ranks")).output().expect("eprof runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("d.data was left out: it is empty"), "{said}");
    assert!(said.contains("e.data was left out: it does not begin as recordings do"), "{said}");
    assert!(!said.contains("notes.txt"), "{said}");
}

#[test]
fn rows_are_told_apart_by_what_recordings_say() {
    let folder = ranks();
    let names = |by: &str| -> Vec<String> {
        let report = folder.json(&["ranks", "--by", by]);
        assert_eq!(report["by"], by);
        let rows = report["rows"].as_array().expect("rows");
        let shares: f64 = rows.iter().map(|row| number(&row["self_share"])).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        let mut names: Vec<String> =
            rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)).collect();
        names.sort();
        names
    };
    assert_eq!(names("rank"), ["rank=0", "rank=1", "rank=2"]);
    assert_eq!(names("node"), ["n-one", "n-two"]);
    assert_eq!(names("label:color,job"), ["color=red, job=7"]);
    assert_eq!(names("pod"), ["[no pod]"]);
    assert_eq!(names("label:other"), ["[no label:other]"]);
    let both = folder.json(&["ranks", "--by", "rank,function", "--filter", "rank=2"]);
    assert_eq!(row(&both, "heavy")["values"][0], "rank=2");
    let csv = folder.output(&["report", "ranks", "--by", "rank,node,module", "--format", "csv"]);
    assert!(csv.lines().next().expect("titles").ends_with("total_share,rank,node"), "{csv}");
    assert!(csv.lines().nth(1).expect("a row").contains(",rank="), "{csv}");
}

/// Who looks for the rank that did nothing finds it.
#[test]
fn whoever_took_nothing_has_a_row_of_nothing() {
    let folder = ranks();
    let mut of_other = identity("three", 3);
    of_other.job.id = Some("8".to_owned());
    of_other.labels = Labels::new([("color".to_owned(), "blue".to_owned())]).expect("one");
    // Its only process is said to be the recorder.
    let idle = Recorded { identity: Some(of_other), recorder: 4242, ..Recorded::default() };
    idle.write(&folder.path().join("ranks/idle.data"));
    for (by, name) in [
        ("rank", "rank=3"),
        ("node", "n-three"),
        ("job", "job=8"),
        ("label:color", "color=blue"),
        ("rank,node", "rank=3, n-three"),
    ] {
        let report = folder.json(&["ranks", "--by", by]);
        assert_eq!(number(&row(&report, name)["self_joules"]), 0.0, "{report:#}");
        let table = folder.output(&["report", "ranks", "--by", by]);
        assert!(table.lines().any(|line| line.contains(name) && line.contains("0.0%")), "{table}");
    }
    // Functions of each: there are none of one that did nothing, which is said in their place.
    let report = folder.json(&["ranks", "--by", "rank,function"]);
    let rows = report["rows"].as_array().expect("rows");
    let idle: Vec<_> = rows.iter().filter(|row| row["values"][0] == "rank=3").collect();
    assert_eq!(idle.len(), 1, "{report:#}");
    assert_eq!((&idle[0]["name"], number(&idle[0]["self_joules"])), (&"[no samples]".into(), 0.0));
    let csv = folder.output(&["report", "ranks", "--by", "rank,module", "--format", "csv"]);
    assert!(csv.lines().any(|line| line.contains("[no samples]") && line.ends_with(",rank=3")), "{csv}");
    for by in ["rank", "rank,function"] {
        let table = folder.output(&["report", "ranks", "--by", by, "--limit", "1"]);
        assert!(table.contains("nothing was sampled of rank=3, whose"), "{table}");
    }
    let error = folder.error(&["report", "ranks", "--by", "rank,function", "--thread", "no such"]);
    assert!(error.contains("no thread's name matches --thread no such"), "{error}");
    // One that says nothing of itself is no rank.
    Recorded { recorder: 4242, ..Recorded::default() }.write(&folder.path().join("ranks/stranger.data"));
    let report = folder.json(&["ranks", "--by", "rank"]);
    let rows = report["rows"].as_array().expect("rows").iter();
    let names: BTreeSet<&str> = rows.filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from(["rank=0", "rank=1", "rank=2", "rank=3"]));
}

#[test]
fn pictures_and_exports_have_several_recordings_too() {
    let folder = ranks();
    folder.output(&["flamegraph", "ranks", "--by", "node,rank", "-o", "x.svg"]);
    let picture = std::fs::read_to_string(folder.path().join("x.svg")).expect("a picture");
    assert!(picture.contains("n-one rank=1") && picture.contains("20"), "{picture}");
    let folded = folder.output(&["export", "ranks", "--format", "collapsed", "--by", "rank"]);
    assert!(folded.lines().any(|line| line.starts_with("rank=2;")), "{folded}");
    folder.output(&["report", "ranks", "--format", "html", "-o", "x.html"]);
    let page = std::fs::read_to_string(folder.path().join("x.html")).expect("a page");
    assert!(page.contains("3 recordings of 2 machines"));
    folder.output(&["flamegraph", "ranks", "--diff", "ranks/a.data", "-o", "x.svg"]);
}

#[test]
fn what_several_recordings_cannot_be_is_said() {
    let folder = ranks();
    std::fs::create_dir(folder.path().join("empty")).expect("writable");
    std::fs::write(folder.path().join("ranks/short.data"), b"PERFILE2 and no more").expect("writable");
    let said = |arguments: &[&str], what: &str| {
        let error = folder.error(arguments);
        assert!(error.contains(what), "{arguments:?}: {error}");
    };
    said(&["report", "empty"], "no recording is in the folder empty");
    said(&["report", "ranks/a.data", "gone.data"], "gone.data");
    // Nothing is in what ends within its header: of a folder it is left out, and where it is named it is an error.
    folder.output(&["report", "ranks"]);
    said(&["report", "ranks/a.data", "ranks/short.data"], "short.data");
    let header = [b"PERFILE2", &104u64.to_le_bytes()[..], &[0; 96]].concat();
    std::fs::write(folder.path().join("ranks/nothing.data"), header).expect("writable");
    said(&["report", "ranks"], "nothing.data");
    said(&["report", "ranks/a.data", "ranks/b.data", "--by", "bucket"], "buckets are stretches of one");
    said(&["report", "--by", "function,line"], "one kind of row");
    said(&["report", "--by", "rank,domain"], "domains are not told apart");
    said(&["report", "--by", "label:"], "label:KEY");
    let perf_data = ["export", "--format", "perf-data", "-o", "x.data", "ranks/a.data", "ranks/b.data"];
    said(&perf_data, "one file at a time");
    said(&["report", "ranks/a.data", "ranks/b.data", "-o", "ranks/b.data"], "it is read");
}

/// With little memory one is read after the other, with much as many at once as there are CPUs.
#[test]
fn nothing_depends_on_how_many_are_read_at_once() {
    let folder = ranks();
    for (rank, boot) in (3..12).zip(["one", "two", "three"].into_iter().cycle()) {
        let recorded =
            Recorded { identity: Some(identity(boot, rank)), recorder: rank + 1, ..Recorded::default() };
        recorded.write(&folder.path().join(format!("ranks/{rank}.data")));
    }
    let of = |arguments: &[&str]| {
        ["64M", "8G"].map(|memory| folder.output(&[arguments, &["--memory", memory]].concat()))
    };
    for arguments in [
        &["report", "ranks", "--by", "rank,function", "--limit", "0"][..],
        &["report", "ranks", "--children"],
        &["export", "ranks", "--format", "collapsed", "--by", "node,rank"],
    ] {
        let [one_by_one, at_once] = of(arguments);
        assert_eq!(one_by_one, at_once, "{arguments:?}");
    }
    for name in ["first.data", "second.data"] {
        std::fs::write(folder.path().join(name), b"PERFILE2 and no more").expect("writable");
    }
    for memory in ["64M", "8G"] {
        let files = ["ranks/a.data", "first.data", "ranks/b.data", "second.data", "ranks/c.data"];
        let error = folder.error(&[&["report", "--memory", memory], &files[..]].concat());
        assert!(error.contains("first.data") && !error.contains("second.data"), "{error}");
    }
}

#[test]
fn recordings_that_do_not_say_where_they_come_from_are_read() {
    let folder = ranks();
    let header = folder.output(&["script", "--header-only"]);
    assert!(header.contains("# identity : not known"), "{header}");
    assert!(folder.json(&[]).get("recordings").is_none());
    let report = folder.json(&["eprof.data", "ranks/c.data"]);
    assert!(report["warnings"].to_string().contains("not known of which boot"), "{}", report["warnings"]);
    assert_eq!(report["recordings"].as_array().map(Vec::len), Some(2));
    let known = folder.output(&["script", "--header-only", "ranks/c.data"]);
    for line in ["# boot id : two", "# rank : 2", "# label color : red", "± 0.000000 s of UTC"] {
        assert!(known.contains(line), "{line}: {known}");
    }
    let samples = folder.output(&["script", "--header", "ranks/c.data"]);
    assert!(samples.starts_with(&known) && samples.len() > known.len());
}

#[test]
fn labels_are_keys_and_values() {
    for (arguments, what) in [
        (&["--label", "x"][..], "a label is KEY=VALUE"),
        (&["--label", "1x=y"], "begins with a letter"),
        (&["--label", "x=a\nb"], "no control characters"),
        (&["--label", "x=1", "--label", "x=2"], "more than once"),
    ] {
        let output = eprof().arg("record").args(arguments).args(["--", "true"]).output().expect("eprof runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(what), "{arguments:?}: {error}");
    }
}

/// Two recorders had the same thread: sums over the pieces of time, which speedscope has, are those of the table.
#[test]
fn every_export_has_a_thread_once() {
    let folder = ranks();
    for (name, recorder) in [("a", 1), ("b", 2)] {
        let identity = Some(Identity { pid_namespace: Some(9), ..identity("one", 0) });
        let recorded = Recorded { identity, recorder, ..Recorded::default() };
        recorded.write(&folder.path().join(format!("{name}.data")));
    }
    let both = ["a.data", "b.data"];
    let joules = number(&folder.json(&both)["balance"]["attributed"]);
    assert!(joules > 5.0, "{joules}");
    folder.output(&["export", "a.data", "b.data", "--format", "speedscope", "-o", "x.json"]);
    let file = std::fs::read(folder.path().join("x.json")).expect("a file");
    let file: serde_json::Value = serde_json::from_slice(&file).expect("JSON");
    let weights = file["profiles"][0]["weights"].as_array().expect("weights");
    let in_time: u64 = weights.iter().filter_map(serde_json::Value::as_u64).sum();
    assert!((in_time as f64 * 1e-6 - joules).abs() < 2e-6, "{in_time} microjoules of {joules} J");
    let folded = folder.output(&["export", "a.data", "b.data", "--format", "collapsed"]);
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    assert!((lines.sum::<u64>() as f64 * 1e-6 - joules).abs() < 2e-6, "{folded}");
}

#[test]
fn what_is_asked_for_and_nobody_says_is_told() {
    let folder = ranks();
    let warned = |arguments: &[&str], what: &str| {
        let output = eprof().current_dir(folder.path()).args(arguments).output().expect("eprof runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(what), "{arguments:?}: {said}");
    };
    warned(&["report", "ranks", "--by", "label:Color"], "no recording has a label Color: there are color");
    std::fs::create_dir(folder.path().join("ranks/deeper")).expect("writable");
    std::fs::copy(folder.path().join("ranks/a.data"), folder.path().join("ranks/deeper/a.data"))
        .expect("copied");
    warned(&["report", "ranks"], "there are others in 1 folder within (ranks/deeper)");
    let error = folder.error(&["script", "ranks"]);
    assert!(error.contains("ranks is a folder of recordings"), "{error}");
    std::fs::remove_file(folder.path().join("eprof.data")).expect("there");
    std::fs::copy(folder.path().join("ranks/a.data"), folder.path().join("eprof-0.data")).expect("copied");
    let error = folder.error(&["report"]);
    assert!(error.contains("there is another recording, which `-i .` reads"), "{error}");
}

//! Joules that no meter counted never look measured, whatever they are written as.

use std::fs;
use std::io::Read;

use perf_data::PerfData;

use super::recording::Recorded;
use super::{Folder, number, row};

fn estimated() -> Folder {
    Folder::with(&Recorded { watts_error: Some(0.6), ..Recorded::default() })
}

#[test]
fn the_table_says_estimated_and_shows_no_watts() {
    let table = estimated().output(&["report", "--width", "100"]);
    assert!(table.contains("10.00 J in 1.000 s (10.00 W), ESTIMATED, not measured\n"), "{table}");
    assert!(table.contains("estimated: typical watts, ± 60 %\n"), "{table}");
    let heading = table.lines().find(|line| line.starts_with("balance, J")).expect("a balance");
    assert!(heading.contains(" estimated ") && !heading.contains("measured"), "{heading}");
    assert!(table.contains("lost = estimated, "), "{table}");
    assert!(!table.replace("ESTIMATED, not measured", "").contains("measured"), "{table}");
    let titles = table.lines().find(|line| line.starts_with("joules")).expect("titles");
    assert!(!titles.contains("watts"), "{titles}");
    let flat = table.replace("\n  ", " ");
    assert!(flat.contains("± of an estimate: of sampling, of equal watts for all code (20 %)"), "{table}");
    assert!(flat.contains("typical watts for this machine (60 %, all rows alike)"), "{table}");
    assert!(flat.contains("10.00 W ± ") && flat.contains(" W of all code"), "{table}");
    let whole = estimated().output(&["report", "--whole"]);
    assert!(whole.contains("everything estimated") && !whole.contains("everything measured"), "{whole}");
}

#[test]
fn what_a_meter_counted_keeps_its_watts() {
    let table = Folder::with(&Recorded::default()).output(&["report", "--width", "100"]);
    assert!(table.contains("lost = measured, ") && table.contains("  watts  "), "{table}");
    assert!(!table.to_lowercase().contains("estimate"), "{table}");
}

#[test]
fn the_error_holds_what_the_watts_may_be_off() {
    let report = estimated().json(&[]);
    assert_eq!((&report["method"], number(&report["assumed_watts_error"])), (&"estimated".into(), 0.6));
    let heavy = row(&report, "heavy");
    let share = number(&heavy["stderr_joules"]) / number(&heavy["self_joules"]);
    // sqrt(0.6^2 + 0.2^2), and a little for sampling.
    assert!((0.632..0.66).contains(&share), "{share}");
    assert!(heavy["self_watts"].is_null(), "{heavy}");
    let told = Folder::with(&Recorded { watts_error: Some(0.0), ..Recorded::default() });
    let heavy = row(&told.json(&[]), "heavy").clone();
    let share = number(&heavy["stderr_joules"]) / number(&heavy["self_joules"]);
    assert!((0.2..0.25).contains(&share), "{share}");
    let table = told.output(&["report"]).replace("\n  ", " ");
    assert!(table.contains("estimated: by --watts\n") && table.contains("takes --watts for true"), "{table}");
    let measured = Folder::with(&Recorded::default()).json(&[]);
    assert!(measured["assumed_watts_error"].is_null() && !row(&measured, "heavy")["self_watts"].is_null());
}

/// Joules and their error, of the line that has this text.
fn joules_and_error(table: &str, of: &str) -> (f64, f64) {
    let line = table.lines().find(|line| line.contains(of)).unwrap_or_else(|| panic!("no {of}: {table}"));
    let mut numbers = line.split_whitespace().map(|number| number.parse().expect("a number"));
    (numbers.next().expect("joules"), numbers.next().expect("an error"))
}

#[test]
fn rows_that_are_not_shown_are_as_wrong_as_their_sum() {
    let folder = estimated();
    let cut = joules_and_error(&folder.output(&["report", "--limit", "1"]), "more (--limit)");
    let filtered =
        joules_and_error(&folder.output(&["report", "--filter", "heavy"]), "not matching (--filter)");
    assert_eq!(cut, filtered, "the same rows");
    // sqrt(0.6^2 + 0.2^2) of all of them, for what is assumed of one is assumed of the others.
    assert!((0.63..0.66).contains(&(cut.1 / cut.0)), "{cut:?}");
    // How it is divided does not matter to the sum of everything.
    let everything = joules_and_error(&folder.output(&["report", "--whole"]), "everything estimated");
    assert!((everything.1 / everything.0 - 0.6).abs() < 0.001, "{everything:?}");
}

#[test]
fn rows_of_tables_for_programs_say_it_one_by_one() {
    for by in ["function", "thread", "bucket"] {
        let text = estimated().output(&["report", "--format", "csv", "--by", by]);
        let mut lines = text.lines();
        let titles = lines.next().expect("titles").split(',');
        let behind = titles.rev().position(|title| title == "method").expect("a column");
        let says_it = |line: &str| line.rsplit(',').nth(behind) == Some("estimated");
        assert!(lines.clone().count() > 0 && lines.all(says_it), "{text}");
    }
    let buckets = estimated().output(&["report", "--by", "bucket"]);
    assert!(buckets.contains("as estimated: ") && !buckets.contains("as measured"), "{buckets}");
}

#[test]
fn folded_stacks_stand_on_a_frame_that_says_it() {
    let text = estimated().output(&["report", "--format", "collapsed", "--whole"]);
    let mut sum = 0;
    for line in text.lines() {
        // As flamegraph.pl, inferno, speedscope and the Firefox Profiler read it: all up to the last blank, a number.
        let (stack, number) = line.rsplit_once(' ').expect("a stack and a number");
        assert!(stack.starts_with("[estimated];"), "{line}");
        sum += number.parse::<u64>().expect("microjoules");
    }
    assert_eq!(sum, 10_000_000);
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut inferno::flamegraph::Options::default(), text.lines(), &mut svg)
        .expect("inferno reads all lines");
    let svg = String::from_utf8(svg).expect("text");
    assert!(svg.contains("[estimated] (10,000,000 samples, 100.00%)"));
    assert_eq!(text, estimated().output(&["export", "--format", "collapsed", "--whole"]));
    assert!(
        !Folder::with(&Recorded::default())
            .output(&["export", "--format", "collapsed"])
            .contains("estimated")
    );
    let samples = estimated().output(&["export", "--format", "collapsed", "--weight", "samples"]);
    assert!(!samples.contains("estimated"), "samples are no estimate");
}

#[test]
fn exports_pages_and_pictures_say_it() {
    let folder = estimated();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("written");
    let speedscope: serde_json::Value =
        serde_json::from_str(&folder.output(&["export", "--format", "speedscope"])).expect("JSON");
    assert_eq!(speedscope["profiles"][0]["name"], "app --work (microjoules, estimated)");

    folder.output(&["export", "--format", "pprof", "-o", "energy.pb.gz"]);
    let mut pprof = Vec::new();
    let file = fs::File::open(folder.path().join("energy.pb.gz")).expect("the profile");
    flate2::read::GzDecoder::new(file).read_to_end(&mut pprof).expect("gzip");
    let comment = b"energy is ESTIMATED from CPU time and assumed watts, not measured";
    assert!(pprof.windows(comment.len()).any(|window| window == comment));

    let said = folder.run(&["export", "--format", "perf-data"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("10.00 J (estimated) in 1000 samples"));
    let copy = PerfData::open(&folder.path().join("energy.data")).expect("a recording");
    assert_eq!(copy.events()[0].name, "estimated-energy-nanojoules");

    let said = folder.run(&["script", "--energy"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains(" J estimated\n"), "readings in a script");

    folder.output(&["report", "--format", "html", "-o", "energy.html"]);
    let page = read("energy.html");
    assert!(page.contains("<title>app --work - energy, estimated</title>"), "the title");
    assert!(page.contains(r#""whole":"estimated""#), "the script's data");
    folder.output(&["report", "--by", "bucket", "--svg", "buckets.svg"]);
    assert!(read("buckets.svg").contains("as estimated"));
    folder.output(&["flamegraph"]);
    assert!(read("energy.svg").contains("ESTIMATED, not measured (estimate)"));
    Recorded::default().write(&folder.path().join("measured.data"));
    let svg = folder.output(&["flamegraph", "-i", "measured.data", "--diff", "eprof.data", "-o", "-"]);
    assert!(svg.contains("before ESTIMATED, not measured (estimate), now measured (power PMU)"));
}

//! `eprof report`, `flamegraph` and `export` as a user runs them, on a recording whose joules are known.

mod annotate;
mod call_paths;
mod estimates;
mod firefox;
mod kernel;
mod otlp;
mod outputs;
mod parquet;
pub mod recording;
mod several;
mod verified;
mod view;

use std::path::Path;
use std::process::{Output, Stdio};

use eprof_testbed::{eprof, has_program, skip};
use recording::Recorded;

/// A folder with a recording in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(recorded: &Recorded<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        recorded.write(&folder.path().join("eprof.data"));
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        eprof().args(arguments).current_dir(self.path()).output().expect("eprof runs")
    }

    /// Standard output of a run that must succeed.
    fn output(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Standard error of a run that must fail.
    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} succeeds");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).expect("text")
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let arguments = [&["report", "--format", "json"], arguments].concat();
        serde_json::from_str(&self.output(&arguments)).expect("JSON")
    }
}

/// A program of three functions, and one sample of five hundred frames without names.
fn with_a_garbage_stack() -> String {
    let frames: Vec<String> =
        (0..500).map(|number| format!("[unknown] {:x}", 0x7f00_0000_0000_u64 + number)).collect();
    format!(
        "main;work::run;work::first 500\nmain;work::run;work::second 300\nmain;work::third 199\n{} 1\n",
        frames.join(";")
    )
}

fn row<'a>(report: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let rows = report["rows"].as_array().expect("rows");
    let named = |row: &&serde_json::Value| row["name"].as_str().is_some_and(|text| text.ends_with(name));
    rows.iter().find(named).unwrap_or_else(|| panic!("no row {name} in {rows:#?}"))
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn json_has_the_joules_and_their_balance() {
    let report = Folder::with(&Recorded::default()).json(&[]);
    assert_eq!(report["method"], "measured");
    let total = number(&report["total_joules"]);
    assert!((total - 10.0).abs() < 1e-9, "{total} J");
    assert!((number(&report["duration_s"]) - 1.0).abs() < 1e-9);
    assert_eq!(report["domains"][0]["name"], "package-0");
    assert_eq!(report["domains"][0]["source"], "power PMU");
    assert_eq!(report["events"][0]["samples"], 1000);
    let parts: f64 = ["attributed", "static", "other", "recorder", "lost"]
        .iter()
        .map(|part| number(&report["balance"][part]))
        .sum();
    assert!((parts - total).abs() < 1e-9 * total, "{parts} J of {total} J");
    let rows = report["rows"].as_array().expect("rows").iter();
    let own: f64 = rows.map(|row| number(&row["self_joules"])).sum();
    assert!((own - number(&report["balance"]["attributed"])).abs() < 1e-9 * total);
}

#[test]
fn three_of_four_samples_are_three_quarters_of_the_joules() {
    let report = Folder::with(&Recorded::default()).json(&[]);
    let (heavy, light) = (row(&report, "heavy"), row(&report, "light"));
    assert!((number(&heavy["self_share"]) - 0.75).abs() < 0.002, "{heavy:#}");
    assert!((number(&light["self_share"]) - 0.25).abs() < 0.002, "{light:#}");
    assert_eq!(heavy["self_samples"], 749);
    // Both were called by one function, which spent nothing itself.
    let caller = row(&report, "Recorded::write");
    assert_eq!((number(&caller["self_joules"]), caller["total_samples"].as_u64()), (0.0, Some(1000)));
}

#[test]
fn the_recording_is_named_with_or_without_its_option() {
    let folder = Folder::with(&Recorded::default());
    std::fs::rename(folder.path().join("eprof.data"), folder.path().join("x.data")).expect("renamed");
    let svg = |arguments: &[&str]| folder.output(&[&["flamegraph", "-o", "-"], arguments].concat());
    assert_eq!(svg(&["x.data"]), svg(&["-i", "x.data"]));
    for verb in [&["report"][..], &["script"], &["export", "--format", "collapsed"]] {
        let named = |how: &[&str]| folder.output(&[verb, how].concat());
        assert_eq!(named(&["x.data"]), named(&["-i", "x.data"]), "{verb:?}");
        let both = folder.run(&[verb, &["-i", "x.data", "y.data"]].concat());
        assert_eq!(both.status.code(), Some(2), "{verb:?}: which of the two?");
    }
    // Neither is written.
    let error = folder.error(&["flamegraph", "x.data", "-o", "x.data"]);
    assert!(error.contains("it is read"), "{error}");
}

#[test]
fn a_table_in_a_pipe_is_not_cut_and_obeys_columns() {
    let long = format!("/nonexistent/lib{}.so", "long".repeat(40));
    let folder = Folder::with(&Recorded { strange_file: &long, ..Recorded::default() });
    let table = |columns: Option<&str>| {
        let mut command = eprof();
        command.args(["report", "--by", "module"]).current_dir(folder.path()).env_remove("COLUMNS");
        let output = command.envs(columns.map(|columns| ("COLUMNS", columns))).output().expect("eprof runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let name = long.trim_start_matches("/nonexistent/");
    assert!(table(None).contains(name), "{}", table(None));
    let narrow = table(Some("80"));
    // A word that is longer than a line stays whole; rows do not.
    let rows = narrow.lines().filter(|line| line.contains('%'));
    assert!(rows.clone().count() >= 3 && rows.clone().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(!rows.clone().any(|row| row.contains(name)), "{narrow}");
    assert!(table(Some("0")).contains(name), "no width is no limit");
}

#[test]
fn the_table_is_80_columns_of_plain_text() {
    let folder = Folder::with(&Recorded::default());
    let table = folder.output(&["report", "--by", "line", "--width", "80"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(!table.contains('\x1b'));
    assert!(table.starts_with("app --work\n10.00 J in 1.000 s (10.00 W), measured\n"), "{table}");
    // Optimised binaries have names and no lines.
    assert!(table.contains("recording.rs:") || !cfg!(debug_assertions), "{table}");
    let colored = folder.output(&["report", "--color", "always", "--width", "100"]);
    assert!(colored.contains("\x1b[1m"));
}

#[test]
fn callers_callees_filter_and_limit() {
    let folder = Folder::with(&Recorded::default());
    let callers = folder.json(&["--callers", "light"]);
    assert!(row(&callers, "Recorded::write")["self_samples"].as_u64() == Some(250), "{callers:#}");
    let callees = folder.json(&["--callees", "Recorded.*write"]);
    assert_eq!(row(&callees, "heavy")["self_samples"], 749);
    let filtered = folder.json(&["--filter", "heavy|light", "--limit", "1"]);
    assert_eq!(filtered["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(filtered["rows_cut"]["samples"], 250);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::with(&Recorded::default());
    for format in ["table", "json", "csv", "collapsed"] {
        let mut child = eprof()
            .args(["report", "--format", format])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("eprof starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("eprof ends");
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("error: "), "{format}");
    }
}

#[test]
fn sorted_by_totals_a_table_has_them() {
    let folder = Folder::with(&Recorded::default());
    let sorted = folder.output(&["report", "--sort", "total"]);
    assert!(sorted.contains("total%"), "{sorted}");
    assert_eq!(sorted, folder.output(&["report", "--children"]));
}

#[test]
fn errors_say_what_to_do() {
    let folder = Folder::with(&Recorded::default());
    let error = folder.error(&["report", "--domain", "psys"]);
    assert_eq!(
        error,
        "eprof: error: there is no energy domain \"psys\" in this recording; there are: package-0\n"
    );
    let error = folder.error(&["report", "-i", "missing.data"]);
    assert!(error.contains("missing.data") && error.contains("No such file"), "{error}");
    let error = folder.error(&["report", "--watts", "65:10"]);
    assert!(error.contains("a busy machine needs no less than an idle one"), "{error}");
    let nowhere = tempfile::tempdir().expect("a temporary folder");
    let output = eprof().arg("report").current_dir(nowhere.path()).output().expect("eprof runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("make one with `eprof record COMMAND`"), "{error}");
    // A folder that is missing or mistyped, to write to and to read.
    for command in [&["flamegraph", "-o", "runs/7/e.svg"][..], &["record", "-o", "runs/7/x.data", "true"]] {
        let error = folder.error(command);
        assert!(error.contains("mkdir -p runs/7`") && error.matches("cannot write").count() == 1, "{error}");
    }
    for name in ["rnus", "rnus/"] {
        let error = folder.error(&["report", name]);
        assert!(error.contains(&format!("cannot read {name}: there is no such folder or file")), "{error}");
    }
}

/// What must be known of a recording is no help where nothing comes of it.
#[test]
fn an_error_stands_alone() {
    let folder = Folder::with(&Recorded::default());
    for arguments in [
        &["flamegraph", "--thread", "nobody"][..],
        &["flamegraph", "-o", "none/a.svg"],
        &["view", "--thread", "nobody"],
        &["annotate", "("],
        &["export", "--format", "pprof", "-o", "none/a.pb"],
    ] {
        let error = folder.error(arguments);
        assert!(error.starts_with("eprof: error: ") && error.lines().count() == 1, "{arguments:?}: {error}");
    }
    assert!(folder.error(&["flamegraph", "-o", "none/a.svg"]).contains("make it with `mkdir -p none`"));
}

#[test]
fn a_flamegraph_is_drawn_and_compared() {
    let folder = Folder::with(&Recorded::default());
    folder.output(&["flamegraph"]);
    let svg = std::fs::read_to_string(folder.path().join("energy.svg")).expect("the picture");
    assert!(svg.contains("10.00 J (package-0): app --work"), "no title");
    assert!(svg.contains("measured (power PMU)"), "no subtitle");
    assert!(svg.contains("heavy (7.49"), "no frame of 7.49 J");
    assert_eq!(svg, folder.output(&["flamegraph", "-o", "-"]), "two runs draw two pictures");

    let by_watts = folder.output(&["flamegraph", "--colors", "watts", "-o", "-"]);
    let by_kind = folder.output(&["flamegraph", "--colors", "kind", "-o", "-"]);
    assert!(by_watts.contains("own code: yellow ") && !by_kind.contains("own code: yellow "), "no legend");
    // They are measured, but all functions draw the same.
    assert_eq!(svg, by_kind);

    Recorded { heavy_of_four: 1, ..Recorded::default() }.write(&folder.path().join("before.data"));
    let svg = folder.output(&["flamegraph", "--diff", "before.data", "-o", "-"]);
    let title = svg.split("<title>").find(|title| title.contains("heavy (")).expect("a frame of heavy");
    // Both are said of what they are.
    let change = "change: total +5.000 J, itself +5.000 J ± ";
    assert!(title.contains(change), "{}", &title[..80]);
}

#[test]
fn a_flamegraph_is_also_a_picture_of_pixels() {
    let folder = Folder::with(&Recorded::default());
    Recorded { heavy_of_four: 2, ..Recorded::default() }.write(&folder.path().join("before.data"));
    let picture = |arguments: &[&str], name: &str| {
        folder.output(&[&["flamegraph"], arguments].concat());
        let file = std::fs::read(folder.path().join(name)).expect("a picture");
        assert_eq!(file[..8], *b"\x89PNG\r\n\x1a\n");
        let number = |at: usize| file[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        assert_eq!(number(16), 1600, "its width");
        assert!(number(20) > 80, "rows of frames below the title");
        file
    };
    let by_name = picture(&["-o", "a.png"], "a.png");
    assert_eq!(by_name, picture(&["--format", "png"], "energy.png"), "two runs draw two pictures");
    assert_ne!(by_name, picture(&["-o", "b.png", "--diff", "before.data"], "b.png"));
    assert_ne!(by_name, picture(&["-o", "c.png", "--title", "Another"], "c.png"));
    assert!(folder.output(&["flamegraph", "-o", "-", "--format", "svg"]).contains("<svg"));
}

#[test]
fn a_flamegraph_is_also_text() {
    let folder = Folder::with(&Recorded::default());
    let text = folder.output(&["flamegraph", "--format", "text"]);
    assert!(text.starts_with("10.00 J (package-0): app --work\nmeasured (power PMU)\n"), "{text}");
    let heavy = text.lines().find(|line| line.ends_with("heavy")).expect("a row");
    assert!(heavy.contains("74.9%") && heavy.contains("7.490 J") && heavy.contains("██████"), "{heavy}");
    assert!(!folder.path().join("energy.svg").exists() && !text.contains('\u{1b}'), "{text}");
    let arguments = ["flamegraph", "--format", "text", "--color", "always"];
    let narrow = eprof().args(arguments).env("COLUMNS", "50").current_dir(folder.path()).output();
    let narrow = String::from_utf8(narrow.expect("eprof runs").stdout).expect("text");
    assert!(narrow.contains("\u{1b}[93m"), "{narrow}");
    let plain =
        regex::Regex::new("\u{1b}\\[[0-9]*m").expect("a pattern").replace_all(&narrow, "").into_owned();
    assert!(plain.lines().all(|line| line.chars().count() <= 50), "{plain}");
    Recorded { heavy_of_four: 1, ..Recorded::default() }.write(&folder.path().join("older.data"));
    let change = folder.output(&["flamegraph", "--format", "text", "--diff", "older.data"]);
    assert!(
        change.contains("before: 10.00 J, measured") && change.contains("now: 10.00 J, measured"),
        "{change}"
    );
    let heavy = change.lines().find(|line| line.contains("::heavy  itself ")).expect("its row");
    assert!(heavy.contains("74.9%") && heavy.contains("7.490 J") && heavy.contains("+5.000 J"), "{heavy}");
    folder.output(&["flamegraph", "--format", "text", "-o", "flames.txt"]);
    let written = std::fs::read_to_string(folder.path().join("flames.txt")).expect("the text");
    assert_eq!(written, text);
}

#[test]
fn exports_hold_all_joules() {
    let folder = Folder::with(&Recorded::default());
    let collapsed = folder.output(&["export", "--format", "collapsed"]);
    let sum: u64 = collapsed
        .lines()
        .map(|line| line.rsplit(' ').next().expect("a number").parse::<u64>().expect("µJ"))
        .sum();
    assert_eq!(sum, 10_000_000);
    assert_eq!(collapsed, folder.output(&["report", "--format", "collapsed"]));

    let speedscope: serde_json::Value =
        serde_json::from_str(&folder.output(&["export", "--format", "speedscope"])).expect("JSON");
    assert_eq!(speedscope["profiles"][0]["endValue"], 10_000_000);

    folder.output(&["export", "--format", "pprof", "-o", "energy.pb"]);
    let file = std::fs::File::open(folder.path().join("energy.pb")).expect("the profile");
    let mut pprof = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut pprof).expect("gzip");
    let has = |text: &[u8]| pprof.windows(text.len()).any(|window| window == text);
    assert!(has(b"microjoules") && has(b"energy of package-0"));

    folder.output(&["export", "--format", "perf-data"]);
    let report = folder.json(&["-i", "energy.data", "--weight", "count"]);
    // Nanojoules are the copy's events.
    let nanojoules: u64 = report["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["self_count"].as_u64().expect("nJ"))
        .sum();
    assert_eq!(nanojoules, 10_000_000_000);
    assert!(
        folder
            .error(&["export", "--format", "perf-data", "-o", "eprof.data"])
            .contains("name another file with -o")
    );
}

#[test]
fn a_page_shows_the_joules_of_a_chosen_time() {
    let folder = Folder::with(&Recorded::default());
    assert!(folder.error(&["report", "--format", "html"]).contains("-o energy.html"));
    folder.output(&["report", "--format", "html", "-o", "energy.html"]);
    let page = std::fs::read_to_string(folder.path().join("energy.html")).expect("the page");
    assert!(!page.contains("http:") && !page.contains("https:"), "the page loads something");
    if !has_program("node", &["--version"]) {
        return skip("node is not installed");
    }
    // The page's own arithmetic on the page's own data: all of it, and the first tenth of the time.
    let test = r#"
        const fs = require('fs');
        const page = fs.readFileSync('energy.html', 'utf8');
        const data = JSON.parse(page.split('id="data">')[1].split('</script>')[0]);
        fs.writeFileSync('page.js', page.split('<script>')[1].split('</script>')[0]);
        const { profile, layout } = require('./page.js');
        const model = profile.unpack(data);
        const sums = (to) => {
            const leaves = profile.leaves(model, 0, to);
            const nodes = profile.nodes(model, leaves);
            const functions = profile.functions(model, leaves, nodes);
            const heavy = data.functions.name.findIndex((name) => name.endsWith('heavy'));
            const tree = { parent: model.parent, fn: model.fn, total: nodes.total };
            const { boxes } = layout.boxes(tree, 0, new Set(), 0);
            const fits = boxes.every((box) => box.x + box.weight <= nodes.total[0] + 1e-6);
            return [nodes.total[0], functions.own[heavy], functions.own.reduce((a, b) => a + b), fits];
        };
        const tenth = model.edges.findIndex((edge) => edge > 0.0999);
        console.log(JSON.stringify([sums(model.slices), sums(tenth), model.edges[tenth]]));
    "#;
    let output = std::process::Command::new("node").args(["-e", test]).current_dir(folder.path()).output();
    let output = output.expect("node runs");
    let sums: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let [all, part] = [&sums[0], &sums[1]];
    assert!((number(&all[0]) - 10e6).abs() < 100.0 && all[0] == all[2], "{sums}");
    assert!((number(&all[1]) - 7.49e6).abs() < 0.01e6, "{sums}");
    // 10 W for the tenth.
    let seconds = number(&sums[2]);
    assert!((number(&part[0]) - 10e6 * seconds).abs() < 0.02e6, "{sums}");
    assert!((number(&part[1]) / number(&part[0]) - 0.75).abs() < 0.01, "{sums}");
    assert_eq!((&all[3], &part[3]), (&true.into(), &true.into()));
}

#[test]
fn hostile_names_stay_names_in_every_format() {
    const EVIL: &str = "\x1b]0;x\x07<script>alert(1)</script>\";\n=1+1\u{202e}";
    let folder = Folder::with(&Recorded {
        comm: EVIL,
        argv: &[EVIL],
        warning: EVIL,
        domain: EVIL,
        strange_file: "/tmp/\x1b[2J<script>\";a b.so",
        ..Recorded::default()
    });
    let runs: [&[&str]; 8] = [
        &["report", "--by", "module"],
        &["report", "--by", "thread"],
        &["report", "--format", "json", "--by", "command"],
        &["report", "--format", "csv", "--by", "module"],
        &["report", "--format", "collapsed"],
        &["flamegraph", "-o", "-", "--root", "thread"],
        &["export", "--format", "speedscope"],
        &["report", "--by", "domain"],
    ];
    for arguments in runs {
        let output = folder.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        for text in [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        {
            let harmful = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
            assert!(!text.contains(harmful), "{arguments:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with('=')), "{arguments:?}: {text:?}");
        }
    }
    let svg = folder.output(&["flamegraph", "-o", "-", "--root", "thread"]);
    assert_eq!(svg.matches("<script").count(), 1, "only inferno's own");
}

/// However deep a damaged stack is, the rest of the program is on the first screen.
#[test]
fn one_garbage_stack_pushes_nothing_out_of_sight() {
    let folder = Folder::with(&Recorded::default());
    std::fs::write(folder.path().join("garbage.folded"), with_a_garbage_stack()).expect("written");
    folder.output(&["flamegraph", "garbage.folded", "-o", "garbage.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("garbage.svg")).expect("a picture");
    let (_, height) = svg.split_once(" height=\"").expect("a height");
    let height: f64 = height.split('"').next().and_then(|height| height.parse().ok()).expect("a number");
    assert!(height < 500.0, "{height} pixels");
    for drawn in [
        "work::first (500",
        "work::second (300",
        "work::third (199",
        "[deeper] (1 ",
        "[deeper]: beyond 11 frames",
    ] {
        assert!(svg.contains(drawn), "{drawn}");
    }
    // A recursion that takes its share is the program's own, and is drawn.
    let recursion = with_a_garbage_stack().replace(" 1\n", " 100\n");
    std::fs::write(folder.path().join("deep.folded"), recursion).expect("written");
    folder.output(&["flamegraph", "deep.folded", "-o", "deep.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("deep.svg")).expect("a picture");
    assert!(!svg.contains("[deeper]") && svg.matches("<title>").count() > 500, "all of it is drawn");
    // In a terminal the two ends of it are.
    let text = folder.output(&["flamegraph", "deep.folded", "--format", "text"]);
    assert!(text.lines().count() < 40 && text.contains("⋮ 484 more frames"), "{text}");
    // What is cut in both is compared as one.
    folder.output(&["flamegraph", "garbage.folded", "--diff", "deep.folded", "-o", "diff.svg"]);
    let svg = std::fs::read_to_string(folder.path().join("diff.svg")).expect("a picture");
    assert!(svg.contains("work::first"), "{svg}");
}

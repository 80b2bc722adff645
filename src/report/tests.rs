//! The formats on a profile whose arithmetic was done by hand (see [`super::fixture`]).

use regex::Regex;

use super::fixture::{Fixture, Spent, in_slice, sample_profile};
use super::flamegraph::FlamegraphOptions;
use super::style::Style;
use super::tree::{CallTree, Direction, Root, TreeOptions};
use super::*;
use crate::hardware::Method;
use crate::identity::Dimension;
use crate::label::Label;
use crate::profile::{Balance, Profile, TimeSlice};
use crate::units::{Joules, Nanoseconds};

macro_rules! golden {
    ($name:literal, $text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/report"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($name, $text));
    };
}

fn report(options: &Options) -> Report {
    let (profile, symbols) = sample_profile();
    Report::new(&profile, &symbols, options).expect("the options name what there is")
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), ReportError>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("a vector takes all");
    String::from_utf8(out).expect("text")
}

fn table(options: &Options, style: Style) -> String {
    text(|out| table::write(&report(options), &style, out))
}

fn by(by: Grouping) -> Options {
    Options { by, ..Options::default() }
}

fn of(side: Side, function: &str) -> Options {
    Options {
        neighbours: Some(Neighbours { side, function: FunctionChoice::Named(function.to_owned()) }),
        ..Options::default()
    }
}

fn own_joules(report: &Report, name: &str) -> f64 {
    let row = report.rows.iter().find(|row| row.name.as_str() == name).expect("there is such a row");
    row.own.joules.as_joules()
}

#[test]
fn table_by_function() {
    let options = Options { own_only: true, ..Options::default() };
    golden!("table_by_function", table(&options, Style::default()));
}

#[test]
fn table_with_totals_and_color() {
    golden!(
        "table_with_totals",
        table(&Options::default(), Style { width: 120, color: true, children: true, ..Style::default() })
    );
}

#[test]
fn table_of_everything_measured() {
    let options = Options { whole: true, own_only: true, ..Options::default() };
    golden!("table_of_everything", table(&options, Style::default()));
}

#[test]
fn table_by_other_groupings() {
    let groupings = [
        Grouping::Line,
        Grouping::Module,
        Grouping::Thread,
        Grouping::Process,
        Grouping::Command,
        Grouping::Core,
        Grouping::Domain,
    ];
    let tables = groupings.map(|grouping| {
        let table =
            table(&by(grouping), Style { children: grouping == Grouping::Domain, ..Style::default() });
        // The head and the balance are the same in all.
        table.splitn(3, "\n\n").nth(2).unwrap_or_default().to_owned()
    });
    golden!("table_by_other_groupings", tables.join("\n"));
}

#[test]
fn table_by_samples_of_one_event_cut_and_filtered() {
    let options = Options {
        selection: Selection {
            weight: Some(Weight::Samples),
            event: Some("cpu-clock".to_owned()),
            ..Selection::default()
        },
        rows: Some(Regex::new("app|libz").expect("valid")),
        limit: Some(1),
        own_only: true,
        ..Options::default()
    };
    golden!("table_by_samples", table(&options, Style::default()));
}

#[test]
fn table_with_totals_by_samples_and_by_counts() {
    let table = |weight| {
        let selection = Selection { weight: Some(weight), ..Selection::default() };
        let options = Options { selection, ..Options::default() };
        let table = table(&options, Style { children: true, ..Style::default() });
        table.splitn(3, "\n\n").nth(2).unwrap_or_default().to_owned()
    };
    golden!("table_with_totals_by_samples", [Weight::Samples, Weight::Count].map(table).join("\n"));
}

#[test]
fn json_and_csv() {
    golden!("report_json", text(|out| json::write(&report(&Options::default()), out)));
    golden!("report_csv", text(|out| csv::write(&report(&by(Grouping::Line)), out)));
    golden!("report_csv_domains", text(|out| csv::write(&report(&by(Grouping::Domain)), out)));
}

#[test]
fn folded_stacks_and_flamegraph() {
    let (profile, symbols) = sample_profile();
    let options = TreeOptions { root: Root::Thread, whole: true, ..TreeOptions::default() };
    let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
    golden!("folded", text(|out| folded::write(&tree, out)));
    let look = FlamegraphOptions { plain: true, ..FlamegraphOptions::default() };
    golden!("flamegraph", text(|out| flamegraph::write(&tree, &look, out)));
}

#[test]
fn a_page_has_the_joules_of_every_time() {
    let (mut profile, symbols) = sample_profile();
    let time = |millis| profile.start + Nanoseconds::from_millis(millis);
    let joules = |values: [f64; 3]| values.map(Joules::from_joules).to_vec();
    // In the first half second cell 0 spends 0.5 J and cell 1 4 J; then cells 1 to 4 spend the rest.
    profile.slices = vec![
        TimeSlice {
            start: time(0),
            end: time(500),
            measured: joules([10.0, 5.0, 1.0]),
            modelled: Joules::ZERO,
            balance: Balance::default(),
            by_cell: in_slice(&[(0, 0.5), (1, 4.0)]),
        },
        TimeSlice {
            start: time(500),
            end: time(2000),
            measured: joules([20.0, 12.0, 3.0]),
            modelled: Joules::ZERO,
            balance: Balance::default(),
            by_cell: in_slice(&[(1, 5.5), (2, 2.75), (3, 1.25), (4, 4.0)]),
        },
    ];
    let tree = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("there are samples");
    let report = Report::new(&profile, &symbols, &Options::default()).expect("valid");
    let page = text(|out| html::write(&tree, &report, out));
    let json = page.split_once("id=\"data\">").expect("data").1.split_once("</script>").expect("its end").0;
    let data: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let slices = &data["slices"];
    let own = |pairs: &serde_json::Value| -> u64 {
        let pairs: Vec<u64> = pairs.as_array().expect("pairs").iter().filter_map(|it| it.as_u64()).collect();
        pairs.chunks(2).map(|pair| pair[1]).sum()
    };
    // In joules of each cell, at the times at which it had them.
    let by_slice: Vec<u64> = slices["own"].as_array().expect("slices").iter().map(own).collect();
    assert_eq!(by_slice.iter().sum::<u64>() + own(&slices["untimed"]), 18_000_000);
    assert!(by_slice[0] < by_slice[1]);
    assert_eq!(slices["edges"], serde_json::json!([0.0, 0.5, 2.0]));
    // Package and DRAM; the cores lie in the package.
    assert_eq!(slices["measured"][0], serde_json::json!([10.0, 5.0, 1.0]));
    let domains: Vec<(&serde_json::Value, &serde_json::Value)> = data["domains"]
        .as_array()
        .expect("domains")
        .iter()
        .map(|domain| (&domain["name"], &domain["counted"]))
        .collect();
    let (yes, no) = (true.into(), false.into());
    let names = ["package-0", "package-0-cores", "dram-0"].map(serde_json::Value::from);
    assert_eq!(domains, [(&names[0], &yes), (&names[1], &no), (&names[2], &yes)]);
}

#[test]
fn from_the_innermost_frame() {
    let (profile, symbols) = sample_profile();
    let options = TreeOptions { direction: Direction::FromInnermost, ..TreeOptions::default() };
    let tree = CallTree::new(&profile, &symbols, &options).expect("there are samples");
    insta::assert_snapshot!(text(|out| folded::write(&tree, out)), @r"
    [partly estimated];LazyCompile:~sum app.js:3_[j];main 1250000
    [partly estimated];ksys_write_[k];work;main 500000
    [partly estimated];mix_[i];work;main 13500000
    [partly estimated];walk;walk;deflate;work;main 2750000
    ");
}

#[test]
fn a_difference_is_red_where_more_is_spent() {
    let one = |deflate, mix| {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [0.0; 4]);
        fixture.event("cpu-clock", 0);
        fixture.thread(1, 1, "app", "app");
        let mut cell = |stack, joules| {
            fixture.cell(0, 0, 0, stack, Spent { samples: 10, millis: 10, joules: &[joules] });
        };
        cell("app`main  app`deflate", deflate);
        cell("app`main  app`mix", mix);
        fixture.finish()
    };
    let (older, newer) = (one(4.0, 1.0), one(2.0, 2.0));
    let tree =
        |profile| CallTree::new(profile, &older.1, &TreeOptions::default()).expect("there are samples");
    let draw = |normalize| {
        let look = FlamegraphOptions { plain: true, normalize, ..FlamegraphOptions::default() };
        text(|out| flamegraph::write_difference(&tree(&older.0), &tree(&newer.0), &look, out))
    };
    let absolute = draw(false);
    let fill = |svg: &str, function: &str| {
        let frame = &svg[svg.find(&format!("<title>{function} (")).expect("it is drawn")..];
        let fill = frame.split_once("fill=\"").expect("it has a color").1;
        fill.split_once('"').expect("a quoted color").0.to_owned()
    };
    // deflate: 2 J less, the largest change; mix: 1 J more, drawn by the root of a half; main itself: nothing.
    assert_eq!(fill(&absolute, "deflate"), "rgb(100,100,255)");
    assert_eq!(fill(&absolute, "mix"), "rgb(255,144,144)");
    assert_eq!(fill(&absolute, "main"), "rgb(200,200,200)");
    // Errors of a tenth: 0.1 J and 0.2 J.
    let mix = "mix (2.000 J, 50.00%, change: total +1.000 J, itself +1.000 J ± 223.6 mJ)";
    assert!(absolute.contains(mix), "{absolute}");
    // 2 J less and 1 J more, which is no change of its own.
    assert!(absolute.contains("main (4.000 J, 100.00%, change: total −1.000 J)"), "{absolute}");
    assert!(absolute.contains("all (4.000 J, 100%, change: total −1.000 J)"), "{absolute}");
    // Scaled from 5 J to 4 J, deflate had 3.2 J and mix 0.8 J: both change by 1.2 J.
    assert_eq!(fill(&draw(true), "deflate"), "rgb(100,100,255)");
    assert_eq!(fill(&draw(true), "mix"), "rgb(255,100,100)");
}

#[test]
fn callers_and_callees_by_hand() {
    // work: 0.5 in the kernel, 13.5 in mix, 2.75 in deflate; all from main.
    let callees = report(&of(Side::Callees, "work"));
    assert_eq!(own_joules(&callees, "ksys_write"), 0.5);
    assert_eq!(own_joules(&callees, "mix"), 13.5);
    assert_eq!(own_joules(&callees, "deflate"), 2.75);
    let callers = report(&of(Side::Callers, "work"));
    assert_eq!(own_joules(&callers, "main"), 16.75);
    // walk calls itself: it was called by deflate, and all it spends it spends itself.
    assert_eq!(own_joules(&report(&of(Side::Callers, "walk")), "deflate"), 2.75);
    assert_eq!(own_joules(&report(&of(Side::Callees, "walk")), "[itself]"), 2.75);
    for (side, which) in [(Side::Callers, "outermost"), (Side::Callees, "innermost")] {
        let table = table(&of(side, "walk"), Style { width: 200, ..Style::default() });
        assert!(table.contains(&format!("of recursive calls the {which} counts")), "{table}");
    }
    assert_eq!(own_joules(&report(&of(Side::Callers, "main")), "[nobody: outermost frame]"), 18.0);
    // No function is named `^wa`, but one matches.
    assert_eq!(own_joules(&report(&of(Side::Callers, "^wa")), "deflate"), 2.75);
}

/// Of `work`: 1 J called by main, 2 J and 4 J where the path is lost in two modules, 8 J in a chain as deep as the kernel follows.
#[test]
fn callers_that_are_not_known_say_why() {
    let callers = |stacks: &[(String, f64)]| {
        let mut fixture = Fixture::default();
        fixture.domain("package-0", None, Method::Measured, "power PMU", [0.0; 4]);
        fixture.event("cpu-clock", 0);
        fixture.thread(100, 101, "worker", "app");
        for (stack, joules) in stacks {
            fixture.cell(0, 0, 0, stack, Spent { samples: 1, millis: 1, joules: &[*joules] });
        }
        let (profile, symbols) = fixture.finish();
        Report::new(&profile, &symbols, &of(Side::Callers, "work")).expect("joules")
    };
    let deep = vec!["app`work"; 127].join("  ");
    let report = callers(&[
        ("app`main  app`work".to_owned(), 1.0),
        ("app`work  app`other".to_owned(), 2.0),
        ("libz.so.1`work".to_owned(), 4.0),
        (deep, 8.0),
    ]);
    for (name, joules) in [
        ("main", 1.0),
        ("[unknown: the path breaks off in app]", 2.0),
        ("[unknown: the path breaks off in libz.so.1]", 4.0),
        ("[unknown: deeper than the kernel follows]", 8.0),
    ] {
        assert_eq!(own_joules(&report, name), joules, "{name}: {:?}", report.rows);
    }
    let without = callers(&[("app`work".to_owned(), 1.0), ("app`main".to_owned(), 2.0)]);
    assert_eq!(own_joules(&without, "[unknown: no callers were recorded]"), 1.0, "{:?}", without.rows);
}

#[test]
fn the_callers_of_one_function_are_no_others() {
    let (profile, symbols) = sample_profile();
    let all = report(&Options::default());
    let row = all.rows.iter().find(|row| row.name.as_str() == "walk").expect("it is there");
    let of = |name: &str, module: Option<&Label>| {
        let function = FunctionChoice::One { name: Label::new(name), module: module.cloned() };
        let neighbours = Some(Neighbours { side: Side::Callers, function });
        Report::new(&profile, &symbols, &Options { neighbours, ..Options::default() })
    };
    let module = row.module.as_ref();
    for module in [None, module] {
        assert_eq!(own_joules(&of("walk", module).expect("it is there"), "deflate"), 2.75);
    }
    // Names that others have in theirs, and the same name elsewhere.
    let elsewhere = Label::new("/usr/lib/elsewhere.so");
    for (name, module) in [("wal", None), ("^wa", None), ("wal", module), ("walk", Some(&elsewhere))] {
        assert!(matches!(of(name, module), Err(ReportError::NoSuchFunction(_))), "{name} {module:?}");
    }
}

#[test]
fn without_inlined_functions_their_joules_are_the_outer_functions() {
    let without = report(&Options { inline: false, ..Options::default() });
    assert_eq!(own_joules(&without, "work"), 13.5);
    assert!(without.rows.iter().all(|row| row.name.as_str() != "mix"));
}

#[test]
fn one_domain_alone_is_the_whole() {
    let selection = Selection { domain: Some("dram-0".to_owned()), ..Selection::default() };
    let dram = report(&Options { selection, ..Options::default() });
    assert_eq!(dram.summary.balance.measured, Joules::from_joules(4.0));
    assert_eq!(own_joules(&dram, "mix"), 1.5);
    assert_eq!(dram.share(&dram.rows[0].own), Some(0.75));
}

#[test]
fn selections_leave_the_rest_as_a_sum() {
    let pattern = |text| Some(Regex::new(text).expect("valid"));
    let thread = Selection { thread: pattern("^worker$"), ..Selection::default() };
    let worker = report(&Options { selection: thread, ..Options::default() });
    assert_eq!(worker.whole.joules, Joules::from_joules(14.0));
    assert_eq!(worker.not_selected.joules, Joules::from_joules(4.0));
    // By their numbers: threads and processes may have one name.
    let profile = sample_profile().0;
    let of = |name| profile.threads.iter().find(|thread| thread.name == name).expect("a thread");
    let (pid, tid) = (of("worker").pid, of("worker").tid);
    let task = |tid| Selection { task: Some(TaskIds { pid, tid }), ..Selection::default() };
    let worker = report(&Options { selection: task(Some(tid)), ..Options::default() });
    assert_eq!(worker.whole.joules, Joules::from_joules(14.0));
    let process = report(&Options { selection: task(None), ..Options::default() });
    assert_eq!(process.whole.joules, Joules::from_joules(18.0));
    let other = TaskIds { pid: pid + 1, tid: None };
    let other = Selection { task: Some(other), ..Selection::default() };
    assert_eq!(report(&Options { selection: other, ..Options::default() }).whole.samples, 0);
    let through = Selection { through: pattern("deflate"), ..Selection::default() };
    let deflate = report(&Options { selection: through, ..Options::default() });
    assert_eq!(own_joules(&deflate, "walk"), 2.75);
    assert_eq!(deflate.whole.joules, Joules::from_joules(2.75));
    assert_eq!(deflate.not_selected.joules, Joules::from_joules(15.25));
}

#[test]
fn rows_are_sorted_as_asked() {
    let first = |sort| report(&Options { sort, ..Options::default() }).rows[0].name.to_string();
    assert_eq!(first(SortKey::Own), "mix");
    assert_eq!(first(SortKey::Total), "main");
    assert_eq!(first(SortKey::Watts), "ksys_write");
    assert_eq!(first(SortKey::Name), "LazyCompile:~sum app.js:3");
}

/// Rows as JSON has them, and the errors of joules that CSV has: its names have no commas.
fn rows_for_programs(report: &Report) -> (Vec<serde_json::Value>, Vec<String>) {
    let json: serde_json::Value = serde_json::from_str(&text(|out| json::write(report, out))).expect("valid");
    let csv = text(|out| csv::write(report, out));
    let errors = csv.lines().skip(1).map(|line| line.split(',').nth(7).unwrap_or_default().to_owned());
    (json["rows"].as_array().expect("rows").clone(), errors.collect())
}

#[test]
fn an_error_that_nobody_knows_is_no_zero() {
    let (mut profile, symbols) = sample_profile();
    profile.cell_variances.clear();
    let of = |side| Some(Neighbours { side, function: FunctionChoice::Named("main".to_owned()) });
    for neighbours in [None, of(Side::Callers), of(Side::Callees)] {
        let options = Options { neighbours, ..Options::default() };
        let report = Report::new(&profile, &symbols, &options).expect("joules");
        let (rows, errors) = rows_for_programs(&report);
        assert!(!rows.is_empty() && rows.iter().all(|row| row["stderr_joules"].is_null()), "{rows:?}");
        assert!(errors.iter().all(String::is_empty), "{errors:?}");
    }
    let (rows, errors) = rows_for_programs(&report(&Options { whole: true, ..Options::default() }));
    for (row, error) in rows.iter().zip(errors) {
        let is_balance = row["kind"] == "balance";
        assert_eq!(row["stderr_joules"].is_null(), is_balance, "{row}");
        assert_eq!(error.is_empty(), is_balance, "{row}");
        let has_nothing = row["self_joules"] == 0.0;
        assert!(is_balance || has_nothing == (error == "0"), "{row}: what has nothing is off by nothing");
    }
}

#[test]
fn rows_of_everything_add_up_to_it_whatever_is_selected() {
    let selection = Selection { thread: Some(Regex::new("worker").expect("valid")), ..Selection::default() };
    let options = Options { selection, whole: true, ..Options::default() };
    let table = table(&options, Style::default());
    let report = report(&options);
    let sum: Joules = report.rows.iter().map(|row| row.own.joules).sum();
    assert!(report.not_selected.joules > Joules::ZERO, "{:?}", report.not_selected);
    assert!((sum / report.summary.balance.measured - 1.0).abs() < 1e-12, "{sum}");
    let (rows, _) = rows_for_programs(&report);
    let shares: f64 = rows.iter().map(|row| row["self_share"].as_f64().expect("a share")).sum();
    assert!((shares - 1.0).abs() < 1e-12, "{shares}");
    assert!(table.contains("[not selected]") && !table.contains("samples not selected"), "{table}");
}

#[test]
fn without_energy_the_report_is_by_samples_and_says_so() {
    let (mut profile, symbols) = sample_profile();
    profile.domains.clear();
    profile.cell_joules.clear();
    profile.cell_variances.clear();
    let report = Report::new(&profile, &symbols, &Options::default()).expect("samples are there");
    assert_eq!(report.weight, Weight::Samples);
    golden!("table_without_energy", text(|out| table::write(&report, &Style::default(), out)));
    let json = text(|out| json::write(&report, out));
    let json: serde_json::Value = serde_json::from_str(&json).expect("valid");
    assert_eq!(json["method"], "none");
    assert!(json["total_joules"].is_null() && json["rows"][0]["self_joules"].is_null());
    let asked = Options {
        selection: Selection { weight: Some(Weight::Joules), ..Selection::default() },
        ..Options::default()
    };
    assert!(matches!(
        Report::new(&profile, &symbols, &asked),
        Err(ReportError::NoJoules(MissingJoules::Unknown))
    ));
}

#[test]
fn a_meter_that_never_moved_is_told_and_not_shown_as_zero_joules() {
    let (mut profile, symbols) = sample_profile();
    profile.cell_joules.fill(Joules::ZERO);
    for domain in &mut profile.domains {
        domain.balance = Balance::default();
    }
    let report = Report::new(&profile, &symbols, &Options::default()).expect("samples are there");
    assert_eq!(report.weight, Weight::Samples);
    assert!(report.warnings.iter().any(|text| text.as_str().contains("did not move")));
}

#[test]
fn what_is_missing_is_named_and_nothing_that_was_tried() {
    let (mut profile, symbols) = sample_profile();
    profile.cell_joules.fill(Joules::ZERO);
    for domain in &mut profile.domains {
        domain.balance = Balance::default();
        domain.info.method = Method::Estimated;
    }
    let shown = |profile: &Profile| {
        let report = Report::new(profile, &symbols, &Options::default()).expect("a report");
        let mut text = Vec::new();
        table::write(&report, &Style::default(), &mut text).expect("a vector takes all");
        String::from_utf8(text).expect("text")
    };
    let without_time = shown(&profile);
    assert!(without_time.contains("no CPU time") && !without_time.contains("--watts"), "{without_time}");
    for event in &mut profile.events {
        event.samples = 0;
    }
    let empty = shown(&profile);
    assert!(empty.contains("is empty, without a sample") && !empty.contains("did not move"), "{empty}");
    let asked = Options {
        selection: Selection { weight: Some(Weight::Joules), ..Selection::default() },
        ..Options::default()
    };
    let refused = Report::new(&profile, &symbols, &asked).expect_err("no joules").to_string();
    assert!(refused.contains("empty") && !refused.contains("--watts"), "{refused}");
}

#[test]
fn a_balance_that_does_not_add_up_is_told() {
    let (mut profile, symbols) = sample_profile();
    profile.domains[0].balance.measured += Joules::from_joules(1e-6);
    let report = Report::new(&profile, &symbols, &Options::default()).expect("samples are there");
    assert!(report.warnings.iter().any(|text| text.as_str().starts_with("the balance of package-0 is off")));
    let table = text(|out| table::write(&report, &Style::default(), out));
    assert!(table.contains("THE PARTS DO NOT ADD UP"));
}

#[test]
fn joules_missing_from_the_cells_are_told() {
    let (mut profile, symbols) = sample_profile();
    profile.cell_joules[0] += Joules::from_joules(0.001);
    let report = Report::new(&profile, &symbols, &Options::default()).expect("samples are there");
    assert!(report.warnings.iter().any(|text| text.as_str().starts_with("the samples of package-0")));
}

#[test]
fn unknown_names_are_errors_that_tell_the_known_ones() {
    let (profile, symbols) = sample_profile();
    let error =
        |options: &Options| Report::new(&profile, &symbols, options).expect_err("not there").to_string();
    let domain = Selection { domain: Some("psys".to_owned()), ..Selection::default() };
    assert_eq!(
        error(&Options { selection: domain, ..Options::default() }),
        "there is no energy domain \"psys\" in this recording; there are: package-0, package-0-cores, dram-0"
    );
    let event = Selection { event: Some("cycles".to_owned()), ..Selection::default() };
    assert!(error(&Options { selection: event, ..Options::default() }).contains("cpu-clock, instructions"));
    assert!(error(&of(Side::Callers, "nothing like it")).contains("no function is named"));
}

#[test]
fn an_empty_profile_makes_a_report_but_no_flamegraph() {
    let (profile, symbols) = Fixture::default().finish();
    let report = Report::new(&profile, &symbols, &Options::default()).expect("nothing is asked for");
    assert!(report.rows.is_empty());
    assert!(text(|out| table::write(&report, &Style::default(), out)).starts_with("no joules"));
    let tree = CallTree::new(&profile, &symbols, &TreeOptions::default());
    assert!(matches!(tree.err(), Some(ReportError::NothingSelected(_))));
}

#[test]
fn a_process_is_known_by_its_last_name() {
    let mut fixture = Fixture::default();
    fixture.event("cycles", 0);
    for name in ["sh", "env", "python3"] {
        fixture.thread(7, 7, name, name);
    }
    for thread in 0..3 {
        fixture.cell(thread, 0, 0, "app`main", Spent { samples: 1, millis: 1, joules: &[] });
    }
    let (profile, symbols) = fixture.finish();
    let report = Report::new(&profile, &symbols, &by(Grouping::Process)).expect("valid");
    assert_eq!(report.rows.len(), 1);
    assert_eq!((report.rows[0].name.as_str(), report.rows[0].own.samples), ("python3", 3));
}

#[test]
fn samples_without_a_stack_are_a_row() {
    let mut fixture = Fixture::default();
    fixture.profile.duration = Nanoseconds::from_millis(10);
    fixture.event("cycles", 0);
    fixture.thread(1, 1, "app", "app");
    fixture.cell(0, 0, 0, "", Spent { samples: 3, millis: 3, joules: &[] });
    let (profile, symbols) = fixture.finish();
    let report = Report::new(&profile, &symbols, &Options::default()).expect("nothing is asked for");
    assert_eq!((report.rows[0].name.as_str(), report.rows[0].total.samples), ("[unknown]", 3));
    let tree = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("there are samples");
    assert_eq!(text(|out| folded::write(&tree, out)), "[unknown] 3\n");
}

/// A program of very many threads: each is looked at once, or this would not end.
#[test]
fn threads_of_one_name_are_not_compared_with_each_other() {
    let mut fixture = Fixture::default();
    fixture.event("cycles", 0);
    for thread in 0..300_000 {
        fixture.thread(7, thread, "worker", "app");
    }
    fixture.cell(299_999, 0, 0, "app`main", Spent { samples: 1, millis: 1, joules: &[] });
    let (profile, symbols) = fixture.finish();
    let tree = CallTree::new(&profile, &symbols, &TreeOptions::default()).expect("a sample");
    assert_eq!(text(|out| folded::write(&tree, out)), "main 1\n");
}

/// One recording, three control groups, one of which has a name that would set the terminal's title.
#[test]
fn threads_are_told_apart_by_their_control_groups() {
    let mut fixture = Fixture::default();
    fixture.domain("package-0", None, Method::Measured, "power PMU", [2.0, 0.5, 0.25, 0.0]);
    fixture.event("cycles", 0);
    let groups = ["/system.slice/a.service", "/b\u{1b}]0;x\u{7}\ny", "/system.slice/a.service", "/idle"];
    for (tid, group) in (1..).zip(groups) {
        fixture.thread(1, tid, "worker", "app");
        fixture.cgroup(group);
    }
    for (thread, joules) in [1.0, 2.0, 4.0].into_iter().enumerate() {
        let spent = Spent { samples: 1, millis: 1, joules: &[joules] };
        fixture.cell(thread as u32, 0, 0, if thread == 0 { "app`main" } else { "app`main  app`work" }, spent);
    }
    let (profile, symbols) = fixture.finish();
    let rows = |by, whole| {
        let options = Options { by, whole, dimensions: vec![Dimension::Cgroup], ..Options::default() };
        let report = Report::new(&profile, &symbols, &options).expect("joules");
        let row = |row: &Row| {
            let values: Vec<&str> = row.values.iter().map(Label::as_str).collect();
            (values.join(","), row.name.as_str().to_owned(), row.own.joules.as_joules())
        };
        report.rows.iter().map(row).collect::<Vec<_>>()
    };
    let of = |group: &str, name: &str, joules| (group.to_owned(), name.to_owned(), joules);
    let hostile = "/b\\u{1b}]0;x\\u{7}\\u{a}y";
    let named =
        |found: &[(String, String, f64)]| found.iter().map(|(_, name, _)| name.clone()).collect::<Vec<_>>();
    let alone = rows(Grouping::Recording, false);
    assert_eq!(named(&alone), ["a.service", hostile]);
    assert_eq!([alone[0].2, alone[1].2], [5.0, 2.0]);
    let by_function = rows(Grouping::Function, false);
    let expected = [of("a.service", "work", 4.0), of(hostile, "work", 2.0), of("a.service", "main", 1.0)];
    let with_own: Vec<_> = by_function.into_iter().filter(|(.., joules)| *joules > 0.0).collect();
    assert_eq!(with_own, expected);
    // The balance, to the last joule.
    let whole = rows(Grouping::Recording, true);
    let sum: f64 = whole.iter().map(|(.., joules)| joules).sum();
    assert_eq!(sum, 9.75, "{whole:?}");
}

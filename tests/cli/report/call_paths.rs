//! Call paths that are broken, code without symbols, and recordings without an end: what is missing is said.

use std::fs;

use eprof_testbed::{eprof, has_program, published, skip};

use super::recording::Recorded;
use super::{Folder, row};

/// As a chain of frame pointers leaves them that goes astray.
fn garbage() -> Vec<u64> {
    (0..127).map(|at| 0x10_0000 + 0x123_4567 * at).collect()
}

#[test]
fn frames_that_lie_nowhere_are_one_frame() {
    let astray = garbage();
    let folder = Folder::with(&Recorded { astray: &astray, ..Recorded::default() });
    let report = folder.json(&["--filter", "unknown"]);
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(1), "{:#}", report["rows"]);
    assert_eq!(row(&report, "[unknown]")["total_samples"], 250);
    let collapsed = folder.output(&["export", "--format", "collapsed"]);
    assert_eq!(collapsed.matches("[unknown]").count(), 1, "{collapsed}");
    assert!(collapsed.contains("[unknown];cli::report::recording::Recorded::write;cli::"), "{collapsed}");
    folder.output(&["flamegraph"]);
    let svg = fs::read_to_string(folder.path().join("energy.svg")).expect("the picture");
    let height = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a height");
    assert!(
        height.parse::<u32>().expect("pixels") < 300,
        "the first screen shows {height} pixels of nothing"
    );
}

#[test]
fn broken_paths_are_said_with_their_share_and_repair() {
    // No test function is called by main.
    let folder = Folder::with(&Recorded::default());
    let said = |arguments: &[&str]| {
        let output = folder.run(arguments);
        let texts =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).replace("\n  ", " "));
        texts.concat()
    };
    let broken = "100% of joules have broken call paths, which end before main or the start of a thread: record with \
                  --call-graph dwarf, or build with -fno-omit-frame-pointer";
    for arguments in [&["report", "--children"][..], &["flamegraph"], &["export", "--format", "speedscope"]] {
        assert_eq!(said(arguments).matches(broken).count(), 1, "{arguments:?}: {}", said(arguments));
    }
    assert!(!said(&["report"]).contains("broken"), "rows of own joules need no paths");
    let html = said(&["report", "--format", "html", "-o", "x.html"]);
    let page = fs::read_to_string(folder.path().join("x.html")).expect("a page");
    assert_eq!(page.matches("broken call paths").count(), 2, "in the data and in the table: {html}");
}

#[test]
fn code_without_symbols_is_said_with_its_repair() {
    let stripped = tempfile::tempdir().expect("a folder");
    let file = stripped.path().join("libstrange.so");
    fs::write(&file, "no symbols").expect("written");
    let astray: Vec<u64> = Vec::new();
    let path = file.to_str().expect("text");
    // All but `heavy` is one sample of a thousand: too little to tell.
    let folder = Folder::with(&Recorded { strange_file: path, astray: &astray, ..Recorded::default() });
    assert!(!folder.output(&["report"]).contains("modules without symbols"));
    let only = folder.output(&["report", "--through", "libstrange"]).replace("\n  ", " ");
    let expected = "; 100% lie in modules without symbols (libstrange.so): record with --call-graph dwarf, or build with \
                    -fno-omit-frame-pointer; report where libstrange.so is as it was recorded, or name its folder by --symfs";
    assert!(only.contains(expected), "{only}");
    assert!(!only.contains("debug packages"), "no package repairs a file that is none: {only}");
}

#[test]
fn debug_files_are_fetched_only_when_asked() {
    let Some(program) = ["/bin/true", "/usr/bin/true"].into_iter().find(|path| fs::metadata(path).is_ok())
    else {
        return skip("there is no /bin/true");
    };
    let folder = Folder::with(&Recorded { strange_file: program, ..Recorded::default() });
    let client = folder.path().join("debuginfod-find");
    let script = "echo \"$@\" >> asked\necho 'Server query failed' >&2\nexit 1\n";
    eprof_testbed::programs::write_script(&client, script);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let run = |arguments: &[&str], urls: &str| {
        let mut command = eprof();
        command.args(arguments).current_dir(folder.path()).env("PATH", &path).env("DEBUGINFOD_URLS", urls);
        let output = command.output().expect("eprof runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).replace("\n  ", " ")
    };
    run(&["report"], "http://127.0.0.1:1/");
    assert!(!folder.path().join("asked").exists(), "asked without --debuginfod");
    let table = run(&["report", "--debuginfod"], "http://127.0.0.1:1/");
    let asked = fs::read_to_string(folder.path().join("asked")).expect("it was asked");
    assert!(asked.lines().all(|line| line.starts_with("debuginfo ")), "{asked}");
    assert!(
        table.contains(&format!("no debug file of {program} was fetched (build-id"))
            && table.contains("Server query failed"),
        "{table}"
    );
    let nothing = run(&["report", "--debuginfod"], "");
    assert_eq!(
        nothing.matches("--debuginfod fetches nothing: DEBUGINFOD_URLS names no server").count(),
        1,
        "{nothing}"
    );
}

#[test]
fn a_recording_without_its_end_says_so() {
    let folder = Folder::with(&Recorded::default());
    assert_eq!(folder.json(&[])["partial"], false);
    assert!(!folder.output(&["report"]).contains("partial"));
    let path = folder.path().join("eprof.data");
    let length = fs::metadata(&path).expect("there").len();
    let file = fs::File::options().write(true).open(&path).expect("writable");
    file.set_len(length / 2).expect("cut");
    assert_eq!(folder.json(&[])["partial"], true);
    let table = folder.output(&["report"]).replace("\n  ", " ");
    let said = ["the recording is partial: ", "the recording is cut off at byte "];
    assert_eq!(said.map(|said| table.matches(said).count()).iter().sum::<usize>(), 1, "{table}");
}

/// Of files that tell of branches, `perf report` counts these, and shows no joules.
#[test]
fn perf_shows_nanojoules_of_branch_recordings() {
    let Some(data) = published("perf_data_converter") else { return };
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["perf.data.branch-4.14", "perf.data.callgraph_and_branch-3.4"] {
        let mut export = eprof();
        export.args(["export", "--watts", "5:20", "--format", "perf-data", "-o", "energy.data", "-i"]);
        export.arg(data.join(name)).current_dir(folder.path());
        let said = String::from_utf8_lossy(&export.output().expect("eprof runs").stderr).into_owned();
        let mut perf = std::process::Command::new("perf");
        perf.args(["report", "--stdio", "-i", "energy.data"]).current_dir(folder.path());
        let table = String::from_utf8_lossy(&perf.output().expect("perf runs").stdout).into_owned();
        let count = table.split("Event count (approx.): ").nth(1).and_then(|rest| rest.lines().next());
        let nanojoules: f64 = count.expect(&said).trim().parse().expect("a number");
        let line = said.lines().find(|line| line.contains("(estimated)")).expect("what was written");
        let (joules, unit) = line.split(": ").nth(2).and_then(|text| text.split_once(' ')).expect(line);
        let factor = if unit.starts_with("mJ") { 1e6 } else { 1e9 };
        let joules: f64 = joules.parse().expect(line);
        assert!((nanojoules / factor / joules - 1.0).abs() < 1e-3, "{name}: {nanojoules} nJ, {line}");
    }
}

#[test]
fn an_export_without_joules_says_why() {
    let folder = Folder::with(&Recorded::default());
    super::recording::write_empty(&folder.path().join("perf.data"));
    let error = folder.error(&["export", "--format", "perf-data", "--watts", "5:20", "-i", "perf.data"]);
    assert!(error.contains("the recording is empty") && !error.contains("--watts"), "{error}");
}

/// A recorder that is killed writes no header, and so not what the machine is.
#[test]
fn copied_stacks_are_unwound_without_a_header() {
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let mut perf = std::process::Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-e",
        "cpu-clock:u",
        "--call-graph",
        "dwarf",
        "-o",
        "perf.data",
        "sh",
        "-c",
        work,
    ]);
    let output = perf.current_dir(folder.path()).output().expect("perf runs");
    if !output.status.success() {
        return skip("perf may not record here");
    }
    let names = |file: &str| {
        let mut report = eprof();
        report.args(["report", "--children", "--format", "json", "-i", file]).current_dir(folder.path());
        let report: serde_json::Value =
            serde_json::from_slice(&report.output().expect("eprof runs").stdout).expect("JSON");
        let rows = report["rows"].as_array().expect("rows").clone();
        let callers = rows.iter().filter(|row| row["self_samples"] == 0).count();
        (callers, rows.len(), report["partial"] == true)
    };
    let whole = names("perf.data");
    assert!(whole.0 > 3 && !whole.2, "{whole:?}");
    let mut bytes = fs::read(folder.path().join("perf.data")).expect("a recording");
    // The size of the records, and the bits of the features.
    bytes[48..56].fill(0);
    bytes[72..104].fill(0);
    fs::write(folder.path().join("killed.data"), bytes).expect("written");
    assert_eq!(names("killed.data"), (whole.0, whole.1, true));
}

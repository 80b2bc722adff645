//! Profiles as text: what other tools print is read, and comes out as FlameGraph and inferno fold it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use eprof_testbed::{Started, eprof, has_program, published, published_data, skip};
use regex::Regex;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("eprof runs");
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    output
}

/// What folded stacks say: the count of each.
fn counts(folded: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in folded.lines().filter(|line| !line.is_empty()) {
        let (stack, count) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        *counts.entry(stack.to_owned()).or_default() += count.parse::<u64>().expect(line);
    }
    counts
}

/// Folded by eprof, weighed by the events' counts as FlameGraph does, with the thread's name before each stack.
fn folded(path: &Path, event: &str, root: &str) -> String {
    let mut command = eprof();
    command.args([
        "export",
        "--format",
        "collapsed",
        "--weight",
        "count",
        "--event",
        event,
        "--root",
        root,
        "-i",
    ]);
    text(&succeed(command.arg(path)).stdout)
}

/// The event of the first sample: only that one's samples are folded by FlameGraph.
fn first_event(script: &str) -> String {
    let header = script.lines().find(|line| !line.is_empty() && !line.starts_with('#')).expect("a sample");
    let mut events = header.split_whitespace().rev().filter_map(|word| word.strip_suffix(':'));
    events.next().expect("an event").to_owned()
}

/// The root of a stack as FlameGraph writes it.
fn with_root(line: &str, write: impl Fn(&str) -> String) -> String {
    let (root, rest) = line.split_once(';').unwrap_or((line, ""));
    format!("{};{rest}", write(root))
}

/// `name (pid)` or `name (pid/tid)` as FlameGraph writes it; it knows no process where the text tells only threads.
fn name_and_numbers(root: &str, has_pids: bool) -> String {
    let (name, numbers) = root.rsplit_once(" (").expect("numbers");
    let numbers = numbers.trim_end_matches(')');
    let numbers = match (has_pids, numbers.split_once('/')) {
        (true, _) => numbers.to_owned(),
        (false, Some((_, tid))) => format!("?/{tid}"),
        (false, None) => "?".to_owned(),
    };
    format!("{}-{numbers}", name.replace(' ', "_"))
}

/// Folded stacks in one way of saying some things. eprof knows that the vdso is the program's own code; FlameGraph puts
/// brackets around names that have some, drops quotes, and calls code that perf left nameless by a blank, where eprof
/// names its module.
fn in_one_way(folded: &str) -> String {
    let folded =
        folded.replace("__vdso_gettimeofday_[k]", "__vdso_gettimeofday").replace("[vdso]_[k]", "[vdso]");
    let folded = folded.replace("[[", "[").replace("]]", "]").replace(['"', '\''], "");
    let folded =
        folded.replace("__vdso_gettimeofday_[k]", "__vdso_gettimeofday").replace("[vdso]_[k]", "[vdso]");
    folded
        .lines()
        .map(|line| line.replace("; ;", ";[libc-2.15.so];").replace(";  ", ";[libc-2.15.so] ") + "\n")
        .collect()
}

/// Without marks of kernel and run-time code, which the plain styles leave out.
fn unmarked(folded: &str) -> String {
    folded.replace("_[k]", "").replace("_[j]", "")
}

/// The texts of `perf script` that this machine has, by name.
fn scripts() -> Vec<(String, String)> {
    let Some(data) = published_data() else { return Vec::new() };
    let folder = data.join("FlameGraph");
    let mut scripts: Vec<(String, String)> = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "txt") {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            scripts.push((name, text(&fs::read(&path).expect("readable"))));
        }
    }
    if let Ok(packed) = fs::File::open(data.join("firefox-profiler/gzip.perf.gz")) {
        let mut script = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut script).expect("text");
        scripts.push(("gzip".to_owned(), script));
    }
    scripts.sort();
    if scripts.is_empty() {
        skip("there are no texts of perf script here");
    }
    scripts
}

/// Up to the last empty line: FlameGraph counts no sample without one behind it.
fn ended(script: &str) -> &str {
    match script.rfind("\n\n") {
        Some(end) if !script[end..].trim().is_empty() => &script[..end + 2],
        _ => script,
    }
}

#[test]
fn scripts_of_others_fold_as_flamegraph_folds_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script");
    let class = Regex::new(";L([^;:/ ]+/)").expect("a pattern");
    let mut compared = 0;
    for (name, script) in scripts() {
        let expected = |style: &str| {
            let results = published_data().expect("there").join("FlameGraph/results");
            fs::read_to_string(results.join(format!("{name}-collapsed-{style}.txt"))).ok()
        };
        // Names of Rust are not its business; see below.
        let (Some(marked), false) = (expected("all"), name.contains("rust")) else { continue };
        fs::write(&path, ended(&script)).expect("written");
        let event = first_event(&script);
        let ours = |root: &str, write: &dyn Fn(&str) -> String| {
            let folded = folded(&path, &event, root);
            let lines: Vec<String> = folded.lines().map(|line| with_root(line, write)).collect();
            in_one_way(&lines.join("\n"))
        };
        let by_name = ours("command", &|name| name.replace(' ', "_"));
        assert_eq!(counts(&by_name), counts(&in_one_way(&marked)), "{name}");
        let has_pids = !expected("pid").expect("a result").contains("-?");
        for (style, root) in [("pid", "process"), ("tid", "thread")] {
            let ours = ours(root, &|root| name_and_numbers(root, has_pids));
            let theirs = in_one_way(&unmarked(&expected(style).expect("a result")));
            // With numbers it no longer knows a program called java.
            let theirs = class.replace_all(&theirs, ";$1");
            assert_eq!(counts(&unmarked(&ours)), counts(&theirs), "{name} {style}");
        }
        compared += 1;
    }
    assert!(compared >= 10 || scripts().is_empty(), "only {compared} texts");
}

#[test]
fn scripts_of_others_fold_as_inferno_folds_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script");
    for (name, script) in scripts() {
        fs::write(&path, &script).expect("written");
        let mut options = inferno::collapse::perf::Options::default();
        (options.annotate_jit, options.annotate_kernel, options.nthreads) = (true, true, 1);
        let mut theirs = Vec::new();
        let mut folder = inferno::collapse::perf::Folder::from(options);
        inferno::collapse::Collapse::collapse(&mut folder, script.as_bytes(), &mut theirs).expect(&name);
        let ours = folded(&path, &first_event(&script), "command");
        let lines: Vec<String> =
            ours.lines().map(|line| with_root(line, |name| name.replace(' ', "_"))).collect();
        // It marks what compilers of Java inlined, and not what perf says is inlined; and of Rust's names it keeps an
        // underscore that is none of the source's.
        let [ours, theirs] = [lines.join("\n"), text(&theirs)].map(|folded| {
            let folded = in_one_way(&folded).replace("_[i]", "");
            counts(&folded.replace("::_<", "::<").replace("::_{", "::{"))
        });
        let stacks = ours.keys().chain(theirs.keys());
        let mut different: Vec<&String> =
            stacks.filter(|stack| ours.get(*stack) != theirs.get(*stack)).collect();
        different.dedup();
        assert!(
            different.is_empty(),
            "{name}: {} stacks: {:#?}",
            different.len(),
            &different[..4.min(different.len())]
        );
    }
}

/// simpleperf's imitation of `perf script` parts its fields by tabs.
#[test]
fn scripts_of_simpleperf_are_read_too() {
    let Some(packed) = published("firefox-profiler/simple-perf.txt.gz") else { return };
    let packed = fs::File::open(packed).expect("readable");
    let mut script = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut script).expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("script");
    fs::write(&path, &script).expect("written");
    let samples = script.lines().filter(|line| line.ends_with("task-clock:u:")).count() as u64;
    let found = counts(&folded(&path, "task-clock:u", "thread"));
    assert!(samples > 100);
    assert_eq!(found.values().sum::<u64>(), samples * 1_000_000, "each is a millisecond");
    assert!(
        found
            .keys()
            .any(|stack| stack.starts_with("Gecko (25122/25122);") && stack.contains(";moz_xmalloc;"))
    );
}

/// Every sample of a live program, as perf prints it and as eprof reads it.
#[test]
fn the_text_of_a_recording_is_the_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-F", "2000", "-g", "-e", "cpu-clock:u", "-o"]).arg(at("perf.data"));
    record.args(["--", "gzip", "-kc", "/bin/bash"]).stdout(Stdio::null());
    if !has_program("perf", &["--version"]) || !record.status().is_ok_and(|status| status.success()) {
        return skip("perf cannot record here");
    }
    let script = |tool: &str| {
        let mut command = Command::new(tool);
        text(&succeed(command.args(["script", "--no-inline", "-i"]).arg(at("perf.data"))).stdout)
    };
    let of_recording = counts(&folded(&at("perf.data"), "cpu-clock:u", "command"));
    for tool in ["perf", env!("CARGO_BIN_EXE_eprof")] {
        fs::write(at("script.txt"), script(tool)).expect("written");
        let of_text = counts(&folded(&at("script.txt"), "cpu-clock:u", "command"));
        let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
        assert_eq!(sum(&of_text), sum(&of_recording), "{tool}");
    }
}

const SCRIPT: &str = "\
# nrcpus online : 2
app 10/10 [000] 5.000000:   10000000 task-clock:u: 
\t          1139 work(int)+0x9 (/bin/app)
\t          1152 main+0x5 (/bin/app)

app 10/11 [001] 5.010000:   10000000 task-clock:u: 
\tffffffff81000 sys_read+0x9 ([kernel.kallsyms])
\t          1152 main+0x5 (/bin/app)

";

#[test]
fn a_text_is_told_by_its_content_and_read_from_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    for (content, expected) in [
        (SCRIPT, "main;sys_read_[k] 1\nmain;work 1\n"),
        ("main;work 3\nmain;sys_read_[k] 4\n", "main;sys_read_[k] 4\nmain;work 3\n"),
        (
            "sample:\n  event_type: task-clock\n  thread_id: 1\n  thread_name: a\n  vaddr_in_file: 1\n  \
             file: /x\n  symbol: f()\n",
            "f 1\n",
        ),
    ] {
        let path = folder.path().join("profile");
        fs::write(&path, content).expect("written");
        let mut of_file = eprof();
        let of_file = succeed(of_file.args(["report", "--format", "collapsed"]).arg(&path));
        assert_eq!(text(&of_file.stdout), expected);
        let mut command = eprof();
        command.args(["report", "--format", "collapsed", "-i", "-"]);
        let mut piped =
            Started::new(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        piped.stdin.take().expect("piped").write_all(content.as_bytes()).expect("read");
        let piped = piped.wait_with_output().expect("ends");
        assert_eq!(text(&piped.stdout), expected);
        assert!(text(&piped.stderr).contains("it has no energy"), "{}", text(&piped.stderr));
        let mut picture = eprof();
        let picture = succeed(picture.args(["flamegraph", "-o", "-"]).arg(&path));
        assert!(text(&picture.stdout).contains("samples"), "a picture of samples");
    }
}

#[test]
fn a_text_has_no_joules_but_by_an_estimate_that_is_called_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path
    };
    let (script, folded) = (at("script", SCRIPT), at("folded", "main 3\n"));
    let report = |path: &Path, options: &[&str]| {
        let mut command = eprof();
        command.arg("report").args(options).arg(path).output().expect("runs")
    };
    let refused = report(&script, &["--weight", "joules"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("no meter was read"), "{}", text(&refused.stderr));
    let estimated = report(&script, &["--watts", "2:12", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&estimated.stdout).expect("JSON");
    // Each of two CPUs adds 5 W when it is busy, which they were for 10 ms each.
    let domain = &document["domains"][0];
    assert_eq!(domain["method"], "estimated", "{document:#}");
    let attributed = domain["balance"]["attributed"].as_f64().expect("joules");
    assert!((attributed - 2.0 * 5.0 * 0.01).abs() < 1e-9, "{document:#}");
    let without_time = report(&folded, &["--watts", "2:12"]);
    assert!(text(&without_time.stdout).contains("--watts was not used"), "{}", text(&without_time.stdout));
}

#[test]
fn what_is_neither_recording_nor_text_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("input");
    let cases: [(&[u8], [&str; 2]); 3] = [
        (b"Dear diary,\ntoday I profiled.\n", ["it is text that is neither a recording", "is no recording"]),
        (b"\x7fELF\x02\x01\0\0\0\0\0", ["it is neither a recording (perf.data) nor text", "is no recording"]),
        (b"", ["it is empty", "is empty"]),
    ];
    for (content, [of_any, of_recordings]) in cases {
        fs::write(&path, content).expect("written");
        for (verb, expected) in [("report", of_any), ("flamegraph", of_any), ("script", of_recordings)] {
            let said = |input: &str, name: &str| {
                let mut command = eprof();
                command.args([verb, "-i", input]).current_dir(folder.path());
                command.stdin(fs::File::open(&path).expect("there"));
                let output = command.output().expect("runs");
                let said = text(&output.stderr);
                assert_eq!(output.status.code(), Some(1));
                assert!(said.contains(expected) && said.contains(name), "{verb} {input}: {said}");
            };
            said(path.to_str().expect("text"), path.to_str().expect("text"));
            said("-", "standard input");
        }
    }
    // What never ends is not waited for.
    let mut yes = Started::new(Command::new("yes").stdout(Stdio::piped()));
    let mut command = eprof();
    command.args(["report", "-i", "-"]).stdin(yes.stdout.take().expect("piped"));
    let output = command.output().expect("runs");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

//! `eprof annotate`: its margins add up to what the report says of a function, and errors name the function that is meant.

use std::path::{Path, PathBuf};

use eprof_testbed::{eprof, published};
use serde_json::Value;

use super::recording::Recorded;
use super::{Folder, number};

/// A joule's number as it was printed: its joules, and half of its last digit.
fn printed(number: &str, unit: &str) -> Option<(f64, f64)> {
    let factor = match unit {
        "kJ" => 1e3,
        "joules" | "J" => 1.0,
        "mJ" => 1e-3,
        "µJ" => 1e-6,
        "nJ" => 1e-9,
        _ => return None,
    };
    let number_itself = number.trim_start_matches('<');
    let decimals = number_itself.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let value: f64 = number_itself.parse().ok()?;
    let half = 0.5 * 0.1f64.powi(decimals as i32);
    Some(if number.starts_with('<') { (0.0, half * factor) } else { (value * factor, half * factor) })
}

/// The second column of a row: joules.
fn joules_of(row: &str, unit: &str) -> Option<(f64, f64)> {
    let mut words = row.split_whitespace();
    words.next().filter(|share| share.ends_with('%'))?;
    printed(words.next()?, unit)
}

/// The sum at the end of each annotated function, with its half last digit, and of the rows above.
fn sums(text: &str) -> Vec<[(f64, f64); 2]> {
    let (mut unit, mut rows, mut sums) = (String::new(), (0.0, 0.0), Vec::new());
    for line in text.lines() {
        if line.trim_start().starts_with("share ") {
            unit = line.split_whitespace().nth(1).expect("a unit").to_owned();
            rows = (0.0, 0.0);
        } else if line.contains("%  ") && line.contains("  sum of ") {
            sums.push([joules_of(line, &unit).expect("a sum"), rows]);
        } else if let Some((margin, _)) = line.split_once(" │ ")
            && let Some((joules, half)) = joules_of(margin, &unit)
        {
            rows = (rows.0 + joules, rows.1 + half);
        }
    }
    sums
}

fn output(arguments: &[&str]) -> String {
    let output = eprof().args(arguments).env_remove("COLUMNS").output().expect("eprof runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The heaviest functions of a recording: annotated, each has the joules that the report gives it.
fn agrees_with_report(recording: &Path, arguments: &[&str]) -> usize {
    let path = recording.to_str().expect("a path");
    let report = [&["report", path, "--format", "json"], arguments].concat();
    let report: Value = serde_json::from_str(&output(&report)).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
    let mut tried = 0;
    for row in rows.iter().take(6).filter(|row| number(&row["self_joules"]) > 0.0) {
        let function = name(row);
        let of_name: Vec<&Value> = rows.iter().filter(|other| name(other) == function).collect();
        // A name that looks like an option, as compilers make them, is one behind `--`.
        // Beside the source a line has what its instructions have: they would count twice.
        for by in ["line", "instruction"] {
            let command = [&["annotate", "-i", path, "--by", by], arguments, &["--", &function]].concat();
            let text = output(&command);
            let found = sums(&text);
            let with_joules = of_name.iter().filter(|row| number(&row["self_joules"]) > 0.0);
            assert_eq!(found.len(), with_joules.count(), "{function}: {text}");
            let reported = number(&row["self_joules"]);
            let [(sum, half), (of_rows, halves)] = found
                .iter()
                .copied()
                .min_by(|a, b| (a[0].0 - reported).abs().total_cmp(&(b[0].0 - reported).abs()))
                .expect("a sum");
            let near = half * (1.0 + 1e-6) + 1e-12;
            assert!((sum - reported).abs() <= near, "{path} {function}: {sum} J, reported are {reported} J");
            assert!((of_rows - sum).abs() <= halves + near, "{path} {function}: rows of {of_rows} J\n{text}");
        }
        tried += 1;
    }
    tried
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recordings").join(name)
}

#[test]
fn sums_are_the_reports_joules_to_the_last_digit() {
    for name in ["guest-program-only.data", "guest-neighbours.data"] {
        assert_eq!(agrees_with_report(&fixture(name), &[]), 6);
        assert!(agrees_with_report(&fixture(name), &["--domain", "dram-0"]) > 0);
    }
    let folder = Folder::with(&Recorded::default());
    assert!(agrees_with_report(&folder.path().join("eprof.data"), &[]) >= 2);
}

#[test]
fn sums_of_other_tools_recordings_are_the_reports_too() {
    let Some(data) = published("perf_data_converter") else { return };
    let mut tried = 0;
    for name in ["multi-event-single-process.perf.data", "single-event-multi-process.perf.data"] {
        let recording = data.join(name);
        tried += agrees_with_report(&recording, &["--watts", "10:60"]);
    }
    assert!(tried >= 6, "{tried} functions");
}

#[test]
fn source_and_instructions_stand_beside_their_joules() {
    let folder = Folder::with(&Recorded::default());
    let text = folder.output(&["annotate", "heavy", "--color", "never"]);
    assert!(text.contains("recording.rs") && text.contains("pub extern \"C\" fn heavy() -> u32 {"), "{text}");
    assert!(text.contains(": ret") && text.contains("cpu-clock: a timer"), "{text}");
    assert!(text.contains("10.00 W ± ") && text.contains("while it ran"), "{text}");
    let instructions = folder.output(&["annotate", "heavy", "--by", "instruction", "--syntax", "intel"]);
    assert!(instructions.contains("│ 0: ") && !instructions.contains("pub extern"), "{instructions}");
    let lines = folder.output(&["annotate", "heavy", "--by", "line"]);
    assert!(lines.contains("pub extern") && !lines.contains(": ret"), "{lines}");
    assert!(!text.contains('\u{1b}'));
    let colored = folder.output(&["annotate", "heavy", "--color", "always"]);
    assert!(colored.contains("\u{1b}[31m"), "{colored}");
    let narrow = folder.output(&["annotate", "heavy", "--width", "60"]);
    let widest = narrow.lines().filter(|line| line.contains('│')).map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 60), "{widest:?}: {narrow}");
}

#[test]
fn the_hottest_come_first_and_errors_are_the_reports() {
    let folder = Folder::with(&Recorded { at_return_of_three: 2, ..Recorded::default() });
    let report = folder.json(&["--limit", "0"]);
    let rows = report["rows"].as_array().expect("rows").iter();
    let heavy = rows.clone().find(|row| row["name"].as_str().is_some_and(|name| name.ends_with("::heavy")));
    let error = number(&heavy.expect("it has samples")["stderr_joules"]);
    let text = folder.output(&["annotate", "heavy", "--by", "instruction"]);
    let head = text.lines().find(|line| line.contains(" itself, ")).expect("a head");
    let mut words = head.split_whitespace().skip(1);
    assert_eq!(words.next(), Some("±"), "{head}");
    let (said, half) =
        printed(words.next().expect("a number"), words.next().expect("a unit")).expect("joules");
    assert!((said - error).abs() <= half * 1.01, "{head}: reported is ± {error}");
    // What took most is above, and below all stands in its order.
    let (hottest, below) =
        text.split_once("hottest instructions\n").expect("a title").1.split_once("\n\n").expect("two tables");
    let code = |line: &str| line.split_once("│ ").map(|(_, code)| code.to_owned());
    let [first, second] =
        hottest.lines().filter_map(code).collect::<Vec<_>>().try_into().expect("two instructions");
    assert!(first.starts_with("5: ret") && second.starts_with("0: mov"), "{text}");
    assert_eq!(below.lines().filter_map(code).collect::<Vec<_>>(), [second, first], "{text}");
    let one = folder.output(&["annotate", "heavy", "--by", "instruction", "--hottest", "1"]);
    assert!(one.contains("1 more instruction: 3"), "{one}");
    let none = folder.output(&["annotate", "heavy", "--by", "instruction", "--hottest", "0"]);
    assert!(!none.contains("hottest"), "{none}");
}

#[test]
fn errors_of_lines_are_those_of_the_report_by_line() {
    let folder = Folder::with(&Recorded { at_return_of_three: 1, ..Recorded::default() });
    let report = folder.json(&["--by", "line", "--no-inline", "--limit", "0"]);
    let text = folder.output(&["annotate", "heavy", "--by", "line", "--hottest", "0"]);
    let mut lines = 0;
    for row in report["rows"].as_array().expect("rows") {
        if !row["function"].as_str().is_some_and(|name| name.ends_with("::heavy")) {
            continue;
        }
        let line = row["line"].as_u64().expect("a line");
        let is_it = |shown: &&str| {
            let code = shown.split_once("│ ").map_or("", |(_, code)| code);
            shown.contains('%') && code.split_whitespace().next() == Some(&line.to_string())
        };
        let shown = text.lines().find(is_it).unwrap_or_else(|| panic!("no line {line}: {text}"));
        let numbers: Vec<f64> =
            shown.split_whitespace().skip(1).take(2).map(|word| word.parse().expect("a number")).collect();
        let reported = [number(&row["self_joules"]), number(&row["stderr_joules"])];
        assert!(numbers.iter().zip(reported).all(|(a, b)| (a - b).abs() <= 5.1e-4), "{shown}: {reported:?}");
        lines += 1;
    }
    assert!(lines > 0, "{text}");
}

#[test]
fn of_several_functions_the_heaviest_come_first_as_many_as_are_wanted() {
    let folder = Folder::with(&Recorded::default());
    let text = folder.output(&["annotate", "heavy|light", "--by", "instruction"]);
    let (heavy, light) = (text.find("sum of ").expect("a sum"), text.rfind("sum of ").expect("a sum"));
    assert!(text[heavy..].lines().next().is_some_and(|line| line.ends_with("heavy")), "{text}");
    assert!(text[light..].lines().next().is_some_and(|line| line.ends_with("light")), "{text}");
    assert!(text.contains("2 functions match heavy|light, the heaviest first: "), "{text}");
    let one = folder.output(&["annotate", "heavy|light", "--by", "instruction", "--limit", "1"]);
    assert!(one.contains("not shown: 1, 2") && one.matches("sum of ").count() == 1, "{one}");
    let all = folder.output(&["annotate", ".", "--limit", "0"]);
    assert!(all.matches("sum of ").count() > 2, "{all}");
}

#[test]
fn eighty_columns_are_enough() {
    let recording = fixture("guest-neighbours.data");
    let path = recording.to_str().expect("a path");
    for by in ["source", "line", "instruction"] {
        let text = output(&["annotate", "-i", path, "--by", by, "--width", "80", "--limit", "3", "--", "."]);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains('│')).collect();
        assert!(rows.len() >= 3 && rows.iter().all(|row| row.chars().count() <= 80), "{text}");
        // Half of them are the code's.
        assert!(
            rows.iter()
                .all(|row| row.split_once('│').is_some_and(|(margin, _)| margin.chars().count() <= 42)),
            "{text}"
        );
    }
}

#[test]
fn samples_weigh_where_asked() {
    let folder = Folder::with(&Recorded::default());
    let text = folder.output(&["annotate", "light", "--weight", "samples"]);
    assert!(text.contains(" samples itself, ") && !text.contains("joules"), "{text}");
}

#[test]
fn a_wrong_name_is_answered_with_similar_ones() {
    let folder = Folder::with(&Recorded::default());
    let error = folder.error(&["annotate", "haevy"]);
    assert!(
        error.contains("similar: ") && error.contains("heavy") && error.contains("eprof report"),
        "{error}"
    );
    let error = folder.error(&["annotate", "entirely_else"]);
    assert!(!error.contains("similar") && error.contains("eprof report --limit 0"), "{error}");
    let error = folder.error(&["annotate", "heavy", "--module", "elsewhere"]);
    assert!(error.contains("heavy"), "{error}");
    let error = folder.error(&["annotate", "heavy", "nothing.data"]);
    assert!(error.contains("nothing.data"), "{error}");
}

#[test]
fn a_recording_in_the_functions_place_is_told_from_a_function() {
    let folder = Folder::with(&Recorded::default());
    for arguments in [&["annotate", "eprof.data"][..], &["annotate", "gone.data"]] {
        let error = folder.error(arguments);
        assert!(error.contains("FUNCTION is missing"), "{error}");
        assert!(error.contains(&format!("`eprof annotate main {}`", arguments[1])), "{error}");
    }
    // A program may be called as its function.
    std::fs::write(folder.path().join("heavy"), "\x7fELF").expect("written");
    assert!(folder.output(&["annotate", "heavy"]).contains("heavy"));
}

#[test]
fn what_is_neither_name_nor_pattern_is_said() {
    let folder = Folder::with(&Recorded::default());
    let error = folder.error(&["annotate", "("]);
    assert!(
        error.contains("\"(\"")
            && error.contains("and it is no regular expression: unclosed group, at letter 1"),
        "{error}"
    );
}

#[test]
fn source_that_moved_is_found_in_the_folder_named() {
    let folder = Folder::with(&Recorded::default());
    let place = folder.path().join("moved/cli/report");
    std::fs::create_dir_all(&place).expect("a folder");
    let lines = "// another text\n".repeat(2_000);
    std::fs::write(place.join("recording.rs"), lines).expect("written");
    let text = folder.output(&["annotate", "heavy", "--source", "moved"]);
    assert!(text.contains("// another text") && !text.contains("pub extern"), "{text}");
}

#[test]
fn a_selection_of_nothing_is_said_to_be_one() {
    let folder = Folder::with(&Recorded::default());
    let why = "nothing to show: no thread's name matches --thread nobody: there are ";
    let error = folder.error(&["annotate", "main", "--thread", "nobody"]);
    assert!(error.contains(why), "{error}");
    for format in ["table", "json", "csv", "collapsed"] {
        let error = folder.error(&["report", "--thread", "nobody", "--format", format]);
        assert!(error.contains(why), "{format}: {error}");
    }
    assert!(!folder.output(&["report"]).contains("nothing to show"));
    for (by, what) in [("function", "name or module"), ("module", "name"), ("process", "name")] {
        let error = folder.error(&["report", "--filter", "^nobody$", "--by", by]);
        let why = format!("nothing to show: no {by}'s {what} matches --filter ^nobody$");
        assert!(error.contains(&why), "{error}");
    }
    // A file that ends before its first sample says so first, whatever was asked for.
    let whole = std::fs::read(folder.path().join("eprof.data")).expect("a recording");
    let cut = folder.path().join("cut.data");
    let lengths = (0..whole.len()).step_by(64);
    let mut cut_off = lengths.skip_while(|&length| {
        std::fs::write(&cut, &whole[..length]).expect("written");
        !folder.run(&["report", "-i", "cut.data", "--format", "csv"]).status.success()
    });
    let first_with_rows = cut_off.next().expect("most of a recording is one");
    std::fs::write(&cut, &whole[..first_with_rows - 64]).expect("written");
    let error = folder.error(&["report", "-i", "cut.data"]);
    assert!(error.contains("cut off") && !error.contains("no joules in"), "{error}");
    // Nothing at all is no function that only called others.
    super::recording::write_empty(&folder.path().join("empty.data"));
    let error = folder.error(&["annotate", ".", "-i", "empty.data"]);
    assert!(error.contains("the recording has no samples"), "{error}");
}

/// A program that was built anew has no names in an older recording: what has a part of the name is not it.
#[test]
fn what_became_of_the_program_is_said_instead_of_another_functions_code() {
    let folder = Folder::with(&Recorded { other_build: true, ..Recorded::default() });
    // Of the kernel there are names.
    let cache = folder.path().join(".debug/.build-id/ab").join("ab".repeat(19));
    std::fs::create_dir_all(&cache).expect("a folder");
    let text = 0xffff_ffff_8100_0000;
    std::fs::write(cache.join("kallsyms"), format!("{text:x} T _text\n{:x} t heavy_work\n", text + 0x400))
        .expect("written");
    let kernel = super::recording::RecordedKernel { build_id: &[0xab; 20], text, sampled: text + 0x410 };
    Recorded { other_build: true, kernel: Some(kernel), ..Recorded::default() }
        .write(&folder.path().join("eprof.data"));
    let run = |function: &str| {
        let mut command = eprof();
        command.args(["annotate", function]).current_dir(folder.path()).env("HOME", folder.path());
        let output = command.output().expect("eprof runs");
        let [out, error] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (output.status.success(), out, error)
    };
    let (found, out, error) = run("heavy");
    assert!(!found && out.is_empty(), "{out}");
    let error = error.trim();
    assert!(error.starts_with("eprof: error: no function is called \"heavy\", and 9"), "{error}");
    assert!(error.contains("it changed since the recording") && error.contains("record again"), "{error}");
    assert!(
        error.ends_with("\"heavy_work\" has it in its name: `eprof annotate \"heavy_work\"` shows that"),
        "{error}"
    );
    let (found, _, error) = run("entirely_else");
    assert!(
        !found && error.contains("it changed since the recording") && !error.contains("similar"),
        "{error}"
    );
    // Who asks for a pattern gets what matches it, and reads first what has no names.
    let (found, out, error) = run("heavy.*");
    assert!(
        found && out.contains("heavy_work") && error.contains("it changed since the recording"),
        "{error}"
    );
}

#[test]
fn callers_of_an_inlined_function_are_found_as_its_code_is() {
    let folder = Folder::with(&Recorded::default());
    std::fs::write(folder.path().join("x.folded"), "main;outer;put_[i] 12\nmain;outer 3\n").expect("written");
    let output = folder.run(&["report", "x.folded", "--callers", "put", "--format", "json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("\"put\" is nowhere but inlined into its callers"),
        "{said}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows").iter();
    let rows: Vec<(&str, f64)> =
        rows.map(|row| (row["name"].as_str().expect("a name"), number(&row["self_samples"]))).collect();
    assert_eq!(rows, [("outer", 12.0)]);
    let error = folder.error(&["report", "x.folded", "--callers", "put", "--no-inline"]);
    assert!(error.contains("no function is named \"put\""), "{error}");
    let error = folder.error(&["report", "x.folded", "--callers", "nobody"]);
    assert!(error.contains("no function is named \"nobody\""), "{error}");
}

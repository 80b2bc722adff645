//! What hands do that know perf and git: options by their names there, and no surprise where they slip.

use std::process::{Command, Output, Stdio};

use eprof_testbed::{eprof, skip_quietly};

fn run(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    eprof().args(arguments).current_dir(folder.path()).stdin(Stdio::null()).output().expect("eprof runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `--help` prints, and the verbs that it lists.
fn help(verbs: &[String]) -> (String, Vec<String>) {
    let output = eprof().args(verbs).arg("--help").output().expect("eprof runs");
    let help = String::from_utf8(output.stdout).expect("text");
    let listed =
        help.split_once("Commands:\n").map_or("", |(_, list)| list.split("\n\n").next().unwrap_or(""));
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let below = listed.lines().map(|line| !line.starts_with("   "));
    let names = names.zip(below).filter(|(name, is_verb)| *is_verb && *name != "help");
    let names = names.map(|(name, _)| name.to_owned()).collect();
    (help, names)
}

#[test]
fn a_mistyped_option_is_no_program() {
    for (line, nearest) in [
        (&["record", "--frq", "99", "true"][..], "--freq"),
        (&["record", "--al-cpus", "--", "true"], "--all-cpus"),
        (&["stat", "--repaet", "3", "true"], "--repeat"),
        (&["tune", "--thraeds", "1..2", "--", "true"], "--threads"),
    ] {
        let output = run(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {said}");
        assert!(said.contains("unexpected argument") && said.contains(nearest), "{line:?}: {said}");
    }
    // What stands behind the program's name is the program's.
    let output = run(&["stat", "--meter", "estimate", "echo", "--repaet", "-x"]);
    assert_eq!(output.stdout, b"--repaet -x\n", "{}", stderr(&output));
}

#[test]
fn verbs_of_other_tools_are_told_which_of_ours_do_their_work() {
    for (verb, ours) in [("diff", "flamegraph --diff"), ("list", "doctor"), ("convert", "export")] {
        let output = run(&[verb, "a.data"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{verb}: {said}");
        assert!(said.contains(&format!("unrecognized subcommand '{verb}'")) && said.contains(ours), "{said}");
    }
    // Where a verb is mistyped, the nearest is meant.
    let said = stderr(&run(&["reprot"]));
    assert!(said.contains("'report'") && !said.contains("does the work"), "{said}");
}

#[test]
fn what_is_wrong_with_a_regular_expression_is_said_in_one_line() {
    for (line, option) in [
        (&["report", "--filter", "sort("][..], "--filter"),
        (&["flamegraph", "--thread", "sort("], "--thread"),
        (&["annotate", "main", "--module", "sort("], "--module"),
        (&["top", "--filter", "sort("], "--filter"),
    ] {
        let output = run(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {said}");
        let first = said.lines().next().unwrap_or_default();
        assert!(
            first.contains(option)
                && first.contains("'sort('")
                && first.ends_with(
                    "no regular expression: unclosed group, at letter 5, `(`; the sign itself is `\\(`"
                ),
            "{line:?}: {said}"
        );
    }
}

#[test]
fn impossible_rates_are_refused() {
    let none = run(&["record", "-F", "0", "true"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("1 or more"), "{}", stderr(&none));
    assert_eq!(run(&["record", "-c", "0", "true"]).status.code(), Some(2));
}

/// As perf does: who asks for too much gets what there is, and hears of it.
#[test]
fn rates_above_the_limit_are_lowered_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = eprof();
    command.args(["record", "--meter", "estimate", "--watts", "4:20", "-F", "1000000", "-o", "a.data", "--"]);
    // A rank runs as it would without eprof; what was lowered is said there, too.
    let output =
        command.arg("true").env("PMI_RANK", "3").current_dir(folder.path()).output().expect("eprof runs");
    let said = stderr(&output);
    if said.contains("may not") {
        skip_quietly("this user may not sample");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("1000000 samples a second were asked for, and "), "{said}");
    assert!(!said.contains("without being recorded"), "{said}");
}

#[test]
fn a_meter_that_is_asked_for_is_read_or_nothing_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    for verb in ["record", "stat"] {
        let mut command = eprof();
        command.args([verb, "--meter", "nvml", "--nvml-lib", "/nonexistent/libnvidia-ml.so.1", "--"]);
        let output = command.args(["touch", "ran"]).current_dir(folder.path()).output().expect("eprof runs");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("NVIDIA's driver") && said.contains("eprof doctor"), "{said}");
        assert!(!folder.path().join("ran").exists(), "the program was started");
    }
}

#[test]
fn verbs_are_listed_in_the_order_of_use() {
    let (_, verbs) = help(&[]);
    assert_eq!(&verbs[..6], ["record", "report", "view", "flamegraph", "annotate", "stat"]);
    assert!(!verbs.iter().any(|verb| verb == "tune-guard"));
}

#[test]
fn every_verb_has_examples() {
    let mut open = vec![Vec::new()];
    let mut seen = 0;
    while let Some(verbs) = open.pop() {
        let (help, below) = help(&verbs);
        assert!(help.contains("Example"), "{verbs:?}: {help}");
        seen += 1;
        open.extend(below.into_iter().map(|verb| [&verbs[..], &[verb]].concat()));
    }
    assert!(seen >= 24, "{seen} verbs");
}

/// Runs a command line on a terminal of its own, and gives what the terminal showed.
fn on_a_terminal(command: &mut Command) -> String {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{FromRawFd, OwnedFd};
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the two numbers are written, the size is read, and nothing else is asked for.
    let opened = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        )
    };
    assert_eq!(opened, 0, "a terminal");
    // SAFETY: both were just opened and belong to nobody else.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut child = command.stdin(Stdio::null()).stdout(slave).stderr(Stdio::null()).spawn().expect("runs");
    // The command keeps the other end as long as it lives.
    command.stdout(Stdio::null());
    let mut shown = Vec::new();
    let mut part = [0; 4096];
    // The end of a terminal is an error (EIO).
    while let Ok(count @ 1..) = master.read(&mut part) {
        shown.extend_from_slice(&part[..count]);
    }
    child.wait().expect("ends");
    String::from_utf8_lossy(&shown).into_owned()
}

/// `eprof` with arguments, in a folder, on a kind of terminal that has a pager.
fn eprof_in(folder: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = eprof();
    command.args(arguments).current_dir(folder).env("TERM", "xterm").env_remove("EPROF_PAGER");
    command.env("PAGER", "sed 's/^/paged: /'").env_remove("COLUMNS");
    command
}

#[test]
fn a_terminal_has_a_pager() {
    use super::report::recording::Recorded;
    let folder = tempfile::tempdir().expect("a folder");
    Recorded::default().write(&folder.path().join("eprof.data"));
    let shown = |arguments: &[&str]| on_a_terminal(&mut eprof_in(folder.path(), arguments));
    for verb in ["report", "script"] {
        let paged = shown(&[verb]);
        assert!(
            !paged.is_empty() && paged.lines().all(|line| line.starts_with("paged: ")),
            "{verb}: {paged}"
        );
        for line in [&[verb, "--no-pager"][..], &["--no-pager", verb]] {
            let plain = shown(line);
            assert!(!plain.is_empty() && !plain.contains("paged: "), "{line:?}: {plain}");
        }
    }
    let plain = on_a_terminal(eprof_in(folder.path(), &["report"]).env("EPROF_PAGER", "cat"));
    assert!(plain.contains("heavy") && !plain.contains("paged: "), "{plain}");
    // A pager that ends early is no error.
    let cut = on_a_terminal(eprof_in(folder.path(), &["script"]).env("PAGER", "head -n 2"));
    assert_eq!(cut.lines().count(), 2, "{cut}");
    // In a pipe there is none.
    let output = eprof_in(folder.path(), &["report"]).output().expect("eprof runs");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("paged: "));
}

//! `eprof view`: the page in a real browser, and how it gets there.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof_testbed::{eprof, has_program, skip_quietly};

use super::recording::Recorded;
use super::{Folder, with_a_garbage_stack};

/// What runs the checks of a page; see tests/browser.
struct Checker {
    chromium: String,
    /// axe-core, if it is installed.
    axe: Option<PathBuf>,
}

impl Checker {
    fn find() -> Option<Self> {
        if !has_program("node", &["--version"]) {
            skip_quietly("node is not installed: no page is opened in a browser");
            return None;
        }
        let named = env::var("CHROMIUM").ok();
        let known = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
        let mut programs = named.into_iter().chain(known.map(str::to_owned));
        let Some(chromium) = programs.find(|program| has_program(program, &["--version"])) else {
            skip_quietly(
                "no Chromium is installed (CHROMIUM=PROGRAM names one): no page is opened in a browser",
            );
            return None;
        };
        let axe = env::var_os("EPROF_AXE").map(PathBuf::from).or_else(|| {
            let folder = Command::new("npm").args(["root", "-g"]).output().ok()?.stdout;
            Some(Path::new(String::from_utf8(folder).ok()?.trim()).join("axe-core/axe.min.js"))
        });
        let axe = axe.filter(|file| file.is_file());
        if axe.is_none() {
            skip_quietly(
                "axe-core is not installed (npm install -g axe-core, or EPROF_AXE=axe.min.js): whether a page can be \
                 used by everybody is not checked",
            );
        }
        Some(Self { chromium, axe })
    }

    /// Checks pages, each of a kind.
    fn check(&self, folder: &Path, pages: &[(&str, &str)]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/main.js");
        let mut command = Command::new("node");
        command.arg(script).arg(&self.chromium).arg(self.axe.as_deref().unwrap_or(Path::new("-")));
        pages.iter().for_each(|(kind, page)| {
            command.args([kind, page]);
        });
        let output = command.current_dir(folder).output().expect("node runs");
        let said = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success(), "{}", said.concat());
        assert_eq!(said[0].matches(": ok\n").count(), pages.len(), "{}", said.concat());
    }
}

/// Ten thousand functions by name, as another tool collapsed their stacks.
fn many_functions() -> String {
    let mut text = String::new();
    for number in 0..12_000_u32 {
        // Each calls one of a few others, the earlier ones more often.
        let caller = number % 97 * (number % 7);
        let _ = writeln!(
            text,
            "main;outer::module_{caller}::call;inner::function_{number:05} {}",
            1 + 12_000 / (number + 1)
        );
    }
    text
}

/// Functions that were put into several others, below each of which some call more; one of a million lies so deep in a branch
/// of its own that it is not drawn.
fn with_inlined_functions() -> String {
    let mut text = String::new();
    for number in 0..300_u32 {
        let (outer, put) = (number % 7, number % 5);
        let weight = 1000 + number * 37 % 901;
        let _ = writeln!(text, "main;outer_{outer};put_{put}_[i] {weight}");
        let _ = writeln!(text, "main;outer_{outer};put_{put}_[i];deeper_{}_[i] {}", number % 3, weight / 2);
        let _ = writeln!(text, "main;outer_{outer};put_{put}_[i];called_{} {}", number % 11, weight / 3);
        let _ = writeln!(text, "main;outer_{outer} {}", weight / 5);
    }
    for number in 0..13_000 {
        let _ = writeln!(text, "main;rare_{number};put_{}_[i] 1", number % 5);
    }
    text + "main 100000000\n"
}

#[test]
fn a_page_holds_in_a_browser() {
    let Some(checker) = Checker::find() else { return };
    let folder = Folder::with(&Recorded::default());
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recordings/guest-neighbours.data");
    let fixture = fixture.to_str().expect("a path");
    folder.output(&["view", "--no-open", "-o", "simple.html"]);
    // Two machines, one after the other: their power stands on one axis.
    let other = fixture.replace("guest-neighbours", "guest-program-only");
    folder.output(&["view", fixture, &other, "--no-open", "-o", "several.html"]);
    let page = fs::read_to_string(folder.path().join("several.html")).expect("the page");
    assert!(page.contains("\"gaps\":[0."), "there is time between them");
    // Three domains, one inside another, and what neighbours, eprof and the machine at rest took.
    folder.output(&["view", fixture, "--no-open", "--source", "-o", "measured.html"]);
    Recorded { heavy_of_four: 2, ..Recorded::default() }.write(&folder.path().join("older.data"));
    folder.output(&["view", "--no-open", "--diff", "older.data", "-o", "difference.html"]);
    const EVIL: &str = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>{{data}}";
    Recorded {
        comm: EVIL,
        argv: &[EVIL],
        domain: EVIL,
        strange_file: EVIL,
        warning: EVIL,
        ..Recorded::default()
    }
    .write(&folder.path().join("hostile.data"));
    folder.output(&["view", "hostile.data", "--root", "thread", "--no-open", "-o", "hostile.html"]);
    fs::write(folder.path().join("many.folded"), many_functions()).expect("written");
    folder.output(&["view", "many.folded", "--no-open", "-o", "many.html"]);
    fs::write(folder.path().join("garbage.folded"), with_a_garbage_stack()).expect("written");
    folder.output(&["view", "garbage.folded", "--no-open", "-o", "garbage.html"]);
    fs::write(folder.path().join("inlined.folded"), with_inlined_functions()).expect("written");
    folder.output(&["view", "inlined.folded", "--no-open", "-o", "inlined.html"]);
    fs::write(folder.path().join("fewer.folded"), "main;outer::module_0::call;inner::function_00000 7000\n")
        .expect("written");
    folder.output(&["view", "many.folded", "--diff", "fewer.folded", "--no-open", "-o", "samples.html"]);
    let pages = [
        ("difference", "samples.html"),
        ("program", "simple.html"),
        ("program", "measured.html"),
        ("program", "several.html"),
        ("difference", "difference.html"),
        ("hostile", "hostile.html"),
        ("many", "many.html"),
        ("garbage", "garbage.html"),
        ("inlined", "inlined.html"),
    ];
    checker.check(folder.path(), &pages);
}

/// A folder with an `xdg-open` that writes down what it is to open, and ends so.
fn fake_browser(folder: &Path, status: i32) -> PathBuf {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).expect("a folder");
    let starter = programs.join("xdg-open");
    let script = format!("echo \"$1\" > \"{}/opened\"\nexit {status}\n", folder.display());
    eprof_testbed::programs::write_script(&starter, &script);
    programs
}

#[test]
fn a_page_is_opened_where_its_reader_sits() {
    let folder = Folder::with(&Recorded::default());
    let said = |arguments: &[&str], programs: &Path, set: &[(&str, &str)]| {
        let mut command = eprof();
        command.arg("view").args(arguments).current_dir(folder.path());
        for name in ["DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY", "SUDO_USER"] {
            command.env_remove(name);
        }
        let output = command.env("PATH", programs).envs(set.iter().copied()).output().expect("eprof runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let programs = fake_browser(folder.path(), 0);
    let opened = folder.path().join("opened");
    let display = [("DISPLAY", ":7")];
    assert!(said(&["--no-open"], &programs, &display).contains("energy.html is written"));
    assert!(said(&[], &programs, &[]).contains("no display here"));
    let ssh = said(&[], &programs, &[("DISPLAY", ":7"), ("SSH_CONNECTION", "10.0.0.1 5 10.0.0.2 22")]);
    assert!(ssh.contains("scp ") && ssh.contains("ssh -L 8000:localhost:8000 "), "{ssh}");
    assert!(!opened.exists(), "no browser was asked for");
    assert!(said(&[], &programs, &display).contains("opened in your browser"));
    let page = fs::read_to_string(&opened).expect("a browser was started");
    assert_eq!(
        Path::new(page.trim()),
        fs::canonicalize(folder.path().join("energy.html")).expect("the page")
    );
    let refused = fake_browser(folder.path(), 3);
    assert!(said(&[], &refused, &display).contains("no browser could be opened (xdg-open: exit status: 3)"));
    assert!(said(&[], Path::new("/nonexistent"), &display).contains("xdg-open is not installed"));
}

#[test]
fn source_lines_are_in_a_page_only_if_they_are_asked_for() {
    let folder = Folder::with(&Recorded::default());
    for arguments in [&["view", "--no-open"][..], &["view", "--no-open", "--source"]] {
        folder.output(arguments);
        let page = fs::read_to_string(folder.path().join("energy.html")).expect("the page");
        let lines = page.split_once("\"lines\":").expect("lines").1;
        assert_eq!(lines.contains("\"texts\":{"), arguments.contains(&"--source"), "{arguments:?}");
    }
}

#[test]
fn what_must_be_known_of_the_older_recording_is_said_to_be_of_it() {
    let folder = Folder::with(&Recorded { warning: "the newer one has gaps", ..Recorded::default() });
    let older = Recorded { warning: "the older one has gaps", ..Recorded::default() };
    older.write(&folder.path().join("older.data"));
    for verb in [&["view", "--no-open"][..], &["flamegraph", "-o", "x.svg"], &["flamegraph", "-o", "x.png"]] {
        let said = |arguments: &[&str]| {
            let output = eprof().args(arguments).current_dir(folder.path()).output().expect("eprof runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{arguments:?}: {said}");
            let lines = said.lines().filter(|line| line.contains("gaps")).map(str::to_owned);
            lines.collect::<Vec<String>>()
        };
        let newer = "eprof: warning: the newer one has gaps";
        assert_eq!(said(verb), [newer], "{verb:?}");
        let both = [newer, "eprof: warning: of the older recording: the older one has gaps"];
        assert_eq!(said(&[verb, &["--diff", "older.data"]].concat()), both, "{verb:?}");
    }
}

#[test]
fn what_a_page_cannot_be_is_said() {
    let folder = Folder::with(&Recorded::default());
    fs::write(folder.path().join("stacks.folded"), "main;f 3\n").expect("written");
    let said = |arguments: &[&str], what: &str| {
        let error = folder.error(arguments);
        assert!(error.contains(what), "{arguments:?}: {error}");
    };
    said(&["view", "--diff", "stacks.folded", "--no-open"], "samples");
    said(&["view", "gone.data"], "gone.data");
    said(&["view", "-o", "eprof.data"], "it is read");
    said(
        &["view", "--thread", "nobody"],
        "nothing to show: no thread's name matches --thread nobody: there are ",
    );
    let page = folder.output(&["view", "-o", "-"]);
    assert!(page.starts_with("<!DOCTYPE html>"), "standard output has the page");
}

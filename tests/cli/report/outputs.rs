//! What is written is there whole, or the old file still is; and what is read is never written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::Folder;

use super::recording::Recorded;

/// A command line that writes one file, given its name.
const WRITERS: [&[&str]; 11] = [
    &["report", "-o"],
    &["report", "--format", "json", "-o"],
    &["report", "--format", "html", "-o"],
    &["view", "--no-open", "-o"],
    &["report", "--by", "bucket", "--svg"],
    &["flamegraph", "-o"],
    &["export", "--format", "perf-data", "-o"],
    &["export", "--format", "collapsed", "-o"],
    &["export", "--format", "speedscope", "-o"],
    &["export", "--format", "pprof", "-o"],
    &["export", "--format", "firefox", "-o"],
];

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).expect("folder").count()
}

#[test]
fn the_recording_is_never_an_output_whatever_it_is_called() {
    let folder = Folder::with(&Recorded::default());
    let at = |name: &str| folder.path().join(name);
    let before = fs::read(at("eprof.data")).expect("a recording");
    fs::hard_link(at("eprof.data"), at("hard.data")).expect("a hard link");
    symlink("eprof.data", at("soft.data")).expect("a symbolic link");
    for writer in WRITERS {
        for name in ["eprof.data", "./eprof.data", "hard.data", "soft.data"] {
            let error = folder.error(&[writer, &[name]].concat());
            assert!(error.contains("name another file with -o"), "{writer:?} {name}: {error}");
            assert_eq!(fs::read(at("eprof.data")).expect("still there"), before, "{writer:?} {name}");
        }
    }
    assert_eq!(files(folder.path()), 3, "nothing else was left");
}

#[test]
fn pages_and_profiles_are_what_their_names_say() {
    let folder = Folder::with(&Recorded::default());
    let error = folder.error(&["view", "--no-open", "-o", "x.svg"]);
    assert!(
        error.contains("`eprof flamegraph -o x.svg`") && !folder.path().join("x.svg").exists(),
        "{error}"
    );
    folder.output(&["export", "--format", "firefox", "-o", "x.json"]);
    folder.output(&["export", "--format", "firefox", "-o", "x.json.gz"]);
    let read = |name: &str| fs::read(folder.path().join(name)).expect("written");
    let plain: serde_json::Value = serde_json::from_slice(&read("x.json")).expect("JSON");
    assert!(plain["threads"].is_array());
    assert!(read("x.json.gz").starts_with(b"\x1f\x8b"));
    let by_domain = folder.output(&["report", "--by", "domain", "--format", "json"]);
    let by_domain: serde_json::Value = serde_json::from_str(&by_domain).expect("JSON");
    assert!(by_domain["rows"][0]["self_samples"].is_null(), "{}", by_domain["rows"][0]);
}

#[test]
fn the_name_of_an_output_does_not_lie_about_its_format() {
    let folder = Folder::with(&Recorded::default());
    let begins = |name: &str, with: &[u8]| {
        let written = fs::read(folder.path().join(name)).expect("written");
        assert!(
            written.starts_with(with),
            "{name}: {}",
            String::from_utf8_lossy(&written[..written.len().min(80)])
        );
    };
    for (arguments, name, with) in [
        (&["flamegraph"][..], "x.png", &b"\x89PNG"[..]),
        (&["flamegraph"], "x.svg", b"<?xml"),
        (&["flamegraph"], "picture", b"<?xml"),
        (&["flamegraph", "--format", "png"], "pixels", b"\x89PNG"),
        (&["report"], "x.json", b"{"),
        (&["report"], "x.html", b"<!"),
    ] {
        folder.output(&[arguments, &["-o", name]].concat());
        begins(name, with);
    }
    folder.output(&["flamegraph", "-o", "x.txt"]);
    assert!(fs::read_to_string(folder.path().join("x.txt")).expect("written").contains("100.0%"));
    folder.output(&["report", "-o", "x.csv"]);
    assert!(
        fs::read_to_string(folder.path().join("x.csv"))
            .expect("written")
            .lines()
            .next()
            .is_some_and(|head| head.contains(','))
    );
    let before = files(folder.path());
    for (arguments, repair) in [
        (&["flamegraph", "-o", "y.html"][..], "`eprof view -o y.html`"),
        (&["flamegraph", "-o", "y.folded"], "`eprof export --format collapsed -o y.folded`"),
        (&["flamegraph", "--format", "svg", "-o", "y.png"], "leave out --format"),
        (&["report", "-o", "y.svg"], "`eprof flamegraph -o y.svg`"),
        (&["report", "--format", "json", "-o", "y.csv"], "leave out --format"),
    ] {
        let error = folder.error(arguments);
        assert!(error.contains(repair), "{arguments:?}: {error}");
    }
    assert_eq!(files(folder.path()), before, "nothing was written");
}

#[test]
fn a_minus_is_standard_output_and_never_a_file() {
    let folder = Folder::with(&Recorded::default());
    for (arguments, begins) in [
        (&["report", "-o", "-"][..], "app --work\n"),
        (&["report", "--format", "json", "-o", "-"], "{"),
        (&["report", "--format", "html", "-o", "-"], "<!DOCTYPE html>"),
        (&["annotate", "heavy", "-o", "-"], "cpu-clock: "),
        (&["flamegraph", "-o", "-"], "<?xml"),
        (&["flamegraph", "--format", "text", "-o", "-"], "10.00 J (package-0): app --work\n"),
        (&["export", "--format", "collapsed", "-o", "-"], ""),
        (&["view", "-o", "-"], "<!DOCTYPE html>"),
    ] {
        let written = folder.output(arguments);
        assert!(!written.is_empty() && written.starts_with(begins), "{arguments:?}: {written:.200}");
    }
    for arguments in [
        &["record", "-o", "-", "--meter", "estimate", "true"][..],
        &["export", "--format", "perf-data", "-o", "-"],
        &["export", "--format", "parquet", "-o", "-"],
        &["report", "--by", "bucket", "--svg", "-"],
    ] {
        let error = folder.error(arguments);
        let says_how = ["name ", "needs a file"].iter().any(|what| error.contains(what));
        assert!(says_how && error.lines().count() == 1, "{arguments:?}: {error}");
    }
    assert_eq!(files(folder.path()), 1, "the recording alone");
}

#[test]
fn what_has_no_samples_is_exported_to_no_format() {
    let folder = Folder::with(&Recorded::default());
    super::recording::write_empty(&folder.path().join("empty.data"));
    for format in ["collapsed", "speedscope", "pprof", "firefox", "otlp", "perf-data"] {
        let error = folder.error(&["export", "empty.data", "--format", format, "-o", "out"]);
        let why =
            if format == "perf-data" { "the recording is empty" } else { "the recording has no samples" };
        assert!(error.contains(why), "{format}: {error}");
        if format != "perf-data" {
            let error = folder.error(&["export", "--format", format, "--thread", "nobody", "-o", "out"]);
            assert!(error.contains("no thread's name matches --thread nobody"), "{format}: {error}");
        }
    }
    assert!(!folder.path().join("out").exists());
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let folder = Folder::with(&Recorded::default());
    let samples = [
        &["--weight", "samples"][..],
        &["--event", "cpu-clock"],
        &["--thread", "app"],
        &["--process", "nobody"],
        &["--through", "heavy"],
        &["--whole"],
    ];
    let of_rows = [
        &["--domain", "package-0"][..],
        &["--filter", "heavy"],
        &["--callers", "heavy"],
        &["--sort", "name"],
    ];
    for option in samples.iter().chain(&of_rows) {
        let error = folder.error(&[&["report", "--by", "bucket"], *option].concat());
        assert!(error.contains(&format!("leave out {}; `eprof view`", option[0])), "{option:?}: {error}");
    }
    for option in samples.iter().chain(&[&["--by", "rank"][..], &["--root", "thread"]]) {
        let error = folder.error(&[&["export", "--format", "perf-data"], *option].concat());
        assert!(error.contains(&format!("whatever {} says: select", option[0])), "{option:?}: {error}");
    }
    assert_eq!(files(folder.path()), 1, "the recording alone");
    folder.output(&["report", "--by", "bucket", "--weight", "joules"]);
    folder.output(&["export", "--format", "perf-data", "--domain", "package-0", "--weight", "joules"]);
}

#[test]
fn domains_have_no_samples_and_say_so() {
    let folder = Folder::with(&Recorded::default());
    let error = folder.error(&["report", "--by", "domain", "--weight", "samples"]);
    assert!(error.contains("domains have joules and no samples"), "{error}");
    folder.output(&["report", "--by", "domain", "--weight", "joules"]);
    fs::write(folder.path().join("text"), "main;work 3\n").expect("writable");
    for by in ["domain", "bucket"] {
        let error = folder.error(&["report", "text", "--by", by]);
        assert!(
            error.contains("no joules in this recording") && !error.contains("--weight"),
            "{by}: {error}"
        );
    }
}

#[test]
fn a_folder_that_is_mistyped_is_no_folder() {
    let folder = Folder::with(&Recorded::default());
    for arguments in [
        &["view", "--no-open", "--source=/nonexistent"][..],
        &["annotate", "heavy", "--source", "/nonexistent"],
        &["annotate", "heavy", "--source", "eprof.data"],
    ] {
        let output = folder.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("No such file or directory") || said.contains("not a directory"),
            "{arguments:?}: {said}"
        );
    }
    // One that is there and has none of the files.
    let moved = folder.run(&["view", "--no-open", "--source=."]);
    assert!(moved.status.success(), "the files are where the compiler found them: {moved:?}");
}

/// All text for people, where the locale has no other letters.
#[test]
fn in_the_c_locale_there_is_nothing_but_ascii() {
    let folder = Folder::with(&Recorded { watts_error: Some(0.6), ..Recorded::default() });
    for arguments in [
        &["report", "--limit", "1"][..],
        &["report", "--by", "bucket"],
        &["annotate", "heavy"],
        &["flamegraph", "--format", "text"],
        &["flamegraph", "--format", "text", "--diff", "eprof.data"],
    ] {
        let run = |locale: &str| {
            let output = eprof_testbed::eprof()
                .args(arguments)
                .current_dir(folder.path())
                .env("LC_ALL", locale)
                .output()
                .expect("eprof runs");
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            let [out, error] =
                [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
            out + &error
        };
        let (ascii, all) = (run("C"), run("C.UTF-8"));
        let strange: String = ascii.chars().filter(|letter| !letter.is_ascii()).collect();
        assert_eq!(strange, "", "{arguments:?}: {ascii}");
        assert_eq!(ascii.lines().count(), all.lines().count(), "{arguments:?}");
        if arguments[0] == "report" && arguments[1] == "--limit" {
            assert!(ascii.contains(" +- ") && all.contains(" ± "), "{ascii}\n{all}");
        }
    }
}

#[test]
fn the_older_recording_of_a_difference_is_not_written_either() {
    let folder = Folder::with(&Recorded::default());
    fs::copy(folder.path().join("eprof.data"), folder.path().join("older.data")).expect("copied");
    let error = folder.error(&["flamegraph", "--diff", "older.data", "-o", "older.data"]);
    assert!(error.contains("older.data") && error.contains("-o"), "{error}");
}

#[test]
fn what_fails_leaves_the_old_file() {
    let folder = Folder::with(&Recorded::default());
    let at = |name: &str| folder.path().join(name);
    fs::write(at("kept"), "old").expect("written");
    fs::write(at("broken.data"), "no recording").expect("written");
    let kept = |what: &str| {
        assert_eq!(fs::read(at("kept")).expect("there"), b"old", "{what}");
        assert_eq!(files(folder.path()), 3, "{what} left something");
    };
    folder.error(&["flamegraph", "--diff", "broken.data", "-o", "kept"]);
    kept("a difference with what is no recording");
    folder.error(&["flamegraph", "--domain", "moon", "-o", "kept"]);
    kept("a domain that is not there");
    for writer in WRITERS {
        let arguments = [writer, &["kept", "-i", "broken.data"]].concat();
        folder.error(&arguments);
        kept(&format!("{arguments:?}"));
    }
}

/// A limit of the file's size stops a write in its middle, as a full disk does. The kernel kills by a signal, which a
/// shell can have ignored.
#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::with(&Recorded::default());
    let kept = folder.path().join("kept");
    fs::write(&kept, "old").expect("written");
    let mut refused = 0;
    for writer in WRITERS {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""]);
        shell.arg(eprof_testbed::eprof().get_program()).args(writer).arg("kept").current_dir(folder.path());
        let output = shell.output().expect("a shell runs");
        let error = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            // Short enough for the smallest limit that there is.
            let size = fs::metadata(&kept).expect("there").len();
            assert!(size <= 1024, "{writer:?} wrote {size} bytes");
            fs::write(&kept, "old").expect("written");
            continue;
        }
        assert!(error.contains("cannot write"), "{writer:?}: {error}");
        assert_eq!(fs::read(&kept).expect("there"), b"old", "{writer:?}");
        refused += 1;
    }
    assert!(refused >= 5, "only {refused} outputs were too long");
    assert_eq!(files(folder.path()), 2, "nothing else was left");
}

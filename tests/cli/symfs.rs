//! `--symfs` and modules without build-id: a copy of a recorded program stands for it, as it does for perf.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use eprof_testbed::{run_or_skip, skip_quietly};
use tempfile::TempDir;

/// Recursion 40 deep without frame pointers, so that nothing but the program's own unwind tables tells its callers.
const SOURCE: &str = r#"
    volatile unsigned long sink;
    __attribute__((noinline)) void heavy(void) { for (unsigned long i = 0; i < 400000; i++) sink += i * i; }
    __attribute__((noinline)) void down(int d) { if (d) down(d - 1); else heavy(); sink++; }
    int main(void) { for (int i = 0; i < 2000; i++) down(40); return 0; }
"#;

/// `heavy`, `down` 41 times, and `main`; what calls that lies in the C library, which is not in the folder.
const OF_PROGRAM: usize = 43;

/// A folder with `perf.data`, the recording of a program that now lies in `root` below its old path and nowhere else.
fn moved_program() -> Option<TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("program.c"), SOURCE).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fno-optimize-sibling-calls", "-fomit-frame-pointer"])
        .args(["-Wl,--build-id=none", "-o"])
        .arg(at("program"))
        .arg(at("program.c"));
    let mut record = Command::new("perf");
    record
        .args(["record", "-q", "-F", "499", "--call-graph", "dwarf,8192", "-e", "cpu-clock:u", "-o"])
        .arg(at("perf.data"))
        .arg(at("program"));
    if !run_or_skip([&mut gcc, &mut record]) {
        return None;
    }
    let copy = format!("{}{}", at("root").display(), at("program").display());
    fs::create_dir_all(Path::new(&copy).parent().expect("a folder")).expect("made");
    // Another inode and a later time, as a copy has them.
    fs::copy(at("program"), &copy).expect("copied");
    fs::remove_file(at("program")).expect("removed");
    Some(folder)
}

fn script(tool: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(tool);
    command.args(["script", "--no-inline", "-F", "ip,sym,dso", "-i"]).arg(folder.join("perf.data"));
    command.args(arguments).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The symbols of each stack in the program, innermost first.
fn stacks(output: &Output) -> Vec<Vec<String>> {
    let symbol = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let text = text(&output.stdout);
    let stacks = text.split("\n\n").map(|stack| stack.trim()).filter(|stack| !stack.is_empty());
    stacks.map(|stack| stack.lines().map(symbol).take(OF_PROGRAM).collect()).collect()
}

#[test]
fn a_copy_in_the_named_folder_is_unwound_and_named_as_perf_does() {
    let Some(folder) = moved_program() else { return };
    let root = folder.path().join("root");
    let symfs = ["--symfs", root.to_str().expect("a path")];
    let ours = script(env!("CARGO_BIN_EXE_eprof"), folder.path(), &symfs);
    let theirs = script("perf", folder.path(), &symfs);
    let said = text(&ours.stderr);
    // Some of perf's 6.1 smash their stack over a program without build-id: then nobody is there to compare with.
    let crashes = theirs.status.signal().is_some();
    let (ours, theirs) = (stacks(&ours), stacks(&theirs));
    let is_deep = |stack: &&Vec<String>| stack.iter().filter(|symbol| *symbol == "down").count() == 41;
    assert!(ours.iter().filter(is_deep).count() > 20, "{said}");
    if crashes {
        skip_quietly("perf script crashes here over a program without build-id");
    } else {
        let equal = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours == theirs).count();
        assert_eq!(ours.len(), theirs.len());
        assert!(equal * 100 >= ours.len() * 95, "{equal} of {} stacks are perf's", ours.len());
    }
    assert!(said.contains("unchecked: the recording has no build-id to compare with"), "{said}");

    let mut report = Command::new(env!("CARGO_BIN_EXE_eprof"));
    report.args(["report", "--children", "-i"]).arg(folder.path().join("perf.data")).args(symfs);
    let report = report.output().expect("runs");
    let table = text(&report.stdout);
    let total = |name: &str| {
        let row = table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}: {table}"));
        row.to_owned()
    };
    assert!(total("down").contains('%') && total("main").contains('%'), "{table}");
}

#[test]
fn where_stacks_end_for_want_of_tables_is_said() {
    let Some(folder) = moved_program() else { return };
    // Another program at the old place.
    fs::copy("/bin/true", folder.path().join("program")).expect("copied");
    let output = script(env!("CARGO_BIN_EXE_eprof"), folder.path(), &[]);
    let said = text(&output.stderr);
    assert!(
        said.contains("call stacks end in") && said.contains("whose unwind tables were not read"),
        "{said}"
    );
}

#[test]
fn a_file_without_code_at_the_sampled_addresses_is_told() {
    let Some(folder) = moved_program() else { return };
    let path = folder.path().join("program").display().to_string();
    let root = folder.path().join("root");
    fs::copy("/bin/true", format!("{}{path}", root.display())).expect("copied");
    let symfs = ["--symfs", root.to_str().expect("a path")];
    let said = text(&script(env!("CARGO_BIN_EXE_eprof"), folder.path(), &symfs).stderr);
    assert!(said.contains("is not the recorded file"), "{said}");
}

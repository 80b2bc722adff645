//! `eprof script` prints what `perf script` prints: the same samples with the same fields, addresses, names and files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use eprof_testbed::{published_data, run_or_skip, skip};

/// A sample as both print it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Printed {
    /// Name, process and thread, CPU, time, period, event; white space taken out.
    header: String,
    frames: Vec<Frame>,
}

/// A frame as both print it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    address: u64,
    /// Symbol and offset; of the kernel and the vdso, which perf takes from the running kernel whatever kernel was
    /// recorded, nothing.
    symbol: String,
    /// The file; of kernel modules, which perf calls by path or name as it comes, the name.
    file: String,
}

/// Reads what either program prints: a header, then addresses on the same line or on lines of their own.
fn parse(text: &str) -> Vec<Printed> {
    let mut samples: Vec<Printed> = Vec::new();
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix('\t') {
            samples.last_mut().expect("a header comes first").frames.push(parse_frame(frame));
        } else if let Some((header, own)) = line.split_once(": ").and_then(|(start, rest)| {
            // The first colon ends the time, the second the event (whose modifiers have no space behind).
            let (middle, end) =
                format!("{rest} ").split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            Some((format!("{start}:{middle}"), end))
        }) {
            // perf prints the number of no CPU.
            let words = header.split_whitespace().filter(|word| *word != "[-01]");
            let header = words.collect::<Vec<_>>().join(" ");
            let frames = if own.trim().is_empty() { vec![] } else { vec![parse_frame(&own)] };
            samples.push(Printed { header, frames });
        } else {
            assert!(line.trim().is_empty(), "what is this? {line:?}");
        }
    }
    samples
}

/// `address symbol+offset (file)`.
fn parse_frame(text: &str) -> Frame {
    let (address, rest) = text.trim().split_once(' ').unwrap_or_else(|| panic!("no frame: {text:?}"));
    let address = u64::from_str_radix(address, 16).unwrap_or_else(|_| panic!("no address: {text:?}"));
    let (symbol, file) = rest.rsplit_once(" (").unwrap_or_else(|| panic!("no file: {text:?}"));
    let file = file.trim_end_matches(')');
    let is_module = file.contains("/lib/modules/");
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".ko").replace('-', "_");
    let of_kernel = file.starts_with('[') || is_module;
    Frame {
        address,
        symbol: if of_kernel { String::new() } else { symbol.to_owned() },
        file: if is_module { format!("[{name}]") } else { file.to_owned() },
    }
}

fn eprof_script(path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
    command
        .args(["script", "--no-inline", "--ns", "-F", FIELDS, "-i"])
        .arg(path)
        .output()
        .expect("eprof runs")
}

const FIELDS: &str = "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso";

/// What perf prints; with the CPU if that is recorded. `None` if perf cannot read the file.
fn perf_script(path: &Path) -> Option<String> {
    [FIELDS, &FIELDS.replace("cpu,", "")].iter().find_map(|fields| {
        let mut command = Command::new("perf");
        command
            .args(["script", "--force", "--no-itrace", "--no-inline", "--ns", "--max-stack", "1024"])
            .args(["-F", fields, "-i"])
            .arg(path);
        let output = command.stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    })
}

/// What perf 6.1 does otherwise, and why that is not copied.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("perf-vmlinux.data", "perf calls the kernel by the path of a vmlinux that the recording names"),
    (
        "perf.data.piped.header_features_aligned-6.12",
        "perf takes files of this machine for those that were recorded",
    ),
    ("perf.data.piped.lost_samples-4.4", "perf looks for a sample of unknown mode in the program alone"),
    ("perf.data.piped.target.throttled-3.4", "perf looks for addresses of 32 bits in the kernel"),
];

fn recordings() -> Vec<PathBuf> {
    let Some(root) = published_data() else { return Vec::new() };
    let mut found: Vec<PathBuf> = ["autofdo", "hotspot", "linux-perf-data", "perf_data_converter"]
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| !path.to_string_lossy().ends_with(".buildids") && !path.ends_with("README.md"))
        .collect();
    found.sort();
    found
}

#[test]
fn the_same_samples_as_perf_prints() {
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip("perf is not installed");
    }
    let recordings = recordings();
    if recordings.is_empty() {
        return skip("there are no recordings to compare");
    }
    let mut compared = 0;
    for path in recordings {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let Some(expected) = perf_script(&path) else {
            println!("{name}: perf cannot print this");
            continue;
        };
        let output = eprof_script(&path);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        // perf leaves samples of one time in another order.
        let mut expected = parse(&expected);
        let mut printed = parse(&String::from_utf8_lossy(&output.stdout));
        expected.sort_unstable();
        printed.sort_unstable();
        for (ours, theirs) in printed.iter().zip(&expected) {
            assert_eq!(ours.header, theirs.header, "{name}");
            // Where perf cannot unwind a copied stack, it leaves the sample's own address out too.
            let unwound = !theirs.frames.is_empty();
            let addresses =
                |printed: &Printed| printed.frames.iter().map(|frame| frame.address).collect::<Vec<_>>();
            assert!(addresses(ours) == addresses(theirs) || !unwound, "{name}: {ours:x?} {theirs:x?}");
            let is_exception = EXCEPTIONS.iter().any(|(file, _)| *file == name);
            assert!(
                ours.frames == theirs.frames || !unwound || is_exception,
                "{name}: {ours:x?} {theirs:x?}"
            );
        }
        assert_eq!(printed.len(), expected.len(), "{name}");
        println!("{name}: {} samples", printed.len());
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} recordings could be compared");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let Some(path) = recordings().into_iter().max_by_key(|path| path.metadata().map_or(0, |data| data.len()))
    else {
        return skip("there are no recordings");
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_eprof"))
        // Without names there is nothing to warn of.
        .args(["script", "-F", "comm,tid,time,event,ip", "-i"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("eprof runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("eprof ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// A program of this machine, recorded by perf: all text is the same, names of functions and offsets included.
#[test]
fn the_same_text_for_a_program_of_this_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let source = r#"
        volatile unsigned long sink;
        __attribute__((noinline)) static void spin(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += i * i; }
        __attribute__((noinline)) void heavy(void) { spin(300000); sink++; }
        __attribute__((noinline)) void down(int d) { if (d) down(d - 1); else heavy(); sink++; }
        int main(void) { for (int i = 0; i < 300; i++) down(i % 5); return 0; }
    "#;
    fs::write(at("program.c"), source).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-fno-omit-frame-pointer", "-o"]).arg(at("program")).arg(at("program.c"));
    let mut record = Command::new("perf");
    record
        .args(["record", "-q", "-F", "999", "-g", "-e", "cpu-clock:u", "-o"])
        .arg(at("perf.data"))
        .arg(at("program"));
    if !run_or_skip([&mut gcc, &mut record]) {
        return;
    }
    let text = |command: &mut Command| {
        let output =
            command.args(["script", "--no-inline", "-i"]).arg(at("perf.data")).output().expect("runs");
        // Of the dynamic linker's start perf names the instruction behind a call that is the last of its function: that
        // is the next function. A sample there is rare.
        let text = String::from_utf8(output.stdout).expect("text");
        let samples = text.split_inclusive("\n\n").filter(|sample| sample.contains(" main+0x"));
        samples.collect::<String>()
    };
    let (ours, theirs) =
        (text(&mut Command::new(env!("CARGO_BIN_EXE_eprof"))), text(&mut Command::new("perf")));
    assert!(ours.matches("spin+0x").count() > 20, "{ours}");
    let first_difference = ours.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
    assert!(ours == theirs, "the first lines that differ: {first_difference:?}");
}

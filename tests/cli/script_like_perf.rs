//! `eprof script` prints what `perf script` prints: the same samples with the same fields and addresses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A sample as both print it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Printed {
    /// Name, process and thread, CPU, time, period, event; white space taken out.
    header: String,
    addresses: Vec<u64>,
}

/// Reads what either program prints: a header, then addresses on the same line or on lines of their own.
fn parse(text: &str) -> Vec<Printed> {
    let mut samples: Vec<Printed> = Vec::new();
    for line in text.lines() {
        if let Some(frame) = line.strip_prefix('\t') {
            samples.last_mut().expect("a header comes first").addresses.push(address(frame));
        } else if let Some((header, own)) = line.split_once(": ").and_then(|(start, rest)| {
            // The first colon ends the time, the second the event (whose modifiers have no space behind).
            let (middle, end) =
                format!("{rest} ").split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            Some((format!("{start}:{middle}"), end))
        }) {
            // perf prints the number of no CPU.
            let words = header.split_whitespace().filter(|word| *word != "[-01]");
            let header = words.collect::<Vec<_>>().join(" ");
            let addresses = if own.trim().is_empty() { vec![] } else { vec![address(&own)] };
            samples.push(Printed { header, addresses });
        } else {
            assert!(line.trim().is_empty(), "what is this? {line:?}");
        }
    }
    samples
}

/// The address of a frame. perf prints those of programs as offsets in their files if it knows the file,
/// which leaves the place within the page.
fn address(frame: &str) -> u64 {
    const KERNEL: u64 = 1 << 63;
    let first = frame.split_whitespace().next().expect("an address");
    let address = u64::from_str_radix(first, 16).unwrap_or_else(|_| panic!("no address: {frame:?}"));
    if address >= KERNEL { address } else { address & 0xfff }
}

fn eprof_script(path: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eprof"));
    command.args(["script", "--ns", "-i"]).arg(path).output().expect("eprof runs")
}

/// What perf prints; with the CPU if that is recorded. `None` if perf cannot read the file.
fn perf_script(path: &Path) -> Option<String> {
    ["comm,pid,tid,cpu,time,period,event,ip,sym,dso", "comm,pid,tid,time,period,event,ip,sym,dso"]
        .iter()
        .find_map(|fields| {
            let mut command = Command::new("perf");
            command
                .args(["script", "--force", "--no-itrace", "--ns", "--max-stack", "1024", "-F", fields, "-i"])
                .arg(path);
            let output = command.stderr(Stdio::null()).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.success() && !text.is_empty()).then_some(text)
        })
}

fn recordings() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
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
    let live = std::env::var_os("EPROF_REQUIRE_LIVE").is_some();
    if !Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success()) {
        assert!(!live, "perf is not installed");
        println!("skipped: perf is not installed");
        return;
    }
    let recordings = recordings();
    if recordings.is_empty() {
        assert!(!live, "there are no recordings");
        println!("skipped: there are no recordings to compare");
        return;
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
            let unwound = !theirs.addresses.is_empty();
            assert!(ours.addresses == theirs.addresses || !unwound, "{name}: {ours:x?} {theirs:x?}");
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
        println!("skipped: there are no recordings");
        return;
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_eprof"))
        .args(["script", "-i"])
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

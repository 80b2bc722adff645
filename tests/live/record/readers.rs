//! perf and samply read what eprof writes, and see the same.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use eprof::recording::Recording;
use eprof_testbed::{eprof, has_program, skip};
use perf_data::record::{FileIdentity, Record};

use super::harness::{Folder, can_record, can_sample_all, stderr};

fn perf(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("perf").args(arguments).current_dir(folder).output().expect("perf runs")
}

#[test]
fn perf_sees_the_same_samples_events_and_energy() {
    if !can_record() {
        return;
    }
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = Folder::new();
    let options = ["-e", "cpu-clock,page-faults", "--watts", "10:20"];
    let contents = folder.record_workload(&options, "threads:32");
    let output = perf(folder.path(), &["script", "-i", "eprof.data", "-F", "event"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = String::from_utf8_lossy(&output.stdout);
    let count =
        |event: &str| lines.lines().filter(|line| line.trim_end_matches([' ', ':']).ends_with(event)).count();
    let sampled = ["cpu-clock", "cpu-clock:u", "page-faults", "page-faults:u"]
        .iter()
        .map(|name| count(name))
        .sum::<usize>();
    assert_eq!(sampled as u64, contents.samples);
    assert_eq!(count("energy/package-0/"), contents.readings.len());
    assert_eq!(count("eprof/cpu-times/"), contents.cpu_times.len());

    let output =
        perf(folder.path(), &["report", "-i", "eprof.data", "--stdio", "-g", "none", "--no-children"]);
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("of event 'cpu-clock"), "{report}");
    assert!(report.contains("spin_for"), "perf finds the function: {report}");
    assert!(!stderr(&output).contains("out of order"), "{}", stderr(&output));

    let header = perf(folder.path(), &["script", "-i", "eprof.data", "--header-only"]);
    let header = String::from_utf8_lossy(&header.stdout);
    for part in [
        "# hostname",
        "# os release",
        "# arch",
        "# nrcpus online",
        "# cmdline",
        "# clockid: monotonic",
        "# event : name = cpu-clock",
    ] {
        assert!(header.contains(part), "{part} is missing in {header}");
    }
}

/// While one recorder asks the kernel for build-ids, the kernel marks the mappings that it tells all the others.
#[test]
fn recorders_beside_each_other_leave_each_others_mappings_alone() {
    if !can_record() || !can_sample_all() {
        return;
    }
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = Folder::new();
    // It says "ready" once its counters run and the program has started, and ends with its input.
    let mut beside = eprof();
    beside.args(["record", "-a", "-o", "beside.data", "--", "sh", "-c", "echo ready; cat"]);
    beside.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut beside = beside.spawn().expect("eprof runs");
    let input = beside.stdin.take().expect("piped");
    beside.stdout.as_mut().expect("piped").read_exact(&mut [0; 6]).expect("it records");

    let recorded =
        perf(folder.path(), &["record", "-q", "-e", "cpu-clock", "-o", "perf.data", "perf", "--version"]);
    drop(input);
    let ended = beside.wait_with_output().expect("it ends");
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    assert!(ended.status.success(), "{}", stderr(&ended));

    // perf's own file was mapped while both recorded, and each recording tells which file that was. The whole machine has
    // other programs as well.
    let of_perf = identities(&folder.path().join("perf.data"));
    assert!(!of_perf.is_empty());
    let has_inode = |(_, identity): &(_, Identity)| matches!(identity, Identity::Inode(inode) if *inode != 0);
    assert!(of_perf.iter().all(has_inode), "{of_perf:?}");
    let mut of_eprof = identities(&folder.path().join("beside.data"));
    of_eprof.retain(|(path, _)| of_perf.iter().any(|(known, _)| known == path));
    assert!(!of_eprof.is_empty());
    let has_id = |(_, identity): &(_, Identity)| matches!(identity, Identity::BuildId(20));
    assert!(of_eprof.iter().all(has_id), "{of_eprof:?}");
}

/// What a mapping says of its file.
#[derive(Debug)]
enum Identity {
    Inode(u64),
    /// Bytes of the id.
    BuildId(usize),
    Unknown,
}

/// Of the mappings of perf itself that were made during a recording, with their paths: what ran before, as another test's perf, is
/// told without a time.
fn identities(recording: &Path) -> Vec<(String, Identity)> {
    let recording = Recording::open(recording).expect("a recording");
    let mut records = recording.records();
    let mut found = Vec::new();
    while let Some((_, context, record)) = records.next().expect("whole records") {
        if let Record::Mmap(map) = record
            && context.time.is_some()
            && map.path.rsplit(|&byte| byte == b'/').next().is_some_and(|name| name.starts_with(b"perf"))
        {
            let path = String::from_utf8_lossy(map.path).into_owned();
            let identity = match map.identity {
                FileIdentity::Inode { inode, .. } => Identity::Inode(inode),
                FileIdentity::BuildId(id) => Identity::BuildId(id.len()),
                FileIdentity::Unknown => Identity::Unknown,
            };
            found.push((path, identity));
        }
    }
    found
}

#[test]
fn perf_reads_every_kind_of_recording() {
    if !can_record() {
        return;
    }
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    for options in [
        &["--compress"][..],
        &["--call-graph", "dwarf,2048"],
        &["--call-graph", "none"],
        &["-F", "4000"],
        &["-c", "250000"],
    ] {
        let folder = Folder::new();
        let contents = folder.record_workload(options, "spin:100");
        let output = perf(folder.path(), &["script", "-i", "eprof.data", "-F", "event"]);
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        let said = String::from_utf8_lossy(&output.stdout);
        let seen = said.lines().filter(|line| line.contains("cpu-clock")).count();
        assert_eq!(seen as u64, contents.samples, "{options:?}");
    }
}

#[test]
fn samply_imports_a_recording_of_several_threads() {
    if !can_record() {
        return;
    }
    if !has_program("samply", &["--version"]) {
        return skip("samply is not installed");
    }
    let folder = Folder::new();
    folder.record_workload(&[], "threads:32");
    let output = Command::new("samply")
        .args(["import", "--save-only", "-o", "profile.json.gz", "eprof.data"])
        .current_dir(folder.path())
        .output()
        .expect("samply runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(folder.path().join("profile.json.gz").metadata().expect("written").len() > 1000);
}

#[test]
fn a_recording_that_is_shortened_while_it_is_read_is_an_error() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let contents = folder.record_workload(&["-F", "10000"], "spin:400");
    assert!(contents.samples > 1000, "{contents:?}");
    let mut script = eprof();
    script.args(["script", "-i"]).arg(folder.data()).current_dir(folder.path());
    let mut child = script.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("eprof runs");
    // What has come is the start; the rest waits until there is room in the pipe.
    let mut out = child.stdout.take().expect("piped");
    out.read_exact(&mut [0; 100]).expect("the first lines");
    let file = std::fs::File::options().write(true).open(folder.data()).expect("the recording");
    file.set_len(4096).expect("shortened");
    std::io::copy(&mut out, &mut std::io::sink()).expect("read to the end");
    let output = child.wait_with_output().expect("ended");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{:?}: {said}", output.status);
    assert!(said.starts_with("eprof: error: /") && said.contains("eprof.data: was shortened"), "{said}");
}

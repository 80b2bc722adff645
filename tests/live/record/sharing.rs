//! Ranks on one machine of which one reads the meters for all.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use eprof::analyze::{self, Dimensions, Options};
use eprof::recording::Recording;
use eprof::recording::metadata::{Metadata, MetersRead, Target};
use eprof_testbed::{Started, eprof, skip};
use serde_json::Value;

use super::harness::{Contents, Folder, can_record, stderr, wait_until};
use super::workload;

/// Watts of the machine when busy; idle it takes none, so that all joules are of CPU time.
const WATTS: &str = "0:40";

/// `eprof record` as a rank of a job that only this folder knows.
fn rank(folder: &Folder, rank: u32, ranks: u32, options: &[&str], program: &[OsString]) -> Command {
    let mut command = folder.record(["--meter", "estimate", "--watts", WATTS]);
    command.args(options).arg("--").args(program);
    command
        .env("XDG_RUNTIME_DIR", folder.path())
        .env("SLURM_JOB_ID", "4711")
        .env("SLURM_STEP_ID", "0")
        .env("SLURM_STEP_NUM_TASKS", ranks.to_string())
        .env("SLURM_PROCID", rank.to_string())
        .env_remove("OMPI_COMM_WORLD_SIZE")
        .env_remove("PMI_SIZE")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn file_of(rank: u32) -> String {
    format!("eprof-4711.0-{rank}.data")
}

fn metadata(file: &Path) -> Metadata {
    Recording::open(file).expect("readable").metadata().expect("eprof's").clone()
}

fn report(folder: &Folder, arguments: &[&str]) -> Value {
    let mut command = eprof();
    command.args(["report", "--format", "json"]).args(arguments).current_dir(folder.path());
    let output = command.output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn joules(report: &Value, part: &str) -> f64 {
    let value = if part == "measured" { &report["total_joules"] } else { &report["balance"][part] };
    value.as_f64().expect("joules")
}

/// Functions, static, others, eprof and what was lost are what the meter counted. The JSON's functions have eprof's in them.
fn assert_balanced(report: &Value) {
    let parts: f64 =
        ["attributed", "static", "other", "recorder", "lost"].iter().map(|part| joules(report, part)).sum();
    let measured = joules(report, "measured");
    assert!((parts - measured).abs() <= 1e-9 * measured, "{parts} J of {measured} J: {report}");
}

/// Joules of these processes in a recording of everything.
fn joules_of(file: &Path, processes: &BTreeSet<u32>) -> f64 {
    let recording = Recording::open(file).expect("readable");
    let dimensions = Dimensions { stacks: false, threads: true, cpus: false };
    let profile = analyze::analyze(&recording, &Options { dimensions, ..Options::default() });
    let is_of = |cell: usize| processes.contains(&profile.threads[profile.cells[cell].thread.0 as usize].pid);
    let cells = (0..profile.cells.len()).filter(|&cell| is_of(cell));
    cells.flat_map(|cell| profile.joules(cell)).map(|joules| joules.as_joules()).sum()
}

#[test]
fn one_reads_the_meters_and_all_have_joules() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // One recorder of the whole machine, for comparison.
    let mut around = folder.record(["-a", "--meter", "estimate", "--watts", WATTS, "-o", "around"]);
    let mut around =
        Started::new(around.arg("cat").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()));
    let around_file = folder.path().join("around");
    wait_until("the recorder of everything", || {
        around_file.exists() || around.try_wait().expect("a child").is_some()
    });
    if let Some(status) = around.try_wait().expect("a child") {
        skip(&format!("this user may not sample everything ({status})"));
        return;
    }
    // The last of them reads no meter at all.
    let spin = workload::command("spin:500");
    let start = |number| {
        let options: &[&str] = if number == 4 { &["--meters", "none"] } else { &[] };
        Started::new(&mut rank(&folder, number, 5, options, &spin))
    };
    let mut ranks: Vec<Started> = (0..5).map(start).collect();
    ranks.iter_mut().for_each(|rank| assert!(rank.wait().expect("a child").success()));
    drop(around.stdin.take());
    assert!(around.wait().expect("a child").success());

    let files: Vec<_> = (0..5).map(|rank| folder.path().join(file_of(rank))).collect();
    let of_ranks: Vec<Metadata> = files.iter().map(|file| metadata(file)).collect();
    let mut roles: Vec<MetersRead> = of_ranks[..4].iter().map(|metadata| metadata.meters).collect();
    let holder = roles.iter().position(|role| *role == MetersRead::ForAll).expect("one has the turn");
    roles.remove(holder);
    assert_eq!(roles, [MetersRead::ByAnother; 3]);
    assert_eq!(of_ranks[4].meters, MetersRead::Not);
    let readings: Vec<usize> = files.iter().map(|file| Contents::read(file).readings.len()).collect();
    assert!(readings[holder] > 8 && readings[4] == 0, "{readings:?}");
    let locks = fs::read_dir(folder.path()).expect("readable").filter_map(Result::ok);
    let locks = locks.filter(|entry| entry.file_name().to_string_lossy().ends_with(".lock"));
    assert_eq!(locks.count(), 0, "what agreed on the turn is gone with those that needed it");

    let names: Vec<String> = (0..5).map(file_of).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let together = report(&folder, &names);
    assert_balanced(&together);
    assert_eq!(together["machines"].as_array().map(Vec::len), Some(1));
    // Those of the whole time, with the machine's once.
    let all = report(&folder, &[&names[..], &["around"]].concat());
    let alone = report(&folder, &["around"]);
    assert_balanced(&all);
    let (measured, expected) = (joules(&all, "measured"), joules(&alone, "measured"));
    assert!(
        (measured - expected).abs() <= 0.1 * expected + 0.5,
        "{measured} J, {expected} J by one recorder"
    );
    assert!(joules(&together, "measured") <= 1.05 * expected + 0.5, "{together}");
    // Each rank's functions have what the recorder of everything gives to its process.
    let by_rank = report(&folder, &[&names[..], &["--by", "rank"]].concat());
    assert_eq!(by_rank["rows"].as_array().map(Vec::len), Some(5), "{by_rank}");
    for (number, metadata) in of_ranks.iter().enumerate() {
        let Target::Command { pid, .. } = metadata.target else { panic!("{:?}", metadata.target) };
        let expected = joules_of(&around_file, &BTreeSet::from([pid]));
        let row = by_rank["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .find(|row| row["name"] == format!("rank={number}"));
        let found = row.expect("a row")["self_joules"].as_f64().expect("joules");
        assert!((found - expected).abs() <= 0.2 * expected + 1.0, "rank {number}: {found} J, {expected} J");
    }
    // Without the others a rank has what it read itself, and says what is missing.
    let waited = (0..4).find(|&rank| rank != holder as u32).expect("three");
    for file in [file_of(waited), file_of(4)] {
        let lonely = report(&folder, &[&file]);
        assert!(lonely["warnings"].to_string().contains("recordings of all ranks"), "{lonely}");
    }
}

#[test]
fn the_next_one_reads_on_when_the_reader_is_killed() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let idle = ["sleep", "20"].map(OsString::from);
    let mut first = Started::new(&mut rank(&folder, 0, 2, &[], &idle));
    let files = [0, 1].map(|rank| folder.path().join(file_of(rank)));
    wait_until("the first rank", || files[0].exists());
    let mut second = Started::new(&mut rank(&folder, 1, 2, &[], &workload::command("spin:1500")));
    wait_until("the second rank", || files[1].exists());
    // Of one reading of the CPUs' times nobody could tell what others ran, on a machine that is not quiet.
    wait_until("two readings", || Contents::read(&files[0]).cpu_times.len() >= 2);
    // Its program is left to itself then.
    let Target::Command { pid: orphan, .. } = metadata(&files[0]).target else { panic!("a command") };
    first.kill().expect("killed");
    first.wait().expect("gone");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(orphan as i32), nix::sys::signal::Signal::SIGKILL)
        .expect("the orphan is there");
    assert!(second.wait().expect("a child").success());
    assert_eq!(
        files.each_ref().map(|file| metadata(file).meters),
        [MetersRead::ForAll, MetersRead::ByAnother]
    );
    let readings = Contents::read(&files[1]).readings.len();
    assert!(readings > 10, "{readings} readings of the one that took over");

    let [killed, alone] = [0, 1].map(|rank| report(&folder, &[&file_of(rank)]));
    let together = report(&folder, &[&file_of(0), &file_of(1)]);
    for report in [&killed, &alone, &together] {
        assert_balanced(report);
    }
    let measured = |report: &Value| joules(report, "measured");
    // The second one has read from its own start, now and then; what was counted between two readings is in both.
    assert!(measured(&together) >= 0.98 * measured(&alone), "{together} {alone}");
    assert!(measured(&together) <= measured(&alone) + measured(&killed) + 0.5, "{together} {alone} {killed}");
    let of_second = |report: &Value| joules(report, "attributed");
    assert!(
        (of_second(&together) - of_second(&alone)).abs() <= 0.2 * of_second(&alone) + 1.0,
        "{together} {alone}"
    );
}

#[test]
fn a_rank_where_nothing_can_be_recorded_runs_all_the_same() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let program = ["sh", "-c", "echo ran; exit 3"].map(OsString::from);
    let unreadable = ["--meter", "nvml", "--nvml-lib", "/nonexistent"];
    let run = |options: &[&str], ranks| {
        let mut command = rank(&folder, 0, ranks, &[], &[]);
        command = Command::new(command.get_program());
        command.arg("record").args(options).arg("--").args(&program).current_dir(folder.path());
        command.env("SLURM_STEP_NUM_TASKS", ranks.to_string()).env("SLURM_PROCID", "0");
        command.env_remove("OMPI_COMM_WORLD_SIZE").env_remove("PMI_SIZE").env_remove("PMIX_RANK");
        command.output().expect("eprof runs")
    };
    let output = run(&unreadable, 2);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(output.stdout, b"ran\n");
    let said = stderr(&output);
    assert!(said.contains("cannot be measured") && said.contains("runs without being recorded"), "{said}");
    // So does the program that says how long the whole machine is recorded.
    let output = run(&[&["-a"][..], &unreadable].concat(), 2);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"ran\n"[..]), "{}", stderr(&output));
    // And one that is told to see launches on a GPU that this node lacks.
    let gpu = ["--gpu=always", "--cuda-lib", "/nonexistent/libcuda.so.1"];
    for (ranks, status, printed) in [(2, 3, &b"ran\n"[..]), (1, 1, b"")] {
        let output = run(&gpu, ranks);
        let said = stderr(&output);
        assert_eq!((output.status.code(), &*output.stdout), (Some(status), printed), "{said}");
        assert!(said.contains("launches of GPU kernels cannot be recorded"), "{said}");
        assert_eq!(said.contains("runs without being recorded"), ranks == 2, "{said}");
    }
    // Who records one program wants to know before it runs.
    let output = run(&unreadable, 1);
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{}", stderr(&output));
}

#[test]
fn a_rank_whose_recording_cannot_be_written_runs_all_the_same_and_once() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("taken")).expect("a folder");
    let run = |output: &str, ranks, script: &str| {
        let program = ["sh", "-c", script].map(OsString::from);
        let mut command = rank(&folder, 0, ranks, &["-F", "5000", "-o", output], &program);
        command.env_remove("PMIX_RANK").stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.output().expect("eprof runs");
        (output.status.code(), String::from_utf8(output.stdout.clone()).expect("text"), stderr(&output))
    };
    // The folder of a job's recordings is made, and no more than that.
    let (status, _, said) = run("job/%r.data", 2, "exit 3");
    assert_eq!(status, Some(3), "{said}");
    assert!(folder.path().join("job/0.data").is_file(), "{said}");
    for (output, why) in
        [("nowhere/else/%r.data", "there is no folder nowhere/else"), ("taken", "it is a folder")]
    {
        let (status, printed, said) = run(output, 2, "echo ran; exit 3");
        assert_eq!((status, &*printed), (Some(3), "ran\n"), "{said}");
        assert!(
            said.contains(why) && said.contains("rank 0") && said.contains("without being recorded"),
            "{said}"
        );
        let (status, printed, said) = run(output, 1, "echo ran; exit 3");
        assert_eq!((status, &*printed), (Some(1), ""), "who records one program wants to know: {said}");
    }
    // The file gets its name when the program runs already, which then must not run a second time. An older recording
    // stands in the way, since a folder has the name that it would be kept under.
    std::fs::write(folder.path().join("late-0.data"), "older").expect("written");
    std::fs::create_dir(folder.path().join("late-0.data.old")).expect("a folder");
    // A recording that is cut off: the limit of 64 KiB is the shell's and eprof's, and the program has no files.
    let cut = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; echo ran";
    for (ranks, expected) in [(2, 0), (1, 1)] {
        let (status, printed, said) = run("late-0.data", ranks, "echo ran; sleep 0.1; exit 0");
        assert_eq!((status, &*printed), (Some(expected), "ran\n"), "{said}");
        assert!(said.contains("ran to its end without being recorded"), "{said}");
        let program = ["sh", "-c", cut].map(OsString::from);
        let recorder = rank(&folder, 0, ranks, &["-F", "5000", "-o", "cut.data"], &program);
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -f 64; exec \"$0\" \"$@\""]).arg(recorder.get_program());
        shell.args(recorder.get_args()).current_dir(folder.path()).env_remove("PMIX_RANK");
        shell.envs(recorder.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().expect("eprof runs");
        let said = stderr(&output);
        assert_eq!((output.status.code(), &*output.stdout), (Some(expected), &b"ran\n"[..]), "{said}");
        assert!(said.contains("recording stopped early"), "{said}");
    }
}

#[test]
fn a_companion_records_the_machine_until_it_is_told_to_end() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let mut command =
        folder.record(["--node", "--meter", "estimate", "--watts", WATTS, "-o", "%j-node.data"]);
    command.env("XDG_RUNTIME_DIR", folder.path()).env("SLURM_JOB_ID", "4711").env("SLURM_STEP_ID", "7");
    let mut companion = Started::new(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let file = folder.path().join("4711-node.data");
    wait_until("the companion", || file.exists() || companion.try_wait().expect("a child").is_some());
    if let Some(status) = companion.try_wait().expect("a child") {
        skip(&format!("this user may not sample everything ({status})"));
        return;
    }
    // Ranks of another step of the job leave the meters to it.
    let spin = workload::command("spin:600");
    let mut ranks = [0, 1].map(|number| Started::new(&mut rank(&folder, number, 2, &[], &spin)));
    ranks.iter_mut().for_each(|rank| assert!(rank.wait().expect("a child").success()));
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(companion.id() as i32),
        nix::sys::signal::Signal::SIGTERM,
    )
    .expect("it runs");
    assert!(companion.wait().expect("a child").success(), "that is how it ends");
    let of_node = metadata(&file);
    assert_eq!((of_node.target, of_node.meters), (Target::System, MetersRead::ForAll));
    assert_eq!(of_node.identity.and_then(|identity| identity.job.id).as_deref(), Some("4711"));
    assert!(Contents::read(&file).is_complete);
    assert_eq!(metadata(&folder.path().join(file_of(0))).meters, MetersRead::ByAnother);
    let files = [file_of(0), file_of(1)];
    let files = [&*files[0], &*files[1]];
    let by_rank =
        |companion: &[&str]| report(&folder, &[companion, &files[..], &["--by", "rank"][..]].concat());
    let (together, without) = (by_rank(&["4711-node.data"]), by_rank(&[]));
    assert_balanced(&together);
    let alone = report(&folder, &["4711-node.data"]);
    let (both, one) = (joules(&together, "measured"), joules(&alone, "measured"));
    assert!((both - one).abs() <= 0.05 * one + 0.5, "{both} J, {one} J");
    // What both saw of a rank is the rank's, which is no reason for a warning, and it has the same joules.
    let warnings = together["warnings"].to_string();
    assert!(!warnings.contains("both have") && !warnings.contains("scaled"), "{warnings}");
    for number in 0..2 {
        let own = |report: &Value| {
            let rows = report["rows"].as_array().expect("rows").iter();
            let row = rows.clone().find(|row| row["name"] == format!("rank={number}"));
            row.unwrap_or_else(|| panic!("rank {number}: {report}"))["self_joules"].as_f64().expect("joules")
        };
        let (with, without) = (own(&together), own(&without));
        assert!(
            (with - without).abs() <= 0.02 * without + 0.02,
            "rank {number}: {with} J, {without} J without it"
        );
    }
}

//! Ranks on one machine, each under a recorder of its own.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use eprof_testbed::eprof;
use serde_json::Value;

use super::harness::{Folder, can_record, stderr};
use super::workload;

/// Watts of the machine when busy; idle it takes none, so that all joules are of CPU time.
const WATTS: &str = "0:40";

fn report(folder: &Path, arguments: &[&str]) -> Value {
    let output = eprof()
        .args(["report", "--format", "json"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn joules(report: &Value, part: &str) -> f64 {
    let value = if part == "measured" { &report["total_joules"] } else { &report["balance"][part] };
    value.as_f64().expect("joules")
}

fn start(folder: &Folder, rank: usize, command: &[std::ffi::OsString]) -> Child {
    let output = format!("ranks/{rank}.data");
    folder
        .record(["--meters", "own", "--meter", "estimate", "--watts", WATTS, "--label", "parity=even", "-o"])
        .arg(output)
        .arg("--")
        .args(command)
        .env("SLURM_JOB_ID", "4711")
        .env("SLURM_STEP_ID", "0")
        .env("SLURMD_NODENAME", "n1")
        .env("PMI_RANK", rank.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("eprof starts")
}

#[test]
fn four_recorders_of_one_machine_count_its_joules_once() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("ranks")).expect("writable");
    let spin = workload::command("spin:400");
    // A fifth recorder is there before the ranks and after them: what it measures has all of theirs in it.
    let mut around = folder
        .record(["--meter", "estimate", "--watts", WATTS, "-o", "around.data", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("eprof starts");
    let file = folder.path().join("around.data");
    // Its file is there when its meters are about to be read. Without it the ranks' recorders are as they are.
    let patience = Instant::now() + Duration::from_secs(10);
    while !file.exists() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut ranks: Vec<Child> = (0..4).map(|rank| start(&folder, rank, &spin)).collect();
    let ended: Vec<bool> = ranks.iter_mut().map(|rank| rank.wait().expect("a child").success()).collect();
    // The end of its input ends it.
    drop(around.stdin.take());
    assert!(around.wait().expect("a child").success() && ended.iter().all(|success| *success));

    let alone: Vec<Value> =
        (0..4).map(|rank| report(folder.path(), &[&format!("ranks/{rank}.data")])).collect();
    let together = report(folder.path(), &["ranks/"]);
    let sum = |part: &str| alone.iter().map(|report| joules(report, part)).sum::<f64>();
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
    // Functions are each recorder's own.
    assert!(near(joules(&together, "attributed"), sum("attributed")), "{together}");
    assert!(near(joules(&together, "recorder"), sum("recorder")), "{together}");
    // The machine's are counted once: no machine takes more than all its CPUs do in this time.
    let (measured, seconds) =
        (joules(&together, "measured"), together["duration_s"].as_f64().expect("seconds"));
    assert!(measured <= 40.0 * seconds * 1.05 + 1.0, "{measured} J in {seconds} s");
    let most = alone.iter().map(|report| joules(report, "measured")).fold(0.0, f64::max);
    assert!(measured >= 0.9 * most, "{measured} J of which one rank's recorder saw {most} J");
    let parts = ["attributed", "static", "other", "recorder", "lost"].map(|part| joules(&together, part));
    assert!(near(parts.iter().sum(), measured) && parts.iter().all(|joules| *joules >= 0.0), "{parts:?}");
    assert_eq!(together["machines"].as_array().map(Vec::len), Some(1));

    // With the recorder of the whole time they are what that one measured: readings of the same clock ticks, taken at
    // other moments, of which some are off by a tick and a round of the reader at both ends of each.
    let around = report(folder.path(), &["around.data"]);
    let all = report(folder.path(), &["around.data", "ranks"]);
    let expected = joules(&around, "measured");
    assert!((joules(&all, "measured") - expected).abs() <= 0.1 * expected + 0.5, "{all} {around}");
    assert!(joules(&all, "measured") >= 0.9 * measured);

    // And they can be told apart, each with what it has alone.
    let by_rank = report(folder.path(), &["ranks", "--by", "rank"]);
    let rows = by_rank["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "{by_rank}");
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        let rank: usize = name.strip_prefix("rank=").expect("a rank").parse().expect("a number");
        let own = row["self_joules"].as_f64().expect("joules");
        assert!(near(own, joules(&alone[rank], "attributed")), "{name}: {own}");
    }
    let functions = report(folder.path(), &["ranks", "--by", "job,rank,function"]);
    assert_eq!(functions["by"], "job,rank,function");
    let first = &functions["rows"][0];
    assert_eq!(first["values"][0], "job=4711.0", "{first}");

    let identity = &together["recordings"][0]["identity"];
    assert_eq!((&identity["job"]["node"], &identity["labels"]["parity"]), (&"n1".into(), &"even".into()));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("readable");
    assert_eq!(identity["boot"], boot.trim());
    let header =
        eprof().args(["script", "--header-only", "ranks/0.data"]).current_dir(folder.path()).output();
    let header = String::from_utf8(header.expect("eprof runs").stdout).expect("text");
    for line in ["# job : 4711", "# rank : 0", "# node : n1", "# label parity : even", "# boot id : "] {
        assert!(header.contains(line), "{line}: {header}");
    }
    if let Ok(id) = std::fs::read_to_string("/etc/machine-id") {
        assert!(
            id.trim().is_empty() || !header.contains(id.trim()),
            "the machine's own id is told: {header}"
        );
    }
}

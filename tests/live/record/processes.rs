//! Programs of many threads and processes.

use eprof::units::Joules;
use eprof_testbed::eprof;

use super::harness::{Contents, Folder, can_record, stderr};
use super::workload;

#[test]
fn threads_that_come_and_go_are_all_sampled() {
    if !can_record() {
        return;
    }
    let contents = Folder::new().record_workload(&["-c", "500000"], "threads:320");
    let workers = contents.comms.iter().filter(|name| name.starts_with("worker-")).count();
    assert_eq!(workers, 320);
    // Each thread used 3 ms, so that a period of 0.5 ms meets it six times, or at the very least once.
    assert!(contents.sampled_threads.len() >= 320, "{} threads were sampled", contents.sampled_threads.len());
    assert!(contents.forks >= 320 && contents.exits >= 320);
    assert_eq!(contents.lost, 0);
}

#[test]
fn the_sum_of_periods_is_the_cpu_time() {
    if !can_record() {
        return;
    }
    let contents = Folder::new().record_workload(&[], "spin:1000");
    let seconds = contents.period as f64 * 1e-9;
    // The workload uses one second, the start of the test binary a few milliseconds more. A machine that
    // stands still for its host misses samples.
    assert!((0.9..1.2).contains(&seconds), "{seconds} s of CPU time");
    // At the start, twice a second where reading takes long, and at the end.
    assert!(contents.cpu_times.len() >= 3, "{} readings of CPU times", contents.cpu_times.len());
    assert_eq!(contents.metadata, 1);
}

/// Where a thread and those that it starts take turns that are shorter than a period, each has its own: what the first leaves of
/// one is not the next one's.
#[test]
fn a_thread_has_its_samples_beside_short_ones() {
    if !can_record() {
        return;
    }
    let contents = Folder::new().record_workload(&["-c", "1000000"], "turns:500");
    assert!(contents.sampled_threads.len() < 400, "{contents:?}");
    // It takes 200 ms in its turns, and more to start the others. A machine that stands still for its host misses samples.
    let most = contents.most_of_a_thread;
    assert!(most > 120, "{most} samples, {contents:?}");
}

#[test]
fn children_and_their_names_are_followed() {
    if !can_record() {
        return;
    }
    let contents = Folder::new().record_workload(&[], "forks:50");
    assert!(contents.comms.contains("true"), "{:?}", contents.comms);
    assert!(
        contents.forks >= 50 && contents.exits >= 50,
        "{} forks, {} exits",
        contents.forks,
        contents.exits
    );
}

/// No sample has the joules of processes that end before their first one: what hands on samples says that they are missing.
#[test]
fn samples_that_are_handed_on_lack_short_processes() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    folder.record_workload(&["--meter", "estimate"], "forks:300");
    let json =
        eprof().args(["report", "--format", "json", "-i"]).arg(folder.data()).output().expect("eprof runs");
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let short = rows
        .iter()
        .find(|row| row["name"].as_str().is_some_and(|name| name.contains("short processes")))
        .expect("some were too short");
    let short = short["self_joules"].as_f64().expect("joules");
    let attributed = report["balance"]["attributed"].as_f64().expect("joules");
    assert!(short > 1e-3 * attributed, "{short} J of {attributed}");
    let output = eprof()
        .args(["export", "--format", "perf-data", "-o", "energy.data", "-i"])
        .arg(folder.data())
        .current_dir(folder.path())
        .output()
        .expect("eprof runs");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let warned = said.lines().find(|line| line.contains(" are not in it: no sample has them"));
    let warned = warned.unwrap_or_else(|| panic!("{said}"));
    let (left_out, whole) = (Joules::from_joules(short), Joules::from_joules(attributed));
    assert!(
        warned.starts_with(&format!("eprof: warning: {left_out} of the functions' {whole} are")),
        "{warned}"
    );
}

#[test]
fn a_pipeline_of_a_shell_is_recorded_whole() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let line = "seq 1 200000 | sort -r | tr 0-9 a-j | wc -l";
    let output = folder.record(["sh", "-c", line]).output().expect("eprof runs");
    assert_eq!(output.stdout, b"200000\n");
    let contents = Contents::read(&folder.data());
    for name in ["sh", "seq", "sort", "tr", "wc"] {
        assert!(contents.comms.contains(name), "{name} is not among {:?}", contents.comms);
    }
    assert!(contents.samples > 0 && contents.error.is_none());
}

#[test]
fn energy_is_read_from_before_the_start_to_after_the_end() {
    if !can_record() {
        return;
    }
    let contents = Folder::new().record_workload(&["--meter", "estimate", "--watts", "10:30"], "spin:300");
    assert!(contents.readings.len() >= 3, "{} readings", contents.readings.len());
    let joules: Vec<f64> = contents.readings.iter().map(|(_, reading)| reading.energy.as_joules()).collect();
    assert!(joules.is_sorted(), "energy never decreases");
    // 0.3 s of one CPU at least, whatever the others do: more than the machine takes when idle.
    assert!(joules[joules.len() - 1] - joules[0] > 10.0 * 0.3, "{joules:?}");
}

#[test]
fn the_counters_final_values_are_at_the_end() {
    if !can_record() {
        return;
    }
    let contents = Folder::new().record_workload(&["-e", "cpu-clock,page-faults"], "spin:50");
    for event in ["cpu-clock", "page-faults"] {
        let named = |name: &String| name == event || *name == format!("{event}:u");
        let count = contents.final_values.iter().filter(|(name, _)| named(name)).count();
        assert!(count >= 1, "{event} in {:?}", contents.final_values);
    }
}

#[test]
fn each_kind_of_call_path_can_be_recorded() {
    if !can_record() {
        return;
    }
    for how in ["fp", "dwarf", "dwarf,1024", "none"] {
        let contents = Folder::new().record_workload(&["--call-graph", how], "spin:50");
        assert!(contents.samples > 0 && contents.error.is_none(), "{how}: {contents:?}");
    }
}

#[test]
fn a_compressed_recording_is_much_smaller_and_holds_the_same() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let contents = folder.record_workload(&["-z", "-c", "100000"], "spin:300");
    assert!(contents.samples > 1000 && contents.error.is_none() && contents.is_complete, "{contents:?}");
    let bytes = std::fs::metadata(folder.data()).expect("there").len();
    assert!(bytes / contents.samples < 50, "{bytes} bytes for {} samples", contents.samples);
}

#[test]
fn what_goes_on_after_the_program_is_not_waited_for() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    // The child left behind would hold the test's pipes open, so it gets none of them.
    let line = "sleep 300 </dev/null >/dev/null 2>&1 & echo $!";
    let output = folder.record(["sh", "-c", line]).output().expect("eprof runs");
    let pid = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a process id");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL)
        .expect("still running");
    assert!(Contents::read(&folder.data()).is_complete);
}

#[test]
fn a_time_limit_ends_the_recording_but_not_the_program() {
    if !can_record() {
        return;
    }
    let folder = Folder::new();
    let output = folder
        .record(["--duration", "0.2", "--"])
        .args(workload::command("spin:600"))
        .output()
        .expect("eprof runs");
    assert!(output.status.success());
    let contents = Contents::read(&folder.data());
    let seconds = contents.period as f64 * 1e-9;
    assert!((0.0..0.5).contains(&seconds), "{seconds} s of 0.6 s were recorded");
}

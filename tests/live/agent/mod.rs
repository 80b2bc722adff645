//! `eprof agent` on this machine: its tables are its counters, whatever happens to it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use eprof_testbed::{eprof, skip_quietly};
use nix::sys::signal::Signal;

use self::harness::{Agent, files, joules, rows, sums, text, whole};
use super::record::attach::start;
use super::record::harness::{Folder, can_sample_all, wait_until};

mod harness;
mod push;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The sum of the series that begin so.
fn all(counters: &std::collections::BTreeMap<String, f64>, start: &str) -> f64 {
    counters.iter().filter(|(series, _)| series.starts_with(start)).map(|(_, value)| value).sum()
}

#[test]
fn windows_add_up_to_the_counters_and_a_signal_ends_with_the_last_one() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let tables = folder.path().join("tables");
    let busy = start("spin:600000");
    let agent = Agent::start(&tables, &["--label", "rack=7"]);
    agent.wait_for_windows(3.0);
    let before = agent.counters();
    wait_until("another window", || agent.counter("eprof_agent_windows_written_total") > 3.0);
    let open = agent.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(open.contains("Content-Type: application/openmetrics-text") && open.ends_with("# EOF\n"));
    assert!(agent.get("/healthz", "").ends_with("\r\n\r\nok\n"));
    let counters = agent.counters();
    for (series, value) in before.iter().filter(|(series, _)| series.contains("_total")) {
        assert!(counters.get(series).is_some_and(|now| now >= value), "{series} fell");
    }
    let is_functions = |series: &str| series.ends_with(",part=\"functions\"}");
    let functions: f64 =
        counters.iter().filter(|(series, _)| is_functions(series)).map(|(_, joules)| joules).sum();
    for name in ["eprof_function_joules_total", "eprof_cgroup_joules_total"] {
        let sum = all(&counters, name);
        assert!((sum - functions).abs() < 1e-6 * functions, "{name}: {sum} of {functions} J");
    }
    assert!(functions > 0.0 && counters["eprof_agent_cpu_seconds_total"] > 0.0);
    let (measured, windows) =
        (all(&counters, "eprof_domain_joules_total"), counters["eprof_agent_windows_written_total"]);
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    let written = files(&tables, "balance").len();
    assert!(written as f64 > windows, "a last window: {said}");
    assert!(said.contains(&format!("agent ends: {written} windows written, 0 dropped")), "{said}");
    sums(&tables);
    // The windows of the counters are the first ones.
    let mut balances = rows(&tables, "balance");
    balances.sort_by_key(|row| whole(row, "window_start"));
    let counted: f64 = balances.iter().take(windows as usize).map(|row| joules(row, "measured")).sum();
    assert!((counted - measured).abs() < 1e-6 * measured, "{measured} of {counted} J");
    for pair in balances.windows(2) {
        assert_eq!(whole(&pair[0], "window_end"), whole(&pair[1], "window_start"), "no gap, nothing twice");
    }
    let samples = rows(&tables, "samples");
    assert!(samples.iter().all(|row| text(row, "labels") == "\nrack=7\n"));
    // They tell what recordings tell.
    let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
    for table in ["samples", "stack_frames", "functions", "balance"] {
        let folder = tables.join(table);
        let of_files = files(&tables, table).into_iter().map(|name| mode(&folder.join(name)));
        assert!(mode(&folder) == 0o700 && of_files.into_iter().all(|mode| mode == 0o600), "{table}");
    }
    drop(busy);
}

#[test]
fn a_killed_agent_leaves_windows_and_its_pieces_are_cleared() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let tables = folder.path().join("tables");
    let agent = Agent::start(&tables, &[]);
    agent.wait_for_windows(1.0);
    let another = eprof()
        .args(["agent", "--listen", "none", "-o"])
        .arg(&tables)
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs");
    assert_eq!(another.status.code(), Some(1));
    assert!(stderr(&another).contains("another `eprof agent`"), "{}", stderr(&another));
    agent.end(Signal::SIGKILL);
    let before = sums(&tables)["measured"];
    // What a kill between two names leaves.
    let whole = files(&tables, "balance").into_iter().next().expect("a window");
    let piece = "1795000000-00000000000000aa.parquet";
    for table in ["functions", "samples"] {
        fs::copy(tables.join(table).join(&whole), tables.join(table).join(piece)).expect("copied");
    }
    fs::write(tables.join("balance").join(format!(".{piece}.77")), "half").expect("written");
    let agent = Agent::start(&tables, &["--keep", "365000d"]);
    agent.wait_for_windows(1.0);
    assert_eq!(agent.end(Signal::SIGINT).0, Some(0));
    assert!(sums(&tables)["measured"] > before);
    assert!(!files(&tables, "functions").contains(piece));
    assert!(files(&tables, "balance").iter().all(|name| !name.starts_with('.')));
}

#[test]
fn sampling_for_a_part_of_the_time_tells_the_rest_as_lost() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let tables = folder.path().join("tables");
    let busy = start("spin:600000");
    let agent = Agent::start(&tables, &["--duty", "20%", "--frequency", "99", "--window", "3s"]);
    agent.wait_for_windows(2.0);
    assert_eq!(agent.counter("eprof_agent_lost_records_total"), 0.0, "the kernel lost none");
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    let sums = sums(&tables);
    let busy_joules = sums["functions"] + sums["lost"] + sums["recorder"] + sums["others"];
    assert!(sums["functions"] > 0.0, "{sums:?}");
    // Four fifths, but for where the stretches of three cycles happened to lie.
    assert!(sums["lost"] > 0.4 * busy_joules, "{sums:?}");
    drop(busy);
}

#[test]
fn settings_are_read_again_and_wrong_ones_are_not_taken() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let (tables, file) = (folder.path().join("tables"), folder.path().join("agent.json"));
    let write = |text: &str| fs::write(&file, text).expect("written");
    write(r#"{"keep": "7d"}"#);
    let mut agent = Agent::start(&tables, &["--config", file.to_str().expect("UTF-8")]);
    agent.wait_for_windows(1.0);
    write(r#"{"keep": "never"}"#);
    agent.signal(Signal::SIGHUP);
    agent.wait_for("the settings stay as they are");
    assert_eq!(agent.counter("eprof_agent_failed_reloads_total"), 1.0);
    // Another rate: the recording ends with a window, and the next one begins.
    write(r#"{"keep": "7d", "frequency": 31}"#);
    agent.signal(Signal::SIGHUP);
    wait_until("a new recording", || agent.counter("eprof_agent_restarts_total") >= 1.0);
    let windows = agent.counter("eprof_agent_windows_written_total");
    agent.wait_for_windows(windows + 2.0);
    // One second, and no more: the older ones go.
    write(r#"{"keep": "1s", "frequency": 31}"#);
    agent.signal(Signal::SIGHUP);
    wait_until("room", || agent.counter("eprof_agent_windows_removed_total") >= 1.0);
    assert!(agent.child().try_wait().expect("asked").is_none(), "it runs on");
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    sums(&tables);
}

/// A file system of so few bytes; gone with the value.
struct Small<'p>(&'p Path);

impl<'p> Small<'p> {
    fn mount(path: &'p Path, size: &str) -> Option<Self> {
        fs::create_dir(path).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(path)),
            other => {
                skip_quietly(&format!("no small file system can be mounted: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn on_a_full_disk_windows_are_dropped_and_it_goes_on() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    let Some(small) = Small::mount(&disk, "4m") else { return };
    let agent = Agent::start(&disk.join("tables"), &[]);
    agent.wait_for_windows(1.0);
    let filler = disk.join("filler");
    let _ = Command::new("dd").arg("if=/dev/zero").arg(format!("of={}", filler.display())).output();
    wait_until("dropped windows", || agent.counter("eprof_agent_windows_dropped_total") >= 2.0);
    let said = agent.said();
    assert_eq!(said.matches("a window is dropped").count(), 1, "said once: {said}");
    let counters = agent.counters();
    assert!(all(&counters, "eprof_agent_dropped_joules_total") > 0.0);
    fs::remove_file(&filler).expect("removed");
    let written = counters["eprof_agent_windows_written_total"];
    agent.wait_for_windows(written + 1.0);
    agent.wait_for("windows are written again");
    let counters = agent.counters();
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    // Each joule of the counters is in the tables or was dropped.
    let mut balances = rows(&disk.join("tables"), "balance");
    balances.sort_by_key(|row| whole(row, "window_start"));
    let written = counters["eprof_agent_windows_written_total"] as usize;
    let in_tables: f64 = balances.iter().take(written).map(|row| joules(row, "measured")).sum();
    let (all_joules, dropped) =
        (all(&counters, "eprof_domain_joules_total"), all(&counters, "eprof_agent_dropped_joules_total"));
    assert!(
        (in_tables + dropped - all_joules).abs() < 1e-6 * all_joules,
        "{in_tables} + {dropped} of {all_joules} J"
    );
    sums(&disk.join("tables"));
    drop(small);
}

/// The effective capabilities of each thread of a process, by its name.
fn capabilities(process: u32) -> Vec<(String, u64)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let of_task = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("readable").path();
        let status = fs::read_to_string(path.join("status")).expect("readable");
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("told");
        let name = fs::read_to_string(path.join("comm")).expect("readable");
        (name.trim().to_owned(), u64::from_str_radix(line.trim(), 16).expect("a set"))
    };
    tasks.map(of_task).collect()
}

#[test]
fn root_gives_up_what_is_not_needed_and_can_begin_anew_as_another_user() {
    if !can_sample_all() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        skip_quietly("only root has rights to give up");
        return;
    }
    // CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYSLOG and CAP_PERFMON.
    const KEPT: u64 = 1 << 2 | 1 << 19 | 1 << 34 | 1 << 38;
    let folder = Folder::new();
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("mode");
    let (tables, file) = (folder.path().join("tables"), folder.path().join("agent.json"));
    fs::write(&file, "{}").expect("written");
    let mut agent = Agent::start(&tables, &["--user", "65534", "--config", file.to_str().expect("UTF-8")]);
    agent.wait_for_windows(1.0);
    let process = agent.child().id();
    for (name, rights) in capabilities(process) {
        assert_eq!(rights & !KEPT, 0, "{name} has {rights:x}");
        let is_trusted = name != "eprof-http" && name != "eprof-meter";
        assert!(is_trusted || rights == 0, "{name} has {rights:x}");
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    assert!(status.lines().any(|line| line.starts_with("Uid:\t65534\t65534\t65534")), "{status}");
    fs::write(&file, r#"{"frequency": 37}"#).expect("written");
    agent.signal(Signal::SIGHUP);
    wait_until("a new recording", || agent.counter("eprof_agent_restarts_total") >= 1.0);
    let windows = agent.counter("eprof_agent_windows_written_total");
    agent.wait_for_windows(windows + 1.0);
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    sums(&tables);
}

#[test]
fn thousands_of_short_processes_are_borne() {
    if !can_sample_all() {
        return;
    }
    let folder = Folder::new();
    let tables = folder.path().join("tables");
    let agent = Agent::start(&tables, &[]);
    let mut forks = start("forks:4000");
    agent.wait_for_windows(1.0);
    assert!(forks.wait().expect("ends").success());
    let windows = agent.counter("eprof_agent_windows_written_total");
    agent.wait_for_windows(windows + 1.0);
    let (status, said) = agent.end(Signal::SIGTERM);
    assert_eq!(status, Some(0), "{said}");
    assert!(sums(&tables)["functions"] > 0.0);
}

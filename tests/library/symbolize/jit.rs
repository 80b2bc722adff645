//! Node.js, whose compiler tells perf of its functions in both ways.

use std::fs;
use std::process::Command;

use eprof::profile::{Module, ModuleKind};
use eprof::symbolize::jitdump::Jitdump;

use super::support::*;

const SCRIPT: &str = "function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) % 3; return s; }\n\
                      let t = 0; for (let k = 0; k < 30; k++) t += hotLoop(1e6); console.log(t, process.pid);\n";

/// Runs the script with an option, in a folder of its own; its process id.
fn run_node(option: &str, folder: &std::path::Path) -> Option<u32> {
    fs::write(folder.join("hot.js"), SCRIPT).unwrap();
    let output = Command::new("node").args([option, "hot.js"]).current_dir(folder).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().last()?.parse().ok()
}

#[test]
fn functions_in_jitdump() {
    if !available("node") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(pid) = run_node("--perf-prof", folder.path()) else {
        return eprof_testbed::skip("this node does not know --perf-prof");
    };
    let file = fs::read(folder.path().join(format!("jit-{pid}.dump"))).unwrap();
    let jitdump = Jitdump::new(&file).unwrap();
    assert_eq!(jitdump.pid(), pid);
    let events: Vec<_> = jitdump.collect();
    assert!(events.len() > 100, "{} functions", events.len());
    assert!(events.is_sorted_by_key(|event| event.time));
    let is_hot = |name: &[u8]| String::from_utf8_lossy(name).contains("hotLoop");
    let hot: Vec<_> = events.iter().filter(|event| is_hot(event.name)).collect();
    assert!(!hot.is_empty(), "hotLoop was not compiled");
    assert!(hot.iter().all(|event| event.size > 0 && event.pid == pid && event.address > 0x1000));
}

#[test]
fn functions_in_the_map_of_a_process() {
    if !available("node") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(pid) = run_node("--perf-basic-prof", folder.path()) else {
        return eprof_testbed::skip("this node does not know --perf-basic-prof");
    };
    let map = std::path::PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let text = fs::read_to_string(&map).unwrap();
    let line = text.lines().rfind(|line| line.contains("hotLoop")).expect("hotLoop was compiled");
    let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let module = Module {
        kind: ModuleKind::Anonymous,
        path: String::from("//anon"),
        build_id: None,
        inode: None,
        pid: Some(pid),
    };
    let symbols = symbolize(Default::default(), module, &[start]);
    fs::remove_file(&map).unwrap();
    assert_eq!(frames(&symbols, 0), [line.splitn(3, ' ').last().unwrap()]);
}

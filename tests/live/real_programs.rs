//! From a real program to a report that names what it did: the binary, from end to end.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use eprof_testbed::{eprof, has_program, skip};
use serde_json::Value;

/// Records a command in a folder of its own and returns the folder.
fn record(options: &[&str], command: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    record_in(&folder, options, command);
    folder
}

pub fn record_in(folder: &tempfile::TempDir, options: &[&str], command: &[&str]) {
    let output = eprof()
        .arg("record")
        .args(options)
        .arg("--")
        .args(command)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn report(folder: &Path, options: &[&str]) -> Value {
    let output = eprof()
        .args(["report", "--format", "json"])
        .args(options)
        .current_dir(folder)
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("valid JSON")
}

/// Sum of a column over the rows whose name contains `name`.
fn sum(report: &Value, name: &str, column: &str) -> f64 {
    let rows = report["rows"].as_array().expect("rows");
    let named = rows.iter().filter(|row| row["name"].as_str().is_some_and(|it| it.contains(name)));
    named.filter_map(|row| row[column].as_f64()).sum()
}

fn total(report: &Value, column: &str) -> f64 {
    report["rows"].as_array().expect("rows").iter().filter_map(|row| row[column].as_f64()).sum()
}

/// Builds a C or C++ program; `None`, with the reason, where there is no compiler.
pub fn build(folder: &Path, name: &str, source: &str, compiler: &str, flags: &[&str]) -> Option<String> {
    if !has_program(compiler, &["--version"]) {
        skip(&format!("{compiler} is not installed"));
        return None;
    }
    let extension = if compiler == "g++" { "cpp" } else { "c" };
    let file = folder.join(format!("{name}.{extension}"));
    std::fs::write(&file, source).expect("source is written");
    let program = folder.join(name);
    let status = Command::new(compiler).args(flags).arg(&file).arg("-o").arg(&program).status();
    assert!(status.expect("the compiler runs").success());
    Some(program.to_str().expect("a path in UTF-8").to_owned())
}

#[test]
fn three_quarters_of_the_time_are_three_quarters_of_the_joules() {
    let folder = tempfile::tempdir().expect("a folder");
    // The CPU's own clock ends each turn: loops of equal length may differ in speed by how they are aligned.
    let source = "
        #include <time.h>
        static volatile unsigned long sink;
        static double now(void) {
            struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
        }
        static inline __attribute__((always_inline)) void burn(double until) {
            do { for (int i = 0; i < 20000; i++) sink += i; } while (now() < until);
        }
        __attribute__((noinline)) double three(double t) { burn(t + 6); return t + 6; }
        __attribute__((noinline)) double one(double t) { burn(t + 2); return t + 2; }
        int main(void) { double t = now(); for (int turn = 0; turn < 250; turn++) t = one(three(t)); return 0; }";
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer"];
    let Some(program) = build(folder.path(), "split", source, "gcc", &flags) else { return };
    record_in(&folder, &["-F", "4000"], &[&program]);
    let report = report(folder.path(), &["--children", "--no-inline"]);
    let joules = |name: &str| {
        let rows = report["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == name).expect("a row");
        row["total_joules"].as_f64().expect("a number")
    };
    let both = joules("three") + joules("one");
    let share = joules("three") / both;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    // What the program spent went to these two.
    assert!(both / total(&report, "self_joules") > 0.9);
    let samples = report["samples"].as_u64().expect("samples");
    assert!(samples > 1000, "{samples} samples: too short for the precision asked for");
}

#[test]
fn the_parts_add_up_in_every_report() {
    let folder = record(&[], &["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]);
    for by in ["function", "module", "thread", "process", "core", "line"] {
        let report = report(folder.path(), &["--by", by, "--limit", "0"]);
        let balance = &report["balance"];
        let part = |name: &str| balance[name].as_f64().expect("a number");
        let parts = ["attributed", "static", "other", "recorder", "lost"].map(part).iter().sum::<f64>();
        let whole = report["total_joules"].as_f64().expect("a number");
        assert!((parts - whole).abs() <= 1e-9 * whole, "{by}: {parts} of {whole}");
        let rows = total(&report, "self_joules");
        assert!((rows - part("attributed")).abs() <= 1e-9 * whole, "{by}: rows {rows}");
    }
}

#[test]
fn functions_have_the_samples_that_perf_counts() {
    if !has_program("perf", &["--version"]) {
        return skip("perf is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = "
        #include <thread>
        #include <vector>
        #include <algorithm>
        static volatile unsigned long sink;
        __attribute__((noinline)) void count() { for (int i = 0; i < 20000; i++) sink += i; }
        __attribute__((noinline)) void sort() {
            std::vector<int> v(20000);
            for (unsigned i = 0; i < v.size(); i++) v[i] = (i * 2654435761u) >> 7;
            std::sort(v.begin(), v.end());
            sink += v[7];
        }
        void work() { for (int i = 0; i < 300; i++) { count(); sort(); } }
        int main() { std::thread a(work), b(work), c(work); a.join(); b.join(); c.join(); }";
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer", "-pthread"];
    let Some(program) = build(folder.path(), "threads", source, "g++", &flags) else { return };
    record_in(&folder, &["-F", "2000"], &[&program]);
    let report = report(folder.path(), &["--weight", "samples", "--no-inline"]);
    let mut ours: BTreeMap<String, u64> = BTreeMap::new();
    for row in report["rows"].as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name").to_owned();
        // What has no symbol is named in each program's own way; those are compared by place elsewhere.
        let samples = row["self_samples"].as_u64().expect("a number");
        if samples > 0 && !name.contains("+0x") && !name.contains("+fn_") && !name.starts_with("0x") {
            *ours.entry(name).or_default() += samples;
        }
    }
    let output = Command::new("perf")
        .args(["report", "--stdio", "-q", "--no-children", "-g", "none", "--no-inline", "-t", "|"])
        .args(["-F", "sample,sym", "-i", "eprof.data"])
        .current_dir(&folder)
        .output()
        .expect("perf runs");
    let mut theirs: BTreeMap<String, u64> = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((samples, symbol)) = line.split_once('|') else { continue };
        let (Ok(samples), Some(name)) = (samples.trim().parse::<u64>(), symbol.get(4..)) else { continue };
        // The readings of energy are samples too, of no function.
        if !name.trim().starts_with("0x") && !name.trim().starts_with("0000") {
            *theirs.entry(name.trim().to_owned()).or_default() += samples;
        }
    }
    assert!(ours.contains_key("count()") || ours.contains_key("count"), "{ours:?}");
    let user = |counts: &BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        counts.iter().map(|(name, samples)| (name.replace("()", ""), *samples)).collect()
    };
    assert_eq!(user(&ours), user(&theirs));
}

#[test]
fn a_cpp_program_with_exceptions_shows_inlined_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "
        #include <stdexcept>
        static volatile unsigned long sink;
        static inline unsigned long mix(unsigned long x) { x ^= x >> 13; x *= 0x9E3779B97F4A7C15ul; return x ^ (x >> 7); }
        struct Engine {
            __attribute__((noinline)) void step(unsigned n) { for (unsigned i = 0; i < n; i++) sink = mix(sink + i); }
            __attribute__((noinline)) void fail(int i) { if (i % 3 == 0) throw std::runtime_error(\"no\"); }
        };
        int main() {
            Engine engine;
            int caught = 0;
            for (int i = 0; i < 3000; i++) {
                engine.step(100000);
                try { engine.fail(i); } catch (const std::exception &) { caught++; }
            }
            return caught == 1000 ? 0 : 1;
        }";
    let flags = ["-O2", "-g", "-fno-omit-frame-pointer"];
    let Some(program) = build(folder.path(), "engine", source, "g++", &flags) else { return };
    record_in(&folder, &[], &[&program]);
    let report = report(folder.path(), &["--children", "--inline"]);
    let all = total(&report, "self_samples");
    assert!(sum(&report, "Engine::step", "total_samples") > 0.7 * all);
    assert!(sum(&report, "mix", "self_samples") > 0.2 * all, "the inlined function has its own row");
}

#[test]
fn a_pipeline_of_short_processes_is_told_apart() {
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do seq 1 40000 | sort -rn | tail -n 1; done";
    let folder = record(&["-F", "5000"], &["sh", "-c", script]);
    let report = report(folder.path(), &["--by", "process"]);
    for process in ["sort", "seq"] {
        assert!(sum(&report, process, "self_samples") > 0.0, "{process}: {}", report["rows"]);
    }
}

#[test]
fn functions_that_node_compiles_at_run_time_have_names() {
    if !has_program("node", &["--version"]) {
        return skip("node is not installed");
    }
    let script = "function hotLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
        const end = process.cpuUsage().user + 1.2e6; let a = 0;
        while (process.cpuUsage().user < end) a += hotLoop(200000);
        if (!(a > 0)) process.exit(1);";
    for option in ["--perf-prof", "--perf-basic-prof"] {
        let folder = record(&[], &["node", option, "-e", script]);
        let report = report(folder.path(), &[]);
        let share = sum(&report, "hotLoop", "self_samples") / total(&report, "self_samples");
        assert!(share > 0.5, "{option}: {share}");
    }
}

#[test]
fn real_tools_show_their_real_work() {
    let python = "x = 0\nfor i in range(6000000): x += i * i";
    let sql = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1500000) \
               select sum(i * i % 7) from n;";
    let packed = "head -c 6000000 /dev/urandom | od -x | xz -3 -c > /dev/null";
    let cases: [(&str, &[&str], &str, &str); 3] = [
        ("python3", &["python3", "-c", python], "module", "python"),
        ("sqlite3", &["sqlite3", ":memory:", sql], "module", "sqlite"),
        ("xz", &["sh", "-c", packed], "module", "lzma"),
    ];
    for (program, command, by, expected) in cases {
        if !has_program(program, &["--version"]) {
            skip(&format!("{program} is not installed"));
            continue;
        }
        let folder = record(&[], command);
        let report = report(folder.path(), &["--by", by]);
        let share = sum(&report, expected, "self_joules") / total(&report, "self_joules");
        assert!(share > 0.3, "{program}: {share} in {expected}: {}", report["rows"]);
    }
}

#[test]
fn eprof_profiles_itself_reading_a_large_recording() {
    let folder = record(&["-F", "20000"], &["sh", "-c", "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"]);
    let itself = env!("CARGO_BIN_EXE_eprof");
    let folder_path = folder.path().to_str().expect("a path in UTF-8").to_owned();
    record_in(
        &folder,
        &["-F", "5000", "-o", "of-itself.data"],
        &[itself, "report", "-i", &format!("{folder_path}/eprof.data"), "--children"],
    );
    let report = report(folder.path(), &["-i", "of-itself.data", "--children"]);
    assert!(sum(&report, "eprof::analyze", "total_samples") > 0.0, "{}", report["rows"]);
}

//! Who calls a function that sets up no frame, in programs of compilers that are installed here.

use std::path::Path;
use std::process::Command;

use eprof_testbed::{eprof, has_program, run_or_skip, skip};
use serde_json::Value;

use super::harness::{Folder, can_record, stderr};

/// Three quarters of the work are done for `heavy`, in turns that are far shorter than the time between two samples, and
/// of lengths drawn by chance: turns of one length may keep step with the clock that samples, and then some parts of
/// them are seen more often than they last. That `spin` calls none is all that it needs to go without a frame.
const SOURCE: &str = r"
#include <stdint.h>
static volatile uint64_t sink;
__attribute__((noinline)) uint64_t spin(uint64_t rounds, uint64_t value) {
    for (uint64_t i = 0; i < rounds; i++) value = value * 6364136223846793005u + (value >> 29);
    return value;
}
__attribute__((noinline)) void heavy(uint64_t rounds) { sink += spin(3 * rounds, sink); sink += 1; }
__attribute__((noinline)) void light(uint64_t rounds) { sink += spin(rounds, sink); sink += 1; }
int main(void) {
    uint64_t drawn = 1;
    for (int turn = 0; turn < 60000; turn++) {
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        uint64_t rounds = 500 + (drawn >> 33) % 1000;
        heavy(rounds);
        light(rounds);
    }
}
";

/// Samples of each function with those of all that it called, of a recording with these options.
fn totals(program: &Path, options: &[&str]) -> Value {
    let folder = Folder::new();
    let output = folder.record(options).arg("--").arg(program).output().expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let output = eprof()
        .args(["report", "--children", "--format", "json", "--by", "function", "-i"])
        .arg(folder.data())
        .output()
        .expect("eprof runs");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn samples_of(report: &Value, function: &str) -> f64 {
    let rows = report["rows"].as_array().expect("rows").iter();
    let is_it =
        |row: &&Value| row["name"].as_str().is_some_and(|name| name.split("::").last() == Some(function));
    rows.filter(is_it).filter_map(|row| row["total_samples"].as_f64()).sum()
}

/// `heavy` has the three quarters that are its own, and does not have them without the copied stack: else the compiler
/// gave `spin` a frame, and nothing is tested.
fn check(program: &Path) {
    let report = totals(program, &["-e", "cpu-clock:u", "-c", "250000"]);
    let [spin, heavy, light] = ["spin", "heavy", "light"].map(|function| samples_of(&report, function));
    assert!(spin > 300.0, "{spin} samples");
    let share = heavy / (heavy + light);
    let sigma = (0.75 * 0.25 / spin).sqrt();
    assert!(
        (share - 0.75).abs() < 4.0 * sigma,
        "heavy has {share} of {spin} samples, sigma {sigma}: {report:#}"
    );
    assert!(heavy + light > 0.99 * spin, "{heavy} and {light} of {spin} samples: {report:#}");
    let callers = &report["hidden_callers"];
    let found = callers["found"].as_f64().expect("a number");
    assert!(found > 0.9 * spin && callers["out_of_reach"].as_f64() < Some(0.01 * spin), "{callers}");
    let without = totals(program, &["-e", "cpu-clock:u", "-c", "250000", "--call-graph", "fp"]);
    let [spin, heavy] = ["spin", "heavy"].map(|function| samples_of(&without, function));
    assert!(heavy < 0.1 * spin, "{heavy} of {spin} samples without the copied stack: {without:#}");
    let callers = &without["hidden_callers"];
    assert!(callers["found"] == 0 && callers["out_of_reach"].as_f64() > Some(0.9 * spin), "{callers}");
    let warnings = without["warnings"].as_array().expect("warnings").iter();
    let said = warnings.filter(|text| text.as_str().is_some_and(|text| text.contains("fp+leaf"))).count();
    assert_eq!(said, 1, "{without:#}");
}

#[test]
fn the_caller_of_a_c_function_without_a_frame() {
    if !cfg!(target_arch = "x86_64") || !can_record() {
        return;
    }
    let compilers = ["gcc", "clang"].into_iter().filter(|compiler| has_program(compiler, &["--version"]));
    let compilers: Vec<&str> = compilers.collect();
    if compilers.is_empty() {
        return skip("neither gcc nor clang is installed");
    }
    for compiler in compilers {
        let folder = Folder::new();
        std::fs::write(folder.path().join("leaf.c"), SOURCE).expect("written");
        let options = ["-O2", "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer", "leaf.c", "-o", "leaf"];
        let output = Command::new(compiler).args(options).current_dir(folder.path()).output().expect("runs");
        assert!(output.status.success(), "{compiler}: {}", stderr(&output));
        check(&folder.path().join("leaf"));
    }
}

/// Beyond the first function of a static program, a chain of frame pointers leads into its list of initializers: neither
/// what lies there nor behind it called anything.
#[test]
fn nothing_calls_the_first_function_of_a_static_program() {
    if !cfg!(target_arch = "x86_64") || !can_record() {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.path().join("leaf.c"), SOURCE).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-static", "-fno-omit-frame-pointer", "leaf.c", "-o", "leaf"])
        .current_dir(folder.path());
    if !run_or_skip([&mut gcc]) {
        return;
    }
    for how in ["fp", "fp+leaf"] {
        let report = totals(&folder.path().join("leaf"), &["-e", "cpu-clock:u", "--call-graph", how]);
        let main = samples_of(&report, "main");
        assert!(main > 100.0, "{report:#}");
        let rows = report["rows"].as_array().expect("rows").iter();
        let of_all = rows.filter(|row| row["total_samples"].as_f64() > Some(0.9 * main));
        let named =
            |row: &Value| row["name"].as_str().map(|name| name.split('@').next().unwrap_or(name).to_owned());
        for name in of_all.filter_map(named) {
            let is_of_path = ["main", "spin", "heavy", "_start"].contains(&name.as_str());
            assert!(is_of_path || name.starts_with("__libc_start_"), "{how}: {name} calls main: {report:#}");
        }
        assert!(samples_of(&report, "[unknown]") < 0.1 * main, "{how}: {report:#}");
    }
}

/// As the assembly of crypto libraries does it: `kept` puts the stack pointer of its caller into the stack, and its unwind table
/// says so by an expression that reads it there (DWARF 5, section 6.4.2.2: `DW_CFA_def_cfa_expression`, 15, of five bytes:
/// what lies 8 bytes above the stack pointer, and 8 more).
const KEEPS_STACK_POINTER: &str = r#"
__asm__(".text\n.type kept,@function\nkept:\n.cfi_startproc\n"
        "mov %rsp,%rax\nsub $64,%rsp\nmov %rax,8(%rsp)\n.cfi_escape 15,5,0x77,8,6,0x23,8\n"
        "mov $3000000,%ecx\n1: imul %rdx,%rdx\ndec %ecx\njnz 1b\n"
        "mov 8(%rsp),%rsp\n.cfi_def_cfa rsp,8\nret\n.cfi_endproc\n.size kept,.-kept\n");
void kept(void);
int main(void) { for (int turn = 0; turn < 50; turn++) kept(); return 0; }
"#;

/// What lies in the stack is not recorded: who called is not known, and nothing else is lost.
#[test]
fn a_function_that_keeps_the_stack_pointer_in_the_stack_is_reported() {
    if !cfg!(target_arch = "x86_64") || !can_record() {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.path().join("kept.c"), KEEPS_STACK_POINTER).expect("written");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-fno-omit-frame-pointer", "kept.c", "-o", "kept"]).current_dir(folder.path());
    if !run_or_skip([&mut gcc]) {
        return;
    }
    for how in ["fp", "fp+leaf"] {
        let options = ["-e", "cpu-clock:u", "-c", "250000", "--call-graph", how];
        let report = totals(&folder.path().join("kept"), &options);
        let callers = &report["hidden_callers"];
        let [kept, samples, out_of_reach, unknown] = [
            samples_of(&report, "kept"),
            callers["samples"].as_f64().expect("a number"),
            callers["out_of_reach"].as_f64().expect("a number"),
            callers["unknown"].as_f64().expect("a number"),
        ];
        assert!(kept > 100.0 && kept <= samples && out_of_reach < 0.1 * samples, "{how}: {report:#}");
        // A copied top of the stack does not tell more: the table is not followed through it.
        assert!(how == "fp+leaf" || unknown > 0.9 * kept, "{how}: {callers}");
    }
}

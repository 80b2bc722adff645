//! Why call paths are broken: each cause has another repair, and what is whole has none.

use std::path::Path;

use super::real_programs::{build, record_in};
use super::record::harness::can_record;
use eprof_testbed::eprof;

/// Work that each program does, and what it may do it in.
const WORK: &str = "
    #include <stdlib.h>
    static volatile unsigned long sink;
    __attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) sink += i; }
    __attribute__((noinline)) void down(int depth) { if (depth) down(depth - 1); else work(20000000); sink++; }
    int compare(const void *a, const void *b) { work(200); return *(const int *)a - *(const int *)b; }
";

const FLAGS: [&str; 4] = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];

/// What a report with callers says of call paths; `None` where nothing can be recorded or built, which is told.
fn said(name: &str, source: &str, compiler: &str, flags: &[&str]) -> Option<String> {
    said_of(&[], name, source, compiler, flags)
}

/// The same with more options of `eprof record`.
fn said_of(options: &[&str], name: &str, source: &str, compiler: &str, flags: &[&str]) -> Option<String> {
    if !can_record() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = build(folder.path(), name, &format!("{WORK}{source}"), compiler, flags)?;
    record_in(&folder, &[&["-F", "2000", "--call-graph", "fp"], options].concat(), &[&program]);
    Some(warning(folder.path()))
}

fn warning(folder: &Path) -> String {
    let output = eprof().args(["report", "--children"]).current_dir(folder).output().expect("eprof runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    table.lines().find(|line| line.contains("broken call paths")).unwrap_or_default().to_owned()
}

#[test]
fn threads_of_cpp_begin_in_its_library() {
    // So much work that the program's start is nothing beside it: the loader of shared libraries has no frame pointers.
    let source = "
        #include <thread>
        static void repeated(int depth) { for (int i = 0; i < 16; i++) down(depth); }
        int main() { std::thread a([] { repeated(3); }), b([] { repeated(5); }); a.join(); b.join(); }";
    let flags = [&FLAGS[..], &["-pthread"]].concat();
    let Some(said) = said("threads", source, "g++", &flags) else { return };
    assert_eq!(said, "", "paths from where a thread begins are whole");
}

#[test]
fn paths_deeper_than_the_kernel_follows_are_not_the_programs_fault() {
    let source = "int main() { for (int i = 0; i < 8; i++) down(2000); }";
    let Some(said) = said("deep", source, "gcc", &FLAGS) else { return };
    assert!(
        said.contains("sysctl -w kernel.perf_event_max_stack=") && said.contains("--call-graph dwarf"),
        "{said}"
    );
    assert!(!said.contains("-fno-omit-frame-pointer"), "{said}");
}

#[test]
fn every_cause_is_told_with_its_own_share() {
    // Half in recursion without end, half below the C library's sorting, which keeps no frame pointers.
    let source = "
        int main() {
            for (int i = 0; i < 8; i++) down(2000);
            static int numbers[100000];
            for (int turn = 0; turn < 2; turn++) {
                for (int i = 0; i < 100000; i++) numbers[i] = rand();
                qsort(numbers, 100000, sizeof *numbers, compare);
            }
        }";
    let Some(said) = said("both", source, "gcc", &FLAGS) else { return };
    let deep = said.split("%: they are deeper").next().and_then(|before| before.rsplit(' ').next());
    let deep: f64 = deep.and_then(|share| share.parse().ok()).unwrap_or_else(|| panic!("a share: {said}"));
    assert!((5.0..95.0).contains(&deep), "{said}");
    if said.contains("they end in") {
        assert!(said.contains("they end in libc.so.6, whose code keeps no frame pointers"), "{said}");
    } else {
        // A C library with frame pointers: its callers are known.
        assert!(!said.contains("-fno-omit-frame-pointer"), "{said}");
    }
}

#[test]
fn a_program_without_frame_pointers_is_told_to_have_them() {
    // The register that would point to frames holds something else all along.
    let source = "
        __attribute__((noinline)) void deeper(long a) { down(a & 1); sink += a; }
        int main() { for (int i = 0; i < 8; i++) { asm volatile(\"xor %%rbp, %%rbp\" ::: \"rbp\"); deeper(i); } }";
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let flags = ["-O1", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    // As a user who may sample the own mode alone has it, no sample at all has a caller.
    for options in [&[][..], &["--user-only"]] {
        let Some(said) = said_of(options, "without", source, "gcc", &flags) else { return };
        assert!(
            said.ends_with(": record with --call-graph dwarf, or build with -fno-omit-frame-pointer"),
            "{options:?}: {said}"
        );
    }
}

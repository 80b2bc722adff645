//! Symbols of the kernel, the vdso and just-in-time compilers.

use std::fs;
use std::path::Path;

use eprof::profile::{Module, ModuleKind};
use eprof::symbolize::{KernelReference, SymbolizeOptions};
use tempfile::TempDir;

use super::support::*;

const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000400 t do_work\n\
                        ffffffff81000800 T _etext\nffffffffc0100000 t helper\t[extra]\n";

/// A machine with these kernel symbols and the build-id 01 02 03 04.
fn machine(kallsyms: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["proc/sys/kernel", "sys/kernel", "tmp"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    fs::write(root.path().join("proc/kallsyms"), kallsyms).unwrap();
    fs::write(root.path().join("proc/sys/kernel/osrelease"), "6.1.0-test\n").unwrap();
    let words = [4u32, 4, 3].map(u32::to_ne_bytes).concat();
    fs::write(root.path().join("sys/kernel/notes"), [&words[..], b"GNU\0", &[1, 2, 3, 4]].concat()).unwrap();
    root
}

fn on(root: &Path) -> SymbolizeOptions {
    SymbolizeOptions {
        procfs: root.join("proc"),
        sysfs: root.join("sys"),
        perf_map_dir: root.join("tmp"),
        kernel_build_id: Some(vec![1, 2, 3, 4]),
        ..options(root)
    }
}

fn kernel() -> Module {
    let path = String::from("[kernel.kallsyms]");
    Module { kind: ModuleKind::Kernel, path, build_id: None, inode: None, pid: None }
}

#[test]
fn the_running_kernel_and_its_modules() {
    let root = machine(KALLSYMS);
    let addresses =
        [0xffff_ffff_8100_0010, 0xffff_ffff_8100_0400, 0xffff_ffff_8100_07ff, 0xffff_ffff_c010_0010];
    let symbols = symbolize(on(root.path()), kernel(), &addresses);
    assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
    let found: Vec<String> = (0..4).map(|index| frames(&symbols, index).join("+")).collect();
    assert_eq!(found, ["_stext", "do_work", "do_work", "helper"]);
}

#[test]
fn another_kernel_or_hidden_addresses_give_no_symbols() {
    let root = machine(KALLSYMS);
    let addresses = [0xffff_ffff_8100_0010];
    let warned = |options: SymbolizeOptions, module: Module| {
        let symbols = symbolize(options, module, &addresses);
        assert_eq!(frames(&symbols, 0), ["[kernel.kallsyms]+0xffffffff81000010"]);
        symbols.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let other = SymbolizeOptions { kernel_build_id: Some(vec![9, 9, 9, 9]), ..on(root.path()) };
    assert!(warned(other, kernel()).contains("another kernel (09090909) than the running one (01020304)"));
    let unknown = SymbolizeOptions { kernel_build_id: None, ..on(root.path()) };
    assert!(warned(unknown.clone(), kernel()).contains("does not tell the build-id"));
    let release = SymbolizeOptions { kernel_release: Some(String::from("5.0")), ..unknown.clone() };
    assert!(warned(release, kernel()).contains("another kernel (5.0) than the running one (6.1.0-test)"));
    let hidden = machine("0000000000000000 T _text\n0000000000000000 t do_work\n");
    assert!(warned(on(hidden.path()), kernel()).contains("sudo sysctl kernel.kptr_restrict=0"));
    // The recording can tell the build-id with the kernel's mapping instead.
    let told = Module { build_id: Some(vec![1, 2, 3, 4]), ..kernel() };
    assert_eq!(frames(&symbolize(unknown, told, &addresses), 0), ["_stext"]);
}

#[test]
fn a_kernel_that_was_moved_at_boot() {
    let root = machine(KALLSYMS);
    let reference = KernelReference { symbol: String::from("_text"), address: 0xffff_ffff_9a00_0000 };
    let options = SymbolizeOptions { kernel_reference: Some(reference), ..on(root.path()) };
    let symbols =
        symbolize(options, kernel(), &[0xffff_ffff_9a00_0410, 0xffff_ffff_8100_0410, 0xffff_ffff_c010_0010]);
    assert_eq!(frames(&symbols, 0), ["do_work"]);
    assert_eq!(frames(&symbols, 1), ["[kernel.kallsyms]+0xffffffff81000410"]);
    assert_eq!(
        frames(&symbols, 2),
        ["[kernel.kallsyms]+0xffffffffc0100010"],
        "modules lie elsewhere after a boot"
    );
}

/// A program stands for the kernel's image: it has the symbol `_text`, functions, and lines.
#[test]
fn functions_and_lines_of_the_kernels_image() {
    if !available("cc") {
        return;
    }
    let root = machine(KALLSYMS);
    let source = "static inline __attribute__((always_inline)) int helper(int x) { return x * x + 3; }\n\
                  __attribute__((noinline)) int do_work(int x) { return helper(x) / 7; }\n\
                  int main(int count, char **arguments) { (void)arguments; return do_work(count); }\n";
    fs::write(root.path().join("kernel.c"), source).unwrap();
    let flags =
        ["-g", "-O2", "-no-pie", "-Wl,--build-id", "-Wl,--defsym=_text=do_work", "kernel.c", "-o", "vmlinux"];
    run("cc", &flags, root.path());
    let place = root.path().join("debug/lib/modules/6.1.0-test");
    fs::create_dir_all(&place).unwrap();
    let image = place.join("vmlinux");
    fs::rename(root.path().join("vmlinux"), &image).unwrap();
    let id = build_id(&image);
    let size = offsets_of(&image, "do_work").len() as u64;
    let innermost = |symbols: &eprof::symbolize::Symbols| {
        let all: Vec<Vec<String>> = (0..size as usize).map(|index| frames(symbols, index)).collect();
        assert!(all.iter().all(|frames| frames[0].starts_with("do_work kernel.c:2")), "{all:?}");
        assert!(
            all.contains(&vec![String::from("do_work kernel.c:2"), String::from("helper kernel.c:1")]),
            "{all:?}"
        );
    };
    // Another kernel is running: names and lines are the image's, moved to where the recording says.
    let text = 0xffff_ffff_9a00_0000;
    let reference = Some(KernelReference { symbol: String::from("_text"), address: text });
    let recorded = SymbolizeOptions {
        kernel_build_id: Some(id.clone()),
        kernel_reference: reference,
        ..on(root.path())
    };
    let addresses: Vec<u64> = (text..text + size).collect();
    innermost(&symbolize(recorded.clone(), kernel(), &addresses));
    // Without that, an address could be anything.
    let unknown = SymbolizeOptions { kernel_reference: None, ..recorded };
    let symbols = symbolize(unknown.clone(), kernel(), &addresses);
    assert!(
        symbols.warnings[0].to_string().contains("does not tell where its kernel lay"),
        "{:?}",
        symbols.warnings
    );
    // The recorded kernel is running: names from its list, lines from the image.
    let words = [4u32, id.len() as u32, 3].map(u32::to_ne_bytes).concat();
    fs::write(root.path().join("sys/kernel/notes"), [&words[..], b"GNU\0", &id].concat()).unwrap();
    fs::write(root.path().join("proc/kallsyms"), format!("{text:016x} T _text\n{text:016x} T do_work\n"))
        .unwrap();
    innermost(&symbolize(unknown, kernel(), &addresses));
}

#[test]
fn the_vdso_of_this_process() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if !maps.contains("[vdso]") {
        eprof_testbed::skip("there is no vdso");
        return;
    }
    let path = String::from("[vdso]");
    let module = Module { kind: ModuleKind::Vdso, path, build_id: None, inode: None, pid: None };
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim_end().to_owned();
    let options = SymbolizeOptions { kernel_release: Some(release), ..SymbolizeOptions::default() };
    let offsets: Vec<u64> = (0..8192).collect();
    let symbols = symbolize(options, module.clone(), &offsets);
    let names: Vec<&str> = symbols.functions().iter().map(|function| &*function.name).collect();
    assert!(names.iter().any(|name| name.contains("clock_gettime")), "{names:?} {:?}", symbols.warnings);
    let other = SymbolizeOptions { kernel_build_id: Some(vec![1; 20]), ..SymbolizeOptions::default() };
    let symbols = symbolize(other, module, &offsets);
    assert!(symbols.warnings[0].to_string().contains("another kernel"), "{:?}", symbols.warnings);
    assert!(symbols.functions().iter().all(|function| !function.known));
}

#[test]
fn functions_of_just_in_time_compilers() {
    let root = machine(KALLSYMS);
    fs::write(root.path().join("tmp/perf-77.map"), "7f0000001000 40 js:hot /a b.js:3\n").unwrap();
    let module = |kind, path: &str, pid| Module {
        kind,
        path: String::from(path),
        build_id: None,
        inode: None,
        pid: Some(pid),
    };
    let anonymous = module(ModuleKind::Anonymous, "//anon", 77);
    let symbols = symbolize(on(root.path()), anonymous, &[0x7f00_0000_1020, 0x7f00_0000_1040]);
    assert_eq!(frames(&symbols, 0), ["js:hot /a b.js:3"]);
    assert_eq!(frames(&symbols, 1), ["//anon+0x7f0000001040"]);
    let symbols =
        symbolize(on(root.path()), module(ModuleKind::Anonymous, "//anon", 78), &[0x7f00_0000_1020]);
    assert_eq!(frames(&symbols, 0), ["//anon+0x7f0000001020"]);
    let named = module(ModuleKind::Jit, "bpf_prog_6deef7357e7b4530_trace", 1);
    assert_eq!(frames(&symbolize(on(root.path()), named, &[0x10]), 0), ["bpf_prog_6deef7357e7b4530_trace"]);
}

#[test]
fn a_map_of_another_user_is_not_trusted() {
    let root = machine(KALLSYMS);
    let map = root.path().join("tmp/perf-77.map");
    fs::write(&map, "7f0000001000 40 wrong\n").unwrap();
    if std::os::unix::fs::chown(&map, Some(12345), None).is_err() {
        eprof_testbed::skip_quietly("only root can give a file away");
        return;
    }
    let path = String::from("//anon");
    let module = Module { kind: ModuleKind::Anonymous, path, build_id: None, inode: None, pid: Some(77) };
    let symbols = symbolize(on(root.path()), module, &[0x7f00_0000_1020]);
    assert_eq!(frames(&symbols, 0), ["//anon+0x7f0000001020"]);
    assert!(symbols.warnings[0].to_string().contains("neither you nor root"), "{:?}", symbols.warnings);
}

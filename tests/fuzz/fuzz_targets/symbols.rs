//! What symbols are read from. The first byte says what the others are: an ELF file, which is also every other file
//! that it may name as the place of its debug information and whose code is unwound, the kernel's list of its
//! symbols, the map of a just-in-time compiler, or eprof's own copy of the kernel's list.
#![no_main]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use eprof::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use eprof::symbolize::{
    Architecture, CodeMapping, ReturnAddressFinder, StackRegisters, StackUnwinder, SymbolizeOptions,
    Symbolizer,
};
use libfuzzer_sys::fuzz_target;

const BOOT: &str = "10f33c68-ad4c-43cf-8730-9fb5e1699e79";
/// The first line of the copy of the kernel's list. Mutations seldom make one.
const TITLE: &[u8] =
    b"eprof kernel symbols 1 10f33c68-ad4c-43cf-8730-9fb5e1699e79 ffffffff81000000 ffffffff82000000\n";

/// The other files that an ELF file also is: split debug information, alone and in a package, and the separate debug
/// file of the build-id abcd. The package serves as what debug files share, too.
const COMPANIONS: [&str; 3] = ["binary.dwo", "binary.dwp", ".build-id/ab/cd.debug"];

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new("/dev/shm").join(format!("eprof-fuzz-{}", std::process::id()));
    fs::create_dir_all(folder.join("sys/kernel/random")).expect("a folder in memory");
    fs::write(folder.join("sys/kernel/random/boot_id"), BOOT).expect("a file in memory");
    fs::write(folder.join("sys/kernel/osrelease"), "6.1").expect("a file in memory");
    fs::create_dir_all(folder.join(".build-id/ab")).expect("a folder in memory");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&what, content)) = bytes.split_first() else { return };
    let (kind, name) = match what % 4 {
        0 => (ModuleKind::File, "binary"),
        1 => (ModuleKind::Kernel, "kallsyms"),
        2 => (ModuleKind::Anonymous, "perf-1.map"),
        _ => (ModuleKind::Kernel, "kernel-symbols"),
    };
    // What another input left must not decide about this one. Not written over: the old one may still be mapped.
    for old in ["binary", "kallsyms", "perf-1.map", "kernel-symbols"].into_iter().chain(COMPANIONS) {
        fs::remove_file(FOLDER.join(old)).ok();
    }
    let file = FOLDER.join(name);
    let title: &[u8] = if name == "kernel-symbols" { TITLE } else { b"" };
    let mut options = OpenOptions::new();
    let mut out = options.write(true).create_new(true).mode(0o600).open(&file).expect("a file in memory");
    out.write_all(title).and_then(|()| out.write_all(content)).expect("room in memory");
    if name == "binary" {
        for companion in COMPANIONS {
            fs::hard_link(&file, FOLDER.join(companion)).expect("a link");
        }
    }
    let path = if kind == ModuleKind::File { format!("/{name}") } else { name.to_owned() };
    let module = Module { kind, path, build_id: None, inode: None, pid: Some(1) };
    let options = SymbolizeOptions {
        debug_dirs: vec![FOLDER.clone()],
        // Paths in the file lead nowhere else.
        sysroot: Some(FOLDER.clone()),
        build_id_caches: Vec::new(),
        procfs: FOLDER.clone(),
        sysfs: FOLDER.clone(),
        perf_map_dir: FOLDER.clone(),
        kernel_release: Some(String::from("6.1")),
        kernel_cache: Some(FOLDER.clone()),
        threads: Some(1),
        ..SymbolizeOptions::default()
    };
    let addresses: Vec<CodeAddress> = (0..content.len() as u64)
        .step_by(1 + content.len() / 256)
        .chain([0x1000, 0xffff_ffff_8100_0000, u64::MAX])
        .chain((0..16).map(|step| 0xffff_ffff_8100_0000 + 0x40 * step))
        .map(|address| CodeAddress { module: ModuleId(0), address, kernel: kind == ModuleKind::Kernel })
        .collect();
    let symbols = Symbolizer::new(options.clone()).symbolize(std::slice::from_ref(&module), &addresses);
    for index in 0..addresses.len() as u32 {
        assert!(!symbols.frames(AddressId(index)).is_empty(), "an address without a frame");
    }
    if kind == ModuleKind::File {
        let end = 0x1000 + content.len() as u64;
        let mapping = CodeMapping { start: 0x1000, end, module_address: 0, module: &module };
        let mut finder = ReturnAddressFinder::new(options.clone());
        let mut unwinder = StackUnwinder::new(options, Architecture::X86_64);
        for instruction in (0x1000..end).step_by(1 + content.len() / 64) {
            let registers = StackRegisters { instruction, stack: 0x10_0000, frame: 0x10_0010, link: 0 };
            finder.find(0, instruction, || Some(mapping));
            finder.is_no_return_address(&mapping, instruction);
            unwinder.unwind(0, || [mapping], registers, &[0; 256], &mut Vec::new());
        }
    }
});

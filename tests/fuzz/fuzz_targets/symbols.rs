//! What symbols are read from. The first byte says what the others are: an ELF file, whose code is also unwound, the
//! kernel's list of its symbols, or the map of a just-in-time compiler.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use eprof::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use eprof::symbolize::{
    Architecture, CodeMapping, StackRegisters, StackUnwinder, SymbolizeOptions, Symbolizer,
};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new("/dev/shm").join(format!("eprof-fuzz-{}", std::process::id()));
    fs::create_dir_all(folder.join("sys/kernel")).expect("a folder in memory");
    fs::write(folder.join("sys/kernel/osrelease"), "6.1").expect("a file in memory");
    folder
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&what, content)) = bytes.split_first() else { return };
    let (kind, name) = match what % 3 {
        0 => (ModuleKind::File, "binary"),
        1 => (ModuleKind::Kernel, "kallsyms"),
        _ => (ModuleKind::Anonymous, "perf-1.map"),
    };
    let file = FOLDER.join(name);
    // Not written over: the old one may still be mapped.
    fs::remove_file(&file).ok();
    fs::write(&file, content).expect("a file in memory");
    let path = if kind == ModuleKind::File { file.to_string_lossy().into_owned() } else { name.to_owned() };
    let module = Module { kind, path, build_id: None, inode: None, pid: Some(1) };
    let options = SymbolizeOptions {
        debug_dirs: Vec::new(),
        build_id_caches: Vec::new(),
        procfs: FOLDER.clone(),
        sysfs: FOLDER.clone(),
        perf_map_dir: FOLDER.clone(),
        kernel_release: Some(String::from("6.1")),
        threads: Some(1),
        ..SymbolizeOptions::default()
    };
    let addresses: Vec<CodeAddress> = (0..content.len() as u64)
        .step_by(1 + content.len() / 256)
        .chain([0x1000, 0xffff_ffff_8100_0000, u64::MAX])
        .map(|address| CodeAddress { module: ModuleId(0), address, kernel: false })
        .collect();
    let symbols = Symbolizer::new(options.clone()).symbolize(std::slice::from_ref(&module), &addresses);
    for index in 0..addresses.len() as u32 {
        assert!(!symbols.frames(AddressId(index)).is_empty(), "an address without a frame");
    }
    if kind == ModuleKind::File {
        let end = 0x1000 + content.len() as u64;
        let mapping = CodeMapping { start: 0x1000, end, module_address: 0, module: &module };
        let mut unwinder = StackUnwinder::new(options, Architecture::X86_64);
        for instruction in (0x1000..end).step_by(1 + content.len() / 64) {
            let registers = StackRegisters { instruction, stack: 0x10_0000, frame: 0x10_0010, link: 0 };
            unwinder.unwind(0, || [mapping], registers, &[0; 256], &mut Vec::new());
        }
    }
});

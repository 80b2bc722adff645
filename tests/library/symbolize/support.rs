//! Compiling small programs, and symbolizing all of their code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use eprof::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use eprof::symbolize::{SymbolizeOptions, Symbolizer, Symbols};
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, elf};

/// Is this tool installed? Says that the test is skipped if not.
pub fn available(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        eprof_testbed::skip(&format!("{tool} is not installed"));
    }
    found
}

/// Runs a command that must succeed.
pub fn run(tool: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(tool).args(arguments).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
}

/// A module of a file, by path alone.
pub fn module(path: &Path) -> Module {
    let path = path.to_str().unwrap().to_owned();
    Module { kind: ModuleKind::File, path, build_id: None, inode: None, pid: None }
}

/// Options that look nowhere outside `folder`.
pub fn options(folder: &Path) -> SymbolizeOptions {
    SymbolizeOptions { debug_dirs: vec![folder.join("debug")], build_id_caches: vec![], ..Default::default() }
}

pub fn build_id(path: &Path) -> Vec<u8> {
    let data = fs::read(path).unwrap();
    object::File::parse(&*data).unwrap().build_id().unwrap().unwrap().to_vec()
}

/// The virtual address of a function.
pub fn address_of(path: &Path, function: &str) -> u64 {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    file.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap().address()
}

/// File offsets of the bytes of a function.
pub fn offsets_of(path: &Path, function: &str) -> Vec<u64> {
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap();
    let holds = |segment: &object::Segment<'_, '_>| {
        let code = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
        code && (segment.address()..segment.address() + segment.size()).contains(&symbol.address())
    };
    let segment = file.segments().find(holds).unwrap();
    let start = symbol.address() - segment.address() + segment.file_range().0;
    (start..start + symbol.size()).collect()
}

/// A frame as text: `function file-name:line`, with the name of the file only.
pub fn frames(symbols: &Symbols, index: usize) -> Vec<String> {
    let frame_text = |frame: &eprof::symbolize::SourceFrame| {
        let name = &symbols.function(frame.function).name;
        let file = frame.file.map(|file| PathBuf::from(symbols.file(file)));
        let file = file.as_ref().and_then(|file| file.file_name()).unwrap_or_default().to_string_lossy();
        match frame.line {
            Some(line) => format!("{name} {file}:{line}"),
            None => name.to_string(),
        }
    };
    symbols.frames(AddressId(index as u32)).iter().map(frame_text).collect()
}

/// Symbolizes offsets in one module.
pub fn symbolize(options: SymbolizeOptions, module: Module, offsets: &[u64]) -> Symbols {
    let address = |&address: &u64| CodeAddress { module: ModuleId(0), address, kernel: false };
    let addresses: Vec<CodeAddress> = offsets.iter().map(address).collect();
    Symbolizer::new(options).symbolize(&[module], &addresses)
}

//! Where functions of x86-64 programs have their return addresses, by unwind tables that are written by hand, and by
//! those of the C library as another unwinder reads them.

use std::fs;
use std::path::{Path, PathBuf};

use eprof::profile::Module;
use eprof::symbolize::{
    Architecture, CodeMapping, ReturnAddress, ReturnAddressFinder, StackRegisters, StackUnwinder,
};

use object::{Object, ObjectSection};

use super::support::*;
use ReturnAddress::{AboveStackPointer, ByFramePointer, Outermost, Unknown};

const SOURCE: &str = include_str!("frames.s");

const LOADED_AT: u64 = 0x40_0000;
const PAGE: u64 = 4096;

/// What is said of each instruction of a function.
fn answers(program: &Path, function: &str) -> Vec<ReturnAddress> {
    let module = module(program);
    let offsets = offsets_of(program, function);
    let page = offsets[0] / PAGE * PAGE;
    let mapping = CodeMapping {
        start: LOADED_AT + page,
        end: LOADED_AT + page + PAGE,
        module_address: page,
        module: &module,
    };
    let mut finder = ReturnAddressFinder::new(options(program));
    assert_eq!(finder.find(1, LOADED_AT + page - 1, || None), None, "no code");
    let find = |offset: &u64| finder.find(1, LOADED_AT + offset, || Some(mapping)).unwrap();
    offsets.iter().map(find).collect()
}

#[test]
fn tables_tell_where_each_instruction_has_its_return_address() {
    if !cfg!(target_arch = "x86_64") || !available("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let with_tables = |section: &str| format!(".cfi_sections {section}\n{SOURCE}");
    for (name, source, option) in [
        ("index", SOURCE.to_owned(), "-Wl,--eh-frame-hdr"),
        ("no-index", SOURCE.to_owned(), "-Wl,--no-eh-frame-hdr"),
        ("debug", with_tables(".debug_frame"), "-Wl,--eh-frame-hdr"),
        ("both", with_tables(".eh_frame, .debug_frame"), "-Wl,--eh-frame-hdr"),
        // As Go's linker leaves its own; and by names of sections that compilers wrote before 2015.
        ("compressed", with_tables(".debug_frame"), "-Wl,--compress-debug-sections=zlib"),
        ("zdebug", with_tables(".debug_frame"), "-Wl,--compress-debug-sections=zlib-gnu"),
    ] {
        fs::write(folder.path().join("program.s"), source).unwrap();
        run("cc", &["-nostdlib", "-shared", option, "program.s", "-o", name], folder.path());
        let program = folder.path().join(name);
        if ["compressed", "zdebug"].contains(&name) {
            assert!(is_compressed(&program), "{name}");
        }
        let stub = [vec![AboveStackPointer(0); 11], vec![AboveStackPointer(8); 5]].concat();
        for (function, expected) in [
            ("leaf", vec![AboveStackPointer(0), AboveStackPointer(128)]),
            (
                "framed",
                vec![AboveStackPointer(0), AboveStackPointer(8), ByFramePointer, AboveStackPointer(0)],
            ),
            ("realigned", vec![Unknown; 3]),
            ("elsewhere", vec![Unknown]),
            ("outermost", vec![Outermost]),
            ("stub", stub),
            ("endless", vec![Unknown]),
            ("bare", vec![Unknown; 32]),
        ] {
            assert_eq!(answers(&program, function), expected, "{name}: {function}");
        }
    }
}

/// Whether unwind tables of debug information are compressed.
fn is_compressed(program: &Path) -> bool {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(".debug_frame").expect("tables");
    section.compressed_file_range().unwrap().format != object::CompressionFormat::None
}

/// What a chain of frame pointers takes for return addresses beyond the first function of a static program: entries of
/// the list of initializers.
#[test]
fn the_start_of_a_function_is_no_return_address() {
    if !cfg!(target_arch = "x86_64") || !available("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.s"), SOURCE).unwrap();
    run("cc", &["-nostdlib", "-shared", "program.s", "-o", "program.so"], folder.path());
    let program = folder.path().join("program.so");
    let module = module(&program);
    let mut finder = ReturnAddressFinder::new(options(&program));
    let mut is_none = |function: &str, instruction: u64| {
        let offset = offsets_of(&program, function)[0] + instruction;
        let page = offset / PAGE * PAGE;
        let (start, end) = (LOADED_AT + page, LOADED_AT + page + PAGE);
        let mapping = CodeMapping { start, end, module_address: page, module: &module };
        finder.is_no_return_address(&mapping, LOADED_AT + offset)
    };
    assert!(is_none("initializer", 0), "what lies before it is no call, and no table tells of it");
    assert!(!is_none("framed", 2), "what lies in a function that tables tell of is left alone");
    assert!(!is_none("behind_a_call", 0), "behind a call that does not return");
}

#[test]
fn code_of_other_processors_is_left_alone() {
    if !cfg!(target_arch = "x86_64") || !available("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.s"), SOURCE).unwrap();
    run("cc", &["-nostdlib", "-shared", "program.s", "-o", "program.so"], folder.path());
    let program = folder.path().join("program.so");
    let mut bytes = fs::read(&program).unwrap();
    // The machine of the ELF header: i386.
    bytes[18] = 3;
    fs::write(&program, bytes).unwrap();
    assert_eq!(answers(&program, "framed"), [Unknown; 4]);
}

/// The code of the C library that this process has, as it is mapped.
fn own_libc() -> Option<(Module, u64, u64, u64)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("r-xp") && line.contains("libc.so"))?;
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = fields[0].split_once('-')?;
    Some((module(&PathBuf::from(fields[5])), number(start), number(end), number(fields[2])))
}

/// An unwinder of whole stacks is shown a stack in which each word says where it lies: the second frame tells where
/// it takes the return address from.
#[test]
fn the_c_librarys_tables_mean_what_the_unwinder_of_whole_stacks_takes_them_for() {
    const TOP: u64 = 1 << 40;
    const FRAME: u64 = 1 << 41;
    const WORDS: u64 = 4096;
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let Some((module, start, end, module_address)) = own_libc() else {
        return eprof_testbed::skip("this process has no libc.so");
    };
    let mapping = CodeMapping { start, end, module_address, module: &module };
    let stack: Vec<u8> = (0..WORDS).flat_map(|word| (word + 1).to_le_bytes()).collect();
    let mut finder = ReturnAddressFinder::new(Default::default());
    let mut unwinder = StackUnwinder::new(Default::default(), Architecture::X86_64);
    let (mut above, mut by_frame) = (0, 0);
    for address in (start..end).step_by(97) {
        let registers = StackRegisters { instruction: address, stack: TOP, frame: FRAME, link: 0 };
        let mut frames = Vec::new();
        unwinder.unwind(1, || [mapping], registers, &stack, &mut frames);
        match finder.find(1, address, || Some(mapping)).expect("mapped") {
            AboveStackPointer(distance) if u64::from(distance) < 8 * WORDS => {
                above += 1;
                assert_eq!(frames, [address, u64::from(distance) / 8 + 1], "{address:#x}");
            }
            ByFramePointer => {
                by_frame += 1;
                assert_eq!(frames, [address], "{address:#x}");
            }
            _ => {}
        }
    }
    println!("{above} above the stack pointer, {by_frame} by the frame pointer");
    assert!(above > 5_000, "{above} of {}", (end - start) / 97);
}

/// Programs and libraries that are installed here, in the order of their names.
fn installed() -> Vec<PathBuf> {
    let folders =
        ["/usr/bin", "/usr/lib/x86_64-linux-gnu"].into_iter().filter_map(|folder| fs::read_dir(folder).ok());
    let entries = folders.flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

/// Whatever compilers, assemblers and people wrote into the tables of what is installed here: it is read, and nothing of it ends
/// the program. Tables of assembly have expressions that compilers write nowhere. With EPROF_ALL_TABLES of all files, else of
/// the crypto library and some others.
#[test]
fn tables_of_what_is_installed_are_read() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let all = std::env::var_os("EPROF_ALL_TABLES").is_some();
    let is_crypto = |path: &Path| path.to_string_lossy().contains("/libcrypto.so");
    let files = installed();
    let each = if all { 1 } else { (files.len() / 40).max(1) };
    let chosen = files.iter().enumerate().filter(|(at, path)| at % each == 0 || is_crypto(path));
    let (mut files, mut asked, mut found) = (0, 0, 0);
    for (_, path) in chosen {
        let Ok(bytes) = fs::read(path) else { continue };
        let Ok(file) = object::File::parse(&*bytes) else { continue };
        let Some((start, size)) = file.section_by_name(".text").and_then(|text| text.file_range()) else {
            continue;
        };
        files += 1;
        let module = module(path);
        let mapping = CodeMapping {
            start: LOADED_AT,
            end: LOADED_AT + bytes.len() as u64,
            module_address: 0,
            module: &module,
        };
        let mut finder = ReturnAddressFinder::new(options(path));
        let steps = if all || is_crypto(path) { 20_000 } else { 500 };
        for step in 0..steps.min(size) {
            let address = LOADED_AT + start + step * size / steps.min(size);
            asked += 1;
            found += u64::from(finder.find(1, address, || Some(mapping)) != Some(Unknown));
            finder.is_no_return_address(&mapping, address);
        }
    }
    println!("{files} files, {asked} instructions, of {found} of which it is known who called");
    assert!(files == 0 || found > asked / 2, "{files} files, {asked} instructions, {found} known");
}

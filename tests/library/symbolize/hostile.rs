//! Damaged and hostile files: symbols may be missing, but nothing panics, hangs, or takes memory without bound.

use std::fs;
use std::path::Path;

use eprof::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use eprof::symbolize::{
    Architecture, CodeMapping, StackRegisters, StackUnwinder, SymbolizeOptions, Symbolizer, Symbols,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::support::*;

const SOURCE: &str = "static inline __attribute__((always_inline)) int inner(int x) { return x * x + 3; }\n\
                      __attribute__((noinline)) int outer(int x) { return inner(x) + inner(x + 1); }\n\
                      int main(int count, char **arguments) { (void)arguments; return outer(count); }\n";

/// Symbolizes all bytes of a file, and unwinds a stack of zeros in it.
fn use_all_of(path: &Path, length: u64) -> Symbols {
    let module = Module { inode: None, ..module(path) };
    let addresses: Vec<CodeAddress> = (0..length)
        .step_by(7)
        .chain([u64::MAX, u64::MAX - 1])
        .map(|address| CodeAddress { module: ModuleId(0), address, kernel: false })
        .collect();
    let options = SymbolizeOptions { threads: Some(1), ..options(Path::new("/nonexistent")) };
    let symbols = Symbolizer::new(options.clone()).symbolize(std::slice::from_ref(&module), &addresses);
    for index in 0..addresses.len() as u32 {
        assert!(!symbols.frames(AddressId(index)).is_empty());
    }
    let mapping = CodeMapping { start: 0x1000, end: 0x1000 + length, module_address: 0, module: &module };
    let mut unwinder = StackUnwinder::new(options, Architecture::X86_64);
    for instruction in (0x1000..0x1000 + length).step_by(97) {
        let registers = StackRegisters { instruction, stack: 0x10_0000, frame: 0x10_0010, link: 0 };
        let mut frames = Vec::new();
        unwinder.unwind(0, || [mapping], registers, &[0; 512], &mut frames);
        assert!(frames.len() <= 1024);
    }
    symbols
}

/// Runs a test on changed copies of a small program with debug information of several kinds.
fn on_programs<Change: std::fmt::Debug>(
    cases: u32,
    changes: impl Strategy<Value = Change>,
    apply: impl Fn(&mut Vec<u8>, &Change),
) {
    if !available("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program.c"), SOURCE).unwrap();
    for flags in [&["-g", "-O2"][..], &["-gdwarf-4", "-O2", "-gz=zlib"]] {
        run("cc", &[&["program.c", "-o", "program"], flags].concat(), folder.path());
        let original = fs::read(folder.path().join("program")).unwrap();
        let changed = folder.path().join("changed");
        let mut runner =
            TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..Default::default() });
        let outcome = runner.run(&changes, |change| {
            let mut bytes = original.clone();
            apply(&mut bytes, &change);
            // A new file each time: the old one may still be mapped.
            fs::remove_file(&changed).ok();
            fs::write(&changed, &bytes).unwrap();
            use_all_of(&changed, original.len() as u64);
            Ok(())
        });
        outcome.unwrap();
    }
}

#[test]
fn files_cut_off_anywhere() {
    on_programs(100, 0.0..1.0, |bytes, at: &f64| bytes.truncate((bytes.len() as f64 * at) as usize));
}

#[test]
fn files_with_bytes_changed() {
    // Places as shares of the file, and values that are often critical in numbers.
    let value = prop_oneof![any::<u8>(), Just(0xff), Just(0x7f), Just(0x80), Just(0)];
    let changes = prop::collection::vec((0.0..1.0, value), 1..40);
    on_programs(200, changes, |bytes, changes: &Vec<(f64, u8)>| {
        for (at, value) in changes {
            let at = (bytes.len() as f64 * at) as usize;
            bytes[at] = *value;
        }
    });
}

#[test]
fn headers_with_bytes_changed() {
    on_programs(200, prop::collection::vec((0usize..1000, any::<u8>()), 1..8), |bytes, changes| {
        for (at, value) in changes {
            bytes[*at] = *value;
        }
        // Also the table of sections, at the end.
        for (at, value) in changes {
            let end = bytes.len();
            bytes[end - 1 - at * 2] ^= value;
        }
    });
}

/// An ELF file with these sections.
fn elf(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut file = vec![0; 64];
    let mut headers = vec![0; 64];
    for (name, content) in sections {
        let words = |values: [u64; 3]| values.map(u64::to_le_bytes).concat();
        headers.extend((names.len() as u32).to_le_bytes());
        headers.extend(1u32.to_le_bytes());
        headers.extend(words([0, 0, file.len() as u64]));
        headers.extend(words([content.len() as u64, 0, 1]));
        headers.extend(0u64.to_le_bytes());
        names.extend(name.as_bytes());
        names.push(0);
        file.extend(*content);
    }
    let name_offset = names.len() as u32;
    names.extend(b".shstrtab\0");
    headers.extend(name_offset.to_le_bytes());
    headers.extend(3u32.to_le_bytes());
    for value in [0, 0, file.len() as u64, names.len() as u64, 0, 1, 0] {
        headers.extend(value.to_le_bytes());
    }
    file.extend(names);
    // One executable segment over the first page.
    let segments = file.len() as u64;
    file.extend([1u32.to_le_bytes(), 5u32.to_le_bytes()].concat());
    for value in [0u64, 0x1000, 0x1000, 0x1000, 0x1000, 0x1000] {
        file.extend(value.to_le_bytes());
    }
    let table = file.len() as u64;
    file.extend(headers);
    let mut head = b"\x7fELF\x02\x01\x01".to_vec();
    head.resize(16, 0);
    head.extend([3u16.to_le_bytes(), 62u16.to_le_bytes()].concat());
    head.extend(1u32.to_le_bytes());
    for value in [0, segments, table] {
        head.extend(value.to_le_bytes());
    }
    head.extend(0u32.to_le_bytes());
    let count = sections.len() as u16 + 2;
    for value in [64u16, 56, 1, 64, count, count - 1] {
        head.extend(value.to_le_bytes());
    }
    file[..64].copy_from_slice(&head);
    file
}

#[test]
fn inlining_nested_without_end_is_not_followed() {
    const DEPTH: usize = 5_000_000;
    // A unit and a function from 0x1000 to 0x2000 by attributes, and an inlined function without attributes, which
    // takes one byte.
    let abbreviations = [
        [1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0].to_vec(),
        [2, 0x2e, 1, 0x11, 0x01, 0x12, 0x07, 0, 0].to_vec(),
        [3, 0x1d, 1, 0, 0, 0].to_vec(),
    ]
    .concat();
    let range = [0x1000u64.to_le_bytes(), 0x1000u64.to_le_bytes()].concat();
    let mut unit = [4u16.to_le_bytes().to_vec(), 0u32.to_le_bytes().to_vec(), vec![8]].concat();
    unit.push(1);
    unit.extend(&range);
    unit.push(2);
    unit.extend(&range);
    unit.extend(vec![3; DEPTH]);
    unit.extend(vec![0; DEPTH + 2]);
    let info = [(unit.len() as u32).to_le_bytes().to_vec(), unit].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested");
    fs::write(&path, elf(&[(".debug_info", &info), (".debug_abbrev", &abbreviations)])).unwrap();
    let symbols = symbolize(options(folder.path()), module(&path), &[0x10]);
    assert_eq!(frames(&symbols, 0), ["nested+0x10"]);
}

#[test]
fn a_section_that_unpacks_to_too_much_is_left_out() {
    // A header of compression that promises 2^40 bytes.
    let mut bomb = [1u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    bomb.extend((1u64 << 40).to_le_bytes());
    bomb.extend(1u64.to_le_bytes());
    bomb.extend(b"\x78\x9c\x03\x00\x00\x00\x00\x01");
    let mut file = elf(&[(".debug_info", &bomb)]);
    // SHF_COMPRESSED in the flags of the section's header.
    let table = u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize;
    file[table + 64 + 8..table + 64 + 16].copy_from_slice(&0x800u64.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb");
    fs::write(&path, file).unwrap();
    let symbols = symbolize(options(folder.path()), module(&path), &[0x10]);
    assert_eq!(frames(&symbols, 0), ["bomb+0x10"]);
}

#[test]
fn names_that_are_no_text_or_have_no_end() {
    let kinds = [ModuleKind::Jit, ModuleKind::Unknown, ModuleKind::Anonymous, ModuleKind::KernelModule];
    for kind in kinds {
        let path = String::from("\u{1b}[31m../../etc/\0\n");
        let module = Module { kind, path, build_id: Some(vec![]), inode: Some((0, 0, 0)), pid: None };
        let symbols = symbolize(options(Path::new("/nonexistent")), module, &[0, u64::MAX]);
        assert_eq!(symbols.frames(AddressId(1)).len(), 1);
    }
}

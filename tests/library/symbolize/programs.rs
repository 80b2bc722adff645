//! Programs in C, C++ and Rust: linked in all ways, stripped, with debug information in all places.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use eprof::profile::Module;
use eprof::symbolize::{Debuginfod, SymbolizeOptions, Symbols};
use tempfile::TempDir;

use super::support::*;

/// Three functions, each inlined into the one below it. The comments name the lines that tests look for.
const INLINED: &str = r#"
#include <stdio.h>
volatile double sink;
static inline __attribute__((always_inline)) void innermost(double x) {
    sink = x * 3.0 + sink; // innermost
}
static inline __attribute__((always_inline)) void middle(double x) {
    innermost(x + 1.0); // middle
}
__attribute__((noinline)) void outer(int rounds) {
    for (int i = 0; i < rounds; i++)
        middle(i); // outer
}
int main(int argc, char **argv) {
    (void)argv;
    outer(argc * 1000);
    printf("%g\n", sink);
    return 0;
}
"#;

fn line_of(source: &str, mark: &str) -> usize {
    1 + source.lines().position(|line| line.ends_with(&format!("// {mark}"))).unwrap()
}

/// The frames of the innermost inlined code.
fn expected(source: &str, file: &str) -> Vec<String> {
    ["outer", "middle", "innermost"].map(|name| format!("{name} {file}:{}", line_of(source, name))).to_vec()
}

/// Compiles [`INLINED`] with these flags, in a folder of its own.
fn compiled(compiler: &str, flags: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("inlined.c"), INLINED).unwrap();
    let arguments = [&["inlined.c", "-o", "program"], flags].concat();
    run(compiler, &arguments, folder.path());
    folder
}

/// All of `outer`'s code must be its own, and some of it must be that of the inlined functions.
fn assert_inlined(folder: &Path, image: &str, with_symbols: &str, options: SymbolizeOptions) -> Symbols {
    let offsets = offsets_of(&folder.join(with_symbols), "outer");
    let symbols = symbolize(options, module(&folder.join(image)), &offsets);
    assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
    let found: Vec<Vec<String>> = (0..offsets.len()).map(|index| frames(&symbols, index)).collect();
    for frames in &found {
        assert!(frames[0].starts_with("outer inlined.c:"), "{frames:?}");
    }
    let expected = expected(INLINED, "inlined.c");
    assert!(found.contains(&expected), "{expected:?} is not among {found:#?}");
    symbols
}

#[test]
fn inlined_functions_and_lines_however_the_program_is_linked() {
    if !available("cc") {
        return;
    }
    for flags in [
        &["-g", "-O2", "-fPIE", "-pie"][..],
        &["-g", "-O2", "-no-pie"],
        &["-g", "-O2", "-static"],
        &["-g", "-O2", "-shared", "-fPIC"],
        &["-gdwarf-4", "-O2"],
        &["-gdwarf-5", "-O2"],
        &["-g", "-O2", "-gz=zlib"],
        &["-g", "-O2", "-ffunction-sections", "-Wl,--gc-sections"],
    ] {
        println!("{flags:?}");
        let folder = compiled("cc", flags);
        assert_inlined(folder.path(), "program", "program", options(folder.path()));
    }
}

#[test]
fn sections_compressed_with_zstd() {
    if !available("cc") {
        return;
    }
    let folder = compiled("cc", &["-g", "-O2"]);
    let packed = std::process::Command::new("objcopy")
        .args(["--compress-debug-sections=zstd", "program", "packed"])
        .current_dir(folder.path())
        .status();
    if packed.is_ok_and(|status| status.success()) {
        assert_inlined(folder.path(), "packed", "packed", options(folder.path()));
    } else {
        eprof_testbed::skip_quietly("objcopy does not compress with zstd");
    }
}

#[test]
fn debug_information_in_split_files() {
    if !available("cc") {
        return;
    }
    for format in ["-gdwarf-4", "-gdwarf-5"] {
        let folder = compiled("cc", &["-O2", format, "-gsplit-dwarf"]);
        let path = folder.path();
        assert_inlined(path, "program", "program", options(path));
        // Without its file, the symbol remains.
        let dwo = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let dwo = dwo.into_iter().find(|path| path.extension().is_some_and(|it| it == "dwo")).unwrap();
        fs::rename(&dwo, path.join("elsewhere")).unwrap();
        let offsets = offsets_of(&path.join("program"), "outer");
        let symbols = symbolize(options(path), module(&path.join("program")), &offsets);
        assert!(frames(&symbols, 0)[0].starts_with("outer"));
        assert!((0..offsets.len()).all(|index| frames(&symbols, index).len() == 1));
        // One that belongs to another compilation is not used.
        let other = INLINED.replace("middle", "between");
        fs::write(path.join("inlined.c"), other).unwrap();
        run("cc", &["inlined.c", "-o", "other", "-O2", format, "-gsplit-dwarf"], path);
        let other = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let other = other.into_iter().find(|path| path.extension().is_some_and(|it| it == "dwo")).unwrap();
        fs::rename(other, &dwo).unwrap();
        let symbols = symbolize(options(path), module(&path.join("program")), &offsets);
        assert!((0..offsets.len()).all(|index| frames(&symbols, index).len() == 1));
    }
}

#[test]
fn debug_information_in_a_package() {
    if !available("cc") || !available("dwp") {
        return;
    }
    let folder = compiled("cc", &["-O2", "-gdwarf-4", "-gsplit-dwarf"]);
    let path = folder.path();
    run("dwp", &["-e", "program", "-o", "program.dwp"], path);
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(entry).unwrap();
        }
    }
    assert_inlined(path, "program", "program", options(path));
}

#[test]
fn stripped_with_the_debug_file_by_build_id() {
    if !available("cc") || !available("objcopy") {
        return;
    }
    let folder = compiled("cc", &["-g", "-O2", "-Wl,--build-id"]);
    let path = folder.path();
    let id: String = build_id(&path.join("program")).iter().map(|byte| format!("{byte:02x}")).collect();
    let place = path.join("debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&place).unwrap();
    let debug = place.join(format!("{}.debug", &id[2..]));
    run("objcopy", &["--only-keep-debug", "program", debug.to_str().unwrap()], path);
    run("strip", &["-o", "stripped", "program"], path);
    assert_inlined(path, "stripped", "program", options(path));
    // A file with another build-id in that place is not used.
    let other = compiled("cc", &["-g", "-O1", "-Wl,--build-id"]);
    fs::copy(other.path().join("program"), &debug).unwrap();
    let offsets = offsets_of(&path.join("program"), "outer");
    let symbols = symbolize(options(path), module(&path.join("stripped")), &offsets);
    let start = address_of(&path.join("program"), "outer");
    assert_eq!(frames(&symbols, 0), [format!("stripped+fn_{start:x}")]);
    assert!(!symbols.function(symbols.frames(eprof::profile::AddressId(0))[0].function).known);
}

#[test]
fn stripped_with_the_debug_file_by_link() {
    if !available("cc") || !available("objcopy") {
        return;
    }
    for (build_id, place) in [("none", "."), ("sha1", ".debug"), ("none", "debug")] {
        let folder = compiled("cc", &["-g", "-O2", &format!("-Wl,--build-id={build_id}")]);
        let path = folder.path();
        run("objcopy", &["--only-keep-debug", "program", "program.debug"], path);
        run("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program", "stripped"], path);
        let place = match place {
            "debug" => path.join("debug").join(path.strip_prefix("/").unwrap()),
            place => path.join(place),
        };
        fs::create_dir_all(&place).unwrap();
        if place != path.join(".") {
            fs::rename(path.join("program.debug"), place.join("program.debug")).unwrap();
        }
        assert_inlined(path, "stripped", "program", options(path));
        // With another content than the link's checksum or the build-id says, it is not used.
        let other = compiled("cc", &["-g", "-O1", &format!("-Wl,--build-id={build_id}")]);
        fs::copy(other.path().join("program"), place.join("program.debug")).unwrap();
        let offsets = offsets_of(&path.join("program"), "outer");
        let symbols = symbolize(options(path), module(&path.join("stripped")), &offsets);
        let start = address_of(&path.join("program"), "outer");
        assert_eq!(frames(&symbols, 0), [format!("stripped+fn_{start:x}")]);
    }
}

/// Compilers write unwind tables for every function, and `strip` leaves them.
#[test]
fn functions_of_a_stripped_program_are_told_apart_by_their_starts() {
    if !available("cc") || !available("strip") {
        return;
    }
    let folder = compiled("cc", &["-O1", "-Wl,--build-id"]);
    let path = folder.path();
    run("strip", &["-o", "stripped", "program"], path);
    for function in ["outer", "main", "_start"] {
        let start = address_of(&path.join("program"), function);
        let offsets = offsets_of(&path.join("program"), function);
        let symbols = symbolize(options(path), module(&path.join("stripped")), &offsets);
        assert!(
            !offsets.is_empty() && symbols.functions().len() == 1,
            "{function}: {:?}",
            symbols.functions()
        );
        assert_eq!(frames(&symbols, offsets.len() - 1), [format!("stripped+fn_{start:x}")]);
        let found = &symbols.functions()[0];
        assert_eq!((found.known, found.address), (false, Some(start)), "it has no symbol");
    }
}

/// A program that stands for elfutils' client: it serves files by their build-id from a folder, and notes each question.
fn fake_client(folder: &Path) -> Debuginfod {
    let program = folder.join("debuginfod-find");
    let script = "cd \"${0%/*}\" || exit 1\necho \"$1 $2\" >> asked\n[ -f \"served/$1/$2\" ] || { echo \
                  'Server query failed: No such file or directory' >&2; exit 1; }\necho \"$PWD/served/$1/$2\"\n";
    eprof_testbed::programs::write_script(&program, script);
    for kind in ["debuginfo", "executable"] {
        fs::create_dir_all(folder.join("served").join(kind)).unwrap();
    }
    Debuginfod { program }
}

#[test]
fn debug_files_are_fetched_where_that_is_asked() {
    if !available("cc") || !available("objcopy") {
        return;
    }
    let folder = compiled("cc", &["-g", "-O2", "-Wl,--build-id"]);
    let path = folder.path();
    let id: String = build_id(&path.join("program")).iter().map(|byte| format!("{byte:02x}")).collect();
    let debuginfod = fake_client(path);
    let served = path.join("served/debuginfo").join(&id);
    run("objcopy", &["--only-keep-debug", "program", served.to_str().unwrap()], path);
    run("strip", &["-o", "stripped", "program"], path);
    let start = address_of(&path.join("program"), "outer");
    let offsets = offsets_of(&path.join("program"), "outer");
    let with = SymbolizeOptions { debuginfod: Some(debuginfod.clone()), ..options(path) };

    let symbols = symbolize(options(path), module(&path.join("stripped")), &offsets);
    assert_eq!(frames(&symbols, 0), [format!("stripped+fn_{start:x}")]);
    assert!(!path.join("asked").exists(), "nobody asked for it");

    assert_inlined(path, "stripped", "program", with.clone());
    assert_eq!(fs::read_to_string(path.join("asked")).unwrap(), format!("debuginfo {id}\n"));
    // What is here is not fetched.
    assert_inlined(path, "program", "program", with.clone());
    assert_eq!(fs::read_to_string(path.join("asked")).unwrap().lines().count(), 1);

    // The program itself is gone.
    fs::copy(path.join("stripped"), path.join("served/executable").join(&id)).unwrap();
    let gone = Module { build_id: Some(build_id(&path.join("program"))), ..module(&path.join("gone")) };
    let symbols = symbolize(with.clone(), gone, &offsets);
    assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
    assert!(frames(&symbols, 0)[0].starts_with("outer "), "{:?}", frames(&symbols, 0));

    // A server that sends something else is not believed.
    let other = compiled("cc", &["-g", "-O1", "-Wl,--build-id"]);
    fs::copy(other.path().join("program"), &served).unwrap();
    let symbols = symbolize(with.clone(), module(&path.join("stripped")), &offsets);
    assert_eq!(frames(&symbols, 0), [format!("stripped+fn_{start:x}")]);
    assert!(
        symbols.warnings[0].to_string().contains("is not the file of this build-id"),
        "{:?}",
        symbols.warnings
    );

    let nobody = Debuginfod { program: path.join("missing-program") };
    let without = SymbolizeOptions { debuginfod: Some(nobody), ..options(path) };
    let symbols = symbolize(without, module(&path.join("stripped")), &offsets);
    assert!(symbols.warnings[0].to_string().contains("is not installed"), "{:?}", symbols.warnings);
    assert_eq!(frames(&symbols, 0), [format!("stripped+fn_{start:x}")]);
}

#[test]
fn packed_symbols_are_told() {
    if !available("cc") || !available("objcopy") {
        return;
    }
    let folder = compiled("cc", &["-O2"]);
    let path = folder.path();
    let offsets = offsets_of(&path.join("program"), "outer");
    fs::write(path.join("packed"), "stands for an archive").unwrap();
    run("objcopy", &["--strip-all", "--add-section", ".gnu_debugdata=packed", "program", "stripped"], path);
    let symbols = symbolize(options(path), module(&path.join("stripped")), &offsets);
    assert!(
        symbols.warnings[0].to_string().contains("packed in its section .gnu_debugdata"),
        "{:?}",
        symbols.warnings
    );
}

#[test]
fn debug_information_shared_by_dwz() {
    // Few machines have dwz; it is not demanded of one that runs all live tests.
    if !available("cc") || std::process::Command::new("dwz").arg("--version").output().is_err() {
        eprof_testbed::skip_quietly("dwz is not installed");
        return;
    }
    let folder = compiled("cc", &["-gdwarf-4", "-O2", "-Wl,--build-id"]);
    let path = folder.path();
    fs::copy(path.join("program"), path.join("twin")).unwrap();
    run("dwz", &["-m", "shared.debug", "-M", "shared.debug", "program", "twin"], path);
    assert_inlined(path, "program", "program", options(path));
}

#[test]
fn a_binary_that_changed_is_not_used() {
    if !available("cc") {
        return;
    }
    let folder = compiled("cc", &["-g", "-O2", "-Wl,--build-id"]);
    let program = folder.path().join("program");
    let offsets = &offsets_of(&program, "outer")[..1];
    let mut recorded = module(&program);
    recorded.build_id = Some(build_id(&program));
    let name = |symbols: &Symbols| frames(symbols, 0)[0].clone();
    let symbols = symbolize(options(folder.path()), recorded.clone(), offsets);
    assert!(name(&symbols).starts_with("outer inlined.c:"));
    // Told by the build-id.
    recorded.build_id.as_mut().unwrap()[0] ^= 1;
    let symbols = symbolize(options(folder.path()), recorded.clone(), offsets);
    assert_eq!(name(&symbols), format!("program+{:#x}", offsets[0]));
    assert!(
        symbols.warnings[0].to_string().contains("it changed since the recording"),
        "{:?}",
        symbols.warnings
    );
    // Told by the time of the last change, where no build-id was recorded.
    recorded.build_id = None;
    let recorded_at = Some(SystemTime::now() - Duration::from_secs(3600));
    let symbols =
        symbolize(SymbolizeOptions { recorded_at, ..options(folder.path()) }, recorded.clone(), offsets);
    assert_eq!(name(&symbols), format!("program+{:#x}", offsets[0]));
    assert!(symbols.warnings[0].to_string().contains("after the recording"), "{:?}", symbols.warnings);
    let recorded_at = Some(SystemTime::now() + Duration::from_secs(3600));
    let symbols =
        symbolize(SymbolizeOptions { recorded_at, ..options(folder.path()) }, recorded.clone(), offsets);
    assert!(name(&symbols).starts_with("outer"));
    // Told by the inode, where no time is known.
    recorded.inode = Some((0, 0, 1));
    let symbols = symbolize(options(folder.path()), recorded, offsets);
    assert!(symbols.warnings[0].to_string().contains("another file"), "{:?}", symbols.warnings);
}

#[test]
fn a_sysroot_stands_before_the_paths() {
    if !available("cc") {
        return;
    }
    let folder = compiled("cc", &["-g", "-O2"]);
    let offsets = offsets_of(&folder.path().join("program"), "outer");
    let options = SymbolizeOptions { sysroot: Some(folder.path().to_owned()), ..options(folder.path()) };
    let symbols = symbolize(options.clone(), module(Path::new("/program")), &offsets);
    assert!(frames(&symbols, 0)[0].starts_with("outer inlined.c:"), "{:?}", symbols.warnings);
    // A copy is another inode than the recorded one and younger than the recording; with no build-id to tell it from the
    // recorded file, the user's word is taken.
    let mut recorded = module(Path::new("/program"));
    recorded.inode = Some((0, 0, 1));
    let recorded_at = Some(SystemTime::now() - Duration::from_secs(3600));
    let options = SymbolizeOptions { recorded_at, ..options };
    let symbols = symbolize(options.clone(), recorded.clone(), &offsets);
    assert!(frames(&symbols, 0)[0].starts_with("outer inlined.c:"), "{:?}", symbols.warnings);
    assert!(symbols.warnings[0].to_string().starts_with("/program is taken from"), "{:?}", symbols.warnings);
    let symbols = symbolize(options, recorded, &[offsets[0], 0, 1 << 40]);
    assert!(symbols.warnings[0].to_string().contains("2 of 3 sampled addresses"), "{:?}", symbols.warnings);
}

#[test]
fn without_inlines_the_symbol_alone_with_or_without_line() {
    if !available("cc") {
        return;
    }
    let folder = compiled("cc", &["-g", "-O2"]);
    let offsets = offsets_of(&folder.path().join("program"), "outer");
    let find = |lines| {
        let options = SymbolizeOptions { inlines: false, lines, ..options(folder.path()) };
        let symbols = symbolize(options, module(&folder.path().join("program")), &offsets);
        (0..offsets.len()).map(|index| frames(&symbols, index)).collect::<Vec<_>>()
    };
    assert!(find(false).iter().all(|frames| *frames == ["outer"]));
    let innermost = format!("outer inlined.c:{}", line_of(INLINED, "innermost"));
    assert!(find(true).contains(&vec![innermost]), "{:?}", find(true));
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let program = std::env::current_exe().unwrap();
    let length = fs::metadata(&program).unwrap().len();
    let offsets: Vec<u64> = (0..length).step_by(401).collect();
    let find = |threads| {
        let options = SymbolizeOptions { threads: Some(threads), ..options(Path::new("/nonexistent")) };
        let symbols = symbolize(options, module(&program), &offsets);
        let frames: Vec<_> = (0..offsets.len() as u32)
            .map(|index| symbols.frames(eprof::profile::AddressId(index)).to_vec())
            .collect();
        (frames, symbols.functions().to_vec(), symbols.files().to_vec())
    };
    let single = find(1);
    assert!(single.1.iter().any(|function| function.address.is_none() && function.known), "nothing inlined");
    assert!(single == find(2));
    assert!(single == find(5));
}

#[test]
fn cpp_and_rust_names_are_demangled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    if available("c++") {
        let source = "namespace shop { template <class T> struct Cart { __attribute__((noinline)) T total(T x) const \
                      { return x * 2; } }; template struct Cart<double>; }\nint main() {}\n";
        fs::write(path.join("names.cpp"), source).unwrap();
        run("c++", &["-g", "-O1", "names.cpp", "-o", "cpp"], path);
        let offsets = offsets_of(&path.join("cpp"), "_ZNK4shop4CartIdE5totalEd");
        let name = |options| {
            let symbols = symbolize(options, module(&path.join("cpp")), &offsets);
            let function = symbols.function(symbols.frames(eprof::profile::AddressId(0))[0].function);
            function.name.to_string()
        };
        assert_eq!(name(options(path)), "shop::Cart<double>::total");
        let full = SymbolizeOptions { cpp_parameters: true, ..options(path) };
        assert_eq!(name(full), "shop::Cart<double>::total(double) const");
        let raw = SymbolizeOptions { demangle: false, ..options(path) };
        assert_eq!(name(raw), "_ZNK4shop4CartIdE5totalEd");
    }
    if available("rustc") {
        let source = "pub mod shop { pub struct Cart(pub f64); impl Cart { #[inline(never)] pub fn total(&self) -> f64 \
                      { self.0 * 2.0 } } }\nfn main() { println!(\"{}\", shop::Cart(3.0).total()) }\n";
        fs::write(path.join("names.rs"), source).unwrap();
        for scheme in ["legacy", "v0"] {
            let scheme = format!("-Csymbol-mangling-version={scheme}");
            let legacy = scheme.ends_with("legacy");
            let flags: &[&str] = if legacy { &["-g", "names.rs"] } else { &["-g", &scheme, "names.rs"] };
            run("rustc", flags, path);
            let data = fs::read(path.join("names")).unwrap();
            let file = object::File::parse(&*data).unwrap();
            use object::{Object, ObjectSymbol};
            let names = file.symbols().filter_map(|symbol| symbol.name().ok());
            let total =
                names.into_iter().find(|name| name.contains("Cart") && name.contains("5total")).unwrap();
            let offsets = offsets_of(&path.join("names"), total);
            let symbols = symbolize(options(path), module(&path.join("names")), &offsets);
            let function = symbols.function(symbols.frames(eprof::profile::AddressId(0))[0].function);
            assert!(
                function.name.ends_with("names::shop::Cart>::total")
                    || &*function.name == "names::shop::Cart::total",
                "{}",
                function.name
            );
        }
    }
}

#[test]
fn code_that_is_in_no_symbol_or_no_file_keeps_module_and_offset() {
    let symbols =
        symbolize(SymbolizeOptions::default(), module(Path::new("/nonexistent/libx.so")), &[0x1234]);
    assert_eq!(frames(&symbols, 0), ["libx.so+0x1234"]);
    assert!(
        symbols.warnings[0].to_string().starts_with("no symbols of /nonexistent/libx.so"),
        "{:?}",
        symbols.warnings
    );
    let symbols = symbolize(SymbolizeOptions::default(), module(Path::new("/etc/passwd")), &[0x10]);
    assert!(symbols.warnings[0].to_string().contains("not a readable ELF file"), "{:?}", symbols.warnings);
}

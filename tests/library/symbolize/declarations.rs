//! Inlined functions without a name for the linker: each is itself, and called as people call it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use eprof::profile::AddressId;
use eprof::symbolize::{FunctionId, SymbolizeOptions, Symbols};

use super::support::*;

/// A function that both files have, another of one name in each, and one that is also called through a pointer.
const SOURCE: &str = r#"
#include "HEADER"
extern volatile long sink;
static inline __attribute__((always_inline)) void turn(long x) { sink += FACTOR * x; }
static inline __attribute__((always_inline)) void known(long x) { sink ^= FACTOR + x; }
void (*pointer_of_FILE)(long) = known;
__attribute__((noinline)) void from_FILE(long rounds) {
    for (long i = 0; i < rounds; i++) {
        turn(i);
        known(i);
        common(i);
    }
}
"#;
const HEADER: &str = "extern volatile long sink;\n\
                      static inline __attribute__((always_inline)) void common(long x) { sink -= x; }\n";
const MAIN: &str = "volatile long sink; void from_a(long), from_b(long);\n\
                    int main(int argc, char **argv) { from_a(argc); from_b(argc); return argv == 0; }\n";

fn write_sources(folder: &Path) {
    let source = |file: &str, header: &str, factor: &str| {
        SOURCE.replace("FILE", file).replace("HEADER", header).replace("FACTOR", factor)
    };
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("a.c"), source("a", "common.h", "3")).unwrap();
    // A line further down, and the header by another way.
    fs::write(folder.join("sub/b.c"), String::from("\n") + &source("b", "../common.h", "5")).unwrap();
    fs::write(folder.join("common.h"), HEADER).unwrap();
    fs::write(folder.join("main.c"), MAIN).unwrap();
}

/// The functions of each name, in all code of some functions.
fn by_name(symbols: &Symbols, count: usize) -> BTreeMap<String, BTreeSet<FunctionId>> {
    let mut found: BTreeMap<String, BTreeSet<FunctionId>> = BTreeMap::new();
    for frame in (0..count as u32).flat_map(|index| symbols.frames(AddressId(index))) {
        found.entry(symbols.function(frame.function).name.to_string()).or_default().insert(frame.function);
    }
    found
}

#[test]
fn static_functions_of_one_name_are_several_and_one_of_a_header_is_one() {
    if !available("cc") {
        return;
    }
    for flags in [
        &["-gdwarf-4"][..],
        &["-gdwarf-5"],
        &["-gdwarf-4", "-gsplit-dwarf"],
        &["-gdwarf-5", "-gsplit-dwarf"],
        &["-g", "-flto"],
    ] {
        println!("{flags:?}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        write_sources(path);
        run("cc", &[&["-O2", "a.c", "sub/b.c", "main.c", "-o", "program"], flags].concat(), path);
        let program = path.join("program");
        let offsets = [offsets_of(&program, "from_a"), offsets_of(&program, "from_b")].concat();
        let symbols = symbolize(options(path), module(&program), &offsets);
        assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
        let found = by_name(&symbols, offsets.len());
        let declared = |name: &str| -> Vec<String> {
            let of = |id: &FunctionId| symbols.function(*id).declared.as_deref().map(str::to_owned);
            found[name].iter().filter_map(of).collect()
        };
        let place = |place: &str| path.canonicalize().unwrap().join(place).display().to_string();
        assert_eq!(declared("turn"), [place("a.c:4"), place("sub/b.c:5")]);
        assert_eq!(declared("known"), [place("a.c:5"), place("sub/b.c:6")]);
        assert_eq!(declared("common"), [place("common.h:2")]);
        assert_eq!(found["common"].len(), 1, "{found:?}");
        assert_eq!(found["from_a"].len(), 1);
        // Where a function is called, too, its copies are the function that is called. Who optimizes at linking gives it
        // another name.
        if flags.contains(&"-flto") {
            continue;
        }
        let called = [offsets.clone(), both_of(&program, "known")].concat();
        let symbols = symbolize(options(path), module(&program), &called);
        let found = by_name(&symbols, called.len());
        let addresses: BTreeSet<Option<u64>> =
            found["known"].iter().map(|id| symbols.function(*id).address).collect();
        assert_eq!(addresses.len(), 2, "{found:?}");
        assert!(!addresses.contains(&None));
        for (name, count) in [("turn", 2), ("known", 2), ("common", 1)] {
            assert_eq!(found[name].len(), count, "{name}");
        }
    }
}

/// Offsets of all functions of one name.
fn both_of(path: &Path, name: &str) -> Vec<u64> {
    use object::{Object, ObjectSegment, ObjectSymbol};
    let data = fs::read(path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let symbols = file.symbols().filter(|symbol| symbol.name() == Ok(name));
    let of = |symbol: object::Symbol<'_, '_>| {
        let holds = |segment: &object::Segment<'_, '_>| {
            (segment.address()..segment.address() + segment.size()).contains(&symbol.address())
        };
        let segment = file.segments().find(holds).unwrap();
        symbol.address() - segment.address() + segment.file_range().0
    };
    symbols.map(of).collect()
}

const NAMES: &str = r#"
volatile long sink;
#define INLINED __attribute__((always_inline))
namespace {
struct Hidden { INLINED long method(long x) const { sink += x; return sink * 3; } };
INLINED inline long helper(long x) { sink += 7 * x; return sink; }
}
namespace ns {
struct Outer {
    template <class T> INLINED static T work(T x) {
        auto f = [&](T y) INLINED { sink += y; return sink * x; };
        return f(x) + 1;
    }
};
INLINED static inline long helper(long x) { sink -= x; return sink + 5; }
}
INLINED static inline long helper(long x, int y) { sink -= x * y; return sink + 9; }
__attribute__((noinline)) long outer(long n) {
    long s = 0;
    auto one = [&](long x) INLINED { sink += x; return sink * 5; }; auto two = [&](long x) INLINED { sink -= x; return sink * 7; };
    for (long i = 0; i < n; i++) {
        s += one(i) + two(i) + helper(i) + helper(i, 3) + ns::helper(i) + Hidden().method(i);
        s += ns::Outer::work<long>(i);
    }
    return s;
}
int main(int argc, char **) { return outer(argc) == 3; }
"#;

#[test]
fn names_tell_what_a_function_is_declared_in() {
    if !available("c++") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("names.cpp"), NAMES).unwrap();
    for format in ["-gdwarf-4", "-gdwarf-5"] {
        run("c++", &[format, "-O2", "names.cpp", "-o", "program"], path);
        let program = path.join("program");
        let offsets = offsets_of(&program, "_Z5outerl");
        let symbols = symbolize(options(path), module(&program), &offsets);
        let found = by_name(&symbols, offsets.len());
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        for expected in [
            "(anonymous namespace)::Hidden::method",
            "(anonymous namespace)::helper",
            "helper",
            "ns::helper",
            "outer",
        ] {
            assert!(names.contains(&expected), "{expected} is not among {names:#?}");
        }
        // Compilers disagree on the column at which a lambda begins.
        let line = 1 + NAMES.lines().position(|line| line.contains("auto one")).unwrap();
        let of_line = format!("outer::{{lambda at names.cpp:{line}:");
        let is_lambda = |name: &&str| name.starts_with(&of_line) && name.ends_with("}::operator()");
        assert_eq!(names.iter().filter(|name| is_lambda(name)).count(), 2, "{names:#?}");
        let has_work =
            |name: &&str| name.starts_with("ns::Outer::work<long>") && name.ends_with("operator()");
        assert!(names.iter().any(has_work), "by its name for the linker: {names:#?}");
        assert!(!names.contains(&"operator()"), "{names:#?}");
        // As debug information has them, where nothing else is wanted.
        let raw = SymbolizeOptions { demangle: false, ..options(path) };
        let symbols = symbolize(raw, module(&program), &offsets);
        let found = by_name(&symbols, offsets.len());
        assert_eq!(found["operator()"].len(), 2, "{found:?}");
        assert_eq!(found["helper"].len(), 3, "{found:?}");
    }
}

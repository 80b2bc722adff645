//! How fast addresses are symbolized: 105,000 different ones all over a binary with debug information, and
//! the kernel's of a list of 200,000 symbols.
//!
//! The binary is this benchmark itself, or another one: `EPROF_BENCH_ELF=FILE cargo bench --bench symbolize`.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use eprof::profile::{AddressId, CodeAddress, Module, ModuleId, ModuleKind};
use eprof::symbolize::{SymbolizeOptions, Symbolizer};
use object::{Object, ObjectSegment, SegmentFlags, elf};

const ADDRESSES: u64 = 105_000;
const KERNEL_SYMBOLS: u64 = 200_000;
const KERNEL_START: u64 = 0xffff_ffff_8100_0000;

fn addresses(start: u64, size: u64) -> Vec<CodeAddress> {
    (0..ADDRESSES)
        .map(|number| start + (u128::from(number) * u128::from(size) / u128::from(ADDRESSES)) as u64)
        .map(|address| CodeAddress { module: ModuleId(0), address, kernel: false })
        .collect()
}

/// The part of a file that holds its code.
fn code_of(path: &Path) -> (u64, u64) {
    let data = fs::read(path).expect("the binary can be read");
    let file = object::File::parse(&*data).expect("the binary is an ELF file");
    let is_code = |segment: &object::Segment<'_, '_>| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0);
    file.segments().find(is_code).expect("the binary has code").file_range()
}

fn module(kind: ModuleKind, path: &str) -> Module {
    Module { kind, path: path.to_owned(), build_id: None, inode: None, pid: None }
}

fn binary(criterion: &mut Criterion) {
    let chosen = std::env::var_os("EPROF_BENCH_ELF").map(PathBuf::from);
    let path = chosen.unwrap_or_else(|| std::env::current_exe().expect("a running program has a file"));
    let (start, size) = code_of(&path);
    let module = module(ModuleKind::File, &path.to_string_lossy());
    let addresses = addresses(start, size);

    let mut group = criterion.benchmark_group("symbolize");
    group
        .throughput(Throughput::Elements(ADDRESSES))
        .sample_size(10)
        .measurement_time(Duration::from_secs(10));
    for (name, inlines, lines) in [("names", false, false), ("lines", false, true), ("inlines", true, true)] {
        for (threads, setting) in [("one thread", Some(1)), ("all threads", None)] {
            let options =
                SymbolizeOptions { inlines, lines, threads: setting, ..SymbolizeOptions::default() };
            group.bench_function(BenchmarkId::new(name, threads), |bencher| {
                bencher.iter(|| {
                    let mut symbolizer = Symbolizer::new(options.clone());
                    let symbols = symbolizer.symbolize(std::slice::from_ref(&module), &addresses);
                    assert!(!symbols.frames(AddressId(0)).is_empty());
                    black_box(symbols)
                });
            });
        }
    }
    group.finish();
}

fn kernel(criterion: &mut Criterion) {
    let root = tempfile::tempdir().expect("a folder can be made");
    let lines = (0..KERNEL_SYMBOLS).map(|number| {
        format!("{:016x} t function_number_{number}_of_the_kernel\n", KERNEL_START + number * 64)
    });
    fs::create_dir_all(root.path().join("sys/kernel")).expect("a folder can be made");
    fs::write(root.path().join("kallsyms"), lines.collect::<String>()).expect("a file can be written");
    fs::write(root.path().join("sys/kernel/osrelease"), "6.1").expect("a file can be written");
    let options = SymbolizeOptions {
        procfs: root.path().to_owned(),
        kernel_release: Some(String::from("6.1")),
        ..SymbolizeOptions::default()
    };
    let module = module(ModuleKind::Kernel, "[kernel.kallsyms]");
    let addresses = addresses(KERNEL_START, KERNEL_SYMBOLS * 64);
    let mut group = criterion.benchmark_group("symbolize");
    group.throughput(Throughput::Elements(ADDRESSES)).sample_size(10);
    group.bench_function("kernel", |bencher| {
        bencher.iter(|| {
            let symbols =
                Symbolizer::new(options.clone()).symbolize(std::slice::from_ref(&module), &addresses);
            assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
            black_box(symbols)
        });
    });
    group.finish();
}

criterion_group!(benches, binary, kernel);
criterion_main!(benches);

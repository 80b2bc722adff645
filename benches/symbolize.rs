//! Lookups in a large binary with full debug information: `EPROF_BENCH_ELF=FILE cargo bench --bench symbolize`.
use eprof::profile::*;
use eprof::symbolize::*;
use object::{Object, ObjectSegment, SegmentFlags, elf};
use std::time::Instant;
fn main() {
    let path = std::env::var("EPROF_BENCH_ELF").unwrap();
    let data = std::fs::read(&path).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let seg = file
        .segments()
        .find(|s| matches!(s.flags(), SegmentFlags::Elf { p_flags } if p_flags & elf::PF_X != 0))
        .unwrap();
    let (off, size) = seg.file_range();
    let n = 105_000u64;
    let addresses: Vec<CodeAddress> = (0..n)
        .map(|i| CodeAddress { module: ModuleId(0), address: off + i * size / n, kernel: false })
        .collect();
    let module = Module { kind: ModuleKind::File, path, build_id: None, inode: None, pid: None };
    for (threads, inlines, lines) in
        [(None, true, true), (Some(1), true, true), (Some(1), false, true), (Some(1), false, false)]
    {
        for _ in 0..2 {
            let t = Instant::now();
            let c = cpu();
            let symbols = Symbolizer::new(SymbolizeOptions { threads, inlines, lines, ..Default::default() })
                .symbolize(std::slice::from_ref(&module), &addresses);
            let frames: usize = (0..n as u32).map(|i| symbols.frames(AddressId(i)).len()).sum();
            println!(
                "{threads:?} {inlines} {lines}: {:?} cpu {:?} frames {frames} functions {} files {}",
                t.elapsed(),
                cpu() - c,
                symbols.functions().len(),
                symbols.files().len()
            );
        }
    }
}

fn cpu() -> std::time::Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap().into()
}
